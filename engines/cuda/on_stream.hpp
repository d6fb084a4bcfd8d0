// SPDX-License-Identifier: Apache-2.0
// The kernel of a codec in the order of a caller's stream (base/streams.hpp), for KernelOf.
#pragma once

#include "engines/cuda/task.hpp"
#include "engines/cuda/values.hpp"

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
    return note_encode<false>(args, task, plan);
  }
  static Status encode_feedback(int device, void* stream, const Args& args, const StreamTask& given,
                                StreamPlan* plan) noexcept {
    Task task;
    WPR_TRY(find(device, stream, given, *plan, &task));
    WPR_TRY(note_encode<true>(args, task, plan));
    if (given.values == nullptr) return {};
    task.raw = reach(device, stream, *plan, given.values, given.raw_size);
    if (task.raw == nullptr) return unreached();
    WPR_TRY(Planner<Queue>(plan).launch(Weigh{task.report, given.limit}, 1));
    PlannerWhen<Queue, Unstored> planner(plan, task.report);
    return note_decode<false>(planner, args, task);
  }
  static Status decode_made(int device, void* stream, const Args& args, const StreamTask& given,
                            StreamPlan* plan) noexcept {
    Task task;
    WPR_TRY(find(device, stream, given, *plan, &task));
    PlannerWhen<Queue, Made> planner(plan, task.report);
    return note_decode<false>(planner, args, task);
  }
  static Status decode(int device, void* stream, const Args& args, const StreamTask& given,
                       StreamPlan* plan) noexcept {
    return decode_to<false>(device, stream, args, given, plan);
  }
  static Status decode_add(int device, void* stream, const Args& args, const StreamTask& given,
                           StreamPlan* plan) noexcept {
    return decode_to<true>(device, stream, args, given, plan);
  }
  static Status outcome(const Report& report, size_t raw_size, size_t room) noexcept {
    WPR_TRY(cuda::outcome<C>(report, raw_size, room));
    if constexpr (requires { requires C::kOwnSize; })
      if (report.written != raw_size)
        return fail(Code::kCorrupt, "expands to %llu bytes instead of %zu",
                    static_cast<unsigned long long>(report.written), raw_size);
    return {};
  }
  static constexpr StreamKernel table() {
    StreamKernel table = {scratch, check_encode, check_decode, encode, decode, outcome};
    if constexpr (C::kGradients) {
      table.encode_feedback = encode_feedback;
      table.decode_add = decode_add;
    } else if constexpr (requires { requires C::kFeedbackInParts; }) {
      table.decode_made = decode_made;
    }
    return table;
  }
  static constexpr StreamKernel kTable = table();

 private:
  template <bool kFeedback>
  static Status note_encode(const Args& args, const Task& task, StreamPlan* plan) {
    Planner<Queue> planner(plan);
    WPR_TRY(planner.clear(task.scratch, zeros_of<C>(args, task.raw_size, false)));
    return C::template encode<kFeedback>(planner, args, task);
  }
  template <bool kAdd, class D>
  static Status note_decode(D& planner, const Args& args, const Task& task) {
    WPR_TRY(planner.clear(task.scratch, zeros_of<C>(args, task.raw_size, true)));
    return C::template decode<kAdd>(planner, args, task);
  }
  template <bool kAdd>
  static Status decode_to(int device, void* stream, const Args& args, const StreamTask& given,
                          StreamPlan* plan) {
    Task task;
    WPR_TRY(find(device, stream, given, *plan, &task));
    Planner<Queue> planner(plan);
    return note_decode<kAdd>(planner, args, task);
  }

  // As kernels see it; nullptr: they do not.
  static std::byte* reach(int device, void* stream, const StreamPlan& plan, std::byte* at,
                          size_t size) {
    return plan.is_draft() || size == 0 ? at : Queue(device, stream).reach(at, size);
  }
  static Status unreached() {
    return fail(Code::kDevice, "%s: what is to be coded lies in no memory of the stream's device",
                C::kName);
  }
  static Status find(int device, void* stream, const StreamTask& given, const StreamPlan& plan,
                     Task* task) {
    const auto there = [&](std::byte* at, size_t size) {
      return reach(device, stream, plan, at, size);
    };
    auto* const report = reinterpret_cast<std::byte*>(given.report);
    *task = {there(given.raw, given.raw_size),
             given.raw_size,
             there(given.residual, given.residual == nullptr ? 0 : given.raw_size),
             there(given.code, given.code_size),
             given.code_size,
             there(given.scratch, given.scratch_size),
             reinterpret_cast<Report*>(there(report, sizeof(Report)))};
    const bool all = task->raw != nullptr && task->code != nullptr && task->report != nullptr &&
                     (task->scratch != nullptr || given.scratch_size == 0) &&
                     (task->residual != nullptr || given.residual == nullptr);
    return all ? Status() : unreached();
  }
};

}  // namespace wirepress::cuda
