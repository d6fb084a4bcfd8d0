// SPDX-License-Identifier: Apache-2.0
// Names of parameters and parts of the payload (spec.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/kernel.hpp"

namespace wirepress::sz3 {

enum ParamIndex : size_t { kAbs, kRel, kPsnr, kPw };

enum Method : uint8_t { kStored, kConstant, kLinear, kLogarithmic };

inline constexpr size_t kMethodSize = 1;
// The byte of the layout: dimensions less 1, then these.
inline constexpr unsigned kCubicBit = 2;
inline constexpr unsigned kOrderBit = 3;

inline constexpr double kMostPsnr = 400;

}  // namespace wirepress::sz3
