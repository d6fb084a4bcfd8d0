// SPDX-License-Identifier: Apache-2.0
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <cstdlib>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

constexpr int kFirstHcLevel = 3;

// The state is what liblz4 wants for the level: 16 KiB of hash table, or 256 KiB for HC.
Status open(const Args& args, void** state) noexcept {
  const int size = args.value[0] < kFirstHcLevel ? LZ4_sizeofState() : LZ4_sizeofStateHC();
  *state = std::malloc(static_cast<size_t>(size));
  if (*state == nullptr) return fail(Code::kNoMemory, "lz4: no memory for %d bytes of state", size);
  return {};
}

void close(void* state) noexcept { std::free(state); }

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  if (src.size() > LZ4_MAX_INPUT_SIZE)
    return fail(Code::kParameter, "lz4: %zu bytes, at most %d in a block", src.size(),
                LZ4_MAX_INPUT_SIZE);
  // LZ4HC reads from the address of no bytes.
  const auto* in = src.empty() ? "" : reinterpret_cast<const char*>(src.data());
  auto* out = reinterpret_cast<char*>(dst.data());
  const int n = static_cast<int>(src.size());
  const int cap =
      static_cast<int>(std::min<size_t>(dst.size(), LZ4_COMPRESSBOUND(LZ4_MAX_INPUT_SIZE)));
  const int level = args.value[0];
  if (cap == 0) return fail(Code::kDstTooSmall, "lz4: no room for %d bytes", n);
  const int size = level < kFirstHcLevel
                       ? LZ4_compress_fast_extState(state, in, out, n, cap, std::max(1, -level))
                       : LZ4_compress_HC_extStateHC(state, in, out, n, cap, level);
  if (size <= 0)
    return fail(Code::kDstTooSmall, "lz4: the code of %d bytes does not fit %d", n, cap);
  *written = static_cast<size_t>(size);
  return {};
}

Status decode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
  constexpr size_t kMax = LZ4_COMPRESSBOUND(LZ4_MAX_INPUT_SIZE);
  if (src.empty() || src.size() > kMax)
    return fail(Code::kCorrupt, "lz4: a block of %zu bytes, must be 1 to %zu", src.size(), kMax);
  char nothing = 0;  // liblz4 wants an address even for no room
  auto* out = dst.empty() ? &nothing : reinterpret_cast<char*>(dst.data());
  const int cap = static_cast<int>(std::min<size_t>(dst.size(), LZ4_MAX_INPUT_SIZE));
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(src.data()), out,
                                       static_cast<int>(src.size()), cap);
  if (size < 0)
    return fail(Code::kCorrupt, "lz4: invalid near byte %d of %zu, or more than %d raw bytes",
                -size - 1, src.size(), cap);
  *written = static_cast<size_t>(size);
  return {};
}

}  // namespace

extern const Kernel lz4_liblz4;
const Kernel lz4_liblz4 = {
    .engine = "cpu",
    .variant = "liblz4",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
