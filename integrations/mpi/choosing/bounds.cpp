// SPDX-License-Identifier: Apache-2.0
// mpi_error: what a bound on the error of a result asks of each coding on the way to it. The proofs
// are in docs/guides/mpi-error-bounds.md.
#include "choosing/bounds.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace wirepress {
namespace {

// All of `text`, in any locale that the program may have set.
bool parse_number(const std::string& text, double* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && std::isfinite(*value);
}

}  // namespace

Bound parse_bound(const std::string& text) {
  const size_t colon = text.find_first_of(":=");  // with "=" as recipes have it
  double value = 0;
  if (colon == std::string::npos || !parse_number(text.substr(colon + 1), &value)) return {};
  const std::string kind = text.substr(0, colon);
  if (kind == "abs") return {Bound::kAbsolute, value};
  if (kind == "bits") value = std::ldexp(1.0, -static_cast<int>(value));
  return {Bound::kRelative, value};
}

namespace {

// Fraction bits such that one coding errs by at most u = 2^-(m+1), or two in a row by 2 u. With all
// of them nothing is lost.
std::string relative_recipe(const char* codec, double bound, int n_codings, int fraction_bits) {
  int m = 1;
  while (m < fraction_bits && std::ldexp(1.0, n_codings - 2 - m) > bound) ++m;
  return codec + (":m=" + std::to_string(m));
}

// The largest number of four digits that is not above the bound: recipes hold few. As digits and a
// power of ten, for a plus would begin the next codec.
std::string absolute_recipe(const char* codec, double bound) {
  int power = static_cast<int>(std::floor(std::log10(bound))) - 3;
  int digits = static_cast<int>(bound / std::pow(10.0, power)) + 1;
  std::string text;
  double value;
  do {
    text = std::to_string(digits--) + "e" + std::to_string(power);
  } while (parse_number(text, &value) && value > bound);
  return std::string(codec) + "=" + text;
}

}  // namespace

std::vector<std::string> bounded_recipes(const std::string& codec, const Bound& bound,
                                         wpr_dtype dtype, int n_codings, int n_nodes) {
  std::vector<std::string> recipes;
  if (bound.kind == Bound::kNone || (dtype != WPR_FLOAT32 && dtype != WPR_FLOAT64)) return recipes;
  const auto wanted = [&](const char* name) { return codec == "auto" || codec == name; };
  if (bound.kind == Bound::kRelative) {
    const int fraction_bits = dtype == WPR_FLOAT32 ? 23 : 52;
    if (wanted("bx")) {
      recipes.push_back(relative_recipe("bx", bound.value, n_codings, fraction_bits));
    }
    // auto has no use for fre: bx is as small and faster.
    if (codec == "fre" && dtype == WPR_FLOAT32) {
      recipes.push_back(relative_recipe("fre", bound.value, n_codings, fraction_bits));
    }
  } else {
    // Each of the other nodes' operands is coded once, and the sum of all once more.
    const double each = n_codings == 1 ? bound.value : bound.value / std::max(n_nodes, 2);
    if (wanted("zfp")) recipes.push_back(absolute_recipe("zfp:accuracy", each));
    if (wanted("sz3")) recipes.push_back(absolute_recipe("sz3:abs", each));
  }
  return recipes;
}

}  // namespace wirepress
