// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>
#include <zstd_errors.h>

#include <cstring>
#include <new>

#include "base/kernel.hpp"

namespace wirepress {
namespace {

// Contexts are made on first use: most states only ever go one way.
struct State {
  ZSTD_CCtx* compress = nullptr;
  ZSTD_DCtx* expand = nullptr;
};

Status open(const Args&, void** state) noexcept {
  *state = new (std::nothrow) State;
  return *state == nullptr ? fail(Code::kNoMemory, "zstd: no memory for its state") : Status();
}

void close(void* state) noexcept {
  auto* own = static_cast<State*>(state);
  if (own == nullptr) return;
  ZSTD_freeCCtx(own->compress);
  ZSTD_freeDCtx(own->expand);
  delete own;
}

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  auto* own = static_cast<State*>(state);
  if (own->compress == nullptr) own->compress = ZSTD_createCCtx();
  if (own->compress == nullptr) return fail(Code::kNoMemory, "zstd: no memory for a context");
  const size_t size = ZSTD_compressCCtx(own->compress, dst.data(), dst.size(), src.data(),
                                        src.size(), args.value[0]);
  if (!ZSTD_isError(size)) {
    *written = size;
    return {};
  }
  const bool full = ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall;
  return fail(full ? Code::kDstTooSmall : Code::kNoMemory, "zstd: %zu bytes into %zu: %s",
              src.size(), dst.size(), ZSTD_getErrorName(size));
}

// One frame and nothing else: libzstd alone would also take several, skippable ones between them.
Status check_frame(ConstBytes src, size_t room) {
  const unsigned long long raw_size = ZSTD_getFrameContentSize(src.data(), src.size());
  const size_t frame_size = ZSTD_findFrameCompressedSize(src.data(), src.size());
  if (raw_size == ZSTD_CONTENTSIZE_ERROR || ZSTD_isError(frame_size))
    return fail(Code::kCorrupt, "zstd: %zu bytes are not a whole frame", src.size());
  uint32_t magic;
  std::memcpy(&magic, src.data(), sizeof(magic));
  if (magic != ZSTD_MAGICNUMBER)
    return fail(Code::kCorrupt, "zstd: magic 0x%08X instead of 0x%08X", magic, ZSTD_MAGICNUMBER);
  if (raw_size == ZSTD_CONTENTSIZE_UNKNOWN)
    return fail(Code::kCorrupt, "zstd: the frame does not say its raw size");
  if (raw_size > room)
    return fail(Code::kCorrupt, "zstd: says %llu raw bytes, room for %zu", raw_size, room);
  if (frame_size != src.size())
    return fail(Code::kCorrupt, "zstd: a frame of %zu bytes in %zu", frame_size, src.size());
  return {};
}

Status decode(void* state, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
  WPR_TRY(check_frame(src, dst.size()));
  auto* own = static_cast<State*>(state);
  if (own->expand == nullptr) own->expand = ZSTD_createDCtx();
  if (own->expand == nullptr) return fail(Code::kNoMemory, "zstd: no memory for a context");
  const size_t size =
      ZSTD_decompressDCtx(own->expand, dst.data(), dst.size(), src.data(), src.size());
  if (ZSTD_isError(size))
    return fail(Code::kCorrupt, "zstd: %zu bytes: %s", src.size(), ZSTD_getErrorName(size));
  *written = size;
  return {};
}

}  // namespace

extern const Kernel zstd_libzstd;
const Kernel zstd_libzstd = {
    .engine = "cpu",
    .variant = "libzstd",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
