// SPDX-License-Identifier: Apache-2.0
// One name for the int and the large-count form of each PMPI function, so that templates over the
// type of a count forward a call to exactly the function that the program called.
#pragma once

#include <mpi.h>

#include <type_traits>

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

// A type without const, behind pointers, too.
template <typename T>
struct without_const {
  using type = std::remove_cv_t<T>;
};
template <typename T>
requires std::is_pointer_v<T>
struct without_const<T> {
  using type = typename without_const<std::remove_pointer_t<T>>::type*;
};

// Whether a caller of one function may call the other instead.
template <typename F, typename G>
inline constexpr bool called_alike = false;
template <typename R, typename... A, typename... B>
requires(sizeof...(A) == sizeof...(B)) inline constexpr bool called_alike<R(A...), R(B...)> =
    (std::is_same_v<typename without_const<A>::type, typename without_const<B>::type> && ...);

}  // namespace wirepress

// DEFINE(suffix, type of counts) for each form the library has.
#ifdef WPR_MPI_LARGE
#define WPR_EACH_FORM(DEFINE) DEFINE(, int) DEFINE(_c, MPI_Count)
#else
#define WPR_EACH_FORM(DEFINE) DEFINE(, int)
#endif
#define WPR_EXPORT extern "C" __attribute__((visibility("default")))

// WPR_WRAP(MPI_Name, parameters...) { ... } defines a function that takes the place of MPI's. Only
// its symbol has MPI's name, so its parameters may differ from those in mpi.h in what is const.
// (MPICH 4.2 takes arrays of requests that are not const where the standard's are.) Where they
// differ in more, a call would go wrong, and this mpi.h is refused.
#define WPR_WRAP(name, ...)                                                                  \
  WPR_EXPORT int wirepress_##name(__VA_ARGS__) __asm__(#name);                               \
  static_assert(wirepress::called_alike<decltype(name), decltype(wirepress_##name)>,         \
                #name " has other parameters in this mpi.h than the MPI standard gives it"); \
  int wirepress_##name(__VA_ARGS__)
