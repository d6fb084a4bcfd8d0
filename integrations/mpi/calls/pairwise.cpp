// SPDX-License-Identifier: Apache-2.0
// Gather(v), Scatter(v) and Alltoall(v, w): messages between pairs of ranks.
//
// MPI's own algorithms go this way as well, except for the equal forms with small blocks, where
// trees take fewer messages: these are left to MPI.
#include "collectives/pairwise.hpp"

#include "calls/pmpi.hpp"
#include "choosing/sites.hpp"
#include "collectives/run.hpp"
#include "messages/requests.hpp"
#include "recording/across.hpp"
#include "recording/trace.hpp"

namespace wirepress {
namespace {

// Blocks of equal size, one behind the other.
struct Equal {
  const void* base;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Aint extent;

  Equal(const void* b, MPI_Count n, MPI_Datatype t)
      : base(b), count(n), type(t), extent(t == MPI_DATATYPE_NULL ? 0 : extent_of(t)) {}
  Block operator()(int rank) const {
    return {place(base, static_cast<MPI_Aint>(rank) * static_cast<MPI_Aint>(count) * extent), count,
            type};
  }
};

template <typename N, typename D>
struct Typed {
  const void* base;
  const N* counts;
  const D* at;
  const MPI_Datatype* types;

  Block operator()(int rank) const {
    return {place(base, static_cast<MPI_Aint>(at[rank])), counts[rank], types[rank]};
  }
};

template <typename Blocks>
bool sound(const Blocks& blocks, int n) {
  MPI_Count size;
  for (int i = 0; i < n; ++i) {
    if (!block_size(blocks(i), &size)) return false;
  }
  return true;
}

int copy_own(const Block& from, const Block& to) {
  MPI_Count size, room;
  block_size(from, &size);
  block_size(to, &room);
  if (size == 0 && room == 0) return MPI_SUCCESS;
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

template <typename N>
int gather_equal(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf,
                 N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kGather, handle, why, [&](Across& across) {
      across.gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return gather_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                                handle);
  };
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const Block theirs{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const bool receives = comm->rank == root;
  MPI_Count size, other;
  if (!block_size(receives ? theirs : mine, &size) || size == 0 ||
      (receives && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kGather, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(recvbuf, recvcount, receives ? recvtype : MPI_DATATYPE_NULL);
    return gather(kGather, comm, shadow, mine, blocks, in_place, root);
  });
}

template <typename N>
int scatter_equal(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf,
                  N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kScatter, handle, why, [&](Across& across) {
      across.scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return scatter_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root,
                                 handle);
  };
  Comm* comm = collective_comm(handle);
  if (!comm || comm->inter || !is_rank(comm, root)) return plain();
  const bool in_place = recvbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const Block theirs{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const bool sends = comm->rank == root;
  MPI_Count size, other;
  if (!block_size(sends ? theirs : mine, &size) || size == 0 ||
      (sends && !in_place && !block_size(mine, &other))) {
    return plain();
  }
  return run_collective(kScatter, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal blocks(sendbuf, sendcount, sends ? sendtype : MPI_DATATYPE_NULL);
    return scatter(kScatter, comm, shadow, blocks, mine, in_place, root);
  });
}

template <typename N>
int alltoall(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, N recvcount,
             MPI_Datatype recvtype, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoall, handle, why, [&](Across& across) {
      across.alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle);
    });
    return alltoall_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                                  handle);
  };
  Comm* comm = collective_comm(handle);
  const bool in_place = sendbuf == MPI_IN_PLACE;
  MPI_Count size, own;
  if (!comm || comm->inter || !block_size({nullptr, recvcount, recvtype}, &size) || size == 0 ||
      (!in_place && !block_size({nullptr, sendcount, sendtype}, &own))) {
    return plain();
  }
  return run_collective(kAlltoall, comm, static_cast<size_t>(size), plain, [&](Shadow* shadow) {
    const Equal from(sendbuf, sendcount, in_place ? MPI_DATATYPE_NULL : sendtype);
    const Equal to(recvbuf, recvcount, recvtype);
    return all_to_all(kAlltoall, comm, shadow, from, to, in_place);
  });
}

template <typename N, typename D>
int gatherv(const void* sendbuf, N sendcount, MPI_Datatype sendtype, void* recvbuf, const N* counts,
            const D* at, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kGatherv, handle, why, [&](Across& across) {
      across.gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, handle);
    });
    return gatherv_form<N>::call(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root,
                                 handle);
  };
  Comm* comm = collective_comm(handle);
  const Way way = comm && is_rank(comm, root) ? way_of_pairs(comm) : Way{};
  if (!way.shadow) return plain(way.why);
  const bool receives = comm->rank == root, in_place = receives && sendbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(const_cast<void*>(sendbuf)), sendcount, sendtype};
  const Varying<N, D> blocks(recvbuf, counts, at, receives ? recvtype : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (receives && (!counts || !at || !sound(blocks, comm->size)))) {
    return plain();
  }
  return gather(kGatherv, comm, way.shadow, mine, blocks, in_place, root);
}

template <typename N, typename D>
int scatterv(const void* sendbuf, const N* counts, const D* at, MPI_Datatype sendtype,
             void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kScatterv, handle, why, [&](Across& across) {
      across.scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, handle);
    });
    return scatterv_form<N>::call(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root,
                                  handle);
  };
  Comm* comm = collective_comm(handle);
  const Way way = comm && is_rank(comm, root) ? way_of_pairs(comm) : Way{};
  if (!way.shadow) return plain(way.why);
  const bool sends = comm->rank == root, in_place = sends && recvbuf == MPI_IN_PLACE;
  const Block mine{static_cast<Byte*>(recvbuf), recvcount, recvtype};
  const Varying<N, D> blocks(sendbuf, counts, at, sends ? sendtype : MPI_DATATYPE_NULL);
  MPI_Count size;
  if ((!in_place && !block_size(mine, &size)) ||
      (sends && (!counts || !at || !sound(blocks, comm->size)))) {
    return plain();
  }
  return scatter(kScatterv, comm, way.shadow, blocks, mine, in_place, root);
}

template <typename Plain, typename From, typename To>
int varying_all_to_all(Call call, MPI_Comm handle, Plain plain, const From& from, const To& to,
                       bool in_place) {
  Comm* comm = collective_comm(handle);
  const Way way = comm ? way_of_pairs(comm) : Way{};
  if (!way.shadow || !to.counts || !to.at || !sound(to, comm->size)) return plain(way.why);
  if (!in_place && (!from.counts || !from.at || !sound(from, comm->size))) return plain();
  return all_to_all(call, comm, way.shadow, from, to, in_place);
}

template <typename N, typename D>
int alltoallv(const void* sendbuf, const N* sendcounts, const D* sendat, MPI_Datatype sendtype,
              void* recvbuf, const N* recvcounts, const D* recvat, MPI_Datatype recvtype,
              MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoallv, handle, why, [&](Across& across) {
      across.alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat, recvtype,
                       handle);
    });
    return alltoallv_form<N>::call(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts,
                                   recvat, recvtype, handle);
  };
  if (inert() || recvtype == MPI_DATATYPE_NULL) return plain();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const Varying<N, D> from(sendbuf, sendcounts, sendat, in_place ? MPI_DATATYPE_NULL : sendtype);
  const Varying<N, D> to(recvbuf, recvcounts, recvat, recvtype);
  return varying_all_to_all(kAlltoallv, handle, plain, from, to, in_place);
}

template <typename N, typename D>
int alltoallw(const void* sendbuf, const N* sendcounts, const D* sendat,
              const MPI_Datatype* sendtypes, void* recvbuf, const N* recvcounts, const D* recvat,
              const MPI_Datatype* recvtypes, MPI_Comm handle) {
  const auto plain = [&](Bypass why = kUnsupported) {
    count_left(kAlltoallw, handle, why, [&](Across& across) {
      across.alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,
                       recvtypes, handle);
    });
    return alltoallw_form<N>::call(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts,
                                   recvat, recvtypes, handle);
  };
  const bool in_place = sendbuf == MPI_IN_PLACE;
  if (inert() || !recvtypes || (!in_place && !sendtypes)) return plain();
  const Typed<N, D> from{sendbuf, sendcounts, sendat, sendtypes};
  const Typed<N, D> to{recvbuf, recvcounts, recvat, recvtypes};
  return varying_all_to_all(kAlltoallw, handle, plain, from, to, in_place);
}

}  // namespace
}  // namespace wirepress

using namespace wirepress;

#define WPR_DEFINE(suffix, N)                                                                      \
  WPR_WRAP(MPI_Gather##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,            \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {           \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(                                                                                     \
        kGather, comm,                                                                             \
        gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),            \
        gather_equal<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm));  \
  }                                                                                                \
  WPR_WRAP(MPI_Scatter##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,           \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {           \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(                                                                                     \
        kScatter, comm,                                                                            \
        scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),           \
        scatter_equal<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)); \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoall##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,          \
           void* recvbuf, N recvcount, MPI_Datatype recvtype, MPI_Comm comm) {                     \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoall, comm,                                                                     \
              alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),          \
              alltoall<N>(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));      \
  }                                                                                                \
  WPR_WRAP(MPI_Gatherv##suffix, const void* sendbuf, N sendcount, MPI_Datatype sendtype,           \
           void* recvbuf, const N counts[], const Displacement<N> at[], MPI_Datatype recvtype,     \
           int root, MPI_Comm comm) {                                                              \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kGatherv, comm,                                                                      \
              gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, comm),    \
              gatherv(sendbuf, sendcount, sendtype, recvbuf, counts, at, recvtype, root, comm));   \
  }                                                                                                \
  WPR_WRAP(MPI_Scatterv##suffix, const void* sendbuf, const N counts[],                            \
           const Displacement<N> at[], MPI_Datatype sendtype, void* recvbuf, N recvcount,          \
           MPI_Datatype recvtype, int root, MPI_Comm comm) {                                       \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kScatterv, comm,                                                                     \
              scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, comm),   \
              scatterv(sendbuf, counts, at, sendtype, recvbuf, recvcount, recvtype, root, comm));  \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoallv##suffix, const void* sendbuf, const N sendcounts[],                       \
           const Displacement<N> sendat[], MPI_Datatype sendtype, void* recvbuf,                   \
           const N recvcounts[], const Displacement<N> recvat[], MPI_Datatype recvtype,            \
           MPI_Comm comm) {                                                                        \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoallv, comm,                                                                    \
              alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat,        \
                        recvtype, comm),                                                           \
              alltoallv(sendbuf, sendcounts, sendat, sendtype, recvbuf, recvcounts, recvat,        \
                        recvtype, comm));                                                          \
  }                                                                                                \
  WPR_WRAP(MPI_Alltoallw##suffix, const void* sendbuf, const N sendcounts[],                       \
           const Displacement<N> sendat[], const MPI_Datatype sendtypes[], void* recvbuf,          \
           const N recvcounts[], const Displacement<N> recvat[], const MPI_Datatype recvtypes[],   \
           MPI_Comm comm) {                                                                        \
    WPR_NOTE_CALLER;                                                                               \
    WPR_TRACE(kAlltoallw, comm,                                                                    \
              alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,       \
                        recvtypes, comm),                                                          \
              alltoallw(sendbuf, sendcounts, sendat, sendtypes, recvbuf, recvcounts, recvat,       \
                        recvtypes, comm));                                                         \
  }
WPR_EACH_FORM(WPR_DEFINE)
#undef WPR_DEFINE
