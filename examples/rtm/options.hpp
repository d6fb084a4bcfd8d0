// SPDX-License-Identifier: Apache-2.0
// The command line.
#pragma once

#include <string>
#include <vector>

#include "frames.hpp"

namespace rtm {

struct Options {
  Size size = {128, 128, 128};
  int sponge = 20;
  std::string model = "layered", velocity;  // velocity: a .raw file of float32
  uint64_t seed = 1;
  float spacing = 10, frequency = 15;
  int steps = 0;  // 0: until the deepest reflection is back
  int every = 4, receiver_step = 2, shots = 1, smooth = 0;
  std::vector<std::string> policies = {"memory", "compressed"};
  std::vector<std::string> recipes = {"bx:m=5"};
  std::vector<std::string> rivals;  // recipes to be compared with at equal size
  std::vector<std::string> match = {"bx:m", "zfp:precision"};  // with these
  std::vector<int> threads;
  Storage storage;  // without policy and recipe
  std::vector<int> pin;
  std::string folder = ".", image, gather, array, json;
  bool keep = false, progress = false, roofline = false;
};

// Throws std::invalid_argument. `--help` prints and ends with false.
bool read_options(int argc, char** argv, Options* options);

}  // namespace rtm
