// SPDX-License-Identifier: Apache-2.0
// Allgather and Allgatherv between nodes.
#include <cstring>
#include <vector>

#include "calls/arguments.hpp"
#include "collectives/blocks.hpp"
#include "collectives/exchange.hpp"
#include "collectives/run.hpp"

namespace wirepress {
namespace {

// ---- Allgather ----

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
  if (!type.contiguous) bytes.forget_elements();
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
      op.check(copy_bytes(all + place * size, from, size));
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
      if (rank == me && in_place && job().bound.kind == WPR_ERROR_NONE) continue;
      if (type.contiguous) {
        std::memcpy(user_block(rank), all + i * size, size);
      } else {
        op.check(deliver(all + i * size, size, user_block(rank), args.recvcount, args.recvtype));
      }
    }
  }
  return op.end();
}

template <auto form, typename N>
int allgather(ALLGATHER(N)) {
  const auto plain = LEFT_TO_MPI(Allgather, ALLGATHER);
  Comm* comm = collective_comm(handle);
  Type got, sent;
  MPI_Count block, total, own;
  const bool in_place = from == MPI_IN_PLACE;
  if (!comm || comm->inter || !look_up(to_type, &got) || !product(m, got.size, &block) ||
      !product(block, comm->size, &total) || block > static_cast<MPI_Count>(kMostAtOnce) ||
      (got.contiguous && !to) ||
      (!in_place && (!look_up(type, &sent) || !product(n, sent.size, &own) || own != block ||
                     (sent.contiguous && !from)))) {
    return plain();
  }
  const auto size = static_cast<size_t>(block);
  return run_collective(kAllgather, comm, static_cast<size_t>(total), plain, [&](Shadow* shadow) {
    Room room;
    const auto most = static_cast<size_t>(total);
    const bool direct = is_direct(*shadow, got);
    if (!room.get(shadow, most, direct ? 0 : most)) return plain();
    const auto own = [&](const void* mine, void* all) {
      const GatherArgs args{mine, n, type, sent.contiguous, all, m, to_type};
      return own_allgather(comm, shadow, args, got, size, room);
    };
    const bool there = is_alone(*shadow) && direct && (in_place || sent.contiguous);
    return there ? own(from, to) : WPR_ON_HOST_Allgather(own(from, to));
  });
}

// ---- Allgatherv ----

// Where each node's blocks stand in the user's buffer, if they follow each other there; else none.
template <typename N, typename D>
std::vector<Segment> segments_there(const Shadow& shadow, const Varying<N, D>& blocks,
                                    size_t element) {
  std::vector<Segment> segments;
  for (int node = 0; node < shadow.n_nodes; ++node) {
    const auto first = static_cast<size_t>(shadow.first[static_cast<size_t>(node)]);
    const auto end = static_cast<size_t>(shadow.first[static_cast<size_t>(node) + 1]);
    MPI_Aint begin = -1, next = -1;
    for (size_t i = first; i < end; ++i) {
      const int rank = shadow.members[i];
      if (blocks.counts[rank] == 0) continue;
      const auto at = static_cast<MPI_Aint>(blocks.at[rank]);
      if (at < 0 || (next >= 0 && at != next)) return {};
      if (begin < 0) begin = at;
      next = at + static_cast<MPI_Aint>(blocks.counts[rank]);
    }
    const auto from = static_cast<size_t>(begin < 0 ? 0 : begin);
    segments.push_back(
        {from * element, static_cast<size_t>(begin < 0 ? 0 : next - begin) * element});
  }
  return segments;
}

// Of data that are coded where they lie, by this rank alone.
template <typename N, typename D>
int allgatherv_there(Comm* comm, Shadow* shadow, const Block& mine, const Varying<N, D>& blocks,
                     bool in_place, const Type& type, const std::vector<Segment>& segments) {
  Operation op(kAllgatherv, comm, shadow, type);
  Byte* all = bytes_of(blocks.base);
  const Segment& own = segments[static_cast<size_t>(shadow->my_node)];
  if (!in_place) op.check(copy_bytes(all + own.offset, mine.buffer, own.size));
  if (own.size) op.look(all + own.offset, own.size);
  Exchange(op, all, segments).all_gather();
  return op.end();
}

template <typename N, typename D>
int own_allgatherv(Comm* comm, Shadow* shadow, const Block& mine, const Varying<N, D>& blocks,
                   bool in_place, const Type& type, const Room& room) {
  Operation op(kAllgatherv, comm, shadow, type);
  const auto element = static_cast<size_t>(type.size);
  const size_t n = shadow->members.size();
  std::vector<size_t> begin(n + 1, 0);  // of blocks in node order
  size_t my_place = 0;
  for (size_t i = 0; i < n; ++i) {
    const int rank = shadow->members[i];
    begin[i + 1] = begin[i] + static_cast<size_t>(blocks.counts[rank]) * element;
    if (rank == comm->rank) my_place = i;
  }
  Byte* all = room.data();
  const size_t my_size = begin[my_place + 1] - begin[my_place];
  const Block own = in_place ? blocks(comm->rank) : mine;
  if (my_size) {
    op.check(collect(own.buffer, own.count, own.type, all + begin[my_place], my_size));
  }

  const auto first = [&](int node) {
    return static_cast<size_t>(shadow->first[static_cast<size_t>(node)]);
  };
  const size_t node_begin = begin[first(shadow->my_node)];
  if (shadow->node_size > 1) {
    std::vector<int> sizes, at;
    for (size_t i = first(shadow->my_node); i < first(shadow->my_node + 1); ++i) {
      sizes.push_back(static_cast<int>(begin[i + 1] - begin[i]));
      at.push_back(static_cast<int>(begin[i] - node_begin));
    }
    op.timed([&] {
      const void* from = op.leads() ? MPI_IN_PLACE : all + begin[my_place];
      return PMPI_Gatherv(from, static_cast<int>(my_size), MPI_BYTE, all + node_begin, sizes.data(),
                          at.data(), MPI_BYTE, 0, shadow->node);
    });
  }
  if (op.leads()) {
    std::vector<Segment> segments;
    segments.reserve(static_cast<size_t>(shadow->n_nodes));
    for (int i = 0; i < shadow->n_nodes; ++i) {
      segments.push_back({begin[first(i)], begin[first(i + 1)] - begin[first(i)]});
    }
    const Segment& node = segments[static_cast<size_t>(shadow->my_node)];
    if (node.size) op.look(all + node.offset, node.size);
    Exchange(op, all, segments).all_gather();
  }
  node_bcast(op, all, begin[n], 0);
  for (size_t i = 0; i < n && !op.error(); ++i) {
    const size_t size = begin[i + 1] - begin[i];
    // Coding may have changed my own block: all ranks are to have what the others got.
    const bool mine_is_there = i == my_place && in_place && job().bound.kind == WPR_ERROR_NONE;
    if (size == 0 || mine_is_there) continue;
    const Block block = blocks(shadow->members[i]);
    op.check(deliver(all + begin[i], size, block.buffer, block.count, block.type));
  }
  return op.end();
}

template <auto form, typename N>
int allgatherv(ALLGATHERV(N)) {
  const auto plain = LEFT_TO_MPI(Allgatherv, ALLGATHERV);
  Comm* comm = collective_comm(handle);
  Type known;
  if (!comm || comm->inter || !counts || !at || !look_up(to_type, &known)) return plain();
  MPI_Count total = 0, size;
  for (int i = 0; i < comm->size; ++i) {
    if (!block_size({nullptr, counts[i], to_type}, &size) ||
        __builtin_add_overflow(total, size, &total)) {
      return plain();
    }
  }
  const bool in_place = from == MPI_IN_PLACE;
  if (total == 0 || total > static_cast<MPI_Count>(kMostAtOnce) ||
      (!in_place && !block_size({nullptr, n, type}, &size))) {
    return plain();
  }
  return run_collective(kAllgatherv, comm, static_cast<size_t>(total), plain, [&](Shadow* shadow) {
    Room room;
    const auto size_of_all = static_cast<size_t>(total);
    if (!room.get(shadow, size_of_all, size_of_all)) return plain();
    Type sent;
    const bool packed = known.contiguous && (in_place || (look_up(type, &sent) && sent.contiguous));
    if (packed && is_alone(*shadow) && any_devices()) {
      const Varying blocks(to, counts, at, to_type);
      const auto there = segments_there(*shadow, blocks, static_cast<size_t>(known.size));
      if (!there.empty() && (on_device(from) || on_device(bytes_of(to), there))) {
        return allgatherv_there(comm, shadow, {bytes_of(from), n, type}, blocks, in_place, known,
                                there);
      }
    }
    const auto own = [&](const void* mine, void* all) {
      return own_allgatherv(comm, shadow, {bytes_of(mine), n, type},
                            Varying(all, counts, at, to_type), in_place, known, room);
    };
    return WPR_ON_HOST_Allgatherv(own(from, to));
  });
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                       \
  DEFINE_OWN(suffix, N, Allgather, Allgather, ALLGATHER, allgather) \
  DEFINE_OWN(suffix, N, Allgatherv, Allgatherv, ALLGATHERV, allgatherv)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
