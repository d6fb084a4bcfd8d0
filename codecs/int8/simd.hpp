// SPDX-License-Identifier: Apache-2.0
// int8 on the lanes of codecs/common/simd.
#pragma once

#include "codecs/int8/int8.hpp"

namespace wirepress {
namespace {

template <typename V>
struct Int8Simd : BlockSimd<V, 8> {
  using BlockSimd<V, 8>::BlockSimd;
  static constexpr const char* kName = Int8Layout::kName;
};

}  // namespace
}  // namespace wirepress
