// SPDX-License-Identifier: Apache-2.0
// A driver may report success for wrong lengths, answer late, twice or never. So an answer counts
// by its tag, its lengths are compared, and bytes are copied out of the module's memory only then:
// a late device never writes into the caller's.
#include "engines/compressdev/device.hpp"

#include <unistd.h>

#include <cstring>
#include <thread>

namespace wirepress::compressdev {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr auto kNap = std::chrono::microseconds(20);  // between polls, where the cores have work

// A mean in which the last eight jobs count most. A job lost to a race of threads harms nothing.
void learn(std::atomic<double>* mean, size_t size, Device::Duration time) {
  const double now = Seconds(time).count() / static_cast<double>(std::max<size_t>(size, 1));
  *mean = *mean == 0 ? now : *mean + (now - *mean) / 8;
}

constexpr const char* kReasonTexts[kReasons] = {
    "none",
    "the device does not work in this direction",
    "the device does not tell where a code ends, and the format has no sum",
    "the job or its answer is above the device's limit",
    "every queue of the device has a job",
    "the device took no job",
    "the device reported an error",
    "the device reported success for a part",
    "the device's code does not fit",
    "the device did not answer before the deadline",
    "the device is off, after a timeout or wrong bytes",
    "the device belongs to the parent process",
    "blocks are divided, and it was the cores' turn",
};

}  // namespace

const char* reason_text(Reason reason) { return kReasonTexts[static_cast<size_t>(reason)]; }

Device::Device(const wpr_device_table& table, const wpr_device_info& info, Duration deadline)
    : table_(table), info_(info), deadline_(deadline), owner_(getpid()) {
  idle_.reserve(64);  // give_back must not fail
}

bool Device::probe() noexcept {
  const bool good = sample_works();
  for (auto& count : jobs_) count = 0;
  for (auto& count : bytes_) count = 0;
  return good;
}

bool Device::sample_works() noexcept {
  std::byte raw[4096], code[8192], again[4096];
  for (size_t i = 0; i < sizeof raw; ++i) raw[i] = static_cast<std::byte>(i / 7 % 50);
  const auto& limits = info_.max_src;
  if (limits[WPR_DEVICE_COMPRESS] == 0 || limits[WPR_DEVICE_EXPAND] == 0) return true;
  size_t size = 0, back = 0;
  if (run(Direction::kCompress, true, raw, code, &size) != Reason::kNone) return false;
  for (const bool tells : {true, false}) {
    tells_end_ = tells;
    if (run(Direction::kExpand, true, ConstBytes(code).first(size), again, &back) == Reason::kNone)
      return std::memcmp(raw, again, sizeof raw) == 0;
  }
  return false;
}

Reason Device::run(Direction direction, bool has_sum, ConstBytes src, Bytes dst,
                   size_t* written) noexcept {
  Reason reason = Reason::kForked;
  if (getpid() == owner_) {
    ++inside_;
    reason = attempt(direction, has_sum, src, dst, written);
    leave();
  }
  ++jobs_[static_cast<size_t>(reason)];
  if (reason != Reason::kNone) return reason;
  bytes_[static_cast<size_t>(direction)] +=
      direction == Direction::kCompress ? src.size() : dst.size();
  return reason;
}

void Device::switch_off() noexcept {
  ++inside_;
  off_ = true;
  leave();
}

void Device::leave() noexcept {
  if (--inside_ == 0 && off_ && !closed_.exchange(true)) table_.close(info_.device);
}

Reason Device::attempt(Direction direction, bool has_sum, ConstBytes src, Bytes dst,
                       size_t* written) {
  if (off_) return Reason::kOff;
  const Reason refusal = limit(direction, has_sum, src.size(), dst.size());
  if (refusal != Reason::kNone) return refusal;
  const auto way = static_cast<size_t>(direction);
  if (divided_ && !pays(way)) return Reason::kDivided;
  void* queue = take();
  if (queue == nullptr) return Reason::kBusy;
  const size_t pad = direction == Direction::kExpand && tells_end_ ? WPR_DEVICE_PAD : 0;
  const wpr_device_job job = {++tag_,     static_cast<int>(direction),
                              src.data(), src.size(),
                              pad,        std::min(dst.size(), info_.max_dst[way])};
  ++waiting_;
  const auto begin = Clock::now();
  const Reason reason = exchange(queue, job, dst, written);
  learn(&device_time_[way], direction == Direction::kCompress ? src.size() : dst.size(),
        Clock::now() - begin);
  --waiting_;
  if (reason == Reason::kTimeout)
    off_ = true;  // the queue's memory stays with the device
  else
    give_back(queue);
  return reason;
}

// What the device takes for a job grows with the jobs that it has; the mean knows those it had.
bool Device::pays(size_t way) noexcept {
  if (waiting_ >= kDepth) return false;
  const double device = device_time_[way], cores = cores_time_[way];
  if (device == 0 || cores == 0 || device <= kMostBlocks * cores) return true;
  return ++declined_ % kTryAgain == 0;  // it may be idle by now
}

void Device::learn_cores(Direction direction, size_t raw_size, Duration time) noexcept {
  if (divided_) learn(&cores_time_[static_cast<size_t>(direction)], raw_size, time);
}

// A code may be larger than the device can write; then the device says so. What it expands to must
// fill dst.
Reason Device::limit(Direction direction, bool has_sum, size_t src_size, size_t room) const {
  const auto way = static_cast<size_t>(direction);
  if (info_.max_src[way] == 0) return Reason::kDirection;
  if (direction == Direction::kExpand && !has_sum && !tells_end_) return Reason::kNoEnd;
  const bool fits = src_size <= info_.max_src[way] &&
                    (direction == Direction::kCompress || room <= info_.max_dst[way]);
  return fits ? Reason::kNone : Reason::kSize;
}

Reason Device::exchange(void* queue, const wpr_device_job& job, Bytes dst, size_t* written) {
  const Duration time = deadline_ + std::chrono::microseconds(job.src_size + job.room);
  const auto end = Clock::now() + time;
  int taken = 0;
  while ((taken = table_.submit(queue, &job)) == 0) {
    if (Clock::now() > end) return Reason::kTimeout;
    std::this_thread::yield();
  }
  if (taken < 0) return Reason::kRefused;
  wpr_device_answer answer;
  if (!wait(queue, job, time, &answer)) return Reason::kTimeout;
  if (answer.status != 0) return Reason::kFailed;
  if (answer.consumed != job.src_size || answer.produced == 0) return Reason::kIncomplete;
  if (answer.produced > job.room) return Reason::kNoRoom;
  const bool expands = job.direction == WPR_DEVICE_EXPAND;
  if (expands && answer.produced != dst.size()) return Reason::kIncomplete;
  std::memcpy(dst.data(), answer.data, answer.produced);
  *written = answer.produced;
  return Reason::kNone;
}

// Other tags belong to answers that came twice.
bool Device::wait(void* queue, const wpr_device_job& job, Duration time,
                  wpr_device_answer* answer) {
  const auto end = Clock::now() + time;
  for (;;) {
    if (table_.poll(queue, answer) == 1 && answer->tag == job.tag) return true;
    if (Clock::now() > end) return false;
    if (divided_)
      std::this_thread::sleep_for(kNap);
    else
      std::this_thread::yield();
  }
}

void* Device::take() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return table_.open(info_.device);
  void* queue = idle_.back();
  idle_.pop_back();
  return queue;
}

void Device::give_back(void* queue) {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(queue);
}

std::string Device::state() const {
  const auto limits = [this](const char* verb, int way) {
    if (info_.max_src[way] == 0) return std::string(verb) + " nothing";
    return std::string(verb) + " jobs to " + std::to_string(info_.max_src[way]) + " bytes";
  };
  std::string text =
      std::string(info_.name) + " (" + info_.driver + "): DEFLATE, " +
      limits("compresses", WPR_DEVICE_COMPRESS) + ", " + limits("expands", WPR_DEVICE_EXPAND) +
      " (code and result alike), window 2^" + std::to_string(info_.window_log) + ", " +
      "one segment; " + std::to_string(jobs(Reason::kNone)) + " jobs by the device (" +
      std::to_string(bytes_[0]) + " bytes compressed, " + std::to_string(bytes_[1]) + " expanded)";
  for (size_t i = 1; i < kReasons; ++i) {
    if (jobs_[i] != 0)
      text += "; " + std::to_string(jobs_[i]) + " by the cores: " + kReasonTexts[i];
  }
  return text;
}

}  // namespace wirepress::compressdev
