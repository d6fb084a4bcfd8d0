// SPDX-License-Identifier: Apache-2.0
// What the codec and its kernels share: modes, how a block of raw bytes is a grid of cells, the
// payload's pieces and the index of the stream (spec.md). Everything is `static`: see
// codecs/README.md, Rules. Long because all of it is what one block is for every kernel.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress::zfp {

enum ParamIndex { kAccuracyParam, kRateParam, kPrecisionParam };
enum class Mode { kReversible, kAccuracy, kRate, kPrecision };

[[maybe_unused]] static Mode mode_of(const Args& args) {
  if (args.value[kAccuracyParam] != 0) return Mode::kAccuracy;
  if (args.value[kRateParam] != 0) return Mode::kRate;
  return args.value[kPrecisionParam] != 0 ? Mode::kPrecision : Mode::kReversible;
}

// What zfp's code depends on of an element type.
struct Type {
  size_t size;             // bytes
  unsigned bits;           // planes of a coefficient
  unsigned exponent_bits;  // 0: an integer
  unsigned planes_bits;    // of the field that says how many planes a reversible cell has
};

[[maybe_unused]] static Type type_of(const Args& args) {
  switch (args.dtype) {
    case DType::kInt32:
      return {4, 32, 0, 5};
    case DType::kInt64:
      return {8, 64, 0, 6};
    case DType::kFloat64:
      return {8, 64, 11, 6};
    default:
      return {4, 32, 8, 5};
  }
}

// 4^d values are a cell; kGroupValues values' worth of cells, which may be padded, are a group.
constexpr size_t kGroupValues = 1024;

// A block of raw bytes as an array: the extents, x (the last of Args::shape) first, 1 where unused.
struct Grid {
  int dims = 1;
  std::array<size_t, kMaxDims> n = {1, 1, 1, 1};
  std::array<size_t, kMaxDims> cells_of = {1, 1, 1, 1};
  size_t values = 0;
  size_t tail = 0;  // bytes after the last whole value
  size_t cells = 0;
  size_t groups = 0;

  size_t cell_values() const { return size_t{1} << (2 * dims); }
  size_t group_cells() const { return kGroupValues >> (2 * dims); }
  size_t cells_in(size_t group) const {
    return std::min(group_cells(), cells - group * group_cells());
  }
};

// The extents of a block of `values` values: those of the array, with as many rows as there are.
// False: it is no run of whole rows.
[[maybe_unused]] static bool find_extents(const Args& args, size_t values, Grid* grid) {
  if (args.n_dims == 0) return false;
  size_t row = 1;
  for (int i = 1; i < args.n_dims; ++i) {
    if (args.shape[i] == 0 || args.shape[i] > values / row) return false;
    row *= args.shape[i];
  }
  if (values % row != 0) return false;
  int dims = 0;
  for (int i = args.n_dims - 1; i >= 0; --i) {
    const size_t extent = i > 0 ? args.shape[i] : values / row;
    if (extent != 1) grid->n[dims++] = extent;
  }
  grid->dims = std::max(dims, 1);
  return true;
}

[[maybe_unused]] static Grid grid_of(const Args& args, size_t raw_size) {
  Grid grid;
  const size_t size = type_of(args).size;
  grid.values = raw_size / size;
  grid.tail = raw_size % size;
  if (grid.values == 0) return grid;
  if (grid.tail != 0 || !find_extents(args, grid.values, &grid)) grid.n[0] = grid.values;
  grid.cells = 1;
  for (int i = 0; i < grid.dims; ++i) {
    grid.cells_of[i] = (grid.n[i] + 3) / 4;
    grid.cells *= grid.cells_of[i];
  }
  grid.groups = (grid.cells + grid.group_cells() - 1) / grid.group_cells();
  return grid;
}

// Bits of every cell at `rate` bits a value; as libzfp, and at least 1.
[[maybe_unused]] static unsigned rate_bits(const Args& args, const Grid& grid) {
  const Type type = type_of(args);
  const double cell = static_cast<double>(grid.cell_values());
  const unsigned bits = static_cast<unsigned>(std::floor(cell * args.real(kRateParam) + 0.5));
  return std::max(bits, type.exponent_bits + 1);
}

// The most that a cell can take, in any mode.
[[maybe_unused]] static size_t most_cell_bits(const Args& args, const Grid& grid) {
  const Type type = type_of(args);
  const size_t head = (type.exponent_bits ? type.exponent_bits + 2 : 0) + type.planes_bits;
  const size_t most = head + grid.cell_values() - 1 + grid.cell_values() * type.bits;
  if (mode_of(args) != Mode::kRate) return most;
  return std::max<size_t>(most, rate_bits(args, grid));
}

// ---- what can be coded within the mode ----------------------------------------------------------

// How a block is coded.
struct Plan {
  bool reversible = false;
  bool zero_tiny = false;  // cells of nothing but tiny values are coded as zeros
  bool verify = false;     // decode every cell and look
  // Cells of these size_words are coded as zeros where libzfp breaks the bound.
  uint64_t doubtful_from = 1;
  uint64_t doubtful_to = 0;
};

// libzfp scales cells by a power of two that overflows below 2^-98 or 2^-962.
template <typename T>
constexpr T kTiny = sizeof(T) == 4 ? static_cast<T>(0x1p-98) : static_cast<T>(0x1p-962);
// Errors may carry what is near the largest finite value beyond it.
template <typename T>
constexpr T kHuge = sizeof(T) == 4 ? static_cast<T>(0x1p112) : static_cast<T>(0x1p1008);

// For finite floats of which `most` is the largest magnitude, above 0. tiny: one is below kTiny and
// not 0; such values may be zeros where that is less than `limit`.
template <typename T>
constexpr Plan plan_of_magnitudes(T most, bool tiny, double limit) {
  const bool zero_tiny = tiny && static_cast<double>(kTiny<T>) <= limit;
  return {.reversible = tiny && !zero_tiny, .zero_tiny = zero_tiny, .verify = most >= kHuge<T>};
}
// What counts as nothing beside `most`, where no accuracy is given.
template <typename T>
constexpr double rounding_of(T most) {
  return static_cast<double>(most) * (sizeof(T) == 4 ? 0x1p-24 : 0x1p-53);
}

// Up to this many powers of two between the largest value and the tolerance, libzfp's rounding
// cannot spoil the bound that its truncation keeps.
template <typename T>
constexpr int kExactPlanes = sizeof(T) == 4 ? 19 : 47;

// Cells that are smaller than half the tolerance, but not much: libzfp keeps so few planes of them
// that decoded numbers can wrap around. They may as well be zeros. Whether there are any, at least
// `from` and below `to`.
template <typename T>
[[maybe_unused]] static bool find_doubtful(double tolerance, T* from, T* to) {
  const int exponent = std::ilogb(tolerance) - 1;
  if (exponent >= std::numeric_limits<T>::max_exponent) return false;
  *to = std::ldexp(T{1}, exponent);
  *from = *to / 2;
  return true;
}

// Beyond the edge of an array a cell is filled up with the values at these places.
constexpr size_t filled_from(size_t i, size_t extent) {
  return i < extent ? i : i == 3 ? 0 : extent - 1;
}

// ---- the index of the stream --------------------------------------------------------------------

// Bits 0-19: the least bits of a group; 20-24: bits of an entry; 31: the stream is reversible.
struct Head {
  uint32_t least = 0;
  unsigned width = 0;
  bool reversible = false;

  static constexpr size_t kSize = 4;
  static constexpr unsigned kLeastBits = 20;
  static constexpr unsigned kMostWidth = 17;  // a group has at most 71,168 bits

  uint32_t word() const {
    return least | width << kLeastBits | static_cast<uint32_t>(reversible) << 31;
  }
};

// An entry for every group but the last, whose end is the stream's.
[[maybe_unused]] static size_t index_size(size_t groups, unsigned width) {
  return groups == 0 ? 0 : ((groups - 1) * width + 7) / 8;
}

[[maybe_unused]] static Head head_of(const std::vector<uint32_t>& lengths, size_t groups,
                                     bool reversible) {
  Head head = {.reversible = reversible};
  if (groups < 2) return head;
  const auto [least, most] =
      std::minmax_element(lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(groups - 1));
  head.least = *least;
  head.width = static_cast<unsigned>(std::bit_width(*most - *least));
  return head;
}

// Entries of head.width bits, the first in the lowest bits.
[[maybe_unused]] static void put_index(const std::vector<uint32_t>& lengths, size_t groups,
                                       const Head& head, std::byte* out) {
  uint64_t buffer = 0;
  unsigned filled = 0;
  for (size_t group = 0; group + 1 < groups; ++group) {
    buffer |= uint64_t{lengths[group] - head.least} << filled;
    for (filled += head.width; filled >= 8; filled -= 8, buffer >>= 8)
      *out++ = static_cast<std::byte>(buffer);
  }
  if (filled > 0) *out = static_cast<std::byte>(buffer);
}

[[maybe_unused]] static Status does_not_fit(ConstBytes src, Bytes dst) {
  return fail(Code::kDstTooSmall, "zfp: the code of %zu bytes does not fit %zu", src.size(),
              dst.size());
}

// Puts the head in front of a stream of `size` bytes, which stands in dst behind its place, and
// last bytes and index behind it.
[[maybe_unused]] static Status end_payload(const Grid& grid, const std::vector<uint32_t>& lengths,
                                           bool reversible, ConstBytes src, Bytes dst, size_t size,
                                           size_t* written) {
  const Head head = head_of(lengths, grid.groups, reversible);
  const size_t index = index_size(grid.groups, head.width);
  if (dst.size() - Head::kSize - size < grid.tail + index) return does_not_fit(src, dst);
  const uint32_t word = head.word();
  std::memcpy(dst.data(), &word, sizeof(word));
  std::byte* out = dst.data() + Head::kSize + size;
  if (grid.tail > 0) std::memcpy(out, src.data() + src.size() - grid.tail, grid.tail);
  put_index(lengths, grid.groups, head, out + grid.tail);
  *written = Head::kSize + size + grid.tail + index;
  return {};
}

// A payload cut in its pieces. Offsets are bits of the stream.
class Payload {
 public:
  Status open(const Args& args, const Grid& grid, ConstBytes src) {
    grid_ = &grid;
    const size_t ends = grid.tail + Head::kSize;
    if (src.size() < ends)
      return fail(Code::kCorrupt, "zfp: %zu bytes, at least %zu are needed", src.size(), ends);
    uint32_t word;
    std::memcpy(&word, src.data(), sizeof(word));
    head_ = {.least = word & ((1u << Head::kLeastBits) - 1),
             .width = word >> Head::kLeastBits & 31,
             .reversible = word >> 31 != 0};
    const bool no_entries = grid.groups < 2 && (head_.least != 0 || head_.width != 0);
    const bool lossless = mode_of(args) == Mode::kReversible && !head_.reversible;
    if (head_.word() != word || head_.width > Head::kMostWidth || no_entries || lossless)
      return fail(Code::kCorrupt, "zfp: head 0x%08X for %zu groups", word, grid.groups);
    const size_t index = index_size(grid.groups, head_.width);
    if (src.size() - ends < index || (src.size() - ends - index) % 8 != 0)
      return fail(Code::kCorrupt, "zfp: %zu bytes cannot hold an index of %zu", src.size(), index);
    stream_ = src.subspan(Head::kSize, src.size() - ends - index);
    tail_ = src.subspan(Head::kSize + stream_.size(), grid.tail);
    index_ = src.last(index);
    const size_t used = grid.groups < 2 ? 0 : (grid.groups - 1) * head_.width;
    if (used % 8 != 0 && std::to_integer<unsigned>(index_.back()) >> used % 8 != 0)
      return fail(Code::kCorrupt, "zfp: bits behind the index");
    if (grid.groups == 0 && !stream_.empty())
      return fail(Code::kCorrupt, "zfp: a stream of %zu bytes for no value", stream_.size());
    return {};
  }

  ConstBytes stream() const { return stream_; }
  ConstBytes tail() const { return tail_; }
  bool reversible() const { return head_.reversible; }

  // Bits of a group but the last.
  uint64_t length(size_t group) const {
    const size_t at = group * head_.width;
    uint64_t bits = 0;  // 17 bits lie in at most 4 bytes
    const size_t n = std::min<size_t>(4, index_.size() - at / 8);
    if (n > 0) std::memcpy(&bits, index_.data() + at / 8, n);
    return head_.least + (bits >> at % 8 & ((1u << head_.width) - 1));
  }

  uint64_t begin(size_t group) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < group; ++i) sum += length(i);
    return sum;
  }

 private:
  const Grid* grid_ = nullptr;
  Head head_;
  ConstBytes stream_, tail_, index_;
};

// ---- for kernels that take and give cells -------------------------------------------------------

// The cells of a block of float32, filled up at the edges, one behind the other; those that are
// coded as zeros are zeros. `state` is the kernel libzfp's. False: the block is coded reversibly,
// or it must first be seen what its code decodes to; that is libzfp's.
bool plain_cells(void* state, const Args& args, const Grid& grid, ConstBytes src, float* cells);

// The inverse: values of cells to their places in a block of float32.
void put_cells(const Grid& grid, const float* cells, Bytes dst);

}  // namespace wirepress::zfp
