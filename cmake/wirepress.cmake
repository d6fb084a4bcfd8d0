# SPDX-License-Identifier: Apache-2.0
# The functions that codec, engine and integration folders call, and the generated registry.

# wpr_add_folders(DIR [NAME...]): every folder of DIR with a CMakeLists.txt, or those named.
function(wpr_add_folders dir)
  file(GLOB lists CONFIGURE_DEPENDS "${dir}/*/CMakeLists.txt")
  foreach(list IN LISTS lists)
    get_filename_component(folder "${list}" DIRECTORY)
    get_filename_component(room "${dir}" NAME)
    get_filename_component(name "${folder}" NAME)
    if(ARGN AND NOT name IN_LIST ARGN)
      continue()
    endif()
    add_subdirectory("${folder}" "${CMAKE_BINARY_DIR}/${room}/${name}")
  endforeach()
endfunction()

# wpr_install_licence(NAME FILE): the licence of what is inside stands beside it in the package.
function(wpr_install_licence name file)
  if(WPR_PACKAGE_DIR)
    install(FILES "${file}" DESTINATION "${WPR_PACKAGE_DIR}/licenses" RENAME "${name}.txt"
            COMPONENT python)
  endif()
endfunction()

# wpr_install_debian_licence(NAME PACKAGE): the same, as Debian's package has it.
function(wpr_install_debian_licence name package)
  set(file "/usr/share/doc/${package}/copyright")
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "wirepress: no ${file}, which must go with the code of ${name}")
  endif()
  wpr_install_licence(${name} "${file}")
endfunction()

# wpr_link_into_package(NAME PLACE): the Python package finds under NAME what lies under PLACE of
# the modules' folder. (In a wheel both are one.)
function(wpr_link_into_package name place)
  if(SKBUILD)
    return()
  endif()
  get_filename_component(folder "${WPR_PACKAGE_DIR}/${name}" DIRECTORY)
  get_filename_component(file "${name}" NAME)
  file(RELATIVE_PATH target "/${folder}" "/${CMAKE_INSTALL_LIBDIR}/wirepress/${place}")
  set(link "${CMAKE_BINARY_DIR}/links/${name}")
  get_filename_component(parent "${link}" DIRECTORY)
  file(MAKE_DIRECTORY "${parent}")
  file(CREATE_LINK "${target}" "${link}" SYMBOLIC)
  install(FILES "${link}" DESTINATION "${folder}" COMPONENT python)
endfunction()

# wpr_find_library(TARGET HEADER LIBRARY PACKAGE): an imported target for a plain C library, or a
# configuration error that names the Debian package. With WPR_PORTABLE it is the archive.
function(wpr_find_library target header library package)
  if(TARGET ${target})
    return()
  endif()
  find_path(${target}_INCLUDE_DIR ${header})
  set(file "lib${library}")
  if(WPR_PORTABLE)
    string(APPEND file .a)
    find_library(${target}_LIBRARY ${file})
    wpr_install_debian_licence(${library} ${package})
  else()
    find_library(${target}_LIBRARY ${library})
  endif()
  if(NOT ${target}_INCLUDE_DIR OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "wirepress: ${header} or ${file} not found; on Debian and Ubuntu: apt-get install ${package}")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${${target}_INCLUDE_DIR}")
  target_link_libraries(${target} INTERFACE "${${target}_LIBRARY}")
endfunction()

# wpr_add_codec(NAME ID 0x20 KERNELS avx2.cpp scalar.cpp [LIBRARIES target...] [CORES module...])
#
# The folder holds NAME.cpp, which defines `wirepress::NAME_codec`, and each kernel file KERNEL.cpp
# (best first, the portable one last), which defines `wirepress::NAME_KERNEL`. A kernel file named
# after an instruction set is compiled for it; those named rtl, or rtl and a number, run the FPGA cores
# CORES (rtl/); cuda.cu is compiled by nvcc (cmake/cuda.cmake).
function(wpr_add_codec name)
  cmake_parse_arguments(arg "" "ID" "KERNELS;LIBRARIES;CORES" ${ARGN})
  math(EXPR id "${arg_ID}")
  if(id LESS 1 OR id GREATER 4095)
    message(FATAL_ERROR "codec ${name}: id ${arg_ID} is not in 1..0xFFF")
  endif()
  get_property(taken GLOBAL PROPERTY wpr_codec_ids)
  if(id IN_LIST taken)
    message(FATAL_ERROR "codec ${name}: id ${arg_ID} is taken by another codec")
  endif()
  set_property(GLOBAL APPEND PROPERTY wpr_codec_ids ${id})

  set(kernels "")
  set(files "")
  foreach(file IN LISTS arg_KERNELS)
    get_filename_component(kernel "${file}" NAME_WE)
    wpr_instruction_set("${kernel}" here flags)
    if(NOT here)
      continue()
    endif()
    list(APPEND kernels ${kernel})
    if(file MATCHES "\\.cu$")
      set_property(GLOBAL APPEND PROPERTY wpr_cuda_sources "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
      continue()
    endif()
    list(APPEND files ${file})
    if(flags)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags}")
    endif()
  endforeach()
  add_library(codec_${name} OBJECT ${name}.cpp ${files})
  target_include_directories(codec_${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(codec_${name} PRIVATE ${arg_LIBRARIES})
  if(WPR_VERILATOR)
    foreach(core IN LISTS arg_CORES)
      if(NOT TARGET core_${core})  # codecs may share one
        wpr_verilate(${core})
        set_property(GLOBAL APPEND PROPERTY wpr_objects core_${core})
      endif()
      target_include_directories(codec_${name} SYSTEM PRIVATE
                                 "${CMAKE_BINARY_DIR}/rtl/${core}" "${WPR_VERILATOR_ROOT}/include")
      add_dependencies(codec_${name} core_${core})
    endforeach()
  endif()
  list(JOIN kernels "|" kernels)
  set_property(GLOBAL APPEND PROPERTY wpr_codecs "${id}:${name}:${kernels}")
  set_property(GLOBAL APPEND PROPERTY wpr_objects codec_${name})
  set_property(GLOBAL APPEND PROPERTY wpr_libraries ${arg_LIBRARIES})
  if(WPR_TESTS AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.cpp")
    set_property(GLOBAL APPEND PROPERTY wpr_unit_tests "${CMAKE_CURRENT_SOURCE_DIR}/${name}_test.cpp")
  endif()
endfunction()

# Of a kernel file that is named after an instruction set: its compiler flags, and whether the
# processor that is compiled for is of that family. Contraction is off: a fused multiply-add rounds
# once where two operations round twice, and kernels of one codec must agree bit for bit. Loops are
# aligned: the speed of a short one changes by a fifth with its place, and so with any other line.
function(wpr_instruction_set kernel here flags)
  set(x86 FALSE)
  set(arm FALSE)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(x86 TRUE)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(arm TRUE)
  endif()
  set(${here} TRUE PARENT_SCOPE)
  set(common -ffp-contract=off -falign-loops=32)
  set(${flags} ${common} PARENT_SCOPE)
  if(kernel STREQUAL "avx2")
    set(${here} ${x86} PARENT_SCOPE)
    set(${flags} -march=x86-64-v3 ${common} PARENT_SCOPE)
  elseif(kernel STREQUAL "avx512")
    # Sanitizers keep inline functions, of which the linker takes any file's: this one's would end
    # programs on processors without AVX-512. (With GCC's -O3 these files define no such functions.)
    if(WPR_SANITIZE)
      file(STRINGS "/proc/cpuinfo" able REGEX "^flags.* avx512_vbmi2" LIMIT_COUNT 1)
      if(NOT able)
        set(x86 FALSE)
      endif()
    endif()
    set(${here} ${x86} PARENT_SCOPE)
    set(${flags} -march=x86-64-v4 -mavx512vbmi -mavx512vbmi2 -mgfni ${common} PARENT_SCOPE)
  elseif(kernel STREQUAL "neon")
    set(${here} ${arm} PARENT_SCOPE)
  elseif(kernel MATCHES "^rtl[0-9]*$")
    if(NOT WPR_VERILATOR)
      set(${here} FALSE PARENT_SCOPE)
    endif()
  elseif(kernel STREQUAL "cuda")
    if(NOT WPR_NVCC)
      set(${here} FALSE PARENT_SCOPE)
    endif()
  endif()
endfunction()

# wpr_add_engine(NAME SOURCES file...): defines `wirepress::NAME_engine`.
function(wpr_add_engine name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(engine_${name} OBJECT ${arg_SOURCES})
  target_include_directories(engine_${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(engine_${name} PRIVATE ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY wpr_engines ${name})
  set_property(GLOBAL APPEND PROPERTY wpr_objects engine_${name})
  set_property(GLOBAL APPEND PROPERTY wpr_libraries ${arg_LIBRARIES})
endfunction()

# wpr_add_integration(TARGET SOURCES file... [LIBRARIES target...] [FOLDER folder]
#                     [SHARED_RUNTIME]): a module that a host program loads. It holds the whole
# library and exports only what its export list (EXPORTS) names. FOLDER: where the wheel keeps it,
# below wirepress/. SHARED_RUNTIME: it has the C++ runtime of its host, not one of its own.
function(wpr_add_integration target)
  cmake_parse_arguments(arg "SHARED_RUNTIME" "EXPORTS;FOLDER" "SOURCES;LIBRARIES" ${ARGN})
  add_library(${target} MODULE ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(${target} PRIVATE wirepress_static ${arg_LIBRARIES})
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  if(NOT arg_SHARED_RUNTIME)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  if(arg_EXPORTS)
    target_link_options(${target} PRIVATE "-Wl,--version-script=${arg_EXPORTS}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${arg_EXPORTS}")
  endif()
  wpr_install_module(${target} "${arg_FOLDER}" ${target})
endfunction()

# wpr_install_module(TARGET FOLDER COMPONENT): into the package of a wheel, or the modules' folder.
function(wpr_install_module target folder component)
  set(place "${CMAKE_INSTALL_LIBDIR}/wirepress")
  if(SKBUILD)
    set(place wirepress)
    if(NOT folder OR folder STREQUAL "other_names")
      set(folder "lib/${folder}")
    endif()
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION "${place}/${folder}" COMPONENT ${component})
endfunction()

# Writes registry.cpp from what the folders said: codecs by id, and options of the library before
# those of integrations, which are declared whether or not an integration is built, as are the
# variables that are no options.
function(wpr_write_registry)
  file(GLOB own CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/*/options.inc")
  file(GLOB others CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}"
       "${CMAKE_SOURCE_DIR}/integrations/*/options.inc")
  set(options "")
  foreach(file IN LISTS own others)
    string(APPEND options "#include \"${file}\"\n")
  endforeach()
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}"
       "${CMAKE_SOURCE_DIR}/*/variables.inc" "${CMAKE_SOURCE_DIR}/integrations/*/variables.inc")
  set(variables "")
  foreach(file IN LISTS files)
    string(APPEND variables "#include \"${file}\"\n")
  endforeach()
  get_property(codecs GLOBAL PROPERTY wpr_codecs)
  get_property(engine_names GLOBAL PROPERTY wpr_engines)
  list(SORT codecs COMPARE NATURAL)
  set(declarations "")
  set(lists "")
  set(entries "")
  foreach(codec IN LISTS codecs)
    string(REPLACE ":" ";" fields "${codec}")
    list(GET fields 0 id)
    list(GET fields 1 name)
    list(GET fields 2 kernels)
    string(REPLACE "|" ";" kernels "${kernels}")
    string(APPEND declarations "extern const Codec ${name}_codec;\n")
    set(pointers "")
    foreach(kernel IN LISTS kernels)
      string(APPEND declarations "extern const Kernel ${name}_${kernel};\n")
      list(APPEND pointers "&${name}_${kernel}")
    endforeach()
    list(JOIN pointers ", " pointers)
    string(APPEND lists "static const Kernel* const ${name}_kernels[] = {${pointers}};\n")
    string(APPEND entries "    {${id}, &${name}_codec, ${name}_kernels},\n")
  endforeach()
  set(engine_pointers "")
  foreach(engine IN LISTS engine_names)
    string(APPEND declarations "extern const Engine ${engine}_engine;\n")
    list(APPEND engine_pointers "&${engine}_engine")
  endforeach()
  list(JOIN engine_pointers ", " engine_pointers)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/registry.cpp" @ONLY CONTENT
"// Generated by cmake/wirepress.cmake from the codec and engine folders and the files options.inc
// and variables.inc.
#include \"base/kernel.hpp\"
#include \"base/options.hpp\"
#include \"base/variables.hpp\"

namespace wirepress {
@declarations@
@lists@
static const Entry entries[] = {
@entries@};
static const Engine* const engine_list[] = {@engine_pointers@};
std::span<const Entry> registry() { return entries; }
std::span<const Engine* const> engines() { return engine_list; }

static constexpr OptionRow option_list[] = {
@options@};
std::span<const OptionRow> option_rows() { return option_list; }

static constexpr const char* variable_list[] = {
@variables@};
std::span<const char* const> other_variables() { return variable_list; }
}  // namespace wirepress
")
endfunction()

# wpr_unit_tests(file...): test files of this room, linked into one program by tests/.
function(wpr_unit_tests)
  if(WPR_TESTS)
    foreach(file IN LISTS ARGN)
      set_property(GLOBAL APPEND PROPERTY wpr_unit_tests "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    endforeach()
  endif()
endfunction()
