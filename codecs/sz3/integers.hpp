// SPDX-License-Identifier: Apache-2.0
// The quantiser's integers as tokens, and tokens as a canonical Huffman code (spec.md, "Integers").
// The reader trusts nothing. Long because writer and reader of one code belong side by side.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/kernel.hpp"

namespace wirepress::sz3 {

constexpr int kLiteral = INT_MIN;  // stands for a value that is written as it is
constexpr int kMostSteps = (1 << 20) - 1;

// Tokens: two digits of a run of zeros, a literal, and per magnitude class one for each sign.
enum : unsigned { kRunOne, kRunTwo, kLiteralToken, kFirstValue };
constexpr unsigned kDirect = 16;  // smaller magnitudes are classes of their own
constexpr unsigned kDirectBits = 4;
constexpr unsigned kClassBits = 2;  // larger ones: this many bits below the uppermost
constexpr unsigned kClasses = (kDirect - 1) + ((20 - kDirectBits) << kClassBits);
constexpr unsigned kTokens = kFirstValue + 2 * kClasses;
constexpr unsigned kMaxLength = 11;

struct Meaning {
  int base;       // smallest magnitude of the class, with the sign
  uint8_t extra;  // raw bits after the code, added to the magnitude
};

static constexpr Meaning meaning_of(unsigned token) {
  if (token < kFirstValue) return {token == kLiteralToken ? kLiteral : 0, 0};
  const unsigned index = (token - kFirstValue) / 2 + 1;
  unsigned base = index, extra = 0;
  if (index >= kDirect) {
    extra = kDirectBits - kClassBits + ((index - kDirect) >> kClassBits);
    base = (1u << kClassBits | ((index - kDirect) & ((1u << kClassBits) - 1))) << extra;
  }
  const bool negative = (token - kFirstValue) % 2 != 0;
  return {negative ? -static_cast<int>(base) : static_cast<int>(base), static_cast<uint8_t>(extra)};
}

static constexpr auto kMeanings = [] {
  std::array<Meaning, kTokens> all{};
  for (unsigned token = 0; token < kTokens; ++token) all[token] = meaning_of(token);
  return all;
}();

using Lengths = std::array<uint8_t, kTokens>;
using Histogram = std::array<uint64_t, kTokens>;

// ---- to tokens --------------------------------------------------------------------------------

class Tokens {
 public:
  void take(const std::vector<int>& integers) {
    token_.clear();
    extra_.clear();
    token_.reserve(integers.size());
    count_ = {};
    size_t run = 0;
    for (const int value : integers) {
      if (value == 0) {
        ++run;
        continue;
      }
      if (run != 0) end_run(&run);
      put_value(value);
    }
    if (run != 0) end_run(&run);
    for (const uint8_t token : token_) ++count_[token];
  }

  const Histogram& histogram() const { return count_; }
  const std::vector<uint8_t>& token() const { return token_; }
  const std::vector<uint32_t>& extra() const { return extra_; }

 private:
  // Digits 1 and 2 of base 2, the lowest first: every length has exactly one form.
  void end_run(size_t* run) {
    for (; *run != 0; *run = (*run - 1) / 2)
      token_.push_back(static_cast<uint8_t>(*run % 2 ? kRunOne : kRunTwo));
  }

  void put_value(int value) {
    if (value == kLiteral) return token_.push_back(kLiteralToken);
    const unsigned size = static_cast<unsigned>(std::abs(value));
    unsigned index = size;
    if (size >= kDirect) {
      const unsigned log = static_cast<unsigned>(std::bit_width(size)) - 1;
      const unsigned extra = log - kClassBits;
      index =
          kDirect + ((log - kDirectBits) << kClassBits) + ((size >> extra) - (1u << kClassBits));
      extra_.push_back(size & ((1u << extra) - 1));
    }
    token_.push_back(static_cast<uint8_t>(kFirstValue + 2 * (index - 1) + (value < 0)));
  }

  std::vector<uint8_t> token_;
  std::vector<uint32_t> extra_;  // of those tokens that have extra bits
  Histogram count_{};
};

// ---- the code ---------------------------------------------------------------------------------

// Huffman's code without a limit on lengths: the depths of the leaves.
static unsigned huffman_depths(const Histogram& count, Lengths* lengths) {
  struct Node {
    uint64_t weight;
    unsigned parent;
  };
  std::array<Node, 2 * kTokens> node;
  std::array<unsigned, kTokens> leaf;
  unsigned leaves = 0;
  for (unsigned token = 0; token < kTokens; ++token)
    if (count[token] != 0) leaf[leaves++] = token;
  std::sort(leaf.begin(), leaf.begin() + leaves, [&](unsigned a, unsigned b) {
    return count[a] != count[b] ? count[a] < count[b] : a < b;
  });
  for (unsigned i = 0; i < leaves; ++i) node[i] = {count[leaf[i]], 0};
  // Leaves and inner nodes are two queues, both in order of weight.
  unsigned next_leaf = 0, next_inner = leaves, end = leaves;
  const auto lightest = [&] {
    const bool inner = next_leaf == leaves ||
                       (next_inner < end && node[next_inner].weight < node[next_leaf].weight);
    return inner ? next_inner++ : next_leaf++;
  };
  for (; end < 2 * leaves - 1; ++end) {
    const unsigned a = lightest(), b = lightest();
    node[a].parent = node[b].parent = end;
    node[end] = {node[a].weight + node[b].weight, 0};
  }
  std::array<unsigned, 2 * kTokens> depth;
  depth[end - 1] = 0;
  unsigned deepest = 0;
  for (unsigned i = end - 1; i-- > 0;) {
    depth[i] = depth[node[i].parent] + 1;
    if (i < leaves) (*lengths)[leaf[i]] = static_cast<uint8_t>(depth[i]);
    deepest = std::max(deepest, depth[i]);
  }
  if (leaves == 1) (*lengths)[leaf[0]] = 1;
  return deepest;
}

// Lengths of at most kMaxLength: counts are brought closer to each other until they are.
static Lengths code_lengths(Histogram count) {
  Lengths lengths{};
  while (huffman_depths(count, &lengths) > kMaxLength)
    for (uint64_t& c : count) c = c == 0 ? 0 : c / 2 + 1;
  return lengths;
}

// Canonical codes, first bit lowest.
static std::array<uint16_t, kTokens> canonical_codes(const Lengths& lengths) {
  std::array<uint16_t, kTokens> codes{};
  unsigned code = 0;
  for (unsigned length = 1; length <= kMaxLength; ++length, code <<= 1) {
    for (unsigned token = 0; token < kTokens; ++token) {
      if (lengths[token] != length) continue;
      unsigned reversed = 0;
      for (unsigned bit = 0; bit < length; ++bit)
        reversed |= (code >> bit & 1) << (length - 1 - bit);
      codes[token] = static_cast<uint16_t>(reversed);
      ++code;
    }
  }
  return codes;
}

static size_t stream_size(const Histogram& count, const Lengths& lengths) {
  uint64_t bits = 0;
  for (unsigned token = 0; token < kTokens; ++token)
    bits += count[token] * (lengths[token] + kMeanings[token].extra);
  return (bits + 7) / 8;
}

// ---- writing ----------------------------------------------------------------------------------

static void write_lengths(const Lengths& lengths, std::vector<std::byte>* out) {
  unsigned n = kTokens;
  while (lengths[n - 1] == 0) --n;
  out->push_back(static_cast<std::byte>(n));
  for (unsigned token = 0; token < n; token += 2) {
    const unsigned high = token + 1 < n ? lengths[token + 1] : 0u;
    out->push_back(static_cast<std::byte>(lengths[token] | high << 4));
  }
}

static void write_stream(const Tokens& tokens, const Lengths& lengths,
                         std::vector<std::byte>* out) {
  const auto codes = canonical_codes(lengths);
  const size_t begin = out->size(), size = stream_size(tokens.histogram(), lengths);
  out->resize(begin + size + sizeof(uint64_t));  // whole words are written
  std::byte* at = out->data() + begin;
  const uint32_t* extra = tokens.extra().data();
  uint64_t bits = 0;
  unsigned used = 0;
  for (const uint8_t token : tokens.token()) {
    bits |= static_cast<uint64_t>(codes[token]) << used;
    used += lengths[token];
    if (const unsigned more = kMeanings[token].extra; more != 0) {
      bits |= static_cast<uint64_t>(*extra++) << used;
      used += more;
    }
    std::memcpy(at, &bits, sizeof(bits));
    at += used / 8;
    bits >>= used / 8 * 8;
    used %= 8;
  }
  out->resize(begin + size);
}

// ---- reading ----------------------------------------------------------------------------------

static Status read_lengths(ConstBytes* src, Lengths* lengths) {
  *lengths = {};
  const unsigned n = src->empty() ? 0 : static_cast<unsigned>((*src)[0]);
  if (n == 0 || n > kTokens || src->size() < 1 + (n + 1) / 2)
    return fail(Code::kCorrupt, "sz3: lengths of %u codes in %zu bytes", n, src->size());
  unsigned used = 0, last = 0;
  uint32_t sum = 0;
  for (unsigned token = 0; token < (n + 1) / 2 * 2; ++token) {
    last = static_cast<unsigned>((*src)[1 + token / 2]) >> (token % 2 * 4) & 15;
    if (last > (token < n ? kMaxLength : 0))
      return fail(Code::kCorrupt, "sz3: code %u has length %u", token, last);
    if (token == n) break;
    (*lengths)[token] = static_cast<uint8_t>(last);
    if (last == 0) continue;
    ++used;
    sum += 1u << (kMaxLength - last);
  }
  const bool single = used == 1 && sum == 1u << (kMaxLength - 1);
  if ((*lengths)[n - 1] == 0 || (sum != 1u << kMaxLength && !single))
    return fail(Code::kCorrupt, "sz3: %u lengths make no prefix code", n);
  *src = src->subspan(1 + (n + 1) / 2);
  return {};
}

class Reader {
 public:
  explicit Reader(const Lengths& lengths) {
    const auto codes = canonical_codes(lengths);
    for (unsigned token = 0; token < kTokens; ++token) {
      if (lengths[token] == 0) continue;
      const Meaning meaning = kMeanings[token];
      const Step step = {meaning.base, lengths[token], meaning.extra,
                         static_cast<uint8_t>(token < kLiteralToken ? token + 1 : 0)};
      for (unsigned rest = 0; rest < step_.size() >> lengths[token]; ++rest)
        step_[rest << lengths[token] | codes[token]] = step;
    }
  }

  // Fills all of `integers`, which are 0. Some bytes are kept in `room`, so that whole words can be
  // read behind the last one.
  Status read(ConstBytes stream, std::vector<std::byte>* room, std::vector<int>* integers,
              size_t* literals) const {
    room->assign(stream.begin(), stream.end());
    room->resize(stream.size() + sizeof(uint64_t));
    const size_t limit = 8 * stream.size(), n = integers->size();
    size_t at = 0, i = 0, found = 0;
    unsigned digit = 0;
    while (i < n) {
      uint64_t bits;
      std::memcpy(&bits, room->data() + at / 8, sizeof(bits));
      bits >>= at % 8;
      const Step step = step_[bits & (step_.size() - 1)];
      at += step.length + step.extra;
      if (step.length == 0 || at > limit)
        return fail(Code::kCorrupt, "sz3: no code at bit %zu of %zu", at, limit);
      if (step.run != 0) {
        i += static_cast<size_t>(step.run) << digit++;
        continue;
      }
      digit = 0;
      const int extra = static_cast<int>(bits >> step.length & ((1u << step.extra) - 1));
      found += step.base == kLiteral;
      (*integers)[i++] = step.base < 0 ? step.base - extra : step.base + extra;
    }
    const bool padded = at % 8 == 0 || static_cast<unsigned>(stream.back()) >> at % 8 == 0;
    if (i != n || limit - at >= 8 || !padded)
      return fail(Code::kCorrupt, "sz3: %zu values of %zu in %zu of %zu bits", i, n, at, limit);
    *literals = found;
    return {};
  }

 private:
  struct Step {
    int base;
    uint8_t length;  // 0: no such code
    uint8_t extra;
    uint8_t run;  // digit of a run of zeros; 0: a value
  };
  std::array<Step, 1u << kMaxLength> step_{};
};

}  // namespace wirepress::sz3
