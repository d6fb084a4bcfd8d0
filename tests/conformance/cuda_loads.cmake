# SPDX-License-Identifier: Apache-2.0
# Kernels for GPUs that read raw data do so 16 bytes a lane: what FOLDER holds of machine code is
# looked at with cuobjdump. Loads of 4 bytes give the same bytes, slower; no other test sees them.
get_filename_component(tools "${CUOBJDUMP}" DIRECTORY)
set(ENV{PATH} "${tools}:$ENV{PATH}")  # cuobjdump looks for nvdisasm
file(GLOB objects "${FOLDER}/*_cuda_cu.o")
set(n 0)
set(bad "")
foreach(object IN LISTS objects)
  execute_process(COMMAND "${CUOBJDUMP}" -sass "${object}" OUTPUT_VARIABLE code
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "," code "${code}")
  string(REPLACE "Function : " ";" kernels "${code}")
  list(REMOVE_AT kernels 0)
  foreach(kernel IN LISTS kernels)
    string(REGEX MATCH "^[^\n]*" name "${kernel}")
    if(NOT name MATCHES "Encode|MoveILb1E")  # others read codes, at any even address
      continue()
    endif()
    if(name MATCHES "EncodeFre|EncodeCells")  # a row of 32 values, a lane's one; cells of a lattice
      continue()
    endif()
    math(EXPR n "${n} + 1")
    # LD: a kernel of all blocks has its addresses from memory, so that any kind may be meant.
    if(NOT kernel MATCHES "LDG?\\.E\\.(CONSTANT\\.)?(LU\\.)?128")
      string(APPEND bad "\n  ${object}: ${name}")
    endif()
  endforeach()
endforeach()
if(n EQUAL 0)
  message(FATAL_ERROR "${FOLDER}: no kernel that encodes, or its name has changed")
endif()
if(bad)
  message(FATAL_ERROR "no load of 128 bits in:${bad}")
endif()
message(STATUS "${n} kernels that encode load 128 bits a lane")
