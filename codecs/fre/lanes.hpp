// SPDX-License-Identifier: Apache-2.0
// The encoder for instruction sets without masks (avx2.cpp, neon.cpp), over a vector type V of
// V::kLanes 32-bit lanes. Codes are made in lanes, joined by twos there and by fours in registers
// of the processor, so that few go through the bit position, the only serial dependence.
//
// V has kLanes, all(), load(), the operators & | + - == (lanes of all ones), and
//   V::load_values<Element>(from)     the values at `from` as float32 words
//   v.without(w)                      v & ~w
//   v.left(n), v.right(n), v.sign()   shifts by the same n; by 31 with the sign
//   v.left_each(w)                    shifts by less than 32
//   v.at_least(w)                     unsigned comparison
//   v.distance()                      the absolute value
//   v.smaller(w)                      the smaller one, unsigned
//   V::pick(mask, v, w)               v where the mask is set
//   v.after(last)                     lanes moved up by one, the last lane of `last` in the first
//   v.any()                           whether any bit is set
//   v.look_up(table)                  table[lane], lanes 0 to 15
//   v.store_twos(size, bits, sizes)   codes v of `size` bits as kLanes / 2 codes of two
#pragma once

#include "codecs/fre/code.hpp"

namespace wirepress {
namespace {

// By abs(d), and for cases without d: the place of the payload less one, for the bit that says
// d < 0 stands before it (4 bits), the prefix without that bit (10), and the size of the code.
constexpr size_t kLaneCases = 16;
constexpr uint32_t kEscapeCase = kMaxDifference + 1;
constexpr uint32_t kZeroCase = kEscapeCase + 1;
constexpr uint32_t kEqualCase = kZeroCase + 1;
constexpr int kCaseBits = 4;
constexpr int kCaseSize = 16;

template <class V>
struct Lanes : Portable {
  struct State : Table {
    alignas(64) std::array<uint32_t, kLaneCases> lane_case;
  };

  static void make(const Args& args, State* state) {
    make_table(args, state);
    const auto entry = [](const Row& row, uint32_t place) {
      return place | uint32_t{row.bits} << kCaseBits | uint32_t{row.size} << kCaseSize;
    };
    state->lane_case.fill(0);
    for (size_t k = 0; k <= kMaxDifference; ++k) {
      const Row& row = state->row[kDifference + kMaxDifference + k];
      state->lane_case[k] = entry(row, row.prefix - 1u);
    }
    state->lane_case[kEscapeCase] = entry(state->row[kEscape], state->row[kEscape].prefix - 1u);
    state->lane_case[kZeroCase] = entry(state->row[kZero], state->row[kZero].prefix - 1u);
    state->lane_case[kEqualCase] = entry(state->row[kEqual], 0);
  }

  template <class Element>
  static size_t encode(const Quantiser& quantise, const State& state, const std::byte* src,
                       size_t n, BitWriter* out);
};

// Codes of two values each, between the lanes and the stream.
struct Twos {
  static constexpr size_t kMost = 512;  // values
  static constexpr unsigned kMostBits = 56;
  alignas(64) uint64_t bits[kMost / 2];
  alignas(64) uint64_t size[kMost / 2];

  // The first n, an even number: by twos where they fit, which is nearly always so while m is
  // small, and a guess that fails too often when it is not.
  void drain(size_t n, unsigned m, BitWriter* out) const {
    constexpr unsigned kMostM = 7;
    BitWriter to = *out;
    for (size_t i = 0; i < n; i += 2) {
      const unsigned first = static_cast<unsigned>(size[i]);
      const unsigned second = static_cast<unsigned>(size[i + 1]);
      if (m <= kMostM && first + second <= kMostBits) [[likely]] {
        to.put(bits[i] | bits[i + 1] << first, first + second);
      } else {
        to.put(bits[i], first);
        to.put(bits[i + 1], second);
      }
    }
    *out = to;
  }
};

template <class V>
class LaneCoder {
 public:
  LaneCoder(const Quantiser& quantise, const typename Lanes<V>::State& state)
      : quantise_(quantise),
        state_(state),
        m_(static_cast<int>(state.m)),
        drop_(V::all(quantise.drop)),
        bias_(V::all(quantise.bias)),
        tie_(V::all(quantise.tie_mask)),
        limit_(V::all(2 * (kInfinity - quantise.bias - 1 - kNormal))),
        fraction_(V::all(((1u << state.m) - 1) << 1)) {}

  // The next values; their codes as twos.
  [[gnu::always_inline]] void encode(V word, uint64_t* bits, uint64_t* size) {
    const V zero = word + word == V::all(0);
    const V special = (word + word - V::all(2 * kNormal)).at_least(limit_).without(zero);
    if (special.any() || quantise_.zero_keep == 0) [[unlikely]] {
      encode_special(word, bits, size);
      return;
    }
    const V odd = word.right(kFractionBits - m_) & tie_;
    const V q = (word + bias_ + odd).without(drop_);
    const V previous = q.after(last_);
    last_ = q;
    const V exponents = V::all(kInfinity);
    const V change = (q & exponents) - (previous & exponents);
    const V k = change.distance().right(kFractionBits).smaller(V::all(kEscapeCase));
    const V escape = k == V::all(kEscapeCase);
    const V equal = q == previous;
    V code_case = V::pick(zero, V::all(kZeroCase), k);
    code_case = V::pick(equal, V::all(kEqualCase), code_case);
    const V entry = code_case.look_up(state_.lane_case.data());

    const V negative = q.right(31);
    V payload =
        (q.right(kFractionBits - 1 - m_) & fraction_) | negative.left(m_ + 1) | change.right(31);
    payload = V::pick(escape, q.right(kFractionBits - m_).left(1), payload);
    payload = V::pick(zero, negative.left(1), payload).without(equal);
    const V prefix = entry.right(kCaseBits) & V::all((1u << kPrefixBits) - 1);
    const V code = prefix | payload.left_each(entry & V::all((1u << kCaseBits) - 1));
    code.store_twos(entry.right(kCaseSize), bits, size);
  }

 private:
  static constexpr uint32_t kNormal = kFraction + 1;

  // Any values, one by one.
  [[gnu::noinline]] void encode_special(V word, uint64_t* bits, uint64_t* size) {
    alignas(64) uint32_t before[V::kLanes], each[V::kLanes];
    last_.store(before);
    word.store(each);
    uint32_t previous = before[V::kLanes - 1];
    for (size_t i = 0; i < V::kLanes; ++i) {
      const uint32_t q = each[i] = quantise_(each[i]);
      const Row& row = state_.row[case_of(q, previous)];
      const uint64_t one = code(row, q);
      bits[i / 2] = i % 2 == 0 ? one : bits[i / 2] | one << size[i / 2];
      size[i / 2] = i % 2 == 0 ? row.size : size[i / 2] + row.size;
      previous = q;
    }
    last_ = V::load(each);
  }

  const Quantiser quantise_;
  const typename Lanes<V>::State& state_;
  const int m_;
  const V drop_, bias_, tie_, limit_, fraction_;
  V last_ = V::all(0);
};

template <class V>
template <class Element>
size_t Lanes<V>::encode(const Quantiser& quantise, const State& state, const std::byte* src,
                        size_t n, BitWriter* out) {
  if (state.m > kShortM) return 0;  // two codes must fit 56 bits
  constexpr size_t kStep = std::max<size_t>(V::kLanes, 4);
  LaneCoder<V> coder(quantise, state);
  Twos twos;
  size_t i = 0;
  while (i + kStep <= n && !out->full()) {
    const size_t count = std::min(Twos::kMost, (n - i) / kStep * kStep);
    for (size_t k = 0; k < count; k += V::kLanes)
      coder.encode(V::template load_values<Element>(src + sizeof(Element) * (i + k)),
                   twos.bits + k / 2, twos.size + k / 2);
    twos.drain(count / 2, state.m, out);
    i += count;
  }
  return i;
}

}  // namespace
}  // namespace wirepress
