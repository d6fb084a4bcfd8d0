// SPDX-License-Identifier: Apache-2.0
// Functions that take the place of MPI's, each in the int form and in the large-count form (_c).
#pragma once

#include <mpi.h>

#include <type_traits>

namespace wirepress {

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
struct WithoutConst {
  using type = std::remove_cv_t<T>;
};
template <typename T>
requires std::is_pointer_v<T>
struct WithoutConst<T> {
  using type = typename WithoutConst<std::remove_pointer_t<T>>::type*;
};

// Whether a caller of one function may call the other instead.
template <typename F, typename G>
inline constexpr bool called_alike = false;
template <typename R, typename... A, typename... B>
requires(sizeof...(A) == sizeof...(B)) inline constexpr bool called_alike<R(A...), R(B...)> =
    (std::is_same_v<typename WithoutConst<A>::type, typename WithoutConst<B>::type> && ...);

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

// WPR_WRAP_QUICK(quick, Name, (parameters...), (arguments...)) { ... } is WPR_WRAP of MPI_Name for
// a function that is mostly MPI's by one look, `quick`. The rest is a function apart: the exported
// one needs no stack frame.
#define WPR_LIST(...) __VA_ARGS__
#define WPR_WRAP_QUICK(quick, Name, parameters, arguments) \
  [[gnu::noinline]] static int apart_##Name parameters;    \
  WPR_WRAP(MPI_##Name, WPR_LIST parameters) {              \
    if (quick) return PMPI_##Name arguments;               \
    WPR_NOTE_CALLER;                                       \
    return apart_##Name arguments;                         \
  }                                                        \
  int apart_##Name parameters
