// SPDX-License-Identifier: Apache-2.0
// When a device will answer: it does one job after the other, at a rate, and answers a latency
// later. Both are learned from what is certain of an answer: it came between two polls.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace wirepress::compressdev {

// Times are seconds since any moment that stays the same. Ways are kinds of jobs whose rates differ
// (Job::way). Threads may share it.
template <size_t kWays>
class AnswerTime {
 public:
  // A job's place: in a period in which the device was never without a job.
  struct Place {
    uint64_t period = 0;
    size_t way = 0;
    double start = 0;                // of the period
    double bytes = 0, own = 0;       // raw, of the period's jobs to this one, and of this one
    double begin = 0, expected = 0;  // the answer: seconds from begin
  };

  // When a job of `size` raw bytes would be answered that came `now`: seconds from now.
  double expected(size_t way, size_t size, double now) const {
    const std::scoped_lock lock(mutex_);
    return std::max(0.0, free_at() - now) + alone(way, size);
  }
  // The same of a device without jobs, the least that it can be. Waits for no other thread.
  double alone(size_t way, size_t size) const {
    return answer(means_[way], static_cast<double>(size));
  }

  // Puts a job behind the others.
  Place enter(size_t way, size_t size, double now) {
    const std::scoped_lock lock(mutex_);
    const double free = free_at();
    if (free <= now || last_.way != way) {
      ++last_.period;
      last_.way = way;
      last_.start = std::max(free, now);
      last_.bytes = 0;
    }
    last_.own = std::max(1.0, static_cast<double>(size));
    last_.bytes += last_.own;
    last_.begin = now;
    last_.expected = last_.start + answer(means_[way], last_.bytes) - now;
    return last_;
  }

  // The device did not take it.
  void leave(const Place& place) {
    const std::scoped_lock lock(mutex_);
    if (place.period == last_.period) last_.bytes -= place.own;
  }

  // The answer came after `least` and before `most`. Where it was expected at another time, rate
  // and latency each take their part of the error, at once where the device was faster, and slowly
  // where it was slower, for a thread may have been stopped before the device had the job. The rest
  // is the period's alone, so that its other jobs do not correct the same again.
  void learn(const Place& place, double least, double most) {
    const std::scoped_lock lock(mutex_);
    Means& mean = means_[place.way];
    if (mean.service == 0) {
      mean.latency = (most - place.begin) / 2;
      mean.service = std::max(kLeast, mean.latency / place.own);
      return;
    }
    const bool lasts = place.period == last_.period;
    const double start = lasts ? last_.start : place.start;
    const double expects = start + answer(mean, place.bytes);
    const double wrong = std::clamp(expects, least, most) - expects;
    if (wrong == 0) return;
    const double most_more = expects - place.begin + 1e-6;
    const double error = wrong < 0 ? wrong / 2 : std::min(wrong, most_more) / 8;
    const double n = place.bytes / place.own, part = error / (1 + n * n);
    mean.latency = std::max(0.0, mean.latency + part);
    mean.service = std::max(kLeast, mean.service + part * n / place.own);
    if (lasts) last_.start = expects + wrong - answer(mean, place.bytes);
  }

  // What samples taught, which are too small to tell.
  void forget() {
    const std::scoped_lock lock(mutex_);
    for (Means& mean : means_) mean.latency = mean.service = 0;
    last_ = {};
  }

 private:
  struct Means {
    std::atomic<double> latency{0}, service{0};  // seconds, and seconds a raw byte; 0: not known
  };
  static constexpr double kLeast = 1e-15;

  static double answer(const Means& mean, double bytes) {
    return mean.latency + mean.service * bytes;
  }
  double free_at() const { return last_.start + means_[last_.way].service * last_.bytes; }

  mutable std::mutex mutex_;
  std::array<Means, kWays> means_{};
  Place last_{};  // that was taken
};

}  // namespace wirepress::compressdev
