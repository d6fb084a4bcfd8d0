// SPDX-License-Identifier: Apache-2.0
// Memory of emulated devices for tests of programs that give MPI pointers of a GPU: the program
// finds these by dlsym. Memory of another copy of the library is not this one's.
#include "calls/wrap.hpp"
#include "messages/devices.hpp"
#include "messages/thread.hpp"

using namespace wirepress;

// nullptr: there is none.
WPR_EXPORT void* wirepress_mpi_device_alloc(int device, size_t size) {
  ask_about_addresses();
  void* memory = nullptr;
  wpr_ctx* ctx = decoder(self_thread());
  if (!ctx || wpr_device_alloc(ctx, "cuda:emulated", device, size, &memory) != WPR_OK)
    return nullptr;
  return memory;
}

// 0: done. Each side may lie on a device.
WPR_EXPORT int wirepress_mpi_copy(void* to, const void* from, size_t size) {
  return copy_bytes(to, from, size);
}

WPR_EXPORT void wirepress_mpi_device_free(void* memory) {
  if (wpr_ctx* ctx = decoder(self_thread())) wpr_device_free(ctx, memory);
}
