// SPDX-License-Identifier: Apache-2.0
// One name for the int and the large-count form of each PMPI function, so that templates over the
// type of a count forward a call to exactly the function that the program called.
#pragma once

#include <mpi.h>

namespace wirepress {

#define WPR_PMPI(name, PMPI)           \
  template <typename N>                \
  struct name##_form;                  \
  template <>                          \
  struct name##_form<int> {            \
    static constexpr auto call = PMPI; \
  };
#ifdef WPR_MPI_LARGE
#define WPR_PMPI_BOTH(name, PMPI)          \
  WPR_PMPI(name, PMPI)                     \
  template <>                              \
  struct name##_form<MPI_Count> {          \
    static constexpr auto call = PMPI##_c; \
  };
#else
#define WPR_PMPI_BOTH(name, PMPI) WPR_PMPI(name, PMPI)
#endif

WPR_PMPI_BOTH(send, PMPI_Send)
WPR_PMPI_BOTH(ssend, PMPI_Ssend)
WPR_PMPI_BOTH(isend, PMPI_Isend)
WPR_PMPI_BOTH(issend, PMPI_Issend)
WPR_PMPI_BOTH(rsend, PMPI_Rsend)
WPR_PMPI_BOTH(bsend, PMPI_Bsend)
WPR_PMPI_BOTH(irsend, PMPI_Irsend)
WPR_PMPI_BOTH(ibsend, PMPI_Ibsend)
WPR_PMPI_BOTH(send_init, PMPI_Send_init)
WPR_PMPI_BOTH(ssend_init, PMPI_Ssend_init)
WPR_PMPI_BOTH(bsend_init, PMPI_Bsend_init)
WPR_PMPI_BOTH(rsend_init, PMPI_Rsend_init)
WPR_PMPI_BOTH(recv, PMPI_Recv)
WPR_PMPI_BOTH(irecv, PMPI_Irecv)
WPR_PMPI_BOTH(sendrecv, PMPI_Sendrecv)
WPR_PMPI_BOTH(sendrecv_replace, PMPI_Sendrecv_replace)
WPR_PMPI_BOTH(mrecv, PMPI_Mrecv)
WPR_PMPI_BOTH(imrecv, PMPI_Imrecv)
WPR_PMPI_BOTH(recv_init, PMPI_Recv_init)
#ifdef WPR_MPI_ISENDRECV
WPR_PMPI_BOTH(isendrecv, PMPI_Isendrecv)
WPR_PMPI_BOTH(isendrecv_replace, PMPI_Isendrecv_replace)
#endif
WPR_PMPI_BOTH(bcast, PMPI_Bcast)
WPR_PMPI_BOTH(reduce, PMPI_Reduce)
WPR_PMPI_BOTH(allreduce, PMPI_Allreduce)
WPR_PMPI_BOTH(reduce_scatter, PMPI_Reduce_scatter)
WPR_PMPI_BOTH(allgather, PMPI_Allgather)
WPR_PMPI_BOTH(reduce_scatter_block, PMPI_Reduce_scatter_block)
WPR_PMPI_BOTH(gather, PMPI_Gather)
WPR_PMPI_BOTH(ibcast, PMPI_Ibcast)
WPR_PMPI_BOTH(our_bcast, MPI_Bcast)
WPR_PMPI_BOTH(iallreduce, PMPI_Iallreduce)
WPR_PMPI_BOTH(our_allreduce, MPI_Allreduce)
WPR_PMPI_BOTH(ireduce, PMPI_Ireduce)
WPR_PMPI_BOTH(our_reduce, MPI_Reduce)
WPR_PMPI_BOTH(iallgather, PMPI_Iallgather)
WPR_PMPI_BOTH(our_allgather, MPI_Allgather)
WPR_PMPI_BOTH(ialltoall, PMPI_Ialltoall)
WPR_PMPI_BOTH(our_alltoall, MPI_Alltoall)
WPR_PMPI_BOTH(gatherv, PMPI_Gatherv)
WPR_PMPI_BOTH(scatter, PMPI_Scatter)
WPR_PMPI_BOTH(scatterv, PMPI_Scatterv)
WPR_PMPI_BOTH(allgatherv, PMPI_Allgatherv)
WPR_PMPI_BOTH(alltoall, PMPI_Alltoall)
WPR_PMPI_BOTH(alltoallv, PMPI_Alltoallv)
WPR_PMPI_BOTH(alltoallw, PMPI_Alltoallw)

#undef WPR_PMPI
#undef WPR_PMPI_BOTH

// Of blocks, in the form whose counts are N.
template <typename N>
struct displacement;
template <>
struct displacement<int> {
  using type = int;
};
#ifdef WPR_MPI_LARGE
template <>
struct displacement<MPI_Count> {
  using type = MPI_Aint;
};
#endif
template <typename N>
using Displacement = typename displacement<N>::type;

}  // namespace wirepress

// DEFINE(suffix, type of counts) for each form the library has.
#ifdef WPR_MPI_LARGE
#define WPR_EACH_FORM(DEFINE) DEFINE(, int) DEFINE(_c, MPI_Count)
#else
#define WPR_EACH_FORM(DEFINE) DEFINE(, int)
#endif
#define WPR_EXPORT extern "C" __attribute__((visibility("default")))
