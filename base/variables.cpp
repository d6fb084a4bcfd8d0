// SPDX-License-Identifier: Apache-2.0
#include "base/variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/options.hpp"

namespace wirepress {
namespace {

constexpr std::string_view kPrefix = "WIREPRESS_";
constexpr size_t kLongest = 64;  // of a name that is looked at and shown whole

std::string upper(std::string_view key) {
  std::string name(key);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> keys;
  for (const OptionRow& row : option_rows()) keys.push_back(upper(row.key));
  for (const char* key : other_variables()) keys.push_back(upper(key));
  return keys;
}

// Letters to insert, delete or replace (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// A key may lack the name of its room: CODEC for MPI_CODEC.
size_t distance_to(std::string_view key, std::string_view known) {
  const size_t whole = distance(key, known), bar = known.find('_');
  return bar == std::string_view::npos ? whole
                                       : std::min(whole, distance(key, known.substr(bar + 1)));
}

// The known key that is most like it, "" where a quarter of the letters or more are others.
std::string nearest(std::string_view key, const std::vector<std::string>& known) {
  const auto best = std::ranges::min_element(
      known, {}, [&](const std::string& each) { return distance_to(key, each); });
  return 4 * distance_to(key, *best) <= key.size() ? *best : "";
}

}  // namespace

std::string unknown_variables() {
  const std::vector<std::string> known = known_keys();
  std::string names;
  for (char** each = environ; each && *each; ++each) {
    const std::string_view text = *each;
    if (!text.starts_with(kPrefix)) continue;
    const std::string_view key =
        text.substr(0, std::min(text.find('='), kPrefix.size() + kLongest)).substr(kPrefix.size());
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string meant = nearest(upper(key), known);
    names += (names.empty() ? "" : ", ") + std::string(kPrefix) + std::string(key);
    if (!meant.empty()) names += " (did you mean " + std::string(kPrefix) + meant + "?)";
  }
  return names.empty() ? "" : "in the environment, nobody reads " + names;
}

}  // namespace wirepress
