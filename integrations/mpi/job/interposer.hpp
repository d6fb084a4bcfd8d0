// SPDX-License-Identifier: Apache-2.0
// What the parts of the MPI interposer share. Read README.md first.
//
// A compressed message is the job's cookie (16 random bytes) and one frame, always shorter than the
// raw message, under the same envelope. Half of the cookie is the run's: see Job::cookie.
// Everything here runs inside other people's programs: no function throws, prints or ends the
// process, and no lock is held across a blocking MPI call.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace wirepress {

using Byte = unsigned char;

// ---- the job (handshake.cpp) ----

enum Mode : int {
  kInert,  // every call goes straight through
  kOn,
};
// Written by MPI_Init and MPI_Finalize only.
extern std::atomic<int> g_mode;

inline constexpr size_t kCookieSize = 16, kJobSize = 8;
// The shortest frame: header 12, block word 4, payload 1. What is shorter cannot be compressed.
inline constexpr size_t kMinWire = kCookieSize + 17;
inline constexpr size_t kUsualThreshold = 64 << 10, kUsualBlockThreshold = 16 << 10;
inline constexpr size_t kInFlight = 16;  // chunks of a collective on their way at a time, each way

// Tags on the private communicator, by use; each use counts through kTagMask + 1 of them.
inline constexpr int kTagDeliver = 0, kTagMessage = 0x2000, kTagRequest = 0x4000;
inline constexpr int kTagMask = 0x1FFF;

// What mpi_error allows results to differ by.
struct Bound {
  enum Kind : uint8_t { kNone, kRelative, kAbsolute };
  Kind kind = kNone;
  double value = 0;
};
Bound parse_bound(const std::string& text);  // which the library took for mpi_error

struct Job {
  int rank = 0, size = 1;
  bool multiple = false;  // MPI_THREAD_MULTIPLE
  // The job's own bytes, then those that all jobs of one `wirepress run` share: a frame that has
  // these and not the others is another job's.
  Byte cookie[kCookieSize] = {};
  std::vector<int> node;  // of each world rank; with mpi_same_host each rank is a node of its own
  MPI_Comm self = MPI_COMM_NULL;    // private: messages of a rank to itself
  MPI_Comm pieces = MPI_COMM_NULL;  // private: what follows the first piece of a message
  std::string host, state = "off", reason;
  std::string rendezvous;  // the address of it that answered

  // options
  std::string codec = "auto", report_file, link, error;
  bool compress = true;  // false: only traces
  std::string trace;     // the folder of traces, "": none
  uint64_t trace_sample = 0;
  Bound bound;
  size_t pieces_from = 1 << 20;
  // Least sizes of messages, and of blocks of Alltoall, Gather and Scatter; with `by_link` that of
  // point-to-point messages is lower where the link is slow.
  size_t threshold = kUsualThreshold, block_threshold = kUsualBlockThreshold;
  bool by_link = true;
  size_t chunk = 60 << 10, partitions = 4;
  bool deterministic = false;
  bool nonblocking = false;
  bool collectives = true, same_host = false, checksum = false, trust = false, contest = true;
};
// Never destroyed: programs call MPI from their own exit handlers.
Job& job();

bool wants_threads();  // before PMPI_Init: it is to be asked for MPI_THREAD_MULTIPLE
void activate();       // after PMPI_Init

// library.cpp: the MPI library below.
void require_abi();           // before PMPI_Init: ends the process if it is of another ABI
std::string unfit_library();  // why this module is not for its version, or ""
bool is_open_mpi();
void deactivate();  // before PMPI_Finalize
// After it: what takes this rank a while must not make the others wait inside MPI.
void leave_reports();

// What names the job among all that run at the same time, alike on all its ranks (identity.cpp).
// `process` is this rank's own random word. "": its process manager does not say.
std::string job_name(const std::string& process);
std::string one_word(std::string text);          // without blanks, not empty
std::string node_name(const std::string& host);  // a word that no other host has
std::string random_word();                 // 16 hexadecimal digits; "": there are no random numbers
std::string hexadecimal(uint64_t number);  // 16 digits

// One line on stderr, the first time only.
void complain(const char* sentence);

// ---- counting (report.cpp) ----

enum Call : uint8_t {
  kSend,
  kSsend,
  kIsend,
  kIssend,
  kRsend,
  kBsend,
  kIrsend,
  kIbsend,
  kSendInit,
  kSsendInit,
  kBsendInit,
  kRsendInit,
  kRecv,
  kIrecv,
  kSendrecv,
  kSendrecvReplace,
  kIsendrecv,
  kMrecv,
  kImrecv,
  kRecvInit,
  kWait,
  kWaitall,
  kWaitany,
  kWaitsome,
  kBcast,
  kReduce,
  kAllreduce,
  kReduceScatter,
  kReduceScatterBlock,
  kAllgather,
  kAllgatherv,
  kGather,
  kGatherv,
  kScatter,
  kScatterv,
  kAlltoall,
  kAlltoallv,
  kAlltoallw,
  // left to MPI
  kScan,
  kExscan,
  kNeighborAllgather,
  kNeighborAllgatherv,
  kNeighborAlltoall,
  kNeighborAlltoallv,
  kNeighborAlltoallw,
  kIneighborAllgather,
  kIneighborAllgatherv,
  kIneighborAlltoall,
  kIneighborAlltoallv,
  kIneighborAlltoallw,
  kIbcast,
  kIgather,
  kIgatherv,
  kIscatter,
  kIscatterv,
  kIallgather,
  kIallgatherv,
  kIalltoall,
  kIalltoallv,
  kIalltoallw,
  kIreduce,
  kIallreduce,
  kIreduceScatter,
  kIreduceScatterBlock,
  kIscan,
  kIexscan,
  kNeighborAllgatherInit,
  kNeighborAllgathervInit,
  kNeighborAlltoallInit,
  kNeighborAlltoallvInit,
  kNeighborAlltoallwInit,
  kBcastInit,
  kGatherInit,
  kGathervInit,
  kScatterInit,
  kScattervInit,
  kAllgatherInit,
  kAllgathervInit,
  kAlltoallInit,
  kAlltoallvInit,
  kAlltoallwInit,
  kReduceInit,
  kAllreduceInit,
  kReduceScatterInit,
  kReduceScatterBlockInit,
  kScanInit,
  kExscanInit,
  // only in traces
  kTest,
  kTestall,
  kTestany,
  kTestsome,
  kRequestGetStatus,
  kRequestFree,
  kCancel,
  kStart,
  kProbe,
  kIprobe,
  kMprobe,
  kImprobe,
  kIsendrecvReplace,
  kBarrier,
  kIbarrier,
  kCompletion,  // of a request, by a call that completed several
  kTracer,      // writing the trace
  kExchange,    // what ranks told each other for the interposer's sake
  kCallCount
};

// Why a message went raw.
enum Bypass : uint8_t {
  kSmall,
  kSameHost,
  kNoncontiguous,
  kIncompressible,
  kNotFaster,
  kNotSmaller,
  kNoPeer,
  kUnsupported,
  kNoCodec,
  kNonblocking,
  kLearning,
  kNotTried,
  kBypassCount
};

// Bytes are those to and from other nodes: what stays on a host is counted as a message only.
struct CallStats {
  uint64_t messages = 0, raw_size = 0, wire_size = 0, framed = 0;
  uint64_t modelled_size = 0;  // of wire_size: of calls that MPI ran (across.hpp)
  uint64_t received = 0, received_raw_size = 0, received_wire_size = 0, received_framed = 0;
  double compress_seconds = 0, wait_seconds = 0, expand_seconds = 0;
  std::array<uint64_t, kBypassCount> bypass{};
};

struct Events {
  uint64_t stashed = 0, truncated = 0, corrupt = 0, no_memory = 0, orphans = 0;
  uint64_t in_pieces = 0, left = 0;  // messages sent in pieces; those whose receiver was elsewhere
};

double now();  // seconds, monotonic

inline uint64_t fnv1a(const void* data, size_t size) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const Byte*>(data)[i]) * 0x100000001B3u;
  }
  return hash;
}

// The report of this rank as JSON.
std::string rank_report();
// Joins rank reports to the job's report and writes it, whole or not at all.
bool write_report(const std::string& file, const std::vector<std::string>& ranks);
std::string json_string(const std::string& text);
[[gnu::format(printf, 2, 3)]] void append(std::string* text, const char* format, ...);
const char* call_name(Call call);
const char* dtype_name(wpr_dtype dtype);

// ---- memory ----

// A buffer from a pool, 64-byte aligned; data() is nullptr where there was no memory.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t size) { reserve(size); }
  Buffer(Buffer&& other) noexcept : data_(other.data_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.capacity_ = 0;
  }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() { release(); }
  // At least `size` bytes; what was in it is lost when it grows. `needed`: may take one of the
  // spares, which hold a chunk, so that a collective goes on where memory has run out.
  bool reserve(size_t size, bool needed = false);
  void release();
  Byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  Byte* data_ = nullptr;
  size_t capacity_ = 0;
};

// Sets aside what one more collective at a time may need; spares cost address space until they are
// used. False: there is no memory for them.
bool prepare_spares();
void drop_spares();  // of a communicator that ends

// ---- data types (types.cpp) ----

enum class Arithmetic : uint8_t { kNone, kInteger, kFloat, kComplex, kLogical, kByte };

struct Type {
  bool contiguous = false;  // count elements are count * size bytes at the buffer's address
  bool named = false;
  wpr_dtype dtype = WPR_BYTES;
  uint8_t element = 1;  // bytes of an element of dtype
  Arithmetic arithmetic = Arithmetic::kNone;
  MPI_Count size = 0;  // packed bytes of one
};

void learn_types();
// False: not a type whose messages can be looked into; MPI itself is to judge it.
bool look_up(MPI_Datatype type, Type* result);
// Puts packed bytes where (buffer, count, type) says, as receiving them would.
int deliver(const void* packed, size_t size, void* buffer, MPI_Count count, MPI_Datatype type);
// The packed bytes of what sending (buffer, count, type) would send.
int collect(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed, size_t size);

// From one description of bytes to another, as a message to oneself would.
int copy(const void* from, MPI_Count count, MPI_Datatype type, void* to, MPI_Count to_count,
         MPI_Datatype to_type);

// ---- communicators (comms.cpp) ----

struct Stashed;
struct Shadow;
struct Queue;
struct Contest;

struct Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  std::atomic<int> references{1};
  std::atomic<bool> alive{true};  // false: handle was freed
  bool inter = false;
  bool any_remote = false;      // some peer may send or understand compressed messages
  bool all_world = false;       // every peer is in this job
  int size = 0;                 // number of peers: of the remote group of an intercommunicator
  int rank = 0;                 // mine, in the local group
  std::vector<uint8_t> remote;  // by peer rank
  std::vector<int> node;        // by peer rank, -1: not of this job
  std::vector<int> world;       // by peer rank: its number in MPI_COMM_WORLD
  int other_nodes = 0;          // that peers are on
  int node_members = 0;         // peers on my node, me included
  bool first_of_node = false;   // of the local group
  // Neighbours that this rank sends to, once a neighbourhood collective was counted.
  bool destinations_known = false;
  std::vector<int> destinations;

  // Messages that a probe had to take from MPI, in order of arrival.
  std::atomic<int> n_stashed{0};
  std::mutex stash_lock;
  std::deque<Stashed*> stash;
  // Shared: looks in the stash and posts a receive; exclusive: moves messages from MPI to the
  // stash. Taken only where threads call MPI at the same time.
  std::shared_mutex posting;

  int collectives = -1;  // -1: not looked at yet; 0: left to MPI; 1: compressed
  Shadow* shadow = nullptr;
  Queue* queue = nullptr;           // of non-blocking collectives
  std::atomic<uint32_t> traced{0};  // its number in the trace
  int early = 0;                    // collectives that came before it was worth looking at
  std::vector<Contest*> contests;

  bool may_send_frames(int source) const {
    if (source == MPI_ANY_SOURCE) return any_remote;
    return source >= 0 && source < size && remote[static_cast<size_t>(source)];
  }
  bool takes_frames(int dest) const {
    return dest >= 0 && dest < size && remote[static_cast<size_t>(dest)];
  }
};

bool prepare_comms();
// nullptr: not a communicator; MPI itself is to say so. Valid as long as the caller may use `comm`.
Comm* find_comm_slow(MPI_Comm comm);
extern std::atomic<uint64_t> g_comm_epoch;  // advances when a communicator is freed
void retain(Comm* comm);
void release(Comm* comm);
// Before the communicator itself is freed; collective as that is.
void forget_comm(MPI_Comm comm);
// Calls the error handler of the communicator, or of the world's where it is gone.
int raise(Comm* comm, int error);

// ---- sessions (sessions.cpp) ----

#ifdef WPR_MPI_SESSIONS
bool comes_from_session(MPI_Comm comm);
// After a function made a communicator of `parent`, or of a session; the first returns `error`.
int inherit_session(int error, MPI_Comm parent, MPI_Comm* made);
int mark_session(MPI_Comm* made);
void begin_session();  // before MPI_Session_init
void end_session();    // after MPI_Session_finalize
#else
inline bool comes_from_session(MPI_Comm) { return false; }
#endif

// The parts of a communicator that compressed collectives talk through.
struct Shadow {
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow();
  MPI_Comm all = MPI_COMM_NULL;   // all ranks, in the user's order
  MPI_Comm node = MPI_COMM_NULL;  // my node's ranks
  // The ranks of all nodes that have my number in their node, by node: the leaders' lane is that of
  // number 0. Null where I do not lead and nodes differ in size.
  MPI_Comm lane = MPI_COMM_NULL;
  bool even = false;             // all nodes have as many ranks
  int n_nodes = 0, my_node = 0;  // nodes are numbered by their first rank
  int node_rank = 0, node_size = 0;
  bool ordered = false;                    // ranks of a node follow each other, node by node
  std::vector<int> node_of, rank_in_node;  // by rank of the communicator
  std::vector<int> members;                // ranks, node by node
  std::vector<int> first;                  // index in members where each node begins; n_nodes + 1
  unsigned n_calls = 0;                    // of those made of messages between pairs
  bool provided = false;                   // has spares of its own
  Buffer room;                             // for whole messages of up to kRoom bytes
  Buffer gathered;                         // what ordered_reduce() collects, if it is ever needed
};
inline constexpr size_t kRoom = size_t{16} << 20;
// The bytes of each rank that ordered_reduce() collects at a time, about.
inline size_t gathered_piece(const Shadow& shadow) {
  return std::min(size_t{1} << 20, kRoom / static_cast<size_t>(shadow.node_size));
}
// nullptr: collectives on this communicator are left to MPI (alike on every member).
Shadow* find_shadow(Comm* comm);

// ---- who runs a collective (contest.cpp) ----

// What was found out about calls that are alike, for the report.
struct ContestResult {
  Call call = kBcast;
  wpr_dtype dtype = WPR_BYTES;
  int size_class = 0;  // of the data, as the logarithm
  int ranks = 0;
  bool own_wins = false;
  uint64_t decisions = 0, own_calls = 0, plain_calls = 0;
  double plain_seconds = 0, own_seconds = 0;  // of one call, at the last trial
};
std::vector<ContestResult> contest_results();

struct Turn {
  bool own = false, trial = false;
  double start = 0, sampling_before = 0;
};
// All members name the same call, type (of a reduction, else WPR_BYTES) and size.
Contest* find_contest(Comm* comm, Call call, wpr_dtype dtype, size_t size);
Turn begin_turn(Contest* contest, Shadow* shadow);
void end_turn(Contest* contest, Shadow* shadow, const Turn& turn);
void free_contests(Comm* comm);

// ---- non-blocking collectives (nonblocking.cpp) ----

// Collective over the world: all ranks have threads for them, or none uses them.
void prepare_queues();
// Runs what is in the queue, and ends its thread. Collective, as freeing a communicator is.
void end_queue(Comm* comm);
void end_queues();

// ---- choosing a codec (auto.cpp) ----

inline constexpr int kRaw = -1;          // it does not compress
inline constexpr int kRawFaster = -2;    // it does, but sending it raw takes less time
inline constexpr int kUnknownLink = -4;  // the link could not be measured
inline constexpr int kUntaken = -3;      // mpi_codec has no way to code this type without loss
inline constexpr int kUntried = -5;      // not all candidates were tried yet, and none that was won
inline constexpr size_t kMaxCandidates = 64;
Bypass bypass_of(int choice);  // of one of the above

// Turns mpi_codec and mpi_link into candidates. nullptr, or why that is not possible.
const char* prepare_codecs(wpr_ctx* ctx);
// Once the nodes are known: how often a value is coded may depend on their number.
void prepare_bounded();
// Recipes that keep the bound; `codec` is mpi_codec. A value is coded n_codings times.
std::vector<std::string> bounded_recipes(const std::string& codec, const Bound& bound,
                                         wpr_dtype dtype, int n_codings, int n_nodes);
bool is_lossy(int candidate);
void start_choosing();  // when the nodes are known
// What messages of this call and element type can be compressed with; see candidate_recipe.
const std::vector<int>& candidates_for(Call call, wpr_dtype dtype);
const char* candidate_recipe(size_t i);
const char* candidate_name(int candidate);  // the recipe, and what it takes bytes for
// What `size` bytes of the type are given to the codec as: elements of a type, how many; 0: they
// are not a whole number of them.
struct Coded {
  wpr_dtype dtype;
  uint64_t count;
};
Coded coded_as(int candidate, const Type& type, size_t size);
size_t n_candidates();
// Whether the candidate may be given data of this type: not all lose nothing of every type.
bool suits(int candidate, wpr_dtype dtype);

struct Site;  // messages that are alike: caller, call, element type, size class, node they go to
Site* find_site(Call call, wpr_dtype dtype, size_t size, int node);
// The candidate for this message; negative: send it raw. `overlapped`: codec and wire work at the
// same time.
int choose(Site* site, const Byte* data, size_t size, const Type& type, bool overlapped);
// What became of it: `wire_size` 0: it did not shrink. `seconds` in the codec.
void learn_outcome(Site* site, int candidate, size_t size, size_t wire_size, double seconds);
std::string sites_json();  // for the report: the sites that moved most, largest first

// Where the program called MPI; set by the exported functions.
extern constinit thread_local const void* t_caller;
#define WPR_NOTE_CALLER t_caller = __builtin_return_address(0)

// ---- links (link.cpp) ----

// Of a site, in the place of a node: a node that is not known; the slowest link of a collective
// that all ranks of a node move data of, or one of them.
inline constexpr int kAnyLink = -1, kCollectiveLink = -2, kLeadersLink = -3;

// Collective over the world. fixed_rate: bytes a second of every link; 0: they are measured.
void prepare_links(double fixed_rate);
// Bytes a second that a rank may expect to another node while all ranks of its own send; 0: not
// known. `node`: or one of the above.
double link_rate(int node);

// ---- one thread's own ----

struct Thread {
  std::array<wpr_ctx*, kMaxCandidates> ctx{};  // by candidate, made when it is first used
  wpr_ctx* decoder = nullptr;
  Buffer frame;   // outgoing
  Buffer wire;    // incoming, moved out of the way of what it expands to
  Buffer packed;  // outgoing, without the gaps of its type
  Buffer sample;
  std::array<CallStats, kCallCount> calls{};
  Events events{};
  double codec_seconds = 0;     // of the last make_wire ...
  size_t codec_size = 1;        // ... and its raw bytes
  double sampling_seconds = 0;  // that candidates were tried for
  bool look_anew = false;       // the next message that auto chooses for is looked at
  MPI_Comm cached = MPI_COMM_NULL;
  Comm* cached_comm = nullptr;
  uint64_t cached_epoch = UINT64_MAX;
};
extern constinit thread_local Thread* t_thread;
Thread* make_thread();  // never nullptr: a process that has no memory for it is left to MPI before
inline Thread& self_thread() { return *(t_thread ? t_thread : make_thread()); }
inline CallStats& stats(Call call) { return self_thread().calls[call]; }
wpr_ctx* context(Thread& thread, int candidate);  // nullptr: no memory

inline Comm* find_comm(MPI_Comm comm) {
  Thread& thread = self_thread();
  if (thread.cached == comm &&
      thread.cached_epoch == g_comm_epoch.load(std::memory_order_acquire)) {
    return thread.cached_comm;
  }
  return find_comm_slow(comm);
}

// ---- frames (wire.cpp) ----

// Cookie and frame of `size` raw bytes into dst; 0: it would not be shorter than raw by enough.
size_t make_wire(Call call, int candidate, const Byte* src, size_t size, const Type& type,
                 Byte* dst, size_t capacity);
inline bool is_own(const Byte* wire) { return std::memcmp(wire, job().cookie, kJobSize) == 0; }
// Frames and messages in pieces of another job: never handed out as data. expand() refuses them.
bool is_foreign(const Byte* wire);
inline bool is_framed(const Byte* wire, size_t size) {
  return size >= kMinWire &&
         std::memcmp(wire + kJobSize, job().cookie + kJobSize, kCookieSize - kJobSize) == 0 &&
         (is_own(wire) || is_foreign(wire));
}
// The raw size a framed message claims; MPI_ERR_OTHER: not a frame after all.
int framed_size(const Byte* wire, size_t size, uint64_t* raw_size);
// Expands a frame without its cookie. MPI error class.
int expand_frame(Call call, const Byte* frame, size_t size, Byte* dst, size_t capacity,
                 size_t* written);
// Expands a framed message. MPI error class.
int expand(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity, size_t* written);

// ---- sending (outgoing.cpp) ----

// What goes to MPI for one message: the user's data, or bytes in their place.
struct Outgoing {
  bool remote = false;    // it leaves the node
  bool framed = false;    // the bytes are compressed
  bool replaced = false;  // bytes go: the first `size` of the buffer given to prepare()
  // They are the first piece only. The rest is sent by Pieces, from `data`.
  bool in_pieces = false;
  const Byte* data = nullptr;
  Type type;
  int candidate = 0, world_rank = 0;
  int node = -1;  // that it goes to
  size_t raw_size = 0;
  size_t size = 0;  // that MPI sends
};

// Decides, packs, compresses into `bytes`, and counts.
Outgoing prepare(Call call, Comm* comm, const void* buffer, MPI_Count count, MPI_Datatype datatype,
                 int dest, Buffer* bytes, bool blocking = false);
// The request owns the bytes until MPI sent them.
void keep_bytes(MPI_Request request, Buffer bytes);
// A thread's own buffers do not keep what one huge message needed.
inline void trim(Buffer* buffer) {
  if (buffer->capacity() > (size_t{256} << 20)) buffer->release();
}

// ---- messages in pieces (pieces.cpp) ----

void prepare_pieces();  // collective, as is its end
void end_pieces();

struct Head {  // of the first piece, after the cookie
  uint32_t tag = 0;
  int rank = 0;  // of the sender, in MPI_COMM_WORLD
  uint64_t raw_size = 0, piece_size = 0;
};
bool is_in_pieces(const Byte* wire, size_t size);  // of a framed message
bool read_head(const Byte* wire, size_t size, Head* head);

bool may_go_in_pieces(const Comm* comm, int dest, size_t size);
// The message that has the user's envelope; 0: it would not shrink.
size_t make_first_piece(Call call, int candidate, const Byte* data, size_t size, const Type& type,
                        Buffer* bytes);

// The sender's side of one message.
class Pieces {
 public:
  Pieces(Call call, int candidate, const Byte* data, const Type& type, int rank);
  // Hands all pieces to MPI; `first` is what make_first_piece made. The user's data is not needed
  // afterwards.
  int launch(Buffer* first, size_t size, int dest, int tag, MPI_Comm comm);
  // Waits until they are sent; not for ever, if the receiver does other things.
  int finish();

 private:
  void keep(MPI_Request request, Buffer bytes, size_t size);
  bool take_completed();
  bool out_of_patience();
  void leave();

  Call call_;
  int candidate_;
  const Byte* data_;
  Type type_;
  int rank_;
  std::vector<MPI_Request> requests_;
  std::vector<Buffer> buffers_;
  std::vector<size_t> sizes_;
  std::vector<int> done_;
  size_t n_left_ = 0, on_their_way_ = 0, largest_ = 0;
  double start_ = 0, progress_ = 0, codec_ = 0;
  bool matched_ = false, late_ = false, patient_ = false;
  int error_ = MPI_SUCCESS;
};

// The receiver's side: what expand() does, and takes the other pieces from MPI in any case.
int expand_pieces(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity,
                  size_t* raw_size);

// ---- receiving (incoming.cpp) ----

struct Stashed;

// One receive that a compressed message may come into. MPI receives bytes: into the user's own
// buffer where that is contiguous, else into `bounce`.
struct Incoming {
  Call call = kRecv;
  Comm* comm = nullptr;
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owns_type = false;
  bool contiguous = true;
  bool bounced = false;
  size_t capacity = 0;  // packed bytes
  Buffer bounce;

  Byte* landing() const { return bounced ? bounce.data() : static_cast<Byte*>(buffer); }
};

// False: leave the call to MPI.
bool describe(Call call, Comm* comm, void* buffer, MPI_Count count, MPI_Datatype type,
              Incoming* incoming);
bool use_bounce(Incoming* incoming);
// Keeps a type alive beyond the call.
void keep_type(MPI_Datatype* type, bool* owns);
void keep_type(Incoming* incoming);
void drop(Incoming* incoming);
// After MPI received: expands or unpacks, and corrects the status. Returns an error class, not
// raised yet.
int finish(Incoming* incoming, MPI_Status* status);
// The same from a message that was taken before; frees it.
int finish_from_stash(Incoming* incoming, Stashed* stashed, MPI_Status* status);
size_t received_size(const MPI_Status& status);
void set_size(MPI_Status* status, size_t size);

// Room for `size` bytes as MPI wants it: a count of MPI_BYTE, or one of a larger type.
class ByteRoom {
 public:
  explicit ByteRoom(size_t size);
  ~ByteRoom();
  ByteRoom(const ByteRoom&) = delete;
  ByteRoom& operator=(const ByteRoom&) = delete;
  int count;
  MPI_Datatype type;
};

// ---- requests (requests.cpp) ----

// A persistent send. The user holds MPI's own inactive request; what a start made smaller goes by
// `inner`, and whatever completes the user's request completes that.
struct Resend {
  Call call = kSendInit;
  const void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool owns_type = false;
  int (*start)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*) = nullptr;
  MPI_Request inner = MPI_REQUEST_NULL;
};

// A request that needs work when it completes.
struct Record {
  Record* next = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
  bool receives = false;
  bool persistent = false;
  bool active = true;       // persistent: started
  bool completed = false;   // persistent: started and complete; MPI does not know, or not any more
  bool prepared = false;    // the work is done: status and error below are the result
  bool busy = false;        // in the map, and a thread does its work: not to be taken
  int source = 0, tag = 0;  // persistent: to look in the stash; a send's destination
  int error = MPI_SUCCESS;
  MPI_Status status{};
  Incoming incoming;
  Buffer frame;  // outgoing, kept until it is sent
  std::unique_ptr<Resend> resend;

  bool sends_inner() const { return resend && resend->inner != MPI_REQUEST_NULL; }
};

extern std::atomic<size_t> g_n_records;
void put(Record* record);           // by record->request
Record* take(MPI_Request request);  // removes; nullptr: not ours
void free_record(Record* record);
// A request that is complete already, for a message that MPI does not have any more.
int make_complete_request(MPI_Request* request);
// The work of a completed request; returns an error class.
int settle(Record* record, MPI_Status* status);
// A receive that MPI knows as `request`; its record is kept until it completes.
void track(MPI_Request request, Record* record);
// Fills in the result of a receive from the stash, before its request completes.
void prepare_record(Record* record, Stashed* stashed);
// Does the work of receives whose messages are here, so that those who send them in pieces need not
// wait for the user to complete them. False: there was none.
bool advance_receives();
// The work of a receive that MPI completed, before the user completes it. False: it did not yet.
bool settle_early(Record* record);
// Between two looks at what MPI has: where threads share it. Else MPI itself yields, or does not.
inline void give_way() {
  if (job().multiple) sched_yield();
}
// MPI_Wait, which looks after other receives meanwhile.
int wait_for(MPI_Request* request, MPI_Status* status);
// Receives in the map that may bring a message in pieces.
extern std::atomic<int> g_n_large;
bool is_large(const Record& record);
bool receives_orphans();
void adopt_orphan(Record* record);  // MPI_Request_free on an active request
void drain_orphans(bool wait);
extern std::atomic<int> g_n_orphans;

// Is this call to go straight to MPI? If not, it is also an occasion to look after orphans.
inline bool inert() {
  if (g_mode.load(std::memory_order_acquire) == kInert) return true;
  if (g_n_orphans.load(std::memory_order_relaxed) > 0) drain_orphans(false);
  return false;
}

// The communicator of a receive or probe that may meet a compressed message; nullptr: MPI is to do
// it alone.
inline Comm* aware_comm(MPI_Comm handle, int source) {
  Comm* comm = inert() ? nullptr : find_comm(handle);
  return comm && comm->may_send_frames(source) ? comm : nullptr;
}

// A status as MPI hands it to the user: MPI_ERROR is not its business outside arrays.
inline void give_status(const MPI_Status& from, MPI_Status* to) {
  if (to == MPI_STATUS_IGNORE) return;
  const int kept = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = kept;
}

// ---- the stash (stash.cpp) ----

// A message taken from MPI by a probe.
struct Stashed {
  int source = 0, tag = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};  // as the user is to see it
  Buffer data;
  size_t size = 0;
  int error = MPI_SUCCESS;
  std::atomic<bool> ready{false};
};

Stashed* take_stashed(Comm* comm, int source, int tag);  // nullptr: none
bool peek_stashed(Comm* comm, int source, int tag, MPI_Status* status);
// A probe saw `status`: is its size not to be believed without looking?
bool needs_look(const Comm* comm, const MPI_Status& status);
// Moves the messages of that source up to the first one with that tag from MPI to the stash.
int gather_stash(Comm* comm, int source, int tag);
// Receives a matched message whole. Sets everything but `ready`.
void fetch(Stashed* stashed);
// A message handle for it, and back. nullptr: a handle of MPI's own.
int make_message(Stashed* stashed, MPI_Message* message, Comm* comm);
Stashed* take_message(MPI_Message* message, Comm** comm);
extern std::atomic<int> g_n_messages;

class PostingGuard {  // shared side of Comm::posting
 public:
  explicit PostingGuard(Comm* comm) : lock_(job().multiple ? &comm->posting : nullptr) {
    if (lock_) lock_->lock_shared();
  }
  ~PostingGuard() { unlock(); }
  void unlock() {
    if (lock_) lock_->unlock_shared();
    lock_ = nullptr;
  }

 private:
  std::shared_mutex* lock_;
};

// Handles are numbers in some libraries and pointers in others.
inline uint64_t handle_bits(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
inline uint64_t handle_bits(int handle) { return static_cast<uint32_t>(handle); }

}  // namespace wirepress
