// SPDX-License-Identifier: Apache-2.0
// bx on a GPU: what is launched for a task. warp_chunks.hpp says how a block and its lanes share a
// chunk.
#pragma once

#include "codecs/bx/warp_decode.hpp"
#include "codecs/bx/warp_encode.hpp"

namespace wirepress::bx {

// For cuda::KernelOf.
class Warps {
 private:
  // One at least, for the last bytes.
  template <typename F>
  static uint64_t chunks(size_t raw_size) {
    return std::max<uint64_t>(1, (raw_size / sizeof(typename F::Word) + kChunk - 1) / kChunk);
  }

  template <class Function>
  static auto with_format(const Args& args, Function function) {
    switch (args.dtype) {
      case DType::kFloat16:
        return function.template operator()<Float16>();
      case DType::kBfloat16:
        return function.template operator()<Bfloat16>();
      case DType::kFloat64:
        return function.template operator()<Float64>();
      default:
        return function.template operator()<Float32>();
    }
  }

 public:
  static constexpr const char* kName = "bx";
  static constexpr bool kGradients = false, kFeedbackInParts = true;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args& args, size_t size) {
    return with_format(args, [&]<typename F>() { return cuda::Places::size(chunks<F>(size)); });
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    return with_format(args, [&]<typename F>() {
      return device.launch(Encode<F>{task, setting_of(args)}, chunks<F>(task.raw_size));
    });
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    return with_format(args, [&]<typename F>() -> Status {
      WPR_TRY(device.launch(Walk<F>{task}, 1));
      if (task.raw_size < sizeof(typename F::Word)) return {};
      return device.launch(Decode<F>{task, setting_of(args)}, chunks<F>(task.raw_size));
    });
  }
};

}  // namespace wirepress::bx
