// SPDX-License-Identifier: Apache-2.0
// Chunks (blocks.hpp) on a GPU: a warp codes one chunk. This is the index arithmetic; a codec's
// class C, which is copied to the device, knows one chunk:
//
//   static constexpr const char* kName;
//   explicit C(const Args&);
//   constexpr size_t values() const;              // of a whole chunk: a multiple of 128, or less
//   constexpr size_t code_size(size_t n) const;
//   template <bool kFeedback, class W>
//   WPR_ON_DEVICE void encode(W&, const std::byte* src, std::byte* residual, const Run&,
//                          std::byte* code) const;
//   template <bool kAdd, class W>                 // false: no encoder wrote this
//   WPR_ON_DEVICE bool decode(W&, const std::byte* code, uint32_t n, std::byte* dst) const;
//
// It touches nothing but the n values and their code. Codes begin at multiples of kAlign.
#pragma once

#include <algorithm>
#include <bit>

#include "codecs/common/chunked/bit_planes.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/kernel.hpp"

namespace wirepress::chunks {

struct WarpRun {
  uint32_t n;      // values of this chunk
  uint64_t first;  // index of the first one, for what is drawn
};

template <class C, bool kFeedback>
struct EncodeChunks {
  static constexpr unsigned kWarps = 4;
  static constexpr unsigned kLeastBlocks = 8;  // or ptxas spills to have 16
  C chunk;
  cuda::Task task;
  uint64_t first;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t values = task.raw_size / 4, number = w.block() * kWarps + w.warp();
    const uint64_t begin = number * chunk.values();
    if (number == 0) finish(w, values);
    if (begin >= values) return;
    const uint64_t n = values - begin < chunk.values() ? values - begin : chunk.values();
    chunk.template encode<kFeedback>(w, task.raw + 4 * begin,
                                     kFeedback ? task.residual + 4 * begin : nullptr,
                                     WarpRun{static_cast<uint32_t>(n), first + begin},
                                     task.code + number * chunk.code_size(chunk.values()));
  }

  template <class W>
  WPR_ON_DEVICE void finish(W& w, uint64_t values) const {
    const uint32_t tail = task.raw_size % 4;
    const uint64_t size = code_size(chunk, task.raw_size);
    cuda::copy_few(w, task.raw + 4 * values, task.code + size - tail, tail);
    std::byte* const rest = kFeedback ? task.residual + 4 * values : nullptr;
    cuda::Report* const report = task.report;
    w.each(
        [=](uint32_t lane) {
          if (kFeedback && lane < tail) rest[lane] = std::byte{0};
          if (lane == 0) report->written = size;
        },
        w.lane());
  }
};

template <class C, bool kAdd>
struct DecodeChunks {
  static constexpr unsigned kWarps = 4;
  C chunk;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t values = task.raw_size / 4, number = w.block() * kWarps + w.warp();
    const uint64_t begin = number * chunk.values();
    if (number == 0 && !kAdd) {
      const uint32_t tail = task.raw_size % 4;
      cuda::copy_few(w, task.code + task.code_size - tail, task.raw + 4 * values, tail);
    }
    if (begin >= values) return;
    const uint64_t n = values - begin < chunk.values() ? values - begin : chunk.values();
    if (!chunk.template decode<kAdd>(w, task.code + number * chunk.code_size(chunk.values()),
                                     static_cast<uint32_t>(n), task.raw + 4 * begin))
      w.at_most(&task.report->first_bad, number);
  }
};

// For cuda::KernelOf.
template <class C>
struct WarpChunks {
  static constexpr const char* kName = C::kName;
  static constexpr bool kGradients = true;

  static Status check_encode(const Args& args, size_t size, size_t room) {
    return check_room(kName, code_size(C(args), size), size, room);
  }
  static Status check_decode(const Args& args, size_t size, size_t raw_size) {
    return check_size(kName, code_size(C(args), raw_size), size, raw_size);
  }
  static size_t scratch(const Args&, size_t) { return 0; }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const EncodeChunks<C, kFeedback> kernel{C(args), task, args.first};
    return device.launch(kernel, blocks(kernel.chunk, task.raw_size, kernel.kWarps));
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    const DecodeChunks<C, kAdd> kernel{C(args), task};
    return device.launch(kernel, blocks(kernel.chunk, task.raw_size, kernel.kWarps));
  }

 private:
  // One at least, for the last bytes.
  static uint64_t blocks(const C& chunk, size_t raw_size, size_t warps) {
    const size_t each = warps * chunk.values();
    return std::max<uint64_t>(1, (raw_size / 4 + each - 1) / each);
  }
};

// ---- what chunks are made of --------------------------------------------------------------

constexpr uint32_t kTurn = 128;  // values that a warp has at once: four rows of 32

// Rows of float32 values i to i + 127 of n; with feedback, of what is encoded.
template <bool kFeedback, class W>
WPR_ON_DEVICE auto take_rows(W& w, const std::byte* src, const std::byte* residual, uint32_t i,
                             uint32_t n) {
  const auto x = w.rows(src + 4 * i, n - i);
  typename W::template Four<float> t;
  if constexpr (kFeedback) {
    const auto rest = w.rows(residual + 4 * i, n - i);
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      t[k] = w.map(
          [](uint32_t a, uint32_t b) { return std::bit_cast<float>(a) + std::bit_cast<float>(b); },
          x[k], rest[k]);
  } else {
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      t[k] = w.map([](uint32_t a) { return std::bit_cast<float>(a); }, x[k]);
  }
  return t;
}

template <bool kAdd, class W, class Floats>
WPR_ON_DEVICE void give_rows(W& w, std::byte* dst, uint32_t i, uint32_t n, const Floats& x) {
  typename W::template Four<uint32_t> words;
  if constexpr (kAdd) {
    const auto before = w.rows(dst + 4 * i, n - i);
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      words[k] = w.map(
          [](uint32_t a, float b) { return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + b); },
          before[k], x[k]);
  } else {
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      words[k] = w.map([](float a) { return std::bit_cast<uint32_t>(a); }, x[k]);
  }
  w.put_rows(dst + 4 * i, n - i, words);
}

// Sums, in the order of bit_planes.hpp: lanes 0 to 15 have the partial ones.
template <class W>
class RowSums {
 public:
  WPR_ON_DEVICE explicit RowSums(W& w) : sums_(w.all(0.0f)) {}
  template <class Floats>
  WPR_ON_DEVICE void add(W& w, const Floats& row) {
    sums_ = w.map([](float a, float b) { return a + b; }, sums_, row);
    sums_ = w.map([](float a, float b) { return a + b; }, sums_, w.down(row, kSums));
  }
  WPR_ON_DEVICE float total(W& w) const {
    auto sums = sums_;
    for (unsigned apart = kSums / 2; apart > 0; apart /= 2)
      sums = w.map([](float a, float b) { return a + b; }, sums, w.down(sums, apart));
    return w.from(sums, 0);
  }

 private:
  typename W::template Of<float> sums_;
};

// Groups of this turn that have values.
static constexpr uint32_t groups_at(uint32_t i, uint32_t n) {
  const uint32_t left = (n - i + 31) / 32;
  return left < 4 ? left : 4;
}

// The first `n` of the 4 * kPlanes words, the planes of up to four groups.
template <unsigned kPlanes, class W>
WPR_ON_DEVICE void put_words(W& w, std::byte* to, uint32_t n, const uint32_t (&word)[4 * kPlanes]) {
  w.each(
      [&](uint32_t lane) {
        uint32_t own = word[0];
        WPR_UNROLL
        for (unsigned k = 1; k < 4 * kPlanes; ++k) own = lane == k ? word[k] : own;
        if (lane < n) cuda::put(to + 4 * lane, own);
      },
      w.lane());
}

// n words 0.
template <class W>
WPR_ON_DEVICE void clear_words(W& w, std::byte* to, uint32_t n) {
  for (uint32_t i = 0; i < n; i += cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < n) cuda::put<uint32_t>(to + 4 * (i + lane), 0);
        },
        w.lane());
}

// All bits of n words.
template <class W>
WPR_ON_DEVICE uint32_t bits_of_words(W& w, const std::byte* from, uint32_t n) {
  auto bits = w.all(uint32_t{0});
  for (uint32_t i = 0; i < n; i += cuda::kLanes)
    bits = w.map(
        [=](uint32_t all, uint32_t lane) {
          return all | (i + lane < n ? cuda::get<uint32_t>(from + 4 * (i + lane)) : 0);
        },
        bits, w.lane());
  return w.either(bits);
}

// A word that is the same for all lanes.
template <class W>
WPR_ON_DEVICE void put_one(W& w, std::byte* to, uint32_t word) {
  w.each(
      [=](uint32_t lane) {
        if (lane == 0) cuda::put(to, word);
      },
      w.lane());
}

// As write_nan(): NaN in every scale, all bits 0, nothing left over.
template <bool kFeedback, class W>
WPR_ON_DEVICE void put_nan(W& w, uint32_t n_scales, uint32_t n_words, uint32_t n, std::byte* code,
                           std::byte* residual) {
  w.settle();  // what other lanes have put there comes first
  clear_words(w, code + 4 * n_scales, n_words);
  for (uint32_t i = 0; i < n_scales; ++i) put_one(w, code + 4 * i, kNan);
  if constexpr (kFeedback) clear_words(w, residual, n);
}

// Whether the last group's words, `planes` of them, have bits only for values that there are.
template <class W>
WPR_ON_DEVICE bool zeros_after(W& w, const std::byte* groups, uint32_t n, uint32_t planes) {
  const uint32_t used = n % kGroup;
  return used == 0 || bits_of_words(w, groups + n / kGroup * 4 * planes, planes) >> used == 0;
}

}  // namespace wirepress::chunks
