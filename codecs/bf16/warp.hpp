// SPDX-License-Identifier: Apache-2.0
// bf16 on a GPU.
#pragma once

#include "codecs/bf16/bf16.hpp"
#include "codecs/common/chunked/cast_warps.hpp"

namespace wirepress {
namespace {

using Bf16Warps = chunks::CastWarps<Bf16Layout>;

}  // namespace
}  // namespace wirepress
