// SPDX-License-Identifier: Apache-2.0
// The kernel of a codec in the order of a caller's stream (base/streams.hpp), for KernelOf.
#pragma once

#include "engines/cuda/all_blocks.hpp"
#include "engines/cuda/task.hpp"

namespace wirepress::cuda {

// The same launches, of all blocks of a frame at once, on a Queue(device, stream).
template <class C, class Queue>
struct OnStream {
  static size_t scratch(const Args& args, size_t raw_size, bool decodes) noexcept {
    return decodes ? decode_scratch<C>(args, raw_size) : C::scratch(args, raw_size);
  }
  static Status check_encode(const Args& args, size_t raw_size, size_t room) noexcept {
    if constexpr (requires { requires C::kDecodesOnly; })
      return fail(Code::kUnsupported, "%s: no kernel for GPUs codes these data", C::kName);
    return C::check_encode(args, raw_size, room);
  }
  static Status check_decode(const Args& args, size_t code_size, size_t raw_size) noexcept {
    if constexpr (requires { requires C::kKeepsSize; })
      if (code_size != raw_size)
        return fail(Code::kCorrupt, "expands to %zu bytes instead of %zu", code_size, raw_size);
    return C::check_decode(args, code_size, raw_size);
  }
  static Status encode(int device, void* stream, const Args& args, const StreamTask& given,
                       StreamPlan* plan) noexcept {
    if constexpr (requires { requires C::kDecodesOnly; }) return check_encode(args, 0, 0);
    Task task;
    WPR_TRY(find(device, stream, given, *plan, &task));
    Planner<Queue> planner(plan);
    WPR_TRY(planner.clear(task.scratch, zeros_of<C>(args, task.raw_size, false)));
    return C::template encode<false>(planner, args, task);
  }
  static Status decode(int device, void* stream, const Args& args, const StreamTask& given,
                       StreamPlan* plan) noexcept {
    Task task;
    WPR_TRY(find(device, stream, given, *plan, &task));
    Planner<Queue> planner(plan);
    WPR_TRY(planner.clear(task.scratch, zeros_of<C>(args, task.raw_size, true)));
    return C::template decode<false>(planner, args, task);
  }
  static Status outcome(const Report& report, size_t raw_size, size_t room) noexcept {
    WPR_TRY(cuda::outcome<C>(report, raw_size, room));
    if constexpr (requires { requires C::kOwnSize; })
      if (report.written != raw_size)
        return fail(Code::kCorrupt, "expands to %llu bytes instead of %zu",
                    static_cast<unsigned long long>(report.written), raw_size);
    return {};
  }
  static constexpr StreamKernel kTable = {scratch, check_encode, check_decode,
                                          encode,  decode,       outcome};

 private:
  // A task as kernels see it.
  static Status find(int device, void* stream, const StreamTask& given, const StreamPlan& plan,
                     Task* task) {
    const Queue queue(device, stream);
    const auto reach = [&](std::byte* at, size_t size) {
      return plan.is_draft() || size == 0 ? at : queue.reach(at, size);
    };
    *task = {reach(given.raw, given.raw_size),
             given.raw_size,
             nullptr,
             reach(given.code, given.code_size),
             given.code_size,
             reach(given.scratch, given.scratch_size),
             reinterpret_cast<Report*>(
                 reach(reinterpret_cast<std::byte*>(given.report), sizeof(Report)))};
    if (task->raw != nullptr && task->code != nullptr && task->report != nullptr &&
        (task->scratch != nullptr || given.scratch_size == 0))
      return {};
    return fail(Code::kDevice, "%s: what is to be coded lies in no memory of the stream's device",
                C::kName);
  }
};

}  // namespace wirepress::cuda
