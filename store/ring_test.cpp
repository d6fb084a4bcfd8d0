// SPDX-License-Identifier: Apache-2.0
#include "store/ring.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace wirepress::store {
namespace {

using State = Slot::State;

constexpr size_t kSize = 1000;

class RingTest : public testing::Test {
 protected:
  RingTest() { ring_.make(4, kSize); }
  // A slot that holds the frame of `step`, read.
  Slot& ready(size_t i, uint64_t step) {
    Slot& slot = ring_.slots()[i];
    slot.state = State::kReady;
    slot.step = step;
    return slot;
  }
  void fill(State state) {
    for (Slot& slot : ring_.slots()) slot.state = state;
  }
  Ring ring_;
};

TEST_F(RingTest, APutTakesAFreeSlotBeforeOneThatWasReadAhead) {
  for (size_t i = 0; i < 3; ++i) ready(i, i);
  EXPECT_EQ(ring_.for_put(), &ring_.slots()[3]);
  Slot& used = ready(3, 3);
  used.n_users = 1;
  EXPECT_EQ(ring_.for_put(), &ring_.slots()[0]);
  for (size_t i = 0; i < 3; ++i) ring_.slots()[i].state = State::kToWrite;
  EXPECT_EQ(ring_.for_put(), nullptr);  // somebody copies out of the last one
  used.n_users = 0;
  EXPECT_EQ(ring_.for_put(), &used);
}

TEST_F(RingTest, ReadingSparesWhatIsWantedAndWhatWasGotLast) {
  for (size_t i = 0; i < 4; ++i) ready(i, i + 10);
  const std::vector<uint64_t> wanted = {10, 12};
  EXPECT_EQ(ring_.for_reading(11, wanted), &ring_.slots()[3]);
  EXPECT_EQ(ring_.for_reading(13, wanted), &ring_.slots()[1]);
  EXPECT_EQ(ring_.for_reading(13, std::vector<uint64_t>{10, 11, 12}), nullptr);
  ring_.slots()[2].state = State::kFree;
  EXPECT_EQ(ring_.for_reading(11, wanted), &ring_.slots()[2]);
}

TEST_F(RingTest, FindsTheSlotThatIsReadForAStep) {
  ready(1, 7);
  ring_.slots()[2].state = State::kReading;
  ring_.slots()[2].step = 8;
  ring_.slots()[3].state = State::kToWrite;
  ring_.slots()[3].step = 9;
  EXPECT_EQ(ring_.reading(7), &ring_.slots()[1]);
  EXPECT_EQ(ring_.reading(8), &ring_.slots()[2]);
  EXPECT_EQ(ring_.reading(9), nullptr);  // a written frame is never served from its buffer
  EXPECT_EQ(ring_.reading(0), nullptr);
}

TEST_F(RingTest, MemoryGoesAndComesBack) {
  EXPECT_EQ(ring_.give_back(), nullptr);
  for (Slot& slot : ring_.slots()) {
    slot.data.data()[99] = std::byte{5};
    EXPECT_FALSE(ring_.all_gone());
    const Buffer taken = ring_.take(&slot, 100);
    EXPECT_EQ(taken.size(), 100u);
    EXPECT_EQ(taken.data()[99], std::byte{5});
    EXPECT_EQ(slot.data.size(), 0u);
  }
  EXPECT_TRUE(ring_.all_gone());
  EXPECT_EQ(ring_.for_put(), nullptr);
  EXPECT_EQ(ring_.for_reading(0, {}), nullptr);
  Slot* back = ring_.give_back();
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->data.size(), kSize);
  EXPECT_FALSE(ring_.all_gone());
  EXPECT_EQ(ring_.for_put(), back);
}

}  // namespace
}  // namespace wirepress::store
