// SPDX-License-Identifier: Apache-2.0
// zfp on a GPU: float32 at a rate, within an accuracy or at a precision, in one to three
// dimensions, a cell a lane. What else there is goes to libzfp: other types, reversible blocks,
// damaged codes.
#pragma once

#include <new>

#include "codecs/zfp/warp_rate.hpp"
#include "codecs/zfp/warp_varied.hpp"

namespace wirepress::zfp {

// For cuda::KernelOf; of blocks that it covers.
class Warps {
 public:
  static constexpr const char* kName = "zfp";
  static constexpr bool kGradients = false, kFeedbackInParts = true;

  static bool covers(const Args& args, size_t raw_size) {
    const Type type = type_of(args);
    const Grid grid = grid_of(args, raw_size);
    return type.size == 4 && type.exponent_bits != 0 && mode_of(args) != Mode::kReversible &&
           grid.cells > 0 && grid.dims <= 3;
  }
  // Cells need bits as their values do.
  static bool is_varied(const Args& args) { return mode_of(args) != Mode::kRate; }
  // Of a code that it may read.
  static bool covers_code(const Args& args, size_t code_size, size_t raw_size) {
    if (!covers(args, raw_size)) return false;
    return is_varied(args) || code_size == Lattice(args, raw_size).code_size();
  }

  static Status check_encode(const Args& args, size_t size, size_t room) {
    const size_t least = is_varied(args) ? Head::kSize : Lattice(args, size).code_size();
    if (least <= room) return {};
    return fail(Code::kDstTooSmall, "zfp: the code of %zu bytes does not fit %zu", size, room);
  }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args& args, size_t size) {
    return is_varied(args) && size >= sizeof(float) ? Varied(args, size, false).scratch()
                                                    : sizeof(Sizes);
  }
  static size_t decode_scratch(const Args& args, size_t size) {
    return is_varied(args) && size >= sizeof(float) ? Varied(args, size, true).scratch() : 0;
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const Lattice lattice(args, task.raw_size);
    const uint64_t turns = (lattice.values + 511) / 512;
    const Measure measure = {task, lattice.values};
    const uint64_t measures = std::min<uint64_t>(turns, 1024);
    if (!is_varied(args)) {
      WPR_TRY(device.clear(task.code + Head::kSize, lattice.stream_size()));
      WPR_TRY(device.launch(Begin{task, lattice}, 1));
      WPR_TRY(device.launch(measure, measures));
      return by_dims(args, task.raw_size, [&]<int kDims>() {
        return device.launch(EncodeCells<kDims>{task, lattice}, blocks_of(lattice));
      });
    }
    const Varied varied(args, task.raw_size, false);
    const Bound bound(args);
    WPR_TRY(device.clear(task.code + Head::kSize, task.code_size - Head::kSize));
    WPR_TRY(device.launch(BeginVaried{task, varied}, 1));
    WPR_TRY(device.launch(measure, measures));
    const auto judge = [&]<int kDims>() {
      constexpr unsigned kEach = JudgeCells<kDims>::kWarps;
      return device.launch(JudgeCells<kDims>{task, varied, bound},
                           (varied.warps + kEach - 1) / kEach);
    };
    const auto put = [&]<int kDims>() {
      return device.launch(PutVaried<kDims>{task, varied, bound}, varied.warps);
    };
    WPR_TRY(by_dims(args, task.raw_size, judge));
    WPR_TRY(by_dims(args, task.raw_size, put));
    WPR_TRY(device.launch(MeasureIndex{task, varied},
                          std::min<uint64_t>(varied.groups / (4 * cuda::kLanes) + 1, 1024)));
    const uint64_t index = varied.index_size(Head::kMostWidth);
    return device.launch(PutIndex{task, varied}, index / PutIndex::kEach + 1);
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    const Lattice lattice(args, task.raw_size);
    if (!is_varied(args))
      return by_dims(args, task.raw_size, [&]<int kDims>() {
        return device.launch(DecodeCells<kDims>{task, lattice}, blocks_of(lattice));
      });
    const Varied varied(args, task.raw_size, true);
    const Bound bound(args);
    WPR_TRY(device.launch(PlaceGroups{task, varied}, varied.warps));
    return by_dims(args, task.raw_size, [&]<int kDims>() {
      return device.launch(TakeVaried<kDims>{task, varied, bound}, varied.warps);
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
    return Warps::covers_code(args, code_size, raw_size) ? Status() : elsewhere();
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
    if (all == nullptr) return;
    if (all->own != nullptr) kOwn.close(all->own);
    if (all->portable != nullptr) zfp_libzfp.close(all->portable);
    delete all;
  }
  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    State& all = *static_cast<State*>(state);
    if (Warps::covers(args, src.size())) {
      const Status status = kOwn.encode(all.own, args, src, dst, written);
      // Of a rate the size says so, before the values were seen: libzfp may code them reversibly.
      const bool unseen = status.code() == Code::kDstTooSmall && !Warps::is_varied(args);
      if (status.code() != Code::kUnsupported && !unseen) return status;
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
    if (Warps::covers_code(args, src.size(), dst.size())) {
      const Status status = kOwn.decode(all.own, args, src, dst, written);
      if (status.code() != Code::kUnsupported) return status;
    }
    if (args.device >= 0) return elsewhere();
    return zfp_libzfp.decode(all.portable, args, src, dst, written);
  }
};

}  // namespace zfp
}  // namespace wirepress
