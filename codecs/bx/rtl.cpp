// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of bx (rtl/bx), simulated: float32. Last bytes, which the cores do not know, are
// put behind the code here, as whoever builds them into a card must. Other floats go the portable
// way.
#include "base/rtl.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "Vwpr_bx_dec.h"
#include "Vwpr_bx_enc.h"
#include "codecs/bx/bx.hpp"

namespace wirepress {

extern const Kernel bx_scalar;

namespace {

using namespace bx;

using Encoder = Vwpr_bx_enc;
using Decoder = Vwpr_bx_dec;

constexpr size_t kWordSize = sizeof(Float32::Word);
constexpr size_t kBeat = 64;                     // bytes
constexpr size_t kMostValues = size_t{1} << 24;  // CountWidth of the decoder

struct Cores {
  rtl::Core<Encoder> encoder;
  rtl::Core<Decoder> decoder;
};

bool is_float32(const Args& args) {
  return args.dtype == DType::kFloat32 || args.dtype == DType::kBytes;
}

Status open_cores(const Args& args, void** state) noexcept {
  *state = nullptr;
  if (!is_float32(args)) return {};
  auto* cores = new (std::nothrow) Cores;
  if (cores == nullptr) return fail(Code::kNoMemory, "bx: no memory for simulated cores");
  const Setting setting = setting_of(args);
  Encoder& encoder = cores->encoder.ports();
  encoder.cfg_m_i = static_cast<uint8_t>(setting.m);
  encoder.cfg_nearest_i = setting.round == kNearest;
  encoder.cfg_midpoint_i = setting.round == kMidpoint;
  encoder.cfg_flush_i = setting.flush;
  Decoder& decoder = cores->decoder.ports();
  decoder.cfg_m_i = static_cast<uint8_t>(setting.m);
  decoder.cfg_midpoint_i = setting.round == kMidpoint;
  cores->encoder.reset();
  cores->decoder.reset();
  *state = cores;
  return {};
}

void close_cores(void* state) noexcept { delete static_cast<Cores*>(state); }

// Bytes into a core, 64 a beat.
struct BytesIn {
  ConstBytes rest;
  bool more() const { return !rest.empty(); }
  size_t size() const { return std::min(rest.size(), kBeat); }
  void sent() { rest = rest.subspan(size()); }
  void offer(auto& core) const {
    uint32_t words[kBeat / 4];
    std::memset(words, 0xFF, sizeof(words));  // bytes that are not there may be anything
    std::memcpy(words, rest.data(), size());
    for (size_t i = 0; i < kBeat / 4; ++i) core.s_axis_tdata[i] = words[i];
    core.s_axis_tkeep = ~uint64_t{0} >> (kBeat - size());
    core.s_axis_tlast = rest.size() <= kBeat;
  }
};

// A packet's bytes, as far as there is room.
struct BytesOut {
  Bytes room;
  bool give_up;  // where there is no more
  size_t size = 0;
  bool over = false, bad = false;
  bool full() const { return over && give_up; }
  bool take(const auto& core) {
    uint32_t words[kBeat / 4];
    for (size_t i = 0; i < kBeat / 4; ++i) words[i] = core.m_axis_tdata[i];
    const auto n = static_cast<size_t>(std::popcount(static_cast<uint64_t>(core.m_axis_tkeep)));
    over = over || n > room.size() - size;
    if (!over) {
      std::memcpy(room.data() + size, words, n);
      size += n;
    }
    if constexpr (requires { core.m_axis_tuser; }) bad = core.m_axis_tlast && core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

struct NoPorts {  // the encoder has none but its streams
  void before(Encoder&) {}
  void after(const Encoder&) {}
};

struct Command {  // how many values the packet has
  uint32_t last;
  bool sent = false;
  void before(Decoder& core) const {
    core.s_cmd_tvalid = !sent;
    core.s_cmd_tdata = last;
  }
  void after(const Decoder& core) { sent = sent || core.s_cmd_tready; }
};

Status encode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  if (!is_float32(args)) return bx_scalar.encode(nullptr, args, src, dst, written);
  const size_t tail = src.size() % kWordSize;
  const auto full = [&] {
    return fail(Code::kDstTooSmall, "bx: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  };
  if (tail > dst.size()) return full();
  BytesIn values{src.first(src.size() - tail)};
  BytesOut out{dst.first(dst.size() - tail), true};
  NoPorts no_ports;
  if (values.more()) WPR_TRY(static_cast<Cores*>(state)->encoder.run(values, out, no_ports));
  if (out.over) return full();
  if (tail > 0) std::memcpy(dst.data() + out.size, src.data() + src.size() - tail, tail);
  *written = out.size + tail;
  return {};
}

Status decode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  if (!is_float32(args)) return bx_scalar.decode(nullptr, args, src, dst, written);
  const size_t n = dst.size() / kWordSize, tail = dst.size() % kWordSize;
  if (n > kMostValues)
    return fail(Code::kUnsupported, "bx: the core counts to %zu, the block has %zu values",
                kMostValues, n);
  const auto corrupt = [&] {
    return fail(Code::kCorrupt, "bx: %zu bytes do not hold %zu values and %zu bytes", src.size(), n,
                tail);
  };
  if (src.size() < tail || (src.size() == tail) != (n == 0)) return corrupt();
  BytesIn code{src.first(src.size() - tail)};
  BytesOut values{dst.first(n * kWordSize), false};
  Command command{static_cast<uint32_t>(n - 1)};
  if (n > 0) WPR_TRY(static_cast<Cores*>(state)->decoder.run(code, values, command));
  if (values.bad) return corrupt();
  if (values.over || values.size != n * kWordSize)
    return fail(Code::kDevice, "bx: the core gave %zu bytes, not %zu", values.size, n * kWordSize);
  if (tail > 0) std::memcpy(dst.data() + n * kWordSize, src.data() + src.size() - tail, tail);
  *written = dst.size();
  return {};
}

}  // namespace

extern const Kernel bx_rtl;
const Kernel bx_rtl = {
    .engine = "rtl",
    .variant = "verilator",
    .usable = always_usable,
    .open = open_cores,
    .close = close_cores,
    .encode = encode_on_core,
    .decode = decode_on_core,
};

}  // namespace wirepress
