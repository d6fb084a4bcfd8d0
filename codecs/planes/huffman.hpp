// SPDX-License-Identifier: Apache-2.0
// The prefix code of one plane (spec.md): lengths from counts, encoder and decoder. In an unnamed
// namespace, because each kernel compiles it for its instruction set.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress {
namespace {
namespace huffman {

constexpr unsigned kMostLength = 11;
constexpr size_t kTableSize = size_t{1} << kMostLength;
constexpr size_t kStreams = 8;
constexpr size_t kTogether = 4;  // streams that one loop decodes; their state fits the registers
constexpr size_t kSymbols = 256;
constexpr unsigned kBurst = 5;  // codes that fit 64 bits beside 7 that are left over

using Counts = std::array<uint32_t, kSymbols>;
using Lengths = std::array<uint8_t, kSymbols>;  // 0: does not occur

inline Counts count(const std::byte* symbols, size_t n) {
  // Eight, because equal neighbours wait for each other in one.
  std::array<Counts, 8> parts{};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, symbols + i, sizeof(eight));
#pragma GCC unroll 8
    for (size_t k = 0; k < 8; ++k) ++parts[k][eight >> 8 * k & 0xFF];
  }
  for (; i < n; ++i) ++parts[0][static_cast<uint8_t>(symbols[i])];
  for (size_t k = 1; k < 8; ++k)
    for (size_t s = 0; s < kSymbols; ++s) parts[0][s] += parts[k][s];
  return parts[0];
}

// Depths in the tree that Huffman's algorithm builds: always the two lightest nodes become one; of
// equal ones leaves come first, and of leaves the smaller symbol. `order`: leaves by weight.
inline void tree_depths(const Counts& counts, const uint8_t* order, size_t leaves,
                        Lengths* lengths) {
  std::array<uint64_t, kSymbols> weight;  // of inner nodes, in the order they are made: rising
  std::array<uint16_t, 2 * kSymbols> parent;
  std::array<uint8_t, kSymbols> depth{};
  size_t leaf = 0, inner = 0;
  for (size_t made = 0; made + 1 < leaves; ++made) {
    uint64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      const bool take_leaf =
          leaf < leaves && (inner == made || counts[order[leaf]] <= weight[inner]);
      sum += take_leaf ? counts[order[leaf]] : weight[inner];
      parent[take_leaf ? leaf++ : kSymbols + inner++] = static_cast<uint16_t>(made);
    }
    weight[made] = sum;
  }
  const size_t root = leaves - 2;
  depth[root] = 0;
  for (size_t node = root; node-- > 0;)
    depth[node] = static_cast<uint8_t>(depth[parent[kSymbols + node]] + 1);
  for (size_t i = 0; i < leaves; ++i)
    (*lengths)[order[i]] = static_cast<uint8_t>(depth[parent[i]] + 1);
}

// Cuts lengths to kMostLength and makes the code complete again: 2^-length sums to 1.
inline void limit(const uint8_t* order, size_t leaves, Lengths* lengths) {
  size_t sum = 0;
  for (size_t i = 0; i < leaves; ++i) {
    uint8_t& length = (*lengths)[order[i]];
    length = std::min<uint8_t>(length, kMostLength);
    sum += kTableSize >> length;
  }
  while (sum > kTableSize) {  // the longest code that can grow, of the rarest symbol
    size_t best = leaves;
    for (size_t i = 0; i < leaves; ++i) {
      const uint8_t length = (*lengths)[order[i]];
      if (length < kMostLength && (best == leaves || length > (*lengths)[order[best]])) best = i;
    }
    sum -= kTableSize >> ++(*lengths)[order[best]];
  }
  for (size_t i = leaves; i-- > 0;) {  // the most frequent first
    uint8_t& length = (*lengths)[order[i]];
    while (sum < kTableSize && (kTableSize >> length) <= kTableSize - sum) {
      sum += kTableSize >> length;
      --length;
    }
  }
}

// At least two symbols occur.
inline Lengths make_lengths(const Counts& counts) {
  std::array<uint64_t, kSymbols> keys;
  size_t leaves = 0;
  for (size_t s = 0; s < kSymbols; ++s)
    if (counts[s] > 0) keys[leaves++] = uint64_t{counts[s]} << 8 | s;
  std::sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(leaves),
            [](uint64_t a, uint64_t b) { return a < b; });
  std::array<uint8_t, kSymbols> order;
  for (size_t i = 0; i < leaves; ++i) order[i] = static_cast<uint8_t>(keys[i]);
  Lengths lengths{};
  tree_depths(counts, order.data(), leaves, &lengths);
  limit(order.data(), leaves, &lengths);
  return lengths;
}

inline bool complete(const Lengths& lengths) {
  size_t sum = 0;
  for (const uint8_t length : lengths) {
    if (length > kMostLength) return false;
    if (length > 0) sum += kTableSize >> length;
  }
  return sum == kTableSize;
}

// Calls function(symbol, code) with the codes of `lengths`, first bit lowest.
template <typename Function>
void for_codes(const Lengths& lengths, Function function) {
  uint32_t next = 0;  // in units of 2^-kMostLength, first bit highest
  for (unsigned length = 1; length <= kMostLength; ++length) {
    for (size_t s = 0; s < kSymbols; ++s) {
      if (lengths[s] != length) continue;
      uint32_t code = 0;
      for (unsigned bit = 0; bit < length; ++bit)
        code |= (next >> (kMostLength - 1 - bit) & 1) << bit;
      function(s, code);
      next += static_cast<uint32_t>(kTableSize >> length);
    }
  }
}

class Encoder {
 public:
  explicit Encoder(const Lengths& lengths) {
    for_codes(lengths,
              [&](size_t s, uint32_t code) { entry_[s] = uint64_t{code} << 8 | lengths[s]; });
  }

  // `out` has room for kMostLength bits a symbol and 8 bytes. The stream's size.
  size_t operator()(const std::byte* symbols, size_t n, std::byte* out) const {
    const std::byte* const begin = out;
    uint64_t bits = 0;
    uint64_t filled = 0;  // only its lower 6 bits count; under 8 between bursts
    const auto put = [&](std::byte symbol) {
      const uint64_t e = entry_[static_cast<uint8_t>(symbol)];
      bits |= (e >> 8) << (filled & 63);
      filled += e;
    };
    const auto flush = [&] {
      std::memcpy(out, &bits, sizeof(bits));
      out += (filled & 63) >> 3;
      bits >>= filled & 56;
      filled &= 7;
    };
    size_t i = 0;
    for (; i + kBurst <= n; i += kBurst) {
#pragma GCC unroll 8
      for (size_t k = 0; k < kBurst; ++k) put(symbols[i + k]);
      flush();
    }
    for (; i < n; ++i) put(symbols[i]), flush();
    if (filled > 0) *out++ = static_cast<std::byte>(bits);
    return static_cast<size_t>(out - begin);
  }

 private:
  std::array<uint64_t, kSymbols> entry_{};  // the code, from bit 8 up, and its length
};

// Takes two symbols at a time where their codes fit the table together.
class Decoder {
 public:
  struct Stream {
    uint64_t position;  // in bits of the source
    std::byte* out;
    std::byte* end;
  };
  using Group = std::array<Stream, kTogether>;

  explicit Decoder(const Lengths& lengths) {
    std::array<uint16_t, kTableSize> single;  // symbol, and the length from bit 8 up
    for_codes(lengths, [&](size_t s, uint32_t code) {
      for (size_t bits = code; bits < kTableSize; bits += size_t{1} << lengths[s])
        single[bits] = static_cast<uint16_t>(s | static_cast<size_t>(lengths[s]) << 8);
    });
    for (size_t bits = 0; bits < kTableSize; ++bits) {
      const uint32_t one = single[bits];
      const uint32_t two = single[bits >> (one >> 8)];
      const uint32_t both = (one >> 8) + (two >> 8);
      const bool fits = both <= kMostLength;
      entry_[bits] = (one & 0xFF) | (two & 0xFF) << 8 | (fits ? both : one >> 8) << kLengthAt |
                     (fits ? 2u : 1u) << kCountAt;
      one_length_[bits] = static_cast<uint8_t>(one >> 8);
    }
  }

  // Fills out .. end of each stream, whatever the bits, and moves positions behind them. Never
  // reads beyond src.
  void run(ConstBytes src, Group* group) const {
    Group at = *group;
    const uint64_t most = src.size() >= 8 ? 8 * (src.size() - 8) : 0;  // 64 bits can be loaded
    while (src.size() >= 8) {
      bool room = true;
#pragma GCC unroll 8
      for (const Stream& stream : at)
        room &=
            stream.position <= most && static_cast<size_t>(stream.end - stream.out) >= 2 * kBurst;
      if (!room) break;
      burst<kTogether>(src, at.data());
    }
    for (Stream& stream : at) {
      while (src.size() >= 8 && stream.position <= most &&
             static_cast<size_t>(stream.end - stream.out) >= 2 * kBurst)
        burst<1>(src, &stream);
      while (stream.out < stream.end) one(src, &stream);
    }
    *group = at;
  }

 private:
  static constexpr unsigned kLengthAt = 16;
  static constexpr unsigned kCountAt = 24;

  // kBurst steps of n streams.
  template <size_t n>
  void burst(ConstBytes src, Stream* streams) const {
    std::array<uint64_t, n> bits;
#pragma GCC unroll 8
    for (size_t k = 0; k < n; ++k) {
      std::memcpy(&bits[k], src.data() + (streams[k].position >> 3), sizeof(bits[k]));
      bits[k] >>= streams[k].position & 7;
    }
#pragma GCC unroll 8
    for (size_t b = 0; b < kBurst; ++b) {
#pragma GCC unroll 8
      for (size_t k = 0; k < n; ++k) {
        const uint32_t e = entry_[bits[k] % kTableSize];
        const uint16_t two = static_cast<uint16_t>(e);
        std::memcpy(streams[k].out, &two, sizeof(two));
        const uint32_t length = e >> kLengthAt & 0xFF;
        bits[k] >>= length;
        streams[k].position += length;
        streams[k].out += e >> kCountAt;
      }
    }
  }

  // One symbol; bits beyond the end are 0.
  void one(ConstBytes src, Stream* stream) const {
    const size_t byte = std::min<uint64_t>(stream->position >> 3, src.size());
    uint32_t bits = 0;
    std::memcpy(&bits, src.data() + byte, std::min<size_t>(sizeof(bits), src.size() - byte));
    const size_t index = (bits >> (stream->position & 7)) % kTableSize;
    *stream->out++ = static_cast<std::byte>(entry_[index]);
    stream->position += one_length_[index];
  }

  // By the next bits of a stream: two symbols, what they take together, and how many count.
  std::array<uint32_t, kTableSize> entry_;
  std::array<uint8_t, kTableSize> one_length_;  // of the first alone
};

}  // namespace huffman
}  // namespace
}  // namespace wirepress
