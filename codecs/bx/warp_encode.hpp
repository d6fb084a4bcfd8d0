// SPDX-License-Identifier: Apache-2.0
// The encoder of warp.hpp.
#pragma once

#include "codecs/bx/warp_chunks.hpp"

namespace wirepress::bx {

template <typename F>
struct Encode {
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
    if (w.warp() == 0) {
      const uint64_t number = cuda::Places(task.scratch).next(w);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->number = number;
          },
          w.lane());
    }
    w.sync();
    const uint64_t number = told->number, values = task.raw_size / sizeof(Word);
    const uint64_t left = values - number * kChunk;  // 0 in a block without values
    const uint32_t n = static_cast<uint32_t>(left < kChunk ? left : kChunk);
    const uint32_t groups = (n + kGroup - 1) / kGroup;
    const uint32_t first = w.warp() * kWarpValues;

    const Quantiser<F> quantise(setting);
    const auto words = w.template groups<Word>(task.raw + sizeof(Word) * (number * kChunk + first),
                                               first < n ? n - first : 0);
    typename W::template Sixteen<Word> q;
    WPR_UNROLL
    for (unsigned k = 0; k < kGroup; ++k) q[k] = w.map(quantise, words[k]);
    const unsigned m = setting.m;
    const auto header = w.of_groups([=](const Word* own) { return describe<F>(own, m); }, q);
    const auto planes = w.map(
        [=](const GroupHeader& h) { return h.present ? planes_of<F>(h.shape, m) : 0; }, header);
    const uint32_t present =
        w.ballot(w.map([](const GroupHeader& h) { return h.present; }, header));
    uint32_t planes_here = 0;
    const auto planes_in_warp = cuda::sums_before(w, planes, &planes_here);
    w.each(
        [=, warp = w.warp()](uint32_t lane) {
          if (lane != 0) return;
          told->present[warp] = static_cast<uint32_t>(std::popcount(present));
          told->planes[warp] = planes_here;
        },
        w.lane());
    w.sync();

    const Sums of_present(w, told->present), of_planes(w, told->planes);
    const bool dense = of_present.all == groups;
    const uint32_t bitmap = dense ? 0 : static_cast<uint32_t>(bitmap_size(groups));
    const uint32_t headers_at = kHeadSize + bitmap;
    const uint32_t planes_at = headers_at + of_present.all * sizeof(Header);
    const uint32_t size = groups == 0           ? 0
                          : of_present.all == 0 ? kHeadSize
                                                : planes_at + 2 * of_planes.all;
    if (w.warp() == 0) {
      if (groups > 0)
        w.each(
            [=](uint32_t lane) {
              if (lane == 0) store16(code, chunk_head(size - kHeadSize, of_present.all, groups));
            },
            w.lane());
      const uint64_t begin = cuda::Places(task.scratch).before(w, number, size);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->begin = begin;
          },
          w.lane());
    }
    if (of_present.all > 0 && !dense)
      w.each(
          [=, warp = w.warp()](uint32_t lane) {
            if (lane % 16 == 0 && warp * cuda::kLanes + lane < groups)
              store16(code + kHeadSize + (warp * cuda::kLanes + lane) / 8, present >> lane);
          },
          w.lane());
    if (present != 0) {
      const Setting own_setting = setting;
      w.of_groups(
          [=](const Word* own, uint32_t lane, const GroupHeader& h, uint32_t before) {
            if (!h.present) return 0;
            const uint32_t below =
                static_cast<uint32_t>(std::popcount(present & ((1u << lane) - 1)));
            std::byte* const to = code + headers_at + (of_present.before + below) * sizeof(Header);
            put_header(to, header_word<F>(h));
            encode_group<F>(own_setting, h, own,
                            code + planes_at + 2 * (of_planes.before + before));
            return 0;
          },
          q, w.lane(), header, planes_in_warp);
    }
    w.sync();
    write(w, code, told->begin, size, number, values);
  }

 private:
  // Two bytes at a time: a header of float64 has four, at any even address.
  static WPR_ON_DEVICE void put_header(std::byte* to, Header word) {
    store16(to, word & 0xFFFF);
    if constexpr (sizeof(Header) == 4) store16(to + 2, word >> 16);
  }

  template <class W>
  WPR_ON_DEVICE void write(W& w, const std::byte* code, uint64_t begin, uint32_t size,
                           uint64_t number, uint64_t values) const {
    const uint32_t tail = task.raw_size % sizeof(Word);
    const bool last = (number + 1) * kChunk >= values;
    const uint64_t end = begin + size + (last ? tail : 0);
    cuda::Report* const report = task.report;
    if (end > task.code_size) {
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) report->full = 1;
          },
          w.lane());
      return;
    }
    cuda::store_halves<kWarps>(w, code, task.code + begin, size / 2);
    if (!last || w.warp() != 0) return;
    cuda::copy_few(w, task.raw + values * sizeof(Word), task.code + begin + size, tail);
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) report->written = end;
        },
        w.lane());
  }
};

}  // namespace wirepress::bx
