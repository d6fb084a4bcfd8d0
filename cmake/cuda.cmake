# SPDX-License-Identifier: Apache-2.0
# A CUDA compiler, for the engine cuda: NVIDIA's packages in .venv (scripts/requirements-cuda.txt),
# or the machine's. Sets WPR_NVCC and WPR_CUDART, the static runtime, or neither and says so. What
# is built with it runs on machines without a GPU or a driver, too.
set(WPR_CUDA AUTO CACHE STRING "code for NVIDIA GPUs: ON, OFF, or AUTO (where nvcc is found)")
set(WPR_CUDA_ARCHS "90" CACHE STRING "GPUs to compile for, for example 80;90;100;120; others from \
80 on compile it when they first run it")

if(WPR_CUDA STREQUAL "AUTO" AND (WPR_SANITIZE OR WPR_PORTABLE OR CMAKE_CROSSCOMPILING))
  unset(WPR_NVCC CACHE)  # of an earlier configuration
  return()
endif()
if(NOT WPR_CUDA)
  unset(WPR_NVCC CACHE)
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
    return()
  endif()
  message(FATAL_ERROR "wirepress: WPR_CUDA is ON, and nvcc or libcudart_static.a was not found; "
                      "pip install -r scripts/requirements-cuda.txt, or CUDA 13")
endif()

# wpr_compile_cuda(TARGET OUT source...): objects of sources, in the folder that calls; TARGET makes
# them. A kernel that spills registers, needs more of
# them than its source says (`// registers: 96`; 64 where it says nothing) or has a stack stops it.
function(wpr_compile_cuda target out)
  # No fused multiply-add: kernels agree bit for bit with those of processors.
  set(flags -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr -Xptxas=-v -Xptxas=-warn-spills
      -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-ffp-contract=off,-g1)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -ccbin "${CMAKE_CXX_COMPILER}")
  endif()
  foreach(arch IN LISTS WPR_CUDA_ARCHS)
    list(APPEND flags "--generate-code=arch=compute_${arch},code=[sm_${arch}]")
  endforeach()
  list(APPEND flags "--generate-code=arch=compute_80,code=[compute_80]")
  set(objects "")
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}" "${source}")
    string(MAKE_C_IDENTIFIER "${name}" name)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/cuda/${name}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${source}" "-DOBJECT=${object}" "-DNVCC=${WPR_NVCC}"
              "-DCCACHE=${WPR_CCACHE}" "-DROOT=${CMAKE_SOURCE_DIR}" "-DFLAGS=${flags}"
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
