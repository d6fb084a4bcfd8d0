// SPDX-License-Identifier: Apache-2.0
// The vector kernels, one source for all. The loops are compiled for each number of bits: planes
// are then unrolled, and their shifts constants.
#pragma once

#include <utility>

#include "codecs/common/simd/lanes.hpp"
#include "codecs/qsgd/qsgd.hpp"

namespace wirepress::qsgd {
namespace {

// function.template operator()<plane>() for planes 0 .. kPlanes - 1.
template <int kPlanes, typename Function>
[[gnu::always_inline]] inline void each_plane(Function function) {
  [&]<int... kPlane>(std::integer_sequence<int, kPlane...>) __attribute__((always_inline)) {
    (function.template operator()<kPlane>(), ...);
  }
  (std::make_integer_sequence<int, kPlanes>());
}

class Vector {
 public:
  static constexpr const char* kName = qsgd::kName;
  static constexpr size_t kValues = qsgd::kValues;
  static constexpr size_t kHeadSize = qsgd::kHeadSize;
  static size_t planes(const Args& args) { return Levels(args).bits; }
  explicit Vector(const Args& args) : levels_(args), seed_(args.seed) {}

  template <bool kFeedback>
  void encode(const std::byte* src, std::byte* residual, const chunks::Run& run,
              std::byte* code) const {
    using namespace lanes;
    Words most = splat(0u);
    for (size_t i = 0; i < run.padded; i += kLanes)
      most = larger(most, without_sign(lanes::take<kFeedback>(src, residual, i)));
    const float unit = levels_.unit(largest(most));
    if (!chunks::finite(unit)) {
      chunks::write_nan(1, kHeadSize + run.padded / chunks::kGroup * levels_.group_size(), code);
      if constexpr (kFeedback) std::memset(residual, 0, 4 * run.padded);
      return;
    }
    chunks::write(code, unit);
    with_bits([&]<int kBits> {
      round<kBits, kFeedback>(kFeedback ? residual : src, residual, run, unit, code + kHeadSize);
    });
  }

  template <bool kAdd>
  bool decode(const std::byte* code, size_t padded, std::byte* dst) const {
    const float unit = chunks::read<float>(code);
    const std::byte* groups = code + kHeadSize;
    if (!levels_.valid(unit, groups, padded / chunks::kGroup * levels_.group_size())) return false;
    bool good = false;
    with_bits([&]<int kBits> { good = expand<kBits, kAdd>(groups, padded, unit, dst); });
    return good;
  }

 private:
  template <typename Function>
  void with_bits(Function function) const {
    switch (levels_.bits) {
      case 2:
        return function.template operator()<2>();
      case 3:
        return function.template operator()<3>();
      case 4:
        return function.template operator()<4>();
      case 5:
        return function.template operator()<5>();
      case 6:
        return function.template operator()<6>();
      case 7:
        return function.template operator()<7>();
      default:
        return function.template operator()<8>();
    }
  }

  template <int kBits, bool kFeedback>
  void round(const std::byte* values, std::byte* residual, const chunks::Run& run, float unit,
             std::byte* groups) const {
    using namespace lanes;
    const Floats scale = splat(unit), inverse = splat(Levels::inverse(unit));
    const Words most = splat(levels_.most), zero = splat(0u), sign = splat(chunks::kSign);
    Draws draws(seed_, run.first);
    for (size_t i = 0; i < run.padded; i += kLanes) {
      const Floats t = load(values + 4 * i);
      const Words scaled = truncated(as_floats(without_sign(t)) * inverse);
      const Words drawn = right<32 - kFractionBits>(draws.next());
      const Words level = smaller(right<kFractionBits>(scaled + drawn), most);
      const Mask negative = both(as_words(t) < zero, zero < level);
      std::byte* group = groups + i / chunks::kGroup * (4 * kBits) + i % chunks::kGroup / 8;
      each_plane<kBits - 1>([&]<int kPlane>() __attribute__((always_inline)) {
        chunks::write(group + 4 * kPlane, static_cast<uint16_t>(plane<kPlane>(level)));
      });
      chunks::write(group + 4 * (kBits - 1), static_cast<uint16_t>(bits(negative)));
      if constexpr (kFeedback) {
        const Words size = as_words(converted(level) * scale);
        store(residual + 4 * i, t - as_floats(size ^ keep(negative, sign)));
      }
    }
  }

  template <int kBits, bool kAdd>
  static bool expand(const std::byte* groups, size_t padded, float unit, std::byte* dst) {
    using namespace lanes;
    const Floats scale = splat(unit);
    const Words sign = splat(chunks::kSign);
    uint32_t wrong = 0;  // signs of zeros
    for (size_t i = 0; i < padded; i += kLanes) {
      const std::byte* group = groups + i / chunks::kGroup * (4 * kBits) + i % chunks::kGroup / 8;
      const uint32_t negative = chunks::read<uint16_t>(group + 4 * (kBits - 1));
      uint32_t any = 0;
      Words level = splat(0u);
      each_plane<kBits - 1>([&]<int kPlane>() __attribute__((always_inline)) {
        const uint32_t word = chunks::read<uint16_t>(group + 4 * kPlane);
        any |= word;
        level = level | keep(mask(word), splat(1u << kPlane));
      });
      wrong |= negative & ~any;
      const Words size = as_words(converted(level) * scale);
      lanes::put<kAdd>(dst, i, as_floats(size ^ keep(mask(negative), sign)));
    }
    return wrong == 0;
  }

  Levels levels_;
  uint64_t seed_;
};

}  // namespace
}  // namespace wirepress::qsgd
