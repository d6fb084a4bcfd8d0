// SPDX-License-Identifier: Apache-2.0
// Cells within an accuracy or at a precision, whose bits follow from the data. Encoding: a lane
// counts the bits of its cell and, when its warp knows where those begin, puts them there.
// Decoding: the index says where groups of cells begin, and a lane has a group. Long because one
// stream is written and read.
#pragma once

#include "codecs/zfp/warp_cells.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::zfp {

// How many planes a cell keeps, and within what.
struct Bound {
  bool accuracy;
  int least_exponent;  // of the accuracy
  uint32_t precision;
  double tolerance;
  uint32_t doubtful_from, doubtful_to;  // magnitudes (find_doubtful)

  explicit Bound(const Args& args)
      : accuracy(mode_of(args) == Mode::kAccuracy),
        least_exponent(0),
        precision(static_cast<uint32_t>(std::min<int>(args.value[kPrecisionParam], kPlanes))),
        tolerance(args.real(kAccuracyParam)),
        doubtful_from(1),
        doubtful_to(0) {
    if (!accuracy) return;
    least_exponent = std::ilogb(tolerance);
    float from = 0, to = 0;
    if (!find_doubtful<float>(tolerance, &from, &to)) return;
    doubtful_from = std::max(1u, std::bit_cast<uint32_t>(from));
    doubtful_to = std::bit_cast<uint32_t>(to);
  }
  template <int D>
  constexpr uint32_t planes(int exponent) const {
    if (!accuracy) return precision;
    const int wanted = exponent - least_exponent + 2 * (D + 1);
    return wanted < 0                           ? 0
           : wanted > static_cast<int>(kPlanes) ? kPlanes
                                                : static_cast<uint32_t>(wanted);
  }
  // Of a block with these magnitudes; reversible, too, where one is not finite.
  constexpr Plan plan(const Sizes& sizes) const {
    const uint32_t most = static_cast<uint32_t>(~sizes.not_most);
    if (most >= kFloatInfinity) return {.reversible = true};
    if (most == 0) return {};
    const float value = std::bit_cast<float>(most);
    Plan plan = plan_of_magnitudes<float>(value, sizes.least < tiny(),
                                          accuracy ? tolerance : rounding_of(value));
    const int exponent = most >> 23 != 0 ? static_cast<int>(most >> 23) - kBias
                                         : static_cast<int>(std::bit_width(most)) - 150;
    plan.verify |= accuracy && exponent - least_exponent > kExactPlanes<float>;
    return plan;
  }
  // Cells whose magnitudes are below it are zeros.
  static constexpr uint32_t floor(const Plan& plan) { return plan.zero_tiny ? tiny() : 1; }

 private:
  static constexpr uint32_t tiny() { return std::bit_cast<uint32_t>(kTiny<float>); }
};

// Scratch memory: what is known of a block, places of warps, and where groups begin.
struct Varied {
  Lattice lattice;
  uint64_t groups, warps;  // of cells, or in decoding of groups
  uint32_t group_cells, tail, most_bits;

  struct Told {
    Sizes sizes;
    uint64_t least, not_most;  // bits of a group but the last
    uint64_t bits;             // of all
  };

  Varied(const Args& args, size_t raw_size, bool decodes) : lattice(args, raw_size) {
    const Grid grid = grid_of(args, raw_size);
    groups = grid.groups;
    group_cells = static_cast<uint32_t>(grid.group_cells());
    tail = static_cast<uint32_t>(grid.tail);
    most_bits = static_cast<uint32_t>(most_cell_bits(args, grid));
    warps = ((decodes ? groups : grid.cells) + cuda::kLanes - 1) / cuda::kLanes;
  }
  size_t scratch() const { return zeros_at() + 4 * warps; }

  WPR_ON_DEVICE Told* told(const cuda::Task& task) const {
    return reinterpret_cast<Told*>(task.scratch);
  }
  WPR_ON_DEVICE cuda::Places places(const cuda::Task& task) const {
    return cuda::Places(task.scratch + sizeof(Told));
  }
  WPR_ON_DEVICE uint64_t* begins(const cuda::Task& task) const {
    return reinterpret_cast<uint64_t*>(task.scratch + groups_at());
  }
  // Of a warp's cells, those that are coded as zeros.
  WPR_ON_DEVICE std::byte* zeros(const cuda::Task& task, uint64_t warp) const {
    return task.scratch + zeros_at() + 4 * warp;
  }
  static constexpr uint64_t stream_size(uint64_t bits) { return (bits + 63) / 64 * 8; }
  constexpr uint64_t index_size(uint32_t width) const {
    return groups == 0 ? 0 : ((groups - 1) * width + 7) / 8;
  }

 private:
  constexpr size_t groups_at() const { return sizeof(Told) + cuda::Places::size(warps); }
  constexpr size_t zeros_at() const { return groups_at() + 8 * groups; }
};

// ---- encoder --------------------------------------------------------------------------------

struct BeginVaried {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;
  Varied varied;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Varied::Told* const told = varied.told(task);
    constexpr uint64_t kNone = ~uint64_t{0};
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) *told = {{kNone, kNone}, kNone, kNone, 0};
        },
        w.lane());
  }
};

// A lane's cell, filled up at the edges; its largest magnitude.
template <int D>
WPR_ON_DEVICE uint32_t load_cell(const std::byte* raw, const Lattice& lattice, const At<D>& at,
                                 float (&x)[1 << (2 * D)]) {
  uint32_t size = 0;
  WPR_UNROLL
  for (uint32_t i = 0; i < 1u << (2 * D); ++i) {
    x[i] = cuda::get<float>(raw + 4 * at.place(lattice, i));
    const uint32_t own = std::bit_cast<uint32_t>(x[i]) & ~kFloatSign;
    size = size > own ? size : own;
  }
  return size;
}

// Cells that libzfp would bring back beyond the bound: doubtful ones become zeros, others make the
// block reversible.
template <int D>
struct JudgeCells {
  static constexpr unsigned kWarps = 4;
  static constexpr uint32_t kValues = 1u << (2 * D);
  cuda::Task task;
  Varied varied;
  Bound bound;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Plan plan = bound.plan(varied.told(task)->sizes);
    const uint64_t warp = w.block() * kWarps + w.warp();
    if (plan.reversible) return leave(w, task.report);
    if (warp >= varied.warps) return;
    enum : uint32_t { kZero = 1, kBad = 2 };
    const auto said = w.map(
        [&](uint32_t lane) {
          const uint64_t cell = warp * cuda::kLanes + lane;
          if (cell >= varied.lattice.cells) return uint32_t{0};
          const At<D> at(varied.lattice, cell);
          float x[kValues];
          const uint32_t size = load_cell<D>(task.raw, varied.lattice, at, x);
          const bool doubtful = size >= bound.doubtful_from && size < bound.doubtful_to;
          const int exponent = exponent_above(size);
          const uint32_t planes = bound.planes<D>(exponent);
          if (size < Bound::floor(plan) || planes == 0 || !(doubtful || plan.verify))
            return uint32_t{0};
          bool breaks = false, good = true;
          compare(at, x, exponent, planes, &breaks, &good);
          if (doubtful && breaks) return uint32_t{kZero};
          return good || !plan.verify ? 0 : uint32_t{kBad};
        },
        w.lane());
    const uint32_t zeros = w.ballot(w.map([](uint32_t x) { return x == kZero; }, said));
    w.each(
        [&](uint32_t lane) {
          if (lane == 0) cuda::put(varied.zeros(task, warp), zeros);
        },
        w.lane());
    if (w.ballot(w.map([](uint32_t x) { return x == kBad; }, said)) != 0) leave(w, task.report);
  }

 private:
  // What comes back of a cell: whether any of it breaks the bound, and whether its values in the
  // array are what may come back. What they were is read again, as registers are few.
  WPR_ON_DEVICE void compare(const At<D>& at, float (&x)[kValues], int exponent, uint32_t planes,
                             bool* breaks, bool* good) const {
    uint32_t c[kValues];
    coefficients_of<D>(x, exponent, c);
    const uint32_t kept = ~static_cast<uint32_t>(uint64_t{0xFFFFFFFF} >> planes);
    WPR_UNROLL
    for (uint32_t i = 0; i < kValues; ++i) c[i] &= kept;
    values_of<D>(c, exponent, x);
    WPR_UNROLL
    for (uint32_t i = 0; i < kValues; ++i) {
      const float before =  // volatile: or the compiler keeps what was read before
          *reinterpret_cast<const volatile float*>(task.raw + 4 * at.place(varied.lattice, i));
      const double error = static_cast<double>(before) - static_cast<double>(x[i]);
      const bool within = error <= bound.tolerance && error >= -bound.tolerance;
      const bool finite = (std::bit_cast<uint32_t>(x[i]) & ~kFloatSign) < kFloatInfinity;
      *breaks |= !within;
      *good &= !at.inside(i) || (bound.accuracy ? within : finite);
    }
  }
};

struct CountBits {
  uint32_t n = 0;
  WPR_ON_DEVICE void put(uint64_t, uint32_t size) { n += size; }
};

template <int D>
struct PutVaried {
  static constexpr unsigned kWarps = 1, kLeastBlocks = 1;
  cuda::Task task;
  Varied varied;
  Bound bound;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (task.report->elsewhere != 0) return;
    const uint32_t floor = Bound::floor(bound.plan(varied.told(task)->sizes));
    const cuda::Places places = varied.places(task);
    const uint64_t number = places.next(w), first = number * cuda::kLanes;
    const uint32_t zeros = cuda::get<uint32_t>(varied.zeros(task, number));
    const auto bits = w.map(
        [&](uint32_t lane) {
          CountBits out;
          if (first + lane < varied.lattice.cells)
            put_cell(first + lane, (zeros >> lane & 1) != 0, floor, out);
          return out.n;
        },
        w.lane());
    uint32_t all = 0;
    const auto in_warp = cuda::sums_before(w, bits, &all);
    const uint64_t begin = places.before(w, number, all);
    if (Head::kSize + Varied::stream_size(begin + all) > task.code_size) {
      w.each(
          [this](uint32_t lane) {
            if (lane == 0) task.report->full = 1;
          },
          w.lane());
      return;
    }
    std::byte* const stream = task.code + Head::kSize;
    uint64_t* const begins = varied.begins(task);
    w.each(
        [&](uint32_t lane, uint32_t before) {
          const uint64_t cell = first + lane;
          if (lane == 0 && number + 1 == varied.warps) varied.told(task)->bits = begin + all;
          if (cell >= varied.lattice.cells) return;
          if (cell % varied.group_cells == 0) begins[cell / varied.group_cells] = begin + before;
          cuda::LaneBits<W> out(stream, begin + before);
          put_cell(cell, (zeros >> lane & 1) != 0, floor, out);
          out.finish();
        },
        w.lane(), in_warp);
  }

 private:
  template <class Out>
  WPR_ON_DEVICE void put_cell(uint64_t cell, bool zero, uint32_t floor, Out& out) const {
    const At<D> at(varied.lattice, cell);
    float x[1 << (2 * D)];
    const uint32_t size = load_cell<D>(task.raw, varied.lattice, at, x);
    const int exponent = exponent_above(size);
    const uint32_t planes = zero || size < floor ? 0 : bound.planes<D>(exponent);
    if (planes == 0) return out.put(0, 1);
    out.put(1 | static_cast<uint32_t>(exponent + kBias) << 1, kCellHead);
    uint32_t c[1 << (2 * D)];
    coefficients_of<D>(x, exponent, c);
    put_planes<D>(c, planes, kNoBudget, out);
  }
};

// The least and the most bits of a group, and the last bytes.
struct MeasureIndex {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;
  Varied varied;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (task.report->full != 0 || task.report->elsewhere != 0) return;
    Varied::Told* const told = varied.told(task);
    const uint64_t* const begins = varied.begins(task);
    const uint64_t step = w.blocks() * cuda::kLanes, n = varied.groups - 1;
    auto most = w.all(uint32_t{0}), rest = w.all(uint32_t{0});  // rest: complements
    for (uint64_t i = w.block() * cuda::kLanes; i < n; i += step) {
      const auto size = w.map(
          [=](uint32_t lane) {
            return i + lane < n ? static_cast<uint32_t>(begins[i + lane + 1] - begins[i + lane])
                                : 0;
          },
          w.lane());  // of a group, not 0
      most = w.map([](uint32_t a, uint32_t x) { return a > x ? a : x; }, most, size);
      rest = w.map([](uint32_t a, uint32_t x) { return x == 0 || a > ~x ? a : ~x; }, rest, size);
    }
    const uint32_t largest = w.most(most), other = w.most(rest);
    if (largest == 0) return;
    w.at_most(&told->not_most, ~uint64_t{largest});
    w.at_most(&told->least, uint64_t{~other});
  }
};

// Head, last bytes and index: a lane has a byte of it.
struct PutIndex {
  static constexpr unsigned kWarps = 4;
  static constexpr uint64_t kEach = kWarps * cuda::kLanes;
  cuda::Task task;
  Varied varied;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (task.report->full != 0 || task.report->elsewhere != 0) return;
    const Varied::Told& told = *varied.told(task);
    const uint32_t least = varied.groups < 2 ? 0 : static_cast<uint32_t>(told.least);
    const uint32_t most = varied.groups < 2 ? 0 : static_cast<uint32_t>(~told.not_most);
    const uint32_t width = static_cast<uint32_t>(std::bit_width(most - least));
    const uint64_t index = varied.index_size(width);
    const uint64_t tail_at = Head::kSize + Varied::stream_size(told.bits);
    const uint64_t index_at = tail_at + varied.tail, end = index_at + index;
    const bool full = end > task.code_size;
    const uint64_t first = w.block() * kEach + w.warp() * cuda::kLanes;
    const uint64_t* const begins = varied.begins(task);
    w.each(
        [&](uint32_t lane) {
          const uint64_t byte = first + lane;
          if (byte == 0) {
            if (full) task.report->full = 1;
            if (full) return;
            task.report->written = end;
            cuda::put(task.code, least | width << Head::kLeastBits);
            for (uint32_t i = 0; i < varied.tail; ++i)
              task.code[tail_at + i] = task.raw[task.raw_size - varied.tail + i];
          }
          if (full || byte >= index) return;
          uint32_t bits = 0;
          for (uint64_t group = 8 * byte / width; group < varied.groups - 1; ++group) {
            const uint64_t at = group * width;
            if (at >= 8 * byte + 8) break;
            const uint32_t entry = static_cast<uint32_t>(begins[group + 1] - begins[group]) - least;
            bits |= at < 8 * byte ? entry >> (8 * byte - at) : entry << (at - 8 * byte);
          }
          task.code[index_at + byte] = static_cast<std::byte>(bits);
        },
        w.lane());
  }
};

// ---- decoder --------------------------------------------------------------------------------

// A payload's pieces, as Payload has them.
struct Opened {
  uint32_t least = 0, width = 0;
  uint64_t stream_size = 0;
  const std::byte* index = nullptr;
  uint64_t index_size = 0;
  bool good = false;

  WPR_ON_DEVICE Opened(const cuda::Task& task, const Varied& varied) {
    const uint64_t ends = Head::kSize + varied.tail;
    if (task.code_size < ends) return;
    const uint32_t word = cuda::get<uint32_t>(task.code);
    least = word & ((1u << Head::kLeastBits) - 1);
    width = word >> Head::kLeastBits & 31;
    if (word >> (Head::kLeastBits + 5) != 0 || width > Head::kMostWidth) return;
    if (varied.groups < 2 && word != 0) return;
    index_size = varied.index_size(width);
    if (task.code_size - ends < index_size || (task.code_size - ends - index_size) % 8 != 0) return;
    stream_size = task.code_size - ends - index_size;
    index = task.code + ends + stream_size;
    const uint64_t used = varied.groups < 2 ? 0 : (varied.groups - 1) * width;
    good = used % 8 == 0 || static_cast<uint32_t>(index[index_size - 1]) >> used % 8 == 0;
  }
  // Bits of a group but the last.
  WPR_ON_DEVICE uint32_t length(uint64_t group) const {
    const uint64_t at = group * width;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 4 && at / 8 + i < index_size; ++i)
      bits |= static_cast<uint32_t>(index[at / 8 + i]) << 8 * i;
    return least + (bits >> at % 8 & ((1u << width) - 1));
  }
};

struct PlaceGroups {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;
  Varied varied;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Opened opened(task, varied);
    if (!opened.good) return leave(w, task.report);
    const cuda::Places places = varied.places(task);
    const uint64_t number = places.next(w), first = number * cuda::kLanes;
    const auto size = w.map(
        [&](uint32_t lane) {
          return first + lane + 1 < varied.groups ? opened.length(first + lane) : 0;
        },
        w.lane());
    uint32_t all = 0;
    const auto in_warp = cuda::sums_before(w, size, &all);
    const uint64_t begin = places.before(w, number, all);
    uint64_t* const begins = varied.begins(task);
    w.each(
        [&](uint32_t lane, uint32_t before) {
          if (first + lane < varied.groups) begins[first + lane] = begin + before;
        },
        w.lane(), in_warp);
  }
};

// Bits from any bit of a stream on, behind which are zeros.
class BoundedReader {
 public:
  WPR_ON_DEVICE BoundedReader(const std::byte* stream, uint64_t size, uint64_t at)
      : next_(stream + at / 32 * 4), end_(stream + size), used_(0) {
    take32(static_cast<uint32_t>(at % 32));
    used_ = 0;
  }
  WPR_ON_DEVICE uint64_t take(uint32_t n) {  // n <= 64
    if (n <= 32) return take32(n);
    const uint64_t low = take32(32);
    return low | uint64_t{take32(n - 32)} << 32;
  }
  constexpr uint32_t used() const { return used_; }

 private:
  WPR_ON_DEVICE uint32_t take32(uint32_t n) {
    if (n > filled_) {
      const uint32_t word = next_ < end_ ? cuda::get<uint32_t>(next_) : 0;
      buffer_ |= uint64_t{word} << filled_;
      filled_ += 32;
      next_ += 4;
    }
    const uint32_t bits = static_cast<uint32_t>(buffer_ & ((uint64_t{1} << n) - 1));
    buffer_ >>= n;
    filled_ -= n;
    used_ += n;
    return bits;
  }
  const std::byte* next_;
  const std::byte* end_;
  uint64_t buffer_ = 0;
  uint32_t used_, filled_ = 0;
};

// A lane has a group.
template <int D>
struct TakeVaried {
  static constexpr unsigned kWarps = 1;
  static constexpr uint32_t kValues = 1u << (2 * D);
  cuda::Task task;
  Varied varied;
  Bound bound;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Opened opened(task, varied);
    if (!opened.good) return;  // which is known
    const uint64_t first = w.block() * cuda::kLanes;
    const uint32_t bad = w.ballot(w.map(
        [&](uint32_t lane) {
          return first + lane < varied.groups && !take_group(opened, first + lane);
        },
        w.lane()));
    if (bad != 0) leave(w, task.report);
    if (w.block() != 0) return;
    w.each(
        [&](uint32_t lane) {
          if (lane < varied.tail)
            task.raw[task.raw_size - varied.tail + lane] =
                task.code[Head::kSize + opened.stream_size + lane];
        },
        w.lane());
  }

 private:
  // As decode_groups() of libzfp.cpp. False: no encoder wrote it.
  WPR_ON_DEVICE bool take_group(const Opened& opened, uint64_t group) const {
    const bool ends = group + 1 == varied.groups;
    const uint64_t begin = varied.begins(task)[group], size = 8 * opened.stream_size;
    if (begin > size) return false;
    const uint64_t length = ends ? size - begin : opened.length(group);
    const uint64_t most = uint64_t{varied.group_cells} * varied.most_bits + (ends ? 63 : 0);
    if (length > most || length > size - begin) return false;
    BoundedReader in(task.code + Head::kSize, opened.stream_size, begin);
    const uint64_t first = group * varied.group_cells;
    for (uint64_t cell = first; cell < first + varied.group_cells && cell < varied.lattice.cells;
         ++cell) {
      float x[kValues];
      take_cell(in, x);
      if (in.used() > length) return false;
      const At<D> at(varied.lattice, cell);
      WPR_UNROLL
      for (uint32_t i = 0; i < kValues; ++i)
        if (at.inside(i)) cuda::put(task.raw + 4 * at.place(varied.lattice, i), x[i]);
    }
    const uint64_t rest = length - in.used();
    return ends ? rest < 64 && in.take(static_cast<uint32_t>(rest)) == 0 : rest == 0;
  }
  WPR_ON_DEVICE void take_cell(BoundedReader& in, float (&x)[kValues]) const {
    if (in.take(1) == 0) {
      WPR_UNROLL
      for (uint32_t i = 0; i < kValues; ++i) x[i] = 0;
      return;
    }
    const int exponent = static_cast<int>(in.take(8)) - kBias;
    uint32_t c[kValues];
    take_planes<D>(bound.planes<D>(exponent), kNoBudget, in, c);
    values_of<D>(c, exponent, x);
  }
};

}  // namespace wirepress::zfp
