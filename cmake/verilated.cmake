# SPDX-License-Identifier: Apache-2.0
# Joins what Verilator wrote to FOLDER in one file, all.cpp: only it knows how many files it writes.
file(GLOB sources "${FOLDER}/*.cpp")
list(SORT sources)
set(text "")
foreach(source IN LISTS sources)
  get_filename_component(name "${source}" NAME)
  string(APPEND text "#include \"${name}\"\n")
endforeach()
file(WRITE "${FOLDER}/all.cpp" "${text}")
