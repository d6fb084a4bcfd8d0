// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of fre (rtl/fre), simulated. The cores know one bit stream each; sizes of streams
// and last bytes are put around them here, as whoever builds them into a card must.
#include "base/rtl.hpp"

#include <cstring>

#include "Vwpr_fre_dec.h"
#include "Vwpr_fre_enc.h"
#include "codecs/fre/code.hpp"

namespace wirepress {
namespace {

using Encoder = Vwpr_fre_enc;
using Decoder = Vwpr_fre_dec;

constexpr size_t kMostValues = size_t{1} << 24;  // CountWidth of the decoder

struct Cores {
  rtl::Core<Encoder> encoder;
  rtl::Core<Decoder> decoder;
};

Status open_cores(const Args& args, void** state) noexcept {
  auto* cores = new (std::nothrow) Cores;
  if (cores == nullptr) return fail(Code::kNoMemory, "fre: no memory for simulated cores");
  const auto m = static_cast<uint8_t>(args.value[kM]);
  Encoder& encoder = cores->encoder.ports();
  encoder.cfg_m_i = m;
  encoder.cfg_nearest_i = args.value[kRound] == kNearest;
  encoder.cfg_flush_i = args.value[kFlush] != 0;
  Decoder& decoder = cores->decoder.ports();
  decoder.cfg_m_i = m;
  decoder.cfg_midpoint_i = args.value[kRound] == kMidpoint;
  decoder.cfg_bfloat16_i = is_short(args);
  cores->encoder.reset();
  cores->decoder.reset();
  *state = cores;
  return {};
}

void close_cores(void* state) noexcept { delete static_cast<Cores*>(state); }

struct NoPorts {  // the encoder has none but its streams
  void before(Encoder&) {}
  void after(const Encoder&) {}
};

// Values [i, end) of src, one a beat.
struct Values {
  const Shape& shape;
  ConstBytes src;
  size_t i, end;
  bool more() const { return i < end; }
  void sent() { ++i; }
  void offer(Encoder& core) const {
    core.s_axis_tdata =
        shape.size == 2 ? load_word<uint16_t>(src.data(), i) : load_word<uint32_t>(src.data(), i);
    core.s_axis_tlast = i + 1 == end;
  }
};

// A stream's bytes, as far as there is room.
struct BytesOut {
  Bytes room;
  size_t size = 0;
  bool over = false;
  bool full() const { return over; }
  bool take(const Encoder& core) {
    const uint32_t word = core.m_axis_tdata;
    const auto n = static_cast<size_t>(std::popcount(static_cast<unsigned>(core.m_axis_tkeep)));
    over = over || n > room.size() - size;
    if (!over) {
      std::memcpy(room.data() + size, &word, n);
      size += n;
    }
    return core.m_axis_tlast;
  }
};

Status encode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  const Shape shape(args, src.size());
  NoPorts no_ports;
  return encode_ways(shape, src, dst, written,
                     [&](size_t begin, size_t end, Bytes room, size_t* size) -> Status {
                       Values values{shape, src, begin, end};
                       BytesOut out{room};
                       if (values.more())
                         WPR_TRY(static_cast<Cores*>(state)->encoder.run(values, out, no_ports));
                       *size = out.over ? kNoRoom : out.size;
                       return {};
                     });
}

// A stream's bytes, four a beat.
struct BytesIn {
  ConstBytes rest;
  bool more() const { return !rest.empty(); }
  void sent() { rest = rest.subspan(std::min<size_t>(rest.size(), 4)); }
  void offer(Decoder& core) const {
    uint32_t word = ~0u;  // bytes that are not there may be anything
    const size_t n = std::min<size_t>(rest.size(), 4);
    std::memcpy(&word, rest.data(), n);
    core.s_axis_tdata = word;
    core.s_axis_tkeep = static_cast<uint8_t>((1u << n) - 1);
    core.s_axis_tlast = rest.size() <= 4;
  }
};

// Values [i, end) of dst.
struct ValuesOut {
  const Shape& shape;
  Bytes dst;
  size_t i, end;
  bool bad = false;
  bool full() const { return false; }
  bool take(const Decoder& core) {
    if (i < end) {
      if (shape.size == 2) {
        store_word<uint16_t>(dst.data(), i, core.m_axis_tdata);
      } else {
        store_word<uint32_t>(dst.data(), i, core.m_axis_tdata);
      }
    }
    ++i;
    if (core.m_axis_tlast) bad = core.m_axis_tuser || i != end;
    return core.m_axis_tlast;
  }
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

Status decode_on_core(void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
  const Shape shape(args, dst.size());
  if (src.size() < shape.framing() + shape.tail || src.size() > UINT32_MAX)
    return fail(Code::kCorrupt, "fre: %zu bytes cannot hold %zu values and %zu bytes", src.size(),
                shape.n, shape.tail);
  const ConstBytes codes = src.first(src.size() - shape.tail);
  if (shape.n == 0 && !codes.empty())
    return fail(Code::kCorrupt, "fre: %zu bytes of codes for no value", codes.size());
  std::array<ConstBytes, kWaysMax> streams;
  if (shape.n > 0) WPR_TRY(cut_streams(shape, codes, &streams));
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    ValuesOut values{shape, dst, shape.begin(way), shape.begin(way + 1)};
    const size_t n = values.end - values.i;
    BytesIn bytes{streams[way]};
    if ((n == 0) != streams[way].empty())
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, n);
    if (n == 0) continue;
    if (n > kMostValues)
      return fail(Code::kUnsupported, "fre: the core counts to %zu, a stream has %zu values",
                  kMostValues, n);
    Command command{static_cast<uint32_t>(n - 1)};
    WPR_TRY(static_cast<Cores*>(state)->decoder.run(bytes, values, command));
    if (values.bad)
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, n);
  }
  if (shape.tail > 0)
    std::memcpy(dst.data() + shape.size * shape.n, src.data() + codes.size(), shape.tail);
  *written = dst.size();
  return {};
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
