// SPDX-License-Identifier: Apache-2.0
// The FPGA encoder of zfp (rtl/zfp), simulated: float32 in one or two dimensions, at a rate or with
// a precision or an accuracy. What a card's host does is done here: cells are gathered, the head
// and the index are written. Everything else, and decoding, goes to libzfp.
#include <algorithm>
#include <memory>
#include <new>

#include "Vwpr_zfp_enc1.h"
#include "Vwpr_zfp_enc2.h"
#include "codecs/zfp/zfp.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress {

extern const Kernel zfp_libzfp;

namespace {

using namespace zfp;

constexpr size_t kBeatValues = 16;
constexpr unsigned kCellBits[] = {140, 536};  // of the cores, by dimensions less one

struct State {
  ~State() {
    if (portable != nullptr) zfp_libzfp.close(portable);
  }
  void* portable = nullptr;
  std::unique_ptr<rtl::Core<Vwpr_zfp_enc1>> one;
  std::unique_ptr<rtl::Core<Vwpr_zfp_enc2>> two;
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

bool takes(const Args& args, const Grid& grid) {
  if (type_of(args).size != 4 || type_of(args).exponent_bits == 0) return false;
  if (grid.cells == 0 || grid.dims > 2 || mode_of(args) == Mode::kReversible) return false;
  return mode_of(args) != Mode::kRate || rate_bits(args, grid) <= kCellBits[grid.dims - 1];
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
  int offset = kAll;
  if (mode == Mode::kAccuracy)
    offset = std::clamp(2 * grid.dims - 124 - std::ilogb(args.real(kAccuracyParam)), -300, kAll);
  core.cfg_offset_i = static_cast<unsigned>(offset) & 0x3FF;
}

// Cells, 16 values a beat. What lies beyond the array may be anything.
struct CellsIn {
  const Grid& grid;
  const float* cells;
  size_t beat = 0;
  size_t n_beats() const {
    return (grid.cells * grid.cell_values() + kBeatValues - 1) / kBeatValues;
  }
  bool more() const { return beat < n_beats(); }
  void sent() { ++beat; }
  size_t last_in(int d, size_t cell) const { return std::min<size_t>(4, grid.n[d] - 4 * cell) - 1; }
  size_t end_at() const {  // the place of the last value
    if (grid.dims == 1) return std::min(kBeatValues, grid.n[0] - kBeatValues * beat) - 1;
    return last_in(0, beat % grid.cells_of[0]) + 4 * last_in(1, beat / grid.cells_of[0]);
  }
  void offer(auto& core) const {
    const size_t end = end_at();
    const auto there = [&](size_t i) {
      return grid.dims == 1 ? i <= end : i % 4 <= end % 4 && i / 4 <= end / 4;
    };
    for (size_t i = 0; i < kBeatValues; ++i)
      core.s_axis_tdata[i] =
          there(i) ? std::bit_cast<uint32_t>(cells[kBeatValues * beat + i]) : ~uint32_t{0};
    core.s_axis_tuser = static_cast<uint8_t>(end);
    core.s_axis_tlast = beat + 1 == n_beats();
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
  if (!takes(args, grid)) return portable();
  try {
    own->cells.resize((grid.cells * grid.cell_values() + kBeatValues - 1) / kBeatValues *
                      kBeatValues);
    own->lengths.resize(grid.groups);
  } catch (const std::bad_alloc&) {
    return fail(Code::kNoMemory, "zfp: no memory for %zu cells", grid.cells);
  }
  if (!plain_cells(own->portable, args, grid, src, own->cells.data())) return portable();
  if (dst.size() < Head::kSize) return does_not_fit(src, dst);
  rtl::BytesOut<rtl::kBeat> out{dst.subspan(Head::kSize)};
  if (grid.dims == 1) {
    WPR_TRY(encode_on(own->one, args, grid, own, &out));
  } else {
    WPR_TRY(encode_on(own->two, args, grid, own, &out));
  }
  if (out.over) return does_not_fit(src, dst);
  return end_payload(grid, own->lengths, false, src, dst, out.size, written);
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  return zfp_libzfp.decode(static_cast<State*>(state)->portable, args, src, dst, written);
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
