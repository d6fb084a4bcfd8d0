// SPDX-License-Identifier: Apache-2.0
// A stream of fre decoded by a warp. Each lane has 128 bits of it. Where its first code begins, it
// learns from the lane before it, and guesses until then; what codes do to the value before them is
// summed up, so that a lane's values can be written when the ones before are known.
#pragma once

#include "codecs/fre/code.hpp"
#include "engines/cuda/kernel.hpp"
#include "engines/cuda/places.hpp"

namespace wirepress {
namespace {

// A table in shared memory, by kWarps warps; those of a block see all of it after sync().
template <unsigned kWarps, class T, class W>
WPR_ON_DEVICE const T* shared_copy(W& w, const T& table, std::byte* to) {
  static_assert(sizeof(T) % 4 == 0);
  constexpr uint32_t kWords = sizeof(T) / 4;
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(&table);
  for (uint32_t i = w.warp() * cuda::kLanes; i < kWords; i += kWarps * cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane < kWords) cuda::put(to + 4 * (i + lane), words[i + lane]);
        },
        w.lane());
  if constexpr (kWarps == 1)
    w.settle();
  else
    w.sync();
  return reinterpret_cast<const T*>(to);
}

constexpr uint32_t kLaneBits = 128;
constexpr uint32_t kWindowBits = kLaneBits * cuda::kLanes;
constexpr uint32_t kWindowWords = kWindowBits / 32 + 3;  // with what the last code may reach
constexpr size_t kWindowSize = 4 * kWindowWords;

// The bits of a window in shared memory: what follows bit `at`.
static WPR_ON_DEVICE uint64_t bits_after(const std::byte* words, uint32_t at) {
  const std::byte* const from = words + at / 32 * 4;
  const uint64_t low = cuda::get<uint32_t>(from) | uint64_t{cuda::get<uint32_t>(from + 4)} << 32;
  const uint32_t skip = at % 32;
  return skip == 0 ? low : low >> skip | uint64_t{cuda::get<uint32_t>(from + 8)} << (64 - skip);
}
static WPR_ON_DEVICE const Row& row_at(const Table& table, uint64_t bits) {
  return table.row[table.step[bits & kPeek].row];
}

// What codes do to the value before them: ((value & keep) + add) | sign, but nothing where keep is
// all ones.
struct Effect {
  uint32_t keep = ~0u, add = 0, sign = 0;
  constexpr void then(const Row& row, uint32_t payload) {
    if (row.keep == ~0u) return;  // equal
    if (row.keep == 0) {
      keep = 0;
      add = row.add + (payload & row.take);
    } else {
      keep = keep == ~0u ? kInfinity : keep;
      add = (add & ~kFraction) + row.add + (payload & row.take);
    }
    sign = payload << row.turn & kSign;
  }
  static constexpr uint32_t of(uint32_t keep, uint32_t add, uint32_t sign, uint32_t value) {
    return keep == ~0u ? value : ((value & keep) + add) | sign;
  }
};

// The words of a window, from any byte on; zeros behind the stream.
template <class W>
WPR_ON_DEVICE void load_window(W& w, const std::byte* code, uint64_t from, uint64_t end,
                               std::byte* words) {
  for (uint32_t i = 0; i < kWindowWords; i += cuda::kLanes)
    w.each(
        [=](uint32_t lane) {
          if (i + lane >= kWindowWords) return;
          const uint64_t first = from + 4 * (i + lane);
          uint32_t word = 0;
          for (uint32_t k = 0; k < 4; ++k)
            if (first + k < end) word |= std::to_integer<uint32_t>(code[first + k]) << 8 * k;
          cuda::put(words + 4 * (i + lane), word);
        },
        w.lane());
  w.settle();
}

// Bits of the window at which the first code of each lane begins. A code that is read from the
// wrong bit on mostly ends where a right one does, soon: few rounds. Not among the zeros behind
// the `valid` bits, whose codes have one size: there each lane begins with its own bits.
template <class W>
WPR_ON_DEVICE auto find_starts(W& w, const Table& rows, const std::byte* words, uint32_t first,
                               uint32_t valid) {
  auto starts =
      w.map([=](uint32_t lane) { return lane == 0 ? first : lane * kLaneBits; }, w.lane());
  for (unsigned round = 0; round < cuda::kLanes; ++round) {
    const auto ends = w.map(
        [=, &rows](uint32_t lane, uint32_t start) {
          const uint32_t after = (lane + 1) * kLaneBits, last = after < valid ? after : valid;
          uint32_t i = start;
          while (i < last) i += rows.step[bits_after(words, i) & kPeek].size;
          return i < after ? after : i;
        },
        w.lane(), starts);
    const auto next = w.map([=](uint32_t lane, uint32_t end) { return lane == 0 ? first : end; },
                            w.lane(), w.up(ends, 1));
    const uint32_t changed =
        w.ballot(w.map([](uint32_t a, uint32_t b) { return a != b; }, starts, next));
    if (changed == 0) break;
    starts = next;
  }
  return starts;
}

// A stream of `size` bytes, decoded to n values at dst; kWindowSize bytes at `words` are shared by
// the warp. False where it does not hold so many, or what no encoder writes.
template <class Element, class W>
WPR_ON_DEVICE bool decode_stream(W& w, const Table& rows, const std::byte* code, uint64_t size,
                                 std::byte* dst, uint64_t n, std::byte* words) {
  const uint32_t half = rows.half;
  uint64_t at = 0;  // bits that are decoded
  uint32_t previous = 0;
  uint32_t wrong = 0;
  for (uint64_t done = 0; done < n;) {
    const uint64_t base = at / 32 * 32;
    load_window(w, code, base / 8, size, words);
    const uint64_t rest = base < 8 * size ? 8 * size - base : 0;
    const uint32_t valid = rest < kWindowBits ? static_cast<uint32_t>(rest) : kWindowBits;
    const auto starts = find_starts(w, rows, words, static_cast<uint32_t>(at - base), valid);

    // What the codes of a lane do, together.
    const auto count = w.map(
        [=, &rows](uint32_t lane, uint32_t start) {
          uint32_t codes = 0;
          for (uint32_t i = start; i < (lane + 1) * kLaneBits; ++codes)
            i += rows.step[bits_after(words, i) & kPeek].size;
          return codes;
        },
        w.lane(), starts);
    const auto effect = w.map(
        [=, &rows](uint32_t lane, uint32_t start) {
          Effect all;
          for (uint32_t i = start; i < (lane + 1) * kLaneBits;) {
            const uint64_t bits = bits_after(words, i);
            const Row& row = row_at(rows, bits);
            all.then(row, payload_of(row, bits));
            i += row.size;
          }
          return all;
        },
        w.lane(), starts);
    const auto keep = w.map([](const Effect& e) { return e.keep; }, effect);
    const auto add = w.map([](const Effect& e) { return e.add; }, effect);
    const auto sign = w.map([](const Effect& e) { return e.sign; }, effect);
    uint32_t codes = 0;
    const auto before = cuda::sums_before(w, count, &codes);
    auto value = w.all(previous);
    for (unsigned i = 0; i + 1 < cuda::kLanes; ++i) {
      previous = Effect::of(w.from(keep, i), w.from(add, i), w.from(sign, i), previous);
      const uint32_t next = previous;
      value = w.map([=](uint32_t own, uint32_t lane) { return lane == i + 1 ? next : own; }, value,
                    w.lane());
    }
    previous = Effect::of(w.from(keep, cuda::kLanes - 1), w.from(add, cuda::kLanes - 1),
                          w.from(sign, cuda::kLanes - 1), previous);

    // The values that there are; where the last of them ends in this window.
    const uint32_t left = n - done < codes ? static_cast<uint32_t>(n - done) : codes;
    const auto ends = w.map(
        [=, &rows](uint32_t lane, uint32_t start, uint32_t first, uint32_t own) {
          uint32_t i = start, p = own, k = first;
          uint64_t beyond = 0;
          for (; i < (lane + 1) * kLaneBits && k < left; ++k) {
            const uint64_t bits = bits_after(words, i);
            const Row& row = row_at(rows, bits);
            p = decoded<Element>(row, payload_of(row, bits), p, &beyond);
            const uint32_t word = half != 0 ? with_half(p, half) : p;
            cuda::put(dst + sizeof(Element) * (done + k),
                      static_cast<Element>(word >> (32 - 8 * sizeof(Element))));
            i += row.size;
          }
          return uint64_t{beyond >> 32 != 0} << 32 | (k > first ? i : 0);
        },
        w.lane(), starts, before, value);
    wrong |= w.ballot(w.map([](uint64_t end) { return end >> 32 != 0; }, ends));
    at = base + w.most(w.map([](uint64_t end) { return static_cast<uint32_t>(end); }, ends));
    done += left;
    w.settle();
  }
  const uint64_t bits = 8 * size, left = bits - at;
  if (wrong != 0 || at > bits || left >= 8) return false;
  return left == 0 || std::to_integer<unsigned>(code[size - 1]) >> (8 - left) == 0;
}

}  // namespace
}  // namespace wirepress
