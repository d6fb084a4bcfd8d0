# SPDX-License-Identifier: Apache-2.0
# Of object files (LIST names a file with one on each line) those of kernels for AVX2 and AVX-512
# must define no weak function: the linker takes any file's copy of an inline function, and one made
# for AVX-512 ends programs on processors without it. The other files must define some, or this
# look finds nothing because it does not look.
file(STRINGS "${LIST}" objects)
set(kernels 0)
set(others 0)
set(bad "")
foreach(object IN LISTS objects)
  execute_process(COMMAND "${NM}" -C --defined-only "${object}" OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ W [^\n]*" weak "${symbols}")
  if(NOT object MATCHES "/avx(2|512)\\.cpp\\.o")
    list(LENGTH weak n)
    math(EXPR others "${others} + ${n}")
    continue()
  endif()
  math(EXPR kernels "${kernels} + 1")
  foreach(function IN LISTS weak)
    string(APPEND bad "\n  ${object}: ${function}")
  endforeach()
endforeach()
if(kernels EQUAL 0 OR others EQUAL 0)
  message(FATAL_ERROR "${LIST}: ${kernels} kernels, ${others} weak functions in other files")
endif()
if(bad)
  message(FATAL_ERROR "kernels for one instruction set define functions that all may get:${bad}")
endif()
message(STATUS "${kernels} kernels define no function that others may get, other files ${others}")
