// SPDX-License-Identifier: Apache-2.0
// zeros on a GPU: kernels, and what is launched for a task. warp_lines.hpp says how warps share
// lines.
#pragma once

#include "codecs/zeros/warp_lines.hpp"

namespace wirepress::zeros {

struct Encode {
  static constexpr unsigned kWarps = kBlockWarps;
  static constexpr size_t kShared = sizeof(Told);
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Told* const told = reinterpret_cast<Told*>(w.shared());
    if (w.warp() == 0) {
      const uint64_t number = cuda::Places(task.scratch).next(w);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->number = number;
          },
          w.lane());
    }
    w.sync();
    const uint64_t number = told->number;
    const uint64_t begin = number * kBlockSize + w.warp() * kWarpSize;
    const uint32_t here = left_of(task.raw_size, begin);
    Lines<W> lines;
    uint32_t mask = 0;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) {
      lines.part[k] = load(w, task.raw + begin + 512 * k, here > 512 * k ? here - 512 * k : 0);
      const auto& x = lines.part[k];
      mask |= lines_of(w.ballot(w.map([](uint32_t a, uint32_t b, uint32_t c,
                                         uint32_t d) { return (a | b | c | d) != 0; },
                                      x[0], x[1], x[2], x[3])))
              << 8 * k;
    }
    w.each(
        [=, warp = w.warp()](uint32_t lane) {
          if (lane == 0) told->kept[warp] = static_cast<uint32_t>(std::popcount(mask));
        },
        w.lane());
    w.sync();
    const Kept kept(w, told->kept);
    if (w.warp() == 0) {
      const uint64_t before = cuda::Places(task.scratch).before(w, number, kept.all);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->before = before;
          },
          w.lane());
    }
    w.sync();
    write(w, lines, mask, here, number * kBlockWarps + w.warp(), told->before, kept);
  }

 private:
  template <class W>
  static WPR_ON_DEVICE auto load(W& w, const std::byte* from, uint32_t n) {
    if (n % 4 == 0 || n >= 512) return w.quads(from, n / 4);
    typename W::template Four<uint32_t> x;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k)
      x[k] = w.map(
          [=](uint32_t lane) {
            uint32_t word = 0;
            for (uint32_t i = 0; i < 4; ++i) {
              const uint32_t at = 16 * lane + 4 * k + i;
              if (at < n) word |= static_cast<uint32_t>(from[at]) << 8 * i;
            }
            return word;
          },
          w.lane());
    return x;
  }

  template <class W>
  WPR_ON_DEVICE void write(W& w, const Lines<W>& lines, uint32_t mask, uint32_t here,
                           uint64_t group, uint64_t before, const Kept& kept) const {
    if (here == 0) return;
    const uint64_t n_lines = (task.raw_size + kLineSize - 1) / kLineSize;
    const uint64_t bitmap_size = (n_lines + 7) / 8;
    const bool last = group * kWarpSize + here == task.raw_size;
    cuda::Report* const report = task.report;
    const bool ends = last && (mask >> ((here - 1) / kLineSize) & 1) != 0;
    const uint32_t short_by = ends ? missing(task.raw_size) : 0;
    const uint64_t place = bitmap_size + kLineSize * (before + kept.before);
    const uint64_t end = place + kLineSize * static_cast<uint32_t>(std::popcount(mask)) - short_by;
    if (end > task.code_size) {
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) report->full = 1;
          },
          w.lane());
      return;
    }
    if (last)
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) report->written = end;
          },
          w.lane());
    std::byte* const bits = task.code + 4 * group;
    const uint32_t n_bits = (here + kLineSize - 1) / kLineSize;
    w.each(
        [=](uint32_t lane) {
          if (8 * lane < n_bits) bits[lane] = static_cast<std::byte>(mask >> 8 * lane);
        },
        w.lane());
    std::byte* const to = task.code + place;
    const uint64_t room = end - place;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) {
      const auto& x = lines.part[k];
      w.each(
          [=](uint32_t lane, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
            const uint32_t line = 8 * k + lane / 4;
            if ((mask >> line & 1) == 0) return;
            const uint32_t at =
                kLineSize * static_cast<uint32_t>(std::popcount(mask & ((1u << line) - 1))) +
                lane % 4 * 16;
            if (at < room)
              put_bytes(to + at, static_cast<uint32_t>(room - at), lane_bytes_of(a, b, c, d));
          },
          w.lane(), x[0], x[1], x[2], x[3]);
    }
  }
};

struct Decode {
  static constexpr unsigned kWarps = kBlockWarps;
  static constexpr size_t kShared = sizeof(Told);
  cuda::Task task;

  template <class W>
  WPR_ON_DEVICE void operator()(W& w) const {
    Told* const told = reinterpret_cast<Told*>(w.shared());
    if (w.warp() == 0) {
      const uint64_t number = cuda::Places(task.scratch).next(w);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->number = number;
          },
          w.lane());
    }
    w.sync();
    const uint64_t number = told->number, group = number * kBlockWarps + w.warp();
    const uint32_t here = left_of(task.raw_size, group * kWarpSize);
    const uint32_t n_bits = (here + kLineSize - 1) / kLineSize;
    const std::byte* const bits = task.code + 4 * group;
    const uint32_t mask = w.either(w.map(
        [=](uint32_t lane) {
          return 8 * lane < n_bits ? static_cast<uint32_t>(bits[lane]) << 8 * lane : 0;
        },
        w.lane()));
    bool good = n_bits == 32 || mask >> n_bits == 0;
    w.each(
        [=, warp = w.warp()](uint32_t lane) {
          if (lane == 0) told->kept[warp] = static_cast<uint32_t>(std::popcount(mask));
        },
        w.lane());
    w.sync();
    const Kept kept(w, told->kept);
    if (w.warp() == 0) {
      const uint64_t before = cuda::Places(task.scratch).before(w, number, kept.all);
      w.each(
          [=](uint32_t lane) {
            if (lane == 0) told->before = before;
          },
          w.lane());
    }
    w.sync();
    if (good) good = spread(w, mask, here, group, told->before + kept.before);
    if (!good) w.at_most(&task.report->first_bad, group);
  }

 private:
  template <class W>
  WPR_ON_DEVICE bool spread(W& w, uint32_t mask, uint32_t here, uint64_t group,
                            uint64_t before) const {
    if (here == 0) return true;
    const uint64_t n_lines = (task.raw_size + kLineSize - 1) / kLineSize;
    const uint64_t place = (n_lines + 7) / 8 + kLineSize * before;
    const bool last = group * kWarpSize + here == task.raw_size;
    const bool ends = last && (mask >> ((here - 1) / kLineSize) & 1) != 0;
    const uint64_t end = place + kLineSize * static_cast<uint32_t>(std::popcount(mask)) -
                         (ends ? missing(task.raw_size) : 0);
    if (end > task.code_size || (last && end != task.code_size)) return false;
    const std::byte* const from = task.code + place;
    const uint64_t room = end - place;
    uint32_t seen = 0;
    WPR_UNROLL
    for (unsigned k = 0; k < 4; ++k) {
      std::byte* const to = task.raw + group * kWarpSize + 512 * k;
      const uint32_t n = here > 512 * k ? here - 512 * k : 0;
      seen |=
          lines_of(w.ballot(w.map(
              [=](uint32_t lane) {
                const uint32_t line = 8 * k + lane / 4;
                LaneBytes own;
                if ((mask >> line & 1) != 0) {
                  const uint32_t at =
                      kLineSize * static_cast<uint32_t>(std::popcount(mask & ((1u << line) - 1))) +
                      lane % 4 * 16;
                  if (at < room) own = get_bytes(from + at, static_cast<uint32_t>(room - at));
                }
                if (16 * lane < n) put_bytes(to + 16 * lane, n - 16 * lane, own);
                return (own.low | own.high) != 0;
              },
              w.lane())))
          << 8 * k;
    }
    return seen == mask;  // a line that is kept is not all zero
  }
};

// For cuda::KernelOf.
class Warps {
  static uint64_t blocks(size_t raw_size) { return (raw_size + kBlockSize - 1) / kBlockSize; }

 public:
  static constexpr const char* kName = "zeros";
  static constexpr bool kGradients = false;

  static Status check_encode(const Args&, size_t, size_t) { return {}; }
  static Status check_decode(const Args&, size_t size, size_t raw_size) {
    const size_t bitmap = ((raw_size + kLineSize - 1) / kLineSize + 7) / 8;
    if (size < bitmap || (raw_size == 0 && size != 0))
      return fail(Code::kCorrupt, "zeros: %zu bytes, the bitmap of %zu bytes has %zu", size,
                  raw_size, bitmap);
    return {};
  }
  static size_t scratch(const Args&, size_t size) { return cuda::Places::size(blocks(size)); }

  template <bool kFeedback, class D>
  static Status encode(D& device, const Args&, const cuda::Task& task) {
    return task.raw_size == 0 ? Status() : device.launch(Encode{task}, blocks(task.raw_size));
  }
  template <bool kAdd, class D>
  static Status decode(D& device, const Args&, const cuda::Task& task) {
    return task.raw_size == 0 ? Status() : device.launch(Decode{task}, blocks(task.raw_size));
  }
};

}  // namespace wirepress::zeros
