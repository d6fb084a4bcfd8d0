// SPDX-License-Identifier: Apache-2.0
// What codecs see of the engine compressdev (engines/compressdev): one job for the device that the
// process has selected, and a kernel made of it for formats around one raw DEFLATE stream. Header
// and trailer are made on the cores, as PEDAL does for zlib (Li et al., IPDPS 2024).
#pragma once

#include <algorithm>
#include <memory>
#include <new>

#include "base/kernel.hpp"

namespace wirepress::compressdev {

enum class Algorithm : uint8_t { kDeflate, kLz4 };
enum class Direction : uint8_t { kCompress, kExpand };
inline constexpr size_t kAlgorithms = 2, kDirections = 2;

// One block, to be coded or expanded.
struct Job {
  Algorithm algorithm = Algorithm::kDeflate;
  Direction direction = Direction::kCompress;
  ConstBytes src{};
  Bytes dst{};
  // Of expanding. exact: dst has exactly the raw size; where it may be larger, only a sum proves
  // what came. is_right: compares the sum of the format around `code`; nullptr: it has none.
  bool exact = true;
  bool (*is_right)(ConstBytes code, ConstBytes raw) = nullptr;
  ConstBytes code{};

  size_t raw_size() const { return direction == Direction::kCompress ? src.size() : dst.size(); }
  constexpr size_t way() const {
    return static_cast<size_t>(algorithm) * kDirections + static_cast<size_t>(direction);
  }
};

enum class Outcome : uint8_t {
  kDone,
  kCores,     // the cores must do the job; dst is undefined, and the engine has counted why
  kWrongSum,  // the same: the format's sum is not that of the device's bytes
};

// Brings the job to the device, and waits for it. `waits`: the thread is there for that, so where
// blocks are divided the device may take longer than a core.
Outcome run(const Job& job, size_t* written, bool waits = false) noexcept;
// The same of a device that works beside the cores, while its thread does something else. `left`
// as of Kernel::begin_encode. nullptr: the cores must do the job; else `end` ends it, called until
// it is true.
void* begin(const Job& job, double left) noexcept;
bool may_begin(size_t way, size_t raw_size, double left) noexcept;  // false: begin is nullptr
bool end(void* begun, size_t* written, Outcome* outcome) noexcept;
bool divides() noexcept;    // device and cores divide the blocks of a message
bool selected() noexcept;   // a device is set up
bool verifying() noexcept;  // option verify
void disown() noexcept;     // the device made wrong bytes: it gets no more jobs

// Tells the device what a core takes for a job in its place, while it lives.
class CoresWatch {
 public:
  explicit CoresWatch(const Job& job);
  CoresWatch(const CoresWatch&) = delete;
  CoresWatch& operator=(const CoresWatch&) = delete;
  ~CoresWatch();

 private:
  const size_t way_, raw_size_;
  int n_ = 1;         // jobs that this one stands for
  double begin_ = 0;  // 0: no device wants to know
};

// Wrapping: kAlgorithm; kHeader and kTrailer, bytes around the device's code; cores(), the kernel
// that reads and writes the same format; wrap(level, raw, code), which fills both ends in;
// is_header(code), whether a header is the plain one; is_trailer(code, raw), whether the sums are
// right.
template <class Wrapping>
struct OnDevice {
  static Status open(const Args& args, void** state) noexcept {
    return Wrapping::cores().open(args, state);
  }
  static void close(void* state) noexcept { Wrapping::cores().close(state); }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return encode_or_wait(state, args, src, dst, false, written);
  }

  static Status begin_encode(void* state, const Args& args, ConstBytes src, Bytes dst, double left,
                             size_t* written, void** begun) noexcept {
    *begun = nullptr;
    if (!divides() || left == 0) return encode_or_wait(state, args, src, dst, true, written);
    Job job;
    if (can_encode(args, src, dst, &job)) *begun = begin(job, left);
    return *begun ? Status() : encode_on_cores(state, args, src, dst, written);
  }

  static bool end_encode(void* state, const Args& args, void* begun, ConstBytes src, Bytes dst,
                         size_t* written, Status* status) noexcept {
    Outcome outcome;
    size_t body = 0;
    if (!end(begun, &body, &outcome)) return false;
    const bool done = outcome == Outcome::kDone && finish(state, args, src, dst, body, written);
    *status = done ? Status() : encode_on_cores(state, args, src, dst, written);
    return true;
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    Job job;
    const bool takes = can_decode(args, src, dst, &job);
    return after(takes ? run(job, written) : Outcome::kCores, state, args, src, dst, written);
  }

  static bool may_begin(size_t raw_size, double left) noexcept {
    constexpr size_t kWay =
        Job{.algorithm = Wrapping::kAlgorithm, .direction = Direction::kExpand}.way();
    return divides() && compressdev::may_begin(kWay, raw_size, left);
  }

  static Status begin_decode(void* state, const Args& args, ConstBytes src, Bytes dst, double left,
                             size_t* written, void** begun) noexcept {
    *begun = nullptr;
    if (!divides()) return decode(state, args, src, dst, written);
    Job job;
    if (can_decode(args, src, dst, &job)) *begun = begin(job, left);
    if (*begun != nullptr) return {};
    return after(Outcome::kCores, state, args, src, dst, written);
  }

  static bool end_decode(void* state, const Args& args, void* begun, ConstBytes src, Bytes dst,
                         size_t* written, Status* status) noexcept {
    Outcome outcome;
    if (!end(begun, written, &outcome)) return false;
    *status = after(outcome, state, args, src, dst, written);
    return true;
  }

 private:
  static constexpr size_t kAround = Wrapping::kHeader + Wrapping::kTrailer;
  static constexpr bool kHasSum = Wrapping::kTrailer != 0;

  static Job job_of(Direction direction, ConstBytes src, Bytes dst) {
    return {.algorithm = Wrapping::kAlgorithm, .direction = direction, .src = src, .dst = dst};
  }

  // DEFLATE's level 0 asks for stored blocks, which few devices write.
  static bool can_encode(const Args& args, ConstBytes src, Bytes dst, Job* job) noexcept {
    if (Wrapping::kAlgorithm == Algorithm::kDeflate && args.value[0] == 0) return false;
    if (src.empty() || dst.size() <= kAround) return false;
    *job = job_of(Direction::kCompress, src, dst.subspan(Wrapping::kHeader, dst.size() - kAround));
    return true;
  }

  // The device's code of `body` bytes gets its two ends. false: it is wrong.
  static bool finish(void* state, const Args& args, ConstBytes src, Bytes dst, size_t body,
                     size_t* written) noexcept {
    const Bytes code = dst.first(body + kAround);
    Wrapping::wrap(args.value[0], src, code);
    if (verifying() && !expands_to(state, args, code, src)) return disown(), false;
    *written = code.size();
    return true;
  }

  static Status encode_or_wait(void* state, const Args& args, ConstBytes src, Bytes dst, bool waits,
                               size_t* written) noexcept {
    Job job;
    size_t body = 0;
    if (can_encode(args, src, dst, &job) && run(job, &body, waits) == Outcome::kDone &&
        finish(state, args, src, dst, body, written))
      return {};
    return encode_on_cores(state, args, src, dst, written);
  }

  static Status encode_on_cores(void* state, const Args& args, ConstBytes src, Bytes dst,
                                size_t* written) noexcept {
    const CoresWatch watch(job_of(Direction::kCompress, src, dst));
    return Wrapping::cores().encode(state, args, src, dst, written);
  }

  // Only a sum proves what was expanded: without one, `verify` leaves it to the cores.
  static bool can_decode(const Args& args, ConstBytes src, Bytes dst, Job* job) noexcept {
    if (dst.empty() || src.size() <= kAround || !Wrapping::is_header(src)) return false;
    if (!kHasSum && verifying()) return false;
    *job = job_of(Direction::kExpand, src.subspan(Wrapping::kHeader, src.size() - kAround), dst);
    job->exact = args.exact_size;
    if (kHasSum) job->is_right = Wrapping::is_trailer;
    job->code = src;
    return true;
  }

  // What the device did not do, the cores do.
  static Status after(Outcome outcome, void* state, const Args& args, ConstBytes src, Bytes dst,
                      size_t* written) noexcept {
    if (outcome == Outcome::kDone) return {};
    const CoresWatch watch(job_of(Direction::kExpand, src, dst));
    const Status status = Wrapping::cores().decode(state, args, src, dst, written);
    if (outcome == Outcome::kWrongSum && status.ok()) disown();
    return status;
  }

  static bool expands_to(void* state, const Args& args, ConstBytes code, ConstBytes raw) noexcept {
    const std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[raw.size()]);
    if (memory == nullptr) return false;
    const Bytes again(memory.get(), raw.size());
    size_t size = 0;
    return Wrapping::cores().decode(state, args, code, again, &size).ok() && size == raw.size() &&
           std::equal(raw.begin(), raw.end(), again.begin());
  }
};

template <class Wrapping>
constexpr Kernel kernel() {
  using Functions = OnDevice<Wrapping>;
  return {.engine = "compressdev",
          .variant = "any",
          .usable = selected,
          .open = Functions::open,
          .close = Functions::close,
          .encode = Functions::encode,
          .decode = Functions::decode,
          .divides = divides,
          .may_begin = Functions::may_begin,
          .begin_encode = Functions::begin_encode,
          .end_encode = Functions::end_encode,
          .begin_decode = Functions::begin_decode,
          .end_decode = Functions::end_decode};
}

}  // namespace wirepress::compressdev
