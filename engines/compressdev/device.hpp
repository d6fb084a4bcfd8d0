// SPDX-License-Identifier: Apache-2.0
// Jobs for a compression device by its table: limits, deadlines and checks. Knows no driver.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "engines/compressdev/answer_time.hpp"
#include "engines/compressdev/device_table.h"
#include "engines/compressdev/job.hpp"

namespace wirepress::compressdev {

// Why a job went to the cores.
enum class Reason : uint8_t {
  kNone,        // it did not
  kDirection,   // the device does not have this codec in this direction
  kNoEnd,       // the device does not tell where a code ends, and the format has no sum
  kNoSize,      // nobody knows the size of what the code expands to, and the format has no sum
  kSize,        // the job or its answer is larger than the device's limit
  kBusy,        // every queue of the device has a job
  kRefused,     // the device took no job
  kFailed,      // the device reported an error
  kIncomplete,  // the device reported success for a part
  kNoRoom,      // the code does not fit
  kWrongSum,    // the format's sum is not that of the device's bytes
  kTimeout,     // no answer before the deadline
  kOff,         // the device was switched off after a timeout or wrong bytes
  kForked,      // the device belongs to the parent process
  kDivided,     // device and cores divide the work, and it is the cores' turn
};
inline constexpr size_t kReasons = 15;
const char* reason_text(Reason reason);
bool is_refusal(Reason reason);  // known before the device had the job: another one may take it

// A device that is set up. Threads may share it; a thread waits for its job, or comes back for it.
class Device {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;
  using Seconds = std::chrono::duration<double>;
  static constexpr size_t kWays = kAlgorithms * kDirections;
  // A job that the device has.
  struct Begun {
    Job job{};
    wpr_device_job asked{};
    void* queue = nullptr;
    Clock::time_point begin{}, end{};  // the deadline
    Clock::time_point not_before{};    // when it was not yet done
    AnswerTime<kWays>::Place place{};
    bool watched = false;  // on_core is measured, for not every job is worth a clock
    double on_core = 0;    // a core's seconds for it until now
  };
  // A job has `deadline` and 1 us a byte: a hundredth of the rate of any device there is.
  Device(const wpr_device_table& table, const wpr_device_info& info,
         Duration deadline = std::chrono::seconds(1));
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Codes and expands samples: false where the device cannot what it says of DEFLATE; LZ4 is then
  // left to the cores. Finds out whether the device tells where a code ends; what a cut code lacks
  // may be no more than its end mark.
  bool probe() noexcept;
  // As compressdev::run; kNone: the device did the job.
  Reason run(const Job& job, size_t* written, bool waits = false) noexcept;
  // As compressdev::begin; kNone: the device has the job, and `end` ends it, called until it is
  // true; `reason` is then that of run().
  Reason begin(const Job& job, double left, Begun* begun) noexcept;
  bool end(Begun* begun, size_t* written, Reason* reason) noexcept;
  // Whether blocks are divided between the device and the cores: the device then gets as many jobs
  // as it answers in the time that a core takes for kMostBlocks, so that no message waits longer.
  void divide(bool on) { divided_ = on; }
  int threads() const { return divided_ ? kThreads : 0; }  // that may wait for its codes
  bool divided() const { return divided_; }
  // It surely takes no such job now: it has not this way, or its answer would come too late if it
  // had no other. `blocks`: as many as a core does meanwhile.
  bool is_hopeless(size_t way, size_t raw_size, double blocks) const;
  bool gives() const;  // whether coding as the last jobs pays, as far as is known
  // A job, and what a core took for it, seconds; there were `n` of them, of which the others are
  // not told.
  void learn_cores(size_t way, size_t raw_size, double time, int n = 1) noexcept;
  // Until then every job of the cores is to be told.
  bool knows_cores(size_t way) const { return cores_learned_[way] >= kFirst; }
  // What a job would take now, as far as is known.
  double seconds_for(const Job& job) const;
  // No more jobs; once the last one is back, the device is closed.
  void switch_off() noexcept;

  const wpr_device_info& info() const { return info_; }
  pid_t owner() const { return owner_; }
  uint64_t jobs(Reason reason) const { return jobs_[static_cast<size_t>(reason)]; }
  // Limits, jobs and bytes that the device did, and jobs that the cores did with the reasons.
  std::string state() const;

 private:
  bool deflate_works() noexcept;
  bool expands(Algorithm algorithm, ConstBytes code, ConstBytes raw) noexcept;
  size_t& max_src(Algorithm algorithm, Direction direction);
  Reason refusal(const Job& job, double blocks) const;
  Reason enter(const Job& job, double blocks, Begun* begun) noexcept;
  Reason submit(Begun* begun, bool waits) noexcept;
  bool answered(Begun* begun, size_t* written, Reason* reason) noexcept;
  Reason wait(Begun* begun, bool naps, size_t* written) noexcept;
  void finish(const Begun& begun, Reason reason) noexcept;
  void count(const Job& job, Reason reason, size_t written) noexcept;
  wpr_device_job asked_of(const Job& job);
  bool is_due(size_t way, double seconds) const;
  bool pays(const Job& job, int before, double blocks) noexcept;
  double since_start(Clock::time_point time) const { return Seconds(time - start_).count(); }
  bool is_worth(size_t way, size_t raw_size, double blocks, double seconds) const;
  bool frees_core(size_t way) const { return overhead_[way] < core_time_[way]; }
  void learn_device(const Begun& begun, Clock::time_point now) noexcept;
  void learn_overhead(const Job& job, double seconds) noexcept;
  Reason limit(const Job& job) const;
  static Reason accept(const wpr_device_answer& answer, const wpr_device_job& asked, const Job& job,
                       size_t* written);
  void* take();
  void give_back(void* queue);
  void leave() noexcept;

  const wpr_device_table table_;
  wpr_device_info info_;  // constant after probe()
  const Duration deadline_;
  const Clock::time_point start_ = Clock::now();
  const pid_t owner_;
  const unsigned made_at_;  // n_forks()
  const int n_cores_;
  std::mutex mutex_;         // of idle_ and table_.open
  std::vector<void*> idle_;  // queues
  std::atomic<uint64_t> tag_{0};
  std::atomic<int> inside_{0};  // threads with a job
  static constexpr int kThreads = 8, kDepth = 16;
  static constexpr double kMostBlocks = 4;
  // Of those times, for what is learned is not exact. With several blocks nothing is lost by a core
  // that does them; with one the device's own time is.
  static constexpr double kSure = 0.85, kSureOfOne = 0.95;
  static constexpr double kWaitsFor = kMostBlocks / kSure;  // what threads wait for that may
  std::atomic<bool> divided_{false};
  std::atomic<int> waiting_{0};    // jobs that the device has
  AnswerTime<kWays> answer_time_;  // in seconds since start_
  // By Job::way(): means over the last jobs of a core's seconds a raw byte, in place of the device
  // and for a job on it; 0: not known.
  std::atomic<double> core_time_[kWays] = {}, overhead_[kWays] = {};
  // Jobs that answer_time_ and core_time_ know.
  std::atomic<uint64_t> learned_[kWays] = {}, cores_learned_[kWays] = {};
  std::atomic<size_t> last_size_[kWays] = {};  // raw bytes of the last job
  static constexpr uint64_t kFirst = 8;
  std::atomic<double> core_seconds_[kWays] = {};  // of all cores since a job that did not pay
  bool tells_end_ = true;
  std::atomic<bool> off_{false}, closed_{false};
  std::array<std::atomic<uint64_t>, kReasons> jobs_{};
  std::atomic<uint64_t> bytes_[2] = {};  // raw bytes of the device's jobs, by direction
};

// Makes it the process's device, which it stays until another one comes; nullptr: none. Tests give
// one with faults.
void use(Device* device, DeviceUse how);

}  // namespace wirepress::compressdev
