// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes as the file of a frame store, through every way that reads one: open, get,
// check, and an open for append, which repairs. Checksums that no mutation would guess are put
// right.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "store/frame_store.hpp"
#include "store/kit/faulty_file.hpp"

namespace {

using wirepress::store::Contents;
using wirepress::store::File;
using wirepress::store::FrameStore;
using wirepress::store::Head;
using wirepress::store::kHeadSize;
using wirepress::store::kRecordMagic;
using wirepress::store::kRecordSize;
using wirepress::store::kTrailerSize;
using wirepress::store::kit::Content;
using wirepress::store::kit::FaultyFile;
using Frames = std::map<uint64_t, Content>;

constexpr uint64_t kMostRaw = 1 << 16;
constexpr size_t kMostSize = 1 << 16;

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "fuzz_store: %s\n", why);
  std::abort();
}

uint64_t number(const Content& file, size_t at) {
  uint64_t value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

void seal(Content* file, size_t at, size_t begin, size_t size, uint64_t seed) {
  const uint64_t sum = XXH3_64bits_withSeed(file->data() + begin, size, seed);
  std::memcpy(file->data() + at, &sum, sizeof sum);
}

// The head's checksum, and those of records as far as one follows the other.
void seal_all(Content* file) {
  seal(file, kHeadSize - 8, 0, kHeadSize - 8, 0);
  const uint64_t id = number(*file, 16);
  size_t at = kHeadSize;
  while (at + kRecordSize <= file->size()) {
    uint32_t magic;
    std::memcpy(&magic, file->data() + at, sizeof magic);
    const uint64_t size = number(*file, at + 32);
    const size_t payload = at + kRecordSize;
    if (magic != kRecordMagic || size > file->size() - payload) return;
    if (size >= kTrailerSize && payload + size == file->size()) {
      const size_t trailer = payload + size - kTrailerSize;
      if (std::memcmp(file->data() + trailer, "WPRINDEX", 8) == 0)
        seal(file, trailer + 16, trailer, 16, id);
    }
    seal(file, at + 40, payload, size, id);
    seal(file, at + 48, at, 48, id + at);
    at = payload + size;
  }
}

// Every frame that can be had.
Frames frames_of(FaultyFile& disk, bool append) {
  FrameStore store(disk);
  Frames frames;
  wpr_store_config config = {};
  config.policy = WPR_STORE_DISK;
  if (!store.open("file", append, config).ok()) return frames;
  wpr_store_info info;
  store.info(&info);
  wpr_store_frame frame;
  for (uint64_t step = 0; store.frame_from(step, &frame); step = frame.step + 1) {
    Content raw(info.raw_size);
    if (store.get(frame.step, raw.data(), raw.size()).ok()) frames[frame.step] = std::move(raw);
    if (frame.step == ~uint64_t{0}) break;
  }
  if (append && !store.close().ok()) stop("close fails");
  return frames;
}

void read(const Content& bytes) {
  Head head;
  if (!read_head(bytes, &head).ok() || head.raw_size > kMostRaw) return;
  FaultyFile disk(bytes);
  File file(disk);
  if (!file.open("file", wirepress::store::Access::kRead).ok()) stop("it cannot be opened");
  Contents contents;
  if (!scan(file, nullptr, &contents).ok()) stop("a good head, and the scan fails");
  if (contents.report.good_size + contents.report.torn_bytes != bytes.size())
    stop("the report's sizes are wrong");
  const Frames before = frames_of(disk, false);
  if (!disk.changes().empty()) stop("reading changed it");
  if (frames_of(disk, true) != before) stop("an open for append reads otherwise");
  if (frames_of(disk, false) != before) stop("an append and a close changed what there is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size > kMostSize) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  Content file(begin, begin + size);
  read(file);
  if (size < kHeadSize) return 0;
  seal_all(&file);
  read(file);
  return 0;
}
