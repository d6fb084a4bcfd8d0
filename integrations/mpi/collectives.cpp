// SPDX-License-Identifier: Apache-2.0
// Bcast, Allreduce, Allgather and Reduce_scatter_block between nodes.
//
// Inside a node MPI's own collectives are used; between nodes the first rank of each (the leader)
// moves chunks, compressing chunk c+1 while chunk c is on its way. An Allreduce over nodes of equal
// size is cut in lanes: every rank of a node moves a part of its own. On these private
// communicators both ends know a chunk's raw size: what arrives shorter is a frame, what arrives
// whole is raw. Whether a collective goes this way follows from values that are equal on every
// member alone, and the order of a reduction from the number of nodes alone: two runs give the same
// bits.
#include <algorithm>
#include <climits>

#include "interposer.hpp"
#include "pmpi.hpp"

namespace wirepress {
namespace {

constexpr size_t kInFlight = 4;             // chunks on their way at a time, each way
constexpr size_t kLag = 3;                  // of them, those sent before the first is waited for
constexpr size_t kLeastSegment = 16 << 10;  // smaller ones wait for latency, not for the link
constexpr size_t kPiece = size_t{1} << 30;  // what is given to one MPI call, for its int counts
constexpr int kTag = 1;

struct Segment {
  size_t offset, size;
};

// One collective on this rank: what travels, how, and what it cost.
class Operation {
 public:
  Operation(Call call, Comm* comm, Shadow* shadow, const Type& type)
      : comm_(comm), shadow_(shadow), type_(type), call_(call), begin_(now()) {
    ++stats(call).messages;
  }
  ~Operation() {
    const double wait = stats(call_).wait_seconds - wait_before_;
    learn_link(wire_size_, now() - begin_, wait);
  }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Shadow& shadow() { return *shadow_; }
  int error() const { return error_; }
  bool leads() const { return shadow_->node_rank == 0; }

  // Looks at a sample of what this rank has to send.
  void look(const Byte* data, size_t size) {
    site_ = find_site(call_, type_.dtype, size);
    candidate_ = choose(site_, data, size, type_, true);
    if (candidate_ < 0) ++stats(call_).bypass[candidate_ == kRaw ? kIncompressible : kNotFaster];
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
    if (wire) saved_ += size - wire;
    if (!wire) frame->release();
    return wire ? wire : size;
  }

  void send(const Byte* wire, size_t wire_size, size_t raw_size, int to, MPI_Request* request) {
    CallStats& counts = stats(call_);
    counts.raw_size += raw_size;
    counts.wire_size += wire_size;
    wire_size_ += wire_size;
    if (wire_size < raw_size) framed_ = true;
    check(
        PMPI_Isend(wire, static_cast<int>(wire_size), MPI_BYTE, to, kTag, shadow_->lane, request));
  }

  void receive(Byte* buffer, size_t size, int from, MPI_Request* request) {
    check(PMPI_Irecv(buffer, static_cast<int>(size), MPI_BYTE, from, kTag, shadow_->lane, request));
  }

  // Waits, and returns how many bytes came.
  size_t wait(MPI_Request* request) {
    MPI_Status status;
    PMPI_Status_set_elements_x(&status, MPI_BYTE, 0);
    timed([&] { return PMPI_Wait(request, &status); });
    return received_size(status);
  }
  void wait_sent(MPI_Request* request) {
    if (*request != MPI_REQUEST_NULL) timed([&] { return PMPI_Wait(request, MPI_STATUS_IGNORE); });
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
      learn_outcome(site_, good);
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
  size_t tried_ = 0, saved_ = 0, wire_size_ = 0;
  double begin_, wait_before_ = stats(call_).wait_seconds;
};

// Calls body(offset, size) for pieces that MPI's int counts can hold.
template <typename Body>
void in_pieces(size_t size, size_t element, Body body) {
  const size_t piece = kPiece / element * element;
  for (size_t at = 0; at < size; at += piece) body(at, std::min(piece, size - at));
}

void node_bcast(Operation& op, Byte* data, size_t size, int root) {
  if (op.shadow().node_size == 1) return;
  in_pieces(size, 1, [&](size_t at, size_t n) {
    op.timed([&] {
      return PMPI_Bcast(data + at, static_cast<int>(n), MPI_BYTE, root, op.shadow().node);
    });
  });
}

// The node's sum in `result` of its leader. `input` may be `result` there.
void node_reduce(Operation& op, const Byte* input, Byte* result, size_t size, MPI_Datatype type,
                 MPI_Op reduction) {
  const size_t element = static_cast<size_t>(op.type_.size);
  if (op.shadow().node_size == 1) {
    if (input != result) std::memcpy(result, input, size);
    return;
  }
  in_pieces(size, element, [&](size_t at, size_t n) {
    const void* from = op.leads() && input == result ? MPI_IN_PLACE : input + at;
    op.timed([&] {
      return PMPI_Reduce(from, op.leads() ? result + at : nullptr, static_cast<int>(n / element),
                         type, reduction, 0, op.shadow().node);
    });
  });
}

// ---- rings of leaders ----

// The chunks of all steps of a ring, in the order in which they travel. Every segment is cut into
// the same number of chunks, so that chunk c of a step follows from chunk c of the step before;
// the last ones of a short segment are empty and do not travel.
class Ring {
 public:
  Ring(Operation& op, Byte* data, std::vector<Segment> segments)
      : op_(op), data_(data), segments_(std::move(segments)) {
    n_nodes_ = static_cast<size_t>(op.shadow().n_nodes);
    me_ = static_cast<size_t>(op.shadow().my_node);
    next_ = static_cast<int>((me_ + 1) % n_nodes_);
    previous_ = static_cast<int>((me_ + n_nodes_ - 1) % n_nodes_);
    size_t most = 1;
    for (const Segment& s : segments_) most = std::max(most, (s.size + op.chunk_ - 1) / op.chunk_);
    n_chunks_ = most;
    n_items_ = (n_nodes_ - 1) * n_chunks_;
    lag_ = std::min(n_chunks_, kLag);
    received_.assign(n_items_, MPI_REQUEST_NULL);
    sent_.assign(n_items_, MPI_REQUEST_NULL);
    frames_.resize(n_items_);
  }

  // Afterwards segment me_ of data_ is the reduction over all nodes.
  void reduce_scatter(MPI_Datatype type, MPI_Op reduction) {
    std::vector<Buffer> slots(std::min(kInFlight, n_items_));
    Buffer expanded;
    if (!expanded.reserve(op_.chunk_)) return op_.check(MPI_ERR_NO_MEM);
    for (Buffer& slot : slots) {
      if (!slot.reserve(op_.chunk_)) return op_.check(MPI_ERR_NO_MEM);
    }
    const auto post = [&](size_t i) {
      const Segment chunk = piece(i, me_ + 2 * n_nodes_ - 2 - step(i));
      if (chunk.size) {
        op_.receive(slots[i % slots.size()].data(), chunk.size, previous_, &received_[i]);
      }
    };
    const auto finish = [&](size_t i) {
      const Segment chunk = piece(i, me_ + 2 * n_nodes_ - 2 - step(i));
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
      const Segment chunk = piece(i, me_ + 2 * n_nodes_ - 1 - step(i));
      if (!chunk.size) return;
      const Byte* from = data_ + chunk.offset;
      const size_t wire = op_.compress(from, chunk.size, &frames_[i]);
      op_.send(frames_[i].data() ? frames_[i].data() : from, wire, chunk.size, next_, &sent_[i]);
    };
    run(slots.size(), post, finish, send);
  }

  // Every leader has its own segment; afterwards all of them. A chunk is compressed once, by its
  // owner, and forwarded as it came.
  void all_gather() {
    const auto post = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - 1 - step(i));
      if (chunk.size) op_.receive(data_ + chunk.offset, chunk.size, previous_, &received_[i]);
    };
    wire_sizes_.assign(n_items_ + n_chunks_, 0);
    const auto finish = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - 1 - step(i));
      if (!chunk.size) return;
      const size_t size = op_.wait(&received_[i]);
      op_.count_received(size, chunk.size);
      wire_sizes_[i + n_chunks_] = size;
      if (size == chunk.size) return;
      // The frame moves out of the way of what it expands to; it is forwarded from there.
      Buffer frame;
      if (!frame.reserve(size)) return op_.check(MPI_ERR_NO_MEM);
      std::memcpy(frame.data(), data_ + chunk.offset, size);
      op_.expand_chunk(frame.data(), size, data_ + chunk.offset, chunk.size);
      if (i + n_chunks_ < n_items_) frames_[i + n_chunks_] = std::move(frame);
    };
    const auto send = [&](size_t i) {
      const Segment chunk = piece(i, me_ + n_nodes_ - step(i));
      if (!chunk.size) return;
      const Byte* from = data_ + chunk.offset;
      if (step(i) == 0) wire_sizes_[i] = op_.compress(from, chunk.size, &frames_[i]);
      op_.send(frames_[i].data() ? frames_[i].data() : from, wire_sizes_[i], chunk.size, next_,
               &sent_[i]);
    };
    run(kInFlight, post, finish, send);
  }

 private:
  size_t step(size_t i) const { return i / n_chunks_; }

  Segment piece(size_t i, size_t segment) const {
    const Segment& whole = segments_[segment % n_nodes_];
    const size_t begin = std::min(whole.size, i % n_chunks_ * op_.chunk_);
    return {whole.offset + begin, std::min(op_.chunk_, whole.size - begin)};
  }

  // Chunk i is sent after chunk i - n_chunks_ came; kLag chunks fly before one is waited for.
  template <typename Post, typename Finish, typename Send>
  void run(size_t window, Post post, Finish finish, Send send) {
    for (size_t i = 0; i < std::min(window, n_items_); ++i) post(i);
    for (size_t i = 0; i < n_items_ + lag_; ++i) {
      if (i >= lag_) {
        finish(i - lag_);
        if (i - lag_ + window < n_items_) post(i - lag_ + window);
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
  }

  Operation& op_;
  Byte* data_;
  std::vector<Segment> segments_;
  size_t n_nodes_, me_, n_chunks_, n_items_, lag_;
  int next_, previous_;
  std::vector<MPI_Request> received_, sent_;
  std::vector<Buffer> frames_;
  std::vector<size_t> wire_sizes_;
};

// `count` elements in as equal parts as can be.
std::vector<Segment> split(size_t count, size_t element, size_t n) {
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
std::vector<Segment> node_segments(const Shadow& shadow, size_t size) {
  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < shadow.first.size(); ++i) {
    const auto begin = static_cast<size_t>(shadow.first[i]);
    const auto end = static_cast<size_t>(shadow.first[i + 1]);
    segments.push_back({begin * size, (end - begin) * size});
  }
  return segments;
}

// ---- which calls ----

Comm* collective_comm(MPI_Comm handle) {
  if (inert() || g_mode.load(std::memory_order_relaxed) != kOn) return nullptr;
  return find_comm(handle);
}

// All members come to the same answer: `total` is equal on all of them.
Shadow* eligible(Call call, Comm* comm, size_t total) {
  if (comm->collectives == 0 || !comm->any_remote) return nullptr;
  if (total < std::max(job().threshold, kMinWire)) {
    ++stats(call).messages;
    ++stats(call).bypass[kSmall];
    return nullptr;
  }
  return find_shadow(comm);
}

bool product(MPI_Count a, MPI_Count b, MPI_Count* result) {
  return a >= 0 && !__builtin_mul_overflow(a, b, result) && *result > 0;
}

// Predefined operations that commute, on types that they are defined for.
bool reducible(MPI_Op op, Arithmetic kind) {
  using A = Arithmetic;
  if (kind == A::kNone) return false;
  if (op == MPI_SUM || op == MPI_PROD) {
    return kind == A::kInteger || kind == A::kFloat || kind == A::kComplex;
  }
  if (op == MPI_MAX || op == MPI_MIN) return kind == A::kInteger || kind == A::kFloat;
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) {
    return kind == A::kInteger || kind == A::kLogical;
  }
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
    return kind == A::kInteger || kind == A::kByte;
  }
  return false;
}

// ---- Bcast ----

// The way of chunks between leaders: a chain where there are chunks to fill it, else a tree.
struct Tree {
  int parent = -1;
  std::vector<int> children;

  Tree(int n, int me, int root, bool chain) {
    const int at = (me - root + n) % n;
    const auto node = [&](int i) { return (i + root) % n; };
    if (chain) {
      if (at > 0) parent = node(at - 1);
      if (at + 1 < n) children.push_back(node(at + 1));
      return;
    }
    int bit = 1;
    while (bit < n && !(at & bit)) bit <<= 1;
    if (at > 0) parent = node(at - bit);
    for (int b = bit >> 1; b > 0; b >>= 1) {
      if (at + b < n) children.push_back(node(at + b));
    }
  }
};

class Broadcast {
 public:
  Broadcast(Operation& op, Byte* data, size_t size, int root)
      : op_(op),
        data_(data),
        size_(size),
        n_chunks_((size + op.chunk_ - 1) / op.chunk_),
        root_node_(op.shadow().node_of[static_cast<size_t>(root)]),
        root_in_node_(op.shadow().rank_in_node[static_cast<size_t>(root)]),
        tree_(op.shadow().n_nodes, op.shadow().my_node, root_node_,
              n_chunks_ >= static_cast<size_t>(op.shadow().n_nodes)),
        received_(n_chunks_, MPI_REQUEST_NULL),
        sent_(n_chunks_ * tree_.children.size(), MPI_REQUEST_NULL),
        frames_(n_chunks_) {}

  void run() {
    const bool at_root = op_.shadow().my_node == root_node_;
    for (size_t c = 0; c < std::min(kInFlight, n_chunks_); ++c) post(c);
    for (size_t c = 0; c < n_chunks_; ++c) {
      const int in_node = at_root ? root_in_node_ : 0;
      // The leader of the root's node needs the chunk first; elsewhere it brings it.
      if (at_root && root_in_node_ != 0) node_bcast(op_, at(c), size(c), in_node);
      if (op_.leads()) pass(c);
      if (!(at_root && root_in_node_ != 0)) node_bcast(op_, at(c), size(c), in_node);
    }
    for (size_t c = 0; c < n_chunks_; ++c) settle(c);
  }

 private:
  Byte* at(size_t c) { return data_ + c * op_.chunk_; }
  size_t size(size_t c) const { return std::min(op_.chunk_, size_ - c * op_.chunk_); }
  bool receives() { return op_.leads() && tree_.parent >= 0; }

  void post(size_t c) {
    if (receives()) op_.receive(at(c), size(c), tree_.parent, &received_[c]);
  }

  void pass(size_t c) {
    if (c >= kInFlight) settle(c - kInFlight);
    size_t wire_size;
    if (receives()) {
      wire_size = op_.wait(&received_[c]);
      op_.count_received(wire_size, size(c));
      if (c + kInFlight < n_chunks_) post(c + kInFlight);
      if (wire_size != size(c)) {
        if (!frames_[c].reserve(wire_size)) return op_.check(MPI_ERR_NO_MEM);
        std::memcpy(frames_[c].data(), at(c), wire_size);
      }
    } else {
      // Only a leader that is the root has more than this chunk to look at.
      if (c == 0) op_.look(data_, root_in_node_ == 0 ? size_ : size(0));
      wire_size = op_.compress(at(c), size(c), &frames_[c]);
    }
    const Byte* wire = frames_[c].data() ? frames_[c].data() : at(c);
    for (size_t k = 0; k < tree_.children.size(); ++k) {
      op_.send(wire, wire_size, size(c), tree_.children[k], &sent_[c * tree_.children.size() + k]);
    }
    if (receives() && wire_size != size(c)) op_.expand_chunk(wire, wire_size, at(c), size(c));
  }

  void settle(size_t c) {
    for (size_t k = 0; k < tree_.children.size(); ++k) {
      op_.wait_sent(&sent_[c * tree_.children.size() + k]);
    }
    frames_[c].release();
  }

  Operation& op_;
  Byte* data_;
  size_t size_, n_chunks_;
  int root_node_, root_in_node_;
  Tree tree_;
  std::vector<MPI_Request> received_, sent_;
  std::vector<Buffer> frames_;
};

template <typename N>
int bcast(void* buffer, N count, MPI_Datatype datatype, int root, MPI_Comm handle) {
  const auto plain = [&] { return bcast_form<N>::call(buffer, count, datatype, root, handle); };
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count total;
  if (!comm || comm->inter || !look_up(datatype, &type) || !product(count, type.size, &total) ||
      root < 0 || root >= comm->size || (!buffer && type.contiguous)) {
    return plain();
  }
  Shadow* shadow = eligible(kBcast, comm, static_cast<size_t>(total));
  if (!shadow) return plain();
  const auto size = static_cast<size_t>(total);
  // Members may describe the same bytes by different types: chunks are cut by bytes.
  Type bytes = type;
  if (!type.contiguous) bytes.element = 1, bytes.dtype = WPR_BYTES;
  Operation op(kBcast, comm, shadow, bytes);
  Buffer packed;
  Byte* data = static_cast<Byte*>(buffer);
  if (!type.contiguous) {
    packed.reserve(size);
    data = packed.data();
    if (data && comm->rank == root) op.check(collect(buffer, count, datatype, data, size));
  }
  if (!data) return raise(comm, MPI_ERR_NO_MEM);
  Broadcast(op, data, size, root).run();
  if (!type.contiguous && comm->rank != root && !op.error()) {
    op.check(deliver(data, size, buffer, count, datatype));
  }
  return op.end();
}

// ---- Allreduce ----

// The leader reduces the node's vectors, exchanges them with other leaders, and hands them out.
void allreduce_by_leaders(Operation& op, const Byte* input, Byte* result, size_t count,
                          MPI_Datatype datatype, MPI_Op reduction) {
  const auto element = static_cast<size_t>(op.type_.size);
  node_reduce(op, input, result, count * element, datatype, reduction);
  if (op.leads()) {
    op.look(result, count * element);
    const auto segments = split(count, element, static_cast<size_t>(op.shadow().n_nodes));
    Ring(op, result, segments).reduce_scatter(datatype, reduction);
    Ring(op, result, segments).all_gather();
  }
  node_bcast(op, result, count * element, 0);
}

// Every rank reduces, exchanges and hands out a part: codecs run on as many cores as there are
// ranks, and while one rank compresses another keeps the link busy.
void allreduce_by_lanes(Operation& op, const Byte* input, Byte* result, size_t count,
                        MPI_Datatype datatype, MPI_Op reduction) {
  const auto element = static_cast<size_t>(op.type_.size);
  const auto n_lanes = static_cast<size_t>(op.shadow().node_size);
  std::vector<int> counts, begins;
  for (const Segment& lane : split(count, element, n_lanes)) {
    counts.push_back(static_cast<int>(lane.size / element));
    begins.push_back(static_cast<int>(lane.offset / element));
  }
  const int mine = counts[static_cast<size_t>(op.shadow().node_rank)];
  const size_t size = static_cast<size_t>(mine) * element;
  Buffer part;
  if (!part.reserve(size)) return op.check(MPI_ERR_NO_MEM);
  op.timed([&] {
    return PMPI_Reduce_scatter(input, part.data(), counts.data(), datatype, reduction,
                               op.shadow().node);
  });
  op.look(part.data(), size);
  const auto segments =
      split(static_cast<size_t>(mine), element, static_cast<size_t>(op.shadow().n_nodes));
  Ring(op, part.data(), segments).reduce_scatter(datatype, reduction);
  Ring(op, part.data(), segments).all_gather();
  op.timed([&] {
    return PMPI_Allgatherv(part.data(), mine, datatype, result, counts.data(), begins.data(),
                           datatype, op.shadow().node);
  });
}

template <typename N>
int allreduce(const void* sendbuf, void* recvbuf, N count, MPI_Datatype datatype, MPI_Op reduction,
              MPI_Comm handle) {
  const auto plain = [&] {
    return allreduce_form<N>::call(sendbuf, recvbuf, count, datatype, reduction, handle);
  };
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count total;
  if (!comm || comm->inter || !look_up(datatype, &type) || !product(count, type.size, &total) ||
      !reducible(reduction, type.arithmetic) || !sendbuf || !recvbuf) {
    return plain();
  }
  Shadow* shadow = eligible(kAllreduce, comm, static_cast<size_t>(total));
  const auto size = static_cast<size_t>(total);
  if (!shadow || size / static_cast<size_t>(shadow->n_nodes) < kLeastSegment) return plain();
  Operation op(kAllreduce, comm, shadow, type);
  Byte* result = static_cast<Byte*>(recvbuf);
  // Where a program passes one buffer twice it means MPI_IN_PLACE.
  const Byte* input = sendbuf == MPI_IN_PLACE ? result : static_cast<const Byte*>(sendbuf);
  const size_t per_lane = size / static_cast<size_t>(shadow->n_nodes * shadow->node_size);
  const bool lanes =
      shadow->even && shadow->node_size > 1 && per_lane >= kLeastSegment && total <= INT_MAX;
  (lanes ? allreduce_by_lanes : allreduce_by_leaders)(op, input, result, static_cast<size_t>(count),
                                                      datatype, reduction);
  return op.end();
}

// ---- Allgather ----

// Blocks from rank order to node order.
void to_node_order(const Shadow& shadow, const Byte* from, Byte* to, size_t size) {
  for (size_t i = 0; i < shadow.members.size(); ++i) {
    std::memcpy(to + i * size, from + static_cast<size_t>(shadow.members[i]) * size, size);
  }
}

template <typename N>
int allgather(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, N recvcount,
              MPI_Datatype recvtype, MPI_Comm handle) {
  const auto plain = [&] {
    return allgather_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                   handle);
  };
  Comm* comm = collective_comm(handle);
  Type type, sent;
  MPI_Count block, total, own;
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (!comm || comm->inter || !look_up(recvtype, &type) || !product(recvcount, type.size, &block) ||
      !product(block, comm->size, &total) || block > static_cast<MPI_Count>(kPiece) ||
      (type.contiguous && !recvbuf) ||
      (!in_place && (!look_up(sendtype, &sent) || !product(sendcount, sent.size, &own) ||
                     own != block || (sent.contiguous && !sendbuf)))) {
    return plain();
  }
  Shadow* shadow = eligible(kAllgather, comm, static_cast<size_t>(total));
  if (!shadow) return plain();
  const auto size = static_cast<size_t>(block);
  const auto me = static_cast<size_t>(comm->rank);
  Type bytes = type;
  if (!type.contiguous) bytes.element = 1, bytes.dtype = WPR_BYTES;
  Operation op(kAllgather, comm, shadow, bytes);

  // All blocks in node order, packed: the user's buffer itself where that is what it holds.
  const bool direct = type.contiguous && shadow->ordered;
  Buffer aside;
  Byte* all = static_cast<Byte*>(recvbuf);
  if (!direct) {
    aside.reserve(static_cast<size_t>(total));
    all = aside.data();
  }
  const size_t place = static_cast<size_t>(shadow->first[static_cast<size_t>(shadow->my_node)]) +
                       static_cast<size_t>(shadow->node_rank);
  if (!all) return raise(comm, MPI_ERR_NO_MEM);
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(recvtype, &lower, &extent);
  const auto user_block = [&](size_t rank) {
    return static_cast<Byte*>(recvbuf) +
           static_cast<MPI_Aint>(rank) * static_cast<MPI_Aint>(recvcount) * extent;
  };
  const auto bring = [&](const void* from, MPI_Count count, MPI_Datatype datatype, bool plainly) {
    if (from == all + place * size) return;
    if (plainly) {
      std::memcpy(all + place * size, from, size);
    } else {
      op.check(collect(from, count, datatype, all + place * size, size));
    }
  };
  if (in_place) {
    bring(user_block(me), recvcount, recvtype, type.contiguous);
  } else {
    bring(sendbuf, sendcount, sendtype, sent.contiguous);
  }

  Byte* of_node =
      all + static_cast<size_t>(shadow->first[static_cast<size_t>(shadow->my_node)]) * size;
  if (shadow->node_size > 1) {
    op.timed([&] {
      const void* from = op.leads() ? MPI_IN_PLACE : all + place * size;
      return PMPI_Gather(from, static_cast<int>(size), MPI_BYTE, of_node, static_cast<int>(size),
                         MPI_BYTE, 0, shadow->node);
    });
  }
  if (op.leads()) {
    op.look(of_node, size * static_cast<size_t>(shadow->node_size));
    Ring(op, all, node_segments(*shadow, size)).all_gather();
  }
  node_bcast(op, all, static_cast<size_t>(total), 0);
  if (!direct && !op.error()) {
    for (size_t i = 0; i < shadow->members.size(); ++i) {
      const auto rank = static_cast<size_t>(shadow->members[i]);
      if (rank == me && in_place) continue;
      if (type.contiguous) {
        std::memcpy(user_block(rank), all + i * size, size);
      } else {
        op.check(deliver(all + i * size, size, user_block(rank), recvcount, recvtype));
      }
    }
  }
  return op.end();
}

// ---- Reduce_scatter_block ----

template <typename N>
int reduce_scatter_block(const void* sendbuf, void* recvbuf, N recvcount, MPI_Datatype datatype,
                         MPI_Op reduction, MPI_Comm handle) {
  const auto plain = [&] {
    return reduce_scatter_block_form<N>::call(sendbuf, recvbuf, recvcount, datatype, reduction,
                                              handle);
  };
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count block, total;
  if (!comm || comm->inter || !look_up(datatype, &type) || !product(recvcount, type.size, &block) ||
      !product(block, comm->size, &total) || block > static_cast<MPI_Count>(kPiece) ||
      !reducible(reduction, type.arithmetic) || !sendbuf || !recvbuf) {
    return plain();
  }
  Shadow* shadow = eligible(kReduceScatterBlock, comm, static_cast<size_t>(total));
  if (!shadow ||
      static_cast<size_t>(total) / static_cast<size_t>(shadow->n_nodes) < kLeastSegment) {
    return plain();
  }
  const auto size = static_cast<size_t>(block);
  Operation op(kReduceScatterBlock, comm, shadow, type);
  const Byte* input = static_cast<const Byte*>(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf);
  Buffer ordered, sums;
  if (!shadow->ordered) {
    if (!ordered.reserve(static_cast<size_t>(total))) return raise(comm, MPI_ERR_NO_MEM);
    to_node_order(*shadow, input, ordered.data(), size);
    input = ordered.data();
  }
  if (op.leads() && !sums.reserve(static_cast<size_t>(total))) return raise(comm, MPI_ERR_NO_MEM);
  node_reduce(op, input, sums.data(), static_cast<size_t>(total), datatype, reduction);
  const std::vector<Segment> segments = node_segments(*shadow, size);
  const size_t mine = segments[static_cast<size_t>(shadow->my_node)].offset;
  if (op.leads()) {
    op.look(sums.data(), static_cast<size_t>(total));
    Ring(op, sums.data(), segments).reduce_scatter(datatype, reduction);
  }
  op.timed([&] {
    return PMPI_Scatter(sums.data() ? sums.data() + mine : nullptr, static_cast<int>(size),
                        MPI_BYTE, recvbuf, static_cast<int>(size), MPI_BYTE, 0, shadow->node);
  });
  return op.end();
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_EXPORT int MPI_Bcast##suffix(void* buf, N count, MPI_Datatype type, int root,                \
                                   MPI_Comm comm) {                                                \
    return bcast<N>(buf, count, type, root, comm);                                                 \
  }                                                                                                \
  WPR_EXPORT int MPI_Allreduce##suffix(const void* sendbuf, void* recvbuf, N count,                \
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm) {              \
    return allreduce<N>(sendbuf, recvbuf, count, type, op, comm);                                  \
  }                                                                                                \
  WPR_EXPORT int MPI_Allgather##suffix(const void* sendbuf, N sendcount, MPI_Datatype sendtype,    \
                                       void* recvbuf, N recvcount, MPI_Datatype recvtype,          \
                                       MPI_Comm comm) {                                            \
    return allgather<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);         \
  }                                                                                                \
  WPR_EXPORT int MPI_Reduce_scatter_block##suffix(const void* sendbuf, void* recvbuf, N recvcount, \
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm) {   \
    return reduce_scatter_block<N>(sendbuf, recvbuf, recvcount, type, op, comm);                   \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
