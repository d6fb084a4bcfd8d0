// SPDX-License-Identifier: Apache-2.0
// Large blocking sends, in pieces: one is compressed while those before it are on their way
// (layout: spec/mpi-wire.md).
//
// The first message has the user's envelope and is synchronous: its completion says that it was
// matched, so a late receiver holds up the sender as it would with MPI alone. The rest goes through
// a communicator of its own, and the receiver takes it wherever it completes the receive.
//
// A receiver that has matched the message but does something else in MPI first (a barrier, say)
// does not take pieces then, though with MPI alone the send would end. So the sender keeps nothing
// but copies of its own on their way, and after a while returns and leaves them to MPI; then it
// sends whole messages to that rank for a time. While it waits it takes what has come in for its
// own receives: two ranks that send to each other before they wait for each other are not late.
#include "messages/pieces.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "choosing/links.hpp"
#include "job/identity.hpp"
#include "job/job.hpp"
#include "messages/devices.hpp"
#include "messages/requests.hpp"
#include "messages/thread.hpp"

namespace wirepress {
namespace {

constexpr Byte kMagic[4] = {'W', 'P', 'P', 1};
constexpr size_t kHeadSize = 40, kFirst = kCookieSize + kHeadSize;
constexpr size_t kLeastPiece = 128 << 10, kPieces = 8, kMostPieces = 64;
// Compressed bytes that may be on their way before the sender waits for some to be there.
constexpr size_t kWindow = size_t{128} << 20;
constexpr double kPatience = 0.1;  // seconds, besides what the link needs
// Seconds more, where what is not sent is lost: the receiver may compute so long, and then take it.
constexpr double kStarved = 60, kStarvedThere = 5;
constexpr int kAhead = 8;  // receives that are posted at a time

// How often a rank let us wait in vain.
struct Peer {
  std::atomic<int> left{0}, gap{0};
};
Peer* g_peers = nullptr;
std::atomic<uint32_t> g_next_tag{0};
uint32_t g_n_tags = 0;

void write_number(Byte* to, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) to[i] = static_cast<Byte>(value >> (8 * i));
}

uint64_t read_number(const Byte* from, int size) {
  uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= uint64_t{from[i]} << (8 * i);
  return value;
}

uint64_t check_of(const Byte* head) { return fnv1a(head, kHeadSize - 8); }

void write_head(Byte* at, const Head& head) {
  std::memcpy(at, kMagic, sizeof kMagic);
  write_number(at + 4, head.tag, 4);
  write_number(at + 8, static_cast<uint64_t>(head.rank), 4);
  write_number(at + 12, 0, 4);
  write_number(at + 16, head.raw_size, 8);
  write_number(at + 24, head.piece_size, 8);
  write_number(at + 32, check_of(at), 8);
}

// Of a message of `size` bytes: some eight pieces, not so small that they cost more than they save
// and not larger than a collective's.
size_t piece_size_of(size_t size) {
  const size_t piece = std::min(std::max(kLeastPiece, size / kPieces), job().chunk);
  return (std::max(piece, size / kMostPieces) + 63) / 64 * 64;
}

size_t n_pieces(const Head& head) {
  return static_cast<size_t>((head.raw_size + head.piece_size - 1) / head.piece_size);
}

size_t size_of_piece(const Head& head, size_t i) {
  const uint64_t begin = i * head.piece_size;
  return static_cast<size_t>(std::min(head.piece_size, head.raw_size - begin));
}

double codec_seconds() {
  double seconds = 0;
  for (const CallStats& call : self_thread().calls) {
    seconds += call.compress_seconds + call.expand_seconds;
  }
  return seconds;
}

void disappointed(int rank) {
  Peer& peer = g_peers[rank];
  const int gap = std::min(1 << 16, std::max(64, 4 * peer.gap.load(std::memory_order_relaxed)));
  peer.gap.store(gap, std::memory_order_relaxed);
  peer.left.store(gap, std::memory_order_relaxed);
}

}  // namespace

// ---- the job ----

void prepare_pieces() {
  Job& j = job();
  if (PMPI_Comm_dup(MPI_COMM_WORLD, &j.pieces) != MPI_SUCCESS) return;
  PMPI_Comm_set_errhandler(j.pieces, MPI_ERRORS_RETURN);
  int* most = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  // Tags are used again after so many messages that none of them can still be on its way.
  if (found && *most >= (1 << 20)) g_n_tags = static_cast<uint32_t>(*most);
  g_peers = new Peer[static_cast<size_t>(j.size)];
}

namespace {

// Pieces that nobody wants any more: their message was damaged, or did not fit.
void discard_pieces() {
  for (;;) {
    int flag = 0;
    MPI_Message message;
    MPI_Status status{};
    const int error =
        PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, job().pieces, &flag, &message, &status);
    if (error != MPI_SUCCESS || !flag) return;
    const size_t size = received_size(status);
    Buffer buffer;
    const ByteRoom room(buffer.reserve(size + 1) ? size : 0);
    PMPI_Mrecv(buffer.data(), room.count, room.type, &message, MPI_STATUS_IGNORE);
  }
}

}  // namespace

void end_pieces() {
  if (job().pieces == MPI_COMM_NULL) return;
  // Until nobody has any on their way. A rank that waits for others, which may compute still,
  // leaves them the cores, as MPI_Finalize does.
  constexpr double kBusy = 1e-3;
  constexpr useconds_t kNap = 200;  // microseconds
  const double start = now(), give_up = start + 20.0;
  MPI_Request everybody = MPI_REQUEST_NULL;
  for (int flag = 0; !flag;) {
    drain_orphans(false);
    const bool late = now() > give_up;
    if (late || !receives_orphans()) discard_pieces();
    if (everybody != MPI_REQUEST_NULL) {
      if (PMPI_Test(&everybody, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    } else if (late || g_n_orphans.load(std::memory_order_relaxed) == 0) {
      if (PMPI_Ibarrier(job().pieces, &everybody) != MPI_SUCCESS) break;
    }
    if (now() < start + kBusy) {
      sched_yield();
    } else {
      usleep(kNap);
    }
  }
  PMPI_Comm_free(&job().pieces);
}

// ---- sending ----

bool may_go_in_pieces(const Comm* comm, int dest, size_t size) {
  const size_t least = job().pieces_from;
  if (least == 0 || size < std::max<size_t>(least, 2 * kFirst) || g_n_tags == 0) return false;
  if (piece_size_of(size) >= size) return false;
  Peer& peer = g_peers[comm->world[static_cast<size_t>(dest)]];
  if (peer.left.load(std::memory_order_relaxed) <= 0) return true;
  peer.left.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

Made make_first_piece(Call call, int candidate, const Byte* data, size_t size, const Type& type,
                      Buffer* bytes) {
  Head head;
  head.tag = g_next_tag.fetch_add(1, std::memory_order_relaxed) % g_n_tags;
  head.rank = job().rank;
  head.raw_size = size;
  head.piece_size = piece_size_of(size);
  const auto piece = static_cast<size_t>(head.piece_size);
  if (!bytes->reserve(piece + kFirst)) return {};
  // The frame is made behind the place of the head; its cookie makes room for that.
  Byte* frame = bytes->data() + kHeadSize;
  Made made = make_frame(call, candidate, data, piece, type, frame, piece);
  if (made.size == 0) return made;
  std::memcpy(bytes->data(), job().cookie, kCookieSize);
  write_head(bytes->data() + kCookieSize, head);
  made.size += kHeadSize;
  return made;
}

Pieces::Pieces(Call call, int candidate, const Byte* data, const Type& type, int rank, bool there)
    : call_(call), candidate_(candidate), data_(data), type_(type), rank_(rank), there_(there) {}

// Without memory for a copy a piece waits for that of one that was sent. Nothing goes from the
// user's buffer itself, into which MPI_Sendrecv_replace may receive meanwhile, and which a device
// may have. A receiver that takes no pieces may wait for this rank: then the message is lost, and
// both are told.
Buffer Pieces::room_for(size_t size) {
  if (spare_.data()) return std::move(spare_);
  Buffer room(size);
  if (room.data()) return room;
  ++self_thread().events.no_memory;
  while (!spare_.data() && error_ == MPI_SUCCESS && lost_ == MPI_SUCCESS) {
    if (take_completed()) continue;
    if (out_of_patience() && now() - progress_ > (there_ ? kStarvedThere : kStarved)) {
      lost_ = MPI_ERR_NO_MEM;
      complain("no memory for copies of a message in pieces, whose receiver does not take them");
    }
    if (advance_receives()) progress_ = now();
    give_way();
  }
  return std::move(spare_);
}

int Pieces::launch(Buffer* first, size_t size, int dest, int tag, MPI_Comm comm) {
  Head head;
  if (!read_head(first->data(), size, &head)) return MPI_ERR_INTERN;
  start_ = progress_ = now();
  codec_ = codec_seconds();
  const ByteRoom room(size);
  MPI_Request request;
  const int error = PMPI_Issend(first->data(), room.count, room.type, dest, tag, comm, &request);
  if (error != MPI_SUCCESS) return error;
  ++self_thread().events.in_pieces;
  keep(request, std::move(*first), size);
  const size_t n = n_pieces(head);
  for (size_t i = 1, failures = 0, skip = 0; i < n; ++i) {
    const Byte* piece = data_ + i * head.piece_size;
    const size_t piece_size = size_of_piece(head, i);
    Buffer bytes = room_for(piece_size);
    if (error_ != MPI_SUCCESS) return leave(), MPI_SUCCESS;  // finish() says it
    size_t wire_size = 0;
    if (bytes.data() && skip == 0) {
      wire_size =
          make_frame(call_, candidate_, piece, piece_size, type_, bytes.data(), piece_size).size;
      failures = wire_size ? 0 : failures + 1;
      skip = wire_size ? 0 : std::min<size_t>(failures, 8);
    } else if (skip > 0) {
      --skip;
    }
    if (wire_size == 0) {
      wire_size = piece_size;
      const int copied =
          bytes.data() ? copy_bytes(bytes.data(), piece, piece_size) : MPI_ERR_NO_MEM;
      if (copied != MPI_SUCCESS) wire_size = 0;  // which the receiver takes for an error
      if (lost_ == MPI_SUCCESS) lost_ = copied;
    }
    const ByteRoom piece_room(wire_size);
    if (const int failed = PMPI_Isend(bytes.data(), piece_room.count, piece_room.type, rank_,
                                      static_cast<int>(head.tag), job().pieces, &request)) {
      return leave(), failed;
    }
    keep(request, std::move(bytes), wire_size);
    stats(call_).wire_size += wire_size;  // the first is counted where it was made
    take_completed();
    while (on_their_way_ > kWindow && !out_of_patience()) take_completed();
  }
  return MPI_SUCCESS;
}

int Pieces::finish() {
  while (n_left_ > 0 && error_ == MPI_SUCCESS) {
    if (take_completed()) continue;
    if (out_of_patience()) break;
    if (advance_receives()) progress_ = now();
    give_way();
  }
  leave();
  const double seconds = now() - start_;
  const double waited = seconds - (codec_seconds() - codec_);
  stats(call_).wait_seconds += waited;
  return error_ != MPI_SUCCESS ? error_ : lost_;
}

void Pieces::keep(MPI_Request request, Buffer bytes, size_t size) {
  requests_.push_back(request);
  buffers_.push_back(std::move(bytes));
  sizes_.push_back(size);
  on_their_way_ += size;
  largest_ = std::max(largest_, size);
  ++n_left_;
}

// Frees what is there; false: nothing was.
bool Pieces::take_completed() {
  done_.resize(requests_.size());
  int n = 0;
  const int error = PMPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &n,
                                  done_.data(), MPI_STATUSES_IGNORE);
  if (error != MPI_SUCCESS) error_ = error;
  if (n == MPI_UNDEFINED || error != MPI_SUCCESS) n = 0;
  for (int k = 0; k < n; ++k) {
    const auto i = static_cast<size_t>(done_[static_cast<size_t>(k)]);
    matched_ |= i == 0;
    on_their_way_ -= sizes_[i];
    if (!spare_.data()) {
      spare_ = std::move(buffers_[i]);
    } else {
      buffers_[i].release();
    }
    --n_left_;
  }
  if (n > 0) progress_ = now();
  return n > 0;
}

bool Pieces::out_of_patience() {
  if (!matched_ || error_ != MPI_SUCCESS) return error_ != MPI_SUCCESS;
  const double known = link_rate(job().node[static_cast<size_t>(rank_)]);
  const double link = known > 0 ? known : 125e6;
  if (now() - progress_ < kPatience + 4 * static_cast<double>(largest_) / link) return false;
  if (!late_) {
    disappointed(rank_);
    ++self_thread().events.left;
  }
  late_ = true;
  return true;
}

// What is not there yet is left to MPI.
void Pieces::leave() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    auto* orphan = new Record;
    orphan->request = requests_[i];
    orphan->frame = std::move(buffers_[i]);
    adopt_orphan(orphan);
  }
  requests_.clear();
  n_left_ = 0;
}

// ---- receiving ----

bool is_in_pieces(const Byte* wire, size_t size) {
  return size > kFirst && std::memcmp(wire + kCookieSize, kMagic, sizeof kMagic) == 0;
}

bool read_head(const Byte* wire, size_t size, Head* head) {
  if (!is_in_pieces(wire, size)) return false;
  const Byte* at = wire + kCookieSize;
  head->tag = static_cast<uint32_t>(read_number(at + 4, 4));
  head->rank = static_cast<int>(read_number(at + 8, 4));
  head->raw_size = read_number(at + 16, 8);
  head->piece_size = read_number(at + 24, 8);
  return check_of(at) == read_number(at + 32, 8) && head->rank >= 0 && head->rank < job().size &&
         head->tag < g_n_tags && head->piece_size > 0 && head->piece_size < head->raw_size &&
         head->raw_size / head->piece_size <= kMostPieces;
}

namespace {

// Receives posted ahead for pieces that follow each other.
class Following {
 public:
  explicit Following(const Head& head) : head_(head), n_(n_pieces(head)) {
    for (int i = 0; i < kAhead; ++i) post();
  }
  // Leaves nothing behind that MPI writes to.
  ~Following() {
    for (; taken_ < posted_; ++taken_) PMPI_Wait(&slot(taken_).request, MPI_STATUS_IGNORE);
  }

  // The next piece; valid until the next call.
  int take(const Byte** wire, size_t* size) {
    Slot& next = slot(taken_);
    if (taken_ == posted_) return MPI_ERR_NO_MEM;
    MPI_Status status{};
    const int error = PMPI_Wait(&next.request, &status);
    ++taken_;
    *wire = next.buffer.data();
    *size = error == MPI_SUCCESS ? received_size(status) : 0;
    return error;
  }
  // After what take() gave was used.
  void post() {
    if (posted_ >= n_ || failed_) return;
    Slot& free = slot(posted_);
    const size_t size = size_of_piece(head_, posted_);
    failed_ = !free.buffer.reserve(size);
    if (failed_) return;
    const ByteRoom room(size);
    failed_ = PMPI_Irecv(free.buffer.data(), room.count, room.type, head_.rank,
                         static_cast<int>(head_.tag), job().pieces, &free.request) != MPI_SUCCESS;
    posted_ += !failed_;
  }

 private:
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    Buffer buffer;
  };
  Slot& slot(size_t i) { return slots_[i % kAhead]; }
  Head head_;
  size_t n_, posted_ = 1, taken_ = 1;
  bool failed_ = false;
  Slot slots_[kAhead];
};

// One piece to where it belongs: exactly `want` bytes.
int place(Call call, const Byte* wire, size_t size, Byte* dst, size_t want) {
  if (!is_framed(wire, size) || !is_own(wire)) {
    if (size != want) return MPI_ERR_OTHER;
    return copy_bytes(dst, wire, size);
  }
  size_t written = 0;
  const int error = expand_frame(call, wire + kCookieSize, size - kCookieSize, dst, want, &written);
  return error != MPI_SUCCESS || written == want ? error : MPI_ERR_OTHER;
}

}  // namespace

int expand_pieces(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity,
                  size_t* raw_size) {
  Head head;
  Thread& thread = self_thread();
  if (!read_head(wire, size, &head)) {
    ++thread.events.corrupt;
    complain("the head of a message in pieces is damaged");
    return MPI_ERR_OTHER;
  }
  const double start = now();
  const double expanding = thread.calls[call].expand_seconds;
  const bool fits = head.raw_size <= capacity;
  int error = fits ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
  thread.events.truncated += !fits;
  Following following(head);
  size_t written = 0;
  const auto piece_size = static_cast<size_t>(head.piece_size);
  if (fits) {
    error = expand_frame(call, wire + kFirst, size - kFirst, dst, piece_size, &written);
    if (error == MPI_SUCCESS && written != piece_size) error = MPI_ERR_OTHER;
  }
  for (size_t i = 1; i < n_pieces(head); ++i) {  // to the end, also after an error
    const Byte* piece;
    size_t wire_size;
    const int failed = following.take(&piece, &wire_size);
    thread.calls[call].received_wire_size += wire_size;
    if (failed == MPI_ERR_NO_MEM && error == MPI_SUCCESS) ++thread.events.no_memory;
    if (error == MPI_SUCCESS) error = failed;
    if (error == MPI_SUCCESS) {
      error = place(call, piece, wire_size, dst + i * piece_size, size_of_piece(head, i));
    }
    following.post();
  }
  const double codec = thread.calls[call].expand_seconds - expanding;
  thread.calls[call].wait_seconds += now() - start - codec;
  *raw_size = static_cast<size_t>(head.raw_size);
  return error;
}

}  // namespace wirepress
