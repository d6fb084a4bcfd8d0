// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a frame, through every door that reads one. What the whole-buffer door
// accepts, the others must read alike. A header checksum that no mutation would guess is put right.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "wirepress/wirepress.h"

namespace {

using Data = std::vector<uint8_t>;

constexpr size_t kMinHeader = 12;
constexpr size_t kMostRaw = 1 << 16;
constexpr uint64_t kMostBlock = 1 << 20;  // or the fuzzer spends its time in calloc

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "fuzz_frame: %s\n", why);
  std::abort();
}

// A header may be 12 to 32 bytes: the first length that makes it valid.
bool seal(wpr_ctx* ctx, Data* frame, wpr_info* info) {
  if (wpr_inspect(ctx, frame->data(), frame->size(), info) == WPR_OK) return true;
  for (size_t size = kMinHeader; size <= std::min<size_t>(WPR_MAX_HEADER, frame->size()); ++size) {
    Data sealed = *frame;
    const uint32_t sum = static_cast<uint32_t>(XXH3_64bits(sealed.data(), size - 4));
    std::memcpy(sealed.data() + size - 4, &sum, sizeof(sum));
    if (wpr_inspect(ctx, sealed.data(), sealed.size(), info) != WPR_OK) continue;
    *frame = sealed;
    return true;
  }
  return false;
}

// The whole frame in pieces whose sizes depend on its bytes; false: refused, or it ends early.
bool expand(wpr_ctx* ctx, const Data& frame, Data* out) {
  if (wpr_expand_begin(ctx) != WPR_OK) stop("expand_begin fails");
  size_t at = 0;
  int done = 0;
  while (!done && out->size() <= kMostRaw) {
    const size_t step = 1 + frame[at % frame.size()] * 7;
    const Data piece(frame.begin() + static_cast<ptrdiff_t>(at),
                     frame.begin() + static_cast<ptrdiff_t>(std::min(frame.size(), at + step)));
    Data dst(step * 3);
    size_t consumed = 0, written = 0;
    if (wpr_expand_update(ctx, piece.data(), piece.size(), &consumed, dst.data(), dst.size(),
                          &written, &done) != WPR_OK)
      return false;
    if (consumed > piece.size() || written > dst.size()) stop("consumed or wrote too much");
    out->insert(out->end(), dst.begin(), dst.begin() + static_cast<ptrdiff_t>(written));
    at += consumed;
    if (consumed == 0 && written == 0 && !done) return false;
  }
  return done && at == frame.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static wpr_ctx* ctx = [] {
    wpr_ctx* made = nullptr;
    if (wpr_create(&made) != WPR_OK || wpr_set(made, "threads", "1") != WPR_OK) stop("no context");
    return made;
  }();
  Data frame(bytes, bytes + size);
  wpr_info info;
  if (size == 0 || !seal(ctx, &frame, &info)) return 0;
  if (info.block_size > kMostBlock) return 0;
  uint64_t raw_size = 0;
  const bool sized = wpr_raw_size(frame.data(), frame.size(), &raw_size) == WPR_OK;

  Data whole(sized ? std::min<uint64_t>(raw_size, kMostRaw) : kMostRaw);
  size_t written = 0;
  const bool good = wpr_decompress(ctx, frame.data(), frame.size(), whole.data(), whole.size(),
                                   &written) == WPR_OK;
  if (good && written > whole.size()) stop("wrote more than there is room");
  if (good && !sized) stop("expands a frame whose size it cannot tell");
  if (good && written != raw_size) stop("expands to another size than it said");
  whole.resize(good ? written : 0);

  Data pieces;
  const bool streamed = expand(ctx, frame, &pieces);
  if (good && (!streamed || pieces != whole)) stop("the streaming door reads it otherwise");
  if (streamed && !good && pieces.size() <= kMostRaw) stop("only the streaming door reads it");

  if (good && written > 0) {
    const uint64_t offset = frame.back() * written / 256;
    Data part(written - offset);
    if (wpr_decompress_range(ctx, frame.data(), frame.size(), offset, part.size(), part.data()) !=
            WPR_OK ||
        !std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(offset)))
      stop("a range reads otherwise");
  }
  return 0;
}
