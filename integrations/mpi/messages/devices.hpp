// SPDX-License-Identifier: Apache-2.0
// Buffers in memory of a GPU, which the cores cannot touch, and many an MPI neither. What is sent
// from there is coded there and leaves as a frame that the cores have, or is copied to them where
// it goes raw or has gaps; what goes there is received on the cores and expanded there: it may be a
// frame, whatever the receiver's MPI can do. Collectives that
// code there say so (calls/on_host.hpp); the others are run on copies.
#pragma once

#include <link.h>
#include <mpi.h>

#include <atomic>
#include <vector>

#include "messages/buffer.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// What this process had loaded last when it was sure that no address is a device's, and keeps
// loaded meanwhile; nullptr: it is not sure.
extern std::atomic<const link_map*> g_last_library;

// Whether any address may be a device's: what small calls ask, by two loads. A driver comes with a
// library, and the loader appends what it loads to its list.
inline bool any_devices() {
  const link_map* last = g_last_library.load(std::memory_order_relaxed);
  return !last || __atomic_load_n(&last->l_next, __ATOMIC_RELAXED) != nullptr;
}
// What is loaded last; only to be compared.
const void* last_library();
// Once MPI is there. `before` is what was loaded last when MPI was not: of the program's own
// libraries, which it may want to unload, none is kept.
void watch_libraries(const void* before);
void ask_about_addresses();  // from now on
void unwatch_libraries();
bool lies_on_device(const void* buffer);
bool reaches_there(const void* buffer);

inline bool on_device(const void* buffer) { return any_devices() && lies_on_device(buffer); }
// Whether MPI itself reads and writes it there.
inline bool mpi_reaches(const void* buffer) { return !any_devices() || reaches_there(buffer); }
// Each side may lie on a device. An error class.
int copy_bytes(void* to, const void* from, size_t size);

// Memory of a device, kept by a thread.
class DeviceRoom {
 public:
  // On the device that has `like`; nullptr: it has none left.
  Byte* get(const void* like, size_t size);
  void release();

 private:
  wpr_place place_{"", -1, nullptr};
  void* memory_ = nullptr;
  size_t size_ = 0;
};

// deliver() and collect() (types.hpp) of a buffer on a device. Bytes in gaps of the type are the
// program's meanwhile, and are not written.
int deliver_there(const void* packed, size_t size, void* buffer, MPI_Count count,
                  MPI_Datatype type);
int collect_there(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed,
                  size_t size);

// What a call reads or writes of a buffer: bytes from `low` on, which may be before its address,
// and of them the elements of its parts.
struct Reach {
  struct Part {
    MPI_Count n;
    MPI_Datatype type;
    MPI_Aint at;
  };
  MPI_Aint low = 0;
  size_t size = 0;
  std::vector<Part> parts;

  void add(const Reach& other);
};
// Of n elements that begin `at` bytes from the address.
Reach reach_of(MPI_Count n, MPI_Datatype type, MPI_Aint at = 0);

// A copy on the cores of what a call reaches of a buffer on a device; of another one nothing.
class OnHost {
 public:
  OnHost(const void* buffer, Reach reach);
  void* at() const { return at_; }  // what stands for the buffer
  int error() const { return error_; }
  size_t copied_size() const { return copied_ ? reach_.size : 0; }
  // Writes back what the parts cover of the copy.
  int give_back() const;

 private:
  void* user_;
  void* at_;
  Reach reach_;
  Buffer copy_;
  int error_ = MPI_SUCCESS;
  bool copied_ = false;
};

}  // namespace wirepress
