// SPDX-License-Identifier: Apache-2.0
// The test kit's device: right answers by the cores' libraries behind the table of a device, with
// faults.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "engines/compressdev/cores_work.hpp"

namespace wirepress::compressdev {

enum class Fault {
  kNone,
  kDelay,       // answers after some polls
  kReorder,     // an answer with another tag comes first
  kLose,        // a job has no answer
  kRepeat,      // an answer comes twice
  kRefuse,      // takes no job
  kLieFailed,   // an error for right bytes
  kLieDone,     // success for nothing
  kLieLength,   // says more bytes than there are
  kTruncate,    // success for a part
  kStop,        // never answers again
  kWrongBytes,  // success, of the right size
};
inline constexpr int kFaults = 12;

// For one thread.
class FaultyDevice {
 public:
  // Faults are drawn by `seed` from `faults`, one in `every` jobs after the first `n_good`.
  FaultyDevice(std::vector<Fault> faults, unsigned every, unsigned seed, int n_good = 0)
      : faults_(std::move(faults)), every_(every), random_(seed), n_good_(n_good) {}

  static wpr_device_table table() { return {nullptr, open, submit, poll, close, nullptr}; }
  wpr_device_info info() {
    constexpr size_t kMost = 1 << 20;
    return {
        "faulty", "test kit", 15, {{kMost, kMost}, {0, kMost}}, {{2 * kMost, kMost}, {0, kMost}},
        this};
  }
  bool closed() const { return closed_; }
  int touched_after_close() const { return touched_after_close_; }

 private:
  struct Queue {
    FaultyDevice* device;
    std::vector<std::byte> memory;
    std::deque<wpr_device_answer> answers;
    int delay = 0;
  };

  static void* open(void* self) {
    auto* device = static_cast<FaultyDevice*>(self);
    device->queues_.push_back(std::make_unique<Queue>(Queue{device, {}, {}, 0}));
    return device->queues_.back().get();
  }
  static void close(void* self) { static_cast<FaultyDevice*>(self)->closed_ = true; }

  static int submit(void* state, const wpr_device_job* job) {
    auto* queue = static_cast<Queue*>(state);
    return queue->device->take(queue, *job);
  }

  static int poll(void* state, wpr_device_answer* answer) {
    auto* queue = static_cast<Queue*>(state);
    if (queue->delay > 0 && queue->delay-- > 0) return 0;
    if (queue->answers.empty()) return 0;
    *answer = queue->answers.front();
    queue->answers.pop_front();
    return 1;
  }

  Fault draw() {
    if (stopped_) return Fault::kLose;
    if (n_good_ > 0 && n_good_-- > 0) return Fault::kNone;
    if (faults_.empty() || random_() % every_ != 0) return Fault::kNone;
    const Fault fault = faults_[random_() % faults_.size()];
    stopped_ = fault == Fault::kStop;
    return fault;
  }

  int take(Queue* queue, const wpr_device_job& job) {
    if (closed_) ++touched_after_close_;
    const Fault fault = draw();
    if (fault == Fault::kRefuse) return -1;
    queue->memory.assign(job.room, std::byte{0xEE});
    wpr_device_answer answer = work(queue, job);
    spoil(fault, queue, job, &answer);
    return 1;
  }

  static wpr_device_answer work(Queue* queue, const wpr_device_job& job) {
    const CoresWork work = work_on_cores(job, queue->memory.data());
    return {job.tag, work.status, work.consumed, work.produced, queue->memory.data()};
  }

  void spoil(Fault fault, Queue* queue, const wpr_device_job& job, wpr_device_answer* answer) {
    switch (fault) {
      case Fault::kLose:
      case Fault::kStop:
        return;
      case Fault::kDelay:
        queue->delay = 1 + static_cast<int>(random_() % 50);
        break;
      case Fault::kReorder:  // one of a job that nobody waits for, with other bytes
        queue->answers.push_back(*answer);
        queue->answers.back().tag += 1 + random_() % 9;
        break;
      case Fault::kLieFailed:
        answer->status = 3;
        break;
      case Fault::kLieDone:
        *answer = {job.tag, 0, 0, 0, queue->memory.data()};
        break;
      case Fault::kLieLength:
        answer->produced = job.room + 1 + random_() % 1000;
        break;
      case Fault::kTruncate:
        answer->produced -= std::min<size_t>(answer->produced, 1 + random_() % 20);
        answer->consumed -= random_() % 2;
        break;
      case Fault::kWrongBytes:
        if (answer->produced != 0) queue->memory[random_() % answer->produced] ^= std::byte{0x10};
        break;
      default:
        break;
    }
    queue->answers.push_back(*answer);
    if (fault == Fault::kRepeat) queue->answers.push_back(*answer);
  }

  std::vector<Fault> faults_;
  unsigned every_;
  std::mt19937 random_;
  int n_good_;
  std::vector<std::unique_ptr<Queue>> queues_;
  bool stopped_ = false, closed_ = false;
  int touched_after_close_ = 0;
};

}  // namespace wirepress::compressdev
