// SPDX-License-Identifier: Apache-2.0
// Direct reads: whole blocks past the page cache, and what happens where they cannot be had.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "store/frame_store.hpp"

namespace wirepress::store {
namespace {

using Frame = std::vector<uint32_t>;

constexpr uint64_t kSteps = 20;

// Half of it does not compress; a record of it ends within a block.
Frame frame_of(uint64_t step, size_t n) {
  Frame frame(n);
  for (size_t i = 0; i < n; ++i)
    frame[i] = static_cast<uint32_t>(i % 64 < 32 ? (step + 7) * (i + 1) * 2654435761u : step);
  return frame;
}

// Counts reads of whole blocks; from the refuse-th on they fail.
class Counted : public Calls {
 public:
  explicit Counted(int refuse) : refuse_(refuse) {}
  ssize_t read(int descriptor, void* dst, size_t n, uint64_t offset) override {
    const bool whole =
        n % kBlock == 0 && offset % kBlock == 0 && reinterpret_cast<uintptr_t>(dst) % kBlock == 0;
    if (whole && n_whole++ >= refuse_) {
      errno = EINVAL;
      return -1;
    }
    return Calls::read(descriptor, dst, n, offset);
  }
  std::atomic<int> n_whole = 0;

 private:
  const int refuse_;
};

struct Way {
  wpr_store_policy policy;
  size_t n_values;
  int refuse;
};

class StoreDirect : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {  // not in /tmp, which may lie in memory
    folder_ = std::filesystem::current_path() / ("direct-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

void expect_all_back(FrameStore& store, size_t n) {
  Frame got(n);
  Status status = store.prefetch(kSteps - 1, -1);
  ASSERT_TRUE(status.ok()) << status.text();
  for (uint64_t step = kSteps; step-- > 0;) {
    status = store.get(step, got.data(), 4 * n);
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(got, frame_of(step, n)) << step;
  }
}

TEST_P(StoreDirect, FramesComeBack) {
  const Way way = GetParam();
  Counted calls(way.refuse);
  wpr_store_config config = {};
  config.dtype = WPR_UINT32;
  config.n_dims = 1;
  config.shape[0] = way.n_values;
  config.tile[0] = way.n_values / 3 + 1;
  config.policy = way.policy;
  config.recipe = "lz4";
  config.direct = 1;
  const std::string path = folder_ / "store";
  wpr_store_info info;
  {
    FrameStore store(calls);
    Status status = store.create(path.c_str(), config);
    ASSERT_TRUE(status.ok()) << status.text();
    store.info(&info);
    if (!info.direct) GTEST_SKIP() << "no direct writes in " << folder_;
    for (uint64_t step = 0; step < kSteps; ++step) {
      status = store.put(step, frame_of(step, way.n_values).data(), 4 * way.n_values);
      ASSERT_TRUE(status.ok()) << status.text();
    }
    status = store.sync();
    ASSERT_TRUE(status.ok()) << status.text();
    expect_all_back(store, way.n_values);
    status = store.close();
    ASSERT_TRUE(status.ok()) << status.text();
  }
  EXPECT_GE(calls.n_whole, static_cast<int>(kSteps));
  const int before = calls.n_whole;
  FrameStore again(calls);
  const Status status = again.open(path.c_str(), false, config);
  ASSERT_TRUE(status.ok()) << status.text();
  again.info(&info);
  EXPECT_TRUE(info.direct);
  expect_all_back(again, way.n_values);
  EXPECT_GE(calls.n_whole, before + static_cast<int>(kSteps));
}

std::string name_of(const testing::TestParamInfo<Way>& info) {
  static const char* const kPolicies[] = {"memory", "disk", "compressed", "in_worker"};
  return std::string(kPolicies[info.param.policy]) + "_" + std::to_string(info.param.n_values) +
         "_refused_from_" + std::to_string(info.param.refuse);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, StoreDirect, testing::ValuesIn([] {
      std::vector<Way> ways;
      for (const wpr_store_policy policy :
           {WPR_STORE_DISK, WPR_STORE_COMPRESSED, WPR_STORE_IN_WORKER}) {
        for (const size_t n : {100, 10007, 1500001})  // less than a block, some, huge pages
          for (const int refuse : {1 << 30, 0, 7}) ways.push_back({policy, n, refuse});
      }
      return ways;
    }()),
    name_of);

}  // namespace
}  // namespace wirepress::store
