// SPDX-License-Identifier: Apache-2.0
// The kernel by libzfp, cell by cell: so the stream can be written straight into dst, the groups'
// sizes are known, and hostile bytes are read from a padded copy. libzfp itself checks nothing.
#include <zfp.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "codecs/common/default_floats.hpp"
#include "codecs/zfp/zfp.hpp"

namespace wirepress {
namespace {

using namespace zfp;

// Bits of the largest group, of one cell more (of what a cell reads before its end is checked),
// and what is left of a word at both ends.
constexpr size_t kScratchWords = (71168 + ZFP_MAX_BITS) / 64 + 4;

constexpr size_t kCellWords = ZFP_MAX_BITS / 64 + 2;

struct State {
  alignas(64) uint64_t words[kScratchWords] = {};
  uint64_t cell_words[kCellWords] = {};
  zfp_stream* lib = nullptr;
  bitstream* bits = nullptr;       // over `words`
  bitstream* cell_bits = nullptr;  // over `cell_words`
  std::vector<uint32_t> lengths;

  ~State() {
    if (lib != nullptr) zfp_stream_close(lib);
    if (bits != nullptr) stream_close(bits);
    if (cell_bits != nullptr) stream_close(cell_bits);
  }
};

Status open(const Args&, void** state) noexcept {
  auto own = std::unique_ptr<State>(new (std::nothrow) State);
  if (own) own->bits = stream_open(own->words, sizeof(own->words));
  if (own) own->cell_bits = stream_open(own->cell_words, sizeof(own->cell_words));
  if (own && own->bits && own->cell_bits) own->lib = zfp_stream_open(own->bits);
  if (!own || own->lib == nullptr) return fail(Code::kNoMemory, "zfp: no memory for its state");
  *state = own.release();
  return {};
}

void close(void* state) noexcept { delete static_cast<State*>(state); }

// ---- libzfp's functions by type and dimensions --------------------------------------------------

template <typename T>
struct Lib;
template <>
struct Lib<float> {
  static constexpr size_t (*encode[])(zfp_stream*, const float*) = {
      zfp_encode_block_float_1, zfp_encode_block_float_2, zfp_encode_block_float_3,
      zfp_encode_block_float_4};
  static constexpr size_t (*decode[])(zfp_stream*, float*) = {
      zfp_decode_block_float_1, zfp_decode_block_float_2, zfp_decode_block_float_3,
      zfp_decode_block_float_4};
};
template <>
struct Lib<double> {
  static constexpr size_t (*encode[])(zfp_stream*, const double*) = {
      zfp_encode_block_double_1, zfp_encode_block_double_2, zfp_encode_block_double_3,
      zfp_encode_block_double_4};
  static constexpr size_t (*decode[])(zfp_stream*, double*) = {
      zfp_decode_block_double_1, zfp_decode_block_double_2, zfp_decode_block_double_3,
      zfp_decode_block_double_4};
};
template <>
struct Lib<int32> {
  static constexpr size_t (*encode[])(zfp_stream*, const int32*) = {
      zfp_encode_block_int32_1, zfp_encode_block_int32_2, zfp_encode_block_int32_3,
      zfp_encode_block_int32_4};
  static constexpr size_t (*decode[])(zfp_stream*, int32*) = {
      zfp_decode_block_int32_1, zfp_decode_block_int32_2, zfp_decode_block_int32_3,
      zfp_decode_block_int32_4};
};
template <>
struct Lib<int64> {
  static constexpr size_t (*encode[])(zfp_stream*, const int64*) = {
      zfp_encode_block_int64_1, zfp_encode_block_int64_2, zfp_encode_block_int64_3,
      zfp_encode_block_int64_4};
  static constexpr size_t (*decode[])(zfp_stream*, int64*) = {
      zfp_decode_block_int64_1, zfp_decode_block_int64_2, zfp_decode_block_int64_3,
      zfp_decode_block_int64_4};
};

zfp_type lib_type(const Args& args) {
  switch (args.dtype) {
    case DType::kInt32:
      return zfp_type_int32;
    case DType::kInt64:
      return zfp_type_int64;
    case DType::kFloat64:
      return zfp_type_double;
    default:
      return zfp_type_float;
  }
}

void set_mode(zfp_stream* lib, const Args& args, const Grid& grid, bool reversible) {
  switch (reversible ? Mode::kReversible : mode_of(args)) {
    case Mode::kReversible:
      return zfp_stream_set_reversible(lib);
    case Mode::kAccuracy:
      zfp_stream_set_accuracy(lib, args.real(kAccuracyParam));
      return;
    case Mode::kPrecision:
      zfp_stream_set_precision(lib, static_cast<uint>(args.value[kPrecisionParam]));
      return;
    case Mode::kRate:
      zfp_stream_set_rate(lib, args.real(kRateParam), lib_type(args), static_cast<uint>(grid.dims),
                          zfp_false);
      return;
  }
}

// Calls function.operator()<T, D>().
template <typename T, typename Function>
auto by_dims(int dims, Function function) {
  switch (dims) {
    case 1:
      return function.template operator()<T, 1>();
    case 2:
      return function.template operator()<T, 2>();
    case 3:
      return function.template operator()<T, 3>();
    default:
      return function.template operator()<T, 4>();
  }
}

template <typename Function>
auto dispatch(const Args& args, const Grid& grid, Function function) {
  switch (args.dtype) {
    case DType::kInt32:
      return by_dims<int32>(grid.dims, function);
    case DType::kInt64:
      return by_dims<int64>(grid.dims, function);
    case DType::kFloat64:
      return by_dims<double>(grid.dims, function);
    default:
      return by_dims<float>(grid.dims, function);
  }
}

// ---- cells --------------------------------------------------------------------------------------

// One cell after the other, in the order of the stream: x runs fastest.
template <typename T, int D>
class Cells {
 public:
  static constexpr size_t kValues = size_t{1} << (2 * D);

  Cells(const Grid& grid, size_t first) : grid_(grid) {
    for (int d = 0; d < D; ++d) {
      at_[d] = first % grid.cells_of[d];
      first /= grid.cells_of[d];
    }
    for (int d = 1; d < D; ++d) stride_[d] = stride_[d - 1] * grid.n[d - 1];
    locate();
  }

  void next() {
    for (int d = 0; d < D; ++d) {
      if (++at_[d] < grid_.cells_of[d]) break;
      at_[d] = 0;
    }
    locate();
  }

  void gather(const std::byte* src, T* cell) const {
    if (!whole_) std::memset(cell, 0, kValues * sizeof(T));
    for_rows([&](size_t row, size_t offset, size_t n) {
      std::memcpy(cell + 4 * row, src + offset * sizeof(T), n * sizeof(T));
    });
    if (!whole_) pad(cell);
  }

  void scatter(const T* cell, std::byte* dst) const {
    for_rows([&](size_t row, size_t offset, size_t n) {
      std::memcpy(dst + offset * sizeof(T), cell + 4 * row, n * sizeof(T));
    });
  }

  // Calls function(place in the cell) for the values of the array.
  template <typename Function>
  void for_values(Function function) const {
    for_rows([&](size_t row, size_t, size_t n) {
      for (size_t x = 0; x < n; ++x) function(4 * row + x);
    });
  }

 private:
  void locate() {
    whole_ = true;
    begin_ = 0;
    for (int d = 0; d < D; ++d) {
      extent_[d] = std::min<size_t>(4, grid_.n[d] - 4 * at_[d]);
      whole_ &= extent_[d] == 4;
      begin_ += 4 * at_[d] * stride_[d];
    }
  }

  // Calls function(row of the cell, where it begins in the array, its values) for rows of 4 in x
  // that lie in the array.
  template <typename Function>
  void for_rows(Function function) const {
    constexpr size_t kRows = kValues / 4;
    for (size_t row = 0; row < kRows; ++row) {
      size_t offset = begin_;
      bool inside = true;
      for (int d = 1; d < D; ++d) {
        const size_t i = row >> (2 * (d - 1)) & 3;
        inside &= i < extent_[d];
        offset += i * stride_[d];
      }
      if (inside) function(row, offset, extent_[0]);
    }
  }

  // As libzfp fills what lies beyond the array.
  void pad(T* cell) const {
    for (int d = 0; d < D; ++d) {
      const size_t step = size_t{1} << (2 * d);
      if (extent_[d] == 4) continue;
      for (size_t i = 0; i < kValues; ++i) {
        if ((i / step & 3) != 0) continue;
        T* line = cell + i;
        for (size_t x = extent_[d]; x < 4; ++x)
          line[x * step] = line[filled_from(x, extent_[d]) * step];
      }
    }
  }

  const Grid& grid_;
  size_t at_[D] = {};
  size_t extent_[D] = {};
  size_t stride_[D] = {1};
  size_t begin_ = 0;
  bool whole_ = true;
};

// ---- what can be coded within the mode ----------------------------------------------------------

template <typename T>
using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <typename T>
Word<T> size_word(T x) {  // orders finite floats, and integers, by |x|
  using U = Word<T>;
  const U word = std::bit_cast<U>(x);
  if constexpr (std::is_floating_point_v<T>) return word & ~(U{1} << (8 * sizeof(T) - 1));
  return word >> (8 * sizeof(T) - 1) != 0 ? U{0} - word : word;
}

template <typename T>
struct Range {
  Word<T> most = 0;             // size_word of the largest
  Word<T> least = ~Word<T>{0};  // of the smallest but 0
};

template <typename T>
Range<T> range_of(ConstBytes src, size_t n) {
  Range<T> range;
  Word<T> below = ~Word<T>{0};  // the smallest, minus 1: a 0 is then the largest of all
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, src.data() + i * sizeof(T), sizeof(T));
    const Word<T> word = size_word(value);
    range.most = std::max(range.most, word);
    below = std::min<Word<T>>(below, word - 1);
  }
  range.least = below + 1;
  return range;
}

template <typename T>
void set_doubtful(double tolerance, Plan* plan) {
  T from = 0, to = 0;
  if (!find_doubtful<T>(tolerance, &from, &to)) return;
  plan->doubtful_from = std::max<uint64_t>(1, size_word(from));
  plan->doubtful_to = size_word(to);
}

template <typename T>
Plan plan_floats(const Args& args, const Range<T>& range) {
  const T most = std::bit_cast<T>(range.most);
  if (most == 0) return {};
  if (!std::isfinite(most)) return {.reversible = true};
  const bool accuracy = mode_of(args) == Mode::kAccuracy;
  const double tolerance = args.real(kAccuracyParam);
  Plan plan = plan_of_magnitudes<T>(most, range.least < size_word(kTiny<T>),
                                    accuracy ? tolerance : rounding_of(most));
  plan.verify |= accuracy && std::ilogb(most) - std::ilogb(tolerance) > kExactPlanes<T>;
  if (accuracy) set_doubtful<T>(tolerance, &plan);
  return plan;
}

template <typename T>
Plan plan_of(const Args& args, const Grid& grid, ConstBytes src) {
  if (mode_of(args) == Mode::kReversible) return {.reversible = true};
  const Range<T> range = range_of<T>(src, grid.values);
  if constexpr (std::is_floating_point_v<T>) return plan_floats<T>(args, range);
  constexpr Word<T> kOverflows = Word<T>{1} << (8 * sizeof(T) - 2);
  return {.reversible = range.most >= kOverflows};
}

template <typename T>
Word<T> largest(const T* cell, size_t n) {
  Word<T> most = 0;
  for (size_t i = 0; i < n; ++i) most = std::max(most, size_word(cell[i]));
  return most;
}

// ---- encoder ------------------------------------------------------------------------------------

enum class Outcome { kDone, kFull, kBeyondBound };

struct Encoding {
  State& own;
  const Args& args;
  const Grid& grid;
  const Plan& plan;
  ConstBytes src;
  Bytes room;  // for the stream
  size_t size = 0;
};

// Whether libzfp would bring a value of the cell back beyond the accuracy.
template <typename T, int D>
bool breaks_bound(const Encoding& e, const T* cell) {
  T out[Cells<T, D>::kValues];
  zfp_stream_set_bit_stream(e.own.lib, e.own.cell_bits);
  stream_rewind(e.own.cell_bits);
  Lib<T>::encode[D - 1](e.own.lib, cell);
  stream_flush(e.own.cell_bits);
  stream_rewind(e.own.cell_bits);
  Lib<T>::decode[D - 1](e.own.lib, out);
  zfp_stream_set_bit_stream(e.own.lib, e.own.bits);
  const double bound = e.args.real(kAccuracyParam);
  bool good = true;
  for (size_t i = 0; i < Cells<T, D>::kValues; ++i)
    good &= std::fabs(static_cast<double>(cell[i]) - static_cast<double>(out[i])) <= bound;
  return !good;
}

template <typename T, int D>
void gather(const Encoding& e, const Cells<T, D>& cells, T* cell) {
  cells.gather(e.src.data(), cell);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr size_t kValues = Cells<T, D>::kValues;
    if (!e.plan.zero_tiny && e.plan.doubtful_to == 0) return;
    const Word<T> most = largest(cell, kValues);
    const bool doubtful = most >= e.plan.doubtful_from && most < e.plan.doubtful_to;
    if ((e.plan.zero_tiny && most < size_word(kTiny<T>)) ||
        (doubtful && breaks_bound<T, D>(e, cell)))
      std::memset(cell, 0, kValues * sizeof(T));
  }
}

// Decodes the group that stands in the scratch from bit `begin` on.
template <typename T, int D>
bool within_bound(const Encoding& e, size_t group, size_t begin) {
  if constexpr (!std::is_floating_point_v<T>) return true;
  const bool accuracy = mode_of(e.args) == Mode::kAccuracy;
  const double bound = accuracy ? e.args.real(kAccuracyParam) : 0;
  Cells<T, D> cells(e.grid, group * e.grid.group_cells());
  stream_rseek(e.own.bits, begin);
  bool good = true;
  for (size_t i = e.grid.cells_in(group); i > 0; --i, cells.next()) {
    T in[Cells<T, D>::kValues], out[Cells<T, D>::kValues];
    cells.gather(e.src.data(), in);
    Lib<T>::decode[D - 1](e.own.lib, out);
    cells.for_values([&](size_t at) {
      const double error = std::fabs(static_cast<double>(in[at]) - static_cast<double>(out[at]));
      good &= accuracy ? error <= bound : std::isfinite(static_cast<double>(out[at]));
    });
  }
  return good;
}

// A group is written to the scratch behind the bits that did not fill a word of 64; then whole
// words go to dst.
template <typename T, int D>
Outcome encode_cells(Encoding* e) {
  State& own = e->own;
  size_t carry = 0;  // bits of the word begun
  for (size_t group = 0; group < e->grid.groups; ++group) {
    stream_rewind(own.bits);
    if (carry > 0) stream_write_bits(own.bits, own.words[0], carry);
    Cells<T, D> cells(e->grid, group * e->grid.group_cells());
    for (size_t i = e->grid.cells_in(group); i > 0; --i, cells.next()) {
      T cell[Cells<T, D>::kValues];
      gather<T, D>(*e, cells, cell);
      Lib<T>::encode[D - 1](own.lib, cell);
    }
    const size_t end = stream_wtell(own.bits);
    stream_flush(own.bits);
    if (e->plan.verify && !within_bound<T, D>(*e, group, carry)) return Outcome::kBeyondBound;
    own.lengths[group] = static_cast<uint32_t>(end - carry);
    const size_t full = end / 64 * 8;
    if (full > e->room.size() - e->size) return Outcome::kFull;
    std::memcpy(e->room.data() + e->size, own.words, full);
    e->size += full;
    carry = end % 64;
    // libzfp's words may be smaller than 64 bits: beyond its last one stand older bits.
    if (carry > 0) own.words[0] = own.words[end / 64] & ((uint64_t{1} << carry) - 1);
  }
  if (carry == 0) return Outcome::kDone;
  if (e->room.size() - e->size < 8) return Outcome::kFull;
  std::memcpy(e->room.data() + e->size, own.words, 8);
  e->size += 8;
  return Outcome::kDone;
}

Status encode_as(const Plan& plan, State* own, const Args& args, const Grid& grid, ConstBytes src,
                 Bytes dst, size_t* written, Outcome* outcome) {
  if (dst.size() < Head::kSize) return does_not_fit(src, dst);
  Encoding e = {*own, args, grid, plan, src, dst.subspan(Head::kSize)};
  set_mode(own->lib, args, grid, plan.reversible);
  *outcome = dispatch(args, grid, [&]<typename T, int D>() { return encode_cells<T, D>(&e); });
  if (*outcome == Outcome::kBeyondBound) return {};
  if (*outcome == Outcome::kFull) return does_not_fit(src, dst);
  return end_payload(grid, own->lengths, plan.reversible, src, dst, e.size, written);
}

Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  State& own = *static_cast<State*>(state);
  const Grid grid = grid_of(args, src.size());
  if (own.lengths.size() < grid.groups) {
    try {
      own.lengths.resize(grid.groups);
    } catch (const std::bad_alloc&) {
      return fail(Code::kNoMemory, "zfp: no memory for an index of %zu groups", grid.groups);
    }
  }
  const DefaultFloats floats;
  Plan plan =
      dispatch(args, grid, [&]<typename T, int D>() { return plan_of<T>(args, grid, src); });
  Outcome outcome;
  WPR_TRY(encode_as(plan, &own, args, grid, src, dst, written, &outcome));
  if (outcome != Outcome::kBeyondBound) return {};
  plan = {.reversible = true};
  return encode_as(plan, &own, args, grid, src, dst, written, &outcome);
}

}  // namespace

bool zfp::plain_cells(void* state, const Args& args, const Grid& grid, ConstBytes src,
                      float* cells) {
  State& own = *static_cast<State*>(state);
  const DefaultFloats floats;
  const Plan plan =
      by_dims<float>(grid.dims, [&]<typename T, int D>() { return plan_of<T>(args, grid, src); });
  if (plan.reversible || plan.verify) return false;
  set_mode(own.lib, args, grid, false);
  const Encoding e = {own, args, grid, plan, src, {}};
  by_dims<float>(grid.dims, [&]<typename T, int D>() {
    Cells<T, D> at(grid, 0);
    for (size_t i = 0; i < grid.cells; ++i, at.next())
      gather<T, D>(e, at, cells + i * Cells<T, D>::kValues);
  });
  return true;
}

void zfp::put_cells(const Grid& grid, const float* cells, Bytes dst) {
  by_dims<float>(grid.dims, [&]<typename T, int D>() {
    Cells<T, D> at(grid, 0);
    for (size_t i = 0; i < grid.cells; ++i, at.next())
      at.scatter(cells + i * Cells<T, D>::kValues, dst.data());
  });
}

namespace {

// ---- decoder ------------------------------------------------------------------------------------

struct Decoding {
  State& own;
  const Args& args;
  const Grid& grid;
  const Payload& payload;
  Bytes dst;
};

// Copies bits begin..end of the stream to the scratch, bit begin % 64 first, and zeros behind them
// for a cell that reads too much.
void load(const Decoding& d, uint64_t begin, uint64_t end) {
  constexpr size_t kPad = (ZFP_MAX_BITS + 63) / 64;
  const size_t first = begin / 64;
  const size_t words = (end + 63) / 64 - first;
  std::memcpy(d.own.words, d.payload.stream().data() + 8 * first, 8 * words);
  std::memset(d.own.words + words, 0, 8 * kPad);
  stream_rseek(d.own.bits, begin % 64);
}

template <typename T, int D>
Status decode_groups(const Decoding& d, size_t first, size_t last) {
  const size_t most = d.grid.group_cells() * most_cell_bits(d.args, d.grid);
  const uint64_t size = 8 * uint64_t{d.payload.stream().size()};
  uint64_t begin = d.payload.begin(first);
  Cells<T, D> cells(d.grid, first * d.grid.group_cells());
  for (size_t group = first; group < last; ++group) {
    const bool ends = group + 1 == d.grid.groups;
    if (begin > size) return fail(Code::kCorrupt, "zfp: group %zu begins behind the stream", group);
    const uint64_t length = ends ? size - begin : d.payload.length(group);
    if (length > most + (ends ? 63 : 0) || length > size - begin)
      return fail(Code::kCorrupt, "zfp: group %zu of %llu bits, at most %zu, %llu are left", group,
                  static_cast<unsigned long long>(length), most,
                  static_cast<unsigned long long>(size - begin));
    load(d, begin, begin + length);
    uint64_t used = 0;
    for (size_t i = d.grid.cells_in(group); i > 0 && used <= length; --i, cells.next()) {
      T cell[Cells<T, D>::kValues];
      used += Lib<T>::decode[D - 1](d.own.lib, cell);
      cells.scatter(cell, d.dst.data());
    }
    const bool good = ends ? used <= length && length - used < 64 : used == length;
    if (!good)
      return fail(Code::kCorrupt, "zfp: group %zu has %llu bits, not %llu", group,
                  static_cast<unsigned long long>(used), static_cast<unsigned long long>(length));
    if (ends && length > used && stream_read_bits(d.own.bits, length - used) != 0)
      return fail(Code::kCorrupt, "zfp: bits behind the last group");
    begin += length;
  }
  return {};
}

// Parts are runs of whole groups: enough values to be worth a thread's while, and few of them,
// since each part sums up the index before it.
size_t groups_per_part(const Grid& grid) {
  constexpr size_t kLeastGroups = 8;
  constexpr size_t kMostParts = 64;
  return std::max(kLeastGroups, (grid.groups + kMostParts - 1) / kMostParts);
}

Status decode_run(void* state, const Args& args, const Grid& grid, ConstBytes src, size_t first,
                  size_t last, Bytes dst) {
  Payload payload;
  WPR_TRY(payload.open(args, grid, src));
  State& own = *static_cast<State*>(state);
  const DefaultFloats floats;
  set_mode(own.lib, args, grid, payload.reversible());
  const Decoding decoding = {own, args, grid, payload, dst};
  WPR_TRY(dispatch(
      args, grid, [&]<typename T, int D>() { return decode_groups<T, D>(decoding, first, last); }));
  if (last == grid.groups && grid.tail > 0)
    std::memcpy(dst.data() + dst.size() - grid.tail, payload.tail().data(), grid.tail);
  return {};
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Grid grid = grid_of(args, dst.size());
  WPR_TRY(decode_run(state, args, grid, src, 0, grid.groups, dst));
  *written = dst.size();
  return {};
}

size_t parts(const Args& args, ConstBytes, size_t raw_size) noexcept {
  const Grid grid = grid_of(args, raw_size);
  const size_t each = groups_per_part(grid);
  return std::max<size_t>(1, (grid.groups + each - 1) / each);
}

Status decode_part(void* state, const Args& args, ConstBytes src, size_t part, Bytes dst) noexcept {
  const Grid grid = grid_of(args, dst.size());
  const size_t each = groups_per_part(grid);
  return decode_run(state, args, grid, src, part * each, std::min(grid.groups, (part + 1) * each),
                    dst);
}

}  // namespace

extern const Kernel zfp_libzfp;
const Kernel zfp_libzfp = {
    .engine = "cpu",
    .variant = "libzfp",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
    .parts = parts,
    .decode_part = decode_part,
};

}  // namespace wirepress
