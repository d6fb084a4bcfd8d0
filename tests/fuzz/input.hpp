// SPDX-License-Identifier: Apache-2.0
// How the fuzz targets of a codec read their input: raw size (2 bytes, little endian), type, shape,
// one byte per possible parameter, and then the code (or, in round trips, the raw bytes).
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/kernel.hpp"
#include "tests/conformance/data.hpp"

namespace wirepress {

struct FuzzInput {
  static constexpr size_t kHeadSize = 4 + kMaxParams;
  size_t raw_size = 0;
  Args args;
  std::vector<std::byte> data;  // its own allocation, so that a sanitizer sees overruns

  // False: too short, or parameters that do not go together. Values beyond a parameter's range are
  // taken modulo it.
  bool read(const Codec& codec, const uint8_t* input, size_t size) {
    if (size < kHeadSize) return false;
    raw_size = input[0] | static_cast<size_t>(input[1]) << 8;
    args.dtype = codec.typed ? static_cast<DType>(input[2] % kDTypeCount) : DType::kBytes;
    if (codec.by_slabs) conformance::tell_shape(input[3], &args);
    for (size_t i = 0; i < codec.params.size(); ++i) {
      const Param& param = codec.params[i];
      const int value = static_cast<int8_t>(input[4 + i]);
      if (param.real) {  // a power of ten, or 0
        args.value[i] = value ? real_param(1, value) : 0;
        continue;
      }
      const int range = param.max - param.min + 1;
      args.value[i] = value >= param.min && value <= param.max
                          ? value
                          : param.min + (value - param.min + 256 * range) % range;
    }
    const auto* begin = reinterpret_cast<const std::byte*>(input);
    data.assign(begin + kHeadSize, begin + size);
    return codec.check == nullptr || codec.check(&args).ok();
  }

  static std::vector<std::byte> write(size_t raw_size, const Args& args, uint8_t shape,
                                      ConstBytes data) {
    std::vector<std::byte> input = {
        static_cast<std::byte>(raw_size), static_cast<std::byte>(raw_size >> 8),
        static_cast<std::byte>(args.dtype), static_cast<std::byte>(shape)};
    for (const int value : args.value)  // of a real its exponent
      input.push_back(
          static_cast<std::byte>(value > 127 || value < -128 ? real_exponent(value) : value));
    input.insert(input.end(), data.begin(), data.end());
    return input;
  }
};

}  // namespace wirepress
