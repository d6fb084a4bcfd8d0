// SPDX-License-Identifier: Apache-2.0
#include "codecs/shuffle/shuffle.hpp"

namespace wirepress {
namespace {

using namespace shuffle;

void split(const std::byte* src, std::byte* dst, size_t n, size_t size) {
  switch (size) {
    case 2:
      return split_range<2>(src, dst, n, size, 0, n);
    case 4:
      return split_range<4>(src, dst, n, size, 0, n);
    case 8:
      return split_range<8>(src, dst, n, size, 0, n);
    default:
      return split_range<0>(src, dst, n, size, 0, n);
  }
}

void join(const std::byte* src, std::byte* dst, size_t n, size_t size) {
  switch (size) {
    case 2:
      return join_range<2>(src, dst, n, size, 0, n);
    case 4:
      return join_range<4>(src, dst, n, size, 0, n);
    case 8:
      return join_range<8>(src, dst, n, size, 0, n);
    default:
      return join_range<0>(src, dst, n, size, 0, n);
  }
}

Status encode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return run(args, src, dst, written, split);
}

Status decode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return run(args, src, dst, written, join);
}

}  // namespace

extern const Kernel shuffle_scalar;
const Kernel shuffle_scalar = {
    .engine = "cpu",
    .variant = "scalar",
    .usable = always_usable,
    .open = nullptr,
    .close = nullptr,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
