// SPDX-License-Identifier: Apache-2.0
// The kernel that a codec has on the engine cuda: memory of a device around what the codec
// launches.
//
// A codec's class C (codecs/NAME/warp.hpp) has
//
//   static constexpr const char* kName;
//   static constexpr bool kGradients;                        // encode_feedback and decode_add
//   static Status check_encode(const Args&, size_t size, size_t room);
//   static Status check_decode(const Args&, size_t code_size, size_t size);
//   static size_t scratch(const Args&, size_t size);         // bytes that launches need
//   static size_t zeros(const Args&, size_t size, bool decodes);  // those of them, from the first
//                        // on, that are cleared; without it all
//   static size_t decode_scratch(const Args&, size_t size);  // of decoding, where it differs
//   static constexpr bool kFeedbackInParts;                  // of others: on a stream, by encode
//   and
//                                                            // decode
//   static constexpr bool kKeepsSize;                        // the code is as large as the data
//   static constexpr bool kOwnSize;                          // the code says how large the data
//                                                            // are
//   static constexpr bool kDecodesOnly;                      // the cores encode what they have
//   template <bool kFeedback, class D>
//   static Status encode(D& device, const Args&, const Task&);
//   template <bool kAdd, class D>
//   static Status decode(D& device, const Args&, const Task&);
//   static Status add(void*, ...);  // as Kernel::add, of codes in host memory; if codes have sums
//
// D launches kernels (warp.hpp): an Emulator, or a Stream of a GPU. Nothing between the launches
// asks the host: what came out stands in the Report.
#pragma once

#include <algorithm>
#include <new>
#include <string>

#include "base/kernel.hpp"
#include "engines/cuda/on_stream.hpp"

namespace wirepress::cuda {

template <class C, class Device>
class KernelOf {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    Kernel kernel = {.engine = "cuda",
                     .variant = variant,
                     .usable = usable,
                     .open = open,
                     .close = close,
                     .encode = encode,
                     .decode = decode};
    if constexpr (C::kGradients) {
      kernel.encode_feedback = encode_feedback;
      kernel.decode_add = decode_add;
    }
    if constexpr (requires { &C::add; }) kernel.add = C::add;
    if constexpr (requires { &Device::current; }) kernel.current_device = Device::current;
    if constexpr (requires { typename Device::Queue; })
      kernel.on_stream = &OnStream<C, typename Device::Queue>::kTable;
    return kernel;
  }

 private:
  struct State {
    Device device;
    typename Device::Memory raw, residual, code, scratch, report;
    const Kernel* cores = nullptr;  // that encodes for kDecodesOnly, and its state
    void* cores_state = nullptr;
    State() = default;
    ~State() {
      if (cores != nullptr && cores->close != nullptr) cores->close(cores_state);
    }
  };
  static constexpr bool kDecodesOnly = requires { requires C::kDecodesOnly; };

  static Status open(const Args& args, void** state) noexcept {
    *state = nullptr;
    auto* made = make();
    if (made == nullptr) return fail(Code::kNoMemory, "%s: no memory for a state", C::kName);
    const Status status = made->device.open(args.device < 0 ? args.home : args.device);
    if (!status.ok()) return delete made, status;
    *state = made;
    return {};
  }
  static State* make() noexcept {
    try {  // an Emulator allocates
      return new (std::nothrow) State;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  static void close(void* state) noexcept {
    auto* const own = static_cast<State*>(state);
    if (own == nullptr) return;
    const typename Device::Bound bound(own->device);
    delete own;
  }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    if constexpr (kDecodesOnly) return encode_on_cores(state, args, src, dst, written);
    return run_encode<false>(state, args, src, {}, dst, written);
  }
  static Status encode_on_cores(void* state, const Args& args, ConstBytes src, Bytes dst,
                                size_t* written) noexcept {
    if (args.device >= 0)
      return fail(Code::kUnsupported, "%s: no kernel for GPUs codes these data", C::kName);
    State& own = *static_cast<State*>(state);
    if (own.cores == nullptr) {
      const Entry& entry = *find_codec(C::kName, std::char_traits<char>::length(C::kName));
      const Kernel* const cores = choose_kernel(entry, "auto");
      if (cores->open != nullptr) WPR_TRY(cores->open(args, &own.cores_state));
      own.cores = cores;
    }
    return own.cores->encode(own.cores_state, args, src, dst, written);
  }
  static Status encode_feedback(void* state, const Args& args, ConstBytes src, Bytes residual,
                                Bytes dst, size_t* written) noexcept {
    if (residual.size() != src.size())
      return fail(Code::kParameter, "%s: residual of %zu bytes for %zu", C::kName, residual.size(),
                  src.size());
    return run_encode<true>(state, args, src, residual, dst, written);
  }
  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return run_decode<false>(state, args, src, raw_of(src, dst), written);
  }
  static Status decode_add(void* state, const Args& args, ConstBytes src, Bytes dst) noexcept {
    size_t written = 0;
    return run_decode<true>(state, args, src, dst, &written);
  }

  // Where the codec keeps the size, dst may be larger. check_decode refuses a smaller one.
  static Bytes raw_of(ConstBytes src, Bytes dst) {
    if constexpr (requires { requires C::kKeepsSize; })
      return dst.first(std::min(src.size(), dst.size()));
    return dst;
  }

  // Where a kernel finds bytes of the caller's: where they are, if the device reaches them there
  // and they are aligned; else in `memory`, to which they are yet to be copied.
  struct Found {
    std::byte* at = nullptr;
    bool copied = false;
  };
  static Status find(State& own, ConstBytes bytes, typename Device::Memory& memory, Found* found) {
    constexpr uintptr_t kAligned = 16;
    std::byte* const there = own.device.reach(bytes.data(), bytes.size());
    if (there != nullptr && reinterpret_cast<uintptr_t>(there) % kAligned == 0) {
      *found = {there, false};
      return {};
    }
    WPR_TRY(memory.prepare(bytes.size()));
    *found = {memory.get(), true};
    return {};
  }

  // Memory for a task.
  static Status prepare(State& own, size_t scratch, size_t zeros, const Found& raw, size_t raw_size,
                        size_t code_size, Task* task) {
    WPR_TRY(own.code.prepare(code_size));
    WPR_TRY(own.scratch.prepare(scratch));
    WPR_TRY(own.report.prepare(sizeof(Report)));
    static constexpr Report nothing = {0, Report::kNone, 0, 0};  // it outlives the copy
    WPR_TRY(own.device.upload(own.report.get(), std::as_bytes(std::span(&nothing, 1))));
    if (zeros > 0) WPR_TRY(own.device.clear(own.scratch.get(), zeros));
    *task = {raw.at,
             raw_size,
             nullptr,
             own.code.get(),
             code_size,
             own.scratch.get(),
             reinterpret_cast<Report*>(own.report.get())};
    return {};
  }

  static Status read_report(State& own, Report* report) {
    WPR_TRY(own.device.download(std::as_writable_bytes(std::span(report, 1)), own.report.get()));
    return own.device.finish();
  }

  // After a failure copies may be on their way from or to memory of the caller.
  static Status finished(State& own, const Status& status) {
    if (!status.ok()) static_cast<void>(own.device.finish());
    return status;
  }

  template <bool kFeedback>
  static Status run_encode(void* state, const Args& args, ConstBytes src, Bytes residual, Bytes dst,
                           size_t* written) {
    State& own = *static_cast<State*>(state);
    WPR_TRY(C::check_encode(args, src.size(), dst.size()));
    const typename Device::Bound bound(own.device);
    return finished(own, encode_on<kFeedback>(own, args, src, residual, dst, written));
  }

  template <bool kFeedback>
  static Status encode_on(State& own, const Args& args, ConstBytes src, Bytes residual, Bytes dst,
                          size_t* written) {
    Task task;
    Found raw, rest;
    WPR_TRY(find(own, src, own.raw, &raw));
    WPR_TRY(prepare(own, C::scratch(args, src.size()), zeros_of<C>(args, src.size(), false), raw,
                    src.size(), dst.size(), &task));
    if (raw.copied) WPR_TRY(own.device.upload(task.raw, src));
    if constexpr (kFeedback) {
      WPR_TRY(find(own, residual, own.residual, &rest));
      task.residual = rest.at;
      if (rest.copied) WPR_TRY(own.device.upload(task.residual, residual));
    }
    const Status launched = C::template encode<kFeedback>(own.device, args, task);
    WPR_TRY(launched);
    Report report;
    WPR_TRY(read_report(own, &report));
    WPR_TRY(outcome<C>(report, src.size(), dst.size()));
    if (report.written > dst.size())
      return fail(Code::kDevice, "%s: the device reports a code of %llu bytes in %zu", C::kName,
                  static_cast<unsigned long long>(report.written), dst.size());
    WPR_TRY(own.device.download(dst.first(report.written), task.code));
    if constexpr (kFeedback)
      if (rest.copied) WPR_TRY(own.device.download(residual, task.residual));
    WPR_TRY(own.device.finish());
    *written = report.written;
    return {};
  }

  template <bool kAdd>
  static Status run_decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                           size_t* written) {
    State& own = *static_cast<State*>(state);
    WPR_TRY(C::check_decode(args, src.size(), dst.size()));
    const typename Device::Bound bound(own.device);
    return finished(own, decode_on<kAdd>(own, args, src, dst, written));
  }

  template <bool kAdd>
  static Status decode_on(State& own, const Args& args, ConstBytes src, Bytes dst,
                          size_t* written) {
    Task task;
    Found raw;
    WPR_TRY(find(own, dst, own.raw, &raw));
    WPR_TRY(prepare(own, decode_scratch<C>(args, dst.size()), zeros_of<C>(args, dst.size(), true),
                    raw, dst.size(), src.size(), &task));
    WPR_TRY(own.device.upload(task.code, src));
    if constexpr (kAdd)
      if (raw.copied) WPR_TRY(own.device.upload(task.raw, dst));
    const Status launched = C::template decode<kAdd>(own.device, args, task);
    WPR_TRY(launched);
    Report report;
    WPR_TRY(read_report(own, &report));
    WPR_TRY(outcome<C>(report, dst.size(), dst.size()));
    size_t size = dst.size();
    if constexpr (requires { requires C::kOwnSize; }) {
      if (report.written > size)
        return fail(Code::kDevice, "%s: the device reports %llu bytes in %zu", C::kName,
                    static_cast<unsigned long long>(report.written), size);
      size = report.written;
    }
    *written = size;
    if (!raw.copied) return {};
    WPR_TRY(own.device.download(dst.first(size), task.raw));
    return own.device.finish();
  }
};

}  // namespace wirepress::cuda
