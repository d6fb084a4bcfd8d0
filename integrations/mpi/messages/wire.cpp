// SPDX-License-Identifier: Apache-2.0
// One thread's codecs, frames with the job's cookie before them, and the buffer pool.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "job/interposer.hpp"

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
Pool& pool() {
  static auto* all = new Pool;
  return *all;
}

}  // namespace

bool prepare_spares() {
  const size_t size = Pool::class_size(Pool::class_of(job().chunk));
  std::lock_guard hold(pool().lock);
  // One thread is in one collective at a time; several are in one for each communicator at most.
  if (pool().n_spares > 0 && !job().multiple) return true;
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
  if (!job().multiple) return;
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

namespace {

wpr_ctx* make_context() {
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);  // its variables were checked when the job started
  if (!ctx) return nullptr;
  wpr_set(ctx, "threads", "1");
  wpr_set(ctx, "checksum", job().checksum ? "on" : "off");
  return ctx;
}

wpr_ctx* decoder(Thread& thread) {
  if (!thread.decoder) thread.decoder = make_context();
  return thread.decoder;
}

}  // namespace

wpr_ctx* context(Thread& thread, int candidate) {
  wpr_ctx*& ctx = thread.ctx[static_cast<size_t>(candidate)];
  if (ctx) return ctx;
  ctx = make_context();
  if (ctx && wpr_set(ctx, "recipe", candidate_recipe(static_cast<size_t>(candidate))) != WPR_OK) {
    wpr_free(ctx);
    ctx = nullptr;
  }
  return ctx;
}

size_t make_wire(Call call, int candidate, const Byte* src, size_t size, const Type& type,
                 Byte* dst, size_t capacity) {
  Thread& thread = self_thread();
  wpr_ctx* ctx = context(thread, candidate);
  // What saves less than a 32nd is not worth expanding.
  const size_t limit = std::min(capacity, size - size / 32 - 1);
  Type bytes;
  const Type& whole = size % type.element == 0 ? type : bytes;
  if (!ctx || limit < kMinWire || !suits(candidate, whole.dtype)) return 0;
  const Coded as = coded_as(candidate, whole, size);
  if (as.count == 0) return 0;
  size_t written;
  const double start = now();
  const wpr_status status = wpr_compress_array(ctx, src, as.dtype, WPR_NO_SHAPE, &as.count,
                                               dst + kCookieSize, limit - kCookieSize, &written);
  thread.codec_seconds = now() - start;
  thread.codec_size = std::max<size_t>(size, 1);
  thread.calls[call].compress_seconds += thread.codec_seconds;
  if (status != WPR_OK) return 0;
  std::memcpy(dst, job().cookie, kCookieSize);
  return written + kCookieSize;
}

bool is_foreign(const Byte* wire) {
  const Byte* frame = wire + kCookieSize;
  return !is_own(wire) && frame[0] == 'W' && frame[1] == 'P' &&
         (frame[2] == 'R' || frame[2] == 'P');
}

int framed_size(const Byte* wire, size_t size, uint64_t* raw_size) {
  if (!is_own(wire)) return MPI_ERR_OTHER;
  if (is_in_pieces(wire, size)) {
    Head head;
    if (!read_head(wire, size, &head)) return MPI_ERR_OTHER;
    *raw_size = head.raw_size;
    return MPI_SUCCESS;
  }
  return wpr_raw_size(wire + kCookieSize, size - kCookieSize, raw_size) == WPR_OK ? MPI_SUCCESS
                                                                                  : MPI_ERR_OTHER;
}

int expand(Call call, const Byte* wire, size_t size, Byte* dst, size_t capacity, size_t* written) {
  if (!is_own(wire)) {
    ++self_thread().events.corrupt;
    complain("a compressed message of another job came in");
    return MPI_ERR_OTHER;
  }
  if (is_in_pieces(wire, size)) return expand_pieces(call, wire, size, dst, capacity, written);
  return expand_frame(call, wire + kCookieSize, size - kCookieSize, dst, capacity, written);
}

int expand_frame(Call call, const Byte* frame, size_t size, Byte* dst, size_t capacity,
                 size_t* written) {
  Thread& thread = self_thread();
  uint64_t raw_size;
  if (wpr_raw_size(frame, size, &raw_size) == WPR_OK && raw_size > capacity) {
    ++thread.events.truncated;
    return MPI_ERR_TRUNCATE;
  }
  wpr_ctx* ctx = decoder(thread);
  if (!ctx) {
    ++thread.events.no_memory;
    return MPI_ERR_NO_MEM;
  }
  const double start = now();
  const wpr_status status = wpr_decompress(ctx, frame, size, dst, capacity, written);
  thread.calls[call].expand_seconds += now() - start;
  if (status == WPR_OK) return MPI_SUCCESS;
  ++(status == WPR_NO_MEMORY ? thread.events.no_memory : thread.events.corrupt);
  complain(wpr_error(ctx));
  return status == WPR_NO_MEMORY ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
}

}  // namespace wirepress
