// SPDX-License-Identifier: Apache-2.0
// A device that is not there: its jobs are done by the cores' libraries, and their answers come
// when the device would have given them. It remembers codes, so that a message which comes again
// costs the cores a copy: its rate is then the published one, whatever the cores are.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engines/compressdev/cores_work.hpp"
#include "engines/compressdev/published.hpp"

namespace wirepress::compressdev {

class VirtualDevice {
 public:
  using Clock = std::chrono::steady_clock;

  explicit VirtualDevice(const Published& published) : published_(published) {}

  static wpr_device_table table() {
    return {.describe = nullptr,
            .open = open,
            .submit = submit,
            .poll = poll,
            .close = [](void*) {},
            .tell = tell};
  }

  wpr_device_info info(const char* name) {
    wpr_device_info info = {};
    std::snprintf(info.name, sizeof info.name, "%s", name);
    std::snprintf(info.driver, sizeof info.driver, "virtual: %s by its published rates",
                  published_.device);
    info.window_log = 15;
    for (int way = 0; way < 2; ++way) {
      fill(published_.deflate[way], WPR_DEVICE_DEFLATE, way, &info);
      fill(published_.lz4[way], WPR_DEVICE_LZ4, way, &info);
    }
    info.device = this;
    return info;
  }

 private:
  struct Known {
    std::vector<std::byte> src, answer;
  };
  struct Queue {
    VirtualDevice* device;
    std::vector<std::byte> memory{};
    std::shared_ptr<const Known> known{};  // what the answer lies in, in place of memory
    wpr_device_answer answer{};
    Clock::time_point done{};
    bool waits = false;
  };
  static constexpr size_t kMostQueues = 64, kMostKnown = 256 << 20;

  static void fill(const Published::Way& way, int algorithm, int direction, wpr_device_info* info) {
    info->max_src[algorithm][direction] = way.most_size;
    info->max_dst[algorithm][direction] = way.most_size;
  }

  static void* open(void* self) {
    auto* device = static_cast<VirtualDevice*>(self);
    if (device->queues_.size() == kMostQueues) return nullptr;
    device->queues_.push_back(std::make_unique<Queue>(Queue{device}));
    return device->queues_.back().get();
  }

  static int submit(void* state, const wpr_device_job* job) {
    auto* queue = static_cast<Queue*>(state);
    return queue->device->take(queue, *job);
  }

  static int poll(void* state, wpr_device_answer* answer) {
    auto* queue = static_cast<Queue*>(state);
    if (!queue->waits || Clock::now() < queue->done) return 0;
    queue->waits = false;
    *answer = queue->answer;
    return 1;
  }

  static void tell(void* self, char* text, size_t size) {
    auto* device = static_cast<VirtualDevice*>(self);
    const std::scoped_lock lock(device->mutex_);
    std::snprintf(text, size, "%llu of its answers came later than by its rate",
                  static_cast<unsigned long long>(device->late_));
  }

  int take(Queue* queue, const wpr_device_job& job) {
    const auto arrival = Clock::now();
    try {
      if (!recall(job, queue)) {
        queue->memory.resize(job.room);
        const CoresWork work = work_on_cores(job, queue->memory.data());
        queue->answer = {job.tag, work.status, work.consumed, work.produced, queue->memory.data()};
        if (work.status == 0) remember(job, *queue);
      }
    } catch (const std::bad_alloc&) {
      return -1;
    }
    keep_time(job, arrival, queue);
    return 1;
  }

  // The device does one job after the other.
  void keep_time(const wpr_device_job& job, Clock::time_point arrival, Queue* queue) {
    const bool compresses = job.direction == WPR_DEVICE_COMPRESS;
    const Published::Way* ways =
        job.algorithm == WPR_DEVICE_LZ4 ? published_.lz4 : published_.deflate;
    const size_t raw_size = compresses ? job.src_size : queue->answer.produced;
    const double busy = static_cast<double>(raw_size) / ways[job.direction].rate;
    const std::scoped_lock lock(mutex_);
    free_ = std::max(arrival, free_) + in_ticks(busy);
    queue->done = free_ + in_ticks(published_.latency);
    queue->waits = true;
    late_ += Clock::now() > queue->done;
  }

  static Clock::duration in_ticks(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // The end of a code tells it from others well enough: all of it is compared.
  static uint64_t key_of(const wpr_device_job& job) {
    const size_t n =
        job.direction == WPR_DEVICE_COMPRESS ? job.src_size : std::min<size_t>(job.src_size, 512);
    const auto* end = static_cast<const std::byte*>(job.src) + job.src_size;
    return static_cast<uint64_t>(job.algorithm * 2 + job.direction) << 62 |
           static_cast<uint64_t>(job.src_size) << 32 | libdeflate_crc32(0, end - n, n);
  }

  bool recall(const wpr_device_job& job, Queue* queue) {
    const uint64_t key = key_of(job);
    queue->known = nullptr;
    {
      const std::scoped_lock lock(known_mutex_);
      if (const auto found = known_.find(key); found != known_.end()) queue->known = found->second;
    }
    if (queue->known == nullptr) return false;
    const auto& [src, answer] = *queue->known;
    if (src.size() != job.src_size || answer.size() > job.room ||
        std::memcmp(src.data(), job.src, job.src_size) != 0)
      return false;
    queue->answer = {job.tag, 0, job.src_size, answer.size(), answer.data()};
    return true;
  }

  // What does not fit any more makes it forget all.
  void remember(const wpr_device_job& job, const Queue& queue) {
    if (queue.answer.consumed != job.src_size) return;
    const auto* src = static_cast<const std::byte*>(job.src);
    auto known = std::make_shared<const Known>(
        Known{{src, src + job.src_size},
              {queue.memory.data(), queue.memory.data() + queue.answer.produced}});
    const size_t size = job.src_size + queue.answer.produced;
    const std::scoped_lock lock(known_mutex_);
    if (known_size_ + size > kMostKnown) known_.clear(), known_size_ = 0;
    known_.insert_or_assign(key_of(job), std::move(known));
    known_size_ += size;
  }

  const Published published_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::mutex mutex_;          // of free_ and late_
  Clock::time_point free_{};  // when the device has done all that it was given
  uint64_t late_ = 0;
  std::mutex known_mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const Known>> known_;
  size_t known_size_ = 0;
};

}  // namespace wirepress::compressdev
