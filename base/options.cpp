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

constexpr OptionRow kRows[] = {
    {"recipe", OptionType::kText, "zstd:1", "", 0, 0,
     "codecs with their parameters, joined by +: shuffle:4+zstd:1; or auto, auto:rel=1e-3"},
    {"link", OptionType::kRate, "10Gbps", "", 0, 0,
     "link rate that recipe=auto reckons with, such as 10Gbps or 1.2GB/s"},
    {"block_size", OptionType::kSize, "512KiB", "", kKiB, 256 * kMiB,
     "raw bytes of a block, a power of two; blocks are independent"},
    {"threads", OptionType::kInteger, "0", "", 0, 1024,
     "threads that compress and decompress; 0: as many as this process may use"},
    {"checksum", OptionType::kBoolean, "on", "", 0, 1,
     "an XXH3 checksum of every block (the header always has one)"},
    {"probe", OptionType::kBoolean, "on", "", 0, 1,
     "store a block raw at once when a sample of it looks incompressible"},
    {"seed", OptionType::kInteger, "0", "", 0, UINT64_MAX,
     "what codecs that round at random draw from; the same seed gives the same bytes"},
    {"engine", OptionType::kText, "auto", "", 0, 0,
     "where kernels run: auto, an engine (cpu), engine and variant (cpu:scalar), or engine and "
     "device (compressdev:isal)"},
    {"verify", OptionType::kBoolean, "off", "", 0, 1,
     "expand on the cores what a compression device coded, and compare, before it is used"},
    {"mpi_codec", OptionType::kText, "auto", "", 0, 0,
     "recipe for MPI messages; auto chooses per peer from what it measures"},
    {"mpi_error", OptionType::kText, "none", "", 0, 0,
     "error that results of floating-point messages may have: none, rel:1e-3, abs:1e-6 or bits:6; "
     "iterative solvers and checks on conservation bear little: see wirepress run --verify"},
    {"mpi_threshold", OptionType::kSize, "auto", "auto", 0, uint64_t{1} << 40,
     "MPI messages below this size go raw; auto: 64KiB, and down to 4KiB on slow links"},
    {"mpi_collectives", OptionType::kBoolean, "on", "", 0, 1,
     "compress collectives between nodes, by algorithms that know the nodes"},
    {"mpi_contest", OptionType::kBoolean, "on", "", 0, 1,
     "run a collective by MPI's own algorithm where that was faster; off: always by ours"},
    {"mpi_nonblocking", OptionType::kBoolean, "off", "", 0, 1,
     "compress non-blocking collectives too, by a thread for each communicator that has them"},
    {"mpi_same_host", OptionType::kBoolean, "off", "", 0, 1,
     "compress between ranks of one host too (for tests on one machine)"},
    {"mpi_chunk", OptionType::kSize, "60KiB", "", 4 * kKiB, 256 * kMiB,
     "pieces in which collectives overlap compressing, sending and expanding"},
    {"mpi_partitions", OptionType::kInteger, "4", "", 1, 64,
     "parts of an allreduce that overlap shared memory and network, on nodes with several ranks"},
    {"mpi_deterministic", OptionType::kBoolean, "off", "", 0, 1,
     "float sums and products with the same bits in every run and on every rank"},
    {"mpi_pieces", OptionType::kSize, "1MiB", "", 0, uint64_t{1} << 40,
     "blocking sends from this size on overlap compressing, sending and expanding; 0: none do"},
    {"mpi_checksum", OptionType::kBoolean, "off", "", 0, 1,
     "checksums in the frames of MPI messages"},
    {"mpi_trust", OptionType::kBoolean, "off", "", 0, 1,
     "without `wirepress run`: believe that every rank has the library loaded"},
    {"mpi_link", OptionType::kRate, "auto", "auto", 0, 0,
     "link rate that mpi_codec=auto reckons with, such as 1Gbps; auto measures it"},
    {"mpi_report", OptionType::kText, "", "", 0, 0,
     "without `wirepress run`: file to which rank 0 writes the report"},
    {"mpi_compress", OptionType::kBoolean, "on", "", 0, 1,
     "off: MPI messages go as they are, and are only traced"},
    {"mpi_trace", OptionType::kText, "", "", 0, 0,
     "folder to which every rank writes a trace of its MPI calls; none without"},
    {"mpi_trace_sample", OptionType::kSize, "0", "", 0, uint64_t{1} << 40,
     "bytes of payload that the traces of all ranks may keep"},
    {"torch_recipe", OptionType::kText, "auto", "", 0, 0,
     "recipe of PyTorch's process groups; auto loses nothing, by the type of the data"},
    {"torch_threshold", OptionType::kSize, "256KiB", "", 0, uint64_t{1} << 40,
     "tensors below this size go raw in PyTorch's process groups"},
};
static_assert(std::size(kRows) <= kMaxOptions);

constexpr size_t kNoRow = SIZE_MAX;

size_t find_row(const char* key) {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (std::strcmp(kRows[i].key, key) == 0) return i;
  }
  return kNoRow;
}

std::string known_keys() {
  std::string keys;
  for (const OptionRow& row : kRows) keys += (keys.empty() ? "" : ", ") + std::string(row.key);
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
      return "a whole number";
    case OptionType::kRate:
      return "a rate such as 10Gbps or 1.2GB/s";
    default:
      return "a size such as 64KiB or 1MB";
  }
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
  if (row.type == OptionType::kText) return {};
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

std::span<const OptionRow> option_rows() { return kRows; }

const char* option_type_name(OptionType type) {
  static constexpr const char* kNames[] = {"text", "size", "rate", "integer", "boolean", "choice"};
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

Options::Options() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    value_[i] = kRows[i].fallback;
    origin_[i] = "default";
  }
}

Status Options::set_row(size_t row, const char* value, const char* origin) {
  WPR_TRY(check_value(kRows[row], value));
  value_[row] = value;
  origin_[row] = origin;
  return {};
}

Status Options::read_environment() {
  Status first;
  for (size_t i = 0; i < std::size(kRows); ++i) {
    std::string name = "WIREPRESS_";
    for (const char* c = kRows[i].key; *c; ++c) {
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
    }
    const char* value = std::getenv(name.c_str());
    if (!value) continue;
    if (const Status status = set_row(i, value, "environment"); !status.ok() && first.ok()) {
      first =
          fail(Code::kParameter, "in the environment, WIREPRESS_ variable of %s", status.text());
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
  if (row != kNoRow && kRows[row].type != OptionType::kRate)
    parse_number(kRows[row], value_[row].c_str(), &value);
  return value;
}

double Options::rate(const char* key) const {
  const size_t row = find_row(key);
  double value = 0;
  if (row != kNoRow && kRows[row].type == OptionType::kRate)
    parse_rate(value_[row].c_str(), &value);
  return value;
}

bool Options::as_double(const char* key, double* value) const {
  const size_t row = find_row(key);
  if (row == kNoRow) return false;
  const OptionType type = kRows[row].type;
  if (type == OptionType::kText || type == OptionType::kChoice) return false;
  *value = type == OptionType::kRate ? rate(key) : static_cast<double>(number(key));
  return true;
}

}  // namespace wirepress
