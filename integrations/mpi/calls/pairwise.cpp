// SPDX-License-Identifier: Apache-2.0
// Gather(v), Scatter(v) and Alltoall(v, w): messages between pairs of ranks.
//
// MPI's own algorithms go this way as well, except for the equal forms with small blocks, where
// trees take fewer messages: these are left to MPI.
#include "collectives/pairwise.hpp"

#include "calls/arguments.hpp"
#include "collectives/run.hpp"
#include "messages/requests.hpp"

namespace wirepress {
namespace {

template <typename Blocks>
bool sound(const Blocks& blocks, int n) {
  MPI_Count size;
  for (int i = 0; i < n; ++i) {
    if (!block_size(blocks(i), &size)) return false;
  }
  return true;
}

// Where one lies on a device, which MPI may not reach.
int copy_there(const Block& from, MPI_Count size, const Block& to, MPI_Count room) {
  if (size > room) return MPI_ERR_TRUNCATE;
  const auto n = static_cast<size_t>(size);
  const auto contiguous = [](MPI_Datatype type) {
    Type known;
    return look_up(type, &known) && known.contiguous;
  };
  if (contiguous(from.type) && contiguous(to.type)) return copy_bytes(to.buffer, from.buffer, n);
  Buffer packed;
  if (!packed.reserve(n)) return ++self_thread().events.no_memory, MPI_ERR_NO_MEM;
  const int error = collect(from.buffer, from.count, from.type, packed.data(), n);
  return error ? error : deliver(packed.data(), n, to.buffer, to.count, to.type);
}

// Whether one of the blocks may become a frame: others on a device are copied together
// (on_host.hpp).
template <typename Blocks>
bool any_large(Call call, const Blocks& blocks, int n) {
  MPI_Count size;
  for (int i = 0; i < n; ++i) {
    if (block_size(blocks(i), &size) && size >= static_cast<MPI_Count>(least_size(call)))
      return true;
  }
  return false;
}

int copy_own(const Block& from, const Block& to) {
  MPI_Count size, room;
  block_size(from, &size);
  block_size(to, &room);
  if (size == 0 && room == 0) return MPI_SUCCESS;
  if (on_device(from.buffer) || on_device(to.buffer)) return copy_there(from, size, to, room);
  return copy(from.buffer, from.count, from.type, to.buffer, to.count, to.type);
}

// ---- one to all, all to one, all to all ----

template <typename Blocks>
int gather(Call call, Comm* comm, Shadow* shadow, const Block& mine, const Blocks& blocks,
           bool in_place, int root) {
  PairwiseExchange messages(call, comm, shadow);
  if (comm->rank != root) {
    messages.send(root, mine);
    return messages.run();
  }
  for (int i = 1; i < comm->size; ++i) {
    const int peer = (root + i) % comm->size;
    messages.receive(peer, blocks(peer));
  }
  if (!in_place) messages.check(copy_own(mine, blocks(root)));
  return messages.run();
}

template <typename Blocks>
int scatter(Call call, Comm* comm, Shadow* shadow, const Blocks& blocks, const Block& mine,
            bool in_place, int root) {
  PairwiseExchange messages(call, comm, shadow);
  if (comm->rank != root) {
    messages.receive(root, mine);
    return messages.run();
  }
  for (int i = 1; i < comm->size; ++i) {
    const int peer = (root + i) % comm->size;
    messages.send(peer, blocks(peer));
  }
  if (!in_place) messages.check(copy_own(blocks(root), mine));
  return messages.run();
}

template <typename From, typename To>
int all_to_all(Call call, Comm* comm, Shadow* shadow, const From& from, const To& to,
               bool in_place) {
  PairwiseExchange messages(call, comm, shadow);
  const int n = comm->size, me = comm->rank;
  for (int i = 1; i < n; ++i) {
    const int next = (me + i) % n, previous = (me + n - i) % n;
    messages.send(next, in_place ? to(next) : from(next), in_place);
    messages.receive(previous, to(previous));
  }
  if (!in_place) messages.check(copy_own(from(me), to(me)));
  return messages.run();
}

// ---- who runs it ----

bool is_rank(const Comm* comm, int root) { return root >= 0 && root < comm->size; }

template <auto form, typename N>
int gather_equal(GATHER(N)) {
  const auto plain = LEFT_TO_MPI(Gather, GATHER);
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = from == MPI_IN_PLACE, receives = comm->rank == root;
  const Block mine{bytes_of(from), n, type}, theirs{bytes_of(to), m, to_type};
  MPI_Count size, other;
  if (!block_size(receives ? theirs : mine, &size) || size == 0 ||
      (receives && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kGather, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(to, m, receives ? to_type : MPI_DATATYPE_NULL);
    return gather(kGather, comm, shadow, mine, blocks, in_place, root);
  });
}

template <auto form, typename N>
int scatter_equal(SCATTER(N)) {
  const auto plain = LEFT_TO_MPI(Scatter, SCATTER);
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = to == MPI_IN_PLACE, sends = comm->rank == root;
  const Block mine{bytes_of(to), m, to_type}, theirs{bytes_of(from), n, type};
  MPI_Count size, other;
  if (!block_size(sends ? theirs : mine, &size) || size == 0 ||
      (sends && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kScatter, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(from, n, sends ? type : MPI_DATATYPE_NULL);
    return scatter(kScatter, comm, shadow, blocks, mine, in_place, root);
  });
}

template <auto form, typename N>
int alltoall(ALLTOALL(N)) {
  const auto plain = LEFT_TO_MPI(Alltoall, ALLTOALL);
  Comm* comm = collective_comm(handle);
  const bool in_place = from == MPI_IN_PLACE;
  MPI_Count size, own;
  if (!comm || comm->inter || !block_size({nullptr, m, to_type}, &size) || size == 0 ||
      (!in_place && !block_size({nullptr, n, type}, &own))) {
    return plain();
  }
  return run_collective(kAlltoall, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal sent(from, n, in_place ? MPI_DATATYPE_NULL : type), got(to, m, to_type);
    return all_to_all(kAlltoall, comm, shadow, sent, got, in_place);
  });
}

template <auto form, typename N>
int gatherv(GATHERV(N)) {
  const auto plain = LEFT_TO_MPI(Gatherv, GATHERV);
  Comm* comm = collective_comm(handle);
  const Way way = comm && is_rank(comm, root) ? way_of_pairs(comm) : Way{};
  if (!way.shadow) return plain(way.why);
  const bool receives = comm->rank == root, in_place = receives && from == MPI_IN_PLACE;
  const Block mine{bytes_of(from), n, type};
  const Varying blocks(to, counts, at, receives ? to_type : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (receives && (!counts || !at || !sound(blocks, comm->size)))) {
    return plain();
  }
  const auto own = [&](const void* sent, void* got) {
    const Block block{bytes_of(sent), n, type};
    return gather(kGatherv, comm, way.shadow, block, Varying(got, counts, at, blocks.type),
                  in_place, root);
  };
  const bool large = receives ? any_large(kGatherv, blocks, comm->size)
                              : any_large(
                                    kGatherv, [&](int) { return mine; }, 1);
  return large ? own(from, to) : WPR_ON_HOST_Gatherv(own(from, to));
}

template <auto form, typename N>
int scatterv(SCATTERV(N)) {
  const auto plain = LEFT_TO_MPI(Scatterv, SCATTERV);
  Comm* comm = collective_comm(handle);
  const Way way = comm && is_rank(comm, root) ? way_of_pairs(comm) : Way{};
  if (!way.shadow) return plain(way.why);
  const bool sends = comm->rank == root, in_place = sends && to == MPI_IN_PLACE;
  const Block mine{bytes_of(to), m, to_type};
  const Varying blocks(from, n, from_at, sends ? type : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (sends && (!n || !from_at || !sound(blocks, comm->size)))) {
    return plain();
  }
  const auto own = [&](const void* sent, void* got) {
    const Block block{bytes_of(got), m, to_type};
    return scatter(kScatterv, comm, way.shadow, Varying(sent, n, from_at, blocks.type), block,
                   in_place, root);
  };
  const bool large = sends ? any_large(kScatterv, blocks, comm->size)
                           : any_large(
                                 kScatterv, [&](int) { return mine; }, 1);
  return large ? own(from, to) : WPR_ON_HOST_Scatterv(own(from, to));
}

// `on_cores(body)`: body(from, to) on copies.
template <typename Plain, typename From, typename To, typename OnCores>
int varying_all_to_all(Call call, MPI_Comm handle, Plain plain, const From& from, const To& to,
                       bool in_place, OnCores on_cores) {
  Comm* comm = collective_comm(handle);
  const Way way = comm ? way_of_pairs(comm) : Way{};
  if (!way.shadow || !to.counts || !to.at || !sound(to, comm->size)) return plain(way.why);
  if (!in_place && (!from.counts || !from.at || !sound(from, comm->size))) return plain();
  const auto own = [&](const void* sent, void* got) {
    From going = from;
    To coming = to;
    going.base = sent, coming.base = got;
    return all_to_all(call, comm, way.shadow, going, coming, in_place);
  };
  const bool large =
      any_large(call, to, comm->size) || (!in_place && any_large(call, from, comm->size));
  return large ? own(from.base, bytes_of(to.base)) : on_cores(own);
}

template <auto form, typename N>
int alltoallv(ALLTOALLV(N)) {
  const auto plain = LEFT_TO_MPI(Alltoallv, ALLTOALLV);
  if (inert() || to_type == MPI_DATATYPE_NULL) return plain();
  const bool in_place = from == MPI_IN_PLACE;
  const Varying sent(from, n, from_at, in_place ? MPI_DATATYPE_NULL : type);
  const Varying got(to, counts, at, to_type);
  const auto on_cores = [&](auto own) { return WPR_ON_HOST_Alltoallv(own(from, to)); };
  return varying_all_to_all(kAlltoallv, handle, plain, sent, got, in_place, on_cores);
}

template <auto form, typename N>
int alltoallw(ALLTOALLW(N)) {
  const auto plain = LEFT_TO_MPI(Alltoallw, ALLTOALLW);
  const bool in_place = from == MPI_IN_PLACE;
  if (inert() || !to_types || (!in_place && !types)) return plain();
  const Typed<N, Displacement<N>> sent{from, n, from_at, types}, got{to, counts, at, to_types};
  const auto on_cores = [&](auto own) { return WPR_ON_HOST_Alltoallw(own(from, to)); };
  return varying_all_to_all(kAlltoallw, handle, plain, sent, got, in_place, on_cores);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                       \
  DEFINE_OWN(suffix, N, Gather, Gather, GATHER, gather_equal)       \
  DEFINE_OWN(suffix, N, Scatter, Scatter, SCATTER, scatter_equal)   \
  DEFINE_OWN(suffix, N, Alltoall, Alltoall, ALLTOALL, alltoall)     \
  DEFINE_OWN(suffix, N, Gatherv, Gatherv, GATHERV, gatherv)         \
  DEFINE_OWN(suffix, N, Scatterv, Scatterv, SCATTERV, scatterv)     \
  DEFINE_OWN(suffix, N, Alltoallv, Alltoallv, ALLTOALLV, alltoallv) \
  DEFINE_OWN(suffix, N, Alltoallw, Alltoallw, ALLTOALLW, alltoallw)
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
