// SPDX-License-Identifier: Apache-2.0
// Tests of the frame store through its C door.
#include "wirepress/store.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Frame = std::vector<float>;
using File = std::vector<char>;

constexpr size_t kSide = 40;
constexpr size_t kValues = kSide * kSide;

Frame frame_of(uint64_t step, size_t n = kValues) {
  Frame frame(n);
  for (size_t i = 0; i < n; ++i)
    frame[i] = std::sin(static_cast<float>(i * (step + 1)) / 100) * static_cast<float>(step + 1);
  return frame;
}

wpr_store_config config_of(wpr_store_policy policy, size_t n = kValues) {
  wpr_store_config config = {};
  config.dtype = WPR_FLOAT32;
  config.n_dims = 1;
  config.shape[0] = n;
  config.policy = policy;
  config.recipe = "shuffle:4+lz4:1";
  return config;
}

// A folder of its own for each test.
class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("wirepress-" + std::string(info->name()) + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "store";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  File bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return File(std::istreambuf_iterator<char>(in), {});
  }
  void write(const char* data, size_t size) const {
    std::ofstream out(path_, std::ios::binary);
    out.write(data, static_cast<std::streamsize>(size));
  }

  std::filesystem::path folder_;
  std::string path_;
};

class Store {
 public:
  ~Store() { wpr_store_free(store_); }
  wpr_status create(const std::string& path, const wpr_store_config& config) {
    return wpr_store_create(path.c_str(), &config, &store_);
  }
  wpr_status open(const std::string& path, bool append = false,
                  const wpr_store_config* config = nullptr) {
    return wpr_store_open(path.c_str(), append, config, &store_);
  }
  wpr_status put(uint64_t step, const Frame& frame) {
    return wpr_store_put(store_, step, frame.data(), 4 * frame.size());
  }
  wpr_status get(uint64_t step, Frame* frame) {
    return wpr_store_get(store_, step, frame->data(), 4 * frame->size());
  }
  wpr_store_info info() {
    wpr_store_info info;
    wpr_store_get_info(store_, &info);
    return info;
  }
  wpr_store_stats stats() {
    wpr_store_stats stats;
    wpr_store_get_stats(store_, &stats);
    return stats;
  }
  wpr_status sync() { return wpr_store_sync(store_); }
  wpr_status close() { return wpr_store_close(store_); }
  std::string error() { return wpr_store_error(store_); }
  wpr_store* get() { return store_; }

 private:
  wpr_store* store_ = nullptr;
};

void put_steps(Store& store, uint64_t from, uint64_t to, size_t n = kValues) {
  for (uint64_t step = from; step < to; ++step)
    ASSERT_EQ(store.put(step, frame_of(step, n)), WPR_OK) << store.error();
}

void expect_steps_back(Store& store, uint64_t n_steps, size_t n = kValues) {
  Frame frame(n);
  for (uint64_t step = n_steps; step-- > 0;) {
    ASSERT_EQ(store.get(step, &frame), WPR_OK) << store.error();
    ASSERT_EQ(frame, frame_of(step, n)) << step;
  }
}

class StorePolicy : public StoreTest, public testing::WithParamInterface<wpr_store_policy> {};

TEST_P(StorePolicy, ReverseInTheSameStore) {
  auto config = config_of(GetParam());
  config.servants = 2;
  Store store;
  ASSERT_EQ(store.create(path_, config), WPR_OK) << store.error();
  put_steps(store, 0, 50);
  expect_steps_back(store, 50);
  EXPECT_EQ(store.stats().puts, 50u);
  EXPECT_GE(store.stats().read_ahead, GetParam() == WPR_STORE_MEMORY ? 0u : 30u);
  EXPECT_EQ(store.close(), WPR_OK);
  EXPECT_EQ(store.close(), WPR_OK);
  EXPECT_EQ(store.put(99, frame_of(9)), WPR_PARAMETER);
}

INSTANTIATE_TEST_SUITE_P(All, StorePolicy,
                         testing::Values(WPR_STORE_MEMORY, WPR_STORE_DISK, WPR_STORE_COMPRESSED));

TEST_F(StoreTest, ReopensAppendsAndReads) {
  for (const uint64_t from : {0, 10, 20}) {
    Store store;
    const auto config = config_of(from == 10 ? WPR_STORE_DISK : WPR_STORE_COMPRESSED);
    ASSERT_EQ(from ? store.open(path_, true, &config) : store.create(path_, config), WPR_OK)
        << store.error();
    EXPECT_EQ(store.info().n_frames, from);
    put_steps(store, from, from + 10);
    ASSERT_EQ(store.close(), WPR_OK) << store.error();
  }
  Store store;
  ASSERT_EQ(store.open(path_), WPR_OK) << store.error();
  EXPECT_TRUE(store.info().from_index);
  EXPECT_EQ(store.put(30, frame_of(30)), WPR_PARAMETER);
  expect_steps_back(store, 30);
}

TEST_F(StoreTest, BudgetIsKeptAndTooSmallIsRefused) {
  auto config = config_of(WPR_STORE_COMPRESSED);
  config.memory = 20000;
  Store small;
  EXPECT_EQ(small.create(path_, config), WPR_PARAMETER);
  EXPECT_NE(small.error().find("20000"), std::string::npos) << small.error();
  EXPECT_FALSE(std::filesystem::exists(path_));
  config.memory = 50000;
  Store store;
  ASSERT_EQ(store.create(path_, config), WPR_OK) << store.error();
  EXPECT_LE(store.stats().buffer_bytes, config.memory);
  put_steps(store, 0, 40);
  expect_steps_back(store, 40);
}

TEST_F(StoreTest, RefusesWhatIsWrong) {
  Store store;
  ASSERT_EQ(store.create(path_, config_of(WPR_STORE_DISK)), WPR_OK);
  put_steps(store, 0, 2);
  EXPECT_EQ(store.put(1, frame_of(1)), WPR_PARAMETER);  // again
  EXPECT_EQ(store.put(5, Frame(3)), WPR_PARAMETER);     // another size
  Frame frame(kValues), small(3);
  EXPECT_EQ(store.get(7, &frame), WPR_PARAMETER);
  EXPECT_EQ(store.get(1, &small), WPR_DST_TOO_SMALL);
  Store second, same;
  EXPECT_EQ(second.open(path_, true), WPR_IO);
  EXPECT_NE(second.error().find("another writer"), std::string::npos) << second.error();
  EXPECT_EQ(same.create(path_, config_of(WPR_STORE_DISK)), WPR_IO);
  auto config = config_of(WPR_STORE_COMPRESSED);
  config.recipe = "zpaq";
  Store unknown;
  EXPECT_EQ(unknown.create(path_ + "2", config), WPR_PARAMETER);
  expect_steps_back(store, 2);
}

TEST_F(StoreTest, PinsServantsAndRefusesForeignCores) {
  cpu_set_t mine;
  ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
  int core = 0;
  while (!CPU_ISSET(static_cast<size_t>(core), &mine)) ++core;
  auto config = config_of(WPR_STORE_COMPRESSED);
  config.pin = &core;
  config.n_pin = 1;
  Store store, foreign;
  ASSERT_EQ(store.create(path_, config), WPR_OK) << store.error();
  put_steps(store, 0, 3);
  expect_steps_back(store, 3);
  core = CPU_SETSIZE - 1;
  EXPECT_EQ(foreign.create(path_ + "2", config), WPR_PARAMETER);
}

// Small frames and few steps: files of some hundred bytes, every one of which is tried.
constexpr size_t kFew = 8;
constexpr uint64_t kSteps = 4;

// What is readable in a file of any content is right, and nothing crashes. Returns how many.
size_t right_frames(const std::string& path) {
  Store store;
  if (store.open(path) != WPR_OK) return 0;
  size_t n = 0;
  Frame frame(kFew);
  for (uint64_t step = 0; step < kSteps; ++step) {
    if (store.info().raw_size != 4 * kFew || store.get(step, &frame) != WPR_OK) continue;
    EXPECT_EQ(frame, frame_of(step, kFew)) << "step " << step;
    ++n;
  }
  return n;
}

TEST_F(StoreTest, EveryTruncationKeepsWhatIsWhole) {
  std::vector<size_t> ends;  // of the file after each sync
  {
    Store store;
    ASSERT_EQ(store.create(path_, config_of(WPR_STORE_COMPRESSED, kFew)), WPR_OK);
    for (uint64_t step = 0; step < kSteps; ++step) {
      put_steps(store, step, step + 1, kFew);
      ASSERT_EQ(store.sync(), WPR_OK);
      ends.push_back(bytes().size());
    }
    ASSERT_EQ(store.close(), WPR_OK);
  }
  const File whole = bytes();
  for (size_t size = 0; size <= whole.size(); ++size) {
    write(whole.data(), size);
    size_t synced = 0;
    while (synced < ends.size() && ends[synced] <= size) ++synced;
    ASSERT_EQ(right_frames(path_), synced) << size;
    ASSERT_EQ(bytes().size(), size) << "reading changed the file";
    wpr_store_report report;
    char text[512];
    const wpr_status repaired = wpr_store_repair(path_.c_str(), &report, text, sizeof text);
    ASSERT_EQ(repaired == WPR_OK, size >= 72) << size << ": " << text;
    if (repaired != WPR_OK) continue;
    ASSERT_EQ(right_frames(path_), synced) << size;
    if (size % 11) continue;  // what follows syncs
    Store again;              // goes on where it was cut
    ASSERT_EQ(again.open(path_, true), WPR_OK) << again.error();
    ASSERT_TRUE(again.info().from_index);
    put_steps(again, synced, kSteps, kFew);
    ASSERT_EQ(again.close(), WPR_OK);
    ASSERT_EQ(right_frames(path_), kSteps) << size;
  }
}

TEST_F(StoreTest, NoFlippedBitMakesAWrongFrame) {
  for (const bool closed : {true, false}) {
    {
      Store store;
      ASSERT_EQ(store.create(path_, config_of(WPR_STORE_COMPRESSED, kFew)), WPR_OK);
      put_steps(store, 0, kSteps, kFew);
      ASSERT_EQ(closed ? store.close() : store.sync(), WPR_OK);
    }
    const File whole = bytes();
    for (size_t at = 0; at < whole.size(); ++at) {
      File damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
      write(damaged.data(), damaged.size());
      const size_t n = right_frames(path_);
      // A flip harms one frame, or the head of the file.
      if (at < 72) {
        ASSERT_EQ(n, 0u) << at;
      } else {
        ASSERT_GE(n, kSteps - 1) << at;
      }
      wpr_store_report report;
      char text[512];
      ASSERT_EQ(
          wpr_store_check(path_.c_str(), &report, nullptr, nullptr, text, sizeof text) == WPR_OK,
          at >= 72);
      ASSERT_TRUE(at < 72 || report.damaged || report.torn_bytes) << at;
    }
    std::filesystem::remove(path_);
  }
}

TEST_F(StoreTest, AScanFindsLargeFrames) {
  for (const auto policy : {WPR_STORE_DISK, WPR_STORE_COMPRESSED}) {
    constexpr size_t kLarge = 700000;  // more than a window of the scan
    {
      Store store;
      ASSERT_EQ(store.create(path_, config_of(policy, kLarge)), WPR_OK);
      put_steps(store, 0, 4, kLarge);
      ASSERT_EQ(store.sync(), WPR_OK);
    }
    Store store;
    ASSERT_EQ(store.open(path_), WPR_OK) << store.error();
    EXPECT_FALSE(store.info().from_index);
    EXPECT_EQ(store.info().torn_bytes, 0u);
    expect_steps_back(store, 4, kLarge);
    std::filesystem::remove(path_);
  }
}

TEST_F(StoreTest, AMovedRecordIsNoRecord) {
  {
    Store store;
    ASSERT_EQ(store.create(path_, config_of(WPR_STORE_DISK, kFew)), WPR_OK);
    put_steps(store, 0, kSteps, kFew);
    ASSERT_EQ(store.sync(), WPR_OK);
  }
  File moved = bytes();
  constexpr size_t kRecord = 56 + 4 * kFew;
  ASSERT_EQ(moved.size(), 72 + kSteps * kRecord);
  std::memcpy(moved.data() + 72 + kRecord, moved.data() + 72 + 2 * kRecord, kRecord);
  write(moved.data(), moved.size());
  EXPECT_EQ(right_frames(path_), kSteps - 1);
}

// A child has the store's memory, but neither its threads nor the right to its file.
TEST_F(StoreTest, AForkedChildIsRefused) {
  const wpr_store_config config = config_of(WPR_STORE_COMPRESSED);
  wpr_store* store = nullptr;
  ASSERT_EQ(wpr_store_create(path_.c_str(), &config, &store), WPR_OK);
  const Frame frame = frame_of(0);
  ASSERT_EQ(wpr_store_put(store, 0, frame.data(), frame.size() * sizeof(float)), WPR_OK);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    Frame out(kValues);
    wpr_store_info info;
    wpr_store_frame found;
    wpr_store_tile tile;
    bool good =
        wpr_store_put(store, 1, frame.data(), frame.size() * sizeof(float)) == WPR_PARAMETER &&
        wpr_store_get(store, 0, out.data(), out.size() * sizeof(float)) == WPR_PARAMETER &&
        wpr_store_get_info(store, &info) == WPR_PARAMETER &&
        wpr_store_tile_at(store, 0, &tile) == WPR_PARAMETER &&
        wpr_store_sync(store) == WPR_PARAMETER && wpr_store_close(store) == WPR_PARAMETER &&
        !wpr_store_frame_from(store, 0, &found) &&
        std::string(wpr_store_error(store)).find("process that opened it") != std::string::npos;
    wpr_store_free(store);
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Frame out(kValues);
  EXPECT_EQ(wpr_store_get(store, 0, out.data(), out.size() * sizeof(float)), WPR_OK);
  EXPECT_EQ(out, frame);
  EXPECT_EQ(wpr_store_close(store), WPR_OK) << wpr_store_error(store);
  wpr_store_free(store);
}

// Nobody is told to remove what is no file.
TEST_F(StoreTest, ADeviceIsNoFileToBeRemoved) {
  const wpr_store_config config = config_of(WPR_STORE_DISK);
  wpr_store* store = nullptr;
  EXPECT_EQ(wpr_store_create("/dev/null", &config, &store), WPR_IO);
  EXPECT_STREQ(wpr_store_error(store), "/dev/null exists and is not a regular file");
  wpr_store_free(store);
}

TEST_F(StoreTest, NullAndWhatLosesBytesAreRefused) {
  wpr_store_config config = config_of(WPR_STORE_COMPRESSED);
  wpr_store* store = nullptr;
  EXPECT_EQ(wpr_store_create(path_.c_str(), &config, nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_store_create(path_.c_str(), nullptr, &store), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_store_error(store)).find("config is NULL"), std::string::npos);
  wpr_store_free(store);
  const char* const options[] = {"seed", nullptr};
  config.options = options;
  config.n_options = 2;
  EXPECT_EQ(wpr_store_create(path_.c_str(), &config, &store), WPR_PARAMETER);
  wpr_store_free(store);
  config = config_of(WPR_STORE_COMPRESSED);
  config.dtype = WPR_BYTES;
  config.recipe = "bx:m=6";
  EXPECT_EQ(wpr_store_create(path_.c_str(), &config, &store), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_store_error(store)).find("dtype"), std::string::npos);
  wpr_store_free(store);
  EXPECT_FALSE(std::filesystem::exists(path_));
  config = config_of(WPR_STORE_COMPRESSED);
  ASSERT_EQ(wpr_store_create(path_.c_str(), &config, &store), WPR_OK);
  wpr_store_report report;
  char text[200] = "";
  for (wpr_store* s : {store, static_cast<wpr_store*>(nullptr)}) {
    EXPECT_EQ(wpr_store_put(s, 0, nullptr, kValues * sizeof(float)), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_get(s, 0, nullptr, kValues * sizeof(float)), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_put_tile(s, 0, 0, nullptr, nullptr), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_get_tile(s, 0, 0, nullptr, nullptr), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_tile_at(s, 0, nullptr), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_get_info(s, nullptr), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_get_stats(s, nullptr), WPR_PARAMETER);
    EXPECT_EQ(wpr_store_frame_from(s, 0, nullptr), 0);
    EXPECT_NE(std::string(wpr_store_error(s)).find("NULL"), std::string::npos);
  }
  EXPECT_EQ(wpr_store_sync(nullptr), WPR_PARAMETER);
  EXPECT_EQ(wpr_store_close(nullptr), WPR_PARAMETER);
  wpr_store_free(store);
  EXPECT_EQ(wpr_store_check(nullptr, &report, nullptr, nullptr, text, sizeof text), WPR_PARAMETER);
  EXPECT_STREQ(text, "path is NULL");
  EXPECT_EQ(wpr_store_repair(path_.c_str(), nullptr, text, sizeof text), WPR_PARAMETER);
  EXPECT_EQ(wpr_store_open(nullptr, 0, nullptr, &store), WPR_PARAMETER);
  wpr_store_free(store);
}

TEST_F(StoreTest, EachThreadHasItsOwnSentence) {
  Store store, other;
  ASSERT_EQ(store.create(path_, config_of(WPR_STORE_DISK)), WPR_OK);
  ASSERT_EQ(other.create(path_ + "2", config_of(WPR_STORE_DISK)), WPR_OK);
  Frame frame(kValues);
  EXPECT_NE(store.get(5, &frame), WPR_OK);
  std::thread([&] {
    EXPECT_NE(store.get(900, &frame), WPR_OK);
    EXPECT_NE(store.error().find("900"), std::string::npos) << store.error();
  }).join();
  EXPECT_NE(store.error().find("step 5"), std::string::npos) << store.error();
  EXPECT_NE(other.get(77, &frame), WPR_OK);
  EXPECT_NE(other.error().find("77"), std::string::npos) << other.error();
  EXPECT_NE(store.error().find("900"), std::string::npos) << store.error();  // of any thread
}

TEST_F(StoreTest, StoresAndThreadsAtOnce) {
  const auto run = [&](int channel) {
    auto config = config_of(channel % 2 ? WPR_STORE_DISK : WPR_STORE_COMPRESSED);
    config.servants = 2;
    Store store;
    ASSERT_EQ(store.create(path_ + std::to_string(channel), config), WPR_OK);
    std::thread other([&] {  // a second producer and consumer
      put_steps(store, 100, 130);
      Frame frame(kValues);
      for (uint64_t step = 100; step < 130; ++step) {
        ASSERT_EQ(store.get(step, &frame), WPR_OK) << store.error();
        ASSERT_EQ(frame, frame_of(step));
      }
    });
    put_steps(store, 0, 30);
    expect_steps_back(store, 30);
    other.join();
    ASSERT_EQ(store.close(), WPR_OK);
  };
  std::vector<std::thread> threads;
  for (int channel = 0; channel < 3; ++channel) threads.emplace_back(run, channel);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
