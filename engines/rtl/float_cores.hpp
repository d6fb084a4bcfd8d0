// SPDX-License-Identifier: Apache-2.0
// Cores of rtl/ that code float32 values 64 bytes a beat, as a kernel of the engine rtl. Last
// bytes, which the cores do not know, are put behind the code here, as whoever builds them into a
// card must. What the cores do not take goes the portable way.
//
// A codec's class C has
//
//   using Encoder, Decoder;                              // what Verilator made of its modules
//   static constexpr const char* kName;
//   static const Kernel& portable();
//   static bool takes(const Args&);
//   static void set(const Args&, Encoder&);              // settings, before a reset
//   static void set(const Args&, Decoder&);
//   static size_t code_size(const Args&, size_t n);      // where it follows from n values
//   static void begin(const Args&, Encoder&);            // where a packet has settings of its own
//
// A decoder with a port s_cmd is told there how many values a packet has, less one.
#pragma once

#include <cstring>
#include <new>

#include "engines/rtl/core.hpp"
#include "engines/rtl/packets.hpp"

namespace wirepress::rtl {

constexpr size_t kBeat = 64;                     // bytes
constexpr size_t kMostValues = size_t{1} << 24;  // CountWidth of decoders

template <class C>
class FloatCores {
 public:
  static constexpr Kernel kernel() {
    return {.engine = "rtl",
            .variant = "verilator",
            .usable = always_usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode};
  }

  // What `state` is, and the functions, for a kernel that does more around them.
  struct Cores {
    Core<typename C::Encoder> encoder;
    Core<typename C::Decoder> decoder;
  };

  static Status open(const Args& args, void** state) noexcept {
    *state = nullptr;
    if (!C::takes(args)) return {};
    auto* cores = new (std::nothrow) Cores;
    if (cores == nullptr)
      return fail(Code::kNoMemory, "%s: no memory for simulated cores", C::kName);
    C::set(args, cores->encoder.ports());
    C::set(args, cores->decoder.ports());
    cores->encoder.reset();
    cores->decoder.reset();
    *state = cores;
    return {};
  }

  static void close(void* state) noexcept { delete static_cast<Cores*>(state); }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    if (!C::takes(args)) return C::portable().encode(nullptr, args, src, dst, written);
    const size_t tail = src.size() % kWordSize;
    const auto full = [&] {
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes does not fit %zu", C::kName,
                  src.size(), dst.size());
    };
    if (tail > dst.size()) return full();
    BytesIn<kBeat> values{src.first(src.size() - tail)};
    BytesOut<kBeat> out{dst.first(dst.size() - tail)};
    NoPorts no_ports;
    if constexpr (requires { &C::begin; }) {
      if (values.more()) C::begin(args, static_cast<Cores*>(state)->encoder.ports());
    }
    if (values.more()) WPR_TRY(static_cast<Cores*>(state)->encoder.run(values, out, no_ports));
    if (out.over) return full();
    if (tail > 0) std::memcpy(dst.data() + out.size, src.data() + src.size() - tail, tail);
    *written = out.size + tail;
    return {};
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    if (!C::takes(args)) return C::portable().decode(nullptr, args, src, dst, written);
    const size_t n = dst.size() / kWordSize, tail = dst.size() % kWordSize;
    if (n > kMostValues)
      return fail(Code::kUnsupported, "%s: the core counts to %zu, the block has %zu values",
                  C::kName, kMostValues, n);
    const auto corrupt = [&] {
      return fail(Code::kCorrupt, "%s: %zu bytes do not hold %zu values and %zu bytes", C::kName,
                  src.size(), n, tail);
    };
    if (src.size() < tail || (src.size() == tail) != (n == 0)) return corrupt();
    if constexpr (requires { C::code_size(args, n); }) {
      if (src.size() != C::code_size(args, n) + tail) return corrupt();
    }
    BytesIn<kBeat> code{src.first(src.size() - tail)};
    BytesOut<kBeat> values{dst.first(n * kWordSize), false};
    Command command{static_cast<uint32_t>(n - 1)};
    if (n > 0) WPR_TRY(static_cast<Cores*>(state)->decoder.run(code, values, command));
    if (values.bad) return corrupt();
    if (values.over || values.size != n * kWordSize)
      return fail(Code::kDevice, "%s: the core gave %zu bytes, not %zu", C::kName, values.size,
                  n * kWordSize);
    if (tail > 0) std::memcpy(dst.data() + n * kWordSize, src.data() + src.size() - tail, tail);
    *written = dst.size();
    return {};
  }

 private:
  static constexpr size_t kWordSize = sizeof(uint32_t);
};

}  // namespace wirepress::rtl
