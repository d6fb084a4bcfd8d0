// SPDX-License-Identifier: Apache-2.0
// int4 on the lanes of codecs/common/simd.
#pragma once

#include "codecs/int4/int4.hpp"

namespace wirepress {
namespace {

template <typename V>
struct Int4Simd : BlockSimd<V, 4> {
  using BlockSimd<V, 4>::BlockSimd;
  static constexpr const char* kName = Int4Layout::kName;
};

}  // namespace
}  // namespace wirepress
