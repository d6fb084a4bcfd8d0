// SPDX-License-Identifier: Apache-2.0
// A file by position. Short and interrupted calls go on; what fails says where, and errno's text.
#pragma once

#include <sys/uio.h>

#include <string>

#include "store/format.hpp"

namespace wirepress::store {

constexpr size_t kBlock = 4096;  // what any device and file system takes past the page cache

enum class Access { kCreate, kAppend, kRead };

// The system calls of a file; the test kit (kit/) tears, refuses, slows and records them.
class Calls {
 public:
  virtual ~Calls() = default;
  virtual int open(const char* path, int flags);
  virtual ssize_t read(int descriptor, void* dst, size_t n, uint64_t offset);
  virtual ssize_t write(int descriptor, const iovec* parts, int n_parts, uint64_t offset);
  virtual int truncate(int descriptor, uint64_t size);
  virtual int allocate(int descriptor, uint64_t offset, uint64_t size);  // its size stays
  virtual int sync(int descriptor);
  virtual int sync_folder(const char* folder);

  static Calls& system();
};

class File {
 public:
  explicit File(Calls& calls = Calls::system()) : calls_(calls) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // To write is alone: a second writer of the file is refused, of this process or another.
  Status open(const char* path, Access access);
  // The file of another one, past the page cache, to write or to read; false: this file system
  // cannot.
  enum class Way { kWrite, kRead };
  bool open_direct(const File& other, Way way);
  Status size(uint64_t* bytes) const;
  Status read(uint64_t offset, Bytes dst) const;
  // One call, as direct reading has it: offset, dst and its size are whole blocks. False: there
  // were less than `least` bytes, or none, for whatever reason.
  bool read_blocks(uint64_t offset, Bytes dst, size_t least) const;
  Status write(uint64_t offset, ConstBytes first, ConstBytes second = {}, size_t* taken = nullptr);
  // The last write failed for where or how long it was, not for its bytes.
  bool refused_shape() const { return refused_shape_; }
  bool allocate(uint64_t offset, uint64_t size);
  Status truncate(uint64_t bytes);
  Status sync();
  Status sync_folder() const;  // the name of a new file
  void remove();               // closes it too
  void close();
  bool is_open() const { return descriptor_ >= 0; }
  const char* path() const { return path_.c_str(); }
  Calls& calls() const { return calls_; }

 private:
  Calls& calls_;
  int descriptor_ = -1;
  bool refused_shape_ = false;
  std::string path_;
};

}  // namespace wirepress::store
