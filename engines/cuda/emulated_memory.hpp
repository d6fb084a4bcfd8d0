// SPDX-License-Identifier: Apache-2.0
// Memory of the emulator's devices, which the cores cannot touch, as they cannot a GPU's. Its
// addresses are reserved and lead nowhere: who reads one outside a kernel ends with SIGSEGV. The
// bytes lie elsewhere, cut to the byte for the address sanitizer, and the emulator finds them.
#pragma once

#include "base/memory.hpp"

namespace wirepress::cuda {

extern const DeviceMemory emulated_memory;

// Where the bytes at a device's address are, all `size` of them; nullptr: this is no such address,
// or they go beyond what was allocated. `device` is its number then, where it is not nullptr.
std::byte* emulated_bytes(const void* at, size_t size, int* device = nullptr) noexcept;

// How often memory of a device, or pinned memory, was allocated in this process.
uint64_t emulated_allocations() noexcept;
void count_emulated_allocation() noexcept;

// The calling thread's current device, 0 at first, and launches on a device in this process.
int emulated_current() noexcept;
void set_emulated_current(int device) noexcept;
uint64_t emulated_launches(int device) noexcept;
void count_emulated_launch(int device) noexcept;

// Operation number n from now on, of kernels of calls that wait, in any thread, fails: a copy, a
// launch, or waiting for their end; `all`: and all behind it. 0: none does. How many have failed.
void fail_emulated(uint64_t n, bool all = false) noexcept;
uint64_t emulated_failures() noexcept;
Status emulated_operation(const char* what) noexcept;

// What kernels of the engine cuda did in this thread (base/kernel.hpp).
DeviceWork device_work();
void note_device_work(uint64_t device_size, uint64_t cores_size, const char* reason) noexcept;

}  // namespace wirepress::cuda
