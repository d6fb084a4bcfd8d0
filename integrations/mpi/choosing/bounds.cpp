// SPDX-License-Identifier: Apache-2.0
// mpi_error: what a bound on the error of a result asks of each coding on the way to it. The proofs
// are in docs/guides/mpi-error-bounds.md.
#include "choosing/bounds.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace wirepress {
namespace {

// Fraction bits such that one coding errs by at most u = 2^-(m+1), or two in a row by 2 u. With all
// of them nothing is lost.
std::string fraction_bits(double bound, int n_codings, wpr_dtype dtype) {
  const int all = dtype == WPR_FLOAT32 ? 23 : 52;
  int m = 1;
  while (m < all && std::ldexp(1.0, n_codings - 2 - m) > bound) ++m;
  return std::to_string(m);
}

// The largest number of four digits that is not above the bound: recipes hold few. As digits and a
// power of ten, for a plus would begin the next codec.
std::string four_digits(double bound) {
  int power = static_cast<int>(std::floor(std::log10(bound))) - 3;
  int digits = static_cast<int>(bound / std::pow(10.0, power)) + 1;
  std::string text;
  double value = 0;
  do {
    text = std::to_string(digits--) + "e" + std::to_string(power);
    std::from_chars(text.data(), text.data() + text.size(), value);  // whatever the locale is
  } while (value > bound);
  return text;
}

}  // namespace

std::vector<Keeper> keepers(wpr_error_kind kind) {
  std::vector<Keeper> found;
  if (kind == WPR_ERROR_NONE) return found;
  const char* wanted = kind == WPR_ERROR_ABSOLUTE ? "absolute" : "fraction_bits";
  wpr_codec_info codec;
  wpr_param_info param;
  for (size_t i = 0; wpr_codec_at(i, &codec); ++i) {
    for (size_t k = 0; wpr_codec_param_at(i, k, &param); ++k) {
      if (std::strcmp(param.bounds, wanted) == 0) found.push_back({codec.name, param.name});
    }
  }
  return found;
}

std::vector<std::string> bounded_recipes(const std::string& codec, const Bound& bound,
                                         wpr_dtype dtype, int n_codings, int n_nodes) {
  std::vector<std::string> recipes;
  // Each of the other nodes' operands is coded once, and the sum of all once more.
  const double each = n_codings == 1 ? bound.value : bound.value / std::max(n_nodes, 2);
  for (const Keeper& keeper : keepers(bound.kind)) {
    // auto has no use for fre: bx is as small and faster.
    if (codec == "auto" ? std::strcmp(keeper.codec, "fre") == 0 : codec != keeper.codec) continue;
    recipes.push_back(std::string(keeper.codec) + ":" + keeper.parameter + "=" +
                      (bound.kind == WPR_ERROR_ABSOLUTE
                           ? four_digits(each)
                           : fraction_bits(bound.value, n_codings, dtype)));
  }
  return recipes;
}

}  // namespace wirepress
