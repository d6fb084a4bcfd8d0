// SPDX-License-Identifier: Apache-2.0
// mpi_error: what a bound on the error of a result asks of each coding on the way to it. The proofs
// are in docs/mpi-error-bounds.md.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "interposer.hpp"

namespace wirepress {

const char* parse_bound(const std::string& text, Bound* bound) {
  *bound = {};
  if (text.empty() || text == "none") return nullptr;
  const size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  char* end = nullptr;
  const char* number = colon == std::string::npos ? "" : text.c_str() + colon + 1;
  const double value = std::strtod(number, &end);
  if (end == number || *end || !std::isfinite(value)) {
    return "is not none, rel:R, abs:A or bits:B, such as rel:1e-3";
  }
  if (kind == "rel") {
    *bound = {Bound::kRelative, value};
    return value > 0 && value < 1 ? nullptr : "a relative error lies between 0 and 1";
  }
  if (kind == "abs") {
    *bound = {Bound::kAbsolute, value};
    return value > 0 ? nullptr : "an absolute error is above 0";
  }
  if (kind == "bits") {
    *bound = {Bound::kRelative, std::ldexp(1.0, -static_cast<int>(value))};
    const bool whole = value >= 1 && value <= 52 && value == std::floor(value);
    return whole ? nullptr : "bits are a whole number from 1 to 52";
  }
  return "is not none, rel:R, abs:A or bits:B, such as rel:1e-3";
}

namespace {

// Fraction bits such that one coding errs by at most u = 2^-(m+1), or two in a row by 2 u.
std::string relative_recipe(const char* codec, double bound, int n_codings, int fraction_bits) {
  int m = 1;
  while (m < fraction_bits && std::ldexp(1.0, n_codings - 2 - m) > bound) ++m;
  return m < fraction_bits ? codec + (":m=" + std::to_string(m)) : "";
}

std::string absolute_recipe(const char* codec, double bound) {
  char text[64];
  // Recipes hold few digits: rounded, it is still below the bound.
  std::snprintf(text, sizeof text, "%s=%.3e", codec, bound * (1 - 1e-3));
  return text;
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
  std::erase(recipes, "");
  return recipes;
}

}  // namespace wirepress
