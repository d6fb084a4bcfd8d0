// SPDX-License-Identifier: Apache-2.0
// XXH3 with what every processor of this architecture has, and the choice of something better.
#define XXH_INLINE_ALL
#include "frame/hash.hpp"

#include <xxhash.h>

namespace wirepress {

#if defined(__x86_64__)
uint64_t hash_avx2(const void* data, size_t size, uint64_t seed);
#endif

namespace {

using Hash = uint64_t (*)(const void* data, size_t size, uint64_t seed);

uint64_t hash_portable(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

Hash choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return hash_avx2;
#endif
  return hash_portable;
}

}  // namespace

uint64_t long_hash(ConstBytes bytes, uint64_t seed) {
  // Short inputs take the same path in every build of XXH3.
  if (bytes.size() <= 240) return hash_portable(bytes.data(), bytes.size(), seed);
  static const Hash hash = choose();
  return hash(bytes.data(), bytes.size(), seed);
}

uint32_t short_hash(ConstBytes bytes, uint64_t seed) {
  return static_cast<uint32_t>(long_hash(bytes, seed));
}

}  // namespace wirepress
