// SPDX-License-Identifier: Apache-2.0
#include "store/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <system_error>

namespace wirepress::store {
namespace {

// strerror is not for threads.
std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Status File::open(const char* path, Access access) {
  path_ = path;
  constexpr int kFlags[] = {O_RDWR | O_CREAT | O_EXCL, O_RDWR, O_RDONLY};
  // O_NONBLOCK: opening a pipe that nobody writes must not hang; it changes nothing for files.
  descriptor_ = ::open(path, kFlags[static_cast<int>(access)] | O_CLOEXEC | O_NONBLOCK, 0666);
  if (descriptor_ < 0) {
    if (access == Access::kCreate && errno == EEXIST)
      return fail(WPR_IO, "%s exists: open it to append, or remove it first", path);
    return fail(WPR_IO, "%s: %s", path, reason(errno).c_str());
  }
  struct stat status;
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(WPR_IO, "%s is not a regular file", path);
  if (access != Access::kRead && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
    return fail(WPR_IO, "%s: another writer has it open (%s)", path, reason(errno).c_str());
  return {};
}

Status File::size(uint64_t* bytes) const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0)
    return fail(WPR_IO, "%s: %s", path(), reason(errno).c_str());
  *bytes = static_cast<uint64_t>(status.st_size);
  return {};
}

Status File::read(uint64_t offset, Bytes dst) const {
  while (!dst.empty()) {
    const ssize_t n = ::pread(descriptor_, dst.data(), dst.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(WPR_IO, "%s: reading %zu bytes at %" PRIu64 ": %s", path(), dst.size(), offset,
                  reason(errno).c_str());
    if (n == 0)
      return fail(WPR_TRUNCATED, "%s: %zu bytes are missing at %" PRIu64, path(), dst.size(),
                  offset);
    dst = dst.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status File::write(uint64_t offset, ConstBytes first, ConstBytes second) {
  while (!first.empty() || !second.empty()) {
    iovec parts[2] = {{const_cast<std::byte*>(first.data()), first.size()},
                      {const_cast<std::byte*>(second.data()), second.size()}};
    const ssize_t n = ::pwritev(descriptor_, parts, 2, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(WPR_IO, "%s: writing %zu bytes at %" PRIu64 ": %s", path(),
                  first.size() + second.size(), offset,
                  n == 0 ? "none taken" : reason(errno).c_str());
    const size_t of_first = std::min(first.size(), static_cast<size_t>(n));
    first = first.subspan(of_first);
    second = second.subspan(static_cast<size_t>(n) - of_first);
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status File::truncate(uint64_t bytes) {
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
    return fail(WPR_IO, "%s: cutting it at %" PRIu64 ": %s", path(), bytes, reason(errno).c_str());
  return {};
}

Status File::sync() {
  if (::fdatasync(descriptor_) != 0)
    return fail(WPR_IO, "%s: sync: %s", path(), reason(errno).c_str());
  return {};
}

Status File::sync_folder() const {
  const size_t slash = path_.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path_.substr(0, std::max<size_t>(slash, 1));
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return fail(WPR_IO, "%s: %s", folder.c_str(), reason(errno).c_str());
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  if (error && error != EINVAL)  // a file system that cannot
    return fail(WPR_IO, "%s: sync: %s", folder.c_str(), reason(error).c_str());
  return {};
}

void File::remove() {
  if (is_open()) ::unlink(path());
  close();
}

void File::close() {
  if (is_open()) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace wirepress::store
