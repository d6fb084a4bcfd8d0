// SPDX-License-Identifier: Apache-2.0
// The kernel of a codec in the order of a caller's stream (base/streams.hpp), for KernelOf.
#pragma once

#include "engines/cuda/task.hpp"

namespace wirepress::cuda {

// The same launches in the order of a caller's stream; Queue(device, stream) has it.
template <class C, class Queue>
struct OnStream {
  static size_t scratch(const Args& args, size_t raw_size, bool decodes) noexcept {
    return decodes ? decode_scratch<C>(args, raw_size) : C::scratch(args, raw_size);
  }
  static size_t zeros(const Args& args, size_t raw_size, bool decodes) noexcept {
    return zeros_of<C>(args, raw_size, decodes);
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
  static Status find(const Queue& queue, const StreamTask& given, Task* task) {
    *task = {queue.reach(given.raw, given.raw_size),
             given.raw_size,
             nullptr,
             queue.reach(given.code, given.code_size),
             given.code_size,
             given.scratch_size > 0 ? queue.reach(given.scratch, given.scratch_size) : nullptr,
             reinterpret_cast<Report*>(
                 queue.reach(reinterpret_cast<std::byte*>(given.report), sizeof(Report)))};
    if (task->raw != nullptr && task->code != nullptr && task->report != nullptr &&
        (task->scratch != nullptr || given.scratch_size == 0))
      return {};
    return fail(Code::kDevice, "%s: what is to be coded lies in no memory of the stream's device",
                C::kName);
  }
  static Status encode(int device, void* stream, const Args& args,
                       const StreamTask& given) noexcept {
    Queue queue(device, stream);
    const typename Queue::Bound bound(queue);
    Task task;
    WPR_TRY(find(queue, given, &task));
    if constexpr (requires { requires C::kDecodesOnly; })
      return check_encode(args, 0, 0);
    else
      return C::template encode<false>(queue, args, task);
  }
  static Status decode(int device, void* stream, const Args& args,
                       const StreamTask& given) noexcept {
    Queue queue(device, stream);
    const typename Queue::Bound bound(queue);
    Task task;
    WPR_TRY(find(queue, given, &task));
    return C::template decode<false>(queue, args, task);
  }
  static Status outcome(const Report& report, size_t raw_size, size_t room) noexcept {
    WPR_TRY(cuda::outcome<C>(report, raw_size, room));
    if constexpr (requires { requires C::kOwnSize; })
      if (report.written != raw_size)
        return fail(Code::kCorrupt, "expands to %llu bytes instead of %zu",
                    static_cast<unsigned long long>(report.written), raw_size);
    return {};
  }
  static Status reach(int device, void* stream, StreamTask* task) noexcept {
    const Queue queue(device, stream);
    Task found;
    WPR_TRY(find(queue, *task, &found));
    *task = {found.raw,     task->raw_size,     found.code,  task->code_size,
             found.scratch, task->scratch_size, found.report};
    return {};
  }
  static Status decode_all(int device, void* stream, const StreamTask* tasks, size_t n) noexcept {
    Queue queue(device, stream);
    const typename Queue::Bound bound(queue);
    const auto* const there =
        queue.reach(reinterpret_cast<const std::byte*>(tasks), n * sizeof(*tasks));
    if (there == nullptr)
      return fail(Code::kDevice, "%s: tasks in no memory of the stream's device", C::kName);
    return C::decode_all(queue, reinterpret_cast<const StreamTask*>(there), n);
  }
  static constexpr StreamKernel table() {
    StreamKernel table = {scratch, zeros, check_encode, check_decode, encode, decode, outcome};
    if constexpr (requires { C::kOwnSize; }) {
      table.reach = reach;
      table.decode_all = decode_all;
    }
    return table;
  }
  static constexpr StreamKernel kTable = table();
};

}  // namespace wirepress::cuda
