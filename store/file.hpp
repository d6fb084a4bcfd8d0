// SPDX-License-Identifier: Apache-2.0
// A file by position. Short and interrupted calls go on; what fails says where, and errno's text.
#pragma once

#include <string>

#include "store/format.hpp"

namespace wirepress::store {

enum class Access { kCreate, kAppend, kRead };

class File {
 public:
  File() = default;
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // To write is alone: a second writer of the file is refused, of this process or another.
  Status open(const char* path, Access access);
  Status size(uint64_t* bytes) const;
  Status read(uint64_t offset, Bytes dst) const;
  Status write(uint64_t offset, ConstBytes first, ConstBytes second = {});
  Status truncate(uint64_t bytes);
  Status sync();
  Status sync_folder() const;  // the name of a new file
  void remove();               // closes it too
  void close();
  bool is_open() const { return descriptor_ >= 0; }
  const char* path() const { return path_.c_str(); }

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace wirepress::store
