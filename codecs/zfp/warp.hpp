// SPDX-License-Identifier: Apache-2.0
// zfp on a GPU: float32 at a rate, in one to three dimensions, a cell a lane. All cells have the
// same bits, so that each lane knows where its own are. What else there is goes to libzfp: other
// modes and types, and blocks that are coded reversibly or must be looked at. Long because both
// ways share where cells stand, and libzfp's kernel stands behind both.
#pragma once

#include <new>

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
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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

template <int D>
struct EncodeCells {
  static constexpr unsigned kWarps = 4;
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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
          put_planes<D>(c, grid.bits - kCellHead, out);
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
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
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
            take_planes<D>(grid.bits - kCellHead, in, c);
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

// For cuda::KernelOf; of blocks that it covers.
class Warps {
 public:
  static constexpr const char* kName = "zfp";
  static constexpr bool kGradients = false;

  static bool covers(const Args& args, size_t raw_size) {
    const Type type = type_of(args);
    const Grid grid = grid_of(args, raw_size);
    return type.size == 4 && type.exponent_bits != 0 && mode_of(args) == Mode::kRate &&
           grid.cells > 0 && grid.dims <= 3;
  }
  static size_t code_size(const Args& args, size_t raw_size) {
    return Lattice(args, raw_size).code_size();
  }

  static Status check_encode(const Args& args, size_t size, size_t room) {
    if (code_size(args, size) <= room) return {};
    return fail(Code::kDstTooSmall, "zfp: the code of %zu bytes does not fit %zu", size, room);
  }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args&, size_t) { return sizeof(Sizes); }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const Lattice lattice(args, task.raw_size);
    WPR_TRY(device.clear(task.code + Head::kSize, lattice.stream_size()));
    WPR_TRY(device.launch(Begin{task, lattice}, 1));
    const uint64_t turns = (lattice.values + 511) / 512;
    WPR_TRY(device.launch(Measure{task, lattice.values}, std::min<uint64_t>(turns, 1024)));
    return by_dims(args, task.raw_size, [&]<int kDims>() {
      return device.launch(EncodeCells<kDims>{task, lattice}, blocks_of(lattice));
    });
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    const Lattice lattice(args, task.raw_size);
    return by_dims(args, task.raw_size, [&]<int kDims>() {
      return device.launch(DecodeCells<kDims>{task, lattice}, blocks_of(lattice));
    });
  }

 private:
  static uint64_t blocks_of(const Lattice& lattice) { return (lattice.cells + 127) / 128; }
  template <class Function>
  static Status by_dims(const Args& args, size_t raw_size, Function function) {
    switch (grid_of(args, raw_size).dims) {
      case 1:
        return function.template operator()<1>();
      case 2:
        return function.template operator()<2>();
      default:
        return function.template operator()<3>();
    }
  }
};

}  // namespace wirepress::zfp

namespace wirepress {

extern const Kernel zfp_libzfp;

namespace zfp {

// The kernel on a Device, and libzfp's for what it does not cover.
template <class Device>
class OnDevice {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cuda",
            .variant = variant,
            .usable = usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode,
            .current_device = Device::current,
            .on_stream = &kOnStream};
  }

 private:
  using Own = cuda::KernelOf<Warps, Device>;
  static constexpr Kernel kOwn = Own::kernel("", nullptr);

  // On a stream, what the kernel covers alone.
  static Status check_encode(const Args& args, size_t raw_size, size_t room) noexcept {
    const bool own =
        Warps::covers(args, raw_size) && Warps::check_encode(args, raw_size, room).ok();
    return own ? Status() : elsewhere();
  }
  static Status check_decode(const Args& args, size_t code_size, size_t raw_size) noexcept {
    const bool own = Warps::covers(args, raw_size) && code_size == Warps::code_size(args, raw_size);
    return own ? Status() : elsewhere();
  }
  static constexpr StreamKernel on_stream() {
    StreamKernel table = cuda::OnStream<Warps, typename Device::Queue>::kTable;
    table.check_encode = check_encode;
    table.check_decode = check_decode;
    return table;
  }
  static constexpr StreamKernel kOnStream = on_stream();
  struct State {
    void* portable = nullptr;
    void* own = nullptr;
  };

  static Status open(const Args& args, void** state) noexcept {
    auto* const made = new (std::nothrow) State;
    if (made == nullptr) return fail(Code::kNoMemory, "zfp: no memory for a state");
    Status status = zfp_libzfp.open(args, &made->portable);
    if (status.ok()) status = kOwn.open(args, &made->own);
    if (!status.ok()) return close(made), status;
    *state = made;
    return {};
  }
  static void close(void* state) noexcept {
    auto* const all = static_cast<State*>(state);
    if (all->own != nullptr) kOwn.close(all->own);
    if (all->portable != nullptr) zfp_libzfp.close(all->portable);
    delete all;
  }
  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    State& all = *static_cast<State*>(state);
    if (Warps::covers(args, src.size())) {
      const Status status = kOwn.encode(all.own, args, src, dst, written);
      if (status.code() != Code::kUnsupported && status.code() != Code::kDstTooSmall) return status;
    }
    if (args.device >= 0) return elsewhere();
    return zfp_libzfp.encode(all.portable, args, src, dst, written);
  }
  // Data in memory of a device are not libzfp's to touch: the pipeline copies them.
  static Status elsewhere() {
    return fail(Code::kUnsupported, "zfp: no kernel for GPUs codes these data");
  }
  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    State& all = *static_cast<State*>(state);
    if (Warps::covers(args, dst.size()) && src.size() == Warps::code_size(args, dst.size())) {
      const Status status = kOwn.decode(all.own, args, src, dst, written);
      if (status.code() != Code::kUnsupported) return status;
    }
    if (args.device >= 0) return elsewhere();
    return zfp_libzfp.decode(all.portable, args, src, dst, written);
  }
};

}  // namespace zfp
}  // namespace wirepress
