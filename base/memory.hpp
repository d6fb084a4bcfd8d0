// SPDX-License-Identifier: Apache-2.0
// Memory of an engine's device, which the cores must not touch, and whose a pointer is.
#pragma once

#include "base/streams.hpp"

namespace wirepress {

// Of one engine. Functions that copy return when the bytes have moved; sizes are bytes.
struct DeviceMemory {
  const char* kernels;  // those that reach it, as choose_kernel takes them: "cuda:device"
  // The number of the device that this address belongs to; -1: none of these. Loads no driver, and
  // makes no context on a device.
  int (*device_of)(const void* at) noexcept;
  // False: no address is any of these devices', until another library is loaded into the process
  // or something is allocated here.
  bool (*possible)() noexcept;
  // `n` rows of row_size bytes that begin `step` bytes apart, to one place behind the other.
  Status (*download)(int device, std::byte* to, const std::byte* from, size_t row_size, size_t step,
                     size_t n) noexcept;
  Status (*upload)(int device, std::byte* to, ConstBytes from) noexcept;
  // Until what the caller has put on a stream is done; nullptr: on the default stream.
  Status (*wait)(int device, void* stream) noexcept;
  Status (*allocate)(int device, size_t size, void** at) noexcept;
  Status (*release)(int device, void* at) noexcept;
  // Where the cores reach the same bytes, in an emulation; nullptr: nowhere.
  std::byte* (*on_cores)(const void* at) noexcept;
  // Adds to Engine::work of the calling thread; `reason` is static.
  void (*note)(uint64_t device_size, uint64_t cores_size, const char* reason) noexcept;
  const DeviceStreams* streams;  // nullptr: every call waits
};

// Of the calling thread: whether the library has made it, and no program's work goes on there.
inline thread_local bool is_own_thread = false;

// Where an address lies.
struct Place {
  const DeviceMemory* memory = nullptr;  // nullptr: where the cores reach it
  int device = -1;

  bool on_device() const { return memory != nullptr; }
  bool operator==(const Place&) const = default;

  // The next two are for places on a device.
  Status download(Bytes to, const std::byte* from) const {
    if (to.empty()) return {};
    return memory->download(device, to.data(), from, to.size(), to.size(), 1);
  }
  Status upload(std::byte* to, ConstBytes from) const {
    return from.empty() ? Status() : memory->upload(device, to, from);
  }
};

Place place_of(const void* at) noexcept;
// False: no address is a device's, until a library is loaded or a device's memory is allocated
// here.
bool may_have_devices() noexcept;
// kParameter where the argument `name` of a call lies on a device.
Status check_on_cores(const void* at, const char* name);
// Refuses two buffers of a call of which one is written while the other is read.
Status check_apart(const char* a_name, ConstBytes a, const char* b_name, ConstBytes b);
// That of an engine's device, by the name of its kernels or the engine's own; nullptr: unknown.
const DeviceMemory* find_memory(std::string_view name) noexcept;

}  // namespace wirepress
