// SPDX-License-Identifier: Apache-2.0
// What kernels of a codec are given, and what their report says (kernel.hpp).
#pragma once

#include "base/kernel.hpp"
#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

// In memory of the device, aligned to 16. The raw data are `raw_size` bytes.
struct Task {
  std::byte* raw = nullptr;
  size_t raw_size = 0;
  std::byte* residual = nullptr;  // of raw_size bytes
  std::byte* code = nullptr;
  size_t code_size = 0;  // its room, in encoding
  std::byte* scratch = nullptr;
  Report* report = nullptr;
};

template <class C>
Status outcome(const Report& report, size_t raw_size, size_t room) {
  if (report.first_bad != Report::kNone)
    return fail(Code::kCorrupt, "%s: chunk %llu holds what no encoder writes", C::kName,
                static_cast<unsigned long long>(report.first_bad));
  if (report.elsewhere != 0)
    return fail(Code::kUnsupported, "%s: no kernel for GPUs codes these data", C::kName);
  if (report.full != 0)
    return fail(Code::kDstTooSmall, "%s: the code of %zu bytes does not fit %zu", C::kName,
                raw_size, room);
  return {};
}

// Bytes of scratch memory that C's decoding needs.
template <class C>
size_t decode_scratch(const Args& args, size_t raw_size) {
  if constexpr (requires { C::decode_scratch(args, raw_size); })
    return C::decode_scratch(args, raw_size);
  return C::scratch(args, raw_size);
}

// Those of them, from the first one on, that are zeros when the work begins.
template <class C>
size_t zeros_of(const Args& args, size_t raw_size, bool decodes) {
  if constexpr (requires { C::zeros(args, raw_size, decodes); })
    return C::zeros(args, raw_size, decodes);
  return decodes ? decode_scratch<C>(args, raw_size) : C::scratch(args, raw_size);
}

}  // namespace wirepress::cuda
