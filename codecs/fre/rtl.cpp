// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of fre (rtl/fre), simulated. Whole blocks of ways=4 go through the cores of four
// ways; others, and those that are too large for their memories, stream by stream through the cores
// that know one. Last bytes, and there the sizes of streams, are put around them here, as whoever
// builds them into a card must.
#include <cstring>

#include "Vwpr_fre_dec.h"
#include "Vwpr_fre_dec4.h"
#include "Vwpr_fre_enc.h"
#include "Vwpr_fre_enc4.h"
#include "codecs/fre/code.hpp"
#include "engines/rtl/core.hpp"
#include "engines/rtl/packets.hpp"

namespace wirepress {
namespace {

using Encoder = Vwpr_fre_enc;
using Decoder = Vwpr_fre_dec;
using Encoder4 = Vwpr_fre_enc4;
using Decoder4 = Vwpr_fre_dec4;

constexpr size_t kMostValues = size_t{1} << 24;  // CountWidth of the decoder
constexpr size_t kMostValues4 = 4096;            // LogBlock of the cores of four ways
constexpr int kMostM4 = 20;

struct Cores4 {
  rtl::Core<Encoder4> encoder;
  rtl::Core<Decoder4> decoder;
};
struct Cores {
  rtl::Core<Encoder> encoder;
  rtl::Core<Decoder> decoder;
  std::unique_ptr<Cores4> of_four;  // where the settings allow it
};

template <class Encoder, class Decoder>
void set(const Args& args, rtl::Core<Encoder>* encoder, rtl::Core<Decoder>* decoder) {
  const auto m = static_cast<uint8_t>(args.value[kM]);
  encoder->ports().cfg_m_i = m;
  encoder->ports().cfg_nearest_i = args.value[kRound] == kNearest;
  encoder->ports().cfg_flush_i = args.value[kFlush] != 0;
  decoder->ports().cfg_m_i = m;
  decoder->ports().cfg_midpoint_i = args.value[kRound] == kMidpoint;
  decoder->ports().cfg_bfloat16_i = is_short(args);
  encoder->reset();
  decoder->reset();
}

Status open_cores(const Args& args, void** state) noexcept {
  auto* cores = new (std::nothrow) Cores;
  if (cores == nullptr) return fail(Code::kNoMemory, "fre: no memory for simulated cores");
  set(args, &cores->encoder, &cores->decoder);
  if (args.value[kWays] == 4 && args.value[kM] <= kMostM4) {
    cores->of_four.reset(new (std::nothrow) Cores4);
    if (cores->of_four) set(args, &cores->of_four->encoder, &cores->of_four->decoder);
  }
  *state = cores;
  return {};
}

void close_cores(void* state) noexcept { delete static_cast<Cores*>(state); }

uint32_t load_value(const Shape& shape, ConstBytes src, size_t i) {
  return shape.size == 2 ? load_word<uint16_t>(src.data(), i) : load_word<uint32_t>(src.data(), i);
}
void store_value(const Shape& shape, Bytes dst, size_t i, uint32_t word) {
  if (shape.size == 2) {
    store_word<uint16_t>(dst.data(), i, word);
  } else {
    store_word<uint32_t>(dst.data(), i, word);
  }
}

// Values [i, end) of src, one a beat.
struct Values {
  const Shape& shape;
  ConstBytes src;
  size_t i, end;
  bool more() const { return i < end; }
  void sent() { ++i; }
  void offer(Encoder& core) const {
    core.s_axis_tdata = load_value(shape, src, i);
    core.s_axis_tlast = i + 1 == end;
  }
};

// All values of src, four a beat.
struct FourValues {
  const Shape& shape;
  ConstBytes src;
  size_t i = 0;
  bool more() const { return i < shape.n; }
  void sent() { i += 4; }
  void offer(Encoder4& core) const {
    const size_t n = std::min<size_t>(shape.n - i, 4);
    for (size_t k = 0; k < 4; ++k)
      core.s_axis_tdata[k] = k < n ? load_value(shape, src, i + k) : ~0u;
    core.s_axis_tkeep = static_cast<uint16_t>((1u << 4 * n) - 1);
    core.s_axis_tlast = i + 4 >= shape.n;
  }
};

Status too_small(ConstBytes src, Bytes dst) {
  return fail(Code::kDstTooSmall, "fre: the code of %zu bytes does not fit %zu", src.size(),
              dst.size());
}

Status encode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  const Shape shape(args, src.size());
  auto* cores = static_cast<Cores*>(state);
  rtl::NoPorts no_ports;
  if (cores->of_four && shape.n > 0 && shape.n <= kMostValues4) {
    if (shape.tail > dst.size()) return too_small(src, dst);
    FourValues values{shape, src};
    rtl::BytesOut<8> out{dst.first(dst.size() - shape.tail)};
    WPR_TRY(cores->of_four->encoder.run(values, out, no_ports));
    if (out.over) return too_small(src, dst);
    if (shape.tail > 0)
      std::memcpy(dst.data() + out.size, src.data() + shape.size * shape.n, shape.tail);
    *written = out.size + shape.tail;
    return {};
  }
  return encode_ways(shape, src, dst, written,
                     [&](size_t begin, size_t end, Bytes room, size_t* size) -> Status {
                       Values values{shape, src, begin, end};
                       rtl::BytesOut<4> out{room};
                       if (values.more()) WPR_TRY(cores->encoder.run(values, out, no_ports));
                       *size = out.over ? kNoRoom : out.size;
                       return {};
                     });
}

// Values [i, end) of dst.
struct ValuesOut {
  const Shape& shape;
  Bytes dst;
  size_t i, end;
  bool bad = false;
  bool full() const { return false; }
  bool take(const Decoder& core) {
    if (i < end) store_value(shape, dst, i, core.m_axis_tdata);
    ++i;
    if (core.m_axis_tlast) bad = core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

// All values of dst.
struct FourValuesOut {
  const Shape& shape;
  Bytes dst;
  size_t i = 0;
  bool bad = false;
  bool full() const { return false; }
  bool take(const Decoder4& core) {
    for (size_t k = 0; k < 4 && (core.m_axis_tkeep >> 4 * k & 1) != 0; ++k, ++i)
      if (i < shape.n) store_value(shape, dst, i, core.m_axis_tdata[k]);
    if (core.m_axis_tlast) bad = core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

// A core of four ways takes no more than values have.
bool fits_four(const Cores& cores, const Shape& shape, ConstBytes codes) {
  return cores.of_four && shape.n > 0 && shape.n <= kMostValues4 && !codes.empty() &&
         codes.size() <= 4 * kMostValues4;
}

// What no core does: a good packet of another size.
Status miscounted(size_t n, size_t expected) {
  return fail(Code::kDevice, "fre: the core gave %zu values, not %zu", n, expected);
}

Status decode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  const Shape shape(args, dst.size());
  if (src.size() < shape.framing() + shape.tail || src.size() > UINT32_MAX)
    return fail(Code::kCorrupt, "fre: %zu bytes cannot hold %zu values and %zu bytes", src.size(),
                shape.n, shape.tail);
  const ConstBytes codes = src.first(src.size() - shape.tail);
  if (shape.n == 0 && !codes.empty())
    return fail(Code::kCorrupt, "fre: %zu bytes of codes for no value", codes.size());
  auto* cores = static_cast<Cores*>(state);
  const auto finish = [&]() -> Status {
    if (shape.tail > 0)
      std::memcpy(dst.data() + shape.size * shape.n, src.data() + codes.size(), shape.tail);
    *written = dst.size();
    return {};
  };
  if (fits_four(*cores, shape, codes)) {
    rtl::BytesIn<8> bytes{codes};
    FourValuesOut values{shape, dst};
    rtl::Command command{static_cast<uint32_t>(shape.n - 1)};
    WPR_TRY(cores->of_four->decoder.run(bytes, values, command));
    if (values.bad)
      return fail(Code::kCorrupt, "fre: %zu bytes do not hold %zu values in four streams",
                  codes.size(), shape.n);
    if (values.i != shape.n) return miscounted(values.i, shape.n);
    return finish();
  }
  Cutter cutter(shape, codes);
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    ConstBytes stream;
    WPR_TRY(cutter.next(&stream));
    ValuesOut values{shape, dst, shape.begin(way), shape.begin(way + 1)};
    const size_t n = values.end - values.i;
    rtl::BytesIn<4> bytes{stream};
    if ((n == 0) != stream.empty())
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, n);
    if (n == 0) continue;
    if (n > kMostValues)
      return fail(Code::kUnsupported, "fre: the core counts to %zu, a stream has %zu values",
                  kMostValues, n);
    rtl::Command command{static_cast<uint32_t>(n - 1)};
    WPR_TRY(cores->decoder.run(bytes, values, command));
    if (values.bad)
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, n);
    if (values.i != values.end) return miscounted(n - (values.end - values.i), n);
  }
  return finish();
}

}  // namespace

extern const Kernel fre_rtl;
const Kernel fre_rtl = {
    .engine = "rtl",
    .variant = "verilator",
    .usable = always_usable,
    .open = open_cores,
    .close = close_cores,
    .encode = encode_on_core,
    .decode = decode_on_core,
};

}  // namespace wirepress
