// SPDX-License-Identifier: Apache-2.0
// Bcast and Allgather between nodes.
#include "collectives/collectives.hpp"

#include "recording/trace.hpp"

namespace wirepress {
namespace {

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

// Without `data` a rank forwards what comes, and drops it. If it is the root all others get an
// error: it sends empty chunks.
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
        frames_(n_chunks_) {
    if (data_) return;
    op_.check(MPI_ERR_NO_MEM);
    for (Buffer& slot : slots_) slot.reserve(op_.chunk_, true);
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
  Byte* at(size_t c) { return data_ ? data_ + c * op_.chunk_ : slots_[c % slots_.size()].data(); }
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
        if (frames_[c].reserve(wire_size, true)) {
          std::memcpy(frames_[c].data(), at(c), wire_size);
        } else {
          op_.check(MPI_ERR_NO_MEM);
        }
      }
    } else if (!data_ || is_spoiled(at(c), size(c))) {
      wire_size = 0;
    } else {
      // Only a leader that is the root has more than this chunk to look at.
      if (c == 0) op_.look(data_, root_in_node_ == 0 ? size_ : size(0));
      wire_size = op_.compress(at(c), size(c), &frames_[c]);
    }
    const Byte* wire = frames_[c].data() ? frames_[c].data() : at(c);
    for (size_t k = 0; k < tree_.children.size(); ++k) {
      op_.send(wire, wire_size, size(c), tree_.children[k], &sent_[c * tree_.children.size() + k]);
    }
    if (receives() && wire_size != size(c) && frames_[c].data()) {
      op_.expand_chunk(wire, wire_size, at(c), size(c));
    }
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
  // Of a rank without data: a chunk is overwritten when it is sent, not when it is received.
  std::array<Buffer, 2 * kInFlight> slots_;
};

int own_bcast(Comm* comm, Shadow* shadow, void* buffer, MPI_Count count, MPI_Datatype datatype,
              const Type& type, size_t size, int root) {
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
    if (!data) ++self_thread().events.no_memory;
  }
  Broadcast(op, data, size, root).run();
  if (!type.contiguous && comm->rank != root && !op.error()) {
    op.check(deliver(data, size, buffer, count, datatype));
  }
  return op.end();
}

template <typename N>
int bcast(void* buffer, N count, MPI_Datatype datatype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kBcast, handle, why,
               [&](Across& across) { across.bcast(buffer, count, datatype, root, handle); });
    return bcast_form<N>::call(buffer, count, datatype, root, handle);
  };
  Comm* comm = collective_comm(handle);
  Type type;
  MPI_Count total;
  if (!comm || comm->inter || !look_up(datatype, &type) || !product(count, type.size, &total) ||
      root < 0 || root >= comm->size || (!buffer && type.contiguous)) {
    return plain();
  }
  const auto size = static_cast<size_t>(total);
  return run_collective(kBcast, comm, size, plain, [&](Shadow* shadow) {
    return own_bcast(comm, shadow, buffer, count, datatype, type, size, root);
  });
}

// ---- Allgather ----

struct GatherArgs {
  const void* sendbuf;
  MPI_Count sendcount;
  MPI_Datatype sendtype;
  bool plain_send;  // contiguous
  void* recvbuf;
  MPI_Count recvcount;
  MPI_Datatype recvtype;
};

// Packed, all blocks in node order, this is what the user's buffer holds itself.
bool is_direct(const Shadow& shadow, const Type& type) { return type.contiguous && shadow.ordered; }

int own_allgather(Comm* comm, Shadow* shadow, const GatherArgs& args, const Type& type, size_t size,
                  const Room& room) {
  const bool in_place = args.sendbuf == MPI_IN_PLACE;
  const size_t total = size * static_cast<size_t>(comm->size);
  const auto me = static_cast<size_t>(comm->rank);
  Type bytes = type;
  if (!type.contiguous) bytes.element = 1, bytes.dtype = WPR_BYTES;
  Operation op(kAllgather, comm, shadow, bytes);

  const bool direct = is_direct(*shadow, type);
  Byte* all = direct ? static_cast<Byte*>(args.recvbuf) : room.data();
  const size_t place = static_cast<size_t>(shadow->first[static_cast<size_t>(shadow->my_node)]) +
                       static_cast<size_t>(shadow->node_rank);
  MPI_Aint lower, extent;
  PMPI_Type_get_extent(args.recvtype, &lower, &extent);
  const auto user_block = [&](size_t rank) {
    return static_cast<Byte*>(args.recvbuf) +
           static_cast<MPI_Aint>(rank) * static_cast<MPI_Aint>(args.recvcount) * extent;
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
    bring(user_block(me), args.recvcount, args.recvtype, type.contiguous);
  } else {
    bring(args.sendbuf, args.sendcount, args.sendtype, args.plain_send);
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
    Exchange(op, all, node_segments(*shadow, size)).all_gather();
  }
  node_bcast(op, all, total, 0);
  if (!direct && !op.error()) {
    for (size_t i = 0; i < shadow->members.size(); ++i) {
      const auto rank = static_cast<size_t>(shadow->members[i]);
      // Coding may have changed it: all ranks are to have what the others got.
      if (rank == me && in_place && job().bound.kind == Bound::kNone) continue;
      if (type.contiguous) {
        std::memcpy(user_block(rank), all + i * size, size);
      } else {
        op.check(deliver(all + i * size, size, user_block(rank), args.recvcount, args.recvtype));
      }
    }
  }
  return op.end();
}

template <typename N>
int allgather(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, N recvcount,
              MPI_Datatype recvtype, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAllgather, handle, why, [&](Across& across) {
      across.allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle);
    });
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
  const auto size = static_cast<size_t>(block);
  return run_collective(kAllgather, comm, static_cast<size_t>(total), plain, [&](Shadow* shadow) {
    const GatherArgs args{sendbuf, sendcount, sendtype, sent.contiguous,
                          recvbuf, recvcount, recvtype};
    Room room;
    const auto most = static_cast<size_t>(total);
    if (!room.get(shadow, most, is_direct(*shadow, type) ? 0 : most)) return plain();
    return own_allgather(comm, shadow, args, type, size, room);
  });
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                   \
  WPR_WRAP(MPI_Bcast##suffix, void* buf, N count, MPI_Datatype type, int root, MPI_Comm comm) { \
    WPR_NOTE_CALLER;                                                                            \
    WPR_TRACE(kBcast, comm, bcast(buf, count, type, root, comm),                                \
              bcast<N>(buf, count, type, root, comm));                                          \
  }                                                                                             \
  WPR_WRAP(MPI_Allgather##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,      \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, MPI_Comm comm) {                  \
    WPR_NOTE_CALLER;                                                                            \
    WPR_TRACE(kAllgather, comm,                                                                 \
              allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),      \
              allgather<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));  \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
