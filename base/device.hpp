// SPDX-License-Identifier: Apache-2.0
// Marks of functions that a CUDA compiler compiles for GPUs, too; nothing for other compilers.
// constexpr functions need none: nvcc is told to take them (--expt-relaxed-constexpr).
#pragma once

#ifdef __CUDACC__
#define WPR_HD __host__ __device__
#define WPR_ON_DEVICE __device__ __forceinline__
#else
#define WPR_HD
#define WPR_ON_DEVICE inline
#endif

#ifdef __CUDA_ARCH__
#define WPR_UNROLL _Pragma("unroll")  // or an array that the loop indexes lies in memory
#else
#define WPR_UNROLL
#endif
