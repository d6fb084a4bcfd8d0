// SPDX-License-Identifier: Apache-2.0
#include "store/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>

namespace wirepress::store {
namespace {

// strerror is not for threads.
std::string reason(int error) { return std::generic_category().message(error); }

// A write beyond the process's limit is to fail with EFBIG; its signal would end the process.
class NoSizeSignal {
 public:
  NoSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoSizeSignal() {
    const int error = errno;
    if (error == EFBIG && !sigismember(&before_, SIGXFSZ)) {
      const timespec now = {};
      sigtimedwait(&signal_, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace

// O_NONBLOCK: opening a pipe that nobody writes must not hang; it changes nothing for files.
int Calls::open(const char* path, int flags) {
  return ::open(path, flags | O_CLOEXEC | O_NONBLOCK, 0666);
}

ssize_t Calls::read(int descriptor, void* dst, size_t n, uint64_t offset) {
  return ::pread(descriptor, dst, n, static_cast<off_t>(offset));
}

ssize_t Calls::write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) {
  const NoSizeSignal blocked;
  return ::pwritev(descriptor, parts, n_parts, static_cast<off_t>(offset));
}

int Calls::truncate(int descriptor, uint64_t size) {
  return ::ftruncate(descriptor, static_cast<off_t>(size));
}

int Calls::allocate(int descriptor, uint64_t offset, uint64_t size) {
  const NoSizeSignal blocked;
  return ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                     static_cast<off_t>(size));
}

int Calls::sync(int descriptor) { return ::fdatasync(descriptor); }

int Calls::sync_folder(const char* folder) {
  const int descriptor = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  errno = error;
  return error && error != EINVAL ? -1 : 0;  // EINVAL: a file system that cannot
}

Calls& Calls::system() {
  static Calls calls;
  return calls;
}

Status File::open(const char* path, Access access) {
  path_ = path;
  constexpr int kFlags[] = {O_RDWR | O_CREAT | O_EXCL, O_RDWR, O_RDONLY};
  descriptor_ = calls_.open(path, kFlags[static_cast<int>(access)]);
  if (descriptor_ < 0) {
    struct stat there;
    if (access == Access::kCreate && errno == EEXIST) {
      if (::stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return fail(Code::kIo, "%s exists and is not a regular file", path);
      return fail(Code::kIo, "%s exists: open it to append, or remove it first", path);
    }
    return fail(Code::kIo, "%s: %s", path, reason(errno).c_str());
  }
  struct stat status;
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(Code::kIo, "%s is not a regular file", path);
  if (access == Access::kRead || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return {};
  const int error = errno;
  if (access == Access::kCreate) remove();
  if (error == EWOULDBLOCK) return fail(Code::kIo, "%s: another writer has it open", path);
  return fail(Code::kIo, "%s: its file system has no locks, which keep a second writer out (%s)",
              path, reason(error).c_str());
}

bool File::open_direct(const File& other, Way way) {
  const std::string same = "/proc/self/fd/" + std::to_string(other.descriptor_);
  path_ = other.path_;
  descriptor_ = calls_.open(same.c_str(), (way == Way::kWrite ? O_WRONLY : O_RDONLY) | O_DIRECT);
  return is_open();
}

bool File::allocate(uint64_t offset, uint64_t size) {
  return calls_.allocate(descriptor_, offset, size) == 0;
}

Status File::size(uint64_t* bytes) const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0)
    return fail(Code::kIo, "%s: %s", path(), reason(errno).c_str());
  *bytes = static_cast<uint64_t>(status.st_size);
  return {};
}

Status File::read(uint64_t offset, Bytes dst) const {
  while (!dst.empty()) {
    const ssize_t n = calls_.read(descriptor_, dst.data(), dst.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return fail(Code::kIo, "%s: reading %zu bytes at %" PRIu64 ": %s", path(), dst.size(), offset,
                  reason(errno).c_str());
    if (n == 0)
      return fail(Code::kTruncated, "%s: %zu bytes are missing at %" PRIu64, path(), dst.size(),
                  offset);
    dst = dst.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

bool File::read_blocks(uint64_t offset, Bytes dst, size_t least) const {
  const ssize_t n = calls_.read(descriptor_, dst.data(), dst.size(), offset);
  return n >= 0 && static_cast<size_t>(n) >= least;
}

Status File::write(uint64_t offset, ConstBytes first, ConstBytes second, size_t* taken) {
  const uint64_t begin = offset;
  refused_shape_ = false;
  while (!first.empty() || !second.empty()) {
    iovec parts[2] = {{const_cast<std::byte*>(first.data()), first.size()},
                      {const_cast<std::byte*>(second.data()), second.size()}};
    const ssize_t n = calls_.write(descriptor_, parts, 2, offset);
    if (n < 0 && errno == EINTR) continue;
    refused_shape_ = n < 0 && errno == EINVAL;
    if (taken) *taken = offset - begin;
    if (n <= 0)
      return fail(Code::kIo, "%s: writing %zu bytes at %" PRIu64 ": %s", path(),
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
  if (calls_.truncate(descriptor_, bytes) != 0)
    return fail(Code::kIo, "%s: cutting it at %" PRIu64 ": %s", path(), bytes,
                reason(errno).c_str());
  return {};
}

Status File::sync() {
  if (calls_.sync(descriptor_) != 0)
    return fail(Code::kIo, "%s: sync: %s", path(), reason(errno).c_str());
  return {};
}

Status File::sync_folder() const {
  const size_t slash = path_.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path_.substr(0, std::max<size_t>(slash, 1));
  if (calls_.sync_folder(folder.c_str()) != 0)
    return fail(Code::kIo, "%s: sync: %s", folder.c_str(), reason(errno).c_str());
  return {};
}

void File::remove() {
  if (is_open()) ::unlink(path());
  close();
}

void File::close() {
  // A child that was forked meanwhile has the descriptor, too, and would keep the lock.
  if (is_open()) (void)::flock(descriptor_, LOCK_UN);
  if (is_open()) ::close(descriptor_);
  descriptor_ = -1;
}

}  // namespace wirepress::store
