# SPDX-License-Identifier: Apache-2.0
# Does what docs/adding-a-codec.md says, in a scratch folder: copies codecs/store to `mirror` with
# the id 0xFFF, builds with that folder beside codecs/, and expects the new codec in the registry,
# with all its conformance checks passing. No file of the project is touched.
#   cmake -DSOURCE=... -DBUILD=... -DGENERATOR=... -DCC=... -DCXX=... -P add_codec.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(result)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

set(folder "${BUILD}/codecs/mirror")
file(REMOVE_RECURSE "${BUILD}/codecs")
file(COPY "${SOURCE}/codecs/store/" DESTINATION "${folder}")
file(RENAME "${folder}/store.cpp" "${folder}/mirror.cpp")
foreach(file CMakeLists.txt mirror.cpp scalar.cpp reference.py spec.md vectors/index.txt)
  file(READ "${folder}/${file}" text)
  string(REPLACE "store" "mirror" text "${text}")
  string(REPLACE "0x01" "0xFFF" text "${text}")
  file(WRITE "${folder}/${file}" "${text}")
endforeach()

# In a file, since a list would fall apart on its way to the command line.
file(WRITE "${BUILD}/settings.cmake"
     "set(WPR_CODEC_DIRS \"${SOURCE}/codecs;${BUILD}/codecs\" CACHE STRING \"\" FORCE)\n"
     "set(WPR_CODECS \"mirror;store\" CACHE STRING \"\" FORCE)\n")
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}/build" -G "${GENERATOR}" -C "${BUILD}/settings.cmake"
    -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug -DWPR_TESTS=ON
    -DWPR_INTEGRATIONS=OFF)
run("${CMAKE_COMMAND}" --build "${BUILD}/build" --target conformance wirepress)
set(conformance "${BUILD}/build/tests/conformance")
run("${conformance}" --list)
if(NOT out MATCHES "0xFFF mirror cpu:scalar")
  message(FATAL_ERROR "the new codec is not in the list:\n${out}")
endif()
run("${conformance}" --codec mirror --vectors "${BUILD}/codecs")
if(NOT out MATCHES "mirror +[0-9]+ checks\n[0-9]+ checks, 0 failed")
  message(FATAL_ERROR "the new codec was not checked:\n${out}")
endif()

# The C door lists it and takes it: from there Python and the command line have their lists.
find_program(python python3 REQUIRED)
file(WRITE "${BUILD}/door.py" [[
import ctypes as c
import sys

class Info(c.Structure):
    _fields_ = [("id", c.c_uint32), ("name", c.c_char_p), ("rest", c.c_byte * 64)]

door = c.CDLL(sys.argv[1])
info, names, ctx = Info(), [], c.c_void_p()
while door.wpr_codec_at(c.c_size_t(len(names)), c.byref(info)):
    names.append((info.id, info.name))
assert (0xFFF, b"mirror") in names, names
door.wpr_create(c.byref(ctx))
door.wpr_error.restype = c.c_char_p
assert door.wpr_set(ctx, b"recipe", b"mirror") == 0
assert door.wpr_set(ctx, b"recipe", b"none") != 0
assert b"mirror" in door.wpr_error(ctx), door.wpr_error(ctx)
]])
run("${python}" "${BUILD}/door.py" "${BUILD}/build/pipeline/libwirepress.so")

# The same id twice stops the configuration, and says whose it is.
file(READ "${folder}/CMakeLists.txt" text)
string(REPLACE "0xFFF" "0x01" text "${text}")
file(WRITE "${folder}/CMakeLists.txt" "${text}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${SOURCE}" -B "${BUILD}/build" RESULT_VARIABLE result
                OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT result OR NOT out MATCHES "codec mirror: id 0x01 is taken")
  message(FATAL_ERROR "a duplicate id was not refused:\n${out}")
endif()
message(STATUS "a copy of codecs/store is a codec")
