// SPDX-License-Identifier: Apache-2.0
// What the kernels of int8 share (spec.md); codecs/common/chunked/float_blocks.hpp has the rest.
#pragma once

#include "codecs/common/chunked/float_blocks.hpp"

namespace wirepress {
namespace {

struct Int8Layout : BlockLayout<8> {
  using BlockLayout<8>::BlockLayout;
  static constexpr const char* kName = "int8";
};

}  // namespace
}  // namespace wirepress
