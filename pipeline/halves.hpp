// SPDX-License-Identifier: Apache-2.0
// Gradients of 16 bits beside codecs of float32: a block is cast where a worker keeps it, in the
// caches, and no array of float32 comes into being.
#pragma once

#include "base/memory.hpp"
#include "base/streams.hpp"

namespace wirepress {

// bfloat16 or float16 to float32 and back. Codecs bf16 and fp16 are these casts, so that their
// kernels make them.
class Halves {
 public:
  Halves() = default;  // float32: nothing is cast
  // kParameter: dtype is none of the three.
  static Status of(DType dtype, Halves* halves);

  explicit operator bool() const { return kernel_ != nullptr; }
  // Bytes that whole values of raw_size bytes of float32 take.
  size_t size_of(size_t raw_size) const { return kernel_ ? raw_size / 4 * 2 : raw_size; }
  // Bytes of float32 that `size` bytes are.
  size_t raw_size_of(size_t size) const { return kernel_ ? size / 2 * 4 : size; }
  // Whole values, equally many on both sides: exact, and to the nearest (ties to even; what is too
  // large becomes infinite, NaNs one of them).
  Status widen(ConstBytes halves, Bytes floats) const;
  Status narrow(ConstBytes floats, Bytes halves) const;
  // The kernel that casts on a stream of the place, as a codec of float32; nullptr: none does.
  const StreamKernel* on_stream(const Place& place) const;
  const Args& args() const { return args_; }

 private:
  const Entry* entry_ = nullptr;
  const Kernel* kernel_ = nullptr;
  Args args_;
};

}  // namespace wirepress
