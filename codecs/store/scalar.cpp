// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

Status copy(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
  if (src.size() > dst.size())
    return fail(Code::kDstTooSmall, "store: needs %zu bytes, has %zu", src.size(), dst.size());
  if (!src.empty()) std::memcpy(dst.data(), src.data(), src.size());
  *written = src.size();
  return {};
}

}  // namespace

extern const Kernel store_scalar;
const Kernel store_scalar = {
    .engine = "cpu",
    .variant = "scalar",
    .usable = always_usable,
    .open = nullptr,
    .close = nullptr,
    .encode = copy,
    .decode = copy,
};

}  // namespace wirepress
