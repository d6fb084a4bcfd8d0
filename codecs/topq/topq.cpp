// SPDX-License-Identifier: Apache-2.0
// topq: gradients: the largest values of each 4096, at two bits and a place (spec.md).
#include "codecs/topq/topq.hpp"

#include <cmath>
#include <functional>

#include "base/bytes.hpp"
#include "codecs/common/sets.hpp"

namespace wirepress {
namespace topq {
namespace {

constexpr uint16_t kNan = 0x7FC0;
constexpr uint16_t kInfinity = 0x7F80;
constexpr size_t kLevelsSize = 4;
constexpr size_t kMostCode = kLevelsSize + kValues / 8 + 2 * (kValues / 8);
constexpr size_t kSlack = 8;  // that put_thin writes behind

size_t set_size(size_t n, size_t k) {
  if (k == n) return 0;
  if (!is_thin(n, k)) return bytes_of(n);
  const EliasFano parts(n, k);
  return parts.high_size + parts.low_size;
}

void store_bit(std::byte* bits, size_t i) { bits[i / 8] |= static_cast<std::byte>(1u << i % 8); }
bool load_bit(ConstBytes bits, size_t i) {
  return (std::to_integer<unsigned>(bits[i / 8]) >> i % 8 & 1) != 0;
}

// Leaves the `sent` largest, of equal ones those that come first.
void keep_largest(size_t sent, Found* found) {
  if (found->count == sent) return;
  uint32_t copy[kValues + kLanes];
  std::copy_n(found->magnitude, found->count, copy);
  const uint32_t least = ranked(copy, found->count, sent);
  size_t equal = sent;
  for (size_t i = 0; i < found->count; ++i) equal -= found->magnitude[i] > least;
  size_t kept = 0;
  for (size_t i = 0; i < found->count; ++i) {
    const bool tie = found->magnitude[i] == least;
    if (found->magnitude[i] < least || (tie && equal == 0)) continue;
    equal -= tie;
    found->magnitude[kept] = found->magnitude[i];
    found->place[kept++] = found->place[i];
  }
  found->count = kept;
}

// The nearest bfloat16 of a mean of magnitudes, but neither infinite nor 0 where they are not.
uint16_t rounded(double mean) {
  if (mean == 0) return 0;
  const uint32_t word = std::bit_cast<uint32_t>(static_cast<float>(mean));
  const uint32_t near = (word + 0x7FFF + (word >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(std::clamp<uint32_t>(near, 1, kInfinity - 1));
}

double value_of(uint32_t magnitude) { return double{std::bit_cast<float>(magnitude)}; }

struct Levels {
  uint16_t low = 0, high = 0;
  double border = 0;  // magnitudes from here on become `high`

  explicit Levels(const Found& found) {
    const double n = static_cast<double>(found.count);
    double sum = 0, least = value_of(0x7F7FFFFF);
    for (size_t i = 0; i < found.count; ++i) {
      sum += value_of(found.magnitude[i]);
      least = std::min(least, value_of(found.magnitude[i]));
    }
    border = least == 0 ? value_of(1) : sum / n;
    double low_sum = 0, high_sum = 0, n_high = 0;
    for (size_t i = 0; i < found.count; ++i) {
      const double value = value_of(found.magnitude[i]);
      (value < border ? low_sum : high_sum) += value;
      n_high += value < border ? 0 : 1;
    }
    if (n_high < n) low = rounded(low_sum / (n - n_high));
    if (n_high > 0) high = rounded(high_sum / n_high);
    if (low == high) low = 0, border = 0;  // one form only
  }
};

bool all_zero(ConstBytes bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

bool has_bits_from(ConstBytes bits, size_t n) {
  return n % 8 != 0 && std::to_integer<unsigned>(bits.back()) >> n % 8 != 0;
}

void fill(std::byte* x, size_t n, uint32_t word) {
  for (size_t i = 0; i < n; ++i) std::memcpy(x + 4 * i, &word, sizeof(word));
}

}  // namespace

size_t Layout::code_size(size_t n) const {
  const size_t m = sent(n);
  return kLevelsSize + set_size(n, m) + 2 * bytes_of(m);
}

uint32_t ranked(uint32_t* magnitudes, size_t n, size_t k) {
  std::nth_element(magnitudes, magnitudes + k - 1, magnitudes + n, std::greater<>());
  return magnitudes[k - 1];
}

void write_nan(size_t size, std::byte* code) {
  std::memset(code, 0, size);
  std::memcpy(code, &kNan, sizeof(kNan));
  std::memcpy(code + sizeof(kNan), &kNan, sizeof(kNan));
}

void write_code(const std::byte* x, size_t n, size_t sent, Found* found, std::byte* code) {
  while (found->count > 0 && found->place[found->count - 1] >= n) --found->count;  // padding
  keep_largest(sent, found);
  const Levels levels(*found);
  std::byte out[kMostCode + kSlack] = {};
  std::memcpy(out, &levels.low, sizeof(levels.low));
  std::memcpy(out + 2, &levels.high, sizeof(levels.high));
  std::byte* set = out + kLevelsSize;
  if (sent < n && is_thin(n, sent)) {
    put_thin(found->place, n, sent, set);
  } else if (sent < n) {
    for (size_t i = 0; i < sent; ++i) store_bit(set, found->place[i]);
  }
  std::byte* const signs = set + set_size(n, sent);
  std::byte* const highs = signs + bytes_of(sent);
  std::memset(signs, 0, 2 * bytes_of(sent));  // what put_thin wrote behind
  for (size_t i = 0; i < sent; ++i) {
    const bool high = value_of(found->magnitude[i]) >= levels.border;
    uint32_t word;
    std::memcpy(&word, x + 4 * found->place[i], sizeof(word));
    if (high) store_bit(highs, i);
    if (word >> 31 != 0 && (high ? levels.high : levels.low) != 0) store_bit(signs, i);
  }
  std::memcpy(code, out, static_cast<size_t>(highs + bytes_of(sent) - out));
}

bool read_code(const std::byte* code, size_t size, size_t n, size_t sent, std::byte* x) {
  Reader in(ConstBytes(code, size));
  uint16_t low = 0, high = 0;
  if (!in.read(&low) || !in.read(&high)) return false;
  if (low == kNan && high == kNan) {
    if (!all_zero(ConstBytes(code, size).subspan(in.position()))) return false;
    fill(x, n, uint32_t{kNan} << 16);
    return true;
  }
  uint64_t members[kValues / kChunk];
  uint32_t places[kValues + kMorePlaces];
  ConstBytes signs, highs;
  if (low > high || high >= kInfinity || !get_set(&in, n, sent, members)) return false;
  if (!in.take(bytes_of(sent), &signs) || !in.take(bytes_of(sent), &highs)) return false;
  if (has_bits_from(signs, sent) || has_bits_from(highs, sent)) return false;
  list_places(members, n, places);
  std::memset(x, 0, 4 * n);
  for (size_t i = 0; i < sent; ++i) {
    const uint32_t level = load_bit(highs, i) ? high : low;
    const uint32_t negative = load_bit(signs, i);
    if (negative != 0 && level == 0) return false;
    const uint32_t word = level << 16 | negative << 31;
    std::memcpy(x + 4 * size_t{places[i]}, &word, sizeof(word));
  }
  return true;
}

}  // namespace topq

namespace {

constexpr Param kParams[] = {
    {"k", 0, 0, real_param(64, 0), nullptr, "values that are sent of each 4096, 1 to 4096", true},
};

Status check(Args* args) {
  if (args->dtype != DType::kFloat32 && args->dtype != DType::kBytes)
    return fail(Code::kParameter, "topq: takes float32, not %s", dtype_name(args->dtype));
  const double k = args->real(topq::kCount);
  if (!(k >= 1 && k <= topq::kValues && std::floor(k) == k))
    return fail(Code::kParameter, "topq: k must be a whole number from 1 to %zu, not %s",
                topq::kValues, real_text(args->value[topq::kCount]).c_str());
  return {};
}

size_t bound(const Args& args, size_t n) { return chunks::code_size(topq::Layout(args), n); }

}  // namespace

extern const Codec topq_codec;
const Codec topq_codec = {
    .name = "topq",
    .sentence = "gradients: the largest values of each 4096, at two bits and a place",
    .params = kParams,
    .lossless = false,
    .exact_encode = true,
    .keeps_size = false,
    .needs_size = true,
    .wants_feedback = true,
    .check = check,
    .bound = bound,
};

}  // namespace wirepress
