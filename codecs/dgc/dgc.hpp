// SPDX-License-Identifier: Apache-2.0
// What the kernels of dgc share.
#pragma once

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::dgc {

enum { kRatio, kSample };  // places of the parameters in Args

struct Rules {
  static constexpr const char* kName = "dgc";

  static sparse::Rule rule(const Args& args, size_t n) {
    const int ratio = args.value[kRatio];
    const size_t sample = sparse::sample_of(n, ratio, args.value[kSample]);
    return {.k = sparse::share_of(n, ratio),
            .exact = false,
            .sample = sample,
            .rank = sparse::share_of(sample, ratio)};
  }
};

}  // namespace wirepress::dgc
