// SPDX-License-Identifier: Apache-2.0
// What the kernels of int4 share (spec.md); codecs/common/chunked/float_blocks.hpp has the rest.
#pragma once

#include "codecs/common/chunked/float_blocks.hpp"

namespace wirepress {
namespace {

struct Int4Layout : BlockLayout<4> {
  using BlockLayout<4>::BlockLayout;
  static constexpr const char* kName = "int4";
};

}  // namespace
}  // namespace wirepress
