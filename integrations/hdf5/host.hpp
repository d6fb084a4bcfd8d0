// SPDX-License-Identifier: Apache-2.0
// The HDF5 library that called us. Nothing is linked: a process may hold several (every Python
// wheel brings its own), and a second one would not know the handles of the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings.hpp"

namespace wirepress::hdf5 {

using Id = int64_t;  // hid_t since HDF5 1.10

class Host {
 public:
  // `inside`: an address in the library's code, which a callback has as its return address.
  explicit Host(void* inside);

  // Of a property list for creating datasets: our filter's flags and values, and whether no other
  // filter comes before it. False: the library or the filter is not found.
  bool settings(Id list, int filter, unsigned* flags, std::vector<unsigned>* values,
                bool* first) const;
  bool modify(Id list, int filter, unsigned flags, const std::vector<unsigned>& values) const;
  std::vector<uint64_t> chunk(Id list) const;  // empty: unknown
  // As what elements of a type can be described, best first. Empty: their size is not known.
  std::vector<Kind> kinds(Id type) const;
  // Puts a sentence on the library's stack of errors.
  void complain(const std::string& sentence) const;

 private:
  template <class Function>
  Function* find(const char* name) const;
  std::vector<Kind> array_kinds(Id type) const;
  std::vector<Kind> compound_kinds(Id type) const;
  std::vector<Kind> complex_kinds(Id part) const;
  std::vector<Kind> super_kinds(Id type) const;
  wpr_dtype number(Id type, int type_class) const;
  wpr_dtype float_type(Id type, size_t size) const;

  void* library_ = nullptr;  // stays loaded: it is running
};

}  // namespace wirepress::hdf5
