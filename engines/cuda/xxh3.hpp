// SPDX-License-Identifier: Apache-2.0
// XXH3 of 64 bits with a seed (xxHash 0.8), of bytes in memory of a device, by the warps of a
// block. A kilobyte's sums need nothing of those before it, so each warp makes those of one, and
// the first warp joins them in their order. Written in warp.hpp's terms.
#pragma once

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

class Xxh3 {
 public:
  static constexpr size_t kShared(unsigned warps) { return 64 * size_t{warps}; }

  // The low half of the hash, in all lanes of the first warp. `from` is aligned to 8. All kWarps
  // warps of the block call it, and have w.shared() for it.
  template <unsigned kWarps, class W>
  WPR_ON_DEVICE uint32_t low_half(W& w, const std::byte* from, uint64_t size, uint64_t seed) const {
    if (size <= kShort) return static_cast<uint32_t>(short_hash(from, size, seed));
    std::byte* const sums = w.shared();
    const uint64_t blocks = (size - 1) / kBlock;
    auto all = w.map([](uint32_t lane) { return begin(lane % 8); }, w.lane());
    for (uint64_t first = 0; first < blocks; first += kWarps) {
      if (first + w.warp() < blocks) {
        const auto own = sums_of(w, from + (first + w.warp()) * kBlock, kStripes, 0, seed);
        std::byte* const to = sums + 64 * w.warp();
        w.each(
            [=](uint32_t lane, uint64_t sum) {
              if (lane < 8) put(to + 8 * lane, sum);
            },
            w.lane(), own);
      }
      w.sync();
      for (uint64_t k = 0; w.warp() == 0 && k < kWarps && first + k < blocks; ++k)
        all = w.map(
            [=, this](uint64_t sum, uint32_t lane) {
              const uint64_t x = sum + get<uint64_t>(sums + 64 * k + 8 * (lane % 8));
              return (x ^ x >> 47 ^ secret(kStripes * 8 + 8 * (lane % 8), seed)) * kPrime32_1;
            },
            all, w.lane());
      w.sync();
    }
    if (w.warp() != 0) return 0;
    const std::byte* const rest = from + blocks * kBlock;
    const auto stripes = static_cast<uint32_t>((size - 1 - blocks * kBlock) / kStripe);
    const auto tail = sums_of(w, rest, stripes, 0, seed);
    const auto last = sums_of(w, from + size - kStripe, 1, kLastSecret, seed);
    all = w.map([](uint64_t a, uint64_t b, uint64_t c) { return a + b + c; }, all, tail, last);
    return static_cast<uint32_t>(merge(w, all, size, seed));
  }

  // As XXH3 has it; the bytes of its secret as words, lowest byte first.
  uint64_t words[24] = {
      0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
      0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
      0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
      0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
      0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
      0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};

 private:
  static constexpr uint64_t kShort = 240, kStripe = 64, kStripes = 16, kBlock = kStripe * kStripes;
  static constexpr uint32_t kLastSecret = 192 - 64 - 7, kMergeSecret = 11;
  static constexpr uint64_t kPrime32_1 = 0x9E3779B1, kPrime32_2 = 0x85EBCA77,
                            kPrime32_3 = 0xC2B2AE3D, kPrime64_1 = 0x9E3779B185EBCA87,
                            kPrime64_2 = 0xC2B2AE3D27D4EB4F, kPrime64_3 = 0x165667B19E3779F9,
                            kPrime64_4 = 0x85EBCA77C2B2AE63, kPrime64_5 = 0x27D4EB2F165667C5;

  static constexpr uint64_t begin(uint32_t i) {
    return i == 0   ? kPrime32_3
           : i == 1 ? kPrime64_1
           : i == 2 ? kPrime64_2
           : i == 3 ? kPrime64_3
           : i == 4 ? kPrime64_4
           : i == 5 ? kPrime32_2
           : i == 6 ? kPrime64_5
                    : kPrime32_1;
  }

  // Eight bytes of the secret at any offset: without and, as long inputs want it, with the seed.
  constexpr uint64_t plain(uint32_t offset) const {
    const uint32_t i = offset / 8, shift = offset % 8 * 8;
    return shift == 0 ? words[i] : words[i] >> shift | words[i + 1] << (64 - shift);
  }
  constexpr uint64_t seeded(uint32_t i, uint64_t seed) const {
    return i % 2 == 0 ? words[i] + seed : words[i] - seed;
  }
  constexpr uint64_t secret(uint32_t offset, uint64_t seed) const {
    const uint32_t i = offset / 8, shift = offset % 8 * 8;
    return shift == 0 ? seeded(i, seed)
                      : seeded(i, seed) >> shift | seeded(i + 1, seed) << (64 - shift);
  }

  static constexpr uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide x = Wide{a} * b;
    return static_cast<uint64_t>(x) ^ static_cast<uint64_t>(x >> 64);
  }
  static constexpr uint64_t stir(uint64_t h) {  // XXH3_avalanche
    h = (h ^ h >> 37) * 0x165667919E3779F9;
    return h ^ h >> 32;
  }
  static constexpr uint64_t stir_short(uint64_t h) {  // XXH64_avalanche
    h = (h ^ h >> 33) * kPrime64_2;
    h = (h ^ h >> 29) * kPrime64_3;
    return h ^ h >> 32;
  }
  static constexpr uint64_t turned(uint64_t x, int n) { return x << n | x >> (64 - n); }
  static constexpr uint64_t swapped(uint64_t x) {
    uint64_t y = 0;
    for (int i = 0; i < 8; ++i) y = y << 8 | (x >> 8 * i & 0xFF);
    return y;
  }

  static WPR_HD uint64_t bytes(const std::byte* from, int n) {  // at any address
    uint64_t x = 0;
    for (int i = 0; i < n; ++i) x |= static_cast<uint64_t>(from[i]) << (8 * i);
    return x;
  }
  static WPR_HD uint64_t eight(const std::byte* from) { return bytes(from, 8); }
  static WPR_HD uint64_t four(const std::byte* from) { return bytes(from, 4); }

  // Sums that n stripes of 64 bytes add, up to 16 of them, in lanes 0 to 7: each word's two halves,
  // with the secret, multiplied, and the word beside it.
  template <class W>
  WPR_ON_DEVICE auto sums_of(W& w, const std::byte* from, uint32_t n, uint32_t offset,
                             uint64_t seed) const {
    auto products = w.all(uint64_t{0}), beside = products;
    for (uint32_t turn = 0; turn < n; turn += 4) {
      const auto word = w.map(
          [=](uint32_t lane) {
            const uint32_t stripe = turn + lane / 8;
            const std::byte* const at = from + kStripe * stripe + 8 * (lane % 8);
            if (stripe >= n) return uint64_t{0};
            return offset == 0 ? get<uint64_t>(at) : eight(at);
          },
          w.lane());
      products = w.map(
          [=, this](uint64_t sum, uint64_t x, uint32_t lane) {
            const uint32_t stripe = turn + lane / 8;
            if (stripe >= n) return sum;
            const uint64_t key = x ^ secret(offset + 8 * stripe + 8 * (lane % 8), seed);
            return sum + (key & 0xFFFFFFFF) * (key >> 32);
          },
          products, word, w.lane());
      beside = w.map([](uint64_t a, uint64_t b) { return a + b; }, beside, word);
    }
    const auto above = w.down(beside, 1), below = w.up(beside, 1);
    auto all = w.map([](uint64_t product, uint64_t a, uint64_t b,
                        uint32_t lane) { return product + (lane % 2 == 0 ? a : b); },
                     products, above, below, w.lane());
    all = w.map([](uint64_t a, uint64_t b) { return a + b; }, all, w.down(all, 16));
    return w.map([](uint64_t a, uint64_t b) { return a + b; }, all, w.down(all, 8));
  }

  template <class W, class Lanes>
  WPR_ON_DEVICE uint64_t merge(W& w, const Lanes& all, uint64_t size, uint64_t seed) const {
    const auto keyed =
        w.map([=, this](uint64_t x,
                        uint32_t lane) { return x ^ secret(kMergeSecret + 8 * (lane % 8), seed); },
              all, w.lane());
    uint64_t sum = size * kPrime64_1;
    WPR_UNROLL
    for (unsigned i = 0; i < 8; i += 2) sum += fold(w.from(keyed, i), w.from(keyed, i + 1));
    return stir(sum);
  }

  WPR_HD uint64_t mix(const std::byte* from, uint32_t offset, uint64_t seed) const {
    return fold(eight(from) ^ (plain(offset) + seed), eight(from + 8) ^ (plain(offset + 8) - seed));
  }

  // Of at most 240 bytes, by each lane on its own.
  WPR_HD uint64_t short_hash(const std::byte* from, uint64_t size, uint64_t seed) const {
    if (size == 0) return stir_short(seed ^ plain(56) ^ plain(64));
    if (size <= 3) {
      const uint64_t parts = bytes(from, 1) << 16 | bytes(from + size / 2, 1) << 24 |
                             bytes(from + size - 1, 1) | size << 8;
      const uint64_t flip = ((plain(0) ^ plain(4)) & 0xFFFFFFFF) + seed;
      return stir_short(parts ^ flip);
    }
    if (size <= 8) {
      seed ^= (swapped(seed & 0xFFFFFFFF) >> 32) << 32;
      const uint64_t flip = (plain(8) ^ plain(16)) - seed;
      uint64_t h = (four(from + size - 4) + (four(from) << 32)) ^ flip;
      h ^= turned(h, 49) ^ turned(h, 24);
      h *= 0x9FB21C651E98DF25;
      h ^= (h >> 35) + size;
      h *= 0x9FB21C651E98DF25;
      return h ^ h >> 28;
    }
    if (size <= 16) {
      const uint64_t low = eight(from) ^ ((plain(24) ^ plain(32)) + seed);
      const uint64_t high = eight(from + size - 8) ^ ((plain(40) ^ plain(48)) - seed);
      return stir(size + swapped(low) + high + fold(low, high));
    }
    uint64_t sum = size * kPrime64_1;
    if (size <= 128) {
      for (uint32_t i = static_cast<uint32_t>((size - 1) / 32);; --i) {
        sum +=
            mix(from + 16 * i, 32 * i, seed) + mix(from + size - 16 * (i + 1), 32 * i + 16, seed);
        if (i == 0) break;
      }
      return stir(sum);
    }
    const auto rounds = static_cast<uint32_t>(size / 16);
    for (uint32_t i = 0; i < 8; ++i) sum += mix(from + 16 * i, 16 * i, seed);
    sum = stir(sum);
    for (uint32_t i = 8; i < rounds; ++i) sum += mix(from + 16 * i, 16 * (i - 8) + 3, seed);
    return stir(sum + mix(from + size - 16, 136 - 17, seed));
  }
};

}  // namespace wirepress::cuda
