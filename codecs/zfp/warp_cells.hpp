// SPDX-License-Identifier: Apache-2.0
// What zfp's kernels for GPUs share: where cells stand in an array, the magnitudes of a block, bits
// of a stream.
#pragma once

#include "codecs/zfp/cell.hpp"
#include "engines/cuda/bits.hpp"
#include "engines/cuda/kernel.hpp"

namespace wirepress::zfp {

constexpr uint32_t kFloatSign = 0x80000000;
constexpr uint32_t kFloatInfinity = 0x7F800000;

// What kernels know of a block.
struct Lattice {
  uint64_t n[3], cells_of[3], stride[3];
  uint64_t cells, values;
  uint32_t bits;  // of a cell
  uint32_t head, tail;

  Lattice(const Args& args, size_t raw_size) {
    const Grid grid = grid_of(args, raw_size);
    uint64_t step = 1;
    for (int d = 0; d < 3; ++d) {
      n[d] = grid.n[d], cells_of[d] = grid.cells_of[d], stride[d] = step;
      step *= n[d];
    }
    cells = grid.cells, values = grid.values;
    bits = rate_bits(args, grid);
    Head all;
    if (grid.groups > 1) all.least = static_cast<uint32_t>(grid.group_cells() * bits);
    head = all.word();
    tail = static_cast<uint32_t>(grid.tail);
  }
  constexpr uint64_t stream_size() const { return (cells * bits + 63) / 64 * 8; }
  constexpr uint64_t code_size() const { return Head::kSize + stream_size() + tail; }
};

// Where a lane's cell stands in the array.
template <int D>
struct At {
  uint64_t begin;
  uint32_t extent[D];
  WPR_ON_DEVICE At(const Lattice& lattice, uint64_t cell) : begin(0) {
    WPR_UNROLL
    for (int d = 0; d < D; ++d) {
      const uint64_t at = d + 1 < D ? cell % lattice.cells_of[d] : cell;
      if (d + 1 < D) cell /= lattice.cells_of[d];
      const uint64_t left = lattice.n[d] - 4 * at;
      extent[d] = left < 4 ? static_cast<uint32_t>(left) : 4;
      begin += 4 * at * lattice.stride[d];
    }
  }
  // Place i of the cell; one that is beyond the edge stands for one that is not.
  WPR_ON_DEVICE uint64_t place(const Lattice& lattice, uint32_t i) const {
    uint64_t at = begin;
    WPR_UNROLL
    for (int d = 0; d < D; ++d) at += filled_from(i >> (2 * d) & 3, extent[d]) * lattice.stride[d];
    return at;
  }
  WPR_ON_DEVICE bool inside(uint32_t i) const {
    bool all = true;
    WPR_UNROLL
    for (int d = 0; d < D; ++d) all &= (i >> (2 * d) & 3) < extent[d];
    return all;
  }
};

// Scratch memory: complements of the largest magnitude, and the least but 0.
struct Sizes {
  uint64_t not_most, least;
};

// The head and the last bytes; no magnitudes yet.
struct Begin {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;
  Lattice lattice;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const cuda::Task own = task;
    w.each(
        [=, head = lattice.head, tail = lattice.tail, size = lattice.code_size()](uint32_t lane) {
          if (lane == 0) {
            *reinterpret_cast<Sizes*>(own.scratch) = {~uint64_t{0}, ~uint64_t{0}};
            cuda::put(own.code, head);
            own.report->written = size;
          }
          if (lane < tail) own.code[size - tail + lane] = own.raw[own.raw_size - tail + lane];
        },
        w.lane());
  }
};

struct Measure {
  static constexpr unsigned kWarps = 4;
  cuda::Task task;
  uint64_t values;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t step = w.blocks() * kWarps * 128;
    auto most = w.all(uint32_t{0}), rest = w.all(uint32_t{0});  // rest: of what 0 - word is
    for (uint64_t i = (w.block() * kWarps + w.warp()) * 128; i < values; i += step) {
      const auto word =
          w.rows(task.raw + 4 * i, values - i < 128 ? static_cast<uint32_t>(values - i) : 128);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        most =
            w.map([](uint32_t a, uint32_t x) { return larger(a, x & ~kFloatSign); }, most, word[k]);
        rest = w.map([](uint32_t a, uint32_t x) { return larger(a, 0 - (x & ~kFloatSign)); }, rest,
                     word[k]);
      }
    }
    Sizes* const sizes = reinterpret_cast<Sizes*>(task.scratch);
    w.at_most(&sizes->not_most, ~uint64_t{w.most(most)});
    const uint32_t largest = w.most(rest);  // of nothing but zeros: 0
    if (largest != 0) w.at_most(&sizes->least, uint64_t{0 - largest});
  }

 private:
  static constexpr uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
};

// Leaves the block to libzfp.
template <class W>
WPR_ON_DEVICE void leave(W& w, cuda::Report* report) {
  w.each(
      [=](uint32_t lane) {
        if (lane == 0) report->elsewhere = 1;
      },
      w.lane());
}

}  // namespace wirepress::zfp
