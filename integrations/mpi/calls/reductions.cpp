// SPDX-License-Identifier: Apache-2.0
// Allreduce, Reduce, Reduce_scatter and Reduce_scatter_block between nodes.
//
// A node's ranks reduce among themselves first, by MPI in shared memory; then nodes exchange parts
// (Exchange::reduce_scatter), and the reduced parts go where they are wanted. How a bound on the
// error of the result is kept is in docs/guides/mpi-error-bounds.md.
#include <climits>
#include <cstring>
#include <utility>
#include <vector>

#include "calls/arguments.hpp"
#include "collectives/exchange.hpp"
#include "collectives/run.hpp"

namespace wirepress {
namespace {

struct Reduction {
  MPI_Datatype type;
  MPI_Op op;
  Arithmetic arithmetic;
  size_t element;  // bytes
};

// Predefined operations that commute, on types that they are defined for.
bool reducible(MPI_Op op, Arithmetic kind) {
  using A = Arithmetic;
  if (kind == A::kNone) return false;
  // Errors of factors multiply: no bound on the result could be kept.
  const bool inexact = kind == A::kFloat || kind == A::kComplex;
  if (op == MPI_PROD && inexact && job().bound.kind != WPR_ERROR_NONE) return false;
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

// Whether the order of the operands can be seen in the result.
bool order_matters(const Reduction& reduction) {
  return (reduction.op == MPI_SUM || reduction.op == MPI_PROD) &&
         (reduction.arithmetic == Arithmetic::kFloat ||
          reduction.arithmetic == Arithmetic::kComplex);
}

// ---- inside a node ----

// In the order of ranks, whoever comes first: the leader collects and reduces.
void ordered_reduce(Operation& op, const Byte* input, Byte* result, size_t size,
                    const Reduction& reduction) {
  const size_t most = gathered_size(op.shadow()) / reduction.element * reduction.element;
  const auto n_ranks = static_cast<size_t>(op.shadow().node_size);
  const Buffer& all = op.shadow().gathered;
  for (size_t at = 0; at < size; at += most) {
    const int n = static_cast<int>(std::min(most, size - at));
    op.timed([&] {
      return PMPI_Gather(input + at, n, MPI_BYTE, all.data(), n, MPI_BYTE, 0, op.shadow().node);
    });
    if (!op.leads() || op.error()) continue;
    std::memcpy(result + at, all.data(), static_cast<size_t>(n));
    const int count = n / static_cast<int>(reduction.element);
    for (size_t r = 1; r < n_ranks; ++r) {
      op.check(PMPI_Reduce_local(all.data() + r * static_cast<size_t>(n), result + at, count,
                                 reduction.type, reduction.op));
    }
  }
}

// The node's sum, in `result` of its leader, which may be `input`. Returns where it is: of a node
// of one rank it is the input itself, which is not copied where others follow.
const Byte* node_reduce(Operation& op, const Byte* input, Byte* result, size_t size,
                        const Reduction& reduction) {
  if (op.shadow().node_size == 1) {
    if (op.shadow().n_nodes > 1) return input;
    if (input != result) std::memcpy(result, input, size);
    return result;
  }
  if (job().deterministic && order_matters(reduction)) {
    ordered_reduce(op, input, result, size, reduction);
    return result;
  }
  in_parts(size, reduction.element, [&](size_t at, size_t n) {
    const void* from = op.leads() && input == result ? MPI_IN_PLACE : input + at;
    op.timed([&] {
      return PMPI_Reduce(from, op.leads() ? result + at : nullptr,
                         static_cast<int>(n / reduction.element), reduction.type, reduction.op, 0,
                         op.shadow().node);
    });
  });
  return result;
}

// A vector cut in one part for each rank of a node.
struct Lanes {
  std::vector<int> counts, begins;  // elements
  Lanes(size_t first, size_t count, int n) {
    for (const Segment& lane : split(count, 1, static_cast<size_t>(n))) {
      counts.push_back(static_cast<int>(lane.size));
      begins.push_back(static_cast<int>(first + lane.offset));
    }
  }
};

// Every rank of a node reduces, exchanges and hands out a part: codecs run on as many cores as
// there are ranks, and while one rank compresses another keeps the link busy.
bool by_lanes(const Shadow& shadow, const Reduction& reduction, size_t size) {
  const size_t per_lane = size / static_cast<size_t>(shadow.n_nodes * shadow.node_size);
  return shadow.even && shadow.node_size > 1 && per_lane >= kLeastSegment && size <= INT_MAX &&
         !(job().deterministic && order_matters(reduction));
}

// ---- Allreduce ----

// Whether two nodes send each other whole operands. Coded with a loss each would have its own
// values exact and the other's not.
bool swaps(const Operation& op, double ratio) {
  constexpr double kSparse = 3;
  return op.shadow().n_nodes == 2 && ratio >= kSparse && job().bound.kind == WPR_ERROR_NONE &&
         !job().deterministic;
}

// Between the nodes of a lane: afterwards `result` is the reduction of their `input`s.
void reduce_between(Operation& op, const Byte* input, Byte* result, size_t count,
                    const Reduction& reduction, int link) {
  constexpr size_t kWorthAgreeing = 1 << 20;  // bytes: it takes as long as a message there and back
  const size_t size = count * reduction.element;
  op.look(input, size, link);
  const bool here = !on_device(input) && !on_device(result);
  const double ratio = size >= kWorthAgreeing ? op.agreed_ratio(here) : 1;
  if (swaps(op, ratio)) {
    op.widen(ratio);
    const Segment all{0, size};
    return Exchange(op, result, {all, all}).reduce_both(reduction.type, reduction.op, input);
  }
  const auto n_nodes = static_cast<size_t>(op.shadow().n_nodes);
  op.widen(ratio / static_cast<double>(n_nodes));  // where no two operands have the same zeros
  Exchange exchange(op, result, split(count, reduction.element, n_nodes));
  exchange.reduce_scatter(reduction.type, reduction.op, input);
  exchange.all_gather();
}

// The leader reduces the node's vectors, exchanges them with other leaders, and hands them out.
void allreduce_by_leaders(Operation& op, const Byte* input, Byte* result, size_t count,
                          const Reduction& reduction) {
  const size_t size = count * reduction.element;
  const Byte* sums = node_reduce(op, input, result, size, reduction);
  if (op.leads()) reduce_between(op, sums, result, count, reduction, kLeadersLink);
  node_bcast(op, result, size, 0);
}

// Partitions overlap: while one is between the nodes, the next is reduced and the one before it is
// handed out, in shared memory.
class LaneAllreduce {
 public:
  LaneAllreduce(Operation& op, const Byte* input, Byte* result, size_t count,
                const Reduction& reduction)
      : op_(op), input_(input), result_(result), reduction_(reduction) {
    constexpr size_t kLeastPartition = 4 << 20;
    const size_t most = std::max(count * reduction.element / kLeastPartition, size_t{1});
    for (const Segment& s : split(count, 1, std::min(most, job().partitions))) {
      parts_.emplace_back(s.offset, s.size, op.shadow().node_size);
    }
  }

  void run() {
    for (Part& part : parts_) {
      if (!part.sums.reserve(bytes(part))) go_in_place(part);
    }
    start(parts_[0]);
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (p + 1 < parts_.size()) start(parts_[p + 1]);
      exchange(parts_[p]);
      hand_out(parts_[p]);
    }
    for (Part& part : parts_) op_.wait_sent(&part.request);
  }

 private:
  struct Part : Lanes {
    Part(size_t first, size_t n_elements, int n)
        : Lanes(first, n_elements, n), begin(first), count(n_elements) {}
    size_t begin, count;
    Buffer sums;
    bool in_place = false;  // the sums are at the begin of the part in the result
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int mine(const Part& part) const {
    return part.counts[static_cast<size_t>(op_.shadow().node_rank)];
  }
  size_t bytes(const Part& part) const {
    return static_cast<size_t>(mine(part)) * reduction_.element;
  }

  Byte* place(size_t element) const { return result_ + element * reduction_.element; }
  Byte* sums(const Part& part) const {
    return part.in_place ? place(part.begin) : part.sums.data();
  }

  // Where memory has run out.
  void go_in_place(Part& part) {
    ++self_thread().events.no_memory;
    part.in_place = true;
    if (input_ == result_) return;
    std::memcpy(place(part.begin), input_ + part.begin * reduction_.element,
                part.count * reduction_.element);
  }

  void start(Part& part) {
    const void* from = input_ + part.begin * reduction_.element;
    if (part.in_place) from = MPI_IN_PLACE;
    op_.timed([&] {
      return PMPI_Ireduce_scatter(from, sums(part), part.counts.data(), reduction_.type,
                                  reduction_.op, op_.shadow().node, &part.request);
    });
  }

  void exchange(Part& part) {
    op_.wait_sent(&part.request);
    reduce_between(op_, sums(part), sums(part), static_cast<size_t>(mine(part)), reduction_,
                   kCollectiveLink);
  }

  void hand_out(Part& part) {
    const void* from = part.sums.data();
    if (part.in_place) {
      const int at = part.begins[static_cast<size_t>(op_.shadow().node_rank)];
      std::memmove(place(static_cast<size_t>(at)), sums(part), bytes(part));
      from = MPI_IN_PLACE;
    }
    op_.timed([&] {
      return PMPI_Iallgatherv(from, mine(part), reduction_.type, result_, part.counts.data(),
                              part.begins.data(), reduction_.type, op_.shadow().node,
                              &part.request);
    });
  }

  Operation& op_;
  const Byte* input_;
  Byte* result_;
  const Reduction& reduction_;
  std::vector<Part> parts_;
};

int own_allreduce(Comm* comm, Shadow* shadow, const void* sendbuf, void* recvbuf, size_t count,
                  const Type& type, const Reduction& reduction) {
  Operation op(kAllreduce, comm, shadow, type);
  Byte* result = static_cast<Byte*>(recvbuf);
  // Where a program passes one buffer twice it means MPI_IN_PLACE.
  const Byte* input = sendbuf == MPI_IN_PLACE ? result : static_cast<const Byte*>(sendbuf);
  if (by_lanes(*shadow, reduction, count * reduction.element)) {
    LaneAllreduce(op, input, result, count, reduction).run();
  } else {
    allreduce_by_leaders(op, input, result, count, reduction);
  }
  return op.end();
}

bool always_ours(const Reduction& reduction) {
  return job().deterministic && order_matters(reduction);
}

template <auto form, typename N>
int allreduce(ALLREDUCE(N)) {
  const auto plain = LEFT_TO_MPI(Allreduce, ALLREDUCE);
  Comm* comm = collective_comm(handle);
  Type known;
  MPI_Count total;
  if (!comm || comm->inter || !look_up(type, &known) || !product(n, known.size, &total) ||
      !reducible(op, known.arithmetic) || !from || !to) {
    return plain();
  }
  const Reduction reduction{type, op, known.arithmetic, static_cast<size_t>(known.size)};
  return run_collective(
      kAllreduce, comm, static_cast<size_t>(total), plain,
      [&](Shadow* shadow) {
        const auto own = [&](const void* input, void* result) {
          return own_allreduce(comm, shadow, input, result, static_cast<size_t>(n), known,
                               reduction);
        };
        return is_alone(*shadow) ? own(from, to) : WPR_ON_HOST_Allreduce(own(from, to));
      },
      always_ours(reduction), known.dtype);
}

// ---- Reduce ----

// From the leader of the root's node to the root.
void hand_to_root(Operation& op, Byte* result, size_t size, int root_in_node) {
  if (root_in_node == 0) return;
  if (op.leads() && op.error()) spoil(result, size);
  in_parts(size, 1, [&](size_t at, size_t n) {
    op.timed([&] {
      return op.leads() ? PMPI_Send(result + at, static_cast<int>(n), MPI_BYTE, root_in_node, kTag,
                                    op.shadow().node)
                        : PMPI_Recv(result + at, static_cast<int>(n), MPI_BYTE, 0, kTag,
                                    op.shadow().node, MPI_STATUS_IGNORE);
    });
  });
  if (!op.leads() && is_spoiled(result, size)) op.check(MPI_ERR_OTHER);
}

struct Root {
  int node, in_node;
  bool here;     // this rank is it
  bool my_node;  // it is on this rank's node
};

void reduce_by_leaders(Operation& op, const Byte* input, Byte* result, size_t count,
                       const Reduction& reduction, const Root& root, Byte* room) {
  const size_t size = count * reduction.element;
  Byte* sums = op.leads() && !root.here ? room : result;
  const Byte* of_node = node_reduce(op, input, sums, size, reduction);
  if (op.leads()) {
    op.look(of_node, size);
    const auto segments = split(count, reduction.element, static_cast<size_t>(op.shadow().n_nodes));
    Exchange exchange(op, sums, segments);
    exchange.reduce_scatter(reduction.type, reduction.op, of_node);
    exchange.gather(root.node);
  }
  if (root.my_node && (op.leads() || root.here)) hand_to_root(op, sums, size, root.in_node);
}

void reduce_by_lanes(Operation& op, const Byte* input, Byte* result, size_t count,
                     const Reduction& reduction, const Root& root, Byte* part) {
  const Lanes lanes(0, count, op.shadow().node_size);
  const auto mine = static_cast<size_t>(lanes.counts[static_cast<size_t>(op.shadow().node_rank)]);
  const size_t size = mine * reduction.element;
  op.timed([&] {
    return PMPI_Reduce_scatter(input, part, lanes.counts.data(), reduction.type, reduction.op,
                               op.shadow().node);
  });
  op.look(part, size, kCollectiveLink);
  const auto segments = split(mine, reduction.element, static_cast<size_t>(op.shadow().n_nodes));
  Exchange exchange(op, part, segments);
  exchange.reduce_scatter(reduction.type, reduction.op, part);
  exchange.gather(root.node);
  if (!root.my_node) return;
  op.timed([&] {
    return PMPI_Gatherv(part, static_cast<int>(mine), reduction.type, result, lanes.counts.data(),
                        lanes.begins.data(), reduction.type, root.in_node, op.shadow().node);
  });
}

// What a rank puts aside.
size_t room_for_reduce(const Shadow& shadow, size_t count, const Reduction& reduction, bool root) {
  if (by_lanes(shadow, reduction, count * reduction.element)) {
    return (count / static_cast<size_t>(shadow.node_size) + 1) * reduction.element;
  }
  return shadow.node_rank == 0 && !root ? count * reduction.element : 0;
}

int own_reduce(Comm* comm, Shadow* shadow, const void* sendbuf, void* recvbuf, size_t count,
               const Type& type, const Reduction& reduction, int root_rank, const Room& room) {
  Operation op(kReduce, comm, shadow, type);
  const auto at = static_cast<size_t>(root_rank);
  const Root root{shadow->node_of[at], shadow->rank_in_node[at], comm->rank == root_rank,
                  shadow->node_of[at] == shadow->my_node};
  Byte* result = root.here ? static_cast<Byte*>(recvbuf) : nullptr;
  const Byte* input = sendbuf == MPI_IN_PLACE ? result : static_cast<const Byte*>(sendbuf);
  (by_lanes(*shadow, reduction, count * reduction.element) ? reduce_by_lanes : reduce_by_leaders)(
      op, input, result, count, reduction, root, room.data());
  return op.end();
}

template <auto form, typename N>
int reduce(REDUCE(N)) {
  const auto plain = LEFT_TO_MPI(Reduce, REDUCE);
  Comm* comm = collective_comm(handle);
  Type known;
  MPI_Count total;
  if (!comm || comm->inter || root < 0 || root >= comm->size || !look_up(type, &known) ||
      !product(n, known.size, &total) || !reducible(op, known.arithmetic) || !from ||
      (comm->rank == root && !to)) {
    return plain();
  }
  const Reduction reduction{type, op, known.arithmetic, static_cast<size_t>(known.size)};
  const auto count = static_cast<size_t>(n);
  return run_collective(
      kReduce, comm, static_cast<size_t>(total), plain,
      [&](Shadow* shadow) {
        Room room;
        const size_t mine = room_for_reduce(*shadow, count, reduction, comm->rank == root);
        if (!room.get(shadow, static_cast<size_t>(total), mine)) return plain();
        const auto own = [&](const void* input, void* result) {
          return own_reduce(comm, shadow, input, result, count, known, reduction, root, room);
        };
        return is_alone(*shadow) ? own(from, to) : WPR_ON_HOST_Reduce(own(from, to));
      },
      always_ours(reduction), known.dtype);
}

// ---- Reduce_scatter, Reduce_scatter_block ----

// What every rank gets, in bytes, and where that is in a vector in the order of ranks, and in one
// in the order of nodes.
struct Blocks {
  std::vector<size_t> size, at, at_by_node;  // by rank
  std::vector<Segment> of_node;
  size_t total = 0;

  Blocks(const Shadow& shadow, std::vector<size_t> sizes) : size(std::move(sizes)) {
    for (const size_t n : size) {
      at.push_back(total);
      total += n;
    }
    at_by_node.resize(size.size());
    size_t position = 0;
    for (size_t node = 0; node + 1 < shadow.first.size(); ++node) {
      const size_t begin = position;
      for (int i = shadow.first[node]; i < shadow.first[node + 1]; ++i) {
        const auto rank = static_cast<size_t>(shadow.members[static_cast<size_t>(i)]);
        at_by_node[rank] = position;
        position += size[rank];
      }
      of_node.push_back({begin, position - begin});
    }
  }
};

size_t round_up(size_t size) { return (size + 63) & ~size_t{63}; }

// The node's sums, and the vector in the order of nodes where it has another.
size_t room_for_reduce_scatter(const Shadow& shadow, size_t total) {
  if (!shadow.ordered) return 2 * round_up(total);
  return shadow.node_rank == 0 ? total : 0;
}

int own_reduce_scatter(Call call, Comm* comm, Shadow* shadow, const void* sendbuf, void* recvbuf,
                       const Blocks& blocks, const Type& type, const Reduction& reduction,
                       Byte* sums) {
  Operation op(call, comm, shadow, type);
  const Byte* input = static_cast<const Byte*>(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf);
  if (!shadow->ordered) {
    Byte* ordered = sums + round_up(blocks.total);
    for (size_t r = 0; r < blocks.size.size(); ++r) {
      std::memcpy(ordered + blocks.at_by_node[r], input + blocks.at[r], blocks.size[r]);
    }
    input = ordered;
  }
  const Byte* of_node = node_reduce(op, input, sums, blocks.total, reduction);
  if (op.leads()) {
    op.look(of_node, blocks.total);
    Exchange(op, sums, blocks.of_node).reduce_scatter(reduction.type, reduction.op, of_node);
  }
  const auto node = static_cast<size_t>(shadow->my_node);
  std::vector<int> counts, begins;
  for (int i = shadow->first[node]; i < shadow->first[node + 1]; ++i) {
    const auto rank = static_cast<size_t>(shadow->members[static_cast<size_t>(i)]);
    counts.push_back(static_cast<int>(blocks.size[rank]));
    begins.push_back(static_cast<int>(blocks.at_by_node[rank] - blocks.of_node[node].offset));
  }
  const Byte* mine = op.leads() ? sums + blocks.of_node[node].offset : nullptr;
  const int n = counts[static_cast<size_t>(shadow->node_rank)];
  if (shadow->node_size == 1) {
    op.check(copy_bytes(recvbuf, mine, static_cast<size_t>(n)));
    return op.end();
  }
  op.timed([&] {
    return PMPI_Scatterv(mine, counts.data(), begins.data(), MPI_BYTE, recvbuf, n, MPI_BYTE, 0,
                         shadow->node);
  });
  return op.end();
}

// `count_of(rank)`: the elements that a rank gets. `on_cores(body)`: body(from, to) on copies.
template <typename CountOf, typename Plain, typename OnCores>
int any_reduce_scatter(Call call, const void* sendbuf, void* recvbuf, CountOf count_of,
                       MPI_Datatype datatype, MPI_Op op, MPI_Comm handle, Plain plain,
                       OnCores on_cores) {
  Comm* comm = collective_comm(handle);
  Type type;
  if (!comm || comm->inter || !look_up(datatype, &type) || !reducible(op, type.arithmetic) ||
      !sendbuf) {
    return plain();
  }
  std::vector<size_t> sizes;
  size_t total = 0;
  for (int r = 0; r < comm->size; ++r) {
    MPI_Count size;
    const MPI_Count count = count_of(r);
    if (count < 0 || __builtin_mul_overflow(count, type.size, &size)) return plain();
    sizes.push_back(static_cast<size_t>(size));
    total += sizes.back();
  }
  // MPI's own calls inside a node count in int.
  if (total == 0 || total > INT_MAX) return plain();
  const Reduction reduction{datatype, op, type.arithmetic, static_cast<size_t>(type.size)};
  return run_collective(
      call, comm, total, plain,
      [&](Shadow* shadow) {
        Room room;
        if (!room.get(shadow, 2 * round_up(total), room_for_reduce_scatter(*shadow, total))) {
          return plain();
        }
        const Blocks blocks(*shadow, std::move(sizes));
        const auto own = [&](const void* input, void* result) {
          return own_reduce_scatter(call, comm, shadow, input, result, blocks, type, reduction,
                                    room.data());
        };
        return is_alone(*shadow) && shadow->ordered ? own(sendbuf, recvbuf) : on_cores(own);
      },
      always_ours(reduction), type.dtype);
}

template <auto form, typename N>
int reduce_scatter(PARTS(N)) {
  const auto plain = LEFT_TO_MPI(ReduceScatter, PARTS);
  if (!n) return plain();
  const auto on_cores = [&](auto own) { return WPR_ON_HOST_ReduceScatter(own(from, to)); };
  return any_reduce_scatter(
      kReduceScatter, from, to, [&](int r) { return MPI_Count{n[r]}; }, type, op, handle, plain,
      on_cores);
}

template <auto form, typename N>
int reduce_scatter_block(ALLREDUCE(N)) {
  const auto plain = LEFT_TO_MPI(ReduceScatterBlock, ALLREDUCE);
  const auto on_cores = [&](auto own) { return WPR_ON_HOST_ReduceScatterBlock(own(from, to)); };
  return any_reduce_scatter(
      kReduceScatterBlock, from, to, [&](int) { return MPI_Count{n}; }, type, op, handle, plain,
      on_cores);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                 \
  DEFINE_OWN(suffix, N, Allreduce, Allreduce, ALLREDUCE, allreduce)           \
  DEFINE_OWN(suffix, N, Reduce, Reduce, REDUCE, reduce)                       \
  DEFINE_OWN(suffix, N, ReduceScatter, Reduce_scatter, PARTS, reduce_scatter) \
  DEFINE_OWN(suffix, N, ReduceScatterBlock, Reduce_scatter_block, ALLREDUCE, reduce_scatter_block)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
