// SPDX-License-Identifier: Apache-2.0
// The code of fre (spec.md), for all kernels: its table, the frame around its streams, and both
// directions in plain C++. One table has a row per case of the code and drives both directions
// without branches: which case comes next is not predictable. The encoder has no serial dependence
// but the bit position, since values are predicted from quantised ones; the decoder is a chain of
// lookups.
//
// Long because its parts call each other in inner loops and are compiled once for each kernel.
//
// A kernel gives a struct Wide with what its instruction set does better than Portable. All is in
// an anonymous namespace: each kernel has its own copy, compiled for it.
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

constexpr size_t kGroupWays = 4;  // streams that are decoded side by side

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

struct Table {
  unsigned m;
  uint32_t half;  // added to values with an exponent of 1 to 254
  std::array<Row, kRows> row;
  struct Step {
    uint8_t size;  // of the row, to be at hand early
    uint8_t row;
  };
  std::array<Step, 1u << kPrefixBits> step;  // by the next bits of a stream
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

void make_table(const Args& args, Table* table) {
  table->m = static_cast<unsigned>(args.value[kM]);
  table->half = half_unit(args);
  for (size_t index = 0; index < kRows; ++index) {
    const Row row = table->row[index] = make_row(index, table->m);
    for (unsigned rest = 0; rest < table->step.size() >> row.prefix; ++rest)
      table->step[rest << row.prefix | row.bits] = {row.size, static_cast<uint8_t>(index)};
  }
}

// ---- the block ------------------------------------------------------------------------------

struct Shape {         // how a block is cut
  size_t size;         // bytes of a value
  size_t n;            // values
  size_t tail;         // bytes after them
  size_t ways;         // streams
  size_t each;         // values of a stream; the last ones may have fewer
  size_t length_size;  // bytes that say how long a stream is
  Shape(const Args& args, size_t raw_size)
      : size(is_short(args) ? 2 : 4), n(raw_size / size), tail(raw_size % size) {
    ways = static_cast<size_t>(args.value[kWays]);
    length_size = ways == kChunks ? 2 : 4;
    each = ways == kChunks ? kChunkValues : (n + ways - 1) / ways;
    if (ways == kChunks) ways = (n + each - 1) / each;
  }
  constexpr size_t framing() const { return n > 0 ? (ways - 1) * length_size : 0; }
  // Values of stream `way` begin at min(n, way * each).
  constexpr size_t begin(size_t way) const {
    const size_t at = way * each;
    return at < n ? at : n;
  }
  // Bytes of a stream that is not the last one, as they stand at the head of the code.
  uint32_t length(const std::byte* code, size_t way) const {
    uint32_t length = 0;
    std::memcpy(&length, code + way * length_size, length_size);
    return length;
  }
  void put_length(std::byte* code, size_t way, size_t length) const {
    std::memcpy(code + way * length_size, &length, length_size);
  }
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
  // n pieces of up to 63 bits; the room is looked at once.
  void put(const uint64_t* bits, const uint8_t* sizes, size_t n) {
    if (dst_.size() - position_ < (n + 1) * sizeof(buffer_)) {
      for (size_t i = 0; i < n; ++i) {
        const unsigned first = std::min<unsigned>(sizes[i], 32);
        put(bits[i] & 0xFFFFFFFF, first);
        put(bits[i] >> 32, sizes[i] - first);
      }
      return;
    }
    std::byte* at = dst_.data() + position_;
    uint64_t buffer = buffer_;
    unsigned filled = filled_;
    for (size_t i = 0; i < n; ++i) {
      buffer |= bits[i] << filled;
      std::memcpy(at, &buffer, sizeof(buffer));
      const unsigned size = sizes[i], all = filled + size;
      at += all / 8;
      filled = all % 8;
      // What is left are the piece's last bits: of the word, it may have no room for them.
      if (size >= 8) [[likely]]
        buffer = bits[i] >> (size - filled);
      else
        buffer >>= all & ~7u;
    }
    position_ = static_cast<size_t>(at - dst_.data());
    buffer_ = buffer;
    filled_ = filled;
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

// The row of a difference of exponents.
constexpr size_t difference_row(int d) {
  return std::max(d, -d) > kMaxDifference ? size_t{kEscape}
                                          : static_cast<size_t>(kDifference + kMaxDifference + d);
}

// By 255 + difference of exponents.
constexpr auto kDifferenceRows = [] {
  std::array<uint8_t, 2 * 255 + 1> rows{};
  for (int d = -255; d <= 255; ++d)
    rows[static_cast<size_t>(255 + d)] = static_cast<uint8_t>(difference_row(d));
  return rows;
}();

// `row` is that of the difference of their exponents.
constexpr size_t case_of(uint32_t q, uint32_t previous, size_t row) {
  row = exponent(q) == 255 ? size_t{kEscape} : row;
  row = exponent(q) == 0 ? size_t{kDenormal} : row;
  row = (q & ~kSign) == 0 ? size_t{kZero} : row;
  return q == previous ? size_t{kEqual} : row;
}
inline size_t case_of(uint32_t q, uint32_t previous) {
  return case_of(q, previous, kDifferenceRows[255 + exponent(q) - exponent(previous)]);
}

constexpr uint64_t code(const Row& row, uint32_t q) {
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

// The sizes of streams, the streams, the tail. stream(begin, end, room, &size) codes those values;
// size is kNoRoom where they do not fit.
constexpr size_t kNoRoom = SIZE_MAX;
template <class EncodeStream>
Status encode_ways(const Shape& shape, ConstBytes src, Bytes dst, size_t* written,
                   EncodeStream stream) {
  const auto full = [&] {
    return fail(Code::kDstTooSmall, "fre: the code of %zu bytes does not fit %zu", src.size(),
                dst.size());
  };
  size_t position = shape.framing();
  if (position + shape.tail > dst.size()) return full();
  const Bytes room = dst.first(dst.size() - shape.tail);
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    size_t n = 0;
    WPR_TRY(stream(shape.begin(way), shape.begin(way + 1), room.subspan(position), &n));
    if (n == kNoRoom) return full();
    position += n;
    if (way + 1 < shape.ways) shape.put_length(dst.data(), way, n);
  }
  if (shape.tail > 0)
    std::memcpy(dst.data() + position, src.data() + shape.size * shape.n, shape.tail);
  *written = position + shape.tail;
  return {};
}

template <class Wide>
Status encode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Shape shape(args, src.size());
  const Quantiser quantise(args);
  const auto stream =
      shape.size == 2 ? encode_stream<Wide, uint16_t> : encode_stream<Wide, uint32_t>;
  return encode_ways(shape, src, dst, written,
                     [&](size_t begin, size_t end, Bytes room, size_t* size) -> Status {
                       BitWriter out(room);
                       stream(quantise, *static_cast<const typename Wide::State*>(state),
                              src.data() + shape.size * begin, end - begin, &out);
                       *size = out.finish() ? out.position() : kNoRoom;
                       return {};
                     });
}

// ---- decoder --------------------------------------------------------------------------------

constexpr uint32_t kPeek = (1u << kPrefixBits) - 1;

// Fraction, exponent and sign of a code that begins with the lowest of `bits`.
constexpr uint32_t payload_of(const Row& row, uint64_t bits) {
  return static_cast<uint32_t>(bits >> row.prefix << row.left);
}

// The word of a code. The upper half of *beyond stays 0 while all words are in their ranges.
template <class Element>
constexpr uint32_t decoded(const Row& row, uint32_t payload, uint32_t previous, uint64_t* beyond) {
  const uint32_t word = (previous & row.keep) + row.add + (payload & row.take);
  *beyond |= uint64_t{row.span} - (word - row.low);
  if (sizeof(Element) == 2) *beyond |= uint64_t{word & 0xFFFF} << 32;
  return word | (payload << row.turn & kSign);
}

// Half a unit more, where the exponent is 1 to 254.
constexpr uint32_t with_half(uint32_t word, uint32_t half) {
  constexpr uint32_t kOne = kFraction + 1;  // an exponent of 1
  return (word & kInfinity) - kOne < kInfinity - kOne ? word + half : word;
}

// One bit stream being read. Past its end it reads zeros; finish() then finds out.
template <class Element>
class Stream {
 public:
  Stream() = default;
  explicit Stream(ConstBytes src) : next_(src.data()), end_(src.data() + src.size()) {}

  ConstBytes rest() const { return {next_, end_}; }

  // Goes on at bit `at` of rest(), which the caller has read up to there.
  void resume(uint64_t at, uint32_t previous, bool bad) {
    next_ += at / 8;
    if (at % 8 != 0) {
      refill();
      buffer_ >>= at % 8;
      filled_ -= static_cast<unsigned>(at % 8);
    }
    previous_ = previous;
    beyond_ = bad ? ~uint64_t{0} : 0;
  }

  // Whether steps() may be called: two codes fit what refill_whole() gives.
  bool fast(const Table& table, size_t room) const {
    return table.m <= kShortM && room >= 2 && whole();
  }

  // Decodes 2 values, or a run, at most `room`; returns how many.
  template <bool kHalf>
  [[gnu::always_inline]] size_t steps(const Table& table, std::byte* dst, size_t room) {
    refill_whole();
    if ((buffer_ & kAllEqual) == 0) [[unlikely]]
      return run<kHalf>(table, dst, room);
    store<kHalf>(table, dst, 0, take(table));
    store<kHalf>(table, dst, 1, take(table));
    return 2;
  }

  template <bool kHalf>
  void one(const Table& table, std::byte* dst) {
    refill();
    store<kHalf>(table, dst, 0, take(table));
  }

  // True when the codes were valid and ended in the last byte, with zeros behind them.
  bool finish() const {
    const int64_t left = 8 * (end_ - next_) - 8 * static_cast<int64_t>(over_) + filled_;
    if (beyond_ >> 32 != 0 || left < 0 || left >= 8) return false;
    return left == 0 || std::to_integer<unsigned>(end_[-1]) >> (8 - left) == 0;
  }

 private:
  static constexpr uint64_t kAllEqual = (uint64_t{1} << 32) - 1;

  bool whole() const { return end_ - next_ >= static_cast<ptrdiff_t>(sizeof(buffer_)); }

  // At least 56 bits after it.
  void refill() {
    if (whole()) [[likely]] {
      refill_whole();
    } else {
      for (; filled_ <= 56; filled_ += 8) {
        if (next_ == end_) {
          ++over_;
        } else {
          buffer_ |= std::to_integer<uint64_t>(*next_++) << filled_;
        }
      }
    }
  }
  void refill_whole() {
    uint64_t word;
    std::memcpy(&word, next_, sizeof(word));
    buffer_ |= word << filled_;
    next_ += (63 - filled_) >> 3;
    filled_ |= 56;
  }

  // Takes one code, up to 35 bits.
  [[gnu::always_inline]] uint32_t take(const Table& table) {
    const Table::Step step = table.step[buffer_ & kPeek];
    const Row& row = table.row[step.row];
    const uint32_t payload = payload_of(row, buffer_);
    buffer_ >>= step.size;
    filled_ -= step.size;
    return previous_ = decoded<Element>(row, payload, previous_, &beyond_);
  }

  template <bool kHalf>
  static void store(const Table& table, std::byte* dst, size_t i, uint32_t word) {
    store_word<Element>(dst, i, kHalf ? with_half(word, table.half) : word);
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
      std::memcpy(&word, next_, sizeof(word));
      if (word != 0) break;
      fill(32);
    }
    return done;
  }

  const std::byte* next_ = nullptr;  // to load
  const std::byte* end_ = nullptr;
  size_t over_ = 0;  // zero bytes read past the end
  uint64_t buffer_ = 0;
  uint64_t beyond_ = 0;
  unsigned filled_ = 0;
  uint32_t previous_ = 0;
};

// Decodes to dst .. end.
template <class Element, bool kHalf>
void decode_one(const Table& table, Stream<Element>* stream, std::byte* dst, std::byte* end) {
  constexpr size_t kSize = sizeof(Element);
  const auto room = [&] { return static_cast<size_t>(end - dst) / kSize; };
  Stream<Element> in = *stream;  // a copy that can live in registers
  while (in.fast(table, room())) dst += kSize * in.template steps<kHalf>(table, dst, room());
  for (; dst != end; dst += kSize) in.template one<kHalf>(table, dst);
  *stream = in;
}

// Two streams, side by side while both last: two chains of lookups.
template <class Element, bool kHalf>
void decode_two(const Table& table, Stream<Element>* streams, std::byte* const* dst,
                const size_t* n) {
  constexpr size_t kSize = sizeof(Element);
  std::byte *to_a = dst[0], *to_b = dst[1];
  std::byte *const end_a = to_a + kSize * n[0], *const end_b = to_b + kSize * n[1];
  const auto room = [](std::byte* to, std::byte* end) {
    return static_cast<size_t>(end - to) / kSize;
  };
  Stream<Element> a = streams[0], b = streams[1];
  while (a.fast(table, room(to_a, end_a)) && b.fast(table, room(to_b, end_b))) {
    to_a += kSize * a.template steps<kHalf>(table, to_a, room(to_a, end_a));
    to_b += kSize * b.template steps<kHalf>(table, to_b, room(to_b, end_b));
  }
  streams[0] = a;
  streams[1] = b;
  decode_one<Element, kHalf>(table, &streams[0], to_a, end_a);
  decode_one<Element, kHalf>(table, &streams[1], to_b, end_b);
}

// Cuts the payload in its streams by the lengths at its head.
class Cutter {
 public:
  // `codes` hold the framing.
  Cutter(const Shape& shape, ConstBytes codes)
      : shape_(shape), codes_(codes), position_(shape.framing()) {}

  Status next(ConstBytes* stream) {
    const size_t left = codes_.size() - position_;  // the last stream takes it
    const size_t size = way_ + 1 < shape_.ways ? shape_.length(codes_.data(), way_) : left;
    if (size > left)
      return fail(Code::kCorrupt, "fre: stream %zu of %zu bytes, %zu are left", way_, size, left);
    *stream = codes_.subspan(position_, size);
    position_ += size;
    ++way_;
    return {};
  }

 private:
  const Shape& shape_;
  ConstBytes codes_;
  size_t position_, way_ = 0;
};

// Decodes the streams from `first` on, kGroupWays or one of them.
template <class Wide, class Element, bool kHalf>
Status decode_streams(const typename Wide::State& table, const Shape& shape, size_t first,
                      size_t count, Cutter* cutter, std::byte* dst) {
  std::array<Stream<Element>, kGroupWays> streams;
  std::array<std::byte*, kGroupWays> to;
  std::array<size_t, kGroupWays> n;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = shape.begin(first + i);
    ConstBytes code;
    WPR_TRY(cutter->next(&code));
    streams[i] = Stream<Element>(code);
    to[i] = dst + shape.size * begin;
    n[i] = shape.begin(first + i + 1) - begin;
  }
  Wide::template decode<Element, kHalf>(table, count, streams.data(), to.data(), n.data());
  for (size_t i = 0; i < count; ++i)
    if (!streams[i].finish())
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", first + i,
                  shape.ways, n[i]);
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
    Cutter cutter(shape, codes);
    const auto some = shape.size == 2  ? decode_streams<Wide, uint16_t, true>
                      : table.half > 0 ? decode_streams<Wide, uint32_t, true>
                                       : decode_streams<Wide, uint32_t, false>;
    for (size_t way = 0, count; way < shape.ways; way += count) {
      count = shape.ways - way < kGroupWays ? 1 : kGroupWays;
      WPR_TRY(some(table, shape, way, count, &cutter, dst.data()));
    }
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
    if (ways == 1)
      return decode_one<Element, kHalf>(table, streams, dst[0], dst[0] + sizeof(Element) * n[0]);
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
