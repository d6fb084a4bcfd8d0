// SPDX-License-Identifier: Apache-2.0
// planes on a GPU: what is launched for a task.
#pragma once

#include "codecs/planes/warp_decode.hpp"
#include "codecs/planes/warp_encode.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr uint32_t size_of(const Args& args) {
  switch (args.dtype) {
    case DType::kFloat16:
    case DType::kBfloat16:
      return 2;
    case DType::kFloat64:
      return 8;
    default:
      return 4;
  }
}

// For cuda::KernelOf.
class Warps {
  template <class Function>
  static auto with_word(const Args& args, Function function) {
    switch (size_of(args)) {
      case 2:
        return function.template operator()<uint16_t>();
      case 8:
        return function.template operator()<uint64_t>();
      default:
        return function.template operator()<uint32_t>();
    }
  }

 public:
  static constexpr const char* kName = "planes";
  static constexpr bool kGradients = false;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args& args, size_t code_size, size_t size) {
    if (size == 0 ? code_size == 0 : code_size > 0 && code_size <= room(args, size).code_most)
      return {};
    return fail(Code::kCorrupt, "planes: %zu bytes for %zu", code_size, size);
  }
  static size_t scratch(const Args& args, size_t size) {
    return size == 0 ? 0 : EncodeRoom(size_of(args), size).all;
  }
  static size_t decode_scratch(const Args& args, size_t size) {
    return size == 0 ? 0 : room(args, size).all;
  }
  static size_t zeros(const Args& args, size_t size, bool decodes) {
    if (size == 0) return 0;
    return decodes ? room(args, size).zeros() : EncodeRoom(size_of(args), size).zeros();
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    return with_word(args, [&]<typename Word>() { return encode_on<Word>(device, task); });
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    return with_word(args, [&]<typename Word>() { return decode_on<Word>(device, task); });
  }

 private:
  static DecodeRoom room(const Args& args, size_t size) { return {size_of(args), size}; }
};

}  // namespace planes
}  // namespace
}  // namespace wirepress
