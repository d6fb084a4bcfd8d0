// SPDX-License-Identifier: Apache-2.0
// The decoder of warp.hpp: the walk over heads, then chunks side by side.
#pragma once

#include "codecs/bx/warp_chunks.hpp"

namespace wirepress::bx {

// Finds where chunks begin, from head to head: a place for each, in scratch memory.
template <typename F>
struct Walk {
  static constexpr unsigned kWarps = 1;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t values = task.raw_size / sizeof(typename F::Word);
    const uint64_t chunks = (values + kChunk - 1) / kChunk;
    uint64_t* const places = reinterpret_cast<uint64_t*>(task.scratch);
    uint64_t at = 0, number = 0;
    for (; number < chunks && task.code_size - at >= kHeadSize; ++number) {
      const uint64_t size = kHeadSize + 2 * (load16(task.code + at) & ~kDense);
      if (size > task.code_size - at || size > F::kMost) break;
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) places[number] = at + 1;
          },
          w.lane());
      at += size;
    }
    const uint32_t tail = task.raw_size % sizeof(typename F::Word);
    if (number < chunks || task.code_size - at != tail)
      w.at_most(&task.report->first_bad, number);
    else
      cuda::copy_few(w, task.code + at, task.raw + task.raw_size - tail, tail);
  }
};

template <typename F>
struct Decode {
  static constexpr unsigned kWarps = kWarpsOfChunk;
  static constexpr size_t kShared = code_room<F>() + sizeof(Told);
  using Word = typename F::Word;
  using Header = typename F::Header;

  cuda::Task task;
  Setting setting;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    std::byte* const code = w.shared();
    Told* const told = reinterpret_cast<Told*>(code + code_room<F>());
    const uint64_t number = w.block(), values = task.raw_size / sizeof(Word);
    const uint64_t place = reinterpret_cast<const uint64_t*>(task.scratch)[number];
    if (place == 0) return;  // the walk ended before it
    const std::byte* const from = task.code + place - 1;
    const uint64_t left = values - number * kChunk;
    const uint32_t n = static_cast<uint32_t>(left < kChunk ? left : kChunk);
    const uint32_t groups = (n + kGroup - 1) / kGroup;
    const uint32_t first = w.warp() * kWarpValues, n_here = first < n ? n - first : 0;
    std::byte* const to = task.raw + sizeof(Word) * (number * kChunk + first);
    const unsigned head = load16(from);
    if (head == 0) {
      w.put_groups(to, n_here, w.template make_groups<Word>([](Word*) {}));
      return;
    }
    const uint32_t size = kHeadSize + 2 * (head & ~kDense);
    cuda::load_halves<kWarps>(w, from, code, size / 2);
    w.sync();
    if (!parts(w, code, told, head, size, groups, to, n_here))
      w.at_most(&task.report->first_bad, number);
  }

 private:
  static WPR_ON_DEVICE Header header_in(const std::byte* from) {
    Header word = static_cast<Header>(load16(from));
    if constexpr (sizeof(Header) == 4) word |= load16(from + 2) << 16;
    return word;
  }

  // As Layout::read() and decode_chunk() of portable.hpp. False: corrupt.
  template <class W>
  WPR_ON_DEVICE bool parts(W& w, const std::byte* code, Told* told, unsigned head, uint32_t size,
                           uint32_t groups, std::byte* to, uint32_t n_here) const {
    const bool dense = (head & kDense) != 0;
    const uint32_t bitmap = dense ? 0 : static_cast<uint32_t>(bitmap_size(groups));
    const uint32_t headers_at = kHeadSize + bitmap;
    const unsigned warp = w.warp(), m = setting.m;
    bool good = size >= headers_at;
    const uint32_t present = w.ballot(w.map(
        [=](uint32_t lane) {
          const uint32_t group = warp * cuda::kLanes + lane;
          if (dense || !good) return dense && group < groups;
          return group < 8 * bitmap &&
                 (load16(code + kHeadSize + group / 16 * 2) >> group % 16 & 1) != 0;
        },
        w.lane()));
    const uint32_t those = groups > warp * cuda::kLanes ? groups - warp * cuda::kLanes : 0;
    good = good && (those >= cuda::kLanes || present >> those == 0);
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) told->present[warp] = static_cast<uint32_t>(std::popcount(present));
        },
        w.lane());
    w.sync();

    const Sums of_present(w, told->present);
    const uint32_t planes_at = headers_at + of_present.all * sizeof(Header);
    good = good && size >= planes_at;
    const auto header = w.map(
        [=](uint32_t lane) {
          if (!good || (present >> lane & 1) == 0) return GroupHeader{};
          const uint32_t below = static_cast<uint32_t>(std::popcount(present & ((1u << lane) - 1)));
          return header_of<F>(
              header_in(code + headers_at + (of_present.before + below) * sizeof(Header)));
        },
        w.lane());
    const uint32_t bad = w.ballot(w.map(
        [=](const GroupHeader& h) { return h.present && !good_header<F>(h.base, h.shape, m); },
        header));
    good = good && bad == 0;
    const auto planes = w.map(
        [=](const GroupHeader& h) { return h.present && good ? planes_of<F>(h.shape, m) : 0; },
        header);
    uint32_t planes_here = 0;
    const auto planes_in_warp = cuda::sums_before(w, planes, &planes_here);
    // One whose headers are bad has more planes than a chunk can have.
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) told->planes[warp] = good ? planes_here : kTooMany;
        },
        w.lane());
    w.sync();

    const Sums of_planes(w, told->planes);
    if (of_planes.all >= kTooMany || size != planes_at + 2 * of_planes.all) return false;
    if (n_here == 0) return true;
    const Setting own_setting = setting;
    const auto words = w.template make_groups<Word>(
        [=](Word* own, const GroupHeader& h, uint32_t before) {
          if (h.present)
            decode_group<F>(own_setting, h, code + planes_at + 2 * (of_planes.before + before),
                            own);
        },
        header, planes_in_warp);
    // What fills the last group is +0.
    const uint32_t beyond = w.ballot(w.of_groups(
        [=](const Word* own, uint32_t lane) {
          Word all = 0;
          WPR_UNROLL
          for (unsigned k = 0; k < kGroup; ++k) all |= kGroup * lane + k >= n_here ? own[k] : 0;
          return all != 0;
        },
        words, w.lane()));
    w.put_groups(to, n_here, words);
    return beyond == 0;
  }

  static constexpr uint32_t kTooMany = 1 << 24;
};

}  // namespace wirepress::bx
