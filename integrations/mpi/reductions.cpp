// SPDX-License-Identifier: Apache-2.0
// Allreduce and Reduce_scatter_block between nodes.
#include "collectives.hpp"

namespace wirepress {
namespace {

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

int own_allreduce(Comm* comm, Shadow* shadow, const void* sendbuf, void* recvbuf, size_t count,
                  const Type& type, size_t size, MPI_Datatype datatype, MPI_Op reduction) {
  Operation op(kAllreduce, comm, shadow, type);
  Byte* result = static_cast<Byte*>(recvbuf);
  // Where a program passes one buffer twice it means MPI_IN_PLACE.
  const Byte* input = sendbuf == MPI_IN_PLACE ? result : static_cast<const Byte*>(sendbuf);
  const size_t per_lane = size / static_cast<size_t>(shadow->n_nodes * shadow->node_size);
  const bool lanes =
      shadow->even && shadow->node_size > 1 && per_lane >= kLeastSegment && size <= INT_MAX;
  (lanes ? allreduce_by_lanes : allreduce_by_leaders)(op, input, result, count, datatype,
                                                      reduction);
  return op.end();
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
  const auto size = static_cast<size_t>(total);
  return run_collective(kAllreduce, comm, size, plain, [&](Shadow* shadow) {
    return own_allreduce(comm, shadow, sendbuf, recvbuf, static_cast<size_t>(count), type, size,
                         datatype, reduction);
  });
}

// ---- Reduce_scatter_block ----

int own_reduce_scatter_block(Comm* comm, Shadow* shadow, const void* sendbuf, void* recvbuf,
                             const Type& type, size_t size, MPI_Datatype datatype,
                             MPI_Op reduction) {
  const size_t total = size * static_cast<size_t>(comm->size);
  Operation op(kReduceScatterBlock, comm, shadow, type);
  const Byte* input = static_cast<const Byte*>(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf);
  Buffer ordered, sums;
  if (!shadow->ordered) {
    if (!ordered.reserve(total)) return raise(comm, MPI_ERR_NO_MEM);
    to_node_order(*shadow, input, ordered.data(), size);
    input = ordered.data();
  }
  if (op.leads() && !sums.reserve(total)) return raise(comm, MPI_ERR_NO_MEM);
  node_reduce(op, input, sums.data(), total, datatype, reduction);
  const std::vector<Segment> segments = node_segments(*shadow, size);
  const size_t mine = segments[static_cast<size_t>(shadow->my_node)].offset;
  if (op.leads()) {
    op.look(sums.data(), total);
    Ring(op, sums.data(), segments).reduce_scatter(datatype, reduction);
  }
  op.timed([&] {
    return PMPI_Scatter(sums.data() ? sums.data() + mine : nullptr, static_cast<int>(size),
                        MPI_BYTE, recvbuf, static_cast<int>(size), MPI_BYTE, 0, shadow->node);
  });
  return op.end();
}

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
  const auto size = static_cast<size_t>(block);
  return run_collective(kReduceScatterBlock, comm, static_cast<size_t>(total), plain,
                        [&](Shadow* shadow) {
                          return own_reduce_scatter_block(comm, shadow, sendbuf, recvbuf, type,
                                                          size, datatype, reduction);
                        });
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_EXPORT int MPI_Allreduce##suffix(const void* sendbuf, void* recvbuf, N count,                \
                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm) {              \
    return allreduce<N>(sendbuf, recvbuf, count, type, op, comm);                                  \
  }                                                                                                \
  WPR_EXPORT int MPI_Reduce_scatter_block##suffix(const void* sendbuf, void* recvbuf, N recvcount, \
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm) {   \
    return reduce_scatter_block<N>(sendbuf, recvbuf, recvcount, type, op, comm);                   \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
