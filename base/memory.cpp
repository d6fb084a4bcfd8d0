// SPDX-License-Identifier: Apache-2.0
#include "base/memory.hpp"

namespace wirepress {

Place place_of(const void* at) noexcept {
  for (const Engine* engine : engines()) {
    for (const DeviceMemory* memory : engine->memories) {
      const int device = memory->device_of(at);
      if (device >= 0) return {memory, device};
    }
  }
  return {};
}

bool may_have_devices() noexcept {
  for (const Engine* engine : engines()) {
    for (const DeviceMemory* memory : engine->memories)
      if (memory->possible()) return true;
  }
  return false;
}

Status check_on_cores(const void* at, const char* name) {
  const Place place = place_of(at);
  if (!place.on_device()) return {};
  return fail(Code::kParameter,
              "%s lies in memory of device %d (%s), which this call does not take: copy it with "
              "wpr_copy",
              name, place.device, place.memory->kernels);
}

const DeviceMemory* find_memory(std::string_view name) noexcept {
  for (const Engine* engine : engines()) {
    for (const DeviceMemory* memory : engine->memories)
      if (name == engine->name || name == memory->kernels) return memory;
  }
  return nullptr;
}

}  // namespace wirepress
