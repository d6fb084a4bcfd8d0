// SPDX-License-Identifier: Apache-2.0
// What a collective names for each rank.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "job/job.hpp"
#include "messages/types.hpp"

namespace wirepress {

// What one rank is to send or to get.
struct Block {
  Byte* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// A buffer that only sends: MPI takes it as const.
inline Byte* bytes_of(const void* buffer) { return static_cast<Byte*>(const_cast<void*>(buffer)); }

inline MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Aint lower, extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  return extent;
}

// Numbers, not pointers: MPI_BOTTOM is a good base for displacements.
inline Byte* place(const void* base, MPI_Aint offset) {
  return reinterpret_cast<Byte*>(reinterpret_cast<uintptr_t>(base) +
                                 static_cast<uintptr_t>(offset));
}

// Blocks of equal size, one behind the other.
struct Equal {
  const void* base;
  MPI_Count count;
  MPI_Datatype type;
  MPI_Aint extent;

  Equal(const void* b, MPI_Count n, MPI_Datatype t)
      : base(b), count(n), type(t), extent(t == MPI_DATATYPE_NULL ? 0 : extent_of(t)) {}
  template <typename I>
  Block operator()(I i) const {
    return {place(base, static_cast<MPI_Aint>(i) * static_cast<MPI_Aint>(count) * extent), count,
            type};
  }
};

template <typename N, typename D>
struct Varying {
  const void* base;
  const N* counts;
  const D* at;
  MPI_Datatype type;
  MPI_Aint extent;

  Varying(const void* b, const N* n, const D* d, MPI_Datatype t)
      : base(b), counts(n), at(d), type(t), extent(t == MPI_DATATYPE_NULL ? 0 : extent_of(t)) {}
  template <typename I>
  Block operator()(I i) const {
    return {place(base, static_cast<MPI_Aint>(at[i]) * extent), counts[i], type};
  }
};

// Each of its own type, at so many bytes.
template <typename N, typename D>
struct Typed {
  const void* base;
  const N* counts;
  const D* at;
  const MPI_Datatype* types;

  template <typename I>
  Block operator()(I i) const {
    return {place(base, static_cast<MPI_Aint>(at[i])), counts[i], types[i]};
  }
};

// The bytes of a block; false: MPI is to judge it.
inline bool block_size(const Block& block, MPI_Count* size) {
  Type type;
  *size = 0;
  if (block.count == 0) return true;
  return block.count > 0 && look_up(block.type, &type) &&
         !__builtin_mul_overflow(block.count, type.size, size);
}

}  // namespace wirepress
