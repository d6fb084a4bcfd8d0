// SPDX-License-Identifier: Apache-2.0
// What the rest of the engine asks of the machine's GPU, without CUDA's headers.
#pragma once

#include "base/memory.hpp"

namespace wirepress::cuda {

// Of the current device of the calling thread; asked once in a process. Asking loads the driver,
// after which CUDA_VISIBLE_DEVICES counts no more and a forked child has no device: only where a
// program names the engine, or asks for it.
bool has_device() noexcept;
const char* why_no_device() noexcept;  // nullptr: there is one
const char* device_name() noexcept;    // "cuda:sm_90, NVIDIA H200"; "": none
// Whether a state of a kernel has a stream: the program selected the engine. Asks no device.
bool has_stream() noexcept;
void note_stream() noexcept;

extern const DeviceMemory device_memory;

}  // namespace wirepress::cuda
