// SPDX-License-Identifier: Apache-2.0
// What codecs see of the engine compressdev (engines/compressdev): one job for the device that the
// process has selected, and a kernel made of it for formats around one raw DEFLATE stream. Header
// and trailer are made on the cores, as PEDAL does for zlib (Li et al., IPDPS 2024).
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

#include "base/kernel.hpp"

namespace wirepress::compressdev {

enum class Direction : uint8_t { kCompress, kExpand };

// Codes or expands a raw DEFLATE stream and waits for it. false: the cores must do the job; dst is
// then undefined, and the engine has counted why. Expanding succeeds only where it fills dst.
// has_sum: the caller compares a checksum of what was expanded.
bool run(Direction direction, bool has_sum, ConstBytes src, Bytes dst, size_t* written) noexcept;
bool selected() noexcept;   // a device is set up
bool verifying() noexcept;  // option verify
void disown() noexcept;     // the device made wrong bytes: it gets no more jobs

// Tells the device what the cores take for a job in its place, while it lives.
class CoresWatch {
 public:
  CoresWatch(Direction direction, size_t raw_size) : direction_(direction), raw_size_(raw_size) {}
  CoresWatch(const CoresWatch&) = delete;
  CoresWatch& operator=(const CoresWatch&) = delete;
  ~CoresWatch();

 private:
  using Clock = std::chrono::steady_clock;
  const Direction direction_;
  const size_t raw_size_;
  const Clock::time_point begin_ = Clock::now();
};

// Wrapping: kHeader and kTrailer, bytes around the stream; cores(), the kernel that reads and
// writes the same format; wrap(level, raw, code), which fills both in; is_header(code), whether a
// header is the plain one; is_trailer(code, raw), whether the sums are right.
template <class Wrapping>
struct OnDevice {
  static Status open(const Args& args, void** state) noexcept {
    return Wrapping::cores().open(args, state);
  }
  static void close(void* state) noexcept { Wrapping::cores().close(state); }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    if (encode_here(state, args, src, dst, written)) return {};
    const CoresWatch watch(Direction::kCompress, src.size());
    return Wrapping::cores().encode(state, args, src, dst, written);
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    bool wrong_sum = false;
    if (decode_here(src, dst, written, &wrong_sum)) return {};
    const CoresWatch watch(Direction::kExpand, dst.size());
    const Status status = Wrapping::cores().decode(state, args, src, dst, written);
    if (wrong_sum && status.ok()) disown();
    return status;
  }

 private:
  static constexpr size_t kAround = Wrapping::kHeader + Wrapping::kTrailer;
  static constexpr bool kHasSum = Wrapping::kTrailer != 0;

  // Level 0 asks for stored blocks, which few devices write.
  static bool encode_here(void* state, const Args& args, ConstBytes src, Bytes dst,
                          size_t* written) noexcept {
    if (args.value[0] == 0 || src.empty() || dst.size() <= kAround) return false;
    size_t body = 0;
    const Bytes room = dst.subspan(Wrapping::kHeader, dst.size() - kAround);
    if (!run(Direction::kCompress, kHasSum, src, room, &body)) return false;
    const Bytes code = dst.first(body + kAround);
    Wrapping::wrap(args.value[0], src, code);
    if (verifying() && !expands_to(state, args, code, src)) return disown(), false;
    *written = code.size();
    return true;
  }

  // Only a sum proves what was expanded: without one, `verify` leaves it to the cores.
  static bool decode_here(ConstBytes src, Bytes dst, size_t* written, bool* wrong_sum) noexcept {
    if (dst.empty() || src.size() <= kAround || !Wrapping::is_header(src)) return false;
    if (!kHasSum && verifying()) return false;
    const ConstBytes body = src.subspan(Wrapping::kHeader, src.size() - kAround);
    if (!run(Direction::kExpand, kHasSum, body, dst, written)) return false;
    *wrong_sum = !Wrapping::is_trailer(src, dst);
    return !*wrong_sum;
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
          .decode = Functions::decode};
}

}  // namespace wirepress::compressdev
