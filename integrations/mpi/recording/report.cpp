// SPDX-License-Identifier: Apache-2.0
#include "recording/report.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "choosing/contests.hpp"
#include "choosing/links.hpp"
#include "choosing/sites.hpp"
#include "job/job.hpp"
#include "job/options.hpp"
#include "messages/thread.hpp"
#include "recording/json.hpp"
#include "recording/network.hpp"
#include "recording/trace_file.hpp"

namespace wirepress {
namespace {

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
  if (call.device_size + call.cores_size != 0)
    append(&json, ", \"device_bytes\": %llu, \"cores_bytes\": %llu", Number{call.device_size},
           Number{call.cores_size});
  json += ", \"bypasses\": {";
  const char* comma = "";
  for (size_t i = 0; i < kBypassCount; ++i) {
    if (!call.bypass[i]) continue;
    append(&json, "%s\"%s\": %llu", comma, kBypassNames[i], Number{call.bypass[i]});
    comma = ", ";
  }
  return json + "}}";
}

// The engine with a device that was named: what it did, and why the cores did the rest.
std::string engine_json() {
  if (!names_device()) return "";
  std::string state, refusal;
  wpr_engine_info engine;
  for (size_t i = 0; wpr_engine_at(i, &engine); ++i) {
    state += wpr_engine_state(i);
    refusal += wpr_engine_refusal(i);
  }
  if (state.empty() && refusal.empty()) return "";
  return ", \"engine\": {\"name\": " + json_string(job().engine) +
         ", \"state\": " + json_string(state) + ", \"refusal\": " + json_string(refusal) + "}";
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

}  // namespace

std::string rank_report() {
  const Counts counts = count_all();
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
  json += engine_json() + ", \"network\": " + network_json();
  const std::string trace = trace_json();
  return json + (trace.empty() ? "}" : ", \"trace\": " + trace + "}");
}

namespace {

// To a device or pipe. A pipe that nobody reads is an error: it shall not stop the job, nor end it.
bool write_through(const std::string& file, const std::string& text) {
  const int to = open(file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (to < 0) return false;
  fcntl(to, F_SETFL, 0);  // a reader that is slow is waited for
  sigset_t broken, before;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &broken, &before);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(to, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (done < text.size() && errno == EPIPE && sigismember(&before, SIGPIPE) == 0) {
    const timespec now{};
    sigtimedwait(&broken, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return close(to) == 0 && done == text.size();
}

// Beside the file, so that none is ever there by half.
bool write_aside(const std::string& file, const std::string& text) {
  const std::string aside = file + ".part" + std::to_string(getpid());
  FILE* out = std::fopen(aside.c_str(), "w");
  bool good = out && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out) good = std::fclose(out) == 0 && good;
  good = good && std::rename(aside.c_str(), file.c_str()) == 0;
  if (!good) std::remove(aside.c_str());
  return good;
}

}  // namespace

bool write_report(const std::string& file, const std::vector<std::string>& ranks) {
  const Job& j = job();
  std::string json = "{\"version\": 1, \"state\": " + json_string(j.state) +
                     ", \"reason\": " + json_string(j.reason);
  append(&json, ", \"size\": %d, \"nodes\": [", j.size);
  for (size_t i = 0; i < j.node.size(); ++i) append(&json, "%s%d", i ? ", " : "", j.node[i]);
  json += "], \"ranks\": [";
  for (size_t i = 0; i < ranks.size(); ++i) json += (i ? ",\n" : "\n") + ranks[i];
  json += "\n]}\n";
  struct stat there {};
  const bool regular = stat(file.c_str(), &there) != 0 || S_ISREG(there.st_mode);
  const bool good = (regular ? write_aside : write_through)(file, json);
  if (!good) complain(("cannot write the report " + file).c_str());
  return good;
}

}  // namespace wirepress
