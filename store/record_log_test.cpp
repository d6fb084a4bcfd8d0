// SPDX-License-Identifier: Apache-2.0
#include "store/record_log.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "store/kit/faulty_file.hpp"

namespace wirepress::store {
namespace {

using kit::Fault;
using kit::FaultyFile;
using Call = Fault::Call;
using Payload = std::vector<std::byte>;

Head head_of() {
  Head head;
  head.id = 77;
  head.dtype = WPR_UINT8;
  head.n_dims = 1;
  head.shape[0] = 40;
  EXPECT_TRUE(measure(&head).ok());
  return head;
}

Payload payload_of(uint64_t step) { return Payload(40, static_cast<std::byte>(step)); }

Status append(RecordLog& log, uint64_t step, uint64_t* offset) {
  return log.append(Kind::kRaw, step, payload_of(step), offset);
}

void expect_steps(const kit::Content& content, const std::vector<uint64_t>& steps, bool indexed) {
  FaultyFile disk(content);
  RecordLog log(disk);
  Contents contents;
  ASSERT_TRUE(log.open("log", false, &contents).ok());
  EXPECT_EQ(contents.from_index, indexed);
  ASSERT_EQ(contents.entries.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(contents.entries[i].step, steps[i]);
}

TEST(StoreLog, WhatWasAppendedIsFoundWithAndWithoutAnIndex) {
  FaultyFile disk;
  RecordLog log(disk);
  ASSERT_TRUE(log.create("log", head_of()).ok());
  ASSERT_TRUE(log.start_appending(0, 0).ok());
  uint64_t first, second;
  ASSERT_TRUE(append(log, 1, &first).ok());
  ASSERT_TRUE(append(log, 2, &second).ok());
  EXPECT_EQ(first, kHeadSize);
  EXPECT_EQ(second, kHeadSize + kRecordSize + 40);
  expect_steps(disk.content(), {1, 2}, false);
  const IndexEntry index[] = {{1, first, 40}, {2, second, 40}};
  ASSERT_TRUE(log.append_index(index).ok());
  expect_steps(disk.content(), {1, 2}, true);
}

TEST(StoreLog, AFailedAppendLeavesNoTornTailAndTheNextOneGoesOn) {
  FaultyFile disk;
  RecordLog log(disk);
  ASSERT_TRUE(log.create("log", head_of()).ok());
  ASSERT_TRUE(log.start_appending(0, 0).ok());
  uint64_t offset;
  ASSERT_TRUE(append(log, 1, &offset).ok());
  const size_t before = disk.content().size();
  // A part of the record is taken, then the disk is full.
  const uint64_t n = disk.calls(Call::kWrite);
  disk.set({{.call = Call::kWrite, .from = n, .error = 0, .taken = 30},
            {.call = Call::kWrite, .from = n + 1, .error = ENOSPC}});
  const Status status = append(log, 2, &offset);
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(std::string(status.text()).find("step 2"), std::string::npos) << status.text();
  EXPECT_EQ(disk.content().size(), before);
  disk.set({});
  ASSERT_TRUE(append(log, 3, &offset).ok());
  EXPECT_EQ(offset, before);
  expect_steps(disk.content(), {1, 3}, false);
}

TEST(StoreLog, AnOpenForAppendCutsATornTail) {
  FaultyFile disk;
  {
    RecordLog log(disk);
    ASSERT_TRUE(log.create("log", head_of()).ok());
    ASSERT_TRUE(log.start_appending(0, 0).ok());
    uint64_t offset;
    ASSERT_TRUE(append(log, 1, &offset).ok());
    ASSERT_TRUE(append(log, 2, &offset).ok());
  }
  kit::Content torn = disk.content();
  torn.pop_back();
  FaultyFile rest(torn);
  RecordLog log(rest);
  Contents contents;
  ASSERT_TRUE(log.open("log", true, &contents).ok());
  EXPECT_EQ(contents.report.torn_bytes, kRecordSize + 39);
  ASSERT_TRUE(log.start_appending(0, 0).ok());
  EXPECT_EQ(rest.content().size(), kHeadSize + kRecordSize + 40);
  uint64_t offset;
  ASSERT_TRUE(append(log, 5, &offset).ok());
  expect_steps(rest.content(), {1, 5}, false);
}

TEST(StoreLog, ThreadsAppendOneAfterTheOther) {
  FaultyFile disk;
  RecordLog log(disk);
  ASSERT_TRUE(log.create("log", head_of()).ok());
  ASSERT_TRUE(log.start_appending(0, 0).ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      uint64_t offset;
      for (uint64_t i = 0; i < 25; ++i) EXPECT_TRUE(append(log, 4 * i + t, &offset).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> steps(100);
  for (uint64_t i = 0; i < 100; ++i) steps[i] = i;
  expect_steps(disk.content(), steps, false);
}

}  // namespace
}  // namespace wirepress::store
