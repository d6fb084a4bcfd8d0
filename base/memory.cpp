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

Status check_apart(const char* a_name, ConstBytes a, const char* b_name, ConstBytes b) {
  // Differences, because a size that a caller made up may reach past the end of all addresses.
  const auto from = reinterpret_cast<uintptr_t>(a.data());
  const auto to = reinterpret_cast<uintptr_t>(b.data());
  const bool apart = from <= to ? to - from >= a.size() : from - to >= b.size();
  if (apart || a.empty() || b.empty()) return {};
  return fail(Code::kParameter, "%s and %s overlap", a_name, b_name);
}

const DeviceMemory* find_memory(std::string_view name) noexcept {
  for (const Engine* engine : engines()) {
    for (const DeviceMemory* memory : engine->memories)
      if (name == engine->name || name == memory->kernels) return memory;
  }
  return nullptr;
}

}  // namespace wirepress
