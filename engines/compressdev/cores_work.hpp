// SPDX-License-Identifier: Apache-2.0
// A device's job done by the cores' libraries, for devices that are not there: virtual ones and the
// test kit's.
#pragma once

#include <libdeflate.h>
#include <lz4.h>

#include <cstddef>
#include <memory>

#include "engines/compressdev/device_table.h"

namespace wirepress::compressdev {

struct CoresWork {
  int status = 1;  // 0: done; else the answer does not fit, or the code is damaged
  size_t consumed = 0, produced = 0;
};

// The coders are a thread's, and kept: they take longer to make than a small job.
inline libdeflate_compressor* compressor_of_thread() {
  thread_local const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)>
      own(libdeflate_alloc_compressor(1), libdeflate_free_compressor);
  return own.get();
}

inline libdeflate_decompressor* decompressor_of_thread() {
  thread_local const std::unique_ptr<libdeflate_decompressor,
                                     decltype(&libdeflate_free_decompressor)>
      own(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  return own.get();
}

// Writes at most job.room bytes, less than 2 GiB, to `answer`.
inline CoresWork work_on_cores(const wpr_device_job& job, std::byte* answer) {
  CoresWork work = {1, job.src_size, 0};
  if (job.algorithm == WPR_DEVICE_LZ4) {
    if (job.direction == WPR_DEVICE_COMPRESS) return work;
    const int n =
        LZ4_decompress_safe(static_cast<const char*>(job.src), reinterpret_cast<char*>(answer),
                            static_cast<int>(job.src_size), static_cast<int>(job.room));
    if (n >= 0) work = {0, job.src_size, static_cast<size_t>(n)};
  } else if (job.direction == WPR_DEVICE_COMPRESS) {
    libdeflate_compressor* coder = compressor_of_thread();
    if (coder == nullptr) return work;
    work.produced = libdeflate_deflate_compress(coder, job.src, job.src_size, answer, job.room);
    work.status = work.produced == 0;
  } else {
    libdeflate_decompressor* coder = decompressor_of_thread();
    if (coder == nullptr) return work;
    work.status = libdeflate_deflate_decompress_ex(coder, job.src, job.src_size, answer, job.room,
                                                   &work.consumed, &work.produced);
  }
  return work;
}

}  // namespace wirepress::compressdev
