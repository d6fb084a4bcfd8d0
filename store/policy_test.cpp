// SPDX-License-Identifier: Apache-2.0
// Every policy gives back the frame that was put, by tiles or whole; and callers' codecs.
#include "store/policy.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace wirepress::store {
namespace {

constexpr uint64_t kRows = 10, kColumns = 64, kTileRows = 4;

struct Given {
  Given() {
    head.dtype = WPR_FLOAT32;
    head.n_dims = 2;
    head.shape[0] = kRows;
    head.shape[1] = kColumns;
    EXPECT_TRUE(measure(&head).ok());
    const uint64_t tile[WPR_MAX_DIMS] = {kTileRows, kColumns};
    EXPECT_TRUE(Grid::make(head, tile, &grid).ok());
    settings.recipe = "shuffle:4+zstd:1";
    EXPECT_TRUE(codec.open(head, settings).ok());
    callers.configure(head, settings);
    for (size_t i = 0; i < kRows * kColumns; ++i) frame.push_back(static_cast<float>(i / 7));
  }
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(frame.data()); }
  // A slot to which all tiles were put, the last one first.
  void fill(const Policy& policy, Slot* slot) {
    slot->data = Buffer(policy.slot_size(codec, false), kBlock);
    policy.begin(slot);
    for (uint64_t i = grid.n_tiles(); i-- > 0;) {
      const Tile tile = grid.tile(i);
      const Strides strides = packed(tile.box, 4);
      Times times;
      ASSERT_TRUE(policy.put_tile(callers, {i, strides}, bytes() + tile.offset, slot, &times).ok());
      EXPECT_GT(times.copy + times.compress, 0);
    }
    policy.complete(slot);
  }

  Head head;
  Grid grid;
  Settings settings;
  Codec codec;
  CallerCodecs callers;
  std::vector<float> frame;
};

TEST(StorePolicies, ARecordOfAnyPolicyIsTheFrame) {
  const std::pair<wpr_store_policy, Kind> kinds[] = {{WPR_STORE_DISK, Kind::kRaw},
                                                     {WPR_STORE_COMPRESSED, Kind::kFrame},
                                                     {WPR_STORE_IN_WORKER, Kind::kTiles}};
  for (const auto& [number, expected] : kinds) {
    Given given;
    const auto policy = Policy::make(number, given.grid, given.head);
    EXPECT_EQ(policy->packs_tiles(), number == WPR_STORE_IN_WORKER);
    Slot slot;
    given.fill(*policy, &slot);
    Kind kind;
    ConstBytes payload;
    ASSERT_TRUE(policy->pack(given.codec, slot, &kind, &payload).ok());
    EXPECT_EQ(kind, expected);
    EXPECT_EQ(payload.size() < 2 * given.frame.size(), number != WPR_STORE_DISK);
    std::vector<float> got(given.frame.size());
    Codec other;
    ASSERT_TRUE(other.open(given.head, given.settings).ok());
    ASSERT_TRUE(other.expand_any(kind, payload, reinterpret_cast<std::byte*>(got.data())).ok());
    EXPECT_EQ(got, given.frame);
  }
}

TEST(StorePolicies, ACallerGetsItsOwnCodecAgain) {
  Given given;
  const auto borrowed = [&given] {
    CallerCodecs::Loan loan(given.callers);
    EXPECT_TRUE(loan.borrow().ok());
    return loan.operator->();
  };
  const Codec* mine = borrowed();
  EXPECT_EQ(borrowed(), mine);
  CallerCodecs::Loan kept(given.callers);
  ASSERT_TRUE(kept.borrow().ok());
  const Codec* other = nullptr;
  std::thread([&] { other = borrowed(); }).join();
  EXPECT_NE(other, mine);
  EXPECT_NE(borrowed(), mine);  // it is lent
  given.callers.configure(given.head, {.recipe = "no-codec", .engine = "", .options = {}});
  CallerCodecs::Loan more[2] = {CallerCodecs::Loan(given.callers),
                                CallerCodecs::Loan(given.callers)};
  ASSERT_TRUE(more[0].borrow().ok());
  EXPECT_EQ(more[1].borrow().code(), Code::kParameter);
}

}  // namespace
}  // namespace wirepress::store
