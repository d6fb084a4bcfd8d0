# SPDX-License-Identifier: Apache-2.0
# Where ccache is installed it is used: the wheel and preset dev are made of the same objects. With
# paths relative to the checkout, and whatever build folder asks.
find_program(WPR_CCACHE ccache)
foreach(language C CXX)
  if(WPR_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${WPR_CCACHE})
  endif()
endforeach()
