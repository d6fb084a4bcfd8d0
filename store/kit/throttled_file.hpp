// SPDX-License-Identifier: Apache-2.0
// A file behind a token bucket: a slow disk for machines where none can be made (no root).
#pragma once

#include <mutex>

#include "store/file.hpp"

namespace wirepress::store::kit {

class ThrottledFile : public Calls {
 public:
  // Reads together, and writes together, go at most this fast, after a burst of 1/50 of a second.
  explicit ThrottledFile(double bytes_per_second) : rate_(bytes_per_second) {}

  ssize_t read(int descriptor, void* dst, size_t n, uint64_t offset) override;
  ssize_t write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) override;

 private:
  struct Bucket {
    std::mutex mutex;
    double free_at = 0;  // when what was taken so far is through
  };
  void pay(Bucket* bucket, size_t n);

  double rate_;
  Bucket reads_, writes_;
};

}  // namespace wirepress::store::kit
