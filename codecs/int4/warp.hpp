// SPDX-License-Identifier: Apache-2.0
// int4 on a GPU.
#pragma once

#include "codecs/common/chunked/block_warps.hpp"
#include "codecs/int4/int4.hpp"

namespace wirepress {
namespace {

using Int4Warps = chunks::BlockWarps<Int4Layout>;

}  // namespace
}  // namespace wirepress
