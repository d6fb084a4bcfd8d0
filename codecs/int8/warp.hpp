// SPDX-License-Identifier: Apache-2.0
// int8 on a GPU.
#pragma once

#include "codecs/common/chunked/block_warps.hpp"
#include "codecs/int8/int8.hpp"

namespace wirepress {
namespace {

using Int8Warps = chunks::BlockWarps<Int8Layout>;

}  // namespace
}  // namespace wirepress
