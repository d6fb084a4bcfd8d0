// SPDX-License-Identifier: Apache-2.0
// What the kernels of topk share.
#pragma once

#include <cmath>

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::topk {

enum { kRatio };  // places of the parameters in Args

struct Rules {
  static constexpr const char* kName = "topk";

  // The threshold to start from is a guess that changes no byte: a sample in which about 16 of the
  // largest k are expected, and a rank that with luck lets a few more than k pass.
  static sparse::Rule rule(const Args& args, size_t n) {
    constexpr double kExpected = 16;
    constexpr size_t kLeast = 2048;
    const size_t k = sparse::share_of(n, args.value[kRatio]);
    const double share = args.real(kRatio);
    const size_t wanted = static_cast<size_t>(std::min(kExpected / share, 1e9));
    const size_t sample = sparse::sample_size(n, std::clamp(wanted, kLeast, kLeast + n / 16));
    const double tail = static_cast<double>(sample) * share;
    const double rank = sample < n ? tail + 2.5 * std::sqrt(tail) + 2 : 1e18;
    return {.k = k, .exact = true, .sample = sample, .rank = static_cast<size_t>(rank)};
  }
};

}  // namespace wirepress::topk
