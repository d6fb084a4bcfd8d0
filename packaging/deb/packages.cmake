# SPDX-License-Identifier: Apache-2.0
# Debian packages by CPack (scripts/deb), one for each component: no file is in two of them.
# Dependencies on other packages' libraries are what dpkg-shlibdeps finds.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "wirepress: WPR_DEB needs CMAKE_INSTALL_PREFIX=/usr")
endif()
if(NOT TARGET _core)
  message(FATAL_ERROR "wirepress: WPR_DEB needs WPR_PYTHON=ON")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME wirepress)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "wirepress <wirepress@localhost>" CACHE STRING
    "name and address of the packages' maker (scripts/deb: DEBFULLNAME and DEBEMAIL)")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Libraries that no installed package has: ours, and the name that MPICH's has elsewhere.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS
    "${CMAKE_BINARY_DIR}/pipeline" "${CMAKE_BINARY_DIR}/integrations/mpi/sonames/mpi")
set(CPACK_COMPONENTS_ALL "")
set(same "libwirepress0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# What Debian wants beside every package: its licences and its changes.
file(READ "${CMAKE_SOURCE_DIR}/LICENSE" apache)
file(READ "${WPR_SZ3_DIR}/copyright-and-BSD-license.txt" sz3)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(doc "${CMAKE_BINARY_DIR}/deb")
file(CONFIGURE OUTPUT "${doc}/copyright" @ONLY CONTENT
"wirepress, under the Apache License 2.0, of which Debian has the text in
/usr/share/common-licenses/Apache-2.0.

The library holds code of SZ3, under this licence:

@sz3@
")
file(CONFIGURE OUTPUT "${doc}/changelog.Debian" @ONLY CONTENT
"wirepress (@PROJECT_VERSION@-@CPACK_DEBIAN_PACKAGE_RELEASE@) unstable; urgency=medium

  * Packages of wirepress @PROJECT_VERSION@.

 -- @CPACK_PACKAGE_CONTACT@  @date@
")
execute_process(COMMAND gzip -9nf "${doc}/changelog.Debian" COMMAND_ERROR_IS_FATAL ANY)

# wpr_deb(COMPONENT PACKAGE SECTION SUMMARY TEXT DEPENDS [RECOMMENDS])
function(wpr_deb component package section summary text depends)
  string(TOUPPER "${component}" upper)
  set(prefix CPACK_DEBIAN_${upper}_PACKAGE)
  set(${prefix}_NAME "${package}" PARENT_SCOPE)
  set(${prefix}_SECTION "${section}" PARENT_SCOPE)
  set(${prefix}_DEPENDS "${depends}" PARENT_SCOPE)
  set(${prefix}_RECOMMENDS "${ARGN}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  install(FILES "${doc}/copyright" "${doc}/changelog.Debian.gz"
          DESTINATION "share/doc/${package}" COMPONENT ${component})
endfunction()

wpr_deb(library libwirepress0 libs "compression in flight, shared library"
"Recipes of codecs for bytes, floats, arrays and gradients, in one frame format
that is self-describing, checked and streamable." "")
# CPack would write shlibs for every component or for none, and knows no triggers.
file(WRITE "${doc}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${doc}/shlibs" "libwirepress ${PROJECT_VERSION_MAJOR} ${same}\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA "${doc}/triggers" "${doc}/shlibs")

wpr_deb(dev libwirepress-dev libdevel "compression in flight, development files"
"C and C++ headers, a CMake package and a pkg-config file for libwirepress." "${same}")

# The extension is for one Python; its name says which.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
math(EXPR next "${Python_VERSION_MINOR} + 1")
set(python "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}~)")
string(APPEND python ", python3 (<< ${Python_VERSION_MAJOR}.${next}), python3-shtab, python3-tqdm")
wpr_deb(python wirepress python "compression in flight, command line and Python package"
"Starts unmodified MPI programs so that they send fewer bytes (wirepress run),
compresses files and arrays, plans and simulates." "${python}, ${same}"
"wirepress-mpi-openmpi | wirepress-mpi-mpich, python3-numpy")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "wirepress-hdf5, python3-h5py (>= 3.10), g++")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${CMAKE_CURRENT_LIST_DIR}/postinst" "${CMAKE_CURRENT_LIST_DIR}/prerm")
if(NOT EXISTS "${WPR_DIST_INFO}/METADATA")
  message(FATAL_ERROR "wirepress: WPR_DEB needs WPR_DIST_INFO, the folder of METADATA")
endif()

foreach(family openmpi mpich)
  if(NOT TARGET wirepress_mpi_${family})
    message(FATAL_ERROR "wirepress: WPR_DEB needs both MPIs of Debian; there is no mpicc.${family}")
  endif()
  set(name "Open MPI")
  if(family STREQUAL "mpich")
    set(name MPICH)
  endif()
  wpr_deb(wirepress_mpi_${family} wirepress-mpi-${family} libs "compression in flight, module for ${name}"
"The library that wirepress run preloads into programs of Debian's ${name}." "" "wirepress")
endforeach()

# The libraries that are only a name need no libc.
file(WRITE "${doc}/wirepress-mpi-mpich" "wirepress-mpi-mpich: library-not-linked-against-libc\n")
install(FILES "${doc}/wirepress-mpi-mpich" DESTINATION share/lintian/overrides
        COMPONENT wirepress_mpi_mpich)

wpr_deb(wirepress_hdf5 wirepress-hdf5 libs "compression in flight, filter for HDF5"
"A plug-in for HDF5_PLUGIN_PATH that writes and reads chunks of datasets." "")

# Drivers are loaded by name, so dpkg-shlibdeps does not find them; their packages bear DPDK's ABI.
# That of memory pools is needed by every device.
if(TARGET wirepress_compressdev)
  find_library(wpr_rte_compressdev rte_compressdev REQUIRED)
  file(REAL_PATH "${wpr_rte_compressdev}" file)
  string(REGEX REPLACE ".*\\.so\\.([0-9]+).*" "\\1" abi "${file}")
  wpr_deb(compressdev wirepress-compressdev libs "compression in flight, module for compression devices"
"Codes blocks on a DPU's engine, a card or a driver in software through DPDK, or on
virtual devices (engine=compressdev)." "librte-mempool-ring${abi}"
"librte-compress-isal${abi}, librte-compress-zlib${abi}")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS
      "${CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS}, wirepress-compressdev")
else()
  message(STATUS "package wirepress-compressdev: not made (libdpdk-dev); libwirepress0 has the virtual devices")
endif()

include(CPack)
