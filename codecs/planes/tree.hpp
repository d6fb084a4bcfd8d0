// SPDX-License-Identifier: Apache-2.0
// The partition code of a chunk of values (spec.md): a table of lengths makes a tree, and each node
// of it stores one bit for each value that comes to it: left or right. Ops divide and merge lists.
#pragma once

#include "codecs/planes/format.hpp"

namespace wirepress {
namespace {
namespace planes {

constexpr size_t kSlack = 64;  // bytes behind a list that may be read and written

// Memory that will soon be written and read: brought into the caches bit by bit between other work,
// because only so many lines can be on their way at a time.
class Ahead {
 public:
  // Up to `end`, from `begin` or where it has come to behind that.
  void write(const std::byte* begin, const std::byte* end) { write_ = {write_.behind(begin), end}; }
  void read(const std::byte* begin, const std::byte* end) { read_ = {read_.behind(begin), end}; }
  // So many bytes of each.
  void fetch(size_t to_write, size_t to_read) {
    for (const std::byte* const end = write_.move(to_write); write_.at < end; write_.at += kLine)
      __builtin_prefetch(write_.at, 1);
    for (const std::byte* const end = read_.move(to_read); read_.at < end; read_.at += kLine)
      __builtin_prefetch(read_.at, 0, 2);
  }

 private:
  struct Part {
    const std::byte* at = nullptr;
    const std::byte* end = nullptr;
    const std::byte* behind(const std::byte* begin) const { return at < begin ? begin : at; }
    const std::byte* move(size_t n) const {
      return at < end && n < static_cast<size_t>(end - at) ? at + n : end;
    }
  };
  Part write_, read_;
};

// A tree in the order in which nodes stand in a code: each before its children, the left one's
// first. Leaves are numbered from left to right, that is by length and value.
struct Tree {
  struct Node {
    int16_t left, right;  // nodes, or leaves as ~symbol
    uint8_t split;        // the first leaf on the right
  };
  std::array<Node, kMostLeaves> node;
  size_t n_nodes = 0;
  std::array<uint16_t, kMostLeaves> symbol;  // by leaf
  std::array<uint8_t, kValues> leaf;         // by value; of those without a code the escape's
  uint8_t escape = 0;                        // its leaf

  // Of complete lengths that number 2 to kMostLeaves, the escape's among them.
  explicit Tree(const Lengths& lengths) {
    std::array<uint16_t, kMostLength + 2> begin{};
    for (const uint8_t length : lengths)
      if (length > 0) ++begin[length + 1u];
    for (size_t k = 1; k < begin.size(); ++k)
      begin[k] = static_cast<uint16_t>(begin[k] + begin[k - 1]);
    const size_t n_leaves = begin.back();
    for (size_t s = 0; s < kSymbols; ++s)
      if (lengths[s] > 0) symbol[begin[lengths[s]]++] = static_cast<uint16_t>(s);
    while (symbol[escape] != kEscape) ++escape;
    leaf.fill(escape);
    for (size_t i = 0; i < n_leaves; ++i)
      if (i != escape) leaf[symbol[i]] = static_cast<uint8_t>(i);
    grow(lengths, 0, n_leaves, kUnits);
  }

 private:
  int16_t grow(const Lengths& lengths, size_t first, size_t end, size_t units) {
    if (end - first == 1) return static_cast<int16_t>(~symbol[first]);
    const size_t own = n_nodes++;
    size_t split = first;
    for (size_t sum = 0; sum < units / 2; ++split) sum += kUnits >> lengths[symbol[split]];
    const int16_t left = grow(lengths, first, split, units / 2);
    const int16_t right = grow(lengths, split, end, units / 2);
    node[own] = {left, right, static_cast<uint8_t>(split)};
    return static_cast<int16_t>(own);
  }
};

constexpr bool is_node(int16_t child) { return child >= 0; }
constexpr bool is_escape(int16_t child) { return child == ~static_cast<int16_t>(kEscape); }
constexpr std::byte value_of(int16_t child) { return static_cast<std::byte>(~child); }

// Room for lists: an encoder keeps three of the root, and on each way down from it two a node.
constexpr size_t kArena = (2 * kMostLength + 1) * (kChunk + kSlack);

template <typename Ops>
class TreeEncoder {
 public:
  // A code has at most kRoom bytes: 19 bits a value, and a byte begun at each node.
  static constexpr size_t kRoom = kChunk * 19 / 8 + kMostLeaves + 2 * kSlack;

  TreeEncoder(const Tree& tree, std::byte* arena) : tree_(tree), arena_(arena) {}

  // The size of the code of n values, which has room at `out`.
  size_t operator()(const std::byte* values, size_t n, std::byte* out) {
    std::byte* const leaves = take(n);
    Ops::translate(values, n, tree_.leaf.data(), tree_.escape, leaves);
    out_ = out;
    values_ = values;
    leaves_ = leaves;
    n_ = n;
    encode(0, leaves, n);
    arena_ = leaves;
    return static_cast<size_t>(out_ - out);
  }

 private:
  std::byte* take(size_t n) {
    std::byte* const list = arena_;
    arena_ += n + kSlack;
    return list;
  }

  void encode(int16_t k, const std::byte* list, size_t n) {
    if constexpr (requires { typename Ops::Few; })
      if (n <= Ops::kFew) return encode_few(k, Ops::few(list), n);
    const Tree::Node node = tree_.node[static_cast<size_t>(k)];
    std::byte* const before = arena_;
    std::byte* const left = is_node(node.left) ? take(n) : nullptr;
    std::byte* const right = is_node(node.right) ? take(n) : nullptr;
    const size_t ones = divide(list, n, node.split, left, right);
    out_ += (n + 7) / 8;
    child(node.left, left, n - ones);
    child(node.right, right, ones);
    arena_ = before;
  }

  // A list that fits a register, and all below it.
  template <typename Few>
  void encode_few(int16_t k, Few list, size_t n) {
    const Tree::Node node = tree_.node[static_cast<size_t>(k)];
    const uint64_t right = Ops::above(list, node.split) & ~uint64_t{0} >> (64 - n);
    std::memcpy(out_, &right, sizeof(right));
    out_ += (n + 7) / 8;
    const auto ones = static_cast<size_t>(std::popcount(right));
    if (ones < n) few(node.left, list, ~right, n - ones);
    if (ones > 0) few(node.right, list, right, ones);
  }
  template <typename Few>
  void few(int16_t k, Few list, uint64_t mask, size_t n) {
    if (is_node(k)) return encode_few(k, Ops::those(list, mask), n);
    if (is_escape(k)) child(k, nullptr, n);
  }

  size_t divide(const std::byte* list, size_t n, uint8_t split, std::byte* left, std::byte* right) {
    if (left && right) return Ops::template divide<true, true>(list, n, split, out_, left, right);
    if (left) return Ops::template divide<true, false>(list, n, split, out_, left, right);
    if (right) return Ops::template divide<false, true>(list, n, split, out_, left, right);
    return Ops::template divide<false, false>(list, n, split, out_, left, right);
  }

  void child(int16_t k, const std::byte* list, size_t n) {
    if (n == 0) return;
    if (is_node(k)) return encode(k, list, n);
    if (!is_escape(k)) return;
    out_ = Ops::pick(leaves_, values_, n_, tree_.escape, out_);
  }

  const Tree& tree_;
  std::byte* arena_;
  std::byte* out_ = nullptr;
  const std::byte* values_ = nullptr;
  const std::byte* leaves_ = nullptr;
  size_t n_ = 0;
};

template <typename Ops>
class TreeDecoder {
 public:
  TreeDecoder(const Tree& tree, std::byte* arena, Ahead* ahead)
      : tree_(tree), arena_(arena), ahead_(*ahead) {}

  // Reads the code of n values, n > 0, and moves *src behind it; false: it is none. `out` has
  // kSlack bytes more.
  bool operator()(ConstBytes* src, size_t n, std::byte* out) {
    src_ = *src;
    const bool good = decode(0, n, out);
    *src = src_;
    return good;
  }

 private:
  struct List {
    const std::byte* bytes = nullptr;
    std::byte value{};  // of all, where there are no bytes
  };

  bool decode(int16_t k, size_t n, std::byte* out) {
    if constexpr (requires { typename Ops::Few; })
      if (n <= Ops::kFew) {
        Ops::put_few(decode_few<Ops>(k, n), out);
        return good_;
      }
    const size_t size = (n + 7) / 8;
    if (size > src_.size()) return false;
    const std::byte* const bits = src_.data();
    if (n % 8 != 0 && (bits[size - 1] >> n % 8) != std::byte{0}) return false;
    size_t ones = 0, i = 0;
    for (; i + 8 <= size; i += 8) ones += popcount(bits + i);
    ones += static_cast<size_t>(std::popcount(last_bits(i, size)));
    src_ = src_.subspan(size);
    ahead_.fetch(n / 8, n / 8);
    const Tree::Node node = tree_.node[static_cast<size_t>(k)];
    std::byte* const before = arena_;
    List left, right;
    if (!child(node.left, n - ones, &left) || !child(node.right, ones, &right)) return false;
    merge(bits, n, left, right, out);
    arena_ = before;
    return true;
  }

  // Values that fit a register, 1 or more. If they are no code, good_ is false.
  template <typename O>
  typename O::Few decode_few(int16_t k, size_t n) {
    const size_t size = (n + 7) / 8;
    if (size > src_.size()) return none<O>();
    const uint64_t bits = last_bits(0, size);
    if (n < 64 && bits >> n != 0) return none<O>();
    src_ = src_.subspan(size);
    const auto ones = static_cast<size_t>(std::popcount(bits));
    const Tree::Node node = tree_.node[static_cast<size_t>(k)];
    const typename O::Few left = few<O>(node.left, n - ones);
    return O::merge_few(bits, left, few<O>(node.right, ones));
  }
  template <typename O>
  typename O::Few few(int16_t k, size_t n) {
    if (!is_node(k) && !is_escape(k)) return O::all(value_of(k));
    if (n == 0) return O::all(std::byte{0});
    if (is_node(k)) return decode_few<O>(k, n);
    if (n > src_.size()) return none<O>();
    const typename O::Few values = O::some(src_.data(), n);
    src_ = src_.subspan(n);
    return values;
  }
  template <typename O>
  typename O::Few none() {
    good_ = false;
    return O::all(std::byte{0});
  }

  static size_t popcount(const std::byte* bits) {
    uint64_t word;
    std::memcpy(&word, bits, sizeof(word));
    return static_cast<size_t>(std::popcount(word));
  }
  // The bytes begin .. end of what is left, fewer than 9.
  uint64_t last_bits(size_t begin, size_t end) const {
    uint64_t word = 0;
    if (begin == end) return word;
    if (src_.size() - begin < sizeof(word)) {
      std::memcpy(&word, src_.data() + begin, end - begin);
      return word;
    }
    std::memcpy(&word, src_.data() + begin, sizeof(word));
    return word & ~uint64_t{0} >> (64 - 8 * (end - begin));
  }

  bool child(int16_t k, size_t n, List* list) {
    if (!is_node(k) && !is_escape(k)) return list->value = value_of(k), true;
    if (n == 0) return true;
    std::byte* const own = arena_;
    arena_ += n + kSlack;
    list->bytes = own;
    if (is_node(k)) return decode(k, n, own);
    if (n > src_.size()) return false;
    std::memcpy(own, src_.data(), n);
    src_ = src_.subspan(n);
    return true;
  }

  static void merge(const std::byte* bits, size_t n, const List& left, const List& right,
                    std::byte* out) {
    const auto [l, a] = left;
    const auto [r, b] = right;
    if (l && r) return Ops::template merge<true, true>(bits, n, l, r, a, b, out);
    if (l) return Ops::template merge<true, false>(bits, n, l, r, a, b, out);
    if (r) return Ops::template merge<false, true>(bits, n, l, r, a, b, out);
    Ops::template merge<false, false>(bits, n, l, r, a, b, out);
  }

  const Tree& tree_;
  std::byte* arena_;
  Ahead& ahead_;
  ConstBytes src_;
  bool good_ = true;
};

}  // namespace planes
}  // namespace
}  // namespace wirepress
