// SPDX-License-Identifier: Apache-2.0
// Power cuts and failing calls, all of them, on a file in memory (kit/faulty_file.hpp): no frame
// that a sync acknowledged is lost, none is wrong, and the store goes on as its policy says.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "store/frame_store.hpp"
#include "store/kit/faulty_file.hpp"

namespace wirepress::store {
namespace {

using kit::Change;
using kit::Content;
using kit::Fault;
using kit::FaultyFile;
using Call = Fault::Call;
using Frame = std::vector<uint32_t>;

constexpr size_t kValues = 24;  // records of some sectors
constexpr size_t kSector = 64;  // smaller than any disk's: more places to tear
constexpr int kPatience = 120;  // seconds for a test; then it hangs

Frame frame_of(uint64_t step) {
  Frame frame(kValues);
  // The first half is noise, so that policy compressed has something to write.
  for (size_t i = 0; i < kValues; ++i)
    frame[i] = static_cast<uint32_t>(i < kValues / 2 ? (step + 1) * 2654435761u * (i + 1) : step);
  return frame;
}

wpr_store_config config_of(wpr_store_policy policy, wpr_store_on_error on_error) {
  wpr_store_config config = {};
  config.dtype = WPR_UINT32;
  config.n_dims = 1;
  config.shape[0] = kValues;
  config.policy = policy;
  config.on_error = on_error;
  config.recipe = "lz4";
  return config;
}

// Under the address sanitizer threads take ten times as long to begin: one fault in seven does.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WPR_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WPR_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// How many pictures of a disk are tried at each point; the long run sets more.
size_t most_images() {
  const char* text = std::getenv("STORE_IMAGES");
  return text ? static_cast<size_t>(std::strtoul(text, nullptr, 10)) : 200;
}

Status put(FrameStore& store, uint64_t step) {
  const Frame frame = frame_of(step);
  return store.put(step, frame.data(), 4 * frame.size());
}

std::set<uint64_t> steps_of(FrameStore& store) {
  std::set<uint64_t> steps;
  wpr_store_frame frame;
  for (uint64_t step = 0; store.frame_from(step, &frame); step = frame.step + 1)
    steps.insert(frame.step);
  return steps;
}

// Every frame that the store says it has can be had, and is right.
void expect_right(FrameStore& store) {
  for (const uint64_t step : steps_of(store)) {
    Frame frame(kValues);
    const Status status = store.get(step, frame.data(), 4 * kValues);
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(frame, frame_of(step)) << "step " << step;
  }
}

void expect_has(FrameStore& store, const std::set<uint64_t>& wanted) {
  const std::set<uint64_t> steps = steps_of(store);
  for (const uint64_t step : wanted) ASSERT_TRUE(steps.contains(step)) << "lost step " << step;
}

// What a disk may hold is opened, read, repaired by an append, and goes on.
void expect_recovers(const Content& image, const std::set<uint64_t>& synced, bool append) {
  FaultyFile disk(image);
  {
    FrameStore store(disk);
    const Status opened = store.open("image", false, {});
    ASSERT_TRUE(opened.ok() || synced.empty()) << opened.text();
    if (!opened.ok()) return;  // the power went before create returned
    expect_right(store);
    expect_has(store, synced);
  }
  ASSERT_TRUE(disk.changes().empty()) << "reading changed it";
  if (!append) return;
  std::set<uint64_t> all;
  {
    FrameStore store(disk);
    const auto config = config_of(WPR_STORE_DISK, WPR_STORE_STOP);
    ASSERT_TRUE(store.open("image", true, config).ok());
    all = steps_of(store);
    for (const uint64_t step : {100, 101}) {
      ASSERT_TRUE(put(store, step).ok());
      all.insert(step);
    }
    ASSERT_TRUE(store.close().ok());
  }
  FrameStore store(disk);
  ASSERT_TRUE(store.open("image", false, {}).ok());
  wpr_store_info info;
  store.info(&info);
  ASSERT_TRUE(info.from_index);
  ASSERT_EQ(steps_of(store), all);
  expect_right(store);
}

// Which steps were acknowledged when how much had been done.
using Acknowledged = std::map<size_t, std::set<uint64_t>>;

class Writer {
 public:
  Writer(FaultyFile* disk, std::set<uint64_t> synced) : disk_(*disk), put_(synced) {
    acknowledged_[0] = std::move(synced);
  }

  // One call at a time reaches the file: puts wait for the servant, so that a number of a call
  // names the same one in each run.
  void put_steps(FrameStore& store, uint64_t from, uint64_t to) {
    for (uint64_t step = from; step < to; ++step) {
      if (put(store, step).ok()) put_.insert(step);
      Frame frame(kValues);
      (void)store.get(step, frame.data(), 4 * kValues);  // waits until it is written
    }
  }
  bool sync(FrameStore& store) {
    const bool good = store.sync().ok();
    if (good) acknowledge(store);
    return good;
  }
  bool close(FrameStore& store) {
    const std::set<uint64_t> steps = steps_of(store);
    const bool good = store.close().ok();
    if (good) acknowledge(store);
    return good;
  }
  const Acknowledged& acknowledged() const { return acknowledged_; }
  const std::set<uint64_t>& put_ones() const { return put_; }

 private:
  void acknowledge(FrameStore& store) { acknowledged_[disk_.changes().size()] = steps_of(store); }

  FaultyFile& disk_;
  std::set<uint64_t> put_;
  Acknowledged acknowledged_;
};

void first_life(FrameStore& store, Writer& writer, const wpr_store_config& config) {
  if (!store.create("image", config).ok()) return;
  writer.put_steps(store, 0, 2);
  writer.sync(store);
  writer.put_steps(store, 2, 4);
  writer.sync(store);
  writer.put_steps(store, 4, 6);
  writer.close(store);
}

void second_life(FrameStore& store, Writer& writer, const wpr_store_config& config) {
  if (!store.open("image", true, config).ok()) return;
  writer.put_steps(store, 6, 8);
  writer.sync(store);
  writer.put_steps(store, 8, 10);
  writer.close(store);
}

// The steps acknowledged when n changes had been made.
const std::set<uint64_t>& acknowledged_at(const Acknowledged& all, size_t n) {
  return std::prev(all.upper_bound(n))->second;
}

// At every point of a life the power is cut. Returns how many pictures were tried.
size_t cut_everywhere(const Content& before, const FaultyFile& disk, const Writer& writer) {
  std::mt19937_64 random(1);
  size_t n_images = 0;
  const std::vector<Change> changes = disk.changes();
  for (size_t n = 0; n <= changes.size(); ++n) {
    const auto& synced = acknowledged_at(writer.acknowledged(), n);
    kit::power_cuts(before, changes, n, most_images(), kSector, random, [&](const Content& image) {
      if (testing::Test::HasFatalFailure()) return;
      const bool append = ++n_images % 7 == 0;
      expect_recovers(image, synced, append);
    });
  }
  return n_images;
}

struct Way {
  wpr_store_policy policy;
  bool direct;
};

wpr_store_config config_of(const Way& way, wpr_store_on_error on_error) {
  wpr_store_config config = config_of(way.policy, on_error);
  config.direct = way.direct;
  config.reserve = way.direct ? 1000 : 0;
  return config;
}

class StoreFault : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override { ::alarm(kPatience * (most_images() > 300 ? 20 : 1)); }
  void TearDown() override { ::alarm(0); }
};

TEST_P(StoreFault, PowerIsCutAtEveryPoint) {
  const auto config = config_of(GetParam(), WPR_STORE_STOP);
  FaultyFile disk;
  Writer writer(&disk, {});
  {
    FrameStore store(disk);
    first_life(store, writer, config);
  }
  ASSERT_EQ(writer.acknowledged().size(), 4u);
  size_t n = cut_everywhere({}, disk, writer);
  ASSERT_FALSE(HasFatalFailure());

  // A closed store goes on; then one whose tail is torn, and whose garbage is written over.
  const Content closed = disk.content();
  for (const size_t cut : {0, 30, 300}) {
    const Content before(closed.begin(), closed.end() - static_cast<ptrdiff_t>(cut));
    FaultyFile again(before);
    FrameStore store(again);
    std::set<uint64_t> there = {0, 1, 2, 3, 4};  // a cut of 300 bytes tears the last one
    if (cut < 300) there.insert(5);
    Writer second(&again, there);
    second_life(store, second, config);
    ASSERT_EQ(second.acknowledged().size(), 3u);
    n += cut_everywhere(before, again, second);
    ASSERT_FALSE(HasFatalFailure());
  }
  RecordProperty("images", static_cast<int>(n));
  std::printf("%zu contents of a disk\n", n);
}

// One call, or every call from it on, fails in every way, at every place; then power is cut.
struct Counter {
  size_t runs = 0, images = 0;
};

void fail_once(const Fault& fault, const Way& way, wpr_store_on_error on_error, Counter* count) {
  SCOPED_TRACE(testing::Message() << "call " << static_cast<int>(fault.call) << " from "
                                  << fault.from << " n " << fault.n << " errno " << fault.error
                                  << " taken " << fault.taken << " on_error " << on_error);
  FaultyFile disk;
  disk.set({fault});
  Writer writer(&disk, {});
  FrameStore store(disk);
  const auto config = config_of(way, on_error);
  wpr_store_stats stats;
  if (store.create("image", config).ok()) {
    writer.put_steps(store, 0, 3);
    writer.sync(store);
    writer.put_steps(store, 3, 6);
    store.stats(&stats);
    ASSERT_EQ(steps_of(store).size() + stats.dropped, writer.put_ones().size());
    ASSERT_TRUE(on_error != WPR_STORE_SPILL || stats.dropped == 0);
    if (fault.call != Call::kRead) expect_right(store);
    disk.set({});  // the disk has room again
    const bool synced = writer.sync(store);
    // Only stop, and a sync that failed, end the store.
    if (on_error != WPR_STORE_STOP && fault.call != Call::kSync) {
      ASSERT_TRUE(synced);
      ASSERT_TRUE(put(store, 6).ok());
    }
    ASSERT_FALSE(on_error == WPR_STORE_STOP && stats.dropped && put(store, 7).ok());
    expect_right(store);
    writer.close(store);
  }
  ++count->runs;
  std::mt19937_64 random(2);
  const size_t end = disk.changes().size();
  for (const size_t n : {end, end - std::min<size_t>(end, 1 + count->runs % 5)}) {
    const auto& synced = acknowledged_at(writer.acknowledged(), n);
    const size_t most = std::max<size_t>(most_images() / 25, 1);
    kit::power_cuts({}, disk.changes(), n, most, kSector, random, [&](const Content& image) {
      if (testing::Test::HasFatalFailure() || (++count->images % 4 && most < 10)) return;
      expect_recovers(image, synced, count->images % 32 == 0);
    });
  }
}

TEST_P(StoreFault, EveryCallFails) {
  uint64_t n_calls[6];
  {
    FaultyFile disk;
    Writer writer(&disk, {});
    FrameStore store(disk);
    first_life(store, writer, config_of(GetParam(), WPR_STORE_STOP));
    for (int call = 0; call < 6; ++call) n_calls[call] = disk.calls(static_cast<Call>(call));
  }
  ASSERT_GE(n_calls[0], 8u);
  Counter count;
  // Other ones for each policy.
  size_t tried = static_cast<size_t>(GetParam().policy) + 3 * GetParam().direct;
  for (int call = 0; call < 6; ++call) {
    for (uint64_t from = 0; from < n_calls[call]; ++from) {
      for (const uint64_t n : {uint64_t{1}, uint64_t{3}, ~uint64_t{0}}) {
        for (const int error : {EIO, ENOSPC, EINTR, EINVAL, 0}) {
          if (error == EINTR && n > 3) continue;  // which no disk does
          if (error == EINVAL && (call > 0 || !GetParam().direct)) continue;
          if (error == EINTR && call > 1) continue;
          if (error == 0 && call > 1) continue;  // only reads and writes can be short
          for (const uint64_t taken : {0, 70}) {
            if (taken && call > 0) continue;
            if (taken && (error == EINTR || error == EINVAL)) continue;
            for (const auto on_error : {WPR_STORE_STOP, WPR_STORE_DROP, WPR_STORE_SPILL}) {
              if (kSanitized && ++tried % 7 != 0) continue;
              fail_once({static_cast<Call>(call), from, n, error, taken}, GetParam(), on_error,
                        &count);
              ASSERT_FALSE(HasFatalFailure());
            }
          }
        }
      }
    }
  }
  std::printf("%zu runs with failing calls, %zu contents of a disk\n", count.runs, count.images);
}

// Where neither the write nor the cut that is to clean up after it works.
TEST_P(StoreFault, WritesAndTruncatesFailTogether) {
  Counter count;
  for (uint64_t from = 1; from < 7; ++from) {
    FaultyFile disk;
    disk.set({{Call::kWrite, from, 1, EIO, 100}, {Call::kTruncate, 0, 9, EIO, 0}});
    Writer writer(&disk, {});
    FrameStore store(disk);
    first_life(store, writer, config_of(GetParam(), WPR_STORE_DROP));
    ASSERT_GE(writer.acknowledged().size(), 3u);
    count.images += cut_everywhere({}, disk, writer);
    ASSERT_FALSE(HasFatalFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, StoreFault,
                         testing::Values(Way{WPR_STORE_DISK, false},
                                         Way{WPR_STORE_COMPRESSED, false},
                                         Way{WPR_STORE_IN_WORKER, false}, Way{WPR_STORE_DISK, true},
                                         Way{WPR_STORE_COMPRESSED, true}));

// Spilled frames lie in the budget: when they fill it, put says so and takes no frame; nothing that
// was taken is lost, and when the file has room again everything goes on.
TEST(StoreSpill, StaysInTheBudget) {
  for (const auto policy : {WPR_STORE_DISK, WPR_STORE_COMPRESSED}) {
    FaultyFile disk;
    auto config = config_of(policy, WPR_STORE_SPILL);
    config.memory = 3000;
    config.servants = 2;
    FrameStore store(disk);
    ASSERT_TRUE(store.create("image", config).ok());
    disk.set({{Call::kWrite, 1, ~uint64_t{0}, ENOSPC, 0}});
    uint64_t n = 0;
    Status status;
    while (n < 1000 && (status = put(store, n)).ok()) ++n;
    ASSERT_GE(n, 5u);
    ASSERT_LT(n, 40u);
    ASSERT_EQ(status.code(), Code::kIo);
    EXPECT_NE(std::string(status.text()).find("3000 bytes"), std::string::npos) << status.text();
    EXPECT_NE(std::string(status.text()).find("No space left"), std::string::npos) << status.text();
    wpr_store_stats stats;
    store.stats(&stats);
    EXPECT_LE(stats.buffer_bytes, 3000u);
    EXPECT_EQ(stats.spilled, n);
    EXPECT_EQ(steps_of(store).size(), n);
    expect_right(store);
    EXPECT_FALSE(store.sync().ok());
    disk.set({});
    for (const uint64_t end = n + 50; n < end; ++n) ASSERT_TRUE(put(store, n).ok());
    store.stats(&stats);
    EXPECT_LE(stats.buffer_bytes, 3000u);
    EXPECT_EQ(stats.dropped, 0u);
    ASSERT_TRUE(store.close().ok());
    FrameStore again(disk);
    ASSERT_TRUE(again.open("image", false, {}).ok());
    EXPECT_EQ(steps_of(again).size(), n);
    expect_right(again);
  }
}

TEST(StoreHead, UnknownTypesAreRefused) {
  Head head;
  head.dtype = WPR_FLOAT32;
  std::byte bytes[kHeadSize];
  write_head(head, bytes);
  ASSERT_TRUE(read_head(bytes, &head).ok());
  bytes[24] = std::byte{246};
  const uint64_t sum = checksum({bytes, kHeadSize - 8}, 0);
  std::memcpy(bytes + kHeadSize - 8, &sum, sizeof sum);
  EXPECT_EQ(read_head(bytes, &head).code(), Code::kUnsupported);
}

// A sync waits for what was put before it, not for what others put meanwhile.
TEST(StoreSync, EndsWhileOthersPut) {
  FaultyFile disk;
  FrameStore store(disk);
  auto config = config_of(WPR_STORE_DISK, WPR_STORE_STOP);
  ASSERT_TRUE(store.create("image", config).ok());
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (uint64_t other = 1; other < 4; ++other) {
    others.emplace_back([&, other] {
      for (uint64_t step = other << 32; !stop && put(store, step).ok(); ++step) {
      }
    });
  }
  ::alarm(kPatience);
  for (uint64_t step = 0; step < 20; ++step) {
    ASSERT_TRUE(put(store, step).ok());
    ASSERT_TRUE(store.sync().ok());
  }
  ::alarm(0);
  stop = true;
  for (std::thread& other : others) other.join();
  ASSERT_TRUE(store.close().ok());
}

// The signal of a file that grows beyond RLIMIT_FSIZE ends a process; a store's writes give EFBIG.
TEST(StoreLimit, OfFileSizesIsAnError) {
  const std::string path = testing::TempDir() + "wirepress-limit" + std::to_string(::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit = {2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_DFL);
    FrameStore store;
    bool good = store.create(path.c_str(), config_of(WPR_STORE_DISK, WPR_STORE_SPILL)).ok();
    uint64_t n = 0;
    while (good && n < 50 && put(store, n).ok()) ++n;
    const Status status = store.close();
    good = good && n > 10 && n < 50 && status.code() == Code::kIo;
    ::_exit(good && std::string(status.text()).find("File too large") != std::string::npos ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how)) << "signal " << WTERMSIG(how);
  EXPECT_EQ(WEXITSTATUS(how), 0);
  FrameStore store;
  EXPECT_TRUE(store.open(path.c_str(), false, {}).ok());
  EXPECT_GE(steps_of(store).size(), 10u);
  expect_right(store);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace wirepress::store
