// SPDX-License-Identifier: Apache-2.0
// What compressed collectives share (collectives.cpp, reductions.cpp).
//
// Inside a node MPI's own collectives are used; between nodes the first rank of each (the leader)
// moves chunks, compressing chunk c+1 while chunk c is on its way. An Allreduce over nodes of equal
// size is cut in lanes: every rank of a node moves a part of its own. On these private
// communicators both ends know a chunk's raw size: what arrives shorter is a frame, what arrives
// whole is raw. Whether a collective goes this way follows from values that are equal on every
// member alone, and the order of a reduction from the number of nodes alone: two runs give the same
// bits.
#pragma once

#include <algorithm>
#include <climits>

#include "recording/across.hpp"
#include "calls/pmpi.hpp"

namespace wirepress {

inline constexpr size_t kLag = kInFlight - 1;      // chunks sent before the first is waited for
inline constexpr size_t kLeastSegment = 16 << 10;  // smaller ones wait for latency, not the link
inline constexpr size_t kPiece = size_t{1} << 30;  // given to one MPI call, for its int counts
inline constexpr int kTag = 1;
// Calls on a communicator before it is divided, and seconds of the link that one such call takes
// for which it is divided at once.
inline constexpr int kEarly = 2;
inline constexpr double kWorthDividing = 20e-3;

struct Segment {
  size_t offset, size;
};

// One collective on this rank: what travels, how, and what it cost.
class Operation {
 public:
  Operation(Call call, Comm* comm, Shadow* shadow, const Type& type)
      : comm_(comm), shadow_(shadow), type_(type), call_(call) {
    ++stats(call).messages;
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Shadow& shadow() { return *shadow_; }
  int error() const { return error_; }
  bool leads() const { return shadow_->node_rank == 0; }

  // Looks at a sample of what this rank has to send over kLeadersLink or kCollectiveLink.
  void look(const Byte* data, size_t size, int link = kLeadersLink) {
    site_ = find_site(call_, type_.dtype, size, link);
    candidate_ = choose(site_, data, size, type_, true);
    lossy_ = candidate_ >= 0 && is_lossy(candidate_);
    if (candidate_ < 0) ++stats(call_).bypass[bypass_of(candidate_)];
  }

  void check(int error) {
    if (error && !error_) error_ = error;
  }
  template <typename Body>
  void timed(Body body) {
    const double start = now();
    check(body());
    stats(call_).wait_seconds += now() - start;
  }

  // The chunk as it travels: a frame in `frame`, or the data itself.
  size_t compress(const Byte* data, size_t size, Buffer* frame) {
    if (candidate_ < 0 || size < kMinWire || !frame->reserve(size)) return size;
    const size_t wire = make_wire(call_, candidate_, data, size, type_, frame->data(), size);
    tried_ += size;
    codec_seconds_ += self_thread().codec_seconds;
    if (wire) saved_ += size - wire;
    if (!wire) frame->release();
    return wire ? wire : size;
  }

  void send(const Byte* wire, size_t wire_size, size_t raw_size, int to, MPI_Request* request) {
    CallStats& counts = stats(call_);
    counts.raw_size += raw_size;
    counts.wire_size += wire_size;
    if (wire_size < raw_size) framed_ = true;
    check(
        PMPI_Isend(wire, static_cast<int>(wire_size), MPI_BYTE, to, kTag, shadow_->lane, request));
  }

  void receive(Byte* buffer, size_t size, int from, MPI_Request* request) {
    check(PMPI_Irecv(buffer, static_cast<int>(size), MPI_BYTE, from, kTag, shadow_->lane, request));
  }

  // Waits, and returns how many bytes came.
  size_t wait(MPI_Request* request) {
    MPI_Status status{};
    timed([&] { return PMPI_Wait(request, &status); });
    return received_size(status);
  }
  void wait_sent(MPI_Request* request) {
    if (*request == MPI_REQUEST_NULL) return;
    timed([&] { return PMPI_Wait(request, MPI_STATUS_IGNORE); });
  }

  // A frame of `size` raw bytes to `to`.
  void expand_chunk(const Byte* wire, size_t wire_size, Byte* to, size_t size) {
    size_t written = 0;
    check(is_framed(wire, wire_size) ? expand(call_, wire, wire_size, to, size, &written)
                                     : MPI_ERR_OTHER);
    if (!error_ && written != size) check(MPI_ERR_OTHER);
    CallStats& counts = stats(call_);
    ++counts.received_framed;
  }
  // Waits for a chunk that was received where its raw bytes belong, and expands it there.
  void finish_in_place(MPI_Request* request, Byte* data, size_t size) {
    const size_t wire_size = wait(request);
    count_received(wire_size, size);
    if (wire_size == size) return;
    Buffer& aside = self_thread().wire;
    if (!aside.reserve(wire_size, true)) return check(MPI_ERR_NO_MEM);
    std::memcpy(aside.data(), data, wire_size);
    expand_chunk(aside.data(), wire_size, data, size);
  }
  // After a chunk of one's own was compressed: what the others will have of it.
  void take_own(const Byte* frame, size_t wire_size, Byte* data, size_t size) {
    if (!lossy_ || !frame || error_) return;
    size_t written = 0;
    check(expand(call_, frame, wire_size, data, size, &written));
  }
  void count_received(size_t wire_size, size_t raw_size) {
    CallStats& counts = stats(call_);
    ++counts.received;
    counts.received_wire_size += wire_size;
    counts.received_raw_size += raw_size;
  }

  // Tells the site how it went, and the user's error handler about a failure.
  int end() {
    CallStats& counts = stats(call_);
    if (framed_) ++counts.framed;
    if (site_ && tried_ > 0) {
      const bool good = saved_ * 32 > tried_;
      learn_outcome(site_, candidate_, tried_, good ? tried_ - saved_ : 0, codec_seconds_);
      if (!good) ++counts.bypass[kNotSmaller];
    }
    return error_ ? raise(comm_, error_) : MPI_SUCCESS;
  }

  Comm* comm_;
  Shadow* shadow_;
  Type type_;
  const size_t chunk_ = job().chunk;  // a multiple of 64: of every element size

 private:
  Call call_;
  Site* site_ = nullptr;
  int candidate_ = kRaw;
  int error_ = MPI_SUCCESS;
  bool framed_ = false;
  bool lossy_ = false;
  size_t tried_ = 0, saved_ = 0;
  double codec_seconds_ = 0;
};

// Where a call puts whole messages aside. All members name the same `most` that any of them may
// need; beyond the room that they have for certain they ask each other whether they all have it.
class Room {
 public:
  // `mine`: bytes that this rank needs. False: not all have it, and MPI is to run the call.
  bool get(Shadow* shadow, size_t most, size_t mine) {
    if (most <= kRoom) {
      data_ = shadow->room.data();
      return true;
    }
    int ready = mine == 0 || extra_.reserve(mine);
    if (!ready) ++self_thread().events.no_memory;
    data_ = extra_.data();
    count_exchange(*shadow, sizeof ready);
    const int error = PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, shadow->all);
    return error == MPI_SUCCESS && ready;
  }
  Byte* data() const { return data_; }

 private:
  Buffer extra_;
  Byte* data_ = nullptr;
};

// What a rank hands on inside its node where it has nothing right to hand on: it looks like the
// head of a frame, which raw data do only with probability 2^-128.
inline void spoil(Byte* data, size_t size) {
  if (size >= kCookieSize) std::memcpy(data, job().cookie, kCookieSize);
}
inline bool is_spoiled(const Byte* data, size_t size) {
  return size >= kCookieSize && std::memcmp(data, job().cookie, kCookieSize) == 0;
}

// Calls body(offset, size) for pieces that MPI's int counts can hold.
template <typename Body>
void in_pieces(size_t size, size_t element, Body body) {
  const size_t piece = kPiece / element * element;
  for (size_t at = 0; at < size; at += piece) body(at, std::min(piece, size - at));
}

// `own`: where this rank is the root its data are not the user's to read, and say whether they are
// right.
inline void node_bcast(Operation& op, Byte* data, size_t size, int root, bool own = true) {
  if (op.shadow().node_size == 1) return;
  const bool sends = op.shadow().node_rank == root;
  if (sends && own && op.error()) spoil(data, size);
  in_pieces(size, 1, [&](size_t at, size_t n) {
    op.timed([&] {
      return PMPI_Bcast(data + at, static_cast<int>(n), MPI_BYTE, root, op.shadow().node);
    });
  });
  if (!sends && is_spoiled(data, size)) op.check(MPI_ERR_OTHER);
}

// ---- exchanges between the nodes of a lane ----

// The chunks of all steps of an exchange, in the order in which they travel. Every segment is cut
// into the same number of chunks; the last ones of a short segment are empty and do not travel.
class Exchange {
 public:
  // Segment i of `data` is node i's.
  Exchange(Operation& op, Byte* data, std::vector<Segment> segments)
      : op_(op), data_(data), segments_(std::move(segments)) {
    n_nodes_ = static_cast<size_t>(op.shadow().n_nodes);
    me_ = static_cast<size_t>(op.shadow().my_node);
    size_t most = 1;
    for (const Segment& s : segments_) most = std::max(most, (s.size + op.chunk_ - 1) / op.chunk_);
    n_chunks_ = most;
    n_items_ = (n_nodes_ - 1) * n_chunks_;
    lag_ = std::min(n_chunks_, kLag);
    received_.assign(n_items_, MPI_REQUEST_NULL);
    sent_.assign(n_items_, MPI_REQUEST_NULL);
    frames_.resize(n_items_);
  }

  // Afterwards segment me_ of data_ is the reduction over all nodes, the others are as they were.
  // In step s a node sends to the s-th after it what that one owns. So each value is coded once on
  // its way, whatever the number of nodes, and sparse data are sent before sums fill them up; a
  // ring would send the same number of bytes. The order of the operands is fixed: the node's own,
  // then those of the nodes before it, one by one.
  void reduce_scatter(MPI_Datatype type, MPI_Op reduction) {
    std::vector<Buffer> slots(std::min(kInFlight, n_items_));
    Buffer expanded;
    if (!expanded.reserve(op_.chunk_, true)) return op_.check(MPI_ERR_NO_MEM);
    for (Buffer& slot : slots) {
      if (!slot.reserve(op_.chunk_, true)) return op_.check(MPI_ERR_NO_MEM);
    }
    const auto post = [&](size_t i) {
      const Segment chunk = piece(i, me_);
      if (chunk.size) {
        op_.receive(slots[i % slots.size()].data(), chunk.size, before(i), &received_[i]);
      }
    };
    const auto finish = [&](size_t i) {
      const Segment chunk = piece(i, me_);
      if (!chunk.size) return;
      const Byte* wire = slots[i % slots.size()].data();
      const size_t size = op_.wait(&received_[i]);
      op_.count_received(size, chunk.size);
      if (size != chunk.size) {
        op_.expand_chunk(wire, size, expanded.data(), chunk.size);
        wire = expanded.data();
      }
      if (op_.error()) return;
      const auto n = static_cast<int>(chunk.size / static_cast<size_t>(op_.type_.size));
      op_.check(PMPI_Reduce_local(wire, data_ + chunk.offset, n, type, reduction));
    };
    const auto send = [&](size_t i) {
      const Segment chunk = piece(i, me_ + 1 + step(i));
      if (!chunk.size) return;
      const Byte* from = data_ + chunk.offset;
      const size_t wire = op_.compress(from, chunk.size, &frames_[i]);
      op_.send(frames_[i].data() ? frames_[i].data() : from, wire, chunk.size, after(i), &sent_[i]);
    };
    run(slots.size(), post, finish, send);
  }

  // Every node has its own segment; afterwards all of them. By a ring: a chunk is compressed once,
  // by its owner, and forwarded as it came. Where coding changes values the owner takes the changed
  // ones too, so that all have the same.
  void all_gather() {
    const auto post = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - 1 - step(i));
      if (chunk.size) op_.receive(data_ + chunk.offset, chunk.size, previous(), &received_[i]);
    };
    wire_sizes_.assign(n_items_ + n_chunks_, 0);
    late_.assign(n_items_, false);
    if (!aside_.reserve(op_.chunk_, true)) op_.check(MPI_ERR_NO_MEM);
    const auto finish = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - 1 - step(i));
      if (!chunk.size) return;
      const size_t size = op_.wait(&received_[i]);
      op_.count_received(size, chunk.size);
      wire_sizes_[i + n_chunks_] = size;
      if (size == chunk.size) return;
      const bool travels_on = i + n_chunks_ < n_items_;
      // The frame moves out of the way of what it expands to; it is forwarded from there. Without
      // memory it is forwarded from where it is, and expanded then.
      if (travels_on && !frames_[i + n_chunks_].reserve(size)) {
        late_[i + n_chunks_] = true;
        return;
      }
      expand_there(chunk, size, travels_on ? frames_[i + n_chunks_].data() : aside_.data());
    };
    const auto send = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - step(i));
      if (!chunk.size) return;
      Byte* from = data_ + chunk.offset;
      if (step(i) == 0) wire_sizes_[i] = op_.compress(from, chunk.size, &frames_[i]);
      op_.send(frames_[i].data() ? frames_[i].data() : from, wire_sizes_[i], chunk.size, next(),
               &sent_[i]);
      if (step(i) == 0) op_.take_own(frames_[i].data(), wire_sizes_[i], from, chunk.size);
    };
    run(kInFlight, post, finish, send);
  }

  // Every node has its own segment; afterwards node `root` has all of them.
  void gather(int root) {
    const auto at = static_cast<size_t>(root);
    if (me_ == at) {
      const auto owner = [&](size_t i) { return (me_ + 1 + step(i)) % n_nodes_; };
      const auto post = [&](size_t i) {
        const Segment chunk = piece(i, owner(i));
        if (!chunk.size) return;
        op_.receive(data_ + chunk.offset, chunk.size, static_cast<int>(owner(i)), &received_[i]);
      };
      const auto finish = [&](size_t i) {
        const Segment chunk = piece(i, owner(i));
        if (chunk.size) op_.finish_in_place(&received_[i], data_ + chunk.offset, chunk.size);
      };
      return run(kInFlight, post, finish, [](size_t) {});
    }
    n_items_ = n_chunks_;  // one step: what is mine
    const auto send = [&](size_t i) {
      const Segment chunk = piece(i, me_);
      if (!chunk.size) return;
      const Byte* from = data_ + chunk.offset;
      const size_t wire = op_.compress(from, chunk.size, &frames_[i]);
      op_.send(frames_[i].data() ? frames_[i].data() : from, wire, chunk.size, root, &sent_[i]);
    };
    run(
        0, [](size_t) {}, [](size_t) {}, send);
  }

 private:
  size_t step(size_t i) const { return i / n_chunks_; }
  int next() const { return static_cast<int>((me_ + 1) % n_nodes_); }
  int previous() const { return static_cast<int>((me_ + n_nodes_ - 1) % n_nodes_); }
  int after(size_t i) const { return static_cast<int>((me_ + 1 + step(i)) % n_nodes_); }
  int before(size_t i) const { return static_cast<int>((me_ + n_nodes_ - 1 - step(i)) % n_nodes_); }

  Segment piece(size_t i, size_t segment) const {
    const Segment& whole = segments_[segment % n_nodes_];
    const size_t begin = std::min(whole.size, i % n_chunks_ * op_.chunk_);
    return {whole.offset + begin, std::min(op_.chunk_, whole.size - begin)};
  }

  // Ring: chunk i is sent after chunk i - n_chunks_ came. kLag chunks fly before one is waited for.
  template <typename Post, typename Finish, typename Send>
  void run(size_t window, Post post, Finish finish, Send send) {
    for (size_t i = 0; i < std::min(window, n_items_); ++i) post(i);
    for (size_t i = 0; i < n_items_ + lag_; ++i) {
      if (i >= lag_) {
        finish(i - lag_);
        if (window && i - lag_ + window < n_items_) post(i - lag_ + window);
      }
      if (i < n_items_) {
        if (i >= kInFlight) settle(i - kInFlight);
        send(i);
      }
    }
    for (size_t i = 0; i < n_items_; ++i) settle(i);
  }

  void settle(size_t i) {
    op_.wait_sent(&sent_[i]);
    frames_[i].release();
    if (late_.empty() || !late_[i]) return;
    const Segment chunk = piece(i, me_ + n_nodes_ - step(i));
    expand_there(chunk, wire_sizes_[i], aside_.data());
    late_[i] = false;
  }

  // A frame of an all_gather, by way of `aside`.
  void expand_there(const Segment& chunk, size_t size, Byte* aside) {
    if (!aside) return op_.check(MPI_ERR_NO_MEM);
    std::memcpy(aside, data_ + chunk.offset, size);
    op_.expand_chunk(aside, size, data_ + chunk.offset, chunk.size);
  }

  Operation& op_;
  Byte* data_;
  std::vector<Segment> segments_;
  size_t n_nodes_, me_, n_chunks_, n_items_, lag_;
  std::vector<MPI_Request> received_, sent_;
  std::vector<Buffer> frames_;
  std::vector<size_t> wire_sizes_;
  std::vector<bool> late_;  // of an all_gather: expanded once it was forwarded
  Buffer aside_;
};

// `count` elements in as equal parts as can be.
inline std::vector<Segment> split(size_t count, size_t element, size_t n) {
  std::vector<Segment> segments;
  size_t begin = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t end = count / n * (i + 1) + std::min(i + 1, count % n);
    segments.push_back({begin * element, (end - begin) * element});
    begin = end;
  }
  return segments;
}

// What each node holds of blocks of `size` bytes, node by node.
inline std::vector<Segment> node_segments(const Shadow& shadow, size_t size) {
  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < shadow.first.size(); ++i) {
    const auto begin = static_cast<size_t>(shadow.first[i]);
    const auto end = static_cast<size_t>(shadow.first[i + 1]);
    segments.push_back({begin * size, (end - begin) * size});
  }
  return segments;
}

// ---- which calls ----

inline Comm* collective_comm(MPI_Comm handle) {
  if (inert() || g_mode.load(std::memory_order_relaxed) != kOn) return nullptr;
  return find_comm(handle);
}

inline bool reduces(Call call) {
  return call == kReduce || call == kAllreduce || call == kReduceScatter ||
         call == kReduceScatterBlock;
}

// The least size of what a call names: a block of those of equal blocks, which every member has as
// many of as there are members, and all data of others.
inline size_t least_size(Call call) {
  const bool blocks = call == kAlltoall || call == kGather || call == kScatter;
  return std::max(blocks ? job().block_threshold : job().threshold, kMinWire);
}

// All members come to the same answer: `total` is equal on all of them. `always`: whatever the size
// and even on one node. nullptr: MPI is to run the call, and `why`.
inline Shadow* eligible(Call call, Comm* comm, size_t total, bool always, Bypass* why) {
  *why = kUnsupported;
  if (comm->collectives == 0 || !(comm->any_remote || always)) return nullptr;
  if (!always && total < least_size(call)) {
    *why = kSmall;
    return nullptr;
  }
  // Communicators that live for a call or two are not worth dividing, unless that is soon gained.
  const double seconds = static_cast<double>(total) / std::max(link_rate(kLeadersLink), 1.0);
  if (job().contest && !always && comm->collectives < 0 && seconds < kWorthDividing &&
      comm->early++ < kEarly) {
    *why = kLearning;
    return nullptr;
  }
  Shadow* shadow = find_shadow(comm);
  if (!shadow || always || !reduces(call)) return shadow;
  *why = kSmall;
  return total / static_cast<size_t>(shadow->n_nodes) < kLeastSegment ? nullptr : shadow;
}

inline bool product(MPI_Count a, MPI_Count b, MPI_Count* result) {
  return a >= 0 && !__builtin_mul_overflow(a, b, result) && *result > 0;
}

// Runs a collective in which all members name the same `total` and, of a reduction, the same type
// (`reduced`): by `own(shadow)` where that is allowed and was faster (or `always`), else by MPI
// (`plain(why)`).
//
// Every member of the communicator must come here, or none: a test before it may refuse only what
// is refused on all members alike (sizes, types of reductions, operations, nodes), or what is wrong
// and would fail in MPI. One that depends on a member's own arguments would hang the others.
template <typename Plain, typename Own>
int run_collective(Call call, Comm* comm, size_t total, Plain plain, Own own, bool always = false,
                   wpr_dtype reduced = WPR_BYTES) {
  Bypass why;
  Shadow* shadow = eligible(call, comm, total, always, &why);
  if (!shadow) return plain(why);
  if (always || !job().contest) return own(shadow);
  Contest* contest = find_contest(comm, call, reduced, total);
  const Turn turn = begin_turn(contest, shadow);
  const int error = turn.own ? own(shadow) : plain(turn.trial ? kLearning : kNotFaster);
  end_turn(contest, shadow, turn);
  return error;
}

}  // namespace wirepress
