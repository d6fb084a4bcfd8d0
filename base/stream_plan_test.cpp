// SPDX-License-Identifier: Apache-2.0
#include "base/stream_plan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace wirepress {
namespace {

std::string launched;  // "A:ab2 " is step A with entries a and b, and at most 2 blocks

template <char kName>
Status launch(int, void*, const std::byte* table, size_t n, uint64_t most) noexcept {
  launched += kName;
  launched += ":";
  launched.append(reinterpret_cast<const char*>(table), n);
  launched += std::to_string(most) + " ";
  return {};
}

Status launch_fails(int, void*, const std::byte*, size_t, uint64_t) noexcept {
  return fail(Code::kDevice, "as asked");
}

void note(StreamPlan* plan, StreamPlan::Launch step, char entry, uint64_t blocks) {
  ASSERT_TRUE(plan->note(step, &entry, 1, blocks).ok());
}

std::string launches(const StreamPlan& plan) {
  std::vector<std::byte> tables(plan.table_size());
  plan.put_tables(tables.data());
  launched.clear();
  EXPECT_TRUE(plan.launch(0, nullptr, tables.data()).ok());
  return launched;
}

TEST(StreamPlan, BlocksShareSteps) {
  StreamPlan plan;
  for (int again = 0; again < 2; ++again) {
    plan.begin(false);
    for (const char entry : {'x', 'y'}) {
      plan.begin_block();
      note(&plan, launch<'A'>, entry, entry == 'x' ? 1 : 5);
      note(&plan, launch<'B'>, entry, 3);
      note(&plan, launch<'A'>, entry, 2);
    }
    EXPECT_EQ(plan.table_size(), 3u * 256);
    EXPECT_EQ(launches(plan), "A:xy5 B:xy3 A:xy2 ");
  }
}

// Of a block whose launches are others, each still comes behind those that it had before.
TEST(StreamPlan, ABlockMayTakeOtherSteps) {
  StreamPlan plan;
  plan.begin(false);
  plan.begin_block();
  note(&plan, launch<'A'>, 'x', 1);
  note(&plan, launch<'C'>, 'x', 1);
  plan.begin_block();
  note(&plan, launch<'B'>, 'y', 1);
  note(&plan, launch<'C'>, 'y', 1);
  note(&plan, launch<'A'>, 'y', 1);
  EXPECT_EQ(launches(plan), "B:y1 A:x1 C:xy1 A:y1 ");
  plan.begin(false);
  EXPECT_EQ(plan.table_size(), 0u);
  EXPECT_EQ(launches(plan), "");
}

TEST(StreamPlan, ARoundComesBehindTheOneBefore) {
  StreamPlan plan;
  plan.begin(true);
  EXPECT_TRUE(plan.is_draft());
  for (const char entry : {'x', 'y', 'z'}) {
    if (entry != 'y') plan.begin_round();
    plan.begin_block();
    note(&plan, launch<'A'>, entry, 1);
    note(&plan, launch<'B'>, entry, 1);
  }
  EXPECT_EQ(launches(plan), "A:xy1 B:xy1 A:z1 B:z1 ");
}

TEST(StreamPlan, AFailedLaunchEndsIt) {
  StreamPlan plan;
  plan.begin(false);
  plan.begin_block();
  note(&plan, launch<'A'>, 'x', 1);
  note(&plan, launch_fails, 'x', 1);
  note(&plan, launch<'B'>, 'x', 1);
  std::vector<std::byte> tables(plan.table_size());
  plan.put_tables(tables.data());
  launched.clear();
  EXPECT_EQ(plan.launch(0, nullptr, tables.data()).code(), Code::kDevice);
  EXPECT_EQ(launched, "A:x1 ");
}

}  // namespace
}  // namespace wirepress
