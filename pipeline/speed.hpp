// SPDX-License-Identifier: Apache-2.0
// The calibration of this process, and what its measurements share. Measures what it has not.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pipeline/auto.hpp"

namespace wirepress {

// Data of all kinds, and blocks that rotate over more memory than most caches have, as those of
// frames do. Made when they are asked for.
class Workbench {
 public:
  static constexpr size_t kBlocks = 32, kBlock = 512 << 10;
  // A block of the kind, of elements of that type.
  ConstBytes data(size_t kind, DType dtype);
  // All raw blocks become `data` again and again.
  void fill(ConstBytes data);
  Bytes raw(size_t i) { return Bytes(far_).subspan(i * kBlock, kBlock); }
  Bytes back(size_t i) { return raw(kBlocks + i); }
  Bytes code(size_t i) { return Bytes(far_).subspan(2 * kBlocks * kBlock + i * kRoom, kRoom); }
  // Seconds a byte of a step for each block: the fifth fastest, so that what else the machine does
  // meanwhile counts little.
  template <typename Step>
  static double seconds(Step step) {
    std::array<double, kBlocks> each;
    for (size_t i = 0; i < kBlocks; ++i) {
      const double begin = thread_seconds();
      step(i);
      each[i] = thread_seconds() - begin;
    }
    std::ranges::nth_element(each, each.begin() + kRank);
    return each[kRank] / static_cast<double>(kBlock);
  }

 private:
  static constexpr size_t kRank = 4;
  static constexpr size_t kRoom = kBlock + kBlock / 2;
  DType dtype_ = DType::kBytes;
  std::vector<std::vector<std::byte>> data_;
  std::vector<std::byte> far_;
};

// What data in caches take: the least of two turns, or of up to eight in so many seconds.
bool measure(Chain& chain, ConstBytes raw, Bytes code, Bytes back, double seconds,
             Speed::Point* point);
const Speed& speed_of(const Recipe& recipe, const std::string& text, Workbench* bench);
// Dense gradients, as recipes are calibrated on them; kBlock bytes that stay.
ConstBytes dense_block(DType dtype);
// How long the machine takes now, by what it took when this process began to calibrate: others
// share its cores, and their clock changes. A check says what a calibrated time became.
double machine_pace();
void check_pace(double share);
double copy_speed(Workbench* bench);  // seconds a byte of memcpy
double hash_speed();                  // seconds a byte of a block's checksum

}  // namespace wirepress
