// SPDX-License-Identifier: Apache-2.0
// Cores of rtl/lz as a kernel of the engine rtl: an encoder of 8 bytes a beat, a decoder of 8
// or 16. Blocks that have, or may have, more than 4 MiB go the portable way, as does a codec's
// level that asks for another search.
//
// A codec's class C has
//
//   using Encoder, Decoder;           // what Verilator made of its modules
//   static constexpr const char* kName, *kVariant;
//   static constexpr size_t kDecoderBeat;
//   static const Kernel& portable();
//   static bool takes(const Args&);   // the encoder codes as these settings ask
#pragma once

#include <memory>
#include <new>

#include "engines/rtl/core.hpp"
#include "engines/rtl/packets.hpp"

namespace wirepress::rtl {

template <class C>
class LzCores {
 public:
  static constexpr Kernel kernel() {
    return {.engine = "rtl",
            .variant = C::kVariant,
            .usable = always_usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode};
  }

 private:
  static constexpr size_t kEncoderBeat = 8;              // bytes
  static constexpr size_t kMostRaw = size_t{4} << 20;    // that the core counts to
  static constexpr size_t kMostCode = size_t{16} << 20;  // of such a block, for any use

  struct State {
    ~State() {
      if (C::portable().close != nullptr) C::portable().close(portable);
    }
    void* portable = nullptr;
    Core<typename C::Encoder> encoder;
    Core<typename C::Decoder> decoder;
  };

  static Status open(const Args& args, void** state) noexcept {
    std::unique_ptr<State> made(new (std::nothrow) State);
    if (!made) return fail(Code::kNoMemory, "%s: no memory for a simulated core", C::kName);
    WPR_TRY(C::portable().open(args, &made->portable));
    *state = made.release();
    return {};
  }

  static void close(void* state) noexcept { delete static_cast<State*>(state); }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto& [portable, encoder, decoder] = *static_cast<State*>(state);
    if (src.size() > kMostRaw || !C::takes(args))
      return C::portable().encode(portable, args, src, dst, written);
    BytesIn<kEncoderBeat> raw{src};
    BytesOut<kEncoderBeat> out{dst};
    Command command{static_cast<uint32_t>(src.size())};
    WPR_TRY(encoder.run(raw, out, command));
    if (out.over)
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes does not fit %zu", C::kName,
                  src.size(), dst.size());
    *written = out.size;
    return {};
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto& [portable, encoder, decoder] = *static_cast<State*>(state);
    if (dst.size() > kMostRaw || src.size() > kMostCode)
      return C::portable().decode(portable, args, src, dst, written);
    if (src.empty()) return fail(Code::kCorrupt, "%s: a block of no bytes", C::kName);
    BytesIn<C::kDecoderBeat> code{src};
    BytesOut<C::kDecoderBeat> out{dst};
    Command command{static_cast<uint32_t>(dst.size())};
    WPR_TRY(decoder.run(code, out, command));
    if (out.over)
      return fail(Code::kDevice, "%s: the core gave more than %zu bytes", C::kName, dst.size());
    if (out.bad)
      return fail(Code::kCorrupt, "%s: %zu bytes are no block, or one of more than %zu raw bytes",
                  C::kName, src.size(), dst.size());
    *written = out.size;
    return {};
  }
};

}  // namespace wirepress::rtl
