// SPDX-License-Identifier: Apache-2.0
// Frames by tiles: the grid, every policy from several threads, and what is wrong.
#include "store/tiles.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "store/place.hpp"
#include "wirepress/store.h"

namespace wirepress::store {
namespace {

constexpr uint64_t kShape[3] = {13, 21, 18}, kTile[3] = {4, 8, 18};
constexpr size_t kRow = 25, kPlane = kRow * 23;  // the caller's memory has gaps
constexpr uint64_t kSteps = 12;
constexpr int kWorkers = 3;

Head head_of(std::initializer_list<uint64_t> shape) {
  Head head;
  head.dtype = WPR_FLOAT32;
  head.n_dims = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), head.shape);
  EXPECT_TRUE(measure(&head).ok());
  return head;
}

TEST(StoreGrid, EveryElementLiesInOneTile) {
  for (const auto& [shape, tile] :
       {std::pair<std::vector<uint64_t>, std::vector<uint64_t>>{{13, 21, 18}, {4, 8, 18}},
        {{5, 3, 4, 7}, {2, 2, 3, 4}},
        {{1000}, {7}},
        {{}, {}},
        {{300, 400, 200}, {0, 0, 0}}}) {
    Head head;
    head.dtype = WPR_UINT8;
    head.n_dims = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), head.shape);
    ASSERT_TRUE(measure(&head).ok());
    uint64_t extents[WPR_MAX_DIMS] = {};
    std::copy(tile.begin(), tile.end(), extents);
    Grid grid;
    ASSERT_TRUE(Grid::make(head, extents, &grid).ok());
    std::vector<std::byte> frame(head.raw_size), ones(grid.largest(), std::byte{1});
    uint64_t sum = 0;
    for (uint64_t i = 0; i < grid.n_tiles(); ++i) {
      const Tile here = grid.tile(i);
      sum += here.size;
      ASSERT_LE(here.size, grid.largest());
      copy_box(here.box, 1, ones.data(), packed(here.box, 1), frame.data() + here.offset,
               grid.strides());
    }
    EXPECT_EQ(sum, head.raw_size);
    EXPECT_EQ(frame, std::vector<std::byte>(head.raw_size, std::byte{1}));
    if (head.raw_size > 1 << 20) {
      EXPECT_LE(grid.largest(), 256u << 10);
      EXPECT_GT(grid.largest(), 64u << 10);
    }
  }
}

TEST(StoreGrid, RefusesTilesThatAreNone) {
  const Head head = head_of({10, 20});
  Grid grid;
  for (const auto& tile : {std::pair<uint64_t, uint64_t>{11, 20}, {10, 21}, {0, 5}, {5, 0}}) {
    const uint64_t extents[WPR_MAX_DIMS] = {tile.first, tile.second};
    EXPECT_EQ(Grid::make(head, extents, &grid).code(), Code::kParameter);
  }
  const uint64_t one[WPR_MAX_DIMS] = {1, 1};
  EXPECT_EQ(Grid::make(head_of({2000, 2000}), one, &grid).code(), Code::kParameter);  // too many
}

// No change of a payload's table is read beyond the payload, nor believed where it cannot be.
TEST(StoreGrid, APayloadIsNotTrusted) {
  const Head head = head_of({4, 6});
  const uint64_t extents[WPR_MAX_DIMS] = {2, 6};
  Grid grid;
  ASSERT_TRUE(Grid::make(head, extents, &grid).ok());
  std::vector<std::byte> payload(tiles_head_size(grid.n_tiles()) + 20);
  write_tiles_head(grid, payload.data());
  write_tile_entry(0, tiles_head_size(2), 9, payload.data());
  write_tile_entry(1, tiles_head_size(2) + 9, 11, payload.data());
  std::vector<ConstBytes> tiles;
  Grid found;
  ASSERT_TRUE(read_tiles(payload, head, &found, &tiles).ok());
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[1].size(), 11u);
  EXPECT_TRUE(found == grid);
  for (size_t size = 0; size < payload.size(); ++size)
    EXPECT_EQ(read_tiles({payload.data(), size}, head, &found, &tiles).code(), Code::kCorrupt)
        << size;
  for (size_t bit = 0; bit < 8 * tiles_head_size(2); ++bit) {
    auto flipped = payload;
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    if (!read_tiles(flipped, head, &found, &tiles).ok()) continue;
    for (const ConstBytes tile : tiles) {
      ASSERT_GE(tile.data(), flipped.data());
      ASSERT_LE(tile.data() + tile.size(), flipped.data() + flipped.size());
    }
  }
}

TEST(StorePlace, NodesOfThisMachine) {
  const int none[] = {1000};
  EXPECT_EQ(check_nodes(none).code(), Code::kParameter);
  if (!std::filesystem::exists("/sys/devices/system/node/node0/cpulist"))
    GTEST_SKIP() << "this kernel shows no NUMA nodes";
  cpu_set_t cores;
  ASSERT_TRUE(cores_of_node(0, &cores).ok());
  EXPECT_GT(CPU_COUNT(&cores), 0);
  std::vector<char> memory(1 << 20);
  prefer_node(memory.data(), memory.size(), 0);
  memory.assign(memory.size(), 1);
}

// ---- the store ----------------------------------------------------------------------------

// A worker's view of its memory: a field with gaps between rows and planes.
std::vector<float> field_of(uint64_t step) {
  std::vector<float> field(kShape[0] * kPlane);
  for (size_t i = 0; i < field.size(); ++i)
    field[i] = std::sin(static_cast<float>(i * (step + 1)) / 300) * static_cast<float>(step + 1);
  return field;
}

constexpr uint64_t kStrides[3] = {4 * kPlane, 4 * kRow, 4};

class Tiles : public testing::TestWithParam<wpr_store_policy> {
 protected:
  void SetUp() override {
    path_ =
        std::filesystem::temp_directory_path() / ("wirepress-tiles-" + std::to_string(::getpid()));
    std::filesystem::remove(path_);
  }
  void TearDown() override {
    wpr_store_free(store_);
    std::filesystem::remove(path_);
  }
  wpr_store_config config(wpr_store_policy policy) const {
    wpr_store_config config = {};
    config.dtype = WPR_FLOAT32;
    config.n_dims = 3;
    std::copy_n(kShape, 3, config.shape);
    std::copy_n(kTile, 3, config.tile);
    config.policy = policy;
    config.recipe = "bx:m=23";
    return config;
  }
  void create(const wpr_store_config& config) {
    ASSERT_EQ(wpr_store_create(path_.c_str(), &config, &store_), WPR_OK) << wpr_store_error(store_);
  }
  void reopen(const wpr_store_config* config) {
    wpr_store_free(store_);
    store_ = nullptr;
    ASSERT_EQ(wpr_store_open(path_.c_str(), 0, config, &store_), WPR_OK) << wpr_store_error(store_);
  }
  uint64_t n_tiles() {
    wpr_store_info info;
    wpr_store_get_info(store_, &info);
    return info.n_tiles;
  }
  wpr_store_tile tile(uint64_t i) {
    wpr_store_tile tile;
    EXPECT_EQ(wpr_store_tile_at(store_, i, &tile), WPR_OK);
    return tile;
  }
  static size_t cell(const wpr_store_tile& tile) {
    return tile.first[0] * kPlane + tile.first[1] * kRow + tile.first[2];
  }
  void put(uint64_t step, uint64_t i, const std::vector<float>& field) {
    ASSERT_EQ(wpr_store_put_tile(store_, step, i, field.data() + cell(tile(i)), kStrides), WPR_OK)
        << wpr_store_error(store_);
  }
  void get(uint64_t step, uint64_t i, std::vector<float>* field) {
    ASSERT_EQ(wpr_store_get_tile(store_, step, i, field->data() + cell(tile(i)), kStrides), WPR_OK)
        << wpr_store_error(store_);
  }
  // What is in the box of the frame; gaps do not count.
  static void expect_field(const std::vector<float>& got, uint64_t step) {
    const auto expected = field_of(step);
    for (size_t z = 0; z < kShape[0]; ++z) {
      for (size_t y = 0; y < kShape[1]; ++y) {
        const size_t at = z * kPlane + y * kRow;
        ASSERT_EQ(0, std::memcmp(&got[at], &expected[at], 4 * kShape[2])) << step << " " << z;
      }
    }
  }
  void expect_whole_frames() {
    std::vector<float> frame(kShape[0] * kShape[1] * kShape[2]);
    for (uint64_t step = 0; step < kSteps; ++step) {
      ASSERT_EQ(wpr_store_get(store_, step, frame.data(), 4 * frame.size()), WPR_OK)
          << wpr_store_error(store_);
      const auto expected = field_of(step);
      for (size_t i = 0; i < frame.size(); ++i) {
        const size_t x = i % kShape[2], y = i / kShape[2] % kShape[1],
                     z = i / kShape[2] / kShape[1];
        ASSERT_EQ(frame[i], expected[z * kPlane + y * kRow + x]);
      }
    }
  }
  // Workers share the tiles of each step and meet; forward they put, backward they get.
  void work(bool forward) {
    std::barrier barrier(kWorkers);
    std::vector<std::vector<float>> fields(kSteps, std::vector<float>(kShape[0] * kPlane));
    std::vector<std::thread> workers;
    for (int worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&, worker] {
        for (uint64_t i = 0; i < kSteps; ++i) {
          const uint64_t step = forward ? i : kSteps - 1 - i;
          const auto field = field_of(step);
          for (uint64_t t = static_cast<uint64_t>(worker); t < n_tiles(); t += kWorkers) {
            if (forward) {
              put(step, t, field);
            } else {
              get(step, t, &fields[step]);
            }
          }
          barrier.arrive_and_wait();
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (uint64_t step = 0; step < kSteps && !forward; ++step) expect_field(fields[step], step);
  }

  std::string path_;
  wpr_store* store_ = nullptr;
};

TEST_P(Tiles, WorkersPutAndGetInReverse) {
  create(config(GetParam()));
  ASSERT_EQ(n_tiles(), 4u * 3);
  work(true);
  work(false);
  expect_whole_frames();
  wpr_store_stats stats;
  wpr_store_get_stats(store_, &stats);
  EXPECT_EQ(stats.puts, kSteps);
  EXPECT_EQ(stats.dropped, 0u);
  EXPECT_GE(stats.read_ahead, GetParam() == WPR_STORE_MEMORY ? 0 : kSteps / 2);
  ASSERT_EQ(wpr_store_close(store_), WPR_OK) << wpr_store_error(store_);
  if (GetParam() == WPR_STORE_MEMORY) return;
  reopen(nullptr);  // whoever reads needs no policy
  expect_whole_frames();
  work(false);
  auto other = config(WPR_STORE_IN_WORKER);  // nor the same tiles
  other.tile[0] = 13;
  reopen(&other);
  ASSERT_EQ(n_tiles(), 3u);
  work(false);
  expect_whole_frames();
}

TEST_P(Tiles, WholeFramesAndTilesAreTheSame) {
  create(config(GetParam()));
  std::vector<float> frame(kShape[0] * kShape[1] * kShape[2]);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const auto field = field_of(step);
    for (size_t row = 0; row < kShape[0] * kShape[1]; ++row)
      std::copy_n(&field[row / kShape[1] * kPlane + row % kShape[1] * kRow], kShape[2],
                  &frame[row * kShape[2]]);
    ASSERT_EQ(wpr_store_put(store_, step, frame.data(), 4 * frame.size()), WPR_OK)
        << wpr_store_error(store_);
  }
  work(false);
  expect_whole_frames();
}

// Callers that update a frame of before have begun as many frames as there are buffers.
TEST_P(Tiles, AFrameIsGotWhileAllBuffersArePutTo) {
  constexpr uint64_t kBuffers = 4;
  create(config(GetParam()));
  for (uint64_t step = 0; step < kBuffers; ++step)
    for (uint64_t t = 0; t < n_tiles(); ++t) put(step, t, field_of(step));
  ASSERT_EQ(wpr_store_sync(store_), WPR_OK);
  std::vector<std::vector<float>> got(kBuffers, std::vector<float>(kShape[0] * kPlane));
  for (uint64_t t = 0; t < n_tiles(); ++t) {
    for (uint64_t step = 0; step < kBuffers; ++step) {
      get(step, t, &got[step]);
      if (t + 1 < n_tiles()) put(step + kBuffers, t, field_of(step + kBuffers));
    }
  }
  for (uint64_t step = 0; step < kBuffers; ++step) {
    expect_field(got[step], step);
    put(step + kBuffers, n_tiles() - 1, field_of(step + kBuffers));
  }
  EXPECT_EQ(wpr_store_close(store_), WPR_OK) << wpr_store_error(store_);
}

TEST_P(Tiles, AnIncompleteFrameIsNone) {
  create(config(GetParam()));
  const auto field = field_of(0);
  for (uint64_t t = 0; t < n_tiles(); ++t) put(0, t, field);
  put(1, 5, field);
  EXPECT_EQ(wpr_store_put_tile(store_, 1, 5, field.data(), kStrides), WPR_PARAMETER);  // twice
  std::vector<float> got(field.size());
  EXPECT_EQ(wpr_store_get_tile(store_, 1, 5, got.data(), kStrides), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_store_error(store_)).find("1 of 12"), std::string::npos)
      << wpr_store_error(store_);
  EXPECT_EQ(wpr_store_put_tile(store_, 2, 12, field.data(), kStrides), WPR_PARAMETER);
  EXPECT_EQ(wpr_store_put_tile(store_, 0, 1, field.data(), kStrides), WPR_PARAMETER);
  constexpr uint64_t kGaps[3] = {4 * kPlane, 4 * kRow, 8};
  EXPECT_EQ(wpr_store_put_tile(store_, 1, 1, field.data(), kGaps), WPR_PARAMETER);
  ASSERT_EQ(wpr_store_sync(store_), WPR_OK) << wpr_store_error(store_);  // does not wait for it
  EXPECT_EQ(wpr_store_close(store_), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_store_error(store_)).find("step 1 is lost"), std::string::npos);
  if (GetParam() == WPR_STORE_MEMORY) return;
  reopen(nullptr);
  wpr_store_info info;
  wpr_store_get_info(store_, &info);
  EXPECT_EQ(info.n_frames, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, Tiles,
                         testing::Values(WPR_STORE_MEMORY, WPR_STORE_DISK, WPR_STORE_COMPRESSED,
                                         WPR_STORE_IN_WORKER));

using InWorker = Tiles;

TEST_P(InWorker, NoFlippedBitMakesAWrongFrame) {
  auto small = config(WPR_STORE_IN_WORKER);
  const uint64_t shape[3] = {2, 3, 4}, tile[3] = {1, 3, 4};
  std::copy_n(shape, 3, small.shape);
  std::copy_n(tile, 3, small.tile);
  create(small);
  std::vector<float> frame(24, 1.5F), got(24);
  for (uint64_t step = 0; step < 3; ++step) {
    frame[step] = static_cast<float>(step);
    ASSERT_EQ(wpr_store_put(store_, step, frame.data(), 96), WPR_OK);
  }
  ASSERT_EQ(wpr_store_close(store_), WPR_OK);
  wpr_store_free(store_);
  store_ = nullptr;
  std::ifstream in(path_, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  for (size_t at = 72; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    std::ofstream(path_, std::ios::binary) << damaged;
    reopen(nullptr);
    size_t n = 0;
    for (uint64_t step = 0; step < 3; ++step) {
      if (wpr_store_get(store_, step, got.data(), 96) != WPR_OK) continue;
      ++n;
      std::vector<float> expected(24, 1.5F);
      for (uint64_t i = 0; i <= step; ++i) expected[i] = static_cast<float>(i);
      ASSERT_EQ(got, expected) << at;
    }
    ASSERT_GE(n, 2u) << at;
  }
}

TEST_P(InWorker, OptionsAndEnginesAreTaken) {
  auto wrong = config(WPR_STORE_IN_WORKER);
  const char* options[] = {"block_size", "3"};
  wrong.options = options;
  wrong.n_options = 2;
  EXPECT_EQ(wpr_store_create(path_.c_str(), &wrong, &store_), WPR_PARAMETER);
  EXPECT_NE(std::string(wpr_store_error(store_)).find("block_size"), std::string::npos);
  wpr_store_free(store_);
  store_ = nullptr;
  wrong = config(WPR_STORE_COMPRESSED);
  wrong.engine = "abacus";
  EXPECT_EQ(wpr_store_create(path_.c_str(), &wrong, &store_), WPR_PARAMETER);
  wpr_store_free(store_);
  store_ = nullptr;
  EXPECT_FALSE(std::filesystem::exists(path_));
  auto right = config(WPR_STORE_IN_WORKER);
  right.engine = "cpu:scalar";
  options[1] = "4KiB";
  right.options = options;
  right.n_options = 2;
  const int node = 0;
  right.nodes = &node;
  right.n_nodes = std::filesystem::exists("/sys/devices/system/node/node0/cpulist") ? 1 : 0;
  create(right);
  work(true);
  work(false);
}

INSTANTIATE_TEST_SUITE_P(One, InWorker, testing::Values(WPR_STORE_IN_WORKER));

}  // namespace
}  // namespace wirepress::store
