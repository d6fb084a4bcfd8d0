// SPDX-License-Identifier: Apache-2.0
// Counting and the report (spec/report.md). Each thread counts for itself; nobody is in its way.
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "recording/network.hpp"
#include "recording/trace.hpp"

namespace wirepress {

constinit thread_local Thread* t_thread = nullptr;

namespace {

constexpr const char* kCallNames[kCallCount] = {"MPI_Send",
                                                "MPI_Ssend",
                                                "MPI_Isend",
                                                "MPI_Issend",
                                                "MPI_Rsend",
                                                "MPI_Bsend",
                                                "MPI_Irsend",
                                                "MPI_Ibsend",
                                                "MPI_Send_init",
                                                "MPI_Ssend_init",
                                                "MPI_Bsend_init",
                                                "MPI_Rsend_init",
                                                "MPI_Recv",
                                                "MPI_Irecv",
                                                "MPI_Sendrecv",
                                                "MPI_Sendrecv_replace",
                                                "MPI_Isendrecv",
                                                "MPI_Mrecv",
                                                "MPI_Imrecv",
                                                "MPI_Recv_init",
                                                "MPI_Wait",
                                                "MPI_Waitall",
                                                "MPI_Waitany",
                                                "MPI_Waitsome",
                                                "MPI_Bcast",
                                                "MPI_Reduce",
                                                "MPI_Allreduce",
                                                "MPI_Reduce_scatter",
                                                "MPI_Reduce_scatter_block",
                                                "MPI_Allgather",
                                                "MPI_Allgatherv",
                                                "MPI_Gather",
                                                "MPI_Gatherv",
                                                "MPI_Scatter",
                                                "MPI_Scatterv",
                                                "MPI_Alltoall",
                                                "MPI_Alltoallv",
                                                "MPI_Alltoallw",
                                                "MPI_Scan",
                                                "MPI_Exscan",
                                                "MPI_Neighbor_allgather",
                                                "MPI_Neighbor_allgatherv",
                                                "MPI_Neighbor_alltoall",
                                                "MPI_Neighbor_alltoallv",
                                                "MPI_Neighbor_alltoallw",
                                                "MPI_Ineighbor_allgather",
                                                "MPI_Ineighbor_allgatherv",
                                                "MPI_Ineighbor_alltoall",
                                                "MPI_Ineighbor_alltoallv",
                                                "MPI_Ineighbor_alltoallw",
                                                "MPI_Ibcast",
                                                "MPI_Igather",
                                                "MPI_Igatherv",
                                                "MPI_Iscatter",
                                                "MPI_Iscatterv",
                                                "MPI_Iallgather",
                                                "MPI_Iallgatherv",
                                                "MPI_Ialltoall",
                                                "MPI_Ialltoallv",
                                                "MPI_Ialltoallw",
                                                "MPI_Ireduce",
                                                "MPI_Iallreduce",
                                                "MPI_Ireduce_scatter",
                                                "MPI_Ireduce_scatter_block",
                                                "MPI_Iscan",
                                                "MPI_Iexscan",
                                                "MPI_Neighbor_allgather_init",
                                                "MPI_Neighbor_allgatherv_init",
                                                "MPI_Neighbor_alltoall_init",
                                                "MPI_Neighbor_alltoallv_init",
                                                "MPI_Neighbor_alltoallw_init",
                                                "MPI_Bcast_init",
                                                "MPI_Gather_init",
                                                "MPI_Gatherv_init",
                                                "MPI_Scatter_init",
                                                "MPI_Scatterv_init",
                                                "MPI_Allgather_init",
                                                "MPI_Allgatherv_init",
                                                "MPI_Alltoall_init",
                                                "MPI_Alltoallv_init",
                                                "MPI_Alltoallw_init",
                                                "MPI_Reduce_init",
                                                "MPI_Allreduce_init",
                                                "MPI_Reduce_scatter_init",
                                                "MPI_Reduce_scatter_block_init",
                                                "MPI_Scan_init",
                                                "MPI_Exscan_init",
                                                "MPI_Test",
                                                "MPI_Testall",
                                                "MPI_Testany",
                                                "MPI_Testsome",
                                                "MPI_Request_get_status",
                                                "MPI_Request_free",
                                                "MPI_Cancel",
                                                "MPI_Start",
                                                "MPI_Probe",
                                                "MPI_Iprobe",
                                                "MPI_Mprobe",
                                                "MPI_Improbe",
                                                "MPI_Isendrecv_replace",
                                                "MPI_Barrier",
                                                "MPI_Ibarrier",
                                                "completion",
                                                "tracer",
                                                "wirepress"};
constexpr const char* kBypassNames[kBypassCount] = {
    "small",   "same_host",   "noncontiguous", "incompressible", "not_faster", "not_smaller",
    "no_peer", "unsupported", "no_codec",      "nonblocking",    "learning",   "not_tried"};

struct Counts {
  std::array<CallStats, kCallCount> calls{};
  Events events;

  void add(const Counts& other) {
    for (size_t i = 0; i < kCallCount; ++i) add(&calls[i], other.calls[i]);
    events.stashed += other.events.stashed;
    events.truncated += other.events.truncated;
    events.corrupt += other.events.corrupt;
    events.no_memory += other.events.no_memory;
    events.orphans += other.events.orphans;
    events.in_pieces += other.events.in_pieces;
    events.left += other.events.left;
  }
  static void add(CallStats* to, const CallStats& from) {
    to->messages += from.messages;
    to->raw_size += from.raw_size;
    to->wire_size += from.wire_size;
    to->modelled_size += from.modelled_size;
    to->framed += from.framed;
    to->received += from.received;
    to->received_raw_size += from.received_raw_size;
    to->received_wire_size += from.received_wire_size;
    to->received_framed += from.received_framed;
    to->compress_seconds += from.compress_seconds;
    to->wait_seconds += from.wait_seconds;
    to->expand_seconds += from.expand_seconds;
    for (size_t i = 0; i < kBypassCount; ++i) to->bypass[i] += from.bypass[i];
  }
};

struct Threads {
  std::mutex lock;
  std::vector<Thread*> all;
  Counts ended;  // of threads that are gone
};
Threads& threads() {
  static auto* table = new Threads;
  return *table;
}

// Ends a thread's part with the thread.
struct Holder {
  ~Holder() {
    Thread* thread = t_thread;
    t_thread = nullptr;
    if (!thread) return;
    for (wpr_ctx* ctx : thread->ctx) wpr_free(ctx);
    wpr_free(thread->decoder);
    std::lock_guard hold(threads().lock);
    std::erase(threads().all, thread);
    threads().ended.add({thread->calls, thread->events});
    delete thread;
  }
};

using Number = unsigned long long;

std::string call_json(const CallStats& call) {
  std::string json;
  const auto ratio = [](uint64_t raw, uint64_t wire) {
    return wire ? static_cast<double>(raw) / static_cast<double>(wire) : 1.0;
  };
  append(&json, "{\"messages\": %llu, \"compressed_messages\": %llu, \"raw_bytes\": %llu, ",
         Number{call.messages}, Number{call.framed}, Number{call.raw_size});
  append(&json, "\"wire_bytes\": %llu, \"modelled_bytes\": %llu, \"ratio\": %.4f, ",
         Number{call.wire_size}, Number{call.modelled_size}, ratio(call.raw_size, call.wire_size));
  append(&json, "\"received_messages\": %llu, \"received_compressed_messages\": %llu, ",
         Number{call.received}, Number{call.received_framed});
  append(&json, "\"received_raw_bytes\": %llu, \"received_wire_bytes\": %llu, ",
         Number{call.received_raw_size}, Number{call.received_wire_size});
  append(&json, "\"compress_seconds\": %.6f, \"wait_seconds\": %.6f, \"decompress_seconds\": %.6f",
         call.compress_seconds, call.wait_seconds, call.expand_seconds);
  json += ", \"bypasses\": {";
  const char* comma = "";
  for (size_t i = 0; i < kBypassCount; ++i) {
    if (!call.bypass[i]) continue;
    append(&json, "%s\"%s\": %llu", comma, kBypassNames[i], Number{call.bypass[i]});
    comma = ", ";
  }
  return json + "}}";
}

bool used(const CallStats& call) {
  return call.messages || call.received || call.wire_size || call.wait_seconds > 0;
}

std::string options_json() {
  const Job& j = job();
  std::string json = "{\"mpi_codec\": " + json_string(j.codec);
  json += ", \"mpi_error\": " + json_string(j.error);
  append(&json, ", \"mpi_threshold\": %zu, \"mpi_threshold_by_link\": %s", j.threshold,
         j.by_link ? "true" : "false");
  append(&json, ", \"mpi_chunk\": %zu", j.chunk);
  append(&json, ", \"mpi_partitions\": %zu", j.partitions);
  const auto flag = [&](const char* key, bool on) {
    append(&json, ", \"%s\": %s", key, on ? "true" : "false");
  };
  flag("mpi_deterministic", j.deterministic);
  flag("mpi_collectives", j.collectives);
  flag("mpi_contest", j.contest);
  flag("mpi_nonblocking", j.nonblocking);
  flag("mpi_same_host", j.same_host);
  flag("mpi_checksum", j.checksum);
  return json + ", \"mpi_link\": " + json_string(j.link) + "}";
}

std::string contests_json() {
  std::string json = "[";
  for (const ContestResult& r : contest_results()) {
    append(&json, "%s{\"call\": \"%s\", \"type\": \"%s\", \"bytes_from\": %llu, \"ranks\": %d, ",
           json.size() > 1 ? ", " : "", kCallNames[r.call], dtype_name(r.dtype),
           Number{1} << r.size_class, r.ranks);
    append(&json, "\"winner\": \"%s\", \"plain_seconds\": %.6f, \"own_seconds\": %.6f, ",
           r.own_wins ? "own" : "plain", r.plain_seconds, r.own_seconds);
    append(&json, "\"trials\": %llu, \"plain_calls\": %llu, \"own_calls\": %llu}",
           Number{r.decisions}, Number{r.plain_calls}, Number{r.own_calls});
  }
  return json + "]";
}

}  // namespace

void append(std::string* text, const char* format, ...) {
  // A program may have set a locale that writes 0,5 for 0.5.
  static const locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", nullptr);
  const locale_t before = c_locale ? uselocale(c_locale) : nullptr;
  char piece[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  if (before) uselocale(before);
  *text += piece;
}

const char* call_name(Call call) { return kCallNames[call]; }

const char* dtype_name(wpr_dtype dtype) {
  static constexpr const char* kNames[] = {
      "bytes",   "int8",        "uint8",       "int16",   "uint16",    "int32",
      "uint32",  "int64",       "uint64",      "float16", "bfloat16",  "float32",
      "float64", "float8_e4m3", "float8_e5m2", "bool",    "complex64", "complex128"};
  return kNames[dtype];
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Thread* make_thread() {
  static thread_local Holder holder;
  (void)holder;
  t_thread = new Thread;
  std::lock_guard hold(threads().lock);
  threads().all.push_back(t_thread);
  return t_thread;
}

void complain(const char* sentence) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr, "wirepress: rank %d: %s (said once; the report counts)\n", job().rank,
               sentence);
}

std::string json_string(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      append(&json, "\\u%04x", c);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string rank_report() {
  Counts counts;
  {
    std::lock_guard hold(threads().lock);
    counts = threads().ended;
    for (const Thread* thread : threads().all) counts.add({thread->calls, thread->events});
  }
  const Job& j = job();
  std::string json;
  append(&json, "{\"rank\": %d, \"host\": ", j.rank);
  json += json_string(j.host) + ", \"state\": " + json_string(j.state);
  json += ", \"reason\": " + json_string(j.reason) + ", \"options\": " + options_json();
  append(&json, ", \"link_bytes_per_second\": %.0f, \"calls\": {", link_rate(kAnyLink));
  const char* comma = "";
  for (size_t i = 0; i < kCallCount; ++i) {
    if (!used(counts.calls[i])) continue;
    append(&json, "%s\"%s\": ", comma, kCallNames[i]);
    json += call_json(counts.calls[i]);
    comma = ", ";
  }
  const Events& e = counts.events;
  json += "}, \"sites\": " + sites_json() + ", \"contests\": " + contests_json();
  append(&json, ", \"events\": {\"stashed\": %llu, \"orphans\": %llu, \"truncated\": %llu, ",
         Number{e.stashed}, Number{e.orphans}, Number{e.truncated});
  append(&json, "\"in_pieces\": %llu, \"left\": %llu, ", Number{e.in_pieces}, Number{e.left});
  append(&json, "\"corrupt\": %llu, \"no_memory\": %llu}", Number{e.corrupt}, Number{e.no_memory});
  json += ", \"network\": " + network_json();
  const std::string trace = trace_json();
  return json + (trace.empty() ? "}" : ", \"trace\": " + trace + "}");
}

bool write_report(const std::string& file, const std::vector<std::string>& ranks) {
  const Job& j = job();
  std::string json = "{\"version\": 1, \"state\": " + json_string(j.state) +
                     ", \"reason\": " + json_string(j.reason);
  append(&json, ", \"size\": %d, \"nodes\": [", j.size);
  for (size_t i = 0; i < j.node.size(); ++i) append(&json, "%s%d", i ? ", " : "", j.node[i]);
  json += "], \"ranks\": [";
  for (size_t i = 0; i < ranks.size(); ++i) json += (i ? ",\n" : "\n") + ranks[i];
  json += "\n]}\n";
  const std::string temporary = file + ".part" + std::to_string(getpid());
  FILE* out = std::fopen(temporary.c_str(), "w");
  bool good = out && std::fwrite(json.data(), 1, json.size(), out) == json.size();
  if (out) good = std::fclose(out) == 0 && good;
  good = good && std::rename(temporary.c_str(), file.c_str()) == 0;
  if (!good) {
    std::remove(temporary.c_str());
    complain(("cannot write the report " + file).c_str());
  }
  return good;
}

}  // namespace wirepress
