// SPDX-License-Identifier: Apache-2.0
// tbq on a GPU: a warp has a chunk, of which it keeps the marks in registers, those of 128 values a
// lane, until it knows where the chunk's code begins. Long because both ways and the walk share how
// a chunk stands in the code.
#pragma once

#include "codecs/common/chunked/warps.hpp"
#include "codecs/tbq/tbq.hpp"
#include "engines/cuda/copy.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress::tbq {

constexpr unsigned kWarpsOfBlock = 4;
constexpr uint64_t chunks_of(size_t raw_size) { return (raw_size / 4 + kValues - 1) / kValues; }

template <bool kFeedback>
struct Encode {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  static constexpr unsigned kLeastBlocks = 8;  // or ptxas spills to have more
  Rule rule;
  cuda::Task task;

  template <class W>
  struct Marked {
    typename W::template Four<uint32_t> set, negative;  // of groups 4 lane + k
    float level;
    bool finite;
  };

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t number = cuda::Places(task.scratch).next(w), values = task.raw_size / 4;
    const uint64_t begin = number * kValues;
    if (number > 0 && begin >= values) return;
    const uint64_t left = values - begin;
    const uint32_t n = static_cast<uint32_t>(left < kValues ? left : kValues);
    const Marked<W> marks = mark(w, begin, n);
    uint32_t count = 0;
    const auto own = w.map(
        [](uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
          return static_cast<uint32_t>(std::popcount(a) + std::popcount(b) + std::popcount(c) +
                                       std::popcount(d));
        },
        marks.set[0], marks.set[1], marks.set[2], marks.set[3]);
    const auto before = cuda::sums_before(w, own, &count);
    const bool list = list_pays(count, 1, n);
    const uint32_t head = !marks.finite ? kNanHead : list ? count : 1u << 16;
    const size_t size = n == 0 ? 0 : rule.head_size() + body_size(head, n);

    const uint64_t at = cuda::Places(task.scratch).before(w, number, size);
    const bool last = begin + kValues >= values;
    const uint32_t tail = last ? task.raw_size % 4 : 0;
    const uint64_t end = at + size + tail;
    cuda::Report* const report = task.report;
    const bool full = end > task.code_size;
    w.each(
        [=](uint32_t lane) {
          if (lane == 0 && full) report->full = 1;
          if (lane == 0 && last && !full) report->written = end;
        },
        w.lane());
    if (full) return;
    std::byte* const code = task.code + at;
    if (last) finish(w, values, tail, code + size);
    if (n == 0) return;
    chunks::put_one(w, code, head);
    if (rule.mean)
      chunks::put_one(w, code + 4,
                      !marks.finite ? chunks::kNan
                      : count == 0  ? 0
                                    : chunks::word_of(marks.level));
    std::byte* const body = code + rule.head_size();
    if (marks.finite)
      list ? put_list(w, marks, before, count, body) : put_planes(w, marks, n, body);
  }

 private:
  template <class W>
  WPR_ON_DEVICE void finish(W& w, uint64_t values, uint32_t tail, std::byte* to) const {
    cuda::copy_few(w, task.raw + 4 * values, to, tail);
    if constexpr (kFeedback) {
      std::byte* const rest = task.residual + 4 * values;
      w.each(
          [=](uint32_t lane) {
            if (lane < tail) rest[lane] = std::byte{0};
          },
          w.lane());
    }
  }

  // The marks of n values, and the residual.
  template <class W>
  WPR_ON_DEVICE Marked<W> mark(W& w, uint64_t begin, uint32_t n) const {
    using namespace chunks;
    const std::byte* const src = task.raw + 4 * begin;
    std::byte* const residual = kFeedback ? task.residual + 4 * begin : nullptr;
    Marked<W> marks;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) marks.set[k] = marks.negative[k] = w.all(uint32_t{0});
    const float level = rule.mean ? mean_level(w, src, residual, n) : rule.tau;
    const uint32_t floor = Rule::floor_of(level);
    auto largest = w.all(uint32_t{0});
    for (uint32_t i = 0; i < n; i += kTurn) {
      auto t = take_rows<kFeedback>(w, src, residual, i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const auto size = w.map([](float x) { return word_of(x) & ~kSign; }, t[k]);
        largest = w.map([](uint32_t a, uint32_t b) { return a > b ? a : b; }, largest, size);
        const auto mark = w.map([=](uint32_t own) { return own > floor; }, size);
        const auto below = w.map([](bool b, float x) { return b && x < 0; }, mark, t[k]);
        const uint32_t set = w.ballot(mark), negative = w.ballot(below), keeper = i / kTurn;
        marks.set[k] =
            w.map([=](uint32_t own, uint32_t lane) { return lane == keeper ? set : own; },
                  marks.set[k], w.lane());
        marks.negative[k] =
            w.map([=](uint32_t own, uint32_t lane) { return lane == keeper ? negative : own; },
                  marks.negative[k], w.lane());
        if constexpr (kFeedback)
          t[k] = w.map(
              [=](float x, bool set_here, bool down) {
                return x - (down ? -level : set_here ? level : 0);
              },
              t[k], mark, below);
      }
      if constexpr (kFeedback) give_rows<false>(w, residual, i, n, t);
    }
    marks.level = level;
    marks.finite = finite(level) && w.most(largest) < kInfinity;
    if constexpr (kFeedback)
      if (!marks.finite) clear_words(w, residual, n);
    return marks;
  }

  // Not finite where a value is not.
  template <class W>
  WPR_ON_DEVICE float mean_level(W& w, const std::byte* src, const std::byte* residual,
                                 uint32_t n) const {
    chunks::RowSums<W> sums(w);
    for (uint32_t i = 0; i < n; i += chunks::kTurn) {
      const auto t = chunks::take_rows<kFeedback>(w, src, residual, i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        sums.add(
            w, w.map([](float x) { return chunks::float_of(chunks::word_of(x) & ~chunks::kSign); },
                     t[k]));
    }
    return rule.level(sums.total(w), n);
  }

  template <class W, class Lanes>
  static WPR_ON_DEVICE void put_list(W& w, const Marked<W>& marks, const Lanes& before,
                                     uint32_t count, std::byte* to) {
    auto at = before;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      at = w.map(
          [=](uint32_t lane, uint32_t next, uint32_t set, uint32_t negative) {
            for (; set != 0; set &= set - 1) {
              const uint32_t i = static_cast<uint32_t>(std::countr_zero(set));
              const uint32_t position = 32 * (4 * lane + k) + i;
              cuda::put(to + 2 * next++,
                        static_cast<uint16_t>(entry_of(position, 1, negative >> i & 1)));
            }
            return next;
          },
          w.lane(), at, marks.set[k], marks.negative[k]);
    w.each(
        [=](uint32_t lane) {
          if (lane == 0 && count % 2 != 0) cuda::put(to + 2 * count, uint16_t{0});
        },
        w.lane());
  }

  template <class W>
  static WPR_ON_DEVICE void put_planes(W& w, const Marked<W>& marks, uint32_t n, std::byte* to) {
    const uint32_t groups = static_cast<uint32_t>(groups_of(n));
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      w.each(
          [=](uint32_t lane, uint32_t set, uint32_t negative) {
            const uint32_t group = 4 * lane + k;
            if (group >= groups) return;
            cuda::put(to + kMarkSize * group, set);
            cuda::put(to + kMarkSize * group + 4, negative);
          },
          w.lane(), marks.set[k], marks.negative[k]);
  }
};

// Finds where chunks begin, from head to head: a place for each, in scratch memory.
template <bool kAdd>
struct Walk {
  static constexpr unsigned kWarps = 1;
  Rule rule;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t values = task.raw_size / 4, n_chunks = chunks_of(task.raw_size);
    uint64_t* const places = reinterpret_cast<uint64_t*>(task.scratch);
    uint64_t at = 0, number = 0;
    for (; number < n_chunks && task.code_size - at >= rule.head_size(); ++number) {
      const uint64_t left = values - number * kValues, n = left < kValues ? left : kValues;
      const uint32_t head = cuda::get<uint32_t>(task.code + at);
      if (rule.mean && !valid_head(rule, head, cuda::get<uint32_t>(task.code + at + 4), n)) break;
      if (!rule.mean && !valid_head(rule, head, 0, n)) break;
      const uint64_t size = rule.head_size() + body_size(head, n);
      if (size > task.code_size - at) break;
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) places[number] = at + 1;
          },
          w.lane());
      at += size;
    }
    const uint32_t tail = task.raw_size % 4;
    if (number < n_chunks || task.code_size - at != tail)
      w.at_most(&task.report->first_bad, number);
    else if (!kAdd)
      cuda::copy_few(w, task.code + at, task.raw + task.raw_size - tail, tail);
  }
};

template <bool kAdd>
struct Decode {
  static constexpr unsigned kWarps = kWarpsOfBlock;
  Rule rule;
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t values = task.raw_size / 4, number = w.block() * kWarps + w.warp();
    if (number * kValues >= values) return;
    const uint64_t place = reinterpret_cast<const uint64_t*>(task.scratch)[number];
    if (place == 0) return;  // the walk ended before it
    const uint64_t left = values - number * kValues;
    const uint32_t n = static_cast<uint32_t>(left < kValues ? left : kValues);
    const std::byte* const code = task.code + place - 1;
    const std::byte* const body = code + rule.head_size();
    std::byte* const dst = task.raw + 4 * kValues * number;
    const uint32_t head = cuda::get<uint32_t>(code);
    const float level = rule.mean ? cuda::get<float>(code + 4) : rule.tau;
    if (head == kNanHead)
      fill(w, chunks::float_of(chunks::kNan), n, dst);
    else if (!(head >> 16 > 0 ? expand(w, body, head >> 16, n, level, dst)
                              : scatter(w, body, head, n, level, dst)))
      w.at_most(&task.report->first_bad, number);
  }

 private:
  template <class W>
  static WPR_ON_DEVICE void fill(W& w, float value, uint32_t n, std::byte* dst) {
    typename W::template Four<float> x;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) x[k] = w.all(value);
    for (uint32_t i = 0; i < n; i += chunks::kTurn) chunks::give_rows<kAdd>(w, dst, i, n, x);
  }

  // As valid_planes(), while values are written.
  template <class W>
  static WPR_ON_DEVICE bool expand(W& w, const std::byte* body, uint32_t planes, uint32_t n,
                                   float level, std::byte* dst) {
    using namespace chunks;
    const uint32_t used = n % kGroup == 0 ? ~0u : (1u << n % kGroup) - 1;
    uint32_t wrong = 0, top = 0;
    for (uint32_t i = 0; i < n; i += kTurn) {
      typename W::template Four<float> x;
      const uint32_t n_groups = groups_at(i, n);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k) {
        const std::byte* const group = body + (i / kGroup + k) * 4 * (planes + 1);
        auto magnitude = w.all(uint32_t{0});
        uint32_t any = 0, negative = 0;
        for (uint32_t p = 0; k < n_groups && p <= planes; ++p) {
          const uint32_t word = cuda::get<uint32_t>(group + 4 * p);
          if (p == planes) {
            negative = word;
            break;
          }
          any |= word;
          if (p + 1 == planes) top |= word;
          magnitude =
              w.map([=](uint32_t own, uint32_t lane) { return own | (word >> lane & 1) << p; },
                    magnitude, w.lane());
        }
        wrong |= negative & ~any;
        if (i + kGroup * (k + 1) >= n && k < n_groups) wrong |= any & ~used;
        x[k] = w.map(
            [=](uint32_t own, uint32_t lane) {
              const float size = static_cast<float>(own) * level;
              return negative >> lane & 1 ? -size : size;
            },
            magnitude, w.lane());
      }
      give_rows<kAdd>(w, dst, i, n, x);
    }
    return wrong == 0 && top != 0;
  }

  template <class W>
  WPR_ON_DEVICE bool scatter(W& w, const std::byte* body, uint32_t count, uint32_t n, float level,
                             std::byte* dst) const {
    if (!valid(w, body, count, n)) return false;
    fill(w, 0, n, dst);  // added to -0, the +0 of what is not listed makes +0
    w.settle();
    for (uint32_t i = 0; i < count; i += cuda::kLanes)
      w.each(
          [=](uint32_t lane) {
            if (i + lane >= count) return;
            const uint32_t entry = cuda::get<uint16_t>(body + 2 * (i + lane));
            std::byte* const at = dst + 4 * entry_position(entry);
            const float x = entry_value(entry, level);
            cuda::put(at, kAdd ? cuda::get<float>(at) + x : x);
          },
          w.lane());
    return true;
  }

  // As valid_list().
  template <class W>
  WPR_ON_DEVICE bool valid(W& w, const std::byte* body, uint32_t count, uint32_t n) const {
    auto most = w.all(uint32_t{1});
    uint32_t next = 0, wrong = 0;
    for (uint32_t i = 0; i < count; i += cuda::kLanes) {
      const auto entry = w.map(
          [=](uint32_t lane) {
            return i + lane < count ? uint32_t{cuda::get<uint16_t>(body + 2 * (i + lane))} : 0;
          },
          w.lane());
      const auto after = w.map([](uint32_t own) { return entry_position(own) + 1; }, entry);
      const uint32_t least = next;
      wrong |= w.ballot(w.map(
          [=](uint32_t lane, uint32_t own, uint32_t before) {
            return i + lane < count && own <= (lane == 0 ? least : before);
          },
          w.lane(), after, w.up(after, 1)));
      most = w.map(
          [](uint32_t a, uint32_t own) {
            const uint32_t magnitude = entry_magnitude(own);
            return a > magnitude ? a : magnitude;
          },
          most, entry);
      next = w.from(after, count - i < cuda::kLanes ? count - i - 1 : cuda::kLanes - 1);
    }
    if (wrong != 0 || next > n) return false;
    if (count % 2 != 0 && cuda::get<uint16_t>(body + 2 * count) != 0) return false;
    const uint32_t largest = w.most(most);
    if (rule.mean && largest > 1) return false;
    return list_pays(count, static_cast<size_t>(std::bit_width(largest)), n);
  }
};

// For cuda::KernelOf.
struct WarpBlocks {
  static constexpr const char* kName = "tbq";
  static constexpr bool kGradients = true;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t, size_t) { return {}; }
  static size_t scratch(const Args&, size_t size) {
    return cuda::Places::size(std::max<uint64_t>(1, chunks_of(size)));
  }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args& args, const cuda::Task& task) {
    const size_t most = bound(args, task.raw_size);
    if (kFeedback && task.code_size < most)  // before the residual changes
      return fail(Code::kDstTooSmall, "tbq: a code of %zu bytes may need %zu, has %zu",
                  task.raw_size, most, task.code_size);
    return device.launch(Encode<kFeedback>{Rule(args), task}, blocks(task.raw_size));
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args& args, const cuda::Task& task) {
    WPR_TRY(device.launch(Walk<kAdd>{Rule(args), task}, 1));
    if (task.raw_size < 4) return {};
    return device.launch(Decode<kAdd>{Rule(args), task}, blocks(task.raw_size));
  }

 private:
  // One at least, for the last bytes.
  static uint64_t blocks(size_t raw_size) {
    return std::max<uint64_t>(1, (chunks_of(raw_size) + kWarpsOfBlock - 1) / kWarpsOfBlock);
  }
};

}  // namespace wirepress::tbq
