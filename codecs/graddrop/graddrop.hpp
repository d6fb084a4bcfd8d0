// SPDX-License-Identifier: Apache-2.0
// What the kernels of graddrop share.
#pragma once

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::graddrop {

enum { kRatio, kSample };  // places of the parameters in Args

struct Rules {
  static constexpr const char* kName = "graddrop";

  static sparse::Rule rule(const Args& args, size_t n) {
    const int ratio = args.value[kRatio];
    const size_t sample = sparse::sample_of(n, ratio, args.value[kSample]);
    return {.k = n, .exact = false, .sample = sample, .rank = sparse::share_of(sample, ratio)};
  }
};

}  // namespace wirepress::graddrop
