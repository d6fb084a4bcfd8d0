// SPDX-License-Identifier: Apache-2.0
// bx on a GPU. A block of 8 warps has a chunk, a lane a group of 16 values in its registers: what
// is asked of a group is asked of one lane. The code of a chunk is made in shared memory, while the
// block learns where it begins.
#pragma once

#include "codecs/bx/portable.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::bx {

constexpr unsigned kWarpsOfChunk = kChunkGroups / cuda::kLanes;
constexpr unsigned kWarpValues = cuda::kLanes * kGroup;

// The last bytes, which are no whole value, by one warp.
template <class W>
WPR_DEVICE void copy_tail(W& w, const std::byte* from, std::byte* to, uint32_t n) {
  w.each(
      [=](uint32_t lane) {
        if (lane < n) to[lane] = from[lane];
      },
      w.lane());
}

// What the warps of a block tell each other, in shared memory behind the chunk's code.
struct Told {
  uint64_t number;                  // of the chunk
  uint64_t begin;                   // of its code
  uint32_t present[kWarpsOfChunk];  // groups, of a warp
  uint32_t planes[kWarpsOfChunk];
};

template <typename F>
constexpr size_t code_room() {
  return (F::kMost + 15) / 16 * 16;
}

// Sums over the warps of a block.
struct Sums {
  uint32_t before = 0, all = 0;
  template <class W>
  WPR_DEVICE Sums(W& w, const uint32_t* of_warp) {
    for (unsigned i = 0; i < kWarpsOfChunk; ++i) {
      before += i < w.warp() ? of_warp[i] : 0;
      all += of_warp[i];
    }
  }
};

template <typename F>
struct Encode {
  static constexpr unsigned kWarps = kWarpsOfChunk;
  static constexpr size_t kShared = code_room<F>() + sizeof(Told);
  static constexpr bool kBarriers = true;
  using Word = typename F::Word;
  using Header = typename F::Header;

  cuda::Task task;
  Setting setting;

  template <class W>
  WPR_DEVICE void operator()(W& w) const {
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
  static WPR_DEVICE void put_header(std::byte* to, Header word) {
    store16(to, word & 0xFFFF);
    if constexpr (sizeof(Header) == 4) store16(to + 2, word >> 16);
  }

  template <class W>
  WPR_DEVICE void write(W& w, const std::byte* code, uint64_t begin, uint32_t size, uint64_t number,
                        uint64_t values) const {
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
    copy_tail(w, task.raw + values * sizeof(Word), task.code + begin + size, tail);
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) report->written = end;
        },
        w.lane());
  }
};

// Finds where chunks begin, from head to head: a place for each, in scratch memory.
template <typename F>
struct Walk {
  static constexpr unsigned kWarps = 1;
  static constexpr size_t kShared = 0;
  static constexpr bool kBarriers = false;
  cuda::Task task;

  template <class W>
  WPR_DEVICE void operator()(W& w) const {
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
      copy_tail(w, task.code + at, task.raw + task.raw_size - tail, tail);
  }
};

template <typename F>
struct Decode {
  static constexpr unsigned kWarps = kWarpsOfChunk;
  static constexpr size_t kShared = code_room<F>() + sizeof(Told);
  static constexpr bool kBarriers = true;
  using Word = typename F::Word;
  using Header = typename F::Header;

  cuda::Task task;
  Setting setting;

  template <class W>
  WPR_DEVICE void operator()(W& w) const {
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
  static WPR_DEVICE Header header_in(const std::byte* from) {
    Header word = static_cast<Header>(load16(from));
    if constexpr (sizeof(Header) == 4) word |= load16(from + 2) << 16;
    return word;
  }

  // As Layout::read() and decode_chunk() of portable.hpp. False: corrupt.
  template <class W>
  WPR_DEVICE bool parts(W& w, const std::byte* code, Told* told, unsigned head, uint32_t size,
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

// For cuda::KernelOf.
class Warps {
 private:
  // One at least, for the last bytes.
  template <typename F>
  static uint64_t chunks(size_t raw_size) {
    return std::max<uint64_t>(1, (raw_size / sizeof(typename F::Word) + kChunk - 1) / kChunk);
  }

  template <class Function>
  static auto with_format(const Args& args, Function function) {
    switch (args.dtype) {
      case DType::kFloat16:
        return function.template operator()<Float16>();
      case DType::kBfloat16:
        return function.template operator()<Bfloat16>();
      case DType::kFloat64:
        return function.template operator()<Float64>();
      default:
        return function.template operator()<Float32>();
    }
  }

 public:
  static constexpr const char* kName = "bx";
  static constexpr bool kGradients = false;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args& args, size_t size) {
    return with_format(args, [&]<typename F>() { return cuda::Places::size(chunks<F>(size)); });
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    return with_format(args, [&]<typename F>() {
      return device.launch(Encode<F>{task, setting_of(args)}, chunks<F>(task.raw_size));
    });
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    return with_format(args, [&]<typename F>() -> Status {
      WPR_TRY(device.launch(Walk<F>{task}, 1));
      if (task.raw_size < sizeof(typename F::Word)) return {};
      return device.launch(Decode<F>{task, setting_of(args)}, chunks<F>(task.raw_size));
    });
  }
};

}  // namespace wirepress::bx
