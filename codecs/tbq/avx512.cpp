// SPDX-License-Identifier: Apache-2.0
#include "codecs/tbq/vector.hpp"

namespace wirepress {
namespace {

class Compressing : public tbq::Vector {
 public:
  using Vector::Vector;

  // The positions of two groups at a time, compressed by their marks: mostly a few entries, whose
  // stores are short, so that fewer of them cross a line.
  static void list(const std::byte* groups, size_t n, std::byte* at) {
    alignas(64) static constexpr auto kCounted = [] {
      std::array<uint8_t, kTwo> counted{};
      for (size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<uint8_t>(i);
      return counted;
    }();
    const __m512i position = _mm512_load_si512(kCounted.data());
    for (size_t first = 0; first < n; first += kTwo, groups += 2 * tbq::kMarkSize) {
      uint64_t marked = chunks::read<uint32_t>(groups);
      uint64_t negative = chunks::read<uint32_t>(groups + 4);
      if (n - first > chunks::kGroup) {
        marked |= uint64_t{chunks::read<uint32_t>(groups + tbq::kMarkSize)} << 32;
        negative |= uint64_t{chunks::read<uint32_t>(groups + tbq::kMarkSize + 4)} << 32;
      }
      // Of the entries, which follow each other, those of negative values.
      uint64_t signs = _pext_u64(negative, marked);
      __m512i places = _mm512_maskz_compress_epi8(marked, position);
      const auto count = static_cast<size_t>(std::popcount(marked));
      for (size_t done = 0; done < count; done += kStored) {
        const __m256i start = _mm256_set1_epi16(static_cast<int16_t>(first));
        const __m256i entry =
            _mm256_add_epi16(_mm256_cvtepu8_epi16(_mm512_castsi512_si128(places)), start);
        const __m256i sign = _mm256_set1_epi16(INT16_MIN);
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(at + 2 * done),
            _mm256_mask_add_epi16(entry, static_cast<__mmask16>(signs), entry, sign));
        signs >>= kStored;
        places = _mm512_alignr_epi64(places, places, 2);
      }
      at += 2 * count;
    }
  }

 private:
  static constexpr size_t kTwo = 2 * chunks::kGroup, kStored = 16;  // values, entries of a store
};

}  // namespace

extern const Kernel tbq_avx512;
const Kernel tbq_avx512 = tbq::kernel<Compressing>("avx512", has_avx512);

}  // namespace wirepress
