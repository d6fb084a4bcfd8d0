// SPDX-License-Identifier: Apache-2.0
// The file of a trace (spec/trace.md): blocks of records, each a frame, written as they fill up, so
// that what was written is good whatever becomes of the rank. A file that cannot be written ends
// the trace of this rank, never the rank.
#include "recording/trace_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <string_view>
#include <vector>

#include "job/identity.hpp"
#include "job/job.hpp"
#include "messages/devices.hpp"
#include "messages/types.hpp"
#include "recording/counts.hpp"
#include "recording/json.hpp"
#include "recording/trace.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

constexpr size_t kBlockRecords = 1024;
constexpr uint64_t kOldest = 1000000000;  // ns that a record waits for others to be written with
constexpr uint64_t kLeastSample = 16 << 10, kMostSample = 256 << 10;
constexpr uint64_t kLargestElement = 16 << 20;
constexpr uint64_t kMostAtOnce = 16;  // samples of one message

enum BlockKind : uint16_t { kMeta = 1, kCalls, kCommunicator, kSample, kClock, kIndex };

struct FileHead {
  char magic[8] = {'W', 'P', 'R', 'T', 'R', 'A', 'C', 'E'};
  uint32_t version = 1, record_size = sizeof(TraceRecord);
  Byte job[kCookieSize] = {};
  uint32_t rank = 0, size = 0;
  uint64_t realtime = 0, monotonic = 0, check = 0;
};
static_assert(sizeof(FileHead) == 64);

struct BlockHead {
  char magic[4] = {'W', 'P', 'T', 'b'};
  uint16_t kind = 0, thread = 0;
  uint32_t sequence = 0, stored_size = 0, n_entries = 0, zero = 0;
  uint64_t first = 0, last = 0, raw_size = 0, offset = 0, check = 0;
};
static_assert(sizeof(BlockHead) == 64);

struct IndexEntry {
  uint64_t offset = 0;
  uint16_t kind = 0, thread = 0;
  uint32_t n_entries = 0;
  uint64_t first = 0, last = 0;
};
static_assert(sizeof(IndexEntry) == 32);

struct Trailer {
  char magic[8] = {'W', 'P', 'T', 'I', 'N', 'D', 'E', 'X'};
  uint64_t offset = 0, check = 0;
};

struct ClockEntry {
  uint64_t local = 0;      // ns since the file's origin
  int64_t difference = 0;  // of rank 0's clock to mine
  uint64_t error = 0;
  uint32_t n_exchanges = 0, zero = 0;
};

struct SampleHead {
  uint64_t at = 0, stands_for = 0, message_size = 0;
  uint32_t zero = 0;
  uint8_t call = 0, dtype = 0, zeros[2] = {};
};
static_assert(sizeof(SampleHead) == 32);

uint64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// One thread's records that are not written yet.
struct Pen {
  std::mutex lock;
  uint16_t number = 0;
  size_t n = 0;
  TraceRecord records[kBlockRecords];
};

// A sample; written at the end, for until then later ones may take its place.
struct Kept {
  SampleHead about;
  uint64_t size = 0;
  std::unique_ptr<Byte[]> data;
};

struct Writer {
  std::mutex lock;  // of the file, and of what is below
  int file = -1;
  bool broken = false;
  pid_t process = 0;
  std::string path, problem;
  FileHead head;
  uint64_t offset = 0;
  uint32_t sequence = 0;
  std::vector<IndexEntry> index;
  wpr_ctx *records = nullptr, *others = nullptr;
  std::vector<Byte> frame;
  uint64_t n_records = 0, sampled = 0;

  std::mutex pens_lock;
  std::vector<Pen*> pens;

  std::mutex samples_lock;
  uint64_t budget = 0, sample_size = 0, stride = 0, since = 0, next = 0;
  std::minstd_rand chance;
  std::vector<Kept> kept;
  MPI_Comm clock = MPI_COMM_NULL;
};
Writer& writer() { return the<Writer>(); }

std::atomic<bool> g_sampling{false};
std::atomic<uint32_t> g_n_comms{0};

uint64_t seal(const FileHead& head, const void* data, size_t size) {
  Byte bytes[kCookieSize + 4 + 64];
  std::memcpy(bytes, head.job, kCookieSize);
  std::memcpy(bytes + kCookieSize, &head.rank, 4);
  std::memcpy(bytes + kCookieSize + 4, data, size);
  return fnv1a(bytes, kCookieSize + 4 + size);
}

// ---- blocks. The file's lock is held. ----

void break_off(const std::string& why) {
  Writer& w = writer();
  w.broken = true;
  w.problem = why;
  g_tracing.store(false, std::memory_order_relaxed);
  complain(("the trace ends here: " + w.path + ": " + why).c_str());
}

bool write_all(const void* data, size_t size) {
  const Byte* at = static_cast<const Byte*>(data);
  while (size > 0) {
    const ssize_t n = write(writer().file, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Kind, thread, n_entries, first and last of the head are the caller's.
void write_block(BlockHead head, const void* data, size_t size, wpr_ctx* ctx) {
  Writer& w = writer();
  if (w.broken || w.file < 0 || getpid() != w.process) return;  // a child is not the rank
  w.frame.resize(sizeof head + wpr_bound(ctx, size));
  size_t stored = 0;
  if (wpr_compress(ctx, data, size, w.frame.data() + sizeof head, w.frame.size() - sizeof head,
                   &stored) != WPR_OK) {
    return break_off(wpr_error(ctx));
  }
  head.sequence = w.sequence;
  head.stored_size = static_cast<uint32_t>(stored);
  head.raw_size = size;
  head.offset = w.offset;
  head.check = seal(w.head, &head, offsetof(BlockHead, check));
  std::memcpy(w.frame.data(), &head, sizeof head);
  if (!write_all(w.frame.data(), sizeof head + stored)) {
    const std::string why = std::strerror(errno);
    if (ftruncate(w.file, static_cast<off_t>(w.offset)) != 0) return break_off(why + ", torn");
    return break_off(why);
  }
  w.index.push_back({w.offset, head.kind, head.thread, head.n_entries, head.first, head.last});
  ++w.sequence;
  w.offset += sizeof head + stored;
}

void write_entry(BlockKind kind, uint64_t at, const void* data, size_t size, wpr_ctx* ctx) {
  BlockHead head;
  head.kind = kind;
  head.n_entries = 1;
  head.first = head.last = at;
  write_block(head, data, size, ctx);
}

// The pen's lock is held, too.
void write_pen(Pen* pen) {
  if (pen->n == 0) return;
  Writer& w = writer();
  std::lock_guard hold(w.lock);
  BlockHead head;
  head.kind = kCalls;
  head.thread = pen->number;
  head.n_entries = static_cast<uint32_t>(pen->n);
  head.first = pen->records[0].begin;
  for (size_t i = 0; i < pen->n; ++i) {
    head.first = std::min(head.first, pen->records[i].begin);
    head.last = std::max(head.last, pen->records[i].end);
  }
  write_block(head, pen->records, pen->n * sizeof(TraceRecord), w.records);
  w.n_records += pen->n;
  pen->n = 0;
}

// Each MPI has numbers of its own for these.
int32_t peer_number(int32_t peer) {
  return peer == MPI_PROC_NULL ? -1 : peer == MPI_ANY_SOURCE ? -2 : peer == MPI_ROOT ? -3 : peer;
}

void append_record(Pen* pen, const TraceRecord& record) {
  pen->records[pen->n] = record;
  pen->records[pen->n].peer = peer_number(record.peer);
  if (record.tag == MPI_ANY_TAG) pen->records[pen->n].tag = -1;
  ++pen->n;
  if (pen->n < kBlockRecords && record.end - std::min(record.end, pen->records[0].end) < kOldest) {
    return;
  }
  TraceRecord own;  // what this takes is no computing of the program's
  own.call = kTracer;
  own.peer = peer_number(own.peer);
  own.begin = trace_stamp();
  write_pen(pen);
  own.end = trace_stamp();
  pen->records[pen->n++] = own;
}

// A thread's records are written with the thread's end, or with the trace's.
struct PenHolder {
  Pen* pen = nullptr;
  ~PenHolder() {
    if (!pen) return;
    Writer& w = writer();
    {
      std::lock_guard hold(w.pens_lock);
      std::erase(w.pens, pen);
    }
    {
      std::lock_guard hold(pen->lock);
      write_pen(pen);
    }
    delete pen;
  }
};
thread_local PenHolder t_pen;

Pen* own_pen() {
  if (t_pen.pen) return t_pen.pen;
  static std::atomic<uint16_t> n_threads{0};
  auto* pen = new Pen;
  pen->number = n_threads.fetch_add(1, std::memory_order_relaxed);
  Writer& w = writer();
  std::lock_guard hold(w.pens_lock);
  w.pens.push_back(pen);
  return t_pen.pen = pen;
}

// ---- what the file begins with ----

bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) return false;
    if (at == std::string::npos) return true;
  }
}

std::string own_command() {
  std::string command;
  if (FILE* file = std::fopen("/proc/self/cmdline", "r")) {
    char text[1024];
    const size_t n = std::fread(text, 1, sizeof text, file);
    std::fclose(file);
    for (size_t i = 0; i + 1 < n; ++i) command += text[i] ? text[i] : ' ';
  }
  return command;
}

// The first line of a file of the kernel's that begins with `key`, without it; "" where there is
// none.
std::string kernel_line(const char* path, std::string_view key) {
  std::string found;
  if (FILE* file = std::fopen(path, "r")) {
    char line[4096];
    while (found.empty() && std::fgets(line, sizeof line, file)) {
      if (std::string_view(line).starts_with(key)) found = line + key.size();
    }
    std::fclose(file);
  }
  const size_t begin = found.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return "";
  return found.substr(begin, found.find_last_not_of(" \t\n") + 1 - begin);
}

std::string meta_json() {
  const Job& j = job();
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int size = 0;
  PMPI_Get_library_version(library, &size);
  std::string mpi(library, std::min<size_t>(static_cast<size_t>(size), 200));
  mpi = mpi.substr(0, mpi.find('\n'));
  std::string json = "{\"host\": " + json_string(j.host);
  append(&json, ", \"pid\": %d, \"multiple\": %s, \"nodes\": [", static_cast<int>(getpid()),
         j.multiple ? "true" : "false");
  for (size_t i = 0; i < j.node.size(); ++i) append(&json, "%s%d", i ? ", " : "", j.node[i]);
  json += "], \"command\": " + json_string(own_command()) + ", \"mpi\": " + json_string(mpi);
  json += ", \"wirepress\": " + json_string(wpr_version());
  const std::string machine = kernel_line("/proc/sys/kernel/random/boot_id", "");
  const std::string cores = kernel_line("/proc/self/status", "Cpus_allowed_list:");
  json += ", \"machine\": " + json_string(machine) + ", \"cores\": " + json_string(cores);
  json += ", \"codec\": " + (j.compress ? json_string(j.codec) : std::string("null"));
  append(&json, ", \"sample_bytes\": %llu, \"calls\": [",
         static_cast<unsigned long long>(writer().budget));
  for (int i = 0; i < kCallCount; ++i) {
    json += (i ? ", " : "") + json_string(kCallNames[i]);
  }
  json += "], \"dtypes\": [";
  for (int i = 0; i <= WPR_COMPLEX128; ++i) {
    json += (i ? ", " : "") + json_string(wpr_dtype_name(static_cast<wpr_dtype>(i)));
  }
  return json + "]}";
}

wpr_ctx* writing_context(const char* recipe) {
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);
  if (ctx && wpr_set(ctx, "recipe", recipe) == WPR_OK && wpr_set(ctx, "threads", "1") == WPR_OK &&
      wpr_set(ctx, "checksum", "on") == WPR_OK) {
    return ctx;
  }
  wpr_free(ctx);
  return nullptr;
}

void open_file(const std::string& folder) {
  Writer& w = writer();
  const Job& j = job();
  char name[64];
  std::snprintf(name, sizeof name, "/%02x%02x%02x%02x-%05d.wpt", j.cookie[0], j.cookie[1],
                j.cookie[2], j.cookie[3], j.rank);
  w.path = folder + name;
  w.process = getpid();
  w.records = writing_context("shuffle:64+lz4");
  w.others = writing_context("store");
  if (!w.records || !w.others) return break_off("no codec for it");
  if (!make_folders(folder) ||
      (w.file = open(w.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0) {
    return break_off(std::strerror(errno));
  }
  std::memcpy(w.head.job, j.cookie, kCookieSize);
  w.head.rank = static_cast<uint32_t>(j.rank);
  w.head.size = static_cast<uint32_t>(j.size);
  w.head.realtime = clock_ns(CLOCK_REALTIME);
  w.head.monotonic = clock_ns(CLOCK_MONOTONIC);
  w.head.check = fnv1a(&w.head, offsetof(FileHead, check));
  if (!write_all(&w.head, sizeof w.head)) return break_off(std::strerror(errno));
  w.offset = sizeof w.head;
  const std::string meta = meta_json();
  write_entry(kMeta, 0, meta.data(), meta.size(), w.records);
}

// ---- clocks: of the first rank of each node against rank 0's ----

struct Tick {
  uint64_t time = 0, more = 0;
};

void answer_clock(int rank) {
  Writer& w = writer();
  for (Tick asked{0, 1}; asked.more;) {
    if (PMPI_Recv(&asked, sizeof asked, MPI_BYTE, rank, 0, w.clock, MPI_STATUS_IGNORE)) return;
    const Tick mine{clock_ns(CLOCK_MONOTONIC), 0};
    if (PMPI_Send(&mine, sizeof mine, MPI_BYTE, rank, 0, w.clock)) return;
  }
}

// The shortest of some round trips: half of it is what the difference may be wrong by.
void ask_clock() {
  constexpr uint32_t kLeast = 4, kMost = 24;
  constexpr uint64_t kLongEnough = 20000000;
  Writer& w = writer();
  ClockEntry entry;
  entry.error = UINT64_MAX;
  const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
  for (Tick ask{0, 1}; ask.more;) {
    Tick theirs;
    const uint64_t before = clock_ns(CLOCK_MONOTONIC);
    ++entry.n_exchanges;
    ask.more =
        entry.n_exchanges < kLeast || (entry.n_exchanges < kMost && before - begin < kLongEnough);
    if (PMPI_Sendrecv(&ask, sizeof ask, MPI_BYTE, 0, 0, &theirs, sizeof theirs, MPI_BYTE, 0, 0,
                      w.clock, MPI_STATUS_IGNORE)) {
      return;
    }
    const uint64_t after = clock_ns(CLOCK_MONOTONIC), half = (after - before) / 2;
    if (half >= entry.error) continue;
    entry.error = half;
    entry.difference = static_cast<int64_t>(theirs.time - (before + half));
    entry.local = before + half - w.head.monotonic;
  }
  std::lock_guard hold(w.lock);
  write_entry(kClock, 0, &entry, sizeof entry, w.others);
}

// Collective over the world.
void compare_clocks() {
  const Job& j = job();
  std::vector<bool> seen(static_cast<size_t>(j.size) + 1);
  for (int rank = 0; rank < j.size; ++rank) {
    const auto node = static_cast<size_t>(j.node[static_cast<size_t>(rank)]);
    if (seen[node]) continue;
    seen[node] = true;
    if (rank == 0) continue;
    if (j.rank == 0) answer_clock(rank);
    if (j.rank == rank) ask_clock();
  }
}

// Numbers in MPI_COMM_WORLD; -1: of another job.
std::vector<int32_t> world_ranks(MPI_Group group) {
  int n = 0;
  PMPI_Group_size(group, &n);
  std::vector<int> here(static_cast<size_t>(n)), there(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) here[static_cast<size_t>(i)] = i;
  MPI_Group world;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, n, here.data(), world, there.data());
  PMPI_Group_free(&world);
  for (int& rank : there) rank = rank == MPI_UNDEFINED ? -1 : rank;
  return there;
}

std::vector<int32_t> describe_comm(const Comm& comm, uint32_t number) {
  MPI_Group local, remote = MPI_GROUP_NULL;
  if (PMPI_Comm_group(comm.handle, &local) != MPI_SUCCESS) return {};
  const std::vector<int32_t> mine = world_ranks(local);
  PMPI_Group_free(&local);
  std::vector<int32_t> others;
  if (comm.inter && PMPI_Comm_remote_group(comm.handle, &remote) == MPI_SUCCESS) {
    others = world_ranks(remote);
    PMPI_Group_free(&remote);
  }
  std::vector<int32_t> all = {static_cast<int32_t>(number), comm.rank,
                              static_cast<int32_t>(mine.size()),
                              static_cast<int32_t>(others.size())};
  all.insert(all.end(), mine.begin(), mine.end());
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace

uint64_t trace_stamp() { return clock_ns(CLOCK_MONOTONIC) - writer().head.monotonic; }

void write_record(const TraceRecord& record) {
  Pen* pen = own_pen();
  std::lock_guard hold(pen->lock);
  append_record(pen, record);
}

uint32_t trace_comm(Comm* comm) {
  const uint32_t known = comm->traced.load(std::memory_order_acquire);
  if (known) return known;
  Writer& w = writer();
  std::lock_guard hold(w.lock);
  if (const uint32_t number = comm->traced.load(std::memory_order_relaxed)) return number;
  const uint32_t number = ++g_n_comms;
  const std::vector<int32_t> about = describe_comm(*comm, number);
  write_entry(kCommunicator, trace_stamp(), about.data(), about.size() * sizeof about[0], w.others);
  comm->traced.store(number, std::memory_order_release);
  return number;
}

bool samples_wanted() { return g_sampling.load(std::memory_order_relaxed); }

namespace {

// Distances between samples vary at random, for programs repeat themselves: of two messages that
// take turns, samples at equal distances are all of one.
uint64_t next_distance(Writer& w) { return w.stride / 2 + w.chance() % w.stride; }

// How many samples of n bytes a message of `size` gives: one in `stride` bytes sent, on average.
uint64_t samples_due(uint64_t size, uint64_t n, uint64_t* stands_for) {
  Writer& w = writer();
  std::lock_guard hold(w.samples_lock);
  w.since += size;
  if (w.since < w.next) return 0;
  const uint64_t due = std::min({1 + (w.since - w.next) / w.stride, size / n, kMostAtOnce});
  *stands_for = w.since / due;
  w.since = 0;
  w.next = next_distance(w);
  return due;
}

// One of every two goes, by chance, until they fit; so samples that stay are as far apart as those
// to come. The last of an odd number stays, unless it alone is too much.
void thin_out() {
  Writer& w = writer();
  while (w.sampled > w.budget) {
    std::vector<Kept> stay;
    w.sampled = 0;
    for (size_t i = 1; i < w.kept.size(); i += 2) {
      Kept& one = w.kept[i - w.chance() / 8 % 2];
      one.about.stands_for = w.kept[i].about.stands_for + w.kept[i - 1].about.stands_for;
      w.sampled += one.size;
      stay.push_back(std::move(one));
    }
    if (w.kept.size() % 2 != 0 && w.kept.size() > 1) {
      w.sampled += w.kept.back().size;
      stay.push_back(std::move(w.kept.back()));
    }
    w.kept = std::move(stay);
    w.stride *= 2;
  }
}

// The elements from `first` on.
void keep_sample(const SampleHead& about, const void* buffer, uint64_t first, uint64_t count,
                 MPI_Datatype type, const Type& known) {
  Writer& w = writer();
  const auto element = static_cast<uint64_t>(known.size);
  Kept sample{about, count * element, nullptr};
  sample.data.reset(new (std::nothrow) Byte[sample.size]);
  if (!sample.data) return;
  if (known.contiguous) {
    std::memcpy(sample.data.get(), static_cast<const Byte*>(buffer) + first * element, sample.size);
  } else if (collect(buffer, static_cast<MPI_Count>(count), type, sample.data.get(), sample.size) !=
             MPI_SUCCESS) {
    return;
  }
  std::lock_guard hold(w.samples_lock);
  w.sampled += sample.size;
  w.kept.push_back(std::move(sample));
  thin_out();
}

// The file's lock is held.
void write_samples() {
  for (const Kept& sample : writer().kept) {
    std::vector<Byte> payload(sizeof sample.about + sample.size);
    std::memcpy(payload.data(), &sample.about, sizeof sample.about);
    std::memcpy(payload.data() + sizeof sample.about, sample.data.get(), sample.size);
    write_entry(kSample, sample.about.at, payload.data(), payload.size(), writer().others);
  }
}

}  // namespace

void take_sample(Call call, const void* buffer, uint64_t count, MPI_Datatype type) {
  Type known;
  if (!buffer || count == 0 || !look_up(type, &known) || known.size <= 0) return;
  const auto size = static_cast<uint64_t>(known.size);
  if (size > kLargestElement || count > UINT64_MAX / size) return;
  const uint64_t n = std::min(count, std::max<uint64_t>(writer().sample_size / size, 1));
  if (on_device(buffer)) known.contiguous = false;
  SampleHead about;
  uint64_t due = samples_due(count * size, n * size, &about.stands_for);
  if (due == 0) return;
  if (!known.contiguous) {  // only from its beginning
    about.stands_for *= due;
    due = 1;
  }
  TraceRecord own;
  own.call = kTracer;
  own.begin = about.at = trace_stamp();
  about.message_size = count * size;
  about.call = static_cast<uint8_t>(call);
  about.dtype = static_cast<uint8_t>(known.dtype);
  for (uint64_t i = 0; i < due; ++i) {
    const uint64_t room = (count - n) / due;
    keep_sample(about, buffer, i * room + room / 2, n, type, known);
  }
  own.end = trace_stamp();
  write_record(own);
}

void start_trace() {
  const Job& j = job();
  Writer& w = writer();
  if (j.trace.empty()) return;
  w.budget = j.trace_sample / static_cast<uint64_t>(j.size);
  w.sample_size = w.stride = std::clamp(w.budget / 64, kLeastSample, kMostSample);
  w.chance.seed(static_cast<uint32_t>(j.rank) + 1);
  w.next = next_distance(w);
  {
    std::lock_guard hold(w.lock);
    open_file(j.trace);
  }
  if (PMPI_Comm_dup(MPI_COMM_WORLD, &w.clock) != MPI_SUCCESS) return;
  PMPI_Comm_set_errhandler(w.clock, MPI_ERRORS_RETURN);
  compare_clocks();
  if (w.broken) return;
  g_sampling.store(w.budget > 0, std::memory_order_relaxed);
  g_tracing.store(true, std::memory_order_relaxed);
}

void end_trace() {
  Writer& w = writer();
  g_tracing.store(false, std::memory_order_relaxed);
  if (w.clock == MPI_COMM_NULL) return;
  compare_clocks();
  PMPI_Comm_free(&w.clock);
  {
    std::lock_guard hold(w.pens_lock);
    for (Pen* pen : w.pens) {
      std::lock_guard hold_pen(pen->lock);
      write_pen(pen);
    }
  }
  std::lock_guard hold(w.lock);
  if (w.broken || w.file < 0) return;
  write_samples();
  const std::vector<IndexEntry> index = w.index;
  Trailer trailer;
  trailer.offset = w.offset;
  trailer.check = seal(w.head, &trailer, offsetof(Trailer, check));
  BlockHead head;
  head.kind = kIndex;
  head.n_entries = static_cast<uint32_t>(index.size());
  head.last = trace_stamp();
  write_block(head, index.data(), index.size() * sizeof index[0], w.others);
  if (w.broken) return;
  if (!write_all(&trailer, sizeof trailer)) return break_off(std::strerror(errno));
  w.offset += sizeof trailer;
  if (close(w.file) != 0) w.problem = std::strerror(errno);
  w.file = -1;
}

std::string trace_json() {
  const Writer& w = writer();
  if (w.path.empty()) return "";
  std::string json = "{\"file\": " + json_string(w.path);
  json += ", \"problem\": " + json_string(w.problem);
  append(&json, ", \"records\": %llu, \"bytes\": %llu, \"samples\": %llu, \"sample_bytes\": %llu}",
         static_cast<unsigned long long>(w.n_records), static_cast<unsigned long long>(w.offset),
         static_cast<unsigned long long>(w.kept.size()),
         static_cast<unsigned long long>(w.sampled));
  return json;
}

}  // namespace wirepress
