// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of zfp (rtl/zfp), simulated: of float32, encoders and decoders in one to three
// dimensions at a rate, encoders and the decoder in three also with a precision or an accuracy.
// What a card's host does is done here: cells are gathered and put back, the head and the index are
// written and read. Everything else goes to libzfp.
#include <algorithm>
#include <memory>
#include <new>

#include "Vwpr_zfp_dec1.h"
#include "Vwpr_zfp_dec2.h"
#include "Vwpr_zfp_dec3.h"
#include "Vwpr_zfp_enc1.h"
#include "Vwpr_zfp_enc2.h"
#include "Vwpr_zfp_enc3.h"
#include "codecs/zfp/zfp.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel zfp_libzfp;

namespace {

using namespace zfp;

constexpr size_t kBeatValues = 16;
// Of the cores, by dimensions less one.
constexpr unsigned kCellBits[] = {140, 536, 2120};
constexpr unsigned kDecodedBits[] = {128, 512, 2048};
// Of a stream whose cells have different sizes: what fits the memory of wpr_zfp_dec3.
constexpr size_t kMostStream = ((size_t{1} << 12) - 6) * rtl::kBeat;

struct State {
  ~State() {
    if (portable != nullptr) zfp_libzfp.close(portable);
  }
  void* portable = nullptr;
  std::unique_ptr<rtl::Core<Vwpr_zfp_enc1>> one;
  std::unique_ptr<rtl::Core<Vwpr_zfp_enc2>> two;
  std::unique_ptr<rtl::Core<Vwpr_zfp_enc3>> three;
  std::unique_ptr<rtl::Core<Vwpr_zfp_dec1>> one_back;
  std::unique_ptr<rtl::Core<Vwpr_zfp_dec2>> two_back;
  std::unique_ptr<rtl::Core<Vwpr_zfp_dec3>> three_back;
  std::vector<float> cells;
  std::vector<uint32_t> lengths;
};

Status open(const Args& args, void** state) noexcept {
  auto own = std::unique_ptr<State>(new (std::nothrow) State);
  if (!own) return fail(Code::kNoMemory, "zfp: no memory for a simulated core");
  WPR_TRY(zfp_libzfp.open(args, &own->portable));
  *state = own.release();
  return {};
}

void close(void* state) noexcept { delete static_cast<State*>(state); }

bool has_shape(const Args& args, const Grid& grid) {
  const Type type = type_of(args);
  return type.size == 4 && type.exponent_bits != 0 && grid.cells > 0 && grid.dims <= 3;
}

bool encodes(const Args& args, const Grid& grid) {
  if (!has_shape(args, grid) || mode_of(args) == Mode::kReversible) return false;
  return mode_of(args) != Mode::kRate || rate_bits(args, grid) <= kCellBits[grid.dims - 1];
}

bool decodes(const Args& args, const Grid& grid, size_t code_size) {
  if (!has_shape(args, grid) || grid.cells > rtl::kMostValues) return false;
  const Mode mode = mode_of(args);
  if (mode == Mode::kRate) return rate_bits(args, grid) <= kDecodedBits[grid.dims - 1];
  return mode != Mode::kReversible && grid.dims == 3 && code_size <= kMostStream;
}

size_t beats_of(const Grid& grid) {
  return (grid.cells * grid.cell_values() + kBeatValues - 1) / kBeatValues;
}

template <typename Model>
void set(const Args& args, const Grid& grid, Model& core) {
  constexpr int kAll = 32;  // planes
  const Mode mode = mode_of(args);
  core.cfg_rate_i = mode == Mode::kRate;
  core.cfg_bits_i = mode == Mode::kRate ? rate_bits(args, grid) : 0;
  core.cfg_planes_i = mode == Mode::kPrecision
                          ? static_cast<unsigned>(std::min(args.value[kPrecisionParam], kAll))
                          : unsigned{kAll};
  int offset = kAll + 1;  // so that no exponent leaves planes out
  if (mode == Mode::kAccuracy)
    offset = std::clamp(2 * grid.dims - 124 - std::ilogb(args.real(kAccuracyParam)), -300, offset);
  core.cfg_offset_i = static_cast<unsigned>(offset) & 0x3FF;
}

// Cells, 16 values a beat. What lies beyond the array may be anything.
struct CellsIn {
  const Grid& grid;
  const float* cells;
  size_t beat = 0;
  bool more() const { return beat < beats_of(grid); }
  void sent() { ++beat; }
  size_t last_in(int d, size_t cell) const { return std::min<size_t>(4, grid.n[d] - 4 * cell) - 1; }
  size_t end_at() const {  // the place of the last value
    if (grid.dims == 1) return std::min(kBeatValues, grid.n[0] - kBeatValues * beat) - 1;
    const size_t cell = grid.dims == 2 ? beat : beat / 4, row = cell / grid.cells_of[0];
    return last_in(0, cell % grid.cells_of[0]) + 4 * last_in(1, row % grid.cells_of[1]) +
           16 * last_in(2, row / grid.cells_of[1]);
  }
  bool there(size_t i, size_t end) const {
    if (grid.dims == 1) return i <= end;
    const size_t z = grid.dims == 2 ? 0 : beat % 4;
    return i % 4 <= end % 4 && i / 4 <= end / 4 % 4 && z <= end / 16;
  }
  void offer(auto& core) const {
    const size_t end = end_at();
    for (size_t i = 0; i < kBeatValues; ++i)
      core.s_axis_tdata[i] =
          there(i, end) ? std::bit_cast<uint32_t>(cells[kBeatValues * beat + i]) : ~uint32_t{0};
    core.s_axis_tuser = static_cast<uint8_t>(end);
    core.s_axis_tlast = beat + 1 == beats_of(grid);
  }
};

struct Groups {
  std::vector<uint32_t>& lengths;
  size_t n = 0;
  void before(auto& core) const { core.m_group_tready = 1; }
  void after(const auto& core) {
    if (core.m_group_tvalid && n < lengths.size()) lengths[n++] = core.m_group_tdata;
  }
};

template <typename Model>
Status encode_on(std::unique_ptr<rtl::Core<Model>>& core, const Args& args, const Grid& grid,
                 State* own, rtl::BytesOut<rtl::kBeat>* out) {
  if (!core) core = std::make_unique<rtl::Core<Model>>();
  set(args, grid, core->ports());
  core->reset();
  CellsIn cells{grid, own->cells.data()};
  Groups groups{own->lengths};
  WPR_TRY(core->run(cells, *out, groups));
  if (!out->over && groups.n != grid.groups)
    return fail(Code::kDevice, "zfp: the core gave %zu groups, not %zu", groups.n, grid.groups);
  return {};
}

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  State* own = static_cast<State*>(state);
  const Grid grid = grid_of(args, src.size());
  const auto portable = [&] { return zfp_libzfp.encode(own->portable, args, src, dst, written); };
  if (!encodes(args, grid)) return portable();
  try {
    own->cells.resize(beats_of(grid) * kBeatValues);
    own->lengths.resize(grid.groups);
  } catch (const std::bad_alloc&) {
    return fail(Code::kNoMemory, "zfp: no memory for %zu cells", grid.cells);
  }
  if (!plain_cells(own->portable, args, grid, src, own->cells.data())) return portable();
  if (dst.size() < Head::kSize) return does_not_fit(src, dst);
  rtl::BytesOut<rtl::kBeat> out{dst.subspan(Head::kSize)};
  if (grid.dims == 1) {
    WPR_TRY(encode_on(own->one, args, grid, own, &out));
  } else if (grid.dims == 2) {
    WPR_TRY(encode_on(own->two, args, grid, own, &out));
  } else {
    WPR_TRY(encode_on(own->three, args, grid, own, &out));
  }
  if (out.over) return does_not_fit(src, dst);
  return end_payload(grid, own->lengths, false, src, dst, out.size, written);
}

// At a rate all groups but the last have the same bits.
Status check_lengths(const Grid& grid, const Payload& payload, unsigned bits) {
  const uint64_t expected = uint64_t{grid.group_cells()} * bits;
  for (size_t group = 0; group + 1 < grid.groups; ++group) {
    if (payload.length(group) != expected)
      return fail(Code::kCorrupt, "zfp: group %zu has %llu bits, not %llu", group,
                  static_cast<unsigned long long>(payload.length(group)),
                  static_cast<unsigned long long>(expected));
  }
  return {};
}

template <typename Model>
Status decode_on(std::unique_ptr<rtl::Core<Model>>& core, unsigned bits, const Grid& grid,
                 ConstBytes stream, Bytes cells) {
  const auto corrupt = [&] {
    return fail(Code::kCorrupt, "zfp: a stream of %zu bytes does not hold %zu cells of %u bits",
                stream.size(), grid.cells, bits);
  };
  if (stream.empty()) return corrupt();
  if (!core) core = std::make_unique<rtl::Core<Model>>();
  core->ports().cfg_bits_i = bits;
  core->reset();
  rtl::BytesIn<rtl::kBeat> code{stream};
  rtl::BytesOut<rtl::kBeat> values{cells, false};
  rtl::Command command{static_cast<uint32_t>(grid.cells - 1)};
  WPR_TRY(core->run(code, values, command));
  if (values.bad) return corrupt();
  if (values.over || values.size != cells.size())
    return fail(Code::kDevice, "zfp: the core gave %zu bytes, not %zu", values.size, cells.size());
  return {};
}

// What a decoder in three dimensions is told: the packet's cells, less one, and the bits of its
// groups but the last one.
struct Told {
  rtl::Command command;
  const Payload& payload;
  size_t groups, group = 0;
  void before(auto& core) const {
    command.before(core);
    core.s_group_tvalid = group < groups;
    core.s_group_tdata = group < groups ? static_cast<uint32_t>(payload.length(group)) : 0;
  }
  void after(const auto& core) {
    command.after(core);
    if (core.s_group_tvalid && core.s_group_tready) ++group;
  }
};

// Cells in any order, each in four beats, with their numbers.
struct CellsOut {
  Bytes room;
  size_t beats = 0;
  bool over = false, bad = false;
  bool full() const { return over; }
  bool take(const auto& core) {
    const size_t at = (core.m_axis_tdest * size_t{4} + beats++ % 4) * rtl::kBeat;
    over = over || at >= room.size();
    if (!over) rtl::sample<rtl::kBeat>(core.m_axis_tdata, room.data() + at, rtl::kBeat);
    bad = core.m_axis_tlast && core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

Status decode_cubes(State* own, const Args& args, const Grid& grid, const Payload& payload,
                    Bytes cells) {
  const ConstBytes stream = payload.stream();
  const auto corrupt = [&] {
    return fail(Code::kCorrupt, "zfp: a stream of %zu bytes does not hold %zu cells", stream.size(),
                grid.cells);
  };
  if (stream.empty()) return corrupt();
  const size_t n_told = mode_of(args) == Mode::kRate ? 0 : grid.groups - 1;
  for (size_t group = 0; group < n_told; ++group)  // the core's port is narrower than an entry
    if (payload.length(group) > grid.group_cells() * most_cell_bits(args, grid)) return corrupt();
  if (!own->three_back) own->three_back = std::make_unique<rtl::Core<Vwpr_zfp_dec3>>();
  auto& core = *own->three_back;
  set(args, grid, core.ports());
  core.reset();
  rtl::BytesIn<rtl::kBeat> code{stream};
  CellsOut values{cells};
  Told told{{static_cast<uint32_t>(grid.cells - 1)}, payload, n_told};
  WPR_TRY(core.run(code, values, told));
  if (values.bad) return corrupt();
  if (values.over || values.beats != beats_of(grid))
    return fail(Code::kDevice, "zfp: the core gave %zu beats, not %zu", values.beats,
                beats_of(grid));
  return {};
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  State* own = static_cast<State*>(state);
  const Grid grid = grid_of(args, dst.size());
  const auto portable = [&] { return zfp_libzfp.decode(own->portable, args, src, dst, written); };
  if (!decodes(args, grid, src.size())) return portable();
  Payload payload;
  WPR_TRY(payload.open(args, grid, src));
  if (payload.reversible()) return portable();
  const bool rate = mode_of(args) == Mode::kRate;
  const unsigned bits = rate ? rate_bits(args, grid) : 0;
  if (rate) WPR_TRY(check_lengths(grid, payload, bits));
  try {
    own->cells.resize(grid.cells * grid.cell_values());
  } catch (const std::bad_alloc&) {
    return fail(Code::kNoMemory, "zfp: no memory for %zu cells", grid.cells);
  }
  const Bytes cells = std::as_writable_bytes(std::span(own->cells));
  if (grid.dims == 1) {
    WPR_TRY(decode_on(own->one_back, bits, grid, payload.stream(), cells));
  } else if (grid.dims == 2) {
    WPR_TRY(decode_on(own->two_back, bits, grid, payload.stream(), cells));
  } else {
    WPR_TRY(decode_cubes(own, args, grid, payload, cells));
  }
  put_cells(grid, own->cells.data(), dst);
  if (grid.tail > 0)
    std::memcpy(dst.data() + dst.size() - grid.tail, payload.tail().data(), grid.tail);
  *written = dst.size();
  return {};
}

}  // namespace

extern const Kernel zfp_rtl;
const Kernel zfp_rtl = {.engine = "rtl",
                        .variant = "verilator",
                        .usable = always_usable,
                        .open = open,
                        .close = close,
                        .encode = encode,
                        .decode = decode};

}  // namespace wirepress
