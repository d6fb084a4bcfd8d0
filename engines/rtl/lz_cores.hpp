// SPDX-License-Identifier: Apache-2.0
// Cores of rtl/lz as a kernel of the engine rtl: 8 bytes a beat both ways. Blocks that have, or may
// have, more than 4 MiB go the portable way, as does a codec's level that asks for another search.
//
// A codec's class C has
//
//   using Encoder, Decoder;           // what Verilator made of its modules
//   static constexpr const char* kName;
//   static const Kernel& portable();
//   static bool takes(const Args&);   // the encoder codes as these settings ask
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "engines/rtl/core.hpp"

namespace wirepress::rtl {

template <class C>
class LzCores {
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

 private:
  static constexpr size_t kBeat = 8;                     // bytes
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

  struct BytesIn {
    ConstBytes rest;
    bool more() const { return !rest.empty(); }
    size_t size() const { return std::min(rest.size(), kBeat); }
    void sent() { rest = rest.subspan(size()); }
    void offer(auto& core) const {
      uint64_t word = ~uint64_t{0};  // bytes that are not there may be anything
      std::memcpy(&word, rest.data(), size());
      core.s_axis_tdata = word;
      core.s_axis_tkeep = static_cast<uint8_t>((1u << size()) - 1);
      core.s_axis_tlast = rest.size() <= kBeat;
    }
  };

  struct BytesOut {
    Bytes room;
    size_t size = 0;
    bool over = false, bad = false;
    bool full() const { return over; }
    bool take(const auto& core) {
      const uint64_t word = core.m_axis_tdata;
      const auto n = static_cast<size_t>(std::popcount(static_cast<unsigned>(core.m_axis_tkeep)));
      over = over || n > room.size() - size;
      if (!over && n > 0) std::memcpy(room.data() + size, &word, n);
      if (!over) size += n;
      if constexpr (requires { core.m_axis_tuser; }) bad = core.m_axis_tlast && core.m_axis_tuser;
      return core.m_axis_tlast;
    }
  };

  struct Command {  // how many bytes the packet has, or may have
    uint32_t size;
    bool sent = false;
    void before(auto& core) const {
      core.s_cmd_tvalid = !sent;
      core.s_cmd_tdata = size;
    }
    void after(const auto& core) { sent = sent || core.s_cmd_tready; }
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
    BytesIn raw{src};
    BytesOut out{dst};
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
    BytesIn code{src};
    BytesOut out{dst};
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
