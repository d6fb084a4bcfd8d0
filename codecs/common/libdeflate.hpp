// SPDX-License-Identifier: Apache-2.0
// What the deflate, zlib and gzip codecs share: the same library, parameter and bound around three
// wrappings of the same stream. A codec describes its wrapping by a type:
//   struct GzipWrapping { static constexpr const char* name; static size_t compress(...); ... };
//   const Kernel gzip_libdeflate = libdeflate_kernel<GzipWrapping>();
// That type has a name of its own and external linkage. GCC 14 merges instantiations for equally
// named constants of unnamed namespaces, and three codecs then have one wrapping.
#pragma once

#include <libdeflate.h>

#include <new>

#include "base/kernel.hpp"

namespace wirepress {

// Contexts are made on first use: most states only ever go one way.
struct LibdeflateState {
  libdeflate_compressor* compressor = nullptr;
  libdeflate_decompressor* decompressor = nullptr;
};

template <class Wrapping>
struct Libdeflate {
  static Status open(const Args&, void** state) noexcept {
    *state = new (std::nothrow) LibdeflateState;
    if (*state == nullptr) return fail(Code::kNoMemory, "%s: no memory", Wrapping::name);
    return {};
  }

  static void close(void* state) noexcept {
    auto* own = static_cast<LibdeflateState*>(state);
    if (own == nullptr) return;
    libdeflate_free_compressor(own->compressor);
    libdeflate_free_decompressor(own->decompressor);
    delete own;
  }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto* own = static_cast<LibdeflateState*>(state);
    if (own->compressor == nullptr) own->compressor = libdeflate_alloc_compressor(args.value[0]);
    if (own->compressor == nullptr)
      return fail(Code::kNoMemory, "%s: no memory for level %d", Wrapping::name, args.value[0]);
    const size_t size = Wrapping::compress(own->compressor, args.value[0], src.data(), src.size(),
                                           dst.data(), dst.size());
    if (size == 0)
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes does not fit %zu", Wrapping::name,
                  src.size(), dst.size());
    *written = size;
    return {};
  }

  static Status decode(void* state, const Args&, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto* own = static_cast<LibdeflateState*>(state);
    if (own->decompressor == nullptr) own->decompressor = libdeflate_alloc_decompressor();
    if (own->decompressor == nullptr)
      return fail(Code::kNoMemory, "%s: no memory for a decompressor", Wrapping::name);
    size_t taken = 0;
    size_t size = 0;
    const libdeflate_result result = Wrapping::decompress(own->decompressor, src.data(), src.size(),
                                                          dst.data(), dst.size(), &taken, &size);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
      return fail(Code::kCorrupt, "%s: %zu bytes expand to more than %zu", Wrapping::name,
                  src.size(), dst.size());
    if (result != LIBDEFLATE_SUCCESS)
      return fail(Code::kCorrupt, "%s: %zu bytes are not a valid stream", Wrapping::name,
                  src.size());
    if (taken != src.size())
      return fail(Code::kCorrupt, "%s: a stream of %zu bytes in %zu", Wrapping::name, taken,
                  src.size());
    *written = size;
    return {};
  }
};

template <class Wrapping>
constexpr Kernel libdeflate_kernel() {
  using Functions = Libdeflate<Wrapping>;
  return {
      .engine = "cpu",
      .variant = "libdeflate",
      .usable = always_usable,
      .open = Functions::open,
      .close = Functions::close,
      .encode = Functions::encode,
      .decode = Functions::decode,
  };
}

inline constexpr Param kLibdeflateParams[] = {
    {"level", 0, 12, 6, nullptr, "0 (no compression), 1 (fastest) to 12 (smallest)"},
};

// libdeflate_deflate_compress_bound: blocks of at least 5000 bytes with 5 bytes of header each,
// and one more byte. `wrapping` is what the format adds around the stream.
constexpr size_t libdeflate_bound(size_t n, size_t wrapping) {
  return n + 5 * (n / 5000 + 1) + 1 + 8 + wrapping;
}

}  // namespace wirepress
