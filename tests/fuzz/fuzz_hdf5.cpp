// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as a chunk and as cd_values, through the HDF5 filter as HDF5 calls it. The
// last byte says how many words before it are cd_values, and whether the chunk is to be expanded.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" const void* H5PLget_plugin_info();

namespace {

struct FilterClass {  // H5Z_class2_t
  int version, id;
  unsigned encoder_present, decoder_present;
  const char* name;
  void *can_apply, *set_local;
  size_t (*filter)(unsigned, size_t, const unsigned*, size_t, size_t*, void**);
};

constexpr unsigned kReverse = 0x0100;
constexpr size_t kMostWords = 15;

// What the filter makes of a chunk, as HDF5 would have it: the buffer is replaced on success.
bool apply(unsigned flags, const std::vector<unsigned>& values, std::vector<uint8_t>* chunk) {
  const auto* filter = static_cast<const FilterClass*>(H5PLget_plugin_info());
  size_t capacity = chunk->size();
  void* buffer = std::malloc(capacity ? capacity : 1);
  if (!chunk->empty()) std::memcpy(buffer, chunk->data(), chunk->size());
  const size_t size =
      filter->filter(flags, values.size(), values.data(), chunk->size(), &capacity, &buffer);
  if (size > capacity) std::abort();
  const auto* bytes = static_cast<const uint8_t*>(buffer);
  if (size > 0) chunk->assign(bytes, bytes + size);
  std::free(buffer);
  return size > 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const uint8_t last = bytes[--size];
  std::vector<unsigned> values(std::min<size_t>(last & kMostWords, size / sizeof(unsigned)));
  size -= values.size() * sizeof(unsigned);
  if (!values.empty()) std::memcpy(values.data(), bytes + size, values.size() * sizeof(unsigned));
  std::vector<uint8_t> chunk(bytes, bytes + size);
  if (last & 0x80) {
    apply(kReverse, values, &chunk);
  } else if (apply(0, values, &chunk) && !apply(kReverse, values, &chunk)) {
    std::fprintf(stderr, "fuzz_hdf5: does not read what it wrote\n");
    std::abort();
  }
  return 0;
}
