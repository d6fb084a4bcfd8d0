// SPDX-License-Identifier: Apache-2.0
// Cells at a rate: all have the same bits, so that each lane knows where its own are.
#pragma once

#include "codecs/zfp/warp_cells.hpp"

namespace wirepress::zfp {

template <int D>
struct EncodeCells {
  static constexpr unsigned kWarps = 4;
  cuda::Task task;
  Lattice lattice;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const Sizes sizes = *reinterpret_cast<const Sizes*>(task.scratch);
    const uint32_t largest = static_cast<uint32_t>(~sizes.not_most);
    const float most = std::bit_cast<float>(largest);
    const bool finite = largest < kFloatInfinity;
    const bool any = largest > 0;
    const Plan plan = any && finite
                          ? plan_of_magnitudes<float>(most, sizes.least < tiny(), rounding_of(most))
                          : Plan{};
    if (!finite || plan.reversible || plan.verify) return leave(w, task.report);
    if (!any) return;  // the stream was cleared
    const uint32_t floor = plan.zero_tiny ? tiny() : 1;
    const std::byte* const raw = task.raw;
    std::byte* const stream = task.code + Head::kSize;
    const uint64_t first = (w.block() * kWarps + w.warp()) * cuda::kLanes;
    const Lattice& grid = lattice;
    w.each(
        [&, floor](uint32_t lane) {
          const uint64_t cell = first + lane;
          if (cell >= grid.cells) return;
          constexpr uint32_t kValues = 1u << (2 * D);
          const At<D> at(grid, cell);
          float x[kValues];
          uint32_t size = 0;
          WPR_UNROLL
          for (uint32_t i = 0; i < kValues; ++i) {
            x[i] = cuda::get<float>(raw + 4 * at.place(grid, i));
            const uint32_t own = std::bit_cast<uint32_t>(x[i]) & ~kFloatSign;
            size = size > own ? size : own;
          }
          if (size < floor) return;
          const int exponent = exponent_above(size);
          uint32_t c[kValues];
          coefficients_of<D>(x, exponent, c);
          cuda::LaneBits<W> out(stream, cell * grid.bits);
          out.put(1 | static_cast<uint32_t>(exponent + kBias) << 1, kCellHead);
          put_planes<D>(c, kPlanes, grid.bits - kCellHead, out);
          out.finish();
        },
        w.lane());
  }

 private:
  static constexpr uint32_t tiny() { return std::bit_cast<uint32_t>(kTiny<float>); }
};

// Bits from any bit of words on, which are read when they are needed.
class LaneReader {
 public:
  WPR_ON_DEVICE LaneReader(const std::byte* words, uint64_t at)
      : next_(words + at / 32 * 4), skip_(static_cast<uint32_t>(at % 32)) {}
  // n <= 64.
  WPR_ON_DEVICE uint64_t take(uint32_t n) {
    if (n <= 32) return take32(n);
    const uint64_t low = take32(32);
    return low | uint64_t{take32(n - 32)} << 32;
  }

 private:
  WPR_ON_DEVICE uint32_t take32(uint32_t n) {
    if (n > filled_) {
      buffer_ |= uint64_t{cuda::get<uint32_t>(next_)} >> skip_ << filled_;
      filled_ += 32 - skip_;
      next_ += 4;
      skip_ = 0;
      if (n > filled_) {
        buffer_ |= uint64_t{cuda::get<uint32_t>(next_)} << filled_;
        filled_ += 32;
        next_ += 4;
      }
    }
    const uint32_t bits = static_cast<uint32_t>(buffer_ & ((uint64_t{1} << n) - 1));
    buffer_ >>= n;
    filled_ -= n;
    return bits;
  }
  const std::byte* next_;
  uint64_t buffer_ = 0;
  uint32_t skip_, filled_ = 0;
};

template <int D>
struct DecodeCells {
  static constexpr unsigned kWarps = 4;
  cuda::Task task;
  Lattice lattice;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const std::byte* const stream = task.code + Head::kSize;
    const uint64_t used = lattice.cells * lattice.bits % 64;
    const std::byte* const last = stream + lattice.stream_size() - 8;  // a word at multiples of 4
    const uint64_t end = cuda::get<uint32_t>(last) | uint64_t{cuda::get<uint32_t>(last + 4)} << 32;
    const cuda::Task own = task;
    if (cuda::get<uint32_t>(task.code) != lattice.head || (used != 0 && end >> used != 0))
      return leave(w, own.report);
    const uint64_t first = (w.block() * kWarps + w.warp()) * cuda::kLanes;
    const Lattice& grid = lattice;
    w.each(
        [&](uint32_t lane) {
          const uint64_t cell = first + lane;
          if (cell == 0)
            for (uint32_t i = 0; i < grid.tail; ++i)
              own.raw[own.raw_size - grid.tail + i] = own.code[own.code_size - grid.tail + i];
          if (cell >= grid.cells) return;
          constexpr uint32_t kValues = 1u << (2 * D);
          LaneReader in(stream, cell * grid.bits);
          float x[kValues];
          if (in.take(1) == 0) {
            WPR_UNROLL
            for (uint32_t i = 0; i < kValues; ++i) x[i] = 0;
          } else {
            const int exponent = static_cast<int>(in.take(8)) - kBias;
            uint32_t c[kValues];
            take_planes<D>(kPlanes, grid.bits - kCellHead, in, c);
            values_of<D>(c, exponent, x);
          }
          const At<D> at(grid, cell);
          WPR_UNROLL
          for (uint32_t i = 0; i < kValues; ++i)
            if (at.inside(i)) cuda::put(own.raw + 4 * at.place(grid, i), x[i]);
        },
        w.lane());
  }
};

}  // namespace wirepress::zfp
