// SPDX-License-Identifier: Apache-2.0
// The reference kernel. The encoder has no serial dependence but the bit position, since values are
// predicted from quantised ones; the decoder is a chain of table lookups, one per value.
#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "codecs/fre/fre.hpp"

namespace wirepress {
namespace {

using namespace fre;

constexpr size_t kWaysMax = 4;
constexpr size_t kLengthSize = 4;
constexpr int kMaxDifference = 9;

// ---- codes: bits in stream order, least significant first ---------------------------------

struct Prefix {
  uint16_t bits;
  uint8_t size;
};

constexpr Prefix kEqualCode = {0b00, 2};
constexpr Prefix kZeroCode = {0b0010, 4};
constexpr Prefix kDenormalCode = {0b1010, 4};
constexpr Prefix kEscapeCode = {0b110, 3};

constexpr Prefix difference_prefix(int d) {
  const unsigned k = static_cast<unsigned>(d < 0 ? -d : d);
  const unsigned negative = d < 0;
  if (k == 0) return {0b01, 2};
  if (k <= 5)
    return {static_cast<uint16_t>(((2u << k) - 1) | negative << (k + 2)),
            static_cast<uint8_t>(k + 3)};
  return {static_cast<uint16_t>(0x7F | (k - 6) << 7 | negative << 9), 10};
}

constexpr auto kDifferencePrefixes = [] {
  std::array<Prefix, 2 * kMaxDifference + 1> table{};
  for (int d = -kMaxDifference; d <= kMaxDifference; ++d)
    table[static_cast<size_t>(d + kMaxDifference)] = difference_prefix(d);
  return table;
}();

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

struct BitCode {
  uint64_t bits;
  unsigned size;
};

// The cases that few values need: denormals, infinities, NaNs, jumps of the exponent.
[[gnu::noinline]] BitCode rare_code(uint32_t q, unsigned m) {
  const uint64_t fraction = q & kFraction;
  const uint64_t sign = q >> 31;
  if (exponent(q) == 0)
    return {kDenormalCode.bits | fraction << kDenormalCode.size |
                sign << (kDenormalCode.size + kFractionBits),
            kDenormalCode.size + kFractionBits + 1u};
  const uint64_t rest =
      fraction >> (kFractionBits - m) | uint64_t{exponent(q)} << m | sign << (m + 8);
  return {kEscapeCode.bits | rest << kEscapeCode.size, kEscapeCode.size + m + 9};
}

inline BitCode code_of(uint32_t q, uint32_t previous, unsigned m) {
  const uint32_t magnitude = q & ~kSign;
  const int difference = static_cast<int>(exponent(q)) - static_cast<int>(exponent(previous));
  const unsigned index = static_cast<unsigned>(difference + kMaxDifference);
  const bool equal = q == previous;
  const bool zero = magnitude == 0;
  const bool in_table = index < kDifferencePrefixes.size() &&
                        magnitude - (kFraction + 1) < kInfinity - (kFraction + 1);
  if (!(in_table | equal | zero)) [[unlikely]]
    return rare_code(q, m);

  const Prefix prefix = kDifferencePrefixes[in_table ? index : 0];
  const uint64_t payload = (q & kFraction) >> (kFractionBits - m) | static_cast<uint64_t>(q >> 31)
                                                                        << m;
  BitCode code = {prefix.bits | payload << prefix.size, prefix.size + m + 1};
  if (zero)
    code = {kZeroCode.bits | static_cast<uint64_t>(q >> 31) << kZeroCode.size, kZeroCode.size + 1u};
  if (equal) code = {kEqualCode.bits, kEqualCode.size};
  return code;
}

uint32_t load_word(const std::byte* src, size_t i) {
  uint32_t word;
  std::memcpy(&word, src + 4 * i, sizeof(word));
  return word;
}

void encode_stream(const Quantiser& quantise, unsigned m, const std::byte* src, size_t n,
                   BitWriter* out) {
  constexpr unsigned kPairM = 16;  // two codes of at most 28 bits fit one put()
  uint32_t previous = 0;
  size_t i = 0;
  if (m <= kPairM) {
    for (; i + 2 <= n && !out->full(); i += 2) {
      const uint32_t first = quantise(load_word(src, i));
      const uint32_t second = quantise(load_word(src, i + 1));
      const BitCode a = code_of(first, previous, m);
      const BitCode b = code_of(second, first, m);
      out->put(a.bits | b.bits << a.size, a.size + b.size);
      previous = second;
    }
  }
  for (; i < n && !out->full(); ++i) {
    const uint32_t q = quantise(load_word(src, i));
    const BitCode code = code_of(q, previous, m);
    out->put(code.bits, code.size);
    previous = q;
  }
}

Status encode(void*, const Args& args, ConstBytes src, Bytes dst, size_t* written) noexcept {
  const Shape shape(args, src.size());
  const Quantiser quantise(args);
  const unsigned m = static_cast<unsigned>(args.value[kM]);
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
    encode_stream(quantise, m, src.data() + 4 * begin, shape.begin(way + 1) - begin, &out);
    if (!out.finish()) return full();
    position += out.position();
    const uint32_t size = static_cast<uint32_t>(out.position());
    if (way + 1 < shape.ways) std::memcpy(dst.data() + way * kLengthSize, &size, sizeof(size));
  }
  if (shape.tail > 0) std::memcpy(dst.data() + position, src.data() + 4 * shape.n, shape.tail);
  *written = position + shape.tail;
  return {};
}

// ---- decoder ------------------------------------------------------------------------------

constexpr unsigned kPeekBits = 10;  // decide every case

enum class Case : uint8_t { kNormal, kEqual, kZero, kDenormal, kEscape };

struct Step {
  uint8_t size;    // bits of the whole code
  uint8_t prefix;  // of them before the mantissa
  int8_t value;    // kNormal: exponent difference; kZero: sign
  Case kind;
};

struct Table {
  std::array<Step, 1u << kPeekBits> step;
};

Step step_of(unsigned peek, unsigned m) {
  const auto starts = [peek](Prefix p) { return (peek & ((1u << p.size) - 1)) == p.bits; };
  if (starts(kEqualCode)) return {kEqualCode.size, 0, 0, Case::kEqual};
  if (starts(kZeroCode))
    return {kZeroCode.size + 1, 0, static_cast<int8_t>((peek >> 4) & 1), Case::kZero};
  if (starts(kDenormalCode))
    return {kDenormalCode.size + kFractionBits + 1, kDenormalCode.size, 0, Case::kDenormal};
  if (starts(kEscapeCode))
    return {static_cast<uint8_t>(kEscapeCode.size + m + 9), kEscapeCode.size, 0, Case::kEscape};
  int d = -kMaxDifference;
  while (!starts(difference_prefix(d))) ++d;  // prefix-free and complete: one of them fits
  const uint8_t size = difference_prefix(d).size;
  return {static_cast<uint8_t>(size + m + 1), size, static_cast<int8_t>(d), Case::kNormal};
}

Status open(const Args& args, void** state) noexcept {
  auto* table = new (std::nothrow) Table;
  if (table == nullptr) return fail(Code::kNoMemory, "fre: no memory for its table");
  for (unsigned peek = 0; peek < table->step.size(); ++peek)
    table->step[peek] = step_of(peek, static_cast<unsigned>(args.value[kM]));
  *state = table;
  return {};
}

void close(void* state) noexcept { delete static_cast<Table*>(state); }

struct Format {
  const Table& table;
  unsigned m;
  bool flush;
};

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

  uint32_t value(const Format& format) {
    const Step step = format.table.step[buffer_ & ((1u << kPeekBits) - 1)];
    const uint64_t payload = buffer_ >> step.prefix;
    buffer_ >>= step.size;
    filled_ -= step.size;
    if (step.kind >= Case::kDenormal) [[unlikely]]
      return previous_ = rare(format, step, payload);

    const uint32_t e = exponent(previous_) + static_cast<uint32_t>(step.value);
    const uint32_t fraction =
        static_cast<uint32_t>(payload << (kFractionBits - format.m)) & kFraction;
    const uint32_t sign = static_cast<uint32_t>(payload >> format.m) << 31;
    uint32_t q = sign | (e << kFractionBits & kInfinity) | fraction;
    bool valid = e - 1 < 254;
    if (step.kind == Case::kZero) {
      q = static_cast<uint32_t>(step.value) << 31;
      valid = !(format.flush && q != 0);
    }
    valid = valid && q != previous_;
    if (step.kind == Case::kEqual) {
      q = previous_;
      valid = true;
    }
    invalid_ |= !valid;
    return previous_ = q;
  }

  // True when the codes were valid and ended in the last byte, with zeros behind them.
  bool finish() const {
    if (invalid_) return false;
    const uint64_t used = 8 * static_cast<uint64_t>(next_) - filled_;
    const uint64_t have = 8 * static_cast<uint64_t>(size_);
    if (used > have || have - used >= 8) return false;
    return have == used || std::to_integer<unsigned>(src_[size_ - 1]) >> (8 - (have - used)) == 0;
  }

 private:
  [[gnu::noinline]] uint32_t rare(const Format& format, Step step, uint64_t payload) {
    uint32_t q;
    bool valid;
    if (step.kind == Case::kDenormal) {
      const uint32_t fraction = static_cast<uint32_t>(payload) & kFraction;
      q = fraction | static_cast<uint32_t>(payload >> kFractionBits & 1) << 31;
      valid = fraction != 0 && !format.flush;
    } else {
      const uint32_t fraction =
          static_cast<uint32_t>(payload << (kFractionBits - format.m)) & kFraction;
      const uint32_t e = static_cast<uint32_t>(payload >> format.m) & 0xFF;
      const int difference = static_cast<int>(e) - static_cast<int>(exponent(previous_));
      q = fraction | e << kFractionBits |
          static_cast<uint32_t>(payload >> (format.m + 8) & 1) << 31;
      valid = e == 255 || (e > 0 && (difference > kMaxDifference || difference < -kMaxDifference));
    }
    invalid_ |= !valid || q == previous_;
    return q;
  }

  const std::byte* src_ = nullptr;
  size_t size_ = 0;
  size_t next_ = 0;  // byte to load; beyond size_ once zeros were read
  uint64_t buffer_ = 0;
  unsigned filled_ = 0;
  uint32_t previous_ = 0;
  bool invalid_ = false;
};

void store_word(std::byte* dst, size_t i, uint32_t word) {
  std::memcpy(dst + 4 * i, &word, sizeof(word));
}

void decode_serial(const Format& format, Stream* stream, std::byte* dst, size_t n) {
  Stream in = *stream;  // a copy that can live in registers
  for (size_t i = 0; i < n; ++i) {
    in.refill();
    store_word(dst, i, in.value(format));
  }
  *stream = in;
}

// The first n values of four streams: four chains of lookups side by side.
void decode_four(const Format& format, std::array<Stream, kWaysMax>* streams, const Shape& shape,
                 std::byte* dst, size_t n) {
  std::array<Stream, kWaysMax> in = *streams;
  std::byte* const to[kWaysMax] = {dst, dst + 4 * shape.begin(1), dst + 4 * shape.begin(2),
                                   dst + 4 * shape.begin(3)};
  for (size_t i = 0; i < n; ++i) {
    for (size_t way = 0; way < kWaysMax; ++way) in[way].refill();
    for (size_t way = 0; way < kWaysMax; ++way) store_word(to[way], i, in[way].value(format));
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

  const Format format = {*static_cast<const Table*>(state), static_cast<unsigned>(args.value[kM]),
                         args.value[kFlush] != 0};
  std::array<Stream, kWaysMax> streams;
  if (shape.n > 0) WPR_TRY(open_streams(shape, codes, &streams));
  size_t done = 0;  // values decoded of every stream; the last stream is the shortest
  if (shape.ways == kWaysMax) {
    done = shape.n - shape.begin(3);
    decode_four(format, &streams, shape, dst.data(), done);
  }
  for (size_t way = 0; way < shape.ways && shape.n > 0; ++way) {
    const size_t begin = shape.begin(way) + done;
    const size_t end = shape.begin(way + 1);
    if (begin < end) decode_serial(format, &streams[way], dst.data() + 4 * begin, end - begin);
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
