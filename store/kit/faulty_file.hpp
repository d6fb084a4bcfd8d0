// SPDX-License-Identifier: Apache-2.0
// A file in memory whose calls fail when asked, and which knows what of it is on stable storage: it
// makes every content that a disk may have after a power cut.
#pragma once

#include <functional>
#include <mutex>
#include <random>
#include <vector>

#include "store/file.hpp"

namespace wirepress::store::kit {

using Content = std::vector<std::byte>;

// What happens to the n-th call of a kind, and to those after it.
struct Fault {
  enum class Call { kWrite, kRead, kTruncate, kSync, kSyncFolder, kOpen } call = Call::kWrite;
  uint64_t from = 0, n = 1;  // calls that it concerns
  int error = 0;             // errno; 0: a short call
  uint64_t taken = 0;        // bytes that a write or read takes; 0 with an error: none
};

// One thing that was done to the file.
struct Change {
  enum class Kind { kWrite, kTruncate, kSync, kFailedSync } kind;
  uint64_t offset;  // of a truncate the size
  Content bytes;
};

class FaultyFile : public Calls {
 public:
  FaultyFile();
  explicit FaultyFile(const Content& content);
  ~FaultyFile() override;

  int open(const char* path, int flags) override;
  ssize_t read(int descriptor, void* dst, size_t n, uint64_t offset) override;
  ssize_t write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) override;
  int truncate(int descriptor, uint64_t size) override;
  int allocate(int descriptor, uint64_t offset, uint64_t size) override;
  int sync(int descriptor) override;
  int sync_folder(const char* folder) override;

  void set(std::vector<Fault> faults);
  uint64_t calls(Fault::Call call) const;  // so far, of any descriptor
  Content content() const;
  std::vector<Change> changes() const;

 private:
  const Fault* fault(Fault::Call call);

  int memory_;
  mutable std::mutex mutex_;
  std::vector<Fault> faults_;
  std::vector<Change> changes_;
  uint64_t calls_[6] = {};
};

// Calls use(content) with what a disk may hold when power fails after the first n changes to a file
// that began with `before`. What was written before the last good sync is there. Of the rest every
// sector holds any version that it had since, and the file any of its sizes; beyond what reached
// the disk are zeros. All combinations where there are at most `most`, else all that differ from
// nothing, from everything and from each prefix in one sector, and random ones.
void power_cuts(const Content& before, const std::vector<Change>& changes, size_t n, size_t most,
                size_t sector, std::mt19937_64& random,
                const std::function<void(const Content&)>& use);

}  // namespace wirepress::store::kit
