// SPDX-License-Identifier: Apache-2.0
#include "messages/buffer.hpp"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace wirepress {

namespace {

// Free buffers by size class, smallest 4 KiB, doubling. A process keeps at most 256 MiB of them.
struct Pool {
  static constexpr int kClasses = 24;
  // A broadcast without memory for its message holds 2 windows of chunks, and frames for another
  // and one more, its thread one.
  static constexpr size_t kSpares = 3 * kInFlight + 2;
  static constexpr size_t kKeep = size_t{256} << 20;
  std::mutex lock;
  std::vector<Byte*> free[kClasses];
  size_t kept = 0;
  std::vector<Byte*> spares;
  size_t n_spares = 0;    // wanted
  size_t spare_size = 0;  // a class_size

  static size_t class_size(int i) { return size_t{4096} << i; }
  static int class_of(size_t size) {
    int i = 0;
    while (i < kClasses && class_size(i) < size) ++i;
    return i;
  }
};
Pool& pool() { return the<Pool>(); }

}  // namespace

bool prepare_spares() {
  const size_t size = Pool::class_size(Pool::class_of(job().chunk));
  std::lock_guard hold(pool().lock);
  // One thread is in one collective at a time; several are in one for each communicator at most.
  if (pool().n_spares > 0 && !job().world_multiple) return true;
  pool().spare_size = size;
  pool().spares.reserve(pool().n_spares + Pool::kSpares);
  for (size_t i = 0; i < Pool::kSpares; ++i) {
    auto* spare = static_cast<Byte*>(std::aligned_alloc(64, size));
    if (!spare) return false;
    pool().spares.push_back(spare);
    ++pool().n_spares;
  }
  return true;
}

void drop_spares() {
  std::lock_guard hold(pool().lock);
  if (!job().world_multiple) return;
  pool().n_spares -= std::min(pool().n_spares, Pool::kSpares);
  while (pool().spares.size() > pool().n_spares) {
    std::free(pool().spares.back());
    pool().spares.pop_back();
  }
}

bool Buffer::reserve(size_t size, bool needed) {
  if (size <= capacity_ && data_) return true;
  release();
  const int i = Pool::class_of(size);
  if (i < Pool::kClasses) {
    size = Pool::class_size(i);
    std::lock_guard hold(pool().lock);
    if (!pool().free[i].empty()) {
      data_ = pool().free[i].back();
      pool().free[i].pop_back();
      pool().kept -= size;
      capacity_ = size;
      return true;
    }
  } else {
    size = (size + 4095) & ~size_t{4095};
  }
  data_ = static_cast<Byte*>(std::aligned_alloc(64, size));
  if (!data_ && needed && size <= pool().spare_size) {
    std::lock_guard hold(pool().lock);
    if (!pool().spares.empty()) {
      size = pool().spare_size;
      data_ = pool().spares.back();
      pool().spares.pop_back();
    }
  }
  capacity_ = data_ ? size : 0;
  return data_ != nullptr;
}

void Buffer::release() {
  if (!data_) return;
  const int i = Pool::class_of(capacity_);
  Byte* data = data_;
  data_ = nullptr;
  if (i < Pool::kClasses) {
    std::lock_guard hold(pool().lock);
    if (capacity_ == pool().spare_size && pool().spares.size() < pool().n_spares) {
      pool().spares.push_back(data);
      return;
    }
    if (pool().kept + capacity_ <= Pool::kKeep) {
      pool().free[i].push_back(data);
      pool().kept += capacity_;
      return;
    }
  }
  std::free(data);
}

}  // namespace wirepress
