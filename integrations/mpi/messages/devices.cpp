// SPDX-License-Identifier: Apache-2.0
#include "messages/devices.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "messages/thread.hpp"
#include "recording/counts.hpp"

namespace wirepress {
namespace {

// Open MPI's and MPICH's question, where they have it.
bool mpi_knows_cuda() {
  static const bool known = [] {
    const auto ask = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return ask != nullptr && ask() == 1;
  }();
  return known;
}

}  // namespace

bool on_device(const void* buffer) {
  wpr_place place;
  return buffer != nullptr && wpr_place_of(buffer, &place) == WPR_OK && place.device >= 0;
}

bool mpi_reaches(const void* buffer) {
  wpr_place place;
  if (wpr_place_of(buffer, &place) != WPR_OK || place.device < 0) return true;
  return place.on_cores == nullptr && mpi_knows_cuda();
}

int copy_bytes(void* to, const void* from, size_t size) {
  if (size == 0) return MPI_SUCCESS;
  Thread& thread = self_thread();
  wpr_ctx* ctx = decoder(thread);
  if (!ctx) return MPI_ERR_NO_MEM;
  if (wpr_copy(ctx, to, from, size) == WPR_OK) return MPI_SUCCESS;
  complain(wpr_error(ctx));
  return MPI_ERR_OTHER;
}

void Reach::add(MPI_Aint begin, MPI_Aint end) {
  if (end <= begin) return;
  if (size > 0) {
    end = std::max(end, low + static_cast<MPI_Aint>(size));
    begin = std::min(begin, low);
  }
  low = begin;
  size = static_cast<size_t>(end - begin);
}

Reach reach_of(MPI_Count n, MPI_Datatype type, MPI_Aint at) {
  Reach reach;
  MPI_Aint lower, extent, true_lower, true_extent;
  if (n <= 0 || type == MPI_DATATYPE_NULL ||
      PMPI_Type_get_extent(type, &lower, &extent) != MPI_SUCCESS ||
      PMPI_Type_get_true_extent(type, &true_lower, &true_extent) != MPI_SUCCESS)
    return reach;
  const MPI_Aint first = at + true_lower, last = first + static_cast<MPI_Aint>(n - 1) * extent;
  reach.add(std::min(first, last), std::max(first, last) + true_extent);
  return reach;
}

OnHost::OnHost(const void* buffer, const Reach& reach)
    : user_(const_cast<void*>(buffer)), at_(user_), reach_(reach) {
  if (!on_device(buffer)) return;
  copied_ = true;
  if (!copy_.reserve(std::max<size_t>(reach.size, 1))) {
    ++self_thread().events.no_memory;
    error_ = MPI_ERR_NO_MEM;
    return;
  }
  at_ = copy_.data() - reach.low;
  error_ = copy_bytes(copy_.data(), static_cast<Byte*>(user_) + reach.low, reach.size);
}

int OnHost::give_back() const {
  if (!copied_ || error_) return error_;
  return copy_bytes(static_cast<Byte*>(user_) + reach_.low, copy_.data(), reach_.size);
}

}  // namespace wirepress
