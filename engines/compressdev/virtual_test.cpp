// SPDX-License-Identifier: Apache-2.0
// Virtual devices: right bytes, limits as published, and no answer before its time.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "engines/compressdev/device.hpp"
#include "engines/compressdev/virtual_device.hpp"

namespace wirepress::compressdev {
namespace {

using Buffer = std::vector<std::byte>;
using Clock = VirtualDevice::Clock;

Buffer text(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Buffer data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>('a' + (random() & random() & 15));
  return data;
}

// The virtual device and its jobs as the engine brings them.
class Virtual {
 public:
  explicit Virtual(const Published& published)
      : virtual_(published), device(VirtualDevice::table(), virtual_.info("virtual-test")) {}

  Buffer compressed(const Buffer& raw) {
    Buffer code(raw.size() + 100);
    size_t size = 0;
    EXPECT_EQ(device.run({Algorithm::kDeflate, Direction::kCompress, raw, code}, &size),
              Reason::kNone);
    code.resize(size);
    return code;
  }
  Reason expand(Algorithm algorithm, ConstBytes code, Buffer* raw) {
    size_t size = 0;
    return device.run({algorithm, Direction::kExpand, code, *raw}, &size);
  }

 private:
  VirtualDevice virtual_;

 public:
  Device device;
};

TEST(Virtual, RoundTripsAndRemembers) {
  Virtual with(published_by_rate(1e12));
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Buffer raw = text(1 + 997 * seed, seed);
    const Buffer code = with.compressed(raw);
    EXPECT_EQ(with.compressed(raw), code);
    for (int turn = 0; turn < 2; ++turn) {
      Buffer again(raw.size());
      ASSERT_EQ(with.expand(Algorithm::kDeflate, code, &again), Reason::kNone);
      ASSERT_EQ(again, raw);
    }
    Buffer small(raw.size() - raw.size() / 2);  // what it remembers does not fit
    if (raw.size() == 1) continue;
    EXPECT_NE(with.expand(Algorithm::kDeflate, code, &small), Reason::kNone);
  }
}

TEST(Virtual, DamageIsRefused) {
  Virtual with(published_by_rate(1e12));
  const Buffer raw = text(5000, 1), code = with.compressed(raw);
  Buffer again(raw.size());
  for (size_t size = 1; size < code.size(); size += 97)
    EXPECT_NE(with.expand(Algorithm::kDeflate, ConstBytes(code).first(size), &again),
              Reason::kNone);
  const Buffer noise = text(300, 9);
  EXPECT_NE(with.expand(Algorithm::kLz4, noise, &again), Reason::kNone);
}

// Four jobs that come at once: the device does one after the other.
TEST(Virtual, NoAnswerBeforeItsTime) {
  Published published = published_by_rate(20e6);
  published.latency = 1e-3;
  VirtualDevice device(published);
  const wpr_device_table table = VirtualDevice::table();
  const Buffer raw = text(100000, 1);
  for (int turn = 0; turn < 2; ++turn) {  // made by the cores, then remembered
    const auto begin = Clock::now();
    std::vector<void*> queues;
    for (int i = 0; i < 4; ++i) {
      queues.push_back(table.open(&device));
      const wpr_device_job job = {
          7, WPR_DEVICE_DEFLATE, WPR_DEVICE_COMPRESS, raw.data(), raw.size(), 0, raw.size()};
      ASSERT_EQ(table.submit(queues.back(), &job), 1);
    }
    for (size_t i = 0; i < queues.size(); ++i) {
      wpr_device_answer answer;
      while (table.poll(queues[i], &answer) == 0) std::this_thread::yield();
      const std::chrono::duration<double> passed = Clock::now() - begin;
      EXPECT_GE(passed.count(), static_cast<double>(i + 1) * 5e-3 + 1e-3);
      EXPECT_EQ(answer.tag, 7u);
      EXPECT_EQ(answer.status, 0);
      EXPECT_EQ(table.poll(queues[i], &answer), 0);  // once
    }
  }
}

TEST(Virtual, PublishedDevicesDoWhatTheyCan) {
  for (const Published& published : kPublished) {
    SCOPED_TRACE(published.name);
    Virtual with(published);
    EXPECT_TRUE(with.device.probe());
    const wpr_device_info& info = with.device.info();
    EXPECT_NE(std::string_view(info.driver).find("virtual: "), std::string_view::npos);
    for (int algorithm = 0; algorithm < WPR_DEVICE_ALGORITHMS; ++algorithm)
      for (int way = 0; way < 2; ++way) {
        const auto& ways = algorithm == WPR_DEVICE_LZ4 ? published.lz4 : published.deflate;
        EXPECT_EQ(info.max_src[algorithm][way], ways[way].most_size);
        EXPECT_EQ(ways[way].rate > 0, ways[way].most_size > 0);
      }
    const std::string state = with.device.state();
    EXPECT_NE(state.find("came later than by its rate"), std::string::npos) << state;
  }
}

// Threads that share a device, each in its own way: waiting for it, or with other work meanwhile.
TEST(Virtual, ThreadsShareIt) {
  VirtualDevice slow(published_by_rate(300e6));
  Device device(VirtualDevice::table(), slow.info("virtual-300"));
  const Entry& zlib = *find_codec("zlib", 4);
  const auto found = std::ranges::find_if(zlib.kernels, [](const Kernel* one) {
    return std::string_view(one->engine) == "compressdev";
  });
  ASSERT_NE(found, zlib.kernels.end());
  const Kernel& kernel = **found;
  use(&device, {.verify = true, .with_cores = true});
  const auto work = [&](unsigned id) {
    Args args;
    args.value[0] = 1;
    void* state = nullptr;
    ASSERT_TRUE(kernel.open(args, &state).ok());
    for (unsigned k = 0; k < 60; ++k) {
      const Buffer raw = text(20000, id * 60 + k % 10);
      Buffer code(raw.size() + 100), again(raw.size());
      size_t size = 0;
      void* begun = nullptr;
      const double left = id % 2 == 0 ? 0 : 4;
      Status status = kernel.begin_encode(state, args, raw, code, left, &size, &begun);
      while (begun != nullptr && !kernel.end_encode(state, args, begun, raw, code, &size, &status))
        std::this_thread::yield();
      ASSERT_TRUE(status.ok()) << status.text();
      code.resize(size);
      begun = nullptr;
      status = kernel.begin_decode(state, args, code, again, 4, &size, &begun);
      while (begun != nullptr &&
             !kernel.end_decode(state, args, begun, code, again, &size, &status))
        std::this_thread::yield();
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(again, raw);
      ASSERT_NE(device.state(), "");
    }
    kernel.close(state);
  };
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) threads.emplace_back(work, id);
  for (std::thread& thread : threads) thread.join();
  use(nullptr, {});
  EXPECT_GT(device.jobs(Reason::kNone), 0u);
}

}  // namespace
}  // namespace wirepress::compressdev
