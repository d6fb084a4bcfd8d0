// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/emulated_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>

#include "engines/cuda/emulated_stream.hpp"

namespace wirepress::cuda {
namespace {

constexpr int kDevices = 2;  // so that what is done on the wrong one is seen

struct Free {
  void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{256}); }
};

struct Region {
  size_t size, reserved;
  int device;
  std::unique_ptr<std::byte[], Free> bytes;
};

struct Regions {
  std::shared_mutex mutex;
  std::map<uintptr_t, Region> by_address;  // that of the first byte
  std::atomic<size_t> n{0};

  // Never destroyed: programs free memory at their end.
  static Regions& all() {
    static auto* const all = new Regions;
    return *all;
  }
  // The one with this address or that ends there; end(): none. Under the lock.
  auto find(const void* at) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    auto it = by_address.upper_bound(address);
    if (it == by_address.begin()) return by_address.end();
    --it;
    return address - it->first < it->second.reserved ? it : by_address.end();
  }
};

int device_of(const void* at) noexcept {
  Regions& regions = Regions::all();
  if (regions.n == 0) return -1;
  const std::shared_lock lock(regions.mutex);
  const auto it = regions.find(at);
  return it == regions.by_address.end() ? -1 : it->second.device;
}

bool possible() noexcept { return Regions::all().n > 0; }

Status no_such(const char* what, int device, const void* at, size_t size) {
  return fail(Code::kDevice, "cuda: %s: %zu bytes at %p are not in memory of emulated device %d",
              what, size, at, device);
}

Status download(int device, std::byte* to, const std::byte* from, size_t row_size, size_t step,
                size_t n) noexcept {
  if (n == 0 || row_size == 0) return {};
  int owner = -1;
  const std::byte* bytes = emulated_bytes(from, step * (n - 1) + row_size, &owner);
  if (bytes == nullptr || owner != device) return no_such("download", device, from, row_size);
  for (size_t i = 0; i < n; ++i) std::memcpy(to + i * row_size, bytes + i * step, row_size);
  return {};
}

Status upload(int device, std::byte* to, ConstBytes from) noexcept {
  int owner = -1;
  std::byte* bytes = emulated_bytes(to, from.size(), &owner);
  if (bytes == nullptr || owner != device) return no_such("upload", device, to, from.size());
  if (!from.empty()) std::memcpy(bytes, from.data(), from.size());
  return {};
}

Status allocate(int device, size_t size, void** at) noexcept {
  if (device < 0 || device >= kDevices)
    return fail(Code::kParameter, "no emulated device %d: there are %d", device, kDevices);
  constexpr size_t kPage = 4096;
  if (size > SIZE_MAX / 2) return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
  const size_t reserved = (size + kPage) / kPage * kPage;  // one byte more: its end is its own
  void* address =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
  try {
    Region region{size, reserved, device, {}};
    region.bytes.reset(
        static_cast<std::byte*>(::operator new (std::max<size_t>(size, 1), std::align_val_t{256})));
    Regions& regions = Regions::all();
    const std::unique_lock lock(regions.mutex);
    regions.by_address.emplace(reinterpret_cast<uintptr_t>(address), std::move(region));
    regions.n = regions.by_address.size();
  } catch (const std::bad_alloc&) {
    munmap(address, reserved);
    return fail(Code::kNoMemory, "cuda: no memory for %zu bytes", size);
  }
  count_emulated_allocation();
  *at = address;
  return {};
}

Status release(int device, void* at) noexcept {
  Regions& regions = Regions::all();
  const std::unique_lock lock(regions.mutex);
  const auto it = regions.by_address.find(reinterpret_cast<uintptr_t>(at));
  if (it == regions.by_address.end() || it->second.device != device)
    return fail(Code::kParameter, "cuda: %p was not allocated on emulated device %d", at, device);
  munmap(at, it->second.reserved);
  regions.by_address.erase(it);
  regions.n = regions.by_address.size();
  return {};
}

// What is on the caller's stream, where it is one of the emulator's, is done first.
Status wait(int, void* stream) noexcept {
  EmulatedStream* const own = EmulatedStream::find(stream);
  if (own == nullptr) return {};
  own->drain();
  Status status;
  own->passed(own->put_count(), &status);
  return status;
}

std::atomic<uint64_t> allocations{0}, to_fail{0}, failures{0};
std::atomic<bool> all_fail{false};
std::atomic<uint64_t> launches[kDevices] = {};
thread_local int current = 0;

thread_local DeviceWork work;

}  // namespace

std::byte* emulated_bytes(const void* at, size_t size, int* device) noexcept {
  Regions& regions = Regions::all();
  if (regions.n == 0) return nullptr;
  const std::shared_lock lock(regions.mutex);
  const auto it = regions.find(at);
  if (it == regions.by_address.end()) return nullptr;
  const size_t offset = reinterpret_cast<uintptr_t>(at) - it->first;
  const Region& region = it->second;
  if (offset > region.size || size > region.size - offset) return nullptr;
  if (device != nullptr) *device = region.device;
  return region.bytes.get() + offset;
}

int emulated_current() noexcept { return current; }
void set_emulated_current(int device) noexcept { current = device; }
uint64_t emulated_launches(int device) noexcept {
  return launches[static_cast<size_t>(device) % kDevices];
}
void count_emulated_launch(int device) noexcept {
  if (device >= 0) ++launches[static_cast<size_t>(device) % kDevices];
}

void fail_emulated(uint64_t n, bool all) noexcept {
  all_fail = all;
  to_fail = n;
}
uint64_t emulated_failures() noexcept { return failures; }
Status emulated_operation(const char* what) noexcept {
  for (uint64_t left = to_fail; left > 0;) {
    const bool fails = left == 1;
    if (!(fails && all_fail) && !to_fail.compare_exchange_weak(left, left - 1)) continue;
    if (fails) ++failures;
    if (fails) return fail(Code::kDevice, "cuda: %s: the emulator was told to fail", what);
    break;
  }
  return {};
}

uint64_t emulated_allocations() noexcept { return allocations; }
void count_emulated_allocation() noexcept { ++allocations; }

DeviceWork device_work() { return work; }

void note_device_work(uint64_t device_size, uint64_t cores_size, const char* reason) noexcept {
  work.device_size += device_size;
  work.cores_size += cores_size;
  if (cores_size > 0) work.reason = reason;
}

const DeviceMemory emulated_memory = {
    .kernels = "cuda:emulated",
    .device_of = device_of,
    .possible = possible,
    .download = download,
    .upload = upload,
    .wait = wait,
    .allocate = allocate,
    .release = release,
    .on_cores = [](const void* at) noexcept { return emulated_bytes(at, 0); },
    .note = note_device_work,
    .streams = &emulated_streams};

}  // namespace wirepress::cuda
