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

enum class OptionType { kText, kSize, kInteger, kBoolean, kChoice };

struct OptionRow {
  const char* key;
  OptionType type;
  const char* fallback;
  const char* choices;  // kChoice: "a|b|c"; kSize: words that stand for sizes
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
  uint64_t number(const char* key) const;     // kSize (0 for a word), kInteger, kBoolean

 private:
  Status set_row(size_t row, const char* value, const char* origin);
  std::array<std::string, kMaxOptions> value_;
  std::array<const char*, kMaxOptions> origin_{};
};

// "64KiB", "1 MB", "4096" to bytes: decimal and binary units. False: not a size.
bool parse_size(const char* text, uint64_t* size);

}  // namespace wirepress
