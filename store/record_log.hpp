// SPDX-License-Identifier: Apache-2.0
// The file of a store: records are appended at its end, by one thread after the other, and read
// where they lie. What was appended stays readable after a failure.
#pragma once

#include <mutex>

#include "store/appender.hpp"
#include "store/scan.hpp"

namespace wirepress::store {

class RecordLog {
 public:
  explicit RecordLog(Calls& calls) : file_(calls), direct_reads_(calls) {}

  // A new file, with its head on stable storage; on failure there is none.
  Status create(const char* path, const Head& head);
  Status open(const char* path, bool append, Contents* contents);
  // Cuts a torn tail, and makes ready to append records; buffer_size is of direct writes, 0: none.
  Status start_appending(size_t buffer_size, uint64_t reserve);
  // Reads past the page cache from now on, where the file system can.
  void read_directly() { (void)direct_reads_.open_direct(file_, File::Way::kRead); }

  Status append(Kind kind, uint64_t step, ConstBytes payload, uint64_t* offset);
  Status sync() { return file_.sync(); }
  // Without an index the next open scans: it is no loss, but it is said.
  Status append_index(std::span<const IndexEntry> index);
  void close();

  Source source() const { return {file_, direct_reads_.is_open() ? &direct_reads_ : nullptr}; }
  bool writes_directly() const { return appender_.is_direct(); }
  bool reads_directly() const { return direct_reads_.is_open(); }

 private:
  Head head_;
  File file_;
  Appender appender_{file_};
  File direct_reads_;
  std::mutex mutex_;  // guards what follows, and appending
  uint64_t end_ = 0, next_sequence_ = 0;
  bool torn_ = false;
};

}  // namespace wirepress::store
