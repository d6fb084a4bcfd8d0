// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/vector.hpp"

namespace wirepress {
namespace {

class Compressing : public tbq::Vector {
 public:
  using Vector::Vector;

  // The positions of a group, compressed by its marks.
  static void list(const std::byte* groups, size_t n, std::byte* at) {
    alignas(64) static constexpr auto kCounted = [] {
      std::array<uint16_t, chunks::kGroup> counted{};
      for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<uint16_t>(i);
      return counted;
    }();
    const __m512i sign = _mm512_set1_epi16(INT16_MIN);
    const __m512i step = _mm512_set1_epi16(chunks::kGroup);
    __m512i position = _mm512_load_si512(kCounted.data());
    for (size_t first = 0; first < n; first += chunks::kGroup, groups += tbq::kMarkSize) {
      const uint32_t marked = chunks::read<uint32_t>(groups);
      const uint32_t negative = chunks::read<uint32_t>(groups + 4);
      const __m512i entry = _mm512_mask_add_epi16(position, negative, position, sign);
      _mm512_storeu_si512(at, _mm512_maskz_compress_epi16(marked, entry));
      at += 2 * std::popcount(marked);
      position = _mm512_add_epi16(position, step);
    }
  }
};

}  // namespace

extern const Kernel tbq_avx512;
const Kernel tbq_avx512 = tbq::kernel<Compressing>("avx512", has_avx512);

}  // namespace wirepress
