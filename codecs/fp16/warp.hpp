// SPDX-License-Identifier: Apache-2.0
// fp16 on a GPU.
#pragma once

#include "codecs/common/chunked/cast_warps.hpp"
#include "codecs/fp16/fp16.hpp"

namespace wirepress {
namespace {

using Fp16Warps = chunks::CastWarps<Fp16Layout>;

}  // namespace
}  // namespace wirepress
