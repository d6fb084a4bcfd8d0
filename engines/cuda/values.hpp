// SPDX-License-Identifier: Apache-2.0
// Values that a frame holds as they are, on a stream: those of a block whose code, made with error
// feedback, is not worth storing, and those that are added to others, or looked at.
#pragma once

#include <bit>

#include "base/noise.hpp"
#include "engines/cuda/all_blocks.hpp"
#include "engines/cuda/copy.hpp"

namespace wirepress::cuda {

// Says of a code that it is none that is stored.
struct Weigh {
  static constexpr unsigned kWarps = 1;
  Report* report;
  uint64_t limit;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Report* const to = report;
    w.each(
        [=, most = limit](uint32_t lane) {
          if (lane == 0 && (to->written == 0 || to->written > most)) to->full = 1;
        },
        w.lane());
  }
};

// A kernel of a block's decoding, where the block's report has what it takes: how long the code is
// the report says. The size is put in the launch's own table, by all threads: a copy of the kernel
// would lie on their stacks.
template <class K, class When>
struct OfReport : LeastBlocks<K> {
  static constexpr unsigned kWarps = K::kWarps;
  static constexpr size_t kShared = shared_by<K>();
  K kernel;
  const Report* report;

  OfReport(const K& of, const Report* block) : kernel(of), report(block) {}

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    if (!When::holds(*report)) return;
    if constexpr (requires { kernel.task.code_size; })
      const_cast<K&>(kernel).task.code_size = report->written;
    kernel(w);
  }
};

// Its code is not stored.
struct Unstored {
  WPR_ON_DEVICE static bool holds(const Report& report) { return report.full != 0; }
};
// Its code was made, and it is no other's to make.
struct Made {
  WPR_ON_DEVICE static bool holds(const Report& report) {
    return report.written != 0 && report.full == 0 && report.elsewhere == 0 &&
           report.first_bad == Report::kNone;
  }
};

// Notes what a codec launches to decode a code, of blocks whose report has what it takes.
template <class Queue, class When>
class PlannerWhen {
 public:
  PlannerWhen(StreamPlan* plan, const Report* report) : planner_(plan), report_(report) {}

  template <class K>
  Status launch(const K& kernel, uint64_t blocks) noexcept {
    return planner_.launch(OfReport<K, When>(kernel, report_), blocks);
  }
  Status clear(std::byte* at, uint64_t size) noexcept {
    return size == 0 ? Status() : launch(Clear{at, size}, Clear::blocks(size));
  }

 private:
  Planner<Queue> planner_;
  const Report* report_;
};

// Whether kernels did what they should for all blocks.
struct CheckReports {
  static constexpr unsigned kWarps = 4;
  Reports all;
  bool made;  // codes, of which none is empty
  static constexpr uint64_t blocks(uint64_t n) {
    return (n + kWarps * kLanes - 1) / (kWarps * kLanes);
  }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    w.each(
        [of = *this, first = (w.block() * kWarps + w.warp()) * kLanes](uint32_t lane) {
          if (first + lane >= of.all.n) return;
          const Report& report = of.all.first[first + lane];
          if (report.first_bad != Report::kNone || report.full != 0 || report.elsewhere != 0 ||
              (of.made && report.written == 0))
            *of.all.all_well = 0;
        },
        w.lane());
  }
};

// to[i] = base[i] + from[i], of float32, unless *all_well says no.
struct AddValues {
  static constexpr unsigned kWarps = 4;
  static constexpr uint32_t kEach = 1024;  // values of a warp
  std::byte* to;
  const std::byte* base;
  const std::byte* from;
  uint64_t n;
  const uint64_t* all_well;  // nullptr: always
  static constexpr uint64_t blocks(uint64_t n) {
    return (n + kWarps * kEach - 1) / (kWarps * kEach);
  }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    constexpr uint32_t kTurn = 4 * kLanes;
    if (all_well != nullptr && *all_well == 0) return;
    const uint64_t first = (w.block() * kWarps + w.warp()) * kEach;
    const uint64_t end = first + kEach < n ? first + kEach : n;
    for (uint64_t i = first; i < end; i += kTurn) {
      const auto left = static_cast<uint32_t>(end - i);
      auto sum = w.rows(base + 4 * i, left);
      const auto more = w.rows(from + 4 * i, left);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        sum[k] = w.map(
            [](uint32_t a, uint32_t b) {
              return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
            },
            sum[k], more[k]);
      w.put_rows(to + 4 * i, left, sum);
    }
  }
};

// A block of warps copies 16 KiB, unless *all_well says no.
struct PutBytes {
  static constexpr unsigned kWarps = 4;
  static constexpr uint64_t kEach = 4096;  // of a warp
  Putting of;
  static constexpr uint64_t blocks(uint64_t size) {
    return (size + kWarps * kEach - 1) / (kWarps * kEach);
  }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t first = (w.block() * kWarps + w.warp()) * kEach;
    if (*of.reports.all_well == 0 || first >= of.size) return;
    copy_any(w, of.from + first, of.to + first, of.size - first < kEach ? of.size - first : kEach);
  }
};

// A block of warps looks at a block of the frame, a warp at a window.
struct FindNoise {
  static constexpr unsigned kWarps = noise::kWindows;
  static constexpr size_t kShared = 256 * sizeof(uint32_t);  // counts of all values of bytes
  static constexpr uint32_t kPeeked = 1u << 31;              // of a value that was peeked at
  Probing of;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    const uint64_t at = w.block() * of.block_size, left = of.raw_size - at;
    const uint64_t size = left < of.block_size ? left : of.block_size;
    if (size < noise::kLeastSize) return;
    std::byte* const counts = w.shared();
    std::byte* const own = counts + 4 * kLanes * w.warp();
    w.each([=](uint32_t lane) { put(own + 4 * lane, uint32_t{0}); }, w.lane());
    w.sync();
    const std::byte* const window = of.raw + at + w.warp() * noise::step_of(size);
    w.each(
        [=](uint32_t lane) {
          for (uint32_t i = lane; i < noise::kWindow; i += kLanes) {
            std::byte* const count = counts + 4 * static_cast<uint32_t>(window[i]);
            W::add_to(count, 1);
            if (i < noise::kPeek) W::set_bits(count, kPeeked);
          }
        },
        w.lane());
    w.sync();
    if (w.warp() == 0) judge(w, counts, of.reports + w.block());
  }

 private:
  template <class W>
  static WPR_ON_DEVICE void judge(W& w, const std::byte* counts, Report* report) {
    auto weight = w.all(uint32_t{0}), peeked = w.all(uint32_t{0});
    for (uint32_t i = 0; i < 256; i += kLanes) {
      const auto count =
          w.map([=](uint32_t lane) { return get<uint32_t>(counts + 4 * (i + lane)); }, w.lane());
      weight = w.map([](uint32_t sum, uint32_t n) { return sum + noise::weight(n & ~kPeeked); },
                     weight, count);
      peeked = w.map([](uint32_t sum, uint32_t n) { return sum + n / kPeeked; }, peeked, count);
    }
    if (w.sum(peeked) < noise::kFewValues || w.sum(weight) >= noise::kMostWeight) return;
    w.each(
        [=](uint32_t lane) {
          if (lane == 0) *report = {0, Report::kNone, Report::kNoise, 0};
        },
        w.lane());
  }
};

// What the values lack of the sum is kept.
struct KeepRest {
  static constexpr unsigned kWarps = 4;
  Keeping of;
  static constexpr uint64_t blocks(uint64_t n) { return AddValues::blocks(n); }

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    constexpr uint32_t kTurn = 4 * kLanes, kEach = AddValues::kEach;
    if (*of.reports.all_well == 0) return;
    const uint64_t n = of.size / 4, first = (w.block() * kWarps + w.warp()) * kEach;
    const uint64_t end = first + kEach < n ? first + kEach : n;
    for (uint64_t i = first; i < end; i += kTurn) {
      const auto left = static_cast<uint32_t>(end - i);
      auto rest = w.rows(of.sum + 4 * i, left);
      const auto sent = w.rows(of.values + 4 * i, left);
      WPR_UNROLL
      for (unsigned k = 0; k < 4; ++k)
        rest[k] = w.map(
            [](uint32_t a, uint32_t b) {
              const auto kept =
                  std::bit_cast<uint32_t>(std::bit_cast<float>(a) - std::bit_cast<float>(b));
              return (kept & 0x7F800000u) == 0x7F800000u ? 0u : kept;
            },
            rest[k], sent[k]);
      w.put_rows(of.residual + 4 * i, left, rest);
    }
  }
};

// Says of each block whether its code is stored, or of one that is not well that the cores have it.
struct WeighAll {
  static constexpr unsigned kWarps = 4;
  Keeping of;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    w.each(
        [of = of, first = (w.block() * kWarps + w.warp()) * kLanes](uint32_t lane) {
          const uint64_t i = first + lane;
          if (i >= of.reports.n) return;
          Report& report = of.reports.first[i];
          const uint64_t limit = i + 1 == of.reports.n ? of.last_limit : of.limit;
          if (!Made::holds(report))
            report.elsewhere = 1;
          else if (report.written > limit)
            report.full = 1;
        },
        w.lane());
  }
};

// For DeviceStreams::add, of memory that the stream's device reaches.
template <class Queue>
Status note_add(const Adding& adding, StreamPlan* plan) noexcept {
  const uint64_t n = adding.size / 4;
  Planner<Queue> planner(plan);
  if (adding.reports.n != 0)
    WPR_TRY(planner.launch(CheckReports{adding.reports, false},
                           CheckReports::blocks(adding.reports.n)));
  return planner.launch(AddValues{adding.to, adding.base, adding.from, n, adding.reports.all_well},
                        AddValues::blocks(n));
}

// For DeviceStreams::put, of such memory.
template <class Queue>
Status note_put(const Putting& putting, StreamPlan* plan) noexcept {
  Planner<Queue> planner(plan);
  WPR_TRY(planner.launch(CheckReports{putting.reports, false},
                         CheckReports::blocks(putting.reports.n)));
  return planner.launch(PutBytes{putting}, PutBytes::blocks(putting.size));
}

// For DeviceStreams::probe, of such memory.
template <class Queue>
Status note_probe(const Probing& probing, StreamPlan* plan) noexcept {
  return Planner<Queue>(plan).launch(FindNoise{probing}, probing.n_blocks);
}

// For DeviceStreams::keep, of such memory.
template <class Queue>
Status note_keep(const Keeping& keeping, StreamPlan* plan) noexcept {
  Planner<Queue> planner(plan);
  const uint64_t blocks = CheckReports::blocks(keeping.reports.n);
  WPR_TRY(planner.launch(CheckReports{keeping.reports, true}, blocks));
  WPR_TRY(planner.launch(KeepRest{keeping}, KeepRest::blocks(keeping.size / 4)));
  return planner.launch(WeighAll{keeping}, blocks);
}

}  // namespace wirepress::cuda
