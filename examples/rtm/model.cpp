// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

namespace rtm {
namespace {

constexpr float kWater = 1500, kBottom = 4400, kSalt = 4500;

// The generators of <random> are the same everywhere; its distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  float between(float low, float high) {
    const auto bits = static_cast<float>(engine_() >> 40) * 0x1p-24F;
    return low + (high - low) * bits;
  }

 private:
  std::mt19937_64 engine_;
};

// A smooth surface: a plane and a few waves, about `roughness` cells high.
class Surface {
 public:
  Surface(Random& random, float depth, float roughness) : depth_(depth) {
    for (Wave& wave : waves_) {
      wave.x = random.between(-1.5F, 1.5F);
      wave.y = random.between(-1.5F, 1.5F);
      wave.phase = random.between(0, 2 * std::numbers::pi_v<float>);
      wave.height = random.between(0.3F, 1) * roughness / 2;
    }
  }
  // x and y are 0 to 1
  float at(float x, float y) const {
    float depth = depth_;
    for (const Wave& wave : waves_)
      depth += wave.height *
               std::sin(2 * std::numbers::pi_v<float> * (wave.x * x + wave.y * y) + wave.phase);
    return depth;
  }

 private:
  struct Wave {
    float x = 0, y = 0, phase = 0, height = 0;
  };
  float depth_;
  Wave waves_[3];
};

template <class Value>
void fill(Model& model, Value value) {
  const auto unit = [](int i, int n) { return static_cast<float>(i) / static_cast<float>(n); };
  for (int y = 0; y < model.size.y; ++y) {
    for (int x = 0; x < model.size.x; ++x) {
      for (int z = 0; z < model.size.z; ++z)
        value(unit(x, model.size.x), unit(y, model.size.y), static_cast<float>(z),
              &model.v[model.index(x, y, z)]);
    }
  }
}

void add_beds(Model& model, Random& random, float fold) {
  const auto depth = static_cast<float>(model.size.z);
  constexpr int kBeds = 6;
  std::vector<Surface> tops;
  std::vector<float> speeds = {kWater};
  for (int i = 0; i < kBeds; ++i) {
    const float part = (static_cast<float>(i) + random.between(0.9F, 1.3F)) / (kBeds + 0.6F);
    tops.emplace_back(random, part * depth, fold * depth);
    const float rise = kWater + (kBottom - kWater) * static_cast<float>(i + 1) / kBeds;
    speeds.push_back(rise * random.between(0.88F, 1));
  }
  fill(model, [&](float x, float y, float z, float* v) {
    *v = kWater;
    for (size_t i = 0; i < tops.size(); ++i) {
      if (z >= tops[i].at(x, y)) *v = speeds[i + 1];
    }
  });
}

// A bumpy ellipsoid, steep at its flanks, in the lower half.
void add_salt(Model& model, Random& random) {
  const auto depth = static_cast<float>(model.size.z);
  const float middle_x = random.between(0.42F, 0.58F), middle_y = random.between(0.42F, 0.58F);
  const float middle_z = random.between(0.55F, 0.65F);
  const float wide_x = random.between(0.2F, 0.3F), wide_y = random.between(0.2F, 0.3F);
  const float high = random.between(0.16F, 0.22F);
  const Surface bumps(random, 0, 0.35F);
  fill(model, [&](float x, float y, float z, float* v) {
    const float a = (x - middle_x) / wide_x, b = (y - middle_y) / wide_y;
    const float c = (z / depth - middle_z) / high;
    if (a * a + b * b + c * c < 1 + bumps.at(2 * x, 2 * y)) *v = kSalt;
  });
}

// A running mean of 2 radius + 1 cells along one dimension; beyond the edge its last value.
void average(std::vector<float>& line, std::vector<float>& copy, int radius) {
  copy = line;
  const int n = static_cast<int>(line.size());
  double sum = 0;
  const auto value = [&](int i) { return copy[static_cast<size_t>(std::clamp(i, 0, n - 1))]; };
  for (int i = -radius; i <= radius; ++i) sum += value(i);
  for (int i = 0; i < n; ++i) {
    line[static_cast<size_t>(i)] = static_cast<float>(sum / (2 * radius + 1));
    sum += value(i + radius + 1) - value(i - radius);
  }
}

void average_along(Model& model, int n, int n_others, size_t step, auto start, int radius) {
  std::vector<float> line(static_cast<size_t>(n)), copy;
  for (int other = 0; other < n_others; ++other) {
    float* first = model.v.data() + start(other);
    for (size_t i = 0; i < line.size(); ++i) line[i] = first[i * step];
    average(line, copy, radius);
    for (size_t i = 0; i < line.size(); ++i) first[i * step] = line[i];
  }
}

}  // namespace

float Model::slowest() const { return *std::min_element(v.begin(), v.end()); }
float Model::fastest() const { return *std::max_element(v.begin(), v.end()); }

Model make_model(const std::string& kind, Size size, uint64_t seed) {
  Model model{size, std::vector<float>(size.n(), 2000)};
  Random random(seed);
  if (kind == "constant") return model;
  if (kind != "flat" && kind != "layered" && kind != "salt")
    throw std::invalid_argument("model \"" + kind + "\" is not flat, layered, salt or constant");
  add_beds(model, random, kind == "flat" ? 0 : 0.06F);
  if (kind == "salt") add_salt(model, random);
  return model;
}

Model smoothed(const Model& model, int radius) {
  Model result = model;
  if (radius < 1) return result;
  for (float& v : result.v) v = 1 / v;
  const Size s = model.size;
  const auto x = static_cast<size_t>(s.x), plane = x * static_cast<size_t>(s.y);
  for (int pass = 0; pass < 2; ++pass) {
    average_along(
        result, s.x, s.y * s.z, 1, [&](int i) { return static_cast<size_t>(i) * x; }, radius);
    average_along(
        result, s.z, s.x * s.y, plane, [](int i) { return static_cast<size_t>(i); }, radius);
    average_along(
        result, s.y, s.x * s.z, x,
        [&](int i) { return static_cast<size_t>(i) / x * plane + static_cast<size_t>(i) % x; },
        radius);
  }
  for (float& v : result.v) v = 1 / v;
  return result;
}

std::vector<int> reflectors(const Model& model, int x, int y, float jump) {
  std::vector<int> depths;
  for (int z = 1; z < model.size.z; ++z) {
    const float above = model.at(x, y, z - 1), below = model.at(x, y, z);
    if (std::fabs(below - above) > jump * above) depths.push_back(z);
  }
  return depths;
}

}  // namespace rtm
