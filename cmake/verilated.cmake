# SPDX-License-Identifier: Apache-2.0
# Joins what Verilator wrote to FOLDER in one file, all.cpp: only it knows how many files it writes.
# What runs once, half of the text, is compiled as it stands: that saves a quarter of the time.
file(GLOB sources RELATIVE "${FOLDER}" "${FOLDER}/*.cpp")
list(SORT sources)
set(often ${sources})
list(FILTER often EXCLUDE REGEX "Slow\\.cpp$")
set(once ${sources})
list(FILTER once INCLUDE REGEX "Slow\\.cpp$")
set(text "")
foreach(source IN LISTS often)
  string(APPEND text "#include \"${source}\"\n")
endforeach()
string(APPEND text "#ifdef __clang__\n#pragma clang optimize off\n#else\n"
                   "#pragma GCC optimize(\"O0\")\n#endif\n")
foreach(source IN LISTS once)
  string(APPEND text "#include \"${source}\"\n")
endforeach()
file(WRITE "${FOLDER}/all.cpp" "${text}")
