// SPDX-License-Identifier: Apache-2.0
// Masks of comparisons; what is kept is compressed in registers, and expanded there.
#include "codecs/common/simd/avx512.hpp"

#include "codecs/sparse/sparse.hpp"

namespace wirepress {
namespace {

// Instructions by the size of an element. Masked forms with all lanes: the plain ones make g++ 12
// warn of its own headers.
struct Bytes1 {
  using M = __mmask64;
  static __m512i all(uint8_t v) { return _mm512_set1_epi8(static_cast<char>(v)); }
  static M test(__m512i a, __m512i b) { return _mm512_test_epi8_mask(a, b); }
  static M differ(__m512i a, __m512i b) { return _mm512_cmpneq_epi8_mask(a, b); }
  static M signs(__m512i v) { return _mm512_movepi8_mask(v); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi8(a, b); }
  static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi8(a, b); }
  static __m512i negate(__m512i v, M m) { return _mm512_mask_sub_epi8(v, m, all(0), v); }
  static __m512i blend(M m, __m512i no, __m512i yes) { return _mm512_mask_blend_epi8(m, no, yes); }
  static __m512i compress(M m, __m512i v) { return _mm512_maskz_compress_epi8(m, v); }
  static __m512i expand(__m512i base, M m, __m512i v) {
    return _mm512_mask_expand_epi8(base, m, v);
  }
};
struct Bytes2 {
  using M = __mmask32;
  static __m512i all(uint16_t v) { return _mm512_set1_epi16(static_cast<short>(v)); }
  static M test(__m512i a, __m512i b) { return _mm512_test_epi16_mask(a, b); }
  static M differ(__m512i a, __m512i b) { return _mm512_cmpneq_epi16_mask(a, b); }
  static M signs(__m512i v) { return _mm512_movepi16_mask(v); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi16(a, b); }
  static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi16(a, b); }
  static __m512i negate(__m512i v, M m) { return _mm512_mask_sub_epi16(v, m, all(0), v); }
  static __m512i blend(M m, __m512i no, __m512i yes) { return _mm512_mask_blend_epi16(m, no, yes); }
  static __m512i compress(M m, __m512i v) { return _mm512_maskz_compress_epi16(m, v); }
  static __m512i expand(__m512i base, M m, __m512i v) {
    return _mm512_mask_expand_epi16(base, m, v);
  }
};
struct Bytes4 {
  using M = __mmask16;
  static __m512i all(uint32_t v) { return _mm512_set1_epi32(static_cast<int>(v)); }
  static M test(__m512i a, __m512i b) { return _mm512_test_epi32_mask(a, b); }
  static M differ(__m512i a, __m512i b) { return _mm512_cmpneq_epi32_mask(a, b); }
  static M signs(__m512i v) { return _mm512_movepi32_mask(v); }
  static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }
  static __m512i subtract(__m512i a, __m512i b) { return _mm512_sub_epi32(a, b); }
  static __m512i negate(__m512i v, M m) { return _mm512_mask_sub_epi32(v, m, all(0), v); }
  static __m512i blend(M m, __m512i no, __m512i yes) { return _mm512_mask_blend_epi32(m, no, yes); }
  static __m512i compress(M m, __m512i v) { return _mm512_maskz_compress_epi32(m, v); }
  static __m512i expand(__m512i base, M m, __m512i v) {
    return _mm512_mask_expand_epi32(base, m, v);
  }
};
template <typename T>
using Lanes =
    std::conditional_t<sizeof(T) == 1, Bytes1, std::conditional_t<sizeof(T) == 2, Bytes2, Bytes4>>;

struct Ops {
  template <typename T>
  static constexpr size_t kLanes = 64 / sizeof(T);
  template <typename T>
  using M = typename Lanes<T>::M;

  template <typename T>
  static M<T> part(uint64_t mask, size_t i) {
    return static_cast<M<T>>(mask >> i);
  }
  template <typename T>
  static __m512i order(__m512i v) {
    constexpr T kLower = static_cast<T>(~T{0}) >> 1;
    return Lanes<T>::blend(Lanes<T>::signs(v), v, _mm512_xor_si512(v, Lanes<T>::all(kLower)));
  }

  template <typename T>
  static uint64_t test(const std::byte* v, T bits) {
    uint64_t mask = 0;
    for (size_t i = 0; i < kChunk; i += kLanes<T>)
      mask |= uint64_t{Lanes<T>::test(_mm512_loadu_si512(v + i * sizeof(T)), Lanes<T>::all(bits))}
              << i;
    return mask;
  }
  template <typename T>
  static void keep(uint64_t mask, const std::byte* v, T* out) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>) {
      const M<T> own = part<T>(mask, i);
      const __m512i word = _mm512_loadu_si512(v + i * sizeof(T));
      _mm512_storeu_si512(out, Lanes<T>::compress(own, word));
      out += std::popcount(own);
    }
  }
  template <typename T>
  static void spread(uint64_t mask, const T* from, T base, std::byte* out) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>) {
      const M<T> own = part<T>(mask, i);
      const __m512i v = _mm512_loadu_si512(from);
      _mm512_storeu_si512(out + i * sizeof(T), Lanes<T>::expand(Lanes<T>::all(base), own, v));
      from += std::popcount(own);
    }
  }
  template <typename T>
  static void set(uint64_t mask, T bit, T* v) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>) {
      const __m512i word = _mm512_loadu_si512(v + i);
      const __m512i with = _mm512_or_si512(word, Lanes<T>::all(bit));
      _mm512_storeu_si512(v + i, Lanes<T>::blend(part<T>(mask, i), word, with));
    }
  }
  template <typename T>
  static void negate(uint64_t mask, T* v) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>)
      _mm512_storeu_si512(v + i, Lanes<T>::negate(_mm512_loadu_si512(v + i), part<T>(mask, i)));
  }
  template <typename T>
  static uint64_t differ(const std::byte* before, const std::byte* after) {
    uint64_t mask = 0;
    for (size_t i = 0; i < kChunk; i += kLanes<T>)
      mask |= uint64_t{Lanes<T>::differ(_mm512_loadu_si512(before + i * sizeof(T)),
                                        _mm512_loadu_si512(after + i * sizeof(T)))}
              << i;
    return mask;
  }
  template <typename T>
  static void keep_steps(uint64_t mask, const std::byte* before, const std::byte* after, T* out) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>) {
      const __m512i a = _mm512_loadu_si512(before + i * sizeof(T));
      const __m512i b = _mm512_loadu_si512(after + i * sizeof(T));
      const M<T> own = part<T>(mask, i);
      const __m512i step = Lanes<T>::subtract(order<T>(b), order<T>(a));
      _mm512_storeu_si512(out, Lanes<T>::compress(own, step));
      out += std::popcount(own);
    }
  }
  template <typename T>
  static void move(uint64_t mask, const T* from, std::byte* words) {
    for (size_t i = 0; i < kChunk; i += kLanes<T>) {
      const M<T> own = part<T>(mask, i);
      if (own == 0) continue;
      const __m512i step = Lanes<T>::expand(Lanes<T>::all(0), own, _mm512_loadu_si512(from));
      std::byte* const to = words + i * sizeof(T);
      const __m512i place = Lanes<T>::add(order<T>(_mm512_loadu_si512(to)), step);
      _mm512_storeu_si512(to, order<T>(place));
      from += std::popcount(own);
    }
  }
};

}  // namespace

extern const Kernel sparse_avx512;
const Kernel sparse_avx512 = Sparse<Ops>::kernel("avx512", has_avx512);

}  // namespace wirepress
