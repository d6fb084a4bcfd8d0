// SPDX-License-Identifier: Apache-2.0
// The test kit's device as a module of its own, for tests that come through the library's doors.
// Its name is faulty-SEED, with faults of all kinds in one job of 60, or faulty-SEED-KIND, with one
// kind (a number of Fault) in one job of 8.
#include <cstdio>
#include <mutex>

#include "engines/compressdev/faulty_device.hpp"

namespace wirepress::compressdev {
namespace {

std::mutex mutex;  // a FaultyDevice is for one thread
FaultyDevice* device = nullptr;
constexpr int kSample = 3;  // jobs at set-up, without which the device would be refused

int describe(const char* name, wpr_device_info* info, char* why, size_t why_size) {
  unsigned seed = 0;
  int kind = 0;
  const int n = std::sscanf(name, "faulty-%u-%d", &seed, &kind);
  if (n < 1 || kind < 0 || kind >= kFaults) {
    std::snprintf(why, why_size, "%s is not faulty-SEED or faulty-SEED-KIND", name);
    return -1;
  }
  std::vector<Fault> faults;
  for (int i = 1; i < kFaults; ++i)
    if (n == 1 || i == kind) faults.push_back(static_cast<Fault>(i));
  device = new FaultyDevice(faults, n == 1 ? 60 : 8, seed, kSample);  // for good
  *info = device->info();
  std::snprintf(info->name, sizeof info->name, "%s", name);
  return 0;
}

void* open(void* self) {
  const std::scoped_lock lock(mutex);
  return FaultyDevice::table().open(self);
}
int submit(void* queue, const wpr_device_job* job) {
  const std::scoped_lock lock(mutex);
  return FaultyDevice::table().submit(queue, job);
}
int poll(void* queue, wpr_device_answer* answer) {
  const std::scoped_lock lock(mutex);
  return FaultyDevice::table().poll(queue, answer);
}
void close(void* self) {
  const std::scoped_lock lock(mutex);
  FaultyDevice::table().close(self);
}

}  // namespace
}  // namespace wirepress::compressdev

extern "C" [[gnu::visibility("default")]] const wpr_device_table wpr_device_table_2;
extern "C" const wpr_device_table wpr_device_table_2 = {
    wirepress::compressdev::describe, wirepress::compressdev::open,  wirepress::compressdev::submit,
    wirepress::compressdev::poll,     wirepress::compressdev::close, nullptr};
