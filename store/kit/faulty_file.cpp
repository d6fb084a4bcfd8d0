// SPDX-License-Identifier: Apache-2.0
#include "store/kit/faulty_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace wirepress::store::kit {
namespace {

int refuse(int error) {
  errno = error;
  return -1;
}

void apply(const Change& change, Content* content) {
  if (change.kind == Change::Kind::kTruncate) content->resize(change.offset);
  if (change.kind != Change::Kind::kWrite) return;
  content->resize(std::max<size_t>(content->size(), change.offset + change.bytes.size()));
  std::copy(change.bytes.begin(), change.bytes.end(),
            content->begin() + static_cast<ptrdiff_t>(change.offset));
}

template <typename T>
void add_new(std::vector<T>* all, const T& one) {
  if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(one);
}

// What every sector, and the size, may be.
class Versions {
 public:
  Versions(const Content& durable, size_t sector) : sector_(sector) { see(durable); }

  void see(const Content& content) {
    const size_t n = (content.size() + sector_ - 1) / sector_;
    // A sector that is new was not there before: zeros.
    while (sectors_.size() < n) sectors_.push_back({Content(first_ ? 0 : sector_)});
    for (size_t i = 0; i < n; ++i) {
      const size_t begin = i * sector_, size = std::min(sector_, content.size() - begin);
      Content one(sector_);
      std::memcpy(one.data(), content.data() + begin, size);
      if (first_) {
        sectors_[i] = {one};
      } else {
        add_new(&sectors_[i], one);
      }
    }
    add_new(&sizes_, content.size());
    first_ = false;
  }

  std::vector<size_t> radices() const {
    std::vector<size_t> n = {sizes_.size()};
    for (const auto& versions : sectors_) n.push_back(versions.size());
    return n;
  }

  Content make(const std::vector<size_t>& choice) const {
    Content content(sectors_.size() * sector_);
    for (size_t i = 0; i < sectors_.size(); ++i)
      std::memcpy(content.data() + i * sector_, sectors_[i][choice[i + 1]].data(), sector_);
    content.resize(sizes_[choice[0]]);
    return content;
  }

 private:
  size_t sector_;
  bool first_ = true;
  std::vector<std::vector<Content>> sectors_;
  std::vector<size_t> sizes_;
};

// Counts up in the given radices; false at the end.
bool next(std::vector<size_t>* choice, const std::vector<size_t>& radices) {
  for (size_t i = 0; i < choice->size(); ++i) {
    if (++(*choice)[i] < radices[i]) return true;
    (*choice)[i] = 0;
  }
  return false;
}

void one_apart(const Versions& versions, std::vector<size_t> choice,
               const std::function<void(const Content&)>& use) {
  const std::vector<size_t> radices = versions.radices();
  use(versions.make(choice));
  for (size_t i = 0; i < choice.size(); ++i) {
    const size_t mine = choice[i];
    for (size_t other = 0; other < radices[i]; ++other) {
      if (other == mine) continue;
      choice[i] = other;
      use(versions.make(choice));
    }
    choice[i] = mine;
  }
}

}  // namespace

FaultyFile::FaultyFile() : memory_(::memfd_create("faulty", MFD_CLOEXEC)) {
  if (memory_ < 0) throw std::runtime_error("no memfd");
}

FaultyFile::FaultyFile(const Content& content) : FaultyFile() {
  if (::write(memory_, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    throw std::runtime_error("no memory");
}

FaultyFile::~FaultyFile() { ::close(memory_); }

void FaultyFile::set(std::vector<Fault> faults) {
  const std::lock_guard lock(mutex_);
  faults_ = std::move(faults);
}

uint64_t FaultyFile::calls(Fault::Call call) const {
  const std::lock_guard lock(mutex_);
  return calls_[static_cast<int>(call)];
}

std::vector<Change> FaultyFile::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

Content FaultyFile::content() const {
  const auto size = static_cast<size_t>(::lseek(memory_, 0, SEEK_END));
  Content content(size);
  if (::pread(memory_, content.data(), size, 0) != static_cast<ssize_t>(size))
    throw std::runtime_error("the memfd cannot be read");
  return content;
}

// Counts a call; what is to happen to it. The caller holds the mutex.
const Fault* FaultyFile::fault(Fault::Call call) {
  const uint64_t number = calls_[static_cast<int>(call)]++;
  for (const Fault& each : faults_) {
    if (each.call == call && number >= each.from && number - each.from < each.n) return &each;
  }
  return nullptr;
}

int FaultyFile::open(const char*, int flags) {
  const std::lock_guard lock(mutex_);
  if (const Fault* bad = fault(Fault::Call::kOpen)) return refuse(bad->error);
  const std::string path = "/proc/self/fd/" + std::to_string(memory_);
  return ::open(path.c_str(), (flags & O_ACCMODE) | O_CLOEXEC);
}

ssize_t FaultyFile::read(int descriptor, void* dst, size_t n, uint64_t offset) {
  {
    const std::lock_guard lock(mutex_);
    if (const Fault* bad = fault(Fault::Call::kRead)) {
      if (bad->error) return refuse(bad->error);
      n = std::min<size_t>(n, std::max<uint64_t>(bad->taken, 1));
    }
  }
  return ::pread(descriptor, dst, n, static_cast<off_t>(offset));
}

ssize_t FaultyFile::write(int descriptor, const iovec* parts, int n_parts, uint64_t offset) {
  Content bytes;
  for (int i = 0; i < n_parts; ++i) {
    const auto* data = static_cast<const std::byte*>(parts[i].iov_base);
    bytes.insert(bytes.end(), data, data + parts[i].iov_len);
  }
  const std::lock_guard lock(mutex_);
  const Fault* bad = fault(Fault::Call::kWrite);
  if (bad && bad->error && bad->taken == 0) return refuse(bad->error);
  if (bad) bytes.resize(std::min<size_t>(bytes.size(), std::max<uint64_t>(bad->taken, 1)));
  changes_.push_back({Change::Kind::kWrite, offset, bytes});
  const ssize_t n = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (n != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("the memfd takes no more");
  // With an error what it took is there, but nobody is told.
  return bad && bad->error ? refuse(bad->error) : n;
}

int FaultyFile::truncate(int descriptor, uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (const Fault* bad = fault(Fault::Call::kTruncate)) return refuse(bad->error);
  changes_.push_back({Change::Kind::kTruncate, size, {}});
  return ::ftruncate(descriptor, static_cast<off_t>(size));
}

int FaultyFile::allocate(int, uint64_t, uint64_t) { return 0; }  // nobody can read of it

int FaultyFile::sync(int) {
  const std::lock_guard lock(mutex_);
  const Fault* bad = fault(Fault::Call::kSync);
  changes_.push_back({bad ? Change::Kind::kFailedSync : Change::Kind::kSync, 0, {}});
  return bad ? refuse(bad->error) : 0;
}

int FaultyFile::sync_folder(const char*) {
  const std::lock_guard lock(mutex_);
  const Fault* bad = fault(Fault::Call::kSyncFolder);
  return bad ? refuse(bad->error) : 0;
}

void power_cuts(const Content& before, const std::vector<Change>& changes, size_t n, size_t most,
                size_t sector, std::mt19937_64& random,
                const std::function<void(const Content&)>& use) {
  n = std::min(n, changes.size());
  // What a failed sync left is never written: the kernel believes that it was.
  size_t synced = 0;
  for (size_t i = 0; i < n && changes[i].kind != Change::Kind::kFailedSync; ++i) {
    if (changes[i].kind == Change::Kind::kSync) synced = i;
  }
  Content content = before;
  for (size_t i = 0; i < synced; ++i) apply(changes[i], &content);
  Versions versions(content, sector);
  std::vector<std::vector<size_t>> latest;  // the choices that are a prefix
  for (size_t i = synced; i < n; ++i) {
    apply(changes[i], &content);
    versions.see(content);
  }
  const std::vector<size_t> radices = versions.radices();
  size_t n_all = 1;
  for (const size_t radix : radices) n_all = std::min(n_all * radix, most + 1);
  std::vector<size_t> choice(radices.size());
  if (n_all <= most) {
    do use(versions.make(choice));
    while (next(&choice, radices));
    return;
  }
  one_apart(versions, choice, use);
  for (size_t i = 0; i < radices.size(); ++i) choice[i] = radices[i] - 1;
  one_apart(versions, choice, use);
  content = before;
  for (size_t i = 0; i < n; ++i) {
    apply(changes[i], &content);
    if (i >= synced) use(content);
  }
  for (size_t i = 0; i < most; ++i) {
    for (size_t k = 0; k < radices.size(); ++k) choice[k] = random() % radices[k];
    use(versions.make(choice));
  }
}

}  // namespace wirepress::store::kit
