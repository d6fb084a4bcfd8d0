// SPDX-License-Identifier: Apache-2.0
// The walk over a block of float32 values whose code is a row of chunks that know nothing of each
// other, and the functions of a kernel that it makes.
//
// A block of N bytes is floor(N / 4) values and the last N % 4 bytes. Values go in chunks, the last
// one shorter; the size of a chunk's code depends on nothing but the number of its values. After
// the last code, the last bytes as they are.
//
// What is here is `static` or a template over classes with internal linkage: kernels are compiled
// for different instruction sets, and the linker must not mix them.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::chunks {

constexpr size_t kMostValues = 4096;  // of a chunk
constexpr size_t kCodeSlack = 512;    // bytes behind a short chunk's code that its decoder may read

// Holds the values of a chunk, or its code and the slack.
struct alignas(64) Buffer : std::array<std::byte, 4 * kMostValues + 64 + kCodeSlack> {};

struct Run {
  size_t n;        // values of this chunk
  size_t padded;   // with those that fill its last step
  uint64_t first;  // index of the first one, for what is drawn
};

// Copies `size` bytes and clears those behind them, up to `room`.
static inline const std::byte* copy_padded(const std::byte* from, size_t size, size_t room,
                                           Buffer* to) {
  std::memcpy(to->data(), from, size);
  std::memset(to->data() + size, 0, room - size);
  return to->data();
}

// Calls function(src, residual) with copies that have +0 behind the last value, up to run.padded;
// the residual is copied back.
template <bool kFeedback, typename Function>
static void on_copies(const std::byte* src, std::byte* residual, const Run& run,
                      Function function) {
  Buffer values, rest;
  copy_padded(src, 4 * run.n, 4 * run.padded, &values);
  if constexpr (kFeedback) copy_padded(residual, 4 * run.n, 4 * run.padded, &rest);
  function(values.data(), kFeedback ? rest.data() : nullptr);
  if constexpr (kFeedback) std::memcpy(residual, rest.data(), 4 * run.n);
}

// What function(dst) says, which may write run.padded values; kAdd: it is given those of dst.
template <bool kAdd, typename Function>
static bool into_copy(std::byte* dst, const Run& run, Function function) {
  Buffer values;
  if constexpr (kAdd) copy_padded(dst, 4 * run.n, 4 * run.padded, &values);
  if (!function(values.data())) return false;
  std::memcpy(dst, values.data(), 4 * run.n);
  return true;
}

// The functions of a kernel, made of a class W with
//
//   static constexpr const char* kName;
//   template <bool kFeedback>   // residual: nullptr without feedback
//   static Status encode_block(const Args&, ConstBytes src, std::byte* residual, Bytes dst,
//                              size_t* written);
//   template <bool kAdd>        // leaves the last bytes of dst alone
//   static Status decode_block(const Args&, ConstBytes src, Bytes dst);
//   static constexpr decltype(Kernel::add) add_function();   // nullptr: codes have no sums
template <typename W>
struct Functions {
  static Status encode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return W::template encode_block<false>(args, src, nullptr, dst, written);
  }

  static Status encode_feedback(void*, const Args& args, ConstBytes src, Bytes residual, Bytes dst,
                                size_t* written) noexcept {
    if (residual.size() != src.size())
      return fail(Code::kParameter, "%s: residual of %zu bytes for %zu", W::kName, residual.size(),
                  src.size());
    WPR_TRY(W::template encode_block<true>(args, src, residual.data(), dst, written));
    std::ranges::fill(residual.last(src.size() % 4), std::byte{0});
    return {};
  }

  static Status decode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    WPR_TRY(W::template decode_block<false>(args, src, dst));
    const size_t tail = dst.size() % 4;
    std::ranges::copy(src.last(tail), dst.last(tail).begin());
    *written = dst.size();
    return {};
  }

  static Status decode_add(void*, const Args& args, ConstBytes src, Bytes dst) noexcept {
    return W::template decode_block<true>(args, src, dst);
  }

  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = nullptr,
            .close = nullptr,
            .encode = encode,
            .decode = decode,
            .encode_feedback = encode_feedback,
            .decode_add = decode_add,
            .add = W::add_function()};
  }
};

// Size of a block's code. A layout has values(), of a chunk, and code_size(n), of n of them.
template <typename Layout>
static constexpr size_t code_size(const Layout& layout, size_t raw_size) {
  const size_t n = raw_size / 4, rest = n % layout.values();
  return n / layout.values() * layout.code_size(layout.values()) +
         (rest > 0 ? layout.code_size(rest) : 0) + raw_size % 4;
}

// Whether `room` and `have` bytes are those of a code of `size`.
static inline Status check_room(const char* name, size_t size, size_t raw_size, size_t room) {
  if (room >= size) return {};
  return fail(Code::kDstTooSmall, "%s: the code of %zu bytes needs %zu, has %zu", name, raw_size,
              size, room);
}
static inline Status check_size(const char* name, size_t size, size_t have, size_t raw_size) {
  if (have == size) return {};
  return fail(Code::kCorrupt, "%s: %zu bytes are the code of %zu, have %zu", name, size, raw_size,
              have);
}

// For Functions, by a class C that is a layout and knows one chunk:
//
//   static constexpr const char* kName;
//   static constexpr size_t kStep;       // chunks are handed over padded to a multiple of it
//   static constexpr bool kAdds;         // codes can be added
//   explicit C(const Args&);
//   size_t values() const;               // a multiple of kStep, at most kMostValues
//   size_t code_size(size_t n) const;    // at most 4 n + 64
//   template <bool kFeedback>            // values after the last are +0
//   void encode(const std::byte* src, std::byte* residual, const Run&, std::byte* code) const;
//   template <bool kAdd>                 // false: no encoder wrote this
//   bool decode(const std::byte* code, const Run&, std::byte* dst) const;
template <typename C>
class Blocks {
 public:
  static constexpr const char* kName = C::kName;

  template <bool kFeedback>
  static Status encode_block(const Args& args, ConstBytes src, std::byte* residual, Bytes dst,
                             size_t* written) {
    const C chunk(args);
    WPR_TRY(check_room(chunk, src.size(), dst));
    const size_t values = src.size() / 4, tail = src.size() % 4;
    const size_t n = chunk.values(), size = chunk.code_size(n);
    const std::byte* from = src.data();
    std::byte* code = dst.data();
    size_t done = 0;
    for (; done + n <= values; done += n) {
      chunk.template encode<kFeedback>(from, residual, {n, n, args.first + done}, code);
      from += 4 * n;
      if constexpr (kFeedback) residual += 4 * n;
      code += size;
    }
    if (done < values) {
      const Run run = run_of(values - done, args.first + done);
      encode_last<kFeedback>(chunk, from, residual, run, code);
      code += chunk.code_size(run.n);
    }
    if (tail > 0) std::memcpy(code, src.last(tail).data(), tail);
    *written = static_cast<size_t>(code - dst.data()) + tail;
    return {};
  }

  template <bool kAdd>
  static Status decode_block(const Args& args, ConstBytes src, Bytes dst) {
    const C chunk(args);
    WPR_TRY(check_size(chunk, src, dst.size()));
    const size_t values = dst.size() / 4;
    const size_t n = chunk.values(), size = chunk.code_size(n);
    const std::byte* code = src.data();
    std::byte* to = dst.data();
    size_t done = 0;
    for (; done + n <= values; done += n) {
      if (!chunk.template decode<kAdd>(code, {n, n, 0}, to)) return invalid(done / n, size);
      code += size;
      to += 4 * n;
    }
    if (done < values && !decode_last<kAdd>(chunk, code, run_of(values - done, 0), to))
      return invalid(done / n, size);
    return {};
  }

  static constexpr decltype(Kernel::add) add_function() {
    if constexpr (C::kAdds) return add;
    return nullptr;
  }

 private:
  // The code that encode() makes of the decoded values' sums.
  static Status add(void*, const Args& args, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
                    size_t* written) noexcept requires C::kAdds {
    const C chunk(args);
    WPR_TRY(check_size(chunk, a, raw_size));
    WPR_TRY(check_size(chunk, b, raw_size));
    if (raw_size % 4 != 0)
      return fail(Code::kUnsupported, "%s: the last %zu of %zu bytes are no float32", kName,
                  raw_size % 4, raw_size);
    WPR_TRY(check_room(chunk, raw_size, dst));
    const size_t values = raw_size / 4, n = chunk.values(), size = chunk.code_size(n);
    Buffer sum;
    for (size_t done = 0, at = 0; done < values; done += n, at += size) {
      const Run run = run_of(std::min(values - done, n), args.first + done);
      if (!decode_last<false>(chunk, a.data() + at, run, sum.data()) ||
          !decode_last<true>(chunk, b.data() + at, run, sum.data()))
        return invalid(done / n, size);
      encode_last<false>(chunk, sum.data(), nullptr, run, dst.data() + at);
    }
    *written = code_size(chunk, raw_size);
    return {};
  }

  static Run run_of(size_t n, uint64_t first) {
    return {n, (n + C::kStep - 1) / C::kStep * C::kStep, first};
  }

  static Status check_room(const C& chunk, size_t raw_size, Bytes dst) {
    return chunks::check_room(kName, code_size(chunk, raw_size), raw_size, dst.size());
  }

  static Status check_size(const C& chunk, ConstBytes code, size_t raw_size) {
    return chunks::check_size(kName, code_size(chunk, raw_size), code.size(), raw_size);
  }

  static Status invalid(size_t number, size_t size) {
    return fail(Code::kCorrupt,
                "%s: chunk %zu, at byte %zu: a scale or bits that no encoder writes", kName, number,
                number * size);
  }

  // A chunk that may not fill its last step.
  template <bool kFeedback>
  static void encode_last(const C& chunk, const std::byte* src, std::byte* residual, const Run& run,
                          std::byte* code) {
    if (run.n == run.padded) return chunk.template encode<kFeedback>(src, residual, run, code);
    const size_t size = chunk.code_size(run.n);
    Buffer padded;
    std::memset(padded.data(), 0, size + kCodeSlack);  // where it is decoded for the residual
    on_copies<kFeedback>(src, residual, run, [&](const std::byte* values, std::byte* rest) {
      chunk.template encode<kFeedback>(values, rest, run, padded.data());
    });
    std::memcpy(code, padded.data(), size);
  }

  template <bool kAdd>
  static bool decode_last(const C& chunk, const std::byte* code, const Run& run, std::byte* dst) {
    if (run.n == run.padded) return chunk.template decode<kAdd>(code, run, dst);
    const size_t size = chunk.code_size(run.n);
    Buffer padded;
    copy_padded(code, size, size + kCodeSlack, &padded);
    return into_copy<kAdd>(dst, run, [&](std::byte* values) {
      return chunk.template decode<kAdd>(padded.data(), run, values);
    });
  }
};

}  // namespace wirepress::chunks
