// SPDX-License-Identifier: Apache-2.0
// Decoders of LZ formats on a GPU: a warp expands a block. It reads the code element by element, as
// all lanes do the same, and copies by 32 lanes; blocks are expanded side by side. The cores
// encode. A format F has
//
//   static constexpr const char* kName;
//   static constexpr bool kSaysSize;   // the code begins with the raw size; else literals end it
//   static bool begin(Code& code, uint32_t* size);       // the head
//   static bool next(Code& code, Element* element);      // an element up to its literals
//   static bool match(Code& code, Element* element);     // what is behind them
//
// which are false where no encoder wrote this. Nothing is read behind the code.
#pragma once

#include "engines/cuda/copy.hpp"
#include "engines/cuda/kernel.hpp"

namespace wirepress::lz {

// Literals, then `match` bytes from `offset` bytes before.
struct Element {
  uint64_t literals = 0, match = 0, offset = 0;
};

// Bytes that are read one after the other. Literals are stepped over.
struct Code {
  const std::byte* bytes;
  uint64_t size, at = 0;

  constexpr uint64_t left() const { return size - at; }
  // n bytes, which are there, of at most 4; the lowest first.
  WPR_ON_DEVICE uint32_t take(uint32_t n) {
    uint32_t x = 0;
    for (uint32_t i = 0; i < n; ++i) x |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
    at += n;
    return x;
  }
};

template <class W>
WPR_ON_DEVICE void copy_literals(W& w, const std::byte* from, std::byte* to, uint32_t n) {
  if (n > 4 * cuda::kLanes) return cuda::copy_any(w, from, to, n);
  for (uint32_t i = 0; i < n; i += cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < n) to[i + lane] = from[i + lane];
        },
        w.lane());
}

// As if byte by byte: what is copied may be what was copied, which repeats what lies before `to`.
template <class W>
WPR_ON_DEVICE void copy_match(W& w, std::byte* to, uint32_t offset, uint32_t n) {
  const std::byte* const from = to - offset;
  if (offset >= n) return copy_literals(w, from, to, n);
  for (uint32_t i = 0; i < n; i += cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < n) to[i + lane] = from[(i + lane) % offset];
        },
        w.lane());
}

template <class F, class W>
WPR_ON_DEVICE bool expand(W& w, Code code, std::byte* out, uint32_t room, uint32_t* written) {
  uint32_t size = 0, done = 0;
  if (!F::begin(code, &size) || size > room) return false;
  while (!F::kSaysSize || code.left() > 0) {
    Element element;
    if (!F::next(code, &element) || element.literals > code.left() ||
        element.literals > room - done)
      return false;
    const auto literals = static_cast<uint32_t>(element.literals);
    copy_literals(w, code.bytes + code.at, out + done, literals);
    code.at += literals;
    done += literals;
    if (!F::kSaysSize && code.left() == 0) break;
    if (!F::match(code, &element)) return false;
    if (element.match == 0) continue;
    if (element.offset == 0 || element.offset > done || element.match > room - done) return false;
    const auto match = static_cast<uint32_t>(element.match);
    w.settle();  // what is repeated has been written
    copy_match(w, out + done, static_cast<uint32_t>(element.offset), match);
    done += match;
  }
  *written = done;
  return !F::kSaysSize || done == size;
}

template <class F>
struct Expand {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    uint32_t written = 0;
    const bool good = expand<F>(w, {task.code, task.code_size}, task.raw,
                                static_cast<uint32_t>(task.raw_size), &written);
    Report* const report = task.report;
    w.each(
        [=](uint32_t lane) {
          if (lane != 0) return;
          report->written = written;
          if (!good) report->first_bad = 0;
        },
        w.lane());
  }
};

// For cuda::KernelOf.
template <class F>
class WarpLz {
 public:
  static constexpr const char* kName = F::kName;
  static constexpr bool kGradients = false, kKeepsSize = false;
  static constexpr bool kOwnSize = true, kDecodesOnly = true;
  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t code_size, size_t size) {
    if (code_size == 0) return fail(wirepress::Code::kCorrupt, "%s: a block of 0 bytes", kName);
    if (code_size <= UINT32_MAX && size <= UINT32_MAX) return {};
    return fail(wirepress::Code::kUnsupported, "%s: a block of %zu bytes, %u are the most on a GPU",
                kName, size, UINT32_MAX);
  }
  static size_t scratch(const Args&, size_t) { return 0; }
  template <bool kFeedback, class D>
  static Status encode(D&, const Args&, const cuda::Task&) {
    return fail(wirepress::Code::kUnsupported, "%s: no kernel for GPUs codes these data", kName);
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args&, const cuda::Task& task) {
    return device.launch(Expand<F>{task}, 1);
  }
};

}  // namespace wirepress::lz
