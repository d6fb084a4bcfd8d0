// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

namespace wirepress::hdf5 {
namespace {

constexpr size_t kWord = sizeof(uint32_t);
constexpr uint64_t kMostSize = uint64_t{1} << 48;  // of a frame

size_t words_of(size_t bytes) { return (bytes + kWord - 1) / kWord; }

std::string text_of(const unsigned* words, size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(words[i / kWord] >> 8 * (i % kWord) & 0xff);
  return text;
}

}  // namespace

bool Settings::read(const unsigned* values, size_t n, std::string* error) {
  *this = Settings();
  if (n == 0) return true;
  const size_t size = values[0], used = 1 + words_of(size);
  if (size >= WPR_MAX_RECIPE || used > n) {
    *error = "cd_values: the first is " + std::to_string(size) + " bytes of recipe, of " +
             std::to_string(n - 1) + " words that follow; at most " +
             std::to_string(WPR_MAX_RECIPE - 1) + " are allowed";
    return false;
  }
  recipe = text_of(values + 1, size);
  if (used == n) return true;
  const unsigned type = values[used] & 0xff, n_dims = values[used] >> 8;
  if (type > WPR_COMPLEX128 || n_dims > WPR_MAX_DIMS || used + 1 + n_dims > n) {
    *error = "cd_values: element type " + std::to_string(type) + " with " + std::to_string(n_dims) +
             " dimensions in " + std::to_string(n - used) + " words is not known";
    return false;
  }
  described = true;
  dtype = static_cast<wpr_dtype>(type);
  shape.assign(values + used + 1, values + used + 1 + n_dims);
  if (size_t{0} == this->size() || this->size() > kMostSize) {
    *error = "cd_values: a chunk of " + std::to_string(this->size()) + " bytes";
    return false;
  }
  return true;
}

std::vector<unsigned> Settings::write() const {
  std::vector<unsigned> values(1 + words_of(recipe.size()));
  values[0] = static_cast<unsigned>(recipe.size());
  for (size_t i = 0; i < recipe.size(); ++i)
    values[1 + i / kWord] |= unsigned{static_cast<unsigned char>(recipe[i])} << 8 * (i % kWord);
  if (!described) return values;
  values.push_back(static_cast<unsigned>(dtype) | static_cast<unsigned>(shape.size()) << 8);
  for (const uint64_t extent : shape) values.push_back(static_cast<unsigned>(extent));
  return values;
}

bool Settings::describe(const Kind& kind, const std::vector<uint64_t>& chunk) {
  std::vector<uint64_t> extents = chunk;
  if (kind.count > 1) extents.push_back(kind.count);
  while (extents.size() > WPR_MAX_DIMS) {  // a frame remembers no more: the outermost become one
    if (__builtin_mul_overflow(extents[0], extents[1], &extents[1])) return false;
    extents.erase(extents.begin());
  }
  for (const uint64_t extent : extents)
    if (extent == 0 || extent > UINT32_MAX) return false;
  described = true;
  dtype = kind.dtype;
  shape = extents;
  return size() <= kMostSize;
}

uint64_t Settings::size() const {
  uint64_t size = wpr_dtype_size(dtype);
  for (const uint64_t extent : shape)
    if (__builtin_mul_overflow(size, extent, &size)) return UINT64_MAX;
  return size;
}

}  // namespace wirepress::hdf5
