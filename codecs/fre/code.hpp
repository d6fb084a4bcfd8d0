// SPDX-License-Identifier: Apache-2.0
// The code of fre (spec.md), for all kernels: its table, the frame around its streams, and both
// directions in plain C++. One table has a row per case of the code and drives both directions
// without branches: which case comes next is not predictable. The encoder has no serial dependence
// but the bit position, since values are predicted from quantised ones; the decoder is a chain of
// lookups.
//
// A kernel gives a struct Wide with what its instruction set does better (see Portable in
// scalar.cpp). All is in an anonymous namespace: each kernel has its own copy, compiled for it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "codecs/fre/fre.hpp"

namespace wirepress {
namespace {

using namespace fre;

constexpr size_t kWaysMax = 4;
constexpr size_t kLengthSize = 4;

// ---- the table ------------------------------------------------------------------------------

// A code is a prefix and a payload: fraction, exponent in kEscape only, sign. Shifted left by
// `left`, the payload's fraction and exponent stand where they do in the float32 word.
struct Row {
  uint16_t bits;   // the prefix, first bit lowest
  uint8_t prefix;  // its size in bits
  uint8_t size;    // bits of the whole code
  uint8_t left;
  uint8_t turn;   // what shifts the payload's sign to its place in the word
  uint32_t sign;  // the sign bit of the payload, before that shift
  uint32_t take;  // bits of the word that the payload carries
  uint32_t keep;  // bits of the word that come from the previous value ...
  uint32_t add;   // ... and what is added to them
  uint32_t low;   // a decoded word, without a sign that the payload has, must be in
  uint32_t span;  // low .. low + span
};
static_assert(sizeof(Row) == 32);

enum Case { kEqual, kZero, kDenormal, kEscape, kDifference };  // the last stands for 19 rows
constexpr int kMaxDifference = 9;
constexpr size_t kRows = kDifference + 2 * kMaxDifference + 1;
constexpr unsigned kPrefixBits = 10;    // at most
constexpr unsigned kDenormalBits = 28;  // the longest code while m <= kShortM
constexpr int kShortM = 16;

// What the next bits of a stream say: one code, or two where the bits show both.
constexpr unsigned kPeekBits = 12;
struct Step {
  uint32_t word;  // bits of all codes (6), of the first (6), its row (5), the second's (5), codes

  unsigned size() const { return word & 63; }
  unsigned first_size() const { return word >> 6 & 63; }
  size_t first() const { return word >> 12 & 31; }
  size_t second() const { return word >> 17 & 31; }
  unsigned codes() const { return word >> 22; }
};

struct Table {
  unsigned m;
  uint32_t half;  // added to values with an exponent of 1 to 254
  std::array<Row, kRows> row;
  std::array<Step, 1u << kPeekBits> step;
  std::array<uint8_t, 1u << kPrefixBits> case_of;
};

struct Prefix {
  unsigned bits;
  unsigned size;
};

Prefix difference_prefix(int d) {
  const unsigned k = static_cast<unsigned>(std::abs(d));
  const unsigned negative = d < 0;
  if (k == 0) return {0b01, 2};
  if (k <= 5) return {((2u << k) - 1) | negative << (k + 2), k + 3};
  return {0x7F | (k - 6) << 7 | negative << 9, 10};
}

Row make_row(size_t index, unsigned m) {
  constexpr uint32_t kNormalLow = kFraction + 1;
  const auto bits = [](Prefix prefix, unsigned payload, Row row) {
    row.bits = static_cast<uint16_t>(prefix.bits);
    row.prefix = static_cast<uint8_t>(prefix.size);
    row.size = static_cast<uint8_t>(prefix.size + payload);
    return row;
  };
  const uint32_t fraction = kFraction >> (kFractionBits - m) << (kFractionBits - m);
  const uint8_t left = static_cast<uint8_t>(kFractionBits - m);
  constexpr uint32_t kAbove = 1u << kFractionBits;  // the sign follows the fraction
  switch (index) {
    case kEqual:  // shifted beyond its word: the payload is 0
      return bits({0b00, 2}, 0, {.left = 32, .keep = ~0u, .span = ~0u});
    case kZero:
      return bits({0b0010, 4}, 1, {.left = kFractionBits, .turn = 8, .sign = kAbove});
    case kDenormal:
      return bits({0b1010, 4}, kFractionBits + 1,
                  {.turn = 8, .sign = kAbove, .take = kFraction, .span = kFraction});
    case kEscape:
      return bits({0b110, 3}, m + 9,
                  {.left = left,
                   .sign = kSign,
                   .take = kInfinity | fraction,
                   .low = kNormalLow,
                   .span = ~kSign - kNormalLow});
    default:
      break;
  }
  const int d = static_cast<int>(index) - kDifference - kMaxDifference;
  return bits(difference_prefix(d), m + 1,
              {.left = left,
               .turn = 8,
               .sign = kAbove,
               .take = fraction,
               .keep = kInfinity,
               .add = static_cast<uint32_t>(d) << kFractionBits,
               .low = kNormalLow,
               .span = kInfinity - 1 - kNormalLow});
}

Step make_step(const Table& table, unsigned peek) {
  const uint32_t first = table.case_of[peek & ((1u << kPrefixBits) - 1)];
  const Row& a = table.row[first];
  const uint32_t one = a.size | uint32_t{a.size} << 6 | first << 12 | 1u << 22;
  if (a.size >= kPeekBits) return {one};
  const unsigned rest = peek >> a.size;
  const uint32_t second = table.case_of[rest & ((1u << kPrefixBits) - 1)];
  const Row& b = table.row[second];
  if (a.size + b.prefix > kPeekBits || a.size + b.size > kDenormalBits) return {one};
  return {(a.size + uint32_t{b.size}) | uint32_t{a.size} << 6 | first << 12 | second << 17 |
          2u << 22};
}

void make_table(const Args& args, Table* table) {
  table->m = static_cast<unsigned>(args.value[kM]);
  table->half = half_unit(args);
  for (size_t index = 0; index < kRows; ++index) {
    const Row row = table->row[index] = make_row(index, table->m);
    for (unsigned rest = 0; rest < table->case_of.size() >> row.prefix; ++rest)
      table->case_of[rest << row.prefix | row.bits] = static_cast<uint8_t>(index);
  }
  for (unsigned peek = 0; peek < table->step.size(); ++peek)
    table->step[peek] = make_step(*table, peek);
}

// ---- the block ------------------------------------------------------------------------------

struct Shape {  // how a block is cut
  size_t size;  // bytes of a value
  size_t n;     // values
  size_t tail;  // bytes after them
  size_t ways;
  Shape(const Args& args, size_t raw_size)
      : size(is_short(args) ? 2 : 4),
        n(raw_size / size),
        tail(raw_size % size),
        ways(static_cast<size_t>(args.value[kWays])) {}
  size_t framing() const { return n > 0 ? (ways - 1) * kLengthSize : 0; }
  // Values of stream `way` begin at min(n, way * quarter).
  size_t begin(size_t way) const { return std::min(n, way * ((n + ways - 1) / ways)); }
};

// A value of a block as a float32 word: Element is uint32_t, or uint16_t for bfloat16.
template <class Element>
uint32_t load_word(const std::byte* src, size_t i) {
  Element word;
  std::memcpy(&word, src + sizeof(word) * i, sizeof(word));
  return uint32_t{word} << (32 - 8 * sizeof(word));
}

template <class Element>
void store_word(std::byte* dst, size_t i, uint32_t word) {
  const Element element = static_cast<Element>(word >> (32 - 8 * sizeof(Element)));
  std::memcpy(dst + sizeof(element) * i, &element, sizeof(element));
}

// ---- encoder ------------------------------------------------------------------------------

class BitWriter {
 public:
  explicit BitWriter(Bytes dst) : dst_(dst) {}

  // size <= 56.
  void put(uint64_t bits, unsigned size) {
    buffer_ |= bits << filled_;
    filled_ += size;
    if (dst_.size() - position_ >= sizeof(buffer_)) [[likely]] {
      std::memcpy(dst_.data() + position_, &buffer_, sizeof(buffer_));
      position_ += filled_ / 8;
      buffer_ >>= filled_ & ~7u;
      filled_ &= 7;
    } else {
      while (filled_ >= 8) put_byte();
    }
  }
  // Zero bits up to the next byte. False: dst was too small.
  bool finish() {
    if (filled_ > 0) put_byte();
    return !full_;
  }
  size_t position() const { return position_; }
  bool full() const { return full_; }

 private:
  void put_byte() {
    if (position_ < dst_.size()) {
      dst_[position_++] = static_cast<std::byte>(buffer_);
    } else {
      full_ = true;
    }
    buffer_ >>= 8;
    filled_ -= std::min(filled_, 8u);
  }

  Bytes dst_;
  size_t position_ = 0;
  uint64_t buffer_ = 0;
  unsigned filled_ = 0;  // under 8 between calls
  bool full_ = false;
};

// By 255 + difference of exponents.
constexpr auto kDifferenceRows = [] {
  std::array<uint8_t, 2 * 255 + 1> rows{};
  for (int d = -255; d <= 255; ++d)
    rows[static_cast<size_t>(255 + d)] =
        std::max(d, -d) > kMaxDifference ? uint8_t{kEscape}
                                         : static_cast<uint8_t>(kDifference + kMaxDifference + d);
  return rows;
}();

inline size_t case_of(uint32_t q, uint32_t previous) {
  size_t row = kDifferenceRows[255 + exponent(q) - exponent(previous)];
  row = exponent(q) == 255 ? size_t{kEscape} : row;
  row = exponent(q) == 0 ? size_t{kDenormal} : row;
  row = (q & ~kSign) == 0 ? size_t{kZero} : row;
  return q == previous ? size_t{kEqual} : row;
}

inline uint64_t code(const Row& row, uint32_t q) {
  const uint32_t negative = 0 - (q >> 31);
  const uint64_t payload = uint64_t{(q & row.take) | (negative & row.sign)} >> row.left;
  return row.bits | payload << row.prefix;
}

template <class Element>
void encode_rest(const Quantiser& rule, const Table& table, const std::byte* src, size_t n,
                 uint32_t previous, BitWriter* writer) {
  const Quantiser quantise = rule;  // copies that can live in registers
  BitWriter out = *writer;
  size_t i = 0;
  if (table.m <= kShortM) {  // two codes of at most 28 bits fit one put()
    for (; i + 2 <= n && !out.full(); i += 2) {
      const uint32_t first = quantise(load_word<Element>(src, i));
      const uint32_t second = quantise(load_word<Element>(src, i + 1));
      const Row& a = table.row[case_of(first, previous)];
      const Row& b = table.row[case_of(second, first)];
      out.put(code(a, first) | code(b, second) << a.size, unsigned{a.size} + b.size);
      previous = second;
    }
  }
  for (; i < n && !out.full(); ++i) {
    const uint32_t q = quantise(load_word<Element>(src, i));
    const Row& row = table.row[case_of(q, previous)];
    out.put(code(row, q), row.size);
    previous = q;
  }
  *writer = out;
}

template <class Wide, class Element>
void encode_stream(const Quantiser& quantise, const typename Wide::State& state,
                   const std::byte* src, size_t n, BitWriter* out) {
  const size_t done = Wide::template encode<Element>(quantise, state, src, n, out);
  const uint32_t previous = done > 0 ? quantise(load_word<Element>(src, done - 1)) : 0;
  encode_rest<Element>(quantise, state, src + sizeof(Element) * done, n - done, previous, out);
}

template <class Wide>
Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Shape shape(args, src.size());
  const Quantiser quantise(args);
  const auto full = [&] {
    return fail(Code::kDstTooSmall, "fre: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  };
  size_t position = shape.framing();
  if (position + shape.tail > dst.size()) return full();
  const Bytes room = dst.first(dst.size() - shape.tail);
  const auto stream =
      shape.size == 2 ? encode_stream<Wide, uint16_t> : encode_stream<Wide, uint32_t>;
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    BitWriter out(room.subspan(position));
    const size_t begin = shape.begin(way);
    stream(quantise, *static_cast<const typename Wide::State*>(state),
           src.data() + shape.size * begin, shape.begin(way + 1) - begin, &out);
    if (!out.finish()) return full();
    position += out.position();
    const uint32_t size = static_cast<uint32_t>(out.position());
    if (way + 1 < shape.ways) std::memcpy(dst.data() + way * kLengthSize, &size, sizeof(size));
  }
  if (shape.tail > 0)
    std::memcpy(dst.data() + position, src.data() + shape.size * shape.n, shape.tail);
  *written = position + shape.tail;
  return {};
}

// ---- decoder --------------------------------------------------------------------------------

// One bit stream being read. Past its end it reads zeros; finish() then finds out.
template <class Element>
class Stream {
 public:
  Stream() = default;
  explicit Stream(ConstBytes src) : src_(src.data()), size_(src.size()) {}

  ConstBytes bytes() const { return {src_, size_}; }

  // For who has read up to bit `at` in his own way.
  void resume(uint64_t at, uint32_t previous, bool bad) {
    next_ = static_cast<size_t>(at / 8);
    buffer_ = 0;
    filled_ = 0;
    if (at % 8 != 0) {
      refill();
      buffer_ >>= at % 8;
      filled_ -= static_cast<unsigned>(at % 8);
    }
    previous_ = previous;
    beyond_ = bad ? ~uint64_t{0} : 0;
  }

  // At least 56 bits after it.
  void refill() {
    if (whole()) [[likely]] {
      refill_whole();
    } else {
      for (; filled_ <= 56; filled_ += 8, ++next_)
        if (next_ < size_) buffer_ |= std::to_integer<uint64_t>(src_[next_]) << filled_;
    }
  }

  // Whether steps() may be called, for `room` values.
  bool fast(const Table& table, size_t room) const {
    return table.m <= kShortM && room >= 4 && whole();
  }

  // Decodes up to 4 values, or a run; returns how many. It may write some that it does not count.
  template <bool kHalf>
  [[gnu::always_inline]] size_t steps(const Table& table, std::byte* dst, size_t room) {
    refill_whole();
    if ((buffer_ & kAllEqual) == 0) [[unlikely]]
      return run<kHalf>(table, dst, room);
    const size_t done = step<kHalf>(table, dst);  // each takes at most 28 bits
    return done + step<kHalf>(table, dst + sizeof(Element) * done);
  }

  // Takes one code, up to 35 bits.
  uint32_t one(const Table& table) {
    const Step step = table.step[buffer_ & kPeek];
    const uint32_t word = value(table.row[step.first()], buffer_);
    buffer_ >>= step.first_size();
    filled_ -= step.first_size();
    return word;
  }

  // True when the codes were valid and ended in the last byte, with zeros behind them.
  bool finish() const {
    const uint64_t used = 8 * static_cast<uint64_t>(next_) - filled_;
    const uint64_t have = 8 * static_cast<uint64_t>(size_);
    if (beyond_ >> 32 != 0 || used > have || have - used >= 8) return false;
    return have == used || std::to_integer<unsigned>(src_[size_ - 1]) >> (8 - (have - used)) == 0;
  }

  template <bool kHalf>
  static void store(const Table& table, std::byte* dst, size_t i, uint32_t word) {
    constexpr uint32_t kOne = kFraction + 1;  // an exponent of 1
    if (kHalf && (word & kInfinity) - kOne < kInfinity - kOne) word += table.half;
    store_word<Element>(dst, i, word);
  }

 private:
  static constexpr uint64_t kPeek = (1u << kPeekBits) - 1;
  static constexpr uint64_t kAllEqual = (uint64_t{1} << 32) - 1;

  bool whole() const { return next_ + sizeof(buffer_) <= size_; }

  void refill_whole() {
    uint64_t word;
    std::memcpy(&word, src_ + next_, sizeof(word));
    buffer_ |= word << filled_;
    next_ += (63 - filled_) >> 3;
    filled_ |= 56;
  }

  // The value of the code at the bottom of `bits`.
  uint32_t value(const Row& row, uint64_t bits) {
    const uint32_t payload = static_cast<uint32_t>(bits >> row.prefix << row.left);
    const uint32_t word = (previous_ & row.keep) + row.add + (payload & row.take);
    beyond_ |= uint64_t{row.span} - (word - row.low);  // its upper half is 0 while all are in
    if (sizeof(Element) == 2) beyond_ |= uint64_t{word & 0xFFFF} << 32;
    return previous_ = word | (payload << row.turn & kSign);
  }

  // One or two values by one lookup. The second row of a step of one code is that of an equal
  // value, which changes nothing, but is written.
  template <bool kHalf>
  [[gnu::always_inline]] size_t step(const Table& table, std::byte* dst) {
    const Step step = table.step[buffer_ & kPeek];
    const uint64_t bits = buffer_;
    buffer_ >>= step.size();
    filled_ -= step.size();
    store<kHalf>(table, dst, 0, value(table.row[step.first()], bits));
    store<kHalf>(table, dst, 1, value(table.row[step.second()], bits >> step.first_size()));
    return step.codes();
  }

  // A run of equal values, at most n: as many as the buffer has, and whole words after it.
  template <bool kHalf>
  [[gnu::always_inline]] size_t run(const Table& table, std::byte* dst, size_t n) {
    const size_t pairs = static_cast<size_t>(std::countr_zero(buffer_ | uint64_t{1} << 63)) / 2;
    size_t done = 0;
    const auto fill = [&](size_t count) {
      for (const size_t end = done + count; done < end; ++done)
        store<kHalf>(table, dst, done, previous_);
    };
    const size_t most = std::min({n, pairs, size_t{filled_} / 2});
    fill(most);
    buffer_ >>= 2 * most;
    filled_ -= static_cast<unsigned>(2 * most);
    if (buffer_ != 0 || filled_ >= 8) return done;
    // The buffer holds zeros only; whole words of zeros do not pass through it.
    for (uint64_t word; n - done >= 32 && whole(); next_ += sizeof(word)) {
      std::memcpy(&word, src_ + next_, sizeof(word));
      if (word != 0) break;
      fill(32);
    }
    return done;
  }

  const std::byte* src_ = nullptr;
  size_t size_ = 0;
  size_t next_ = 0;  // byte to load; beyond size_ once zeros were read
  uint64_t buffer_ = 0;
  uint64_t beyond_ = 0;
  unsigned filled_ = 0;
  uint32_t previous_ = 0;
};

template <class Element, bool kHalf>
void decode_one(const Table& table, Stream<Element>* stream, std::byte* dst, size_t n) {
  Stream<Element> in = *stream;  // a copy that can live in registers
  size_t i = 0;
  while (in.fast(table, n - i))
    i += in.template steps<kHalf>(table, dst + sizeof(Element) * i, n - i);
  for (; i < n; ++i) {
    in.refill();
    in.template store<kHalf>(table, dst, i, in.one(table));
  }
  *stream = in;
}

// The common part of two streams, side by side: two chains of lookups.
template <class Element, bool kHalf>
void decode_two(const Table& table, Stream<Element>* streams, std::byte* const* dst,
                const size_t* n) {
  constexpr size_t kSize = sizeof(Element);
  Stream<Element> a = streams[0], b = streams[1];
  size_t i = 0, k = 0;
  while (a.fast(table, n[0] - i) && b.fast(table, n[1] - k)) {
    i += a.template steps<kHalf>(table, dst[0] + kSize * i, n[0] - i);
    k += b.template steps<kHalf>(table, dst[1] + kSize * k, n[1] - k);
  }
  streams[0] = a;
  streams[1] = b;
  decode_one<Element, kHalf>(table, &streams[0], dst[0] + kSize * i, n[0] - i);
  decode_one<Element, kHalf>(table, &streams[1], dst[1] + kSize * k, n[1] - k);
}

// Cuts the payload in its streams by the lengths at its head.
Status cut_streams(const Shape& shape, ConstBytes src, std::array<ConstBytes, kWaysMax>* streams) {
  size_t position = shape.framing();
  for (size_t way = 0; way < shape.ways; ++way) {
    uint32_t size = static_cast<uint32_t>(src.size() - position);  // the last takes the rest
    if (way + 1 < shape.ways) std::memcpy(&size, src.data() + way * kLengthSize, sizeof(size));
    if (size > src.size() - position)
      return fail(Code::kCorrupt, "fre: stream %zu of %u bytes, %zu are left", way, size,
                  src.size() - position);
    (*streams)[way] = src.subspan(position, size);
    position += size;
  }
  return {};
}

template <class Wide, class Element, bool kHalf>
Status decode_streams(const typename Wide::State& table, const Shape& shape,
                      const std::array<ConstBytes, kWaysMax>& codes, std::byte* dst) {
  std::array<Stream<Element>, kWaysMax> streams;
  std::array<std::byte*, kWaysMax> to;
  std::array<size_t, kWaysMax> n;
  for (size_t way = 0; way < shape.ways; ++way) {
    streams[way] = Stream<Element>(codes[way]);
    to[way] = dst + shape.size * shape.begin(way);
    n[way] = shape.begin(way + 1) - shape.begin(way);
  }
  Wide::template decode<Element, kHalf>(table, shape.ways, streams.data(), to.data(), n.data());
  for (size_t way = 0; way < shape.ways; ++way)
    if (!streams[way].finish())
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, n[way]);
  return {};
}

template <class Wide>
Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Shape shape(args, dst.size());
  if (src.size() < shape.framing() + shape.tail || src.size() > UINT32_MAX)
    return fail(Code::kCorrupt, "fre: %zu bytes cannot hold %zu values and %zu bytes", src.size(),
                shape.n, shape.tail);
  const ConstBytes codes = src.first(src.size() - shape.tail);
  if (shape.n == 0 && !codes.empty())
    return fail(Code::kCorrupt, "fre: %zu bytes of codes for no value", codes.size());

  const auto& table = *static_cast<const typename Wide::State*>(state);
  if (shape.n > 0) {
    std::array<ConstBytes, kWaysMax> streams;
    WPR_TRY(cut_streams(shape, codes, &streams));
    const auto all = shape.size == 2  ? decode_streams<Wide, uint16_t, true>
                     : table.half > 0 ? decode_streams<Wide, uint32_t, true>
                                      : decode_streams<Wide, uint32_t, false>;
    WPR_TRY(all(table, shape, streams, dst.data()));
  }
  if (shape.tail > 0)
    std::memcpy(dst.data() + shape.size * shape.n, src.data() + codes.size(), shape.tail);
  *written = dst.size();
  return {};
}

// ---- the kernel -----------------------------------------------------------------------------

// What a kernel does in plain C++; the others derive from it.
struct Portable {
  using State = Table;
  static void make(const Args& args, State* state) { make_table(args, state); }

  // Encodes some of the first values, or none, and says how many.
  template <class Element>
  static size_t encode(const Quantiser&, const State&, const std::byte*, size_t, BitWriter*) {
    return 0;
  }
  // Decodes n[w] values of each stream to dst[w].
  template <class Element, bool kHalf>
  static void decode(const State& table, size_t ways, Stream<Element>* streams,
                     std::byte* const* dst, const size_t* n) {
    if (ways == 1) return decode_one<Element, kHalf>(table, streams, dst[0], n[0]);
    for (size_t way = 0; way < ways; way += 2)
      decode_two<Element, kHalf>(table, streams + way, dst + way, n + way);
  }
};

template <class Wide>
Status open(const Args& args, void** state) noexcept {
  auto* made = new (std::nothrow) typename Wide::State;
  if (made == nullptr) return fail(Code::kNoMemory, "fre: no memory for its table");
  Wide::make(args, made);
  *state = made;
  return {};
}

template <class Wide>
void close(void* state) noexcept {
  delete static_cast<typename Wide::State*>(state);
}

template <class Wide>
constexpr Kernel make_kernel(const char* variant, bool (*usable)() noexcept) {
  return {
      .engine = "cpu",
      .variant = variant,
      .usable = usable,
      .open = open<Wide>,
      .close = close<Wide>,
      .encode = encode<Wide>,
      .decode = decode<Wide>,
  };
}

}  // namespace
}  // namespace wirepress
