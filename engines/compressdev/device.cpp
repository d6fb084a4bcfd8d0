// SPDX-License-Identifier: Apache-2.0
// A driver may report success for wrong lengths, answer late, twice or never. So an answer counts
// by its tag, its lengths are compared, and bytes are copied out of the module's memory only then:
// a late device never writes into the caller's.
#include "engines/compressdev/device.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/process.hpp"

namespace wirepress::compressdev {
namespace {

constexpr double kSleep = 20e-6;  // costs a thread: another has its caches, and it wakes late
constexpr auto kNap = std::chrono::microseconds(20);    // between polls, where the cores have work
constexpr auto kSoon = std::chrono::microseconds(500);  // others may have the core then

// For devices that do not compress.
constexpr std::string_view kSampleText = "abcabcabcabcabcabcabcabcabcabc";
constexpr uint8_t kDeflateSample[] = {0x4B, 0x4C, 0x4A, 0x4E, 0xC4, 0x8D, 0x00};
constexpr uint8_t kLz4Sample[] = {0x3F, 0x61, 0x62, 0x63, 0x03, 0x00, 0x03,
                                  0x50, 0x62, 0x63, 0x61, 0x62, 0x63};

ConstBytes sample_text() { return std::as_bytes(std::span(kSampleText)); }

// A mean over the last ones, of which none counts much; a value lost to a race of threads harms
// nothing.
void learn(std::atomic<double>* mean, double now) {
  const double before = *mean;
  *mean = before == 0 ? now : before + std::min(now - before, before) / 8;
}

// The same of what is at once less where anything was wrong before: other programs take a core's
// caches, and never give more.
void learn_least(std::atomic<double>* mean, double now) {
  if (*mean != 0 && now < *mean) now = *mean + 4 * (now - *mean);
  learn(mean, now);
}

int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

// Sleeps end when they should, while this lives: the kernel may else make one of 20 us last 70.
class ExactSleep {
 public:
  ExactSleep() : before_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1); }
  ~ExactSleep() { prctl(PR_SET_TIMERSLACK, before_); }
  ExactSleep(const ExactSleep&) = delete;
  ExactSleep& operator=(const ExactSleep&) = delete;

 private:
  const int before_;
};

constexpr const char* kReasonTexts[kReasons] = {
    "none",
    "the device does not have this codec in this direction",
    "the device does not tell where a code ends, and the format has no sum",
    "the size of what the code expands to is not known, and the format has no sum",
    "the job or its answer is above the device's limit",
    "every queue of the device has a job",
    "the device took no job",
    "the device reported an error",
    "the device reported success for a part",
    "the device's code does not fit",
    "the sum of the device's bytes is wrong",
    "the device did not answer before the deadline",
    "the device is off, after a timeout or wrong bytes",
    "the device belongs to the parent process",
    "blocks are divided, and it was the cores' turn",
};

}  // namespace

const char* reason_text(Reason reason) { return kReasonTexts[static_cast<size_t>(reason)]; }

bool is_refusal(Reason reason) {
  switch (reason) {
    case Reason::kDirection:
    case Reason::kNoEnd:
    case Reason::kNoSize:
    case Reason::kSize:
    case Reason::kBusy:
    case Reason::kRefused:
    case Reason::kOff:
    case Reason::kDivided:
      return true;
    default:
      return false;
  }
}

Device::Device(const wpr_device_table& table, const wpr_device_info& info, Duration deadline)
    : table_(table),
      info_(info),
      deadline_(deadline),
      owner_(getpid()),
      made_at_(n_forks()),
      n_cores_(usable_cores()) {
  idle_.reserve(64);  // give_back must not fail
}

bool Device::probe() noexcept {
  const bool good = deflate_works();
  size_t& lz4 = max_src(Algorithm::kLz4, Direction::kExpand);
  if (lz4 != 0 && !expands(Algorithm::kLz4, std::as_bytes(std::span(kLz4Sample)), sample_text()))
    lz4 = 0;
  for (auto& count : jobs_) count = 0;
  for (auto& count : bytes_) count = 0;
  for (auto& count : learned_) count = 0;  // samples are too small to tell
  answer_time_.forget();
  return good;
}

bool Device::deflate_works() noexcept {
  std::byte raw[4096], code[8192];
  for (size_t i = 0; i < sizeof raw; ++i) raw[i] = static_cast<std::byte>(i / 7 % 50);
  ConstBytes sample = raw, coded = std::as_bytes(std::span(kDeflateSample));
  if (max_src(Algorithm::kDeflate, Direction::kCompress) != 0) {
    size_t size = 0;
    if (run({Algorithm::kDeflate, Direction::kCompress, raw, code}, &size) != Reason::kNone)
      return false;
    coded = ConstBytes(code).first(size);
  } else {
    sample = sample_text();
  }
  if (max_src(Algorithm::kDeflate, Direction::kExpand) == 0) return true;
  for (const bool tells : {true, false}) {
    tells_end_ = tells;
    if (expands(Algorithm::kDeflate, coded, sample)) return true;
  }
  return false;
}

bool Device::expands(Algorithm algorithm, ConstBytes code, ConstBytes raw) noexcept {
  std::byte again[4096];
  const Bytes room = Bytes(again).first(raw.size());
  size_t size = 0;
  const Job job = {.algorithm = algorithm,
                   .direction = Direction::kExpand,
                   .src = code,
                   .dst = room,
                   .is_right = [](ConstBytes, ConstBytes) { return true; }};
  return run(job, &size) == Reason::kNone && size == raw.size() &&
         std::equal(raw.begin(), raw.end(), again);
}

size_t& Device::max_src(Algorithm algorithm, Direction direction) {
  return info_.max_src[static_cast<size_t>(algorithm)][static_cast<size_t>(direction)];
}

Reason Device::run(const Job& job, size_t* written, bool waits) noexcept {
  const double blocks = waits ? kWaitsFor : 1;
  Reason reason = refusal(job, blocks);
  if (reason == Reason::kNone) {
    ++inside_;
    Begun begun;
    reason = enter(job, blocks, &begun);
    if (reason == Reason::kNone) reason = submit(&begun, true);
    if (divided_ && waits) begun.on_core += kSleep;
    if (reason == Reason::kNone) reason = wait(&begun, divided_ && waits, written);
    leave();
  }
  count(job, reason, *written);
  return reason;
}

// The answer must come before the cores have done what is left.
Reason Device::begin(const Job& job, double left, Begun* begun) noexcept {
  Reason reason = refusal(job, left);
  if (reason == Reason::kNone) {
    ++inside_;
    reason = enter(job, left, begun);
    if (reason == Reason::kNone) reason = submit(begun, false);
    if (reason == Reason::kNone) return reason;
    leave();
  }
  count(job, reason, 0);
  return reason;
}

bool Device::end(Begun* begun, size_t* written, Reason* reason) noexcept {
  if (!answered(begun, written, reason)) return false;
  count(begun->job, *reason, *written);
  leave();
  return true;
}

void Device::count(const Job& job, Reason reason, size_t written) noexcept {
  ++jobs_[static_cast<size_t>(reason)];
  if (reason != Reason::kNone) return;
  bytes_[static_cast<size_t>(job.direction)] +=
      job.direction == Direction::kCompress ? job.src.size() : written;
}

void Device::switch_off() noexcept {
  ++inside_;
  off_ = true;
  leave();
}

void Device::leave() noexcept {
  if (--inside_ == 0 && off_ && !closed_.exchange(true)) table_.close(info_.device);
}

// What is known without a word to other threads, for most jobs end here where a device has nothing
// to give.
Reason Device::refusal(const Job& job, double blocks) const {
  if (n_forks() != made_at_) return Reason::kForked;
  if (off_) return Reason::kOff;
  const Reason reason = limit(job);
  if (reason != Reason::kNone || !divided_) return reason;
  return is_hopeless(job.way(), job.raw_size(), blocks) ? Reason::kDivided : Reason::kNone;
}

bool Device::is_hopeless(size_t way, size_t raw_size, double blocks) const {
  if (info_.max_src[way / kDirections][way % kDirections] == 0) return true;
  if (!divided_ || learned_[way] < kFirst || core_time_[way] == 0) return false;
  const double least = answer_time_.alone(way, raw_size);
  return !is_worth(way, raw_size, blocks, least) && !is_due(way, least);
}

// Takes a place on the device and a queue.
Reason Device::enter(const Job& job, double blocks, Begun* begun) noexcept {
  if (off_) return Reason::kOff;
  const int before = waiting_++;
  if (divided_ && !pays(job, before, blocks)) return --waiting_, Reason::kDivided;
  begun->queue = take();
  if (begun->queue == nullptr) return --waiting_, Reason::kBusy;
  begun->job = job;
  begun->asked = asked_of(job);
  return Reason::kNone;
}

// A full device is asked again where the thread waits anyway.
Reason Device::submit(Begun* begun, bool waits) noexcept {
  constexpr uint64_t kWatched = 16;
  begun->watched = divided_ && (begun->asked.tag % kWatched == 0 || !frees_core(begun->job.way()));
  if (begun->watched) begun->on_core = -thread_seconds();
  begun->begin = begun->not_before = Clock::now();
  begun->place =
      answer_time_.enter(begun->job.way(), begun->job.raw_size(), since_start(begun->begin));
  begun->end = begun->begin + deadline_ +
               std::chrono::microseconds(begun->asked.src_size + begun->asked.room);
  int taken = 0;
  while ((taken = table_.submit(begun->queue, &begun->asked)) == 0 && waits) {
    if (Clock::now() > begun->end) return finish(*begun, Reason::kTimeout), Reason::kTimeout;
    std::this_thread::yield();
  }
  if (begun->watched) begun->on_core += thread_seconds();
  if (taken > 0) return Reason::kNone;
  answer_time_.leave(begun->place);
  const Reason reason = taken < 0 ? Reason::kRefused : Reason::kBusy;
  return finish(*begun, reason), reason;
}

// Other tags belong to answers that came twice.
bool Device::answered(Begun* begun, size_t* written, Reason* reason) noexcept {
  wpr_device_answer answer;
  if (table_.poll(begun->queue, &answer) == 1 && answer.tag == begun->asked.tag) {
    learn_device(*begun, Clock::now());
    const double before = begun->watched ? thread_seconds() : 0;
    *reason = accept(answer, begun->asked, begun->job, written);
    if (begun->watched) learn_overhead(begun->job, begun->on_core + thread_seconds() - before);
  } else {
    begun->not_before = Clock::now();
    if (begun->not_before <= begun->end) return false;
    *reason = Reason::kTimeout;
  }
  finish(*begun, *reason);
  return true;
}

void Device::finish(const Begun& begun, Reason reason) noexcept {
  --waiting_;
  if (reason == Reason::kTimeout)
    off_ = true;  // the queue's memory stays with the device
  else
    give_back(begun.queue);
}

// Where other threads have work for the core, this one sleeps: for most of what is expected at
// first, then for small parts of it, for each poll takes a core's time. Where it is alone it asks
// until the answer should be there, and only then lets others come first: on a busy machine each
// turn of theirs takes milliseconds. Threads that wait here share the cores at once.
Reason Device::wait(Begun* begun, bool naps, size_t* written) noexcept {
  const auto expects = std::chrono::duration_cast<Duration>(Seconds(begun->place.expected));
  const Duration time = std::min<Duration>(expects, begun->end - begun->begin);
  const auto soon = begun->begin + std::min<Duration>(2 * time, kSoon);
  Duration nap = time * 3 / 4;
  std::optional<ExactSleep> exact;
  for (Reason reason; true;) {
    if (answered(begun, written, &reason)) return reason;
    if (!naps) {
      if (begun->not_before > soon || waiting_ > n_cores_) std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(std::max<Duration>(nap, kNap));
    nap = exact ? time / 16 : time / 8;
    if (!exact) exact.emplace();
  }
}

wpr_device_job Device::asked_of(const Job& job) {
  const auto algorithm = static_cast<int>(job.algorithm),
             direction = static_cast<int>(job.direction);
  const bool shows_end =
      job.algorithm == Algorithm::kDeflate && job.direction == Direction::kExpand && tells_end_;
  return {++tag_,
          algorithm,
          direction,
          job.src.data(),
          job.src.size(),
          shows_end ? size_t{WPR_DEVICE_PAD} : 0,
          std::min(job.dst.size(), info_.max_dst[algorithm][direction])};
}

double Device::seconds_for(const Job& job) const {
  return answer_time_.expected(job.way(), job.raw_size(), since_start(Clock::now()));
}

// A device that was too slow may be idle by now: a job tries it, which may end after all others of
// a message, where that is 2 % of the cores' time.
bool Device::is_due(size_t way, double seconds) const {
  return seconds * n_cores_ <= 0.02 * core_seconds_[way];
}

// The first jobs, one after the other, find out what is not known.
bool Device::pays(const Job& job, int before, double blocks) noexcept {
  if (before >= (job.direction == Direction::kCompress ? kThreads : kDepth)) return false;
  last_size_[job.way()] = job.raw_size();
  if (core_time_[job.way()] == 0) return before == 0 && learned_[job.way()] == 0;
  if (learned_[job.way()] < kFirst) return before == 0;
  if (!knows_cores(job.way())) return false;
  const double expects = seconds_for(job);
  if (is_worth(job.way(), job.raw_size(), blocks, expects)) return true;
  if (before != 0 || !is_due(job.way(), expects)) return false;
  core_seconds_[job.way()] = 0;
  return true;
}

// The answer, `seconds` from now, must surely come within the time that a core takes for so many
// blocks. A queue that is longer than what keeps the device busy would only make the end less
// certain. And the job must cost a core less than the block, for an answer is copied and proved.
bool Device::is_worth(size_t way, size_t raw_size, double blocks, double seconds) const {
  const double core = core_time_[way] * static_cast<double>(raw_size);
  const double alone = answer_time_.alone(way, raw_size);
  const double sure = blocks > 1 ? kSure : kSureOfOne;
  const double most = std::min(sure * blocks * core, 2 * alone + kMostBlocks * core);
  const double done = seconds + overhead_[way] * static_cast<double>(raw_size);
  return done <= most && frees_core(way);
}

bool Device::gives() const {
  constexpr size_t kWay = Job().way();  // nothing compresses but DEFLATE
  const size_t size = last_size_[kWay];
  const double expects = answer_time_.expected(kWay, size, since_start(Clock::now()));
  return learned_[kWay] < kFirst || is_worth(kWay, size, kWaitsFor, expects);
}

void Device::learn_device(const Begun& begun, Clock::time_point now) noexcept {
  ++learned_[begun.job.way()];
  answer_time_.learn(begun.place, since_start(begun.not_before), since_start(now));
}

// A core's time for copying and asking, all of a driver in software.
void Device::learn_overhead(const Job& job, double on_core) noexcept {
  learn_least(&overhead_[job.way()],
              on_core / static_cast<double>(std::max<size_t>(job.raw_size(), 1)));
}

// The first jobs of a thread find cold caches and make its tables: of them the fastest counts.
void Device::learn_cores(size_t way, size_t raw_size, double time, int n) noexcept {
  if (!divided_) return;
  const double now = time / static_cast<double>(std::max<size_t>(raw_size, 1));
  if (!knows_cores(way) && core_time_[way] != 0)
    core_time_[way] = std::min<double>(core_time_[way], now);
  else
    learn(&core_time_[way], now);
  ++cores_learned_[way];
  core_seconds_[way] = core_seconds_[way] + n * time;
}

// A code may be larger than the device can write; then the device says so. What a code expands to
// must be known or have a sum: drivers report success for a part.
Reason Device::limit(const Job& job) const {
  const auto algorithm = static_cast<size_t>(job.algorithm);
  const auto direction = static_cast<size_t>(job.direction);
  const size_t most = info_.max_src[algorithm][direction];
  if (most == 0) return Reason::kDirection;
  if (job.src.size() > most) return Reason::kSize;
  if (job.direction == Direction::kCompress) return Reason::kNone;
  const bool has_sum = job.is_right != nullptr;
  if (!has_sum && !job.exact) return Reason::kNoSize;
  if (!has_sum && job.algorithm == Algorithm::kDeflate && !tells_end_) return Reason::kNoEnd;
  const bool fits = !job.exact || job.dst.size() <= info_.max_dst[algorithm][direction];
  return fits ? Reason::kNone : Reason::kSize;
}

Reason Device::accept(const wpr_device_answer& answer, const wpr_device_job& asked, const Job& job,
                      size_t* written) {
  const bool expands = job.direction == Direction::kExpand;
  if (answer.status != 0)  // an answer of unknown size may need more than the device can write
    return expands && asked.room < job.dst.size() ? Reason::kSize : Reason::kFailed;
  if (answer.consumed != asked.src_size || answer.produced == 0) return Reason::kIncomplete;
  if (answer.produced > asked.room) return Reason::kNoRoom;
  const bool whole = answer.produced == job.dst.size();
  if (expands && job.exact && !whole) return Reason::kIncomplete;
  std::memcpy(job.dst.data(), answer.data, answer.produced);
  *written = answer.produced;
  if (!expands || job.is_right == nullptr) return Reason::kNone;
  if (job.is_right(job.code, job.dst.first(answer.produced))) return Reason::kNone;
  return job.exact ? Reason::kWrongSum : Reason::kIncomplete;
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
  const auto limits = [this](int algorithm, const char* verb, int way) {
    const size_t most = info_.max_src[algorithm][way];
    if (most == 0) return std::string(verb) + " nothing";
    return std::string(verb) + " jobs to " + std::to_string(most) + " bytes";
  };
  std::string text = std::string(info_.name) + " (" + info_.driver + "): DEFLATE, " +
                     limits(WPR_DEVICE_DEFLATE, "compresses", WPR_DEVICE_COMPRESS) + ", " +
                     limits(WPR_DEVICE_DEFLATE, "expands", WPR_DEVICE_EXPAND) +
                     " (code and result alike), window 2^" + std::to_string(info_.window_log) +
                     ", one segment; ";
  if (info_.max_src[WPR_DEVICE_LZ4][WPR_DEVICE_EXPAND] != 0)
    text +=
        "LZ4, compresses nothing, " + limits(WPR_DEVICE_LZ4, "expands", WPR_DEVICE_EXPAND) + "; ";
  text += std::to_string(jobs(Reason::kNone)) + " jobs by the device (" +
          std::to_string(bytes_[0]) + " bytes compressed, " + std::to_string(bytes_[1]) +
          " expanded)";
  if (table_.tell != nullptr) {
    char more[128];
    table_.tell(info_.device, more, sizeof more);
    text.append("; ").append(more);
  }
  for (size_t i = 1; i < kReasons; ++i) {
    if (jobs_[i] != 0)
      text += "; " + std::to_string(jobs_[i]) + " by the cores: " + kReasonTexts[i];
  }
  return text;
}

}  // namespace wirepress::compressdev
