// SPDX-License-Identifier: Apache-2.0
// Jobs on a device with faults: the bytes are right whatever it does.
#include "engines/compressdev/device.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "engines/compressdev/faulty_device.hpp"

namespace wirepress::compressdev {
namespace {

using Buffer = std::vector<std::byte>;
using namespace std::chrono_literals;

const Kernel* kernel_of(const char* codec) {
  for (const Kernel* kernel : find_codec(codec, std::strlen(codec))->kernels)
    if (std::string_view(kernel->engine) == "compressdev") return kernel;
  return nullptr;
}

Buffer text(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Buffer data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>('a' + (random() & random() & 15));
  return data;
}

// Codes and expands with the kernels of a codec; every call must succeed with the right bytes.
class Messages {
 public:
  explicit Messages(const char* name)
      : entry_(*find_codec(name, std::strlen(name))), kernel_(*kernel_of(name)) {
    args_.value[0] = 6;
    EXPECT_TRUE(kernel_.open(args_, &state_).ok());
  }
  ~Messages() { kernel_.close(state_); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  void round_trip(const Buffer& raw) {
    Buffer code(entry_.codec->bound(args_, raw.size()));
    size_t size = 0;
    ASSERT_TRUE(kernel_.encode(state_, args_, raw, code, &size).ok());
    code.resize(size);
    for (const Kernel* kernel : {entry_.kernels.back(), &kernel_}) expand(*kernel, code, raw);
  }

  // As behind a codec that changes sizes: the room is larger than what comes.
  void with_more_room(const Buffer& raw) {
    args_.exact_size = false;
    more_room_ = 1000;
    round_trip(raw);
  }

 private:
  void expand(const Kernel& kernel, const Buffer& code, const Buffer& raw) {
    void* state = nullptr;
    Buffer again(raw.size() + more_room_);
    size_t size = 0;
    ASSERT_TRUE(kernel.open(args_, &state).ok());
    const Status status = kernel.decode(state, args_, code, again, &size);
    kernel.close(state);
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(size, raw.size());
    again.resize(size);
    ASSERT_EQ(again, raw);
  }

  const Entry& entry_;
  const Kernel& kernel_;
  Args args_;
  size_t more_room_ = 0;
  void* state_ = nullptr;
};

// A device with faults as the process's.
class Faulty {
 public:
  Faulty(std::vector<Fault> faults, unsigned every, unsigned seed, Device::Duration deadline,
         bool verify = true)
      : faulty(std::move(faults), every, seed),
        device(FaultyDevice::table(), faulty.info(), deadline) {
    use(&device, {.verify = verify});
  }
  ~Faulty() { use(nullptr, {}); }
  FaultyDevice faulty;
  Device device;
};

// Messages of a codec through devices with these faults; how many jobs had which end.
std::array<uint64_t, kReasons> survive(const char* name, const std::vector<Fault>& faults,
                                       int n_devices, Device::Duration deadline) {
  std::array<uint64_t, kReasons> ends{};
  Messages codec(name);
  for (int i = 0; i < n_devices; ++i) {
    const auto seed = static_cast<unsigned>(i + 1);
    Faulty with(faults, 4, seed, deadline);
    for (unsigned k = 0; k < 12; ++k) codec.round_trip(text(1 + 331 * k * k, seed * 100 + k));
    EXPECT_EQ(with.faulty.touched_after_close(), 0);
    for (size_t r = 0; r < kReasons; ++r) ends[r] += with.device.jobs(static_cast<Reason>(r));
  }
  return ends;
}

// What a fault alone must be counted as; kNone: it harms nothing.
Reason end_of(Fault fault) {
  switch (fault) {
    case Fault::kLose:
    case Fault::kStop:
      return Reason::kTimeout;
    case Fault::kRefuse:
      return Reason::kRefused;
    case Fault::kLieFailed:
      return Reason::kFailed;
    case Fault::kLieDone:
    case Fault::kTruncate:
      return Reason::kIncomplete;
    case Fault::kLieLength:
      return Reason::kNoRoom;
    case Fault::kWrongBytes:
      return Reason::kOff;
    default:
      return Reason::kNone;
  }
}

TEST(Compressdev, EveryFaultAlone) {
  for (int i = 0; i < kFaults; ++i) {
    const auto fault = static_cast<Fault>(i);
    for (const char* codec : {"deflate", "zlib", "gzip"}) {
      SCOPED_TRACE(testing::Message() << codec << ", fault " << i);
      const auto ends = survive(codec, {fault}, 12, end_of(fault) == Reason::kTimeout ? 2ms : 10s);
      EXPECT_GT(ends[static_cast<size_t>(Reason::kNone)], 0u);
      EXPECT_GT(ends[static_cast<size_t>(end_of(fault))], 0u);
      if (end_of(fault) == Reason::kNone) {
        for (size_t r = 1; r < kReasons; ++r)
          EXPECT_EQ(ends[r], 0u) << reason_text(static_cast<Reason>(r));
      }
    }
  }
}

TEST(Compressdev, FaultsMixed) {
  std::vector<Fault> faults;
  for (int i = 1; i < kFaults; ++i) faults.push_back(static_cast<Fault>(i));
  for (const char* codec : {"deflate", "zlib", "gzip"}) survive(codec, faults, 60, 2ms);
}

// A format with a sum proves how much came, whatever the device says of it.
TEST(Compressdev, WhatHasNoKnownSizeNeedsASum) {
  for (const char* codec : {"zlib", "gzip"}) {
    for (int i = 0; i < kFaults; ++i) {
      SCOPED_TRACE(testing::Message() << codec << ", fault " << i);
      const auto fault = static_cast<Fault>(i);
      Faulty with({fault}, 3, 1, end_of(fault) == Reason::kTimeout ? 2ms : 10s);
      Messages messages(codec);
      for (unsigned k = 0; k < 12; ++k) messages.with_more_room(text(1 + 331 * k * k, k));
      EXPECT_GT(with.device.jobs(Reason::kNone), 0u);
      EXPECT_EQ(with.device.jobs(Reason::kNoSize), 0u);
    }
  }
  for (const char* codec : {"deflate", "lz4"}) {
    Faulty with({}, 1, 1, 10s, false);
    Messages messages(codec);
    messages.with_more_room(text(5000, 1));
    EXPECT_EQ(with.device.jobs(Reason::kNoSize), 1u) << codec;
  }
}

// A code that expands to more than the device can write, where nobody knew.
TEST(Compressdev, AnUnknownSizeAboveTheLimit) {
  FaultyDevice faulty({}, 1, 1);
  wpr_device_info info = faulty.info();
  info.max_dst[WPR_DEVICE_DEFLATE][WPR_DEVICE_EXPAND] = 4000;
  Device device(FaultyDevice::table(), info);
  use(&device, {});
  Messages messages("zlib");
  messages.with_more_room(text(5000, 1));
  messages.with_more_room(text(3900, 1));
  use(nullptr, {});
  EXPECT_EQ(device.jobs(Reason::kSize), 1u);
  EXPECT_EQ(device.jobs(Reason::kNone), 3u);
}

// LZ4 has no sum: wrong bytes of the right size are not seen, and `verify` leaves it to the cores.
TEST(Compressdev, ExpandsLz4) {
  for (int i = 0; i < kFaults; ++i) {
    SCOPED_TRACE(testing::Message() << "fault " << i);
    const auto fault = static_cast<Fault>(i);
    if (fault == Fault::kWrongBytes) continue;
    Faulty with({fault}, 4, 1, end_of(fault) == Reason::kTimeout ? 2ms : 10s, false);
    Messages messages("lz4");
    for (unsigned k = 0; k < 14; ++k) messages.round_trip(text(1 + 331 * k * k, k));
    EXPECT_GT(with.device.jobs(Reason::kNone), 0u);
    EXPECT_GT(with.device.jobs(end_of(fault)), 0u);
    EXPECT_GT(with.device.jobs(Reason::kDirection), 0u);  // nothing compresses it
  }
  Faulty with({}, 1, 1, 10s);
  Messages("lz4").round_trip(text(5000, 1));
  EXPECT_EQ(with.device.jobs(Reason::kNone), 0u);
}

// What a device says it can is tried: DEFLATE that fails refuses it, LZ4 is left out.
TEST(Compressdev, SamplesAreTried) {
  const auto probed = [](std::vector<Fault> faults, int n_good, bool compresses) {
    FaultyDevice faulty(std::move(faults), 1, 1, n_good);
    wpr_device_info info = faulty.info();
    if (!compresses) info.max_src[WPR_DEVICE_DEFLATE][WPR_DEVICE_COMPRESS] = 0;
    Device device(FaultyDevice::table(), info);
    const std::string good = device.probe() ? "good; " : "bad; ";
    EXPECT_EQ(device.seconds_for({Algorithm::kDeflate, Direction::kExpand, {}, {}}), 0);
    return good + device.state();
  };
  for (const bool compresses : {true, false}) {
    const std::string good = probed({}, 0, compresses);
    EXPECT_TRUE(good.starts_with("good; ")) << good;
    EXPECT_NE(good.find("LZ4, compresses nothing, expands jobs to 1048576"), std::string::npos);
    EXPECT_NE(good.find(compresses ? "DEFLATE, compresses jobs" : "DEFLATE, compresses nothing"),
              std::string::npos);
    EXPECT_TRUE(probed({Fault::kWrongBytes}, 0, compresses).starts_with("bad; "));
    const std::string no_lz4 = probed({Fault::kWrongBytes}, compresses ? 2 : 1, compresses);
    EXPECT_TRUE(no_lz4.starts_with("good; ")) << no_lz4;
    EXPECT_EQ(no_lz4.find("LZ4"), std::string::npos) << no_lz4;
  }
}

TEST(Compressdev, WrongBytesSwitchTheDeviceOff) {
  Faulty with({Fault::kWrongBytes}, 1, 1, 10s);
  Messages codec("zlib");
  codec.round_trip(text(5000, 1));
  EXPECT_TRUE(with.faulty.closed());
  codec.round_trip(text(5000, 2));
  EXPECT_EQ(with.faulty.touched_after_close(), 0);
}

TEST(Compressdev, LimitsAreKept) {
  FaultyDevice faulty({}, 1, 1);
  wpr_device_info info = faulty.info();
  info.max_src[WPR_DEVICE_DEFLATE][WPR_DEVICE_COMPRESS] = 100;
  info.max_src[WPR_DEVICE_DEFLATE][WPR_DEVICE_EXPAND] = 0;
  Device device(FaultyDevice::table(), info);
  const Buffer raw = text(101, 1);
  Buffer code(200);
  size_t size = 0;
  const auto run = [&](Direction direction, ConstBytes src) {
    return device.run({Algorithm::kDeflate, direction, src, code}, &size);
  };
  EXPECT_EQ(run(Direction::kCompress, raw), Reason::kSize);
  EXPECT_EQ(run(Direction::kCompress, ConstBytes(raw).first(100)), Reason::kNone);
  EXPECT_EQ(run(Direction::kExpand, ConstBytes(code).first(size)), Reason::kDirection);
  EXPECT_EQ(device.jobs(Reason::kSize), 1u);
  EXPECT_EQ(device.jobs(Reason::kDirection), 1u);
  const std::string state = device.state();
  EXPECT_NE(state.find("expands nothing"), std::string::npos) << state;
  EXPECT_NE(state.find("1 jobs by the device (100 bytes"), std::string::npos) << state;
  EXPECT_NE(state.find(reason_text(Reason::kSize)), std::string::npos) << state;
}

// Nothing is known before a job of each side. A device that is slow against the cores then gets a
// job when that is little against what they did, and all jobs again when it is as fast.
TEST(Compressdev, ASlowDeviceGetsFewBlocks) {
  FaultyDevice faulty({}, 1, 1);
  Device device(FaultyDevice::table(), faulty.info());
  device.divide(true);
  const Buffer raw = text(20000, 1);
  Buffer code(30000);
  size_t size = 0;
  const Job job = {Algorithm::kDeflate, Direction::kCompress, raw, code};
  const auto run = [&] { return device.run(job, &size); };
  EXPECT_EQ(run(), Reason::kNone);
  EXPECT_EQ(run(), Reason::kDivided);
  device.learn_cores(job.way(), raw.size(), 1e-9);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(run(), Reason::kNone);
  for (int i = 0; i < 100; ++i) device.learn_cores(job.way(), raw.size(), 1e-9);
  for (int i = 0; i < 640; ++i) run();
  EXPECT_EQ(device.jobs(Reason::kNone), 8u);
  EXPECT_EQ(device.jobs(Reason::kDivided), 641u);
  EXPECT_FALSE(device.gives());
  device.learn_cores(job.way(), size_t{1} << 60, 3600);
  for (int i = 0; i < 100; ++i) run();
  EXPECT_EQ(device.jobs(Reason::kNone), 9u);
  EXPECT_EQ(device.jobs(Reason::kDivided), 740u);
  for (int i = 0; i < 1000; ++i) device.learn_cores(job.way(), raw.size(), 3600);
  EXPECT_EQ(run(), Reason::kNone);
  EXPECT_TRUE(device.gives());
}

TEST(Compressdev, ARefusedJobTakesNoTimeOfTheDevice) {
  static bool refuses = false;
  wpr_device_table table = FaultyDevice::table();
  table.submit = [](void* queue, const wpr_device_job* job) {
    return refuses ? -1 : FaultyDevice::table().submit(queue, job);
  };
  FaultyDevice faulty({}, 1, 1);
  Device device(table, faulty.info());
  const Buffer raw = text(20000, 1);
  Buffer code(30000);
  size_t size = 0;
  const Job job = {Algorithm::kDeflate, Direction::kCompress, raw, code};
  for (int i = 0; i < 8; ++i) ASSERT_EQ(device.run(job, &size), Reason::kNone);
  const double before = device.seconds_for(job);
  refuses = true;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(device.run(job, &size), Reason::kRefused);
  refuses = false;
  EXPECT_LT(device.seconds_for(job), 10 * before);
}

// Blocks that are begun and ended later, both ways: whatever the device does, each is right in the
// end.
void begin_and_end(const char* codec, bool verify, Device* device) {
  const Entry& entry = *find_codec(codec, std::strlen(codec));
  const Kernel& kernel = *kernel_of(codec);
  const Kernel& cores = *entry.kernels.back();
  Args args;
  args.value[0] = 6;
  std::vector<Buffer> raws;
  for (unsigned k = 0; k < 12; ++k) raws.push_back(text(1 + 97 * k * k, k));
  const size_t n = raws.size();
  use(device, {.verify = verify, .with_cores = true});
  void *state = nullptr, *own = nullptr;
  ASSERT_TRUE(kernel.open(args, &state).ok() && cores.open(args, &own).ok());
  for (int turn = 0; turn < 8; ++turn) {
    std::vector<Buffer> codes(n), again(n), expected(n);
    std::vector<size_t> sizes(n);
    std::vector<void*> begun(n);
    const auto end_all = [&](auto end) {
      for (size_t k = 0; k < n; ++k) {
        Status status;
        while (begun[k] != nullptr && !end(k, &status)) continue;
        ASSERT_TRUE(status.ok()) << status.text();
      }
    };
    for (size_t k = 0; k < n; ++k) {
      codes[k].resize(entry.codec->bound(args, raws[k].size()));
      ASSERT_TRUE(
          kernel.begin_encode(state, args, raws[k], codes[k], 1000, &sizes[k], &begun[k]).ok());
    }
    end_all([&](size_t k, Status* status) {
      return kernel.end_encode(state, args, begun[k], raws[k], codes[k], &sizes[k], status);
    });
    for (size_t k = 0; k < n; ++k) {
      codes[k].resize(sizes[k]);
      expected[k].resize(raws[k].size());
      size_t size = 0;
      ASSERT_TRUE(cores.decode(own, args, codes[k], expected[k], &size).ok());
      ASSERT_EQ(expected[k], raws[k]);
    }
    for (size_t k = 0; k < n; ++k) {
      again[k].resize(raws[k].size());
      ASSERT_TRUE(
          kernel.begin_decode(state, args, codes[k], again[k], 1000, &sizes[k], &begun[k]).ok());
    }
    end_all([&](size_t k, Status* status) {
      return kernel.end_decode(state, args, begun[k], codes[k], again[k], &sizes[k], status);
    });
    ASSERT_EQ(again, expected);
  }
  kernel.close(state);
  cores.close(own);
  use(nullptr, {});
}

TEST(Compressdev, BegunAndEnded) {
  for (const char* codec : {"deflate", "zlib", "gzip"}) {
    for (int i = 0; i < kFaults; ++i) {
      const auto fault = static_cast<Fault>(i);
      for (const bool verify : {false, true}) {
        // Only `verify` sees what a code lacks.
        if ((fault == Fault::kWrongBytes || fault == Fault::kTruncate) && !verify) continue;
        SCOPED_TRACE(testing::Message() << codec << ", fault " << i);
        FaultyDevice faulty({fault}, 3, static_cast<unsigned>(i));
        Device device(FaultyDevice::table(), faulty.info(),
                      end_of(fault) == Reason::kTimeout ? 2ms : 10s);
        begin_and_end(codec, verify, &device);
        EXPECT_GT(device.jobs(Reason::kNone) + device.jobs(end_of(fault)), 0u);
        EXPECT_EQ(faulty.touched_after_close(), 0);
      }
    }
  }
}

TEST(Compressdev, AChildUsesTheCores) {
  Faulty with({}, 1, 1, 10s);
  Messages codec("gzip");
  codec.round_trip(text(5000, 1));
  const pid_t child = fork();
  if (child == 0) {
    codec.round_trip(text(5000, 2));
    _exit(with.device.jobs(Reason::kForked) == 2 && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(with.device.jobs(Reason::kForked), 0u);
}

}  // namespace
}  // namespace wirepress::compressdev
