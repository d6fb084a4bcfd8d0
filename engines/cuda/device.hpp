// SPDX-License-Identifier: Apache-2.0
// What the rest of the engine asks of the machine's GPU, without CUDA's headers.
#pragma once

namespace wirepress::cuda {

// Of the current device of the calling thread; asked once in a process.
bool has_device() noexcept;
const char* why_no_device() noexcept;  // nullptr: there is one
const char* device_name() noexcept;    // "cuda:sm_90, NVIDIA H200"; "": none

}  // namespace wirepress::cuda
