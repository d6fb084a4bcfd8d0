// SPDX-License-Identifier: Apache-2.0
// What the kernels of bx share behind their chunks: the dtype's functions, and which form of a
// vector encoder or decoder the settings ask for.
#pragma once

#include <type_traits>

#include "codecs/bx/portable.hpp"

namespace wirepress::bx {

// A kernel of the chunk functions that Chunks has for each format F:
//   template <typename F> static EncodeChunk encoder(const Setting&)
//   template <typename F> static DecodeChunk decoder(const Setting&)
template <class Chunks>
class ChunkKernel {
 public:
  static constexpr Kernel of(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = nullptr,
            .close = nullptr,
            .encode = encode,
            .decode = decode};
  }

 private:
  template <typename F>
  static Status encode_as(const Args& args, ConstBytes src, Bytes dst, size_t* written) {
    return encode_block<F>(args, src, dst, written, Chunks::template encoder<F>(setting_of(args)));
  }
  template <typename F>
  static Status decode_as(const Args& args, ConstBytes src, Bytes dst, size_t* written) {
    return decode_block<F>(args, src, dst, written, Chunks::template decoder<F>(setting_of(args)));
  }

  static Status encode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    switch (args.dtype) {
      case DType::kFloat16:
        return encode_as<Float16>(args, src, dst, written);
      case DType::kBfloat16:
        return encode_as<Bfloat16>(args, src, dst, written);
      case DType::kFloat64:
        return encode_as<Float64>(args, src, dst, written);
      default:
        return encode_as<Float32>(args, src, dst, written);
    }
  }

  static Status decode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    switch (args.dtype) {
      case DType::kFloat16:
        return decode_as<Float16>(args, src, dst, written);
      case DType::kBfloat16:
        return decode_as<Bfloat16>(args, src, dst, written);
      case DType::kFloat64:
        return decode_as<Float64>(args, src, dst, written);
      default:
        return decode_as<Float32>(args, src, dst, written);
    }
  }
};

// The form of a vector encoder that the settings ask for. Chunks has every form, an EncodeChunk:
//   template <typename F, bool kNear, bool kFlush, bool kExact> static size_t encode(...)
template <class Chunks, typename F>
static EncodeChunk encoder_form(const Setting& setting) {
  if (setting.m == F::kDigits)
    return setting.flush ? Chunks::template encode<F, false, true, false>
                         : Chunks::template encode<F, false, false, true>;
  if (setting.round == kNearest)
    return setting.flush ? Chunks::template encode<F, true, true, false>
                         : Chunks::template encode<F, true, false, false>;
  return setting.flush ? Chunks::template encode<F, false, true, false>
                       : Chunks::template encode<F, false, false, false>;
}

// The form of a vector decoder, a DecodeChunk:
//   template <typename F, bool kMid> static bool decode(...)
template <class Chunks, typename F>
static DecodeChunk decoder_form(const Setting& setting) {
  return setting.round == kMidpoint && setting.m < F::kDigits ? Chunks::template decode<F, true>
                                                              : Chunks::template decode<F, false>;
}

// Chunks of instruction sets with forms for bfloat16 and float32 alone.
template <class Chunks>
struct ShortAndSingle {
  template <typename F>
  static constexpr bool kVector = std::is_same_v<F, Bfloat16> || std::is_same_v<F, Float32>;
  template <typename F>
  static EncodeChunk encoder(const Setting& setting) {
    if constexpr (kVector<F>) return encoder_form<Chunks, F>(setting);
    return encode_chunk<F>;
  }
  template <typename F>
  static DecodeChunk decoder(const Setting& setting) {
    if constexpr (kVector<F>) return decoder_form<Chunks, F>(setting);
    return decode_chunk<F>;
  }
};

}  // namespace wirepress::bx
