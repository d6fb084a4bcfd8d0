// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of zstd (rtl/zstd), simulated. The library encodes where a level asks for another
// search than the core's, and takes what the cores do not: blocks that may have more than 4 MiB,
// and, decoding, frames with a window of more than 128 KiB. The core passes a frame's checksum
// over, so it is checked here.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <memory>
#include <new>

#include "Vwpr_zstd_dec.h"
#include "Vwpr_zstd_enc.h"
#include "engines/rtl/core.hpp"
#include "engines/rtl/packets.hpp"

namespace wirepress {

extern const Kernel zstd_libzstd;

namespace {

constexpr size_t kBeat = 8;                     // bytes
constexpr size_t kMostRaw = size_t{4} << 20;    // that the core counts to
constexpr size_t kMostCode = size_t{16} << 20;  // the same
constexpr uint64_t kMostWindow = uint64_t{128} << 10;
constexpr int kMostIdle = 1 << 19;  // a block's sequences may give bytes that nobody needs any more
constexpr size_t kChecksumSize = 4;
constexpr int kMostLevel = 2;  // whose search the encoder's is like; 0 is libzstd's default, 3

struct State {
  ~State() { zstd_libzstd.close(library); }
  void* library = nullptr;
  std::unique_ptr<rtl::Core<Vwpr_zstd_enc>> encoder;  // made on first use: it is large
  rtl::Core<Vwpr_zstd_dec> decoder;
};

unsigned number(ConstBytes src, size_t at) {
  return at < src.size() ? std::to_integer<unsigned>(src[at]) : 0;
}

// The field of the frame's header that says which others there are.
unsigned descriptor(ConstBytes src) { return number(src, 4); }
bool has_checksum(ConstBytes src) { return (descriptor(src) & 4) != 0; }

// Of a frame; of other bytes anything.
uint64_t window_size(ConstBytes src) {
  constexpr size_t kBehind = 5, kDictionarySize[] = {0, 1, 2, 4};
  if ((descriptor(src) & 32) == 0) {
    const unsigned byte = number(src, kBehind);
    return (uint64_t{8} + (byte & 7)) << (7 + (byte >> 3));
  }
  const size_t at = kBehind + kDictionarySize[descriptor(src) & 3];
  const unsigned kind = descriptor(src) >> 6;
  uint64_t size = kind == 1 ? 256 : 0;
  for (size_t i = 0; i < size_t{1} << kind; ++i) size += uint64_t{number(src, at + i)} << 8 * i;
  return size;
}

Status open(const Args& args, void** state) noexcept {
  std::unique_ptr<State> made(new (std::nothrow) State);
  if (!made) return fail(Code::kNoMemory, "zstd: no memory for a simulated core");
  WPR_TRY(zstd_libzstd.open(args, &made->library));
  *state = made.release();
  return {};
}

void close(void* state) noexcept { delete static_cast<State*>(state); }

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  auto& [library, encoder, decoder] = *static_cast<State*>(state);
  if (src.size() > kMostRaw || args.value[0] == 0 || args.value[0] > kMostLevel)
    return zstd_libzstd.encode(library, args, src, dst, written);
  if (!encoder) encoder.reset(new (std::nothrow) rtl::Core<Vwpr_zstd_enc>);
  if (!encoder) return fail(Code::kNoMemory, "zstd: no memory for a simulated core");
  rtl::BytesIn<kBeat> raw{src};
  rtl::BytesOut<kBeat> out{dst};
  rtl::Command command{static_cast<uint32_t>(src.size())};
  WPR_TRY(encoder->run(raw, out, command, kMostIdle));
  if (out.over)
    return fail(Code::kDstTooSmall, "zstd: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  *written = out.size;
  return {};
}

Status check_sum(ConstBytes src, ConstBytes raw) {
  uint32_t stored;
  std::memcpy(&stored, src.last(kChecksumSize).data(), kChecksumSize);
  if (stored == static_cast<uint32_t>(XXH64(raw.data(), raw.size(), 0))) return {};
  return fail(Code::kCorrupt, "zstd: %zu bytes: their checksum is another", src.size());
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  auto& [library, encoder, decoder] = *static_cast<State*>(state);
  if (dst.size() > kMostRaw || src.size() > kMostCode || window_size(src) > kMostWindow)
    return zstd_libzstd.decode(library, args, src, dst, written);
  if (src.empty()) return fail(Code::kCorrupt, "zstd: a block of no bytes");
  rtl::BytesIn<kBeat> code{src};
  rtl::BytesOut<kBeat> out{dst};
  rtl::Command command{static_cast<uint32_t>(dst.size())};
  WPR_TRY(decoder.run(code, out, command, kMostIdle));
  if (out.over) return fail(Code::kDevice, "zstd: the core gave more than %zu bytes", dst.size());
  if (out.bad)
    return fail(Code::kCorrupt, "zstd: %zu bytes are no frame of at most %zu raw bytes", src.size(),
                dst.size());
  if (has_checksum(src)) WPR_TRY(check_sum(src, dst.first(out.size)));
  *written = out.size;
  return {};
}

}  // namespace

extern const Kernel zstd_rtl;
const Kernel zstd_rtl = {
    .engine = "rtl",
    .variant = "verilator",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
