// SPDX-License-Identifier: Apache-2.0
// The one option table: C key = WIREPRESS_<KEY> = Python argument = command-line flag = row of
// `wirepress options`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.hpp"

namespace wirepress {

enum class OptionType { kText, kSize, kRate, kInteger, kBoolean, kChoice };

struct OptionRow {
  const char* key;
  OptionType type;
  const char* fallback;
  const char* choices;  // kChoice: "a|b|c"; kSize, kRate: words that stand for values
  uint64_t min, max;    // kSize, kInteger
  const char* sentence;
};

std::span<const OptionRow> option_rows();
const char* option_type_name(OptionType type);

inline constexpr size_t kMaxOptions = 32;

// Values of all options, each with its origin. Text is checked when it is set: a stored value is
// always valid for its row.
class Options {
 public:
  Options();
  // Takes WIREPRESS_<KEY> variables; the first invalid one is the status, the others still count.
  Status read_environment();
  Status set(const char* key, const char* value);
  const char* get(const char* key) const;     // nullptr: unknown key
  const char* origin(const char* key) const;  // "default", "environment", "set"
  // kSize, kInteger, kBoolean: the value; 0 for a word, and for other types.
  uint64_t number(const char* key) const;
  double rate(const char* key) const;  // kRate: bytes a second; 0 for a word, and for other types
  // Any of these; false: the key is unknown, or its value is text.
  bool as_double(const char* key, double* value) const;

 private:
  Status set_row(size_t row, const char* value, const char* origin);
  std::array<std::string, kMaxOptions> value_;
  std::array<const char*, kMaxOptions> origin_{};
};

// "64KiB", "1 MB", "4096" to bytes: decimal and binary units. False: not a size.
bool parse_size(const char* text, uint64_t* size);
// "10Gbps", "1.2 GB/s", "80Mbit/s" to bytes a second: b is a bit, B a byte. False: not a rate above
// 0.
bool parse_rate(const char* text, double* bytes_per_second);

}  // namespace wirepress
