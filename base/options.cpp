// SPDX-License-Identifier: Apache-2.0
#include "base/options.hpp"

#include <strings.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace wirepress {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr size_t kNoRow = SIZE_MAX;

size_t find_row(const char* key) {
  for (size_t i = 0; i < option_rows().size(); ++i) {
    if (std::strcmp(option_rows()[i].key, key) == 0) return i;
  }
  return kNoRow;
}

std::string variable_of(const char* key) {
  std::string name = "WIREPRESS_";
  for (; *key; ++key) name += static_cast<char>(std::toupper(static_cast<unsigned char>(*key)));
  return name;
}

std::string known_keys() {
  std::string keys;
  for (const OptionRow& row : option_rows())
    keys += (keys.empty() ? "" : ", ") + std::string(row.key);
  return keys;
}

bool same_word(std::string_view a, const char* b) {
  return a.size() == std::strlen(b) && strncasecmp(a.data(), b, a.size()) == 0;
}

bool parse_boolean(const char* text, uint64_t* value) {
  for (const char* word : {"on", "true", "yes", "1"}) {
    if (same_word(text, word)) return *value = 1, true;
  }
  for (const char* word : {"off", "false", "no", "0"}) {
    if (same_word(text, word)) return *value = 0, true;
  }
  return false;
}

bool parse_integer(const char* text, uint64_t* value) {
  if (!std::isdigit(static_cast<unsigned char>(*text))) return false;
  char* end;
  errno = 0;
  *value = std::strtoull(text, &end, 10);
  return errno == 0 && *end == '\0';
}

bool parse_number(const OptionRow& row, const char* text, uint64_t* value) {
  if (row.type == OptionType::kBoolean) return parse_boolean(text, value);
  if (row.type == OptionType::kInteger) return parse_integer(text, value);
  return parse_size(text, value);
}

// What a value of this type is, for an error.
const char* sort_of(OptionType type) {
  switch (type) {
    case OptionType::kBoolean:
      return "a boolean: on or off";
    case OptionType::kInteger:
      return "a whole number from 0 on";
    case OptionType::kRate:
      return "a rate such as 10Gbps or 1.2GB/s";
    default:
      return "a size such as 64KiB or 1MB";
  }
}

// All of the text, in any locale that the program may have set.
bool parse_finite(std::string_view text, double* value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && stop == text.data() + text.size() && std::isfinite(*value);
}

bool is_choice(const char* choices, std::string_view value) {
  std::string_view rest = choices;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    if (rest.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) break;
    rest.remove_prefix(bar + 1);
  }
  return false;
}

Status check_value(const OptionRow& row, const char* value) {
  if (row.type == OptionType::kText || row.type == OptionType::kRecipe) return {};
  if (row.type == OptionType::kErrorBound) {
    ErrorBound bound;
    const Status status = parse_error_bound(value, &bound);
    return status.ok() ? status : fail(Code::kParameter, "%s: %s", row.key, status.text());
  }
  if (row.type == OptionType::kChoice) {
    if (is_choice(row.choices, value)) return {};
    return fail(Code::kParameter, "%s: unknown value \"%s\"; known: %s", row.key, value,
                row.choices);
  }
  if (is_choice(row.choices, value)) return {};
  uint64_t number;
  double rate;
  const bool is_rate = row.type == OptionType::kRate;
  if (is_rate ? !parse_rate(value, &rate) : !parse_number(row, value, &number)) {
    return fail(Code::kParameter, "%s: \"%s\" is not %s%s%s", row.key, value, sort_of(row.type),
                *row.choices ? ", nor " : "", row.choices);
  }
  if (is_rate) return {};
  if (number < row.min || number > row.max) {
    return fail(Code::kParameter, "%s: %llu is not in %llu..%llu", row.key,
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(row.min),
                static_cast<unsigned long long>(row.max));
  }
  return {};
}

}  // namespace

const char* option_type_name(OptionType type) {
  static constexpr const char* kNames[] = {"text",    "size",   "rate",   "integer",
                                           "boolean", "choice", "recipe", "error bound"};
  return kNames[static_cast<int>(type)];
}

bool parse_size(const char* text, uint64_t* size) {
  struct Unit {
    const char* name;
    uint64_t bytes;
  };
  static constexpr Unit kUnits[] = {
      {"", 1},
      {"B", 1},
      {"K", kKiB},
      {"KiB", kKiB},
      {"KB", 1000},
      {"M", kMiB},
      {"MiB", kMiB},
      {"MB", 1000000},
      {"G", kKiB * kMiB},
      {"GiB", kKiB * kMiB},
      {"GB", 1000000000},
  };
  if (!std::isdigit(static_cast<unsigned char>(*text))) return false;
  char* end;
  errno = 0;
  const uint64_t count = std::strtoull(text, &end, 10);
  if (errno != 0) return false;
  while (*end == ' ') ++end;
  for (const Unit& unit : kUnits) {
    if (same_word(unit.name, end)) return !__builtin_mul_overflow(count, unit.bytes, size);
  }
  return false;
}

bool parse_rate(const char* text, double* bytes_per_second) {
  static constexpr struct {
    const char* name;
    double bytes;
  } kUnits[] = {{"bps", 0.125}, {"bit/s", 0.125}, {"b/s", 0.125}, {"B/s", 1}};
  static constexpr struct {
    char letter;
    double decimal, binary;
  } kPrefixes[] = {{'K', 1e3, 0x1p10},
                   {'k', 1e3, 0x1p10},
                   {'M', 1e6, 0x1p20},
                   {'G', 1e9, 0x1p30},
                   {'T', 1e12, 0x1p40}};
  double number;
  const char* last = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, last, number);
  if (error != std::errc() || !(number > 0) || !std::isfinite(number)) return false;
  const char* unit = stop;
  while (*unit == ' ') ++unit;
  for (const auto& prefix : kPrefixes) {
    if (*unit != prefix.letter) continue;
    if (std::strcmp(++unit, "iB/s") == 0) return *bytes_per_second = number * prefix.binary, true;
    number *= prefix.decimal;
    break;
  }
  for (const auto& row : kUnits) {
    if (std::strcmp(unit, row.name) == 0) return *bytes_per_second = number * row.bytes, true;
  }
  return false;
}

Status parse_error_bound(const char* text, ErrorBound* bound) {
  *bound = {};
  const std::string_view all = text;
  if (all.empty() || all == "none") return {};
  const size_t colon = all.find_first_of(":=");
  const std::string_view kind = all.substr(0, colon);
  double value = 0;
  if (colon == std::string_view::npos || !parse_finite(all.substr(colon + 1), &value) ||
      (kind != "rel" && kind != "abs" && kind != "bits"))
    return fail(Code::kParameter, "\"%s\" is not none, rel:E, abs:A or bits:B, such as rel:1e-3",
                text);
  if (kind == "abs") {
    *bound = {ErrorBound::kAbsolute, value};
    if (value >= 1e-100 && value <= 1e100) return {};
    return fail(Code::kParameter, "\"%s\": an absolute error lies between 1e-100 and 1e100", text);
  }
  if (kind == "rel") {
    *bound = {ErrorBound::kRelative, value};
    if (value > 0 && value < 1) return {};
    return fail(Code::kParameter, "\"%s\": a relative error lies between 0 and 1", text);
  }
  *bound = {ErrorBound::kRelative, std::exp2(-value)};
  if (value >= 1 && value <= 52 && value == std::floor(value)) return {};
  return fail(Code::kParameter, "\"%s\": bits are a whole number from 1 to 52", text);
}

Options::Options() {
  for (const OptionRow& row : option_rows()) {
    value_.emplace_back(row.fallback);
    origin_.push_back("default");
  }
}

void Options::reset(size_t row) {
  value_[row] = option_rows()[row].fallback;
  origin_[row] = "default";
}

Status Options::set_row(size_t row, const char* value, const char* origin) {
  WPR_TRY(check_value(option_rows()[row], value));
  value_[row] = value;
  origin_[row] = origin;
  return {};
}

Status in_environment(const char* key, const Status& status) {
  const std::string_view text = status.text();
  const size_t named = text.starts_with(key) ? std::strlen(key) : 0;  // "key: what is wrong"
  return fail(Code::kParameter, "in the environment, %s%s", variable_of(key).c_str(),
              status.text() + named);
}

Status Options::read_environment() {
  Status first;
  for (size_t i = 0; i < option_rows().size(); ++i) {
    const std::string name = variable_of(option_rows()[i].key);
    const char* value = std::getenv(name.c_str());
    if (!value) continue;
    if (const Status status = set_row(i, value, "environment"); !status.ok() && first.ok()) {
      first = in_environment(option_rows()[i].key, status);
    }
  }
  return first;
}

Status Options::set(const char* key, const char* value) {
  const size_t row = find_row(key);
  if (row == kNoRow) {
    return fail(Code::kParameter, "unknown option \"%s\"; known: %s", key, known_keys().c_str());
  }
  return set_row(row, value, "set");
}

const char* Options::get(const char* key) const {
  const size_t row = find_row(key);
  return row == kNoRow ? nullptr : value_[row].c_str();
}

const char* Options::origin(const char* key) const {
  const size_t row = find_row(key);
  return row == kNoRow ? nullptr : origin_[row];
}

uint64_t Options::number(const char* key) const {
  const size_t row = find_row(key);
  uint64_t value = 0;
  if (row != kNoRow && option_rows()[row].type != OptionType::kRate)
    parse_number(option_rows()[row], value_[row].c_str(), &value);
  return value;
}

double Options::rate(const char* key) const {
  const size_t row = find_row(key);
  double value = 0;
  if (row != kNoRow && option_rows()[row].type == OptionType::kRate)
    parse_rate(value_[row].c_str(), &value);
  return value;
}

bool Options::as_double(const char* key, double* value) const {
  const size_t row = find_row(key);
  if (row == kNoRow) return false;
  switch (option_rows()[row].type) {
    case OptionType::kRate:
      *value = rate(key);
      return true;
    case OptionType::kSize:
    case OptionType::kInteger:
    case OptionType::kBoolean:
      *value = static_cast<double>(number(key));
      return true;
    default:
      return false;
  }
}

bool Options::error_bound(const char* key, ErrorBound* bound) const {
  const size_t row = find_row(key);
  if (row == kNoRow || option_rows()[row].type != OptionType::kErrorBound) return false;
  return parse_error_bound(value_[row].c_str(), bound).ok();
}

}  // namespace wirepress
