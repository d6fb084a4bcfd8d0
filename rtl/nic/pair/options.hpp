// SPDX-License-Identifier: Apache-2.0
// The command line of the pair of simulated NIC boxes.
#pragma once

#include <string>
#include <vector>

#include "end.hpp"
#include "wire.hpp"

namespace nic {

// What payloads hold: values as in kKinds, and a number where the kind has one.
struct Data {
  std::string name;  // as it was given
  std::string kind;
  double number = 0;
};

struct Options {
  Codec codec;
  std::string json;
  bool software = false;  // the other end is the library
  std::vector<size_t> sizes = {64, 66, 130, 306, 1074, 1518, 4096, 9018, 9594};
  std::vector<Data> data = {{"wave", "wave"}, {"noise", "noise"}};
  size_t packets = 100;  // of each size and kind, in each direction
  double other = 0.125;  // of them for a port that is not compressed
  Settings settings;
  Faults faults;
};

// Ends the program where --help is asked for, or with a sentence and status 2 where an option is
// wrong.
Options options_of(int argc, char** argv);

}  // namespace nic
