// SPDX-License-Identifier: Apache-2.0
// Data types: their layout in memory, and copies between layouts.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "wirepress/wirepress.h"

namespace wirepress {

enum class Arithmetic : uint8_t { kNone, kInteger, kFloat, kComplex, kLogical, kByte };

struct Type {
  bool contiguous = false;  // count elements are count * size bytes at the buffer's address
  bool named = false;
  wpr_dtype dtype = WPR_BYTES;
  uint8_t element = 1;  // bytes of an element of dtype
  Arithmetic arithmetic = Arithmetic::kNone;
  MPI_Count size = 0;  // packed bytes of one

  // The same bytes, where nothing is known of the elements.
  void forget_elements() {
    dtype = WPR_BYTES;
    element = 1;
  }
};

void learn_types();
// False: the library cannot look into messages of this type; MPI itself is to judge it.
bool look_up(MPI_Datatype type, Type* result);
// Keeps a type alive beyond the call: *type becomes a copy, which the caller owns.
void keep_type(MPI_Datatype* type, bool* owns);

// Puts packed bytes where (buffer, count, type) says, as receiving them would.
int deliver(const void* packed, size_t size, void* buffer, MPI_Count count, MPI_Datatype type);
int deliver_on_cores(const void* packed, size_t size, void* buffer, MPI_Count count,
                     MPI_Datatype type);
// The packed bytes that sending (buffer, count, type) would send.
int collect(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed, size_t size);
int collect_on_cores(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed,
                     size_t size);
// From one description of bytes to another, as a message to oneself would.
int copy(const void* from, MPI_Count count, MPI_Datatype type, void* to, MPI_Count to_count,
         MPI_Datatype to_type);

// Room for `size` bytes as MPI wants it: a count of MPI_BYTE, or one of a larger type.
class ByteRoom {
 public:
  explicit ByteRoom(size_t size);
  ~ByteRoom();
  ByteRoom(const ByteRoom&) = delete;
  ByteRoom& operator=(const ByteRoom&) = delete;
  int count;
  MPI_Datatype type;
};

// The form of a PMPI function that takes the largest counts, and their type.
#ifdef WPR_MPI_LARGE
#define WPR_LARGEST(function) function##_c
using LargestCount = MPI_Count;
#else
#define WPR_LARGEST(function) function
using LargestCount = int;
#endif

// Handles are numbers in some libraries and pointers in others.
inline uint64_t handle_bits(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }
inline uint64_t handle_bits(int handle) { return static_cast<uint32_t>(handle); }

}  // namespace wirepress
