// SPDX-License-Identifier: Apache-2.0
// Reverse time migration of shots: forward with the source, backward with what the receivers
// heard, and the correlation of both at every k-th step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frames.hpp"
#include "wave.hpp"

namespace rtm {

// Steps 0 to n - 1; receivers at every receiver_step-th cell of a plane.
struct Survey {
  int n_steps = 0, every = 1;  // every: a frame is kept at each of these steps
  float time_step = 0, spacing = 0, frequency = 0;
  int source_depth = 2, receiver_depth = 2, receiver_step = 1;
  std::vector<std::pair<int, int>> shots;  // x, y
  int receivers_x(Size image) const { return (image.x + receiver_step - 1) / receiver_step; }
  int receivers_y(Size image) const { return (image.y + receiver_step - 1) / receiver_step; }
};

// What the receivers of one shot heard: of each step a plane of values.
struct Traces {
  int n_x = 0, n_y = 0;
  std::vector<float> values;
  size_t n() const { return static_cast<size_t>(n_x) * static_cast<size_t>(n_y); }
  float* at(int step) { return values.data() + static_cast<size_t>(step) * n(); }
  const float* at(int step) const { return values.data() + static_cast<size_t>(step) * n(); }
};

struct Image {
  Size size;
  std::vector<float> correlation, illumination;
  // The correlation by the illumination of the source, and a little where there is none.
  std::vector<float> normalised() const;
};

// Seconds of wall clock; those of workers are means over them.
struct PassTimes {
  double wall = 0;
  double storage = 0;  // workers put or got frames
  double barrier = 0;  // workers waited for the others
};

struct RunTimes {
  PassTimes forward, backward;
  double finish = 0;  // closing the store
  double total() const { return forward.wall + backward.wall + finish; }
};

class Progress {
 public:
  Progress(bool shown, std::string what) : shown_(shown), what_(std::move(what)) {}
  void show(const char* pass, int done, int of);
  void end();

 private:
  bool shown_;
  std::string what_;
  double last_ = 0, began_ = 0;
};

// What the receivers hear of a shot: the observed data, in the true earth.
Traces listen(Wave& wave, Team& team, const Survey& survey, size_t shot, Progress& progress);

struct Migration {
  RunTimes times;
  wpr_store_stats stats = {};
  std::vector<wpr_store_frame> frames;  // of the first shot
  Traces predicted;                     // of the first shot, in the smooth earth
  bool direct = false;                  // what was written went past the page cache
};

// Adds all shots to the image; policy none leaves it alone and only propagates.
Migration migrate(Wave& wave, Team& team, const Survey& survey, const Storage& storage,
                  const std::vector<Traces>& observed, Image* image, Progress& progress);

}  // namespace rtm
