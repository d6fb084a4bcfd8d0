// SPDX-License-Identifier: Apache-2.0
#include "pipeline/halves.hpp"

#include "pipeline/device_blocks.hpp"

namespace wirepress {

Status Halves::of(DType dtype, Halves* halves) {
  *halves = {};
  if (dtype == DType::kFloat32) return {};
  if (dtype != DType::kBfloat16 && dtype != DType::kFloat16)
    return fail(Code::kParameter, "gradients are float32, bfloat16 or float16, not %s",
                dtype_name(dtype));
  const std::string_view name = dtype == DType::kBfloat16 ? "bf16" : "fp16";
  const Entry* const entry = find_codec(name.data(), name.size());
  if (entry == nullptr)
    return fail(Code::kUnsupported, "%s is cast by the codec %s, which this build does not have",
                dtype_name(dtype), name.data());
  halves->entry_ = entry;
  halves->args_ = default_args(*entry->codec, DType::kFloat32);
  halves->kernel_ = choose_kernel(*entry, "auto");
  return {};
}

Status Halves::widen(ConstBytes halves, Bytes floats) const {
  size_t written = 0;
  return kernel_->decode(nullptr, args_, halves, floats, &written);
}

const StreamKernel* Halves::on_stream(const Place& place) const {
  const Kernel* const kernel = device_kernel(*entry_, place);
  return kernel != nullptr && kernel->usable() ? kernel->on_stream : nullptr;
}

Status Halves::narrow(ConstBytes floats, Bytes halves) const {
  size_t written = 0;
  return kernel_->encode(nullptr, args_, floats, halves, &written);
}

}  // namespace wirepress
