# SPDX-License-Identifier: Apache-2.0
# A CUDA compiler, for the engine cuda: NVIDIA's packages in .venv (scripts/requirements-cuda.txt),
# or the machine's. Sets WPR_NVCC and WPR_CUDART, the static runtime, or neither and says so. What
# is built with it runs on machines without a GPU or a driver, too.
set(WPR_CUDA AUTO CACHE STRING "code for NVIDIA GPUs: ON, OFF, or AUTO (where nvcc is found)")
set(WPR_CUDA_ARCHS "90" CACHE STRING "GPUs to compile for, for example 80;90;100;120; others from \
80 on compile it when they first run it")

if(WPR_CUDA STREQUAL "AUTO"
   AND (WPR_SANITIZE OR WPR_PORTABLE OR WPR_DEB OR CMAKE_CROSSCOMPILING))
  unset(WPR_NVCC CACHE)  # of an earlier configuration
  unset(WPR_CUDART CACHE)
  return()
endif()
if(NOT WPR_CUDA)
  unset(WPR_NVCC CACHE)
  unset(WPR_CUDART CACHE)
  return()
endif()
file(GLOB wheel "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu13")
find_program(WPR_NVCC nvcc HINTS ${wheel} PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(WPR_NVCC)
  # What runs may be a script that calls the compiler: it knows where its headers are.
  execute_process(COMMAND "${WPR_NVCC}" --dryrun -c -x cu /dev/null -o /dev/null
                  ERROR_VARIABLE said OUTPUT_QUIET)
  string(REGEX MATCH "TOP=([^\n]*)" top "${said}")
  file(REAL_PATH "${CMAKE_MATCH_1}" top)
  find_library(WPR_CUDART libcudart_static.a PATHS "${top}" PATH_SUFFIXES lib lib64
               NO_DEFAULT_PATH)
endif()
if(NOT WPR_NVCC OR NOT WPR_CUDART)
  if(WPR_CUDA STREQUAL "AUTO")
    message(STATUS "nvcc or libcudart_static.a not found: engine cuda without code for GPUs")
    unset(WPR_NVCC CACHE)
    unset(WPR_CUDART CACHE)
    return()
  endif()
  message(FATAL_ERROR "wirepress: WPR_CUDA is ON, and nvcc or libcudart_static.a was not found; "
                      "pip install -r scripts/requirements-cuda.txt, or CUDA 13")
endif()

# No fused multiply-add: kernels agree bit for bit with those of processors.
set(wpr_cuda_flags -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr -Xptxas=-v
    -Xptxas=-warn-spills
    -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers
    -Xcompiler=-ffp-contract=off,-g1)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND wpr_cuda_flags -ccbin "${CMAKE_CXX_COMPILER}")
endif()
set(wpr_cuda_plain_flags ${wpr_cuda_flags})
foreach(arch IN LISTS WPR_CUDA_ARCHS)
  list(APPEND wpr_cuda_flags "--generate-code=arch=compute_${arch},code=[sm_${arch}]")
endforeach()
list(APPEND wpr_cuda_flags "--generate-code=arch=compute_80,code=[compute_80]")

# An nvcc that was found may be too old for the flags, or for the host's compiler and headers.
if(WPR_CUDA STREQUAL "AUTO")
  set(asked "${WPR_NVCC};${wpr_cuda_flags}")
  if(NOT WPR_CUDA_WORKS STREQUAL asked)
    set(try "${CMAKE_BINARY_DIR}/CMakeFiles/wpr_cuda_try")
    file(WRITE "${try}.cu" "#include <cuda_runtime.h>
#include <array>
#include <span>
struct Add { std::array<int, 2> to; __device__ void operator()(std::span<int> x) const { x[0] += to[1]; } };
template <class K> __global__ void run(const __grid_constant__ K k, int* x) { k(std::span<int>(x, 1)); }
void launch(int* x) { run<<<1, 1>>>(Add{{1, 2}}, x); }
")
    file(REMOVE "${try}.o")
    execute_process(COMMAND "${WPR_NVCC}" -c ${wpr_cuda_flags} "${try}.cu" -o "${try}.o"
                    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(NOT result EQUAL 0 OR NOT EXISTS "${try}.o")
      string(REGEX MATCH "[^\n]*(error|fatal|[Uu]nsupported)[^\n]*" why "${said}")
      message(STATUS "${WPR_NVCC} fails on a sample (${why}): engine cuda without code for GPUs")
      unset(WPR_NVCC CACHE)
      unset(WPR_CUDART CACHE)
      unset(WPR_CUDA_WORKS CACHE)
      return()
    endif()
    set(WPR_CUDA_WORKS "${asked}" CACHE INTERNAL "what compiled a sample")
  endif()
endif()

# wpr_compile_cuda(TARGET OUT source...): objects of sources, in the folder that calls; TARGET makes
# them. A kernel that spills registers, needs more of
# them than its source says (`// registers: 96`; 64 where it says nothing) or has a stack stops it.
function(wpr_compile_cuda target out)
  set(objects "")
  if(NOT wpr_cuda_folder)
    set(wpr_cuda_folder cuda)
  endif()
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}" "${source}")
    string(MAKE_C_IDENTIFIER "${name}" name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${wpr_cuda_folder}/${name}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${source}" "-DOBJECT=${object}" "-DNVCC=${WPR_NVCC}"
              "-DCCACHE=${WPR_CCACHE}" "-DROOT=${CMAKE_SOURCE_DIR}" "-DFLAGS=${wpr_cuda_flags}"
              -P "${CMAKE_SOURCE_DIR}/cmake/nvcc.cmake"
      DEPENDS "${source}" "${CMAKE_SOURCE_DIR}/cmake/nvcc.cmake"
      DEPFILE "${object}.d"
      COMMENT "Building CUDA object ${name}" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(${target} DEPENDS ${objects})
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# wpr_check_cuda(TARGET source...): TARGET, which nothing needs, compiles sources for the GPUs of
# `make gpu-check` that this build does not compile for, so that their budgets hold there, too: what
# ptxas makes of a kernel differs from GPU to GPU.
function(wpr_check_cuda target)
  set(wpr_cuda_folder ${target})
  set(wpr_cuda_flags ${wpr_cuda_plain_flags})
  foreach(arch 80 90 100 120)
    if(NOT arch IN_LIST WPR_CUDA_ARCHS)
      list(APPEND wpr_cuda_flags "--generate-code=arch=compute_${arch},code=[sm_${arch}]")
      set(others TRUE)
    endif()
  endforeach()
  if(others)
    wpr_compile_cuda(${target} objects ${ARGN})
  else()
    add_custom_target(${target})
  endif()
endfunction()
