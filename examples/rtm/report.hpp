// SPDX-License-Identifier: Apache-2.0
// What was measured, as a table and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare.hpp"
#include "migrate.hpp"
#include "options.hpp"
#include "roofline.hpp"

namespace rtm {

struct Run {
  std::string policy, recipe;  // recipe "": none
  int threads = 0;
  RunTimes times;
  wpr_store_stats stats = {};
  std::vector<wpr_store_frame> frames;
  std::optional<Difference> difference;  // from the reference's image
  bool direct = false;                   // what was written went past the page cache
};

// Runs at equal size, as places in Report::runs.
struct Peers {
  size_t rival;
  std::vector<size_t> ours;  // those that can be as small
};

struct Report {
  Options options;
  Survey survey;
  std::string kernel;
  size_t n_points = 0;                              // cells that a step computes
  size_t frame_size = 0;                            // bytes
  double model_seconds = 0;                         // of the observed data
  std::vector<std::pair<int, Roofline>> rooflines;  // by threads
  std::vector<Run> runs;
  std::vector<Peers> peers;
  std::vector<int> reflectors;  // depths in the middle
  std::vector<float> column;    // of the last image, sharpened, in the middle
};

void print_table(const Report& report);
void write_json(const Report& report, const std::string& path);

}  // namespace rtm
