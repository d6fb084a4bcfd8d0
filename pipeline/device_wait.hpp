// SPDX-License-Identifier: Apache-2.0
// What workers share that bring blocks to a device and work on others meanwhile.
#pragma once

#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace wirepress {

// Room for one more block that the device has. A thread of the pool must not throw: without memory
// the block is done here.
template <class Begun>
bool has_room(std::vector<Begun>* begun) {
  constexpr size_t kMost = 64;
  try {
    if (begun->capacity() == 0) begun->reserve(kMost);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return begun->size() < begun->capacity();
}

// How a worker waits for the device when it has nothing else to do: it asks again and again while
// the device should be near its answer. Then other workers may have work for the core. A worker
// without others goes on asking, for it would only wake late; but other programs may come first
// where the answer is long in coming, for on a busy machine each turn of theirs takes milliseconds.
class DeviceWait {
 public:
  explicit DeviceWait(bool alone) : alone_(alone) {}
  void turn() {
    const int turn = turns_ < kAlone ? turns_++ : turns_;
    if (alone_ && turn < kAlone) return;
    if (alone_ || turn < kTurns)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
  void answered() { turns_ = 0; }

 private:
  static constexpr int kTurns = 100, kAlone = 2000;  // one takes 0.1 us, and more by other programs
  static constexpr auto kNap = std::chrono::microseconds(20);
  const bool alone_;
  int turns_ = 0;
};

}  // namespace wirepress
