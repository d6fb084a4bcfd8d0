// SPDX-License-Identifier: Apache-2.0
// The reference kernel. One table has a row per case of the code (spec.md), and drives both
// directions without branches: which case comes next is not predictable. The encoder has no serial
// dependence but the bit position, since values are predicted from quantised ones; the decoder is a
// chain of lookups, one per value.
#include <algorithm>
#include <array>
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
  uint8_t left;
  uint8_t size;   // bits of the whole code
  uint32_t take;  // bits of the word that the payload carries
  uint32_t sign;  // where the shifted payload has the sign; 0: it has none
  uint32_t keep;  // bits of the word that come from the previous value ...
  uint32_t add;   // ... and what is added to them
  uint32_t low;   // a decoded word, without a sign that the payload has, must be in
  uint32_t span;  // low .. low + span
};

enum Case { kEqual, kZero, kDenormal, kEscape, kDifference };  // the last stands for 19 rows
constexpr int kMaxDifference = 9;
constexpr size_t kRows = kDifference + 2 * kMaxDifference + 1;
constexpr unsigned kPeekBits = 10;  // enough to tell the case

struct Table {
  unsigned m;
  std::array<Row, kRows> row;
  struct Step {
    uint8_t size;  // of the row, to be at hand early
    uint8_t row;
  };
  std::array<Step, 1u << kPeekBits> step;  // by the next bits of a stream
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
  switch (index) {
    case kEqual:
      return bits({0b00, 2}, 0, {.keep = ~0u, .span = ~0u});
    case kZero:
      return bits({0b0010, 4}, 1, {.sign = 1});
    case kDenormal:
      return bits({0b1010, 4}, kFractionBits + 1,
                  {.take = kFraction, .sign = 1u << kFractionBits, .span = kFraction});
    case kEscape:
      return bits({0b110, 3}, m + 9,
                  {.left = left,
                   .take = kInfinity | fraction,
                   .sign = kSign,
                   .low = kNormalLow,
                   .span = ~kSign - kNormalLow});
    default:
      break;
  }
  const int d = static_cast<int>(index) - kDifference - kMaxDifference;
  return bits(difference_prefix(d), m + 1,
              {.left = left,
               .take = fraction,
               .sign = 1u << kFractionBits,
               .keep = kInfinity,
               .add = static_cast<uint32_t>(d) << kFractionBits,
               .low = kNormalLow,
               .span = kInfinity - 1 - kNormalLow});
}

Status open(const Args& args, void** state) noexcept {
  auto* table = new (std::nothrow) Table;
  if (table == nullptr) return fail(Code::kNoMemory, "fre: no memory for its table");
  table->m = static_cast<unsigned>(args.value[kM]);
  for (size_t index = 0; index < kRows; ++index) {
    const Row row = table->row[index] = make_row(index, table->m);
    for (unsigned rest = 0; rest < table->step.size() >> row.prefix; ++rest)
      table->step[rest << row.prefix | row.bits] = {row.size, static_cast<uint8_t>(index)};
  }
  *state = table;
  return {};
}

void close(void* state) noexcept { delete static_cast<Table*>(state); }

struct Shape {  // how a block is cut
  size_t n;     // values
  size_t tail;  // bytes after them
  size_t ways;
  Shape(const Args& args, size_t raw_size)
      : n(raw_size / 4), tail(raw_size % 4), ways(static_cast<size_t>(args.value[kWays])) {}
  size_t framing() const { return n > 0 ? (ways - 1) * kLengthSize : 0; }
  // Values of stream `way` begin at min(n, way * quarter).
  size_t begin(size_t way) const { return std::min(n, way * ((n + ways - 1) / ways)); }
};

// ---- encoder ------------------------------------------------------------------------------

class BitWriter {
 public:
  explicit BitWriter(Bytes dst) : dst_(dst) {}

  // size <= 57.
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

uint32_t load_word(const std::byte* src, size_t i) {
  uint32_t word;
  std::memcpy(&word, src + 4 * i, sizeof(word));
  return word;
}

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
  const uint64_t payload = ((q & row.take) | (negative & row.sign)) >> row.left;
  return row.bits | payload << row.prefix;
}

void encode_stream(const Quantiser& quantise, const Table& table, const std::byte* src, size_t n,
                   BitWriter* out) {
  constexpr unsigned kPairM = 16;  // two codes of at most 28 bits fit one put()
  uint32_t previous = 0;
  size_t i = 0;
  if (table.m <= kPairM) {
    for (; i + 2 <= n && !out->full(); i += 2) {
      const uint32_t first = quantise(load_word(src, i));
      const uint32_t second = quantise(load_word(src, i + 1));
      const Row& a = table.row[case_of(first, previous)];
      const Row& b = table.row[case_of(second, first)];
      out->put(code(a, first) | code(b, second) << a.size, a.size + b.size);
      previous = second;
    }
  }
  for (; i < n && !out->full(); ++i) {
    const uint32_t q = quantise(load_word(src, i));
    const Row& row = table.row[case_of(q, previous)];
    out->put(code(row, q), row.size);
    previous = q;
  }
}

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
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    BitWriter out(room.subspan(position));
    const size_t begin = shape.begin(way);
    encode_stream(quantise, *static_cast<const Table*>(state), src.data() + 4 * begin,
                  shape.begin(way + 1) - begin, &out);
    if (!out.finish()) return full();
    position += out.position();
    const uint32_t size = static_cast<uint32_t>(out.position());
    if (way + 1 < shape.ways) std::memcpy(dst.data() + way * kLengthSize, &size, sizeof(size));
  }
  if (shape.tail > 0) std::memcpy(dst.data() + position, src.data() + 4 * shape.n, shape.tail);
  *written = position + shape.tail;
  return {};
}

// ---- decoder --------------------------------------------------------------------------------

// One bit stream being read. Past its end it reads zeros; finish() then finds out.
class Stream {
 public:
  Stream() = default;
  explicit Stream(ConstBytes src) : src_(src.data()), size_(src.size()) {}

  // At least 56 bits after it.
  void refill() {
    if (next_ + sizeof(buffer_) <= size_) [[likely]] {
      uint64_t word;
      std::memcpy(&word, src_ + next_, sizeof(word));
      buffer_ |= word << filled_;
      next_ += (63 - filled_) >> 3;
      filled_ |= 56;
    } else {
      for (; filled_ <= 56; filled_ += 8, ++next_)
        if (next_ < size_) buffer_ |= std::to_integer<uint64_t>(src_[next_]) << filled_;
    }
  }

  // Takes up to 35 bits.
  uint32_t value(const Table& table) {
    const Table::Step step = table.step[buffer_ & ((1u << kPeekBits) - 1)];
    const Row& row = table.row[step.row];
    const uint32_t payload = static_cast<uint32_t>(buffer_ >> row.prefix << row.left);
    buffer_ >>= step.size;
    filled_ -= step.size;
    const uint32_t word = (previous_ & row.keep) + row.add + (payload & row.take);
    beyond_ |= uint64_t{row.span} - (word - row.low);  // its upper half is 0 while all are in
    return previous_ = word | ((payload & row.sign) != 0 ? kSign : 0);
  }

  // True when the codes were valid and ended in the last byte, with zeros behind them.
  bool finish() const {
    const uint64_t used = 8 * static_cast<uint64_t>(next_) - filled_;
    const uint64_t have = 8 * static_cast<uint64_t>(size_);
    if (beyond_ >> 32 != 0 || used > have || have - used >= 8) return false;
    return have == used || std::to_integer<unsigned>(src_[size_ - 1]) >> (8 - (have - used)) == 0;
  }

 private:
  const std::byte* src_ = nullptr;
  size_t size_ = 0;
  size_t next_ = 0;  // byte to load; beyond size_ once zeros were read
  uint64_t buffer_ = 0;
  uint64_t beyond_ = 0;
  unsigned filled_ = 0;
  uint32_t previous_ = 0;
};

void store_word(std::byte* dst, size_t i, uint32_t word) {
  std::memcpy(dst + 4 * i, &word, sizeof(word));
}

void decode_serial(const Table& table, Stream* stream, std::byte* dst, size_t n) {
  Stream in = *stream;  // a copy that can live in registers
  for (size_t i = 0; i < n; ++i) {
    in.refill();
    store_word(dst, i, in.value(table));
  }
  *stream = in;
}

// The first n values of four streams: four chains of lookups side by side.
void decode_four(const Table& table, std::array<Stream, kWaysMax>* streams, const Shape& shape,
                 std::byte* dst, size_t n) {
  std::array<Stream, kWaysMax> in = *streams;
  std::byte* const to[kWaysMax] = {dst, dst + 4 * shape.begin(1), dst + 4 * shape.begin(2),
                                   dst + 4 * shape.begin(3)};
  for (size_t i = 0; i < n; ++i) {
    for (size_t way = 0; way < kWaysMax; ++way) in[way].refill();
    for (size_t way = 0; way < kWaysMax; ++way) store_word(to[way], i, in[way].value(table));
  }
  *streams = in;
}

// Cuts the payload in its streams by the lengths at its head.
Status open_streams(const Shape& shape, ConstBytes src, std::array<Stream, kWaysMax>* streams) {
  size_t position = shape.framing();
  for (size_t way = 0; way < shape.ways; ++way) {
    uint32_t size = static_cast<uint32_t>(src.size() - position);  // the last takes the rest
    if (way + 1 < shape.ways) std::memcpy(&size, src.data() + way * kLengthSize, sizeof(size));
    if (size > src.size() - position)
      return fail(Code::kCorrupt, "fre: stream %zu of %u bytes, %zu are left", way, size,
                  src.size() - position);
    (*streams)[way] = Stream(src.subspan(position, size));
    position += size;
  }
  return {};
}

Status decode(void* state, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Shape shape(args, dst.size());
  if (src.size() < shape.framing() + shape.tail || src.size() > UINT32_MAX)
    return fail(Code::kCorrupt, "fre: %zu bytes cannot hold %zu values and %zu bytes", src.size(),
                shape.n, shape.tail);
  const ConstBytes codes = src.first(src.size() - shape.tail);
  if (shape.n == 0 && !codes.empty())
    return fail(Code::kCorrupt, "fre: %zu bytes of codes for no value", codes.size());

  const Table& table = *static_cast<const Table*>(state);
  std::array<Stream, kWaysMax> streams;
  if (shape.n > 0) WPR_TRY(open_streams(shape, codes, &streams));
  size_t done = 0;  // values decoded of every stream; the last stream is the shortest
  if (shape.ways == kWaysMax) {
    done = shape.n - shape.begin(3);
    decode_four(table, &streams, shape, dst.data(), done);
  }
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    const size_t begin = shape.begin(way) + done;
    const size_t end = shape.begin(way + 1);
    if (begin < end) decode_serial(table, &streams[way], dst.data() + 4 * begin, end - begin);
    if (!streams[way].finish())
      return fail(Code::kCorrupt, "fre: stream %zu of %zu does not hold %zu values", way,
                  shape.ways, end - shape.begin(way));
  }
  if (shape.tail > 0) std::memcpy(dst.data() + 4 * shape.n, src.data() + codes.size(), shape.tail);
  *written = dst.size();
  return {};
}

}  // namespace

extern const Kernel fre_scalar;
const Kernel fre_scalar = {
    .engine = "cpu",
    .variant = "scalar",
    .usable = always_usable,
    .open = open,
    .close = close,
    .encode = encode,
    .decode = decode,
};

}  // namespace wirepress
