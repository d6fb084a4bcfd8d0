// SPDX-License-Identifier: Apache-2.0
// Bcast between nodes.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "calls/arguments.hpp"
#include "collectives/operation.hpp"
#include "collectives/run.hpp"

namespace wirepress {
namespace {

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

// Without `data` a rank forwards what comes, and drops it. If it is the root all others get an
// error: it sends empty chunks. Data on a device are those of a rank that is alone on its node:
// they are coded and expanded there, and the cores have what travels.
class Broadcast {
 public:
  Broadcast(Operation& op, Byte* data, size_t size, int root)
      : op_(op),
        data_(data),
        there_(data && on_device(data)),
        size_(size),
        n_chunks_((size + op.chunk() - 1) / op.chunk()),
        root_node_(op.shadow().node_of[static_cast<size_t>(root)]),
        root_in_node_(op.shadow().rank_in_node[static_cast<size_t>(root)]),
        tree_(op.shadow().n_nodes, op.shadow().my_node, root_node_,
              n_chunks_ >= static_cast<size_t>(op.shadow().n_nodes)),
        received_(n_chunks_, MPI_REQUEST_NULL),
        sent_(n_chunks_ * tree_.children.size(), MPI_REQUEST_NULL),
        frames_(n_chunks_) {
    if (data_) return;
    op_.check(MPI_ERR_NO_MEM);
    for (Buffer& slot : slots_) slot.reserve(op_.chunk(), true);
  }

  void run() {
    const bool at_root = op_.shadow().my_node == root_node_;
    const bool own = !data_ || !at_root;
    for (size_t c = 0; c < std::min(kInFlight, n_chunks_); ++c) post(c);
    for (size_t c = 0; c < n_chunks_; ++c) {
      const int in_node = at_root ? root_in_node_ : 0;
      // The leader of the root's node needs the chunk first; elsewhere it brings it.
      if (at_root && root_in_node_ != 0) node_bcast(op_, at(c), size(c), in_node, own);
      if (op_.leads()) pass(c);
      if (!(at_root && root_in_node_ != 0)) node_bcast(op_, at(c), size(c), in_node, own);
    }
    for (size_t c = 0; c < n_chunks_; ++c) settle(c);
  }

 private:
  Byte* at(size_t c) { return data_ ? data_ + c * op_.chunk() : slots_[c % slots_.size()].data(); }
  size_t size(size_t c) const { return std::min(op_.chunk(), size_ - c * op_.chunk()); }
  bool receives() { return op_.leads() && tree_.parent >= 0; }

  void post(size_t c) {
    if (!receives()) return;
    // Room for every chunk on its way is set aside (buffer.hpp).
    if (there_ && !frames_[c].reserve(size(c), true)) op_.check(MPI_ERR_NO_MEM);
    op_.receive(there_ ? frames_[c].data() : at(c), size(c), tree_.parent, &received_[c]);
  }

  void pass(size_t c) {
    if (c >= kInFlight) settle(c - kInFlight);
    size_t wire_size;
    if (receives()) {
      wire_size = op_.wait(&received_[c]);
      op_.count_received(wire_size, size(c));
      if (c + kInFlight < n_chunks_) post(c + kInFlight);
      if (wire_size != size(c) && !there_) {
        if (frames_[c].reserve(wire_size, true)) {
          std::memcpy(frames_[c].data(), at(c), wire_size);
        } else {
          op_.check(MPI_ERR_NO_MEM);
        }
      }
    } else if (!data_ || (!there_ && is_spoiled(at(c), size(c)))) {
      wire_size = 0;
    } else {
      // Only a leader that is the root has more than this chunk to look at.
      if (c == 0) op_.look(data_, root_in_node_ == 0 ? size_ : size(0));
      wire_size = op_.compress(at(c), size(c), &frames_[c]);
      if (there_ && wire_size == size(c)) wire_size = bring(c);
    }
    const Byte* wire = frames_[c].data() ? frames_[c].data() : at(c);
    for (size_t k = 0; k < tree_.children.size(); ++k) {
      op_.send(wire, wire_size, size(c), tree_.children[k], &sent_[c * tree_.children.size() + k]);
    }
    if (receives() && there_ && wire_size == size(c)) {
      op_.check(copy_bytes(at(c), wire, wire_size));
    } else if (receives() && wire_size != size(c) && frames_[c].data()) {
      op_.expand_chunk(wire, wire_size, at(c), size(c));
    }
  }

  // A chunk of the device's to the cores; 0, an error for who receives it: it cannot be had.
  size_t bring(size_t c) {
    const int error = frames_[c].reserve(size(c), true)
                          ? copy_bytes(frames_[c].data(), at(c), size(c))
                          : MPI_ERR_NO_MEM;
    op_.check(error);
    return error ? 0 : size(c);
  }

  void settle(size_t c) {
    for (size_t k = 0; k < tree_.children.size(); ++k) {
      op_.wait_sent(&sent_[c * tree_.children.size() + k]);
    }
    frames_[c].release();
  }

  Operation& op_;
  Byte* data_;
  bool there_;
  size_t size_, n_chunks_;
  int root_node_, root_in_node_;
  Tree tree_;
  std::vector<MPI_Request> received_, sent_;
  std::vector<Buffer> frames_;
  // Of a rank without data: a chunk is overwritten when it is sent, not when it is received.
  std::array<Buffer, 2 * kInFlight> slots_;
};

int own_bcast(Comm* comm, Shadow* shadow, void* buffer, MPI_Count count, MPI_Datatype datatype,
              const Type& type, size_t size, int root) {
  // Members may describe the same bytes by different types: chunks are cut by bytes.
  Type bytes = type;
  if (!type.contiguous) bytes.forget_elements();
  Operation op(kBcast, comm, shadow, bytes);
  Buffer packed;
  Byte* data = static_cast<Byte*>(buffer);
  if (!type.contiguous) {
    packed.reserve(size);
    data = packed.data();
    if (data && comm->rank == root) op.check(collect(buffer, count, datatype, data, size));
    if (!data) ++self_thread().events.no_memory;
  }
  Broadcast(op, data, size, root).run();
  if (!type.contiguous && comm->rank != root && !op.error()) {
    op.check(deliver(data, size, buffer, count, datatype));
  }
  return op.end();
}

template <auto form, typename N>
int bcast(BCAST(N)) {
  const auto plain = [&](Bypass why = kUnsupported) {
    return WPR_ON_HOST_Bcast(LEFT_TO_MPI(kBcast, BCAST)(why));
  };
  Comm* comm = collective_comm(handle);
  Type known;
  MPI_Count total;
  if (!comm || comm->inter || !look_up(type, &known) || !product(n, known.size, &total) ||
      root < 0 || root >= comm->size || (!buf && known.contiguous)) {
    return plain();
  }
  const auto size = static_cast<size_t>(total);
  return run_collective(kBcast, comm, size, plain, [&](Shadow* shadow) {
    const auto own = [&](void* buffer) {
      return own_bcast(comm, shadow, buffer, n, type, known, size, root);
    };
    const bool alone = shadow->node_size == 1 && known.contiguous;
    return alone ? own(buf) : WPR_ON_HOST_Bcast(own(buf));
  });
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

// Where its buffer lies bcast() asks, after it is known who runs the call.
#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_WRAP_QUICK(surely_stays_on_cores(kBcast, handle), Bcast##suffix, (BCAST(N)), (BCAST_ARGS)) { \
    if (all_stay(kBcast, handle, BCAST_BUFFERS)) return PMPI_Bcast##suffix(BCAST_ARGS);            \
    WPR_TRACE(kBcast, handle, BCAST_FORM(BCAST_ARGS), bcast<PMPI_Bcast##suffix>(BCAST_ARGS));      \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
