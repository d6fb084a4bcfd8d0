// SPDX-License-Identifier: Apache-2.0
// The catalogue of steps, and which way a reader of them goes.
#include "store/catalogue.hpp"

#include <gtest/gtest.h>

#include "store/read_ahead.hpp"

namespace wirepress::store {
namespace {

using Steps = std::vector<uint64_t>;

Catalogue catalogue_of(const Steps& steps) {
  Catalogue catalogue;
  for (const uint64_t step : steps) {
    Entry& entry = catalogue[step];
    entry.place = Entry::Place::kFile;
    entry.offset = 100 * step;
    entry.stored_size = 44;
  }
  return catalogue;
}

TEST(StoreCatalogue, NeighboursAreNearestFirst) {
  const Catalogue catalogue = catalogue_of({1, 5, 6, 20, 30});
  EXPECT_EQ(catalogue.neighbours(6, 1, 9), (Steps{20, 30}));
  EXPECT_EQ(catalogue.neighbours(6, -1, 9), (Steps{5, 1}));
  EXPECT_EQ(catalogue.neighbours(6, -1, 1), Steps{5});
  EXPECT_EQ(catalogue.neighbours(30, 1, 9), Steps{});
  EXPECT_EQ(catalogue.neighbours(1, -1, 9), Steps{});
  EXPECT_EQ(catalogue.neighbours(7, 1, 9), Steps{});  // no step of it
  EXPECT_EQ(catalogue.direction(6, 20), 1);
  EXPECT_EQ(catalogue.direction(6, 5), -1);
  EXPECT_EQ(catalogue.direction(6, 30), 0);
  EXPECT_EQ(catalogue.direction(6, 6), 0);
}

TEST(StoreCatalogue, AnIndexNamesWhatIsInTheFile) {
  Catalogue catalogue = catalogue_of({3, 1, 2});
  catalogue[2].place = Entry::Place::kMemory;
  catalogue[4];  // pending
  const auto index = catalogue.in_file();
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index[0].step, 1u);
  EXPECT_EQ(index[1].offset, 300u);
  EXPECT_EQ(catalogue.find(1)->end(), 100 + kRecordSize + 44);
  catalogue.erase(1);
  EXPECT_EQ(catalogue.find(1), nullptr);
  EXPECT_FALSE(catalogue.has(1));
  EXPECT_EQ(catalogue.size(), 3u);
}

TEST(StoreReadAhead, TwoNeighboursSayTheDirection) {
  const Catalogue catalogue = catalogue_of({1, 2, 3, 4, 5});
  ReadAhead reader;
  reader.follow(catalogue, 5);
  EXPECT_EQ(reader.direction(), 0);
  reader.follow(catalogue, 4);
  EXPECT_EQ(reader.direction(), -1);
  EXPECT_FALSE(reader.is_new(4));
  reader.follow(catalogue, 4);  // the next tile of it
  EXPECT_EQ(reader.direction(), -1);
  EXPECT_TRUE(reader.is_new(5));
  reader.follow(catalogue, 5);
  EXPECT_EQ(reader.direction(), 1);
  reader.follow(catalogue, 2);  // a jump
  EXPECT_EQ(reader.direction(), 0);
  EXPECT_EQ(reader.last(), 2u);
}

TEST(StoreReadAhead, AGetBehindAPrefetchDoesNotTurnRound) {
  const Catalogue catalogue = catalogue_of({1, 2, 3, 4, 5});
  ReadAhead reader;
  reader.follow(catalogue, 4);
  reader.turn(-1);
  reader.follow(catalogue, 5);
  EXPECT_EQ(reader.direction(), -1);
  reader.follow(catalogue, 4);
  EXPECT_EQ(reader.direction(), -1);
}

}  // namespace
}  // namespace wirepress::store
