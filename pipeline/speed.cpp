// SPDX-License-Identifier: Apache-2.0
#include "pipeline/speed.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "frame/hash.hpp"

namespace wirepress {
namespace {

constexpr size_t kTurns = 2, kMostTurns = 8;

// Guards what was measured. A fork waits for it: a child could not end another thread's measuring.
std::mutex g_mutex;
[[maybe_unused]] const int kForksWait =
    pthread_atfork([] { g_mutex.lock(); }, [] { g_mutex.unlock(); }, [] { g_mutex.unlock(); });

std::atomic<double> g_pace = 1;

uint64_t mix(uint64_t i) {  // splitmix64
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The kinds of data between which recipes differ in speed. Floats are written in their own width.
enum Kind { kZeros, kWave, kGradient, kDense, kSingle, kRows, kText, kNoise, kMixed, kKinds };

double value_of(Kind kind, size_t i) {
  const double x = static_cast<double>(i), u = static_cast<double>(mix(i) >> 11) * 0x1p-53;
  if (kind == kWave) return std::sin(x * 0.013) * std::exp(-std::fmod(x * 0.005, 30.0));
  const double size = -std::log(1 - u) * 1e-3;
  if (kind == kSingle) return static_cast<float>(value_of(kDense, i));
  if (kind == kDense) return mix(i ^ 0x5555) % 2 == 0 ? size : -size;
  if (kind == kGradient) return mix(i ^ 0x5555) % 10 < 4 ? 0 : std::copysign(size, u - 0.5);
  // kRows: nearly all signs and exponents are those of the row before, as in outer products.
  constexpr size_t kRow = 650, kOwn = 40;
  const double like = value_of(kDense, mix(~i) % kOwn == 0 ? i : i % kRow);
  return std::copysign(std::ldexp(1 + u, std::ilogb(like)), like);
}

void fill_text(Bytes out) {
  static constexpr const char* kWords[] = {"the ",  "wave ", "of ",   "frame\n",
                                           "1500 ", "and ",  "block "};
  for (size_t i = 0, w = 0; i < out.size(); ++w) {
    const char* word = kWords[std::min(mix(w) % 7, mix(w + 999) % 7)];
    for (; *word && i < out.size(); ++word) out[i++] = static_cast<std::byte>(*word);
    if (mix(w) % 5 == 0 && i < out.size()) out[i++] = static_cast<std::byte>(mix(w) >> 32);
  }
}

void fill(Kind kind, DType dtype, Bytes out) {
  if (kind == kText) return fill_text(out);
  if (kind == kWave || kind == kGradient || kind == kDense || kind == kSingle || kind == kRows) {
    const bool half = dtype == DType::kBfloat16 || dtype == DType::kFloat16;
    const size_t size = dtype == DType::kFloat64 ? 8 : half ? 2 : 4;
    for (size_t i = 0; i + size <= out.size(); i += size) {
      const double value = value_of(kind, i / size);
      uint64_t word = std::bit_cast<uint64_t>(value);
      if (size < 8) word = std::bit_cast<uint32_t>(static_cast<float>(value));
      if (half) word >>= 16;  // of the right kind for bfloat16
      std::memcpy(&out[i], &word, size);
    }
    return;
  }
  if (kind == kMixed) {  // a wave with gaps
    constexpr size_t kLine = 64;
    fill(kWave, dtype, out);
    for (size_t i = 0; i < out.size() / kLine; ++i)
      if (mix(i / 2) % 2 == 0) std::ranges::fill(out.subspan(i * kLine, kLine), std::byte{0});
    return;
  }
  for (size_t i = 0; i + 8 <= out.size(); i += 8) {
    const uint64_t word = kind == kZeros ? 0 : mix(i);
    std::memcpy(&out[i], &word, 8);
  }
}

// What memory adds to a point, in seconds a byte; none for what takes long anyway.
void measure_far(Chain& chain, ConstBytes raw, const Speed::Point& near, Workbench* bench,
                 Speed* speed) {
  constexpr double kSlow = 1 / 3e9;
  if (near.encode > kSlow || near.decode > kSlow) return;
  bench->fill(raw);
  std::array<size_t, Workbench::kBlocks> sizes;
  bool good = true;
  const double encode = Workbench::seconds([&](size_t i) {
    good &= chain.encode(0, bench->raw(i), {}, bench->code(i), &sizes[i]).ok();
  });
  if (!good) return;
  const double decode = Workbench::seconds([&](size_t i) {
    good &= chain.decode(0, ConstBytes(bench->code(i)).first(sizes[i]), bench->back(i)).ok();
  });
  if (good)
    speed->memory = {near.fraction, std::max(0.0, encode - near.encode),
                     std::max(0.0, decode - near.decode)};
}

Speed calibrate(const Recipe& recipe, Workbench* bench) {
  Speed speed;
  speed.pace = machine_pace();
  Recipe plain = recipe;  // these data have no shape
  plain.step[0].args.n_dims = 0;
  plain.step[0].args.shape = {};
  Chain chain(plain, 1);
  constexpr double kSeconds = 1e-3;            // that more turns than kTurns may take
  constexpr size_t kSize = Workbench::kBlock;  // match finders are faster in longer blocks
  std::vector<std::byte> code(2 * kSize + 4096), back(kSize);
  for (int i = 0; i < kKinds; ++i) {
    const Kind kind = static_cast<Kind>(i);
    if (kind == kRows && recipe.n_steps == 1) continue;  // only a shuffle puts such bytes together
    if (kind == kSingle && recipe.step[0].args.dtype != DType::kFloat64) continue;
    const ConstBytes raw = bench->data(kind, recipe.step[0].args.dtype);
    Speed::Point point;
    if (!measure(chain, raw, code, back, kSeconds, &point)) continue;
    if (kind == kZeros)
      speed.zeros = point;
    else if (kind == kText)
      speed.text = point;
    else if (kind == kRows)
      speed.rows = point;
    else if (kind == kMixed)
      speed.mixed = speed.beyond_mixture(point);
    else
      speed.add_numbers(point);
    if (kind == kDense) measure_far(chain, raw, point, bench, &speed);
  }
  return speed;
}

Speed::Point mix(const Speed::Point& a, const Speed::Point& b, double part) {
  return {std::lerp(a.fraction, b.fraction, part), std::lerp(a.encode, b.encode, part),
          std::lerp(a.decode, b.decode, part)};
}

// How much of what is not zeros is like text: there, a third of the words or more repeat.
double text_share(const Features& features) { return std::min(1.0, features.matches * 3); }

}  // namespace

bool measure(Chain& chain, ConstBytes raw, Bytes code, Bytes back, double seconds,
             Speed::Point* point) {
  double encode = 1, decode = 1;
  size_t size = 0;
  const double first = thread_seconds();
  double begin = first;
  for (size_t turn = 0; turn < kTurns || (turn < kMostTurns && begin - first < seconds); ++turn) {
    begin = thread_seconds();
    if (!chain.encode(0, raw, {}, code, &size).ok() || size == 0) return false;
    encode = std::min(encode, thread_seconds() - begin);
    begin = thread_seconds();
    if (!chain.decode(0, code.first(size), back).ok()) return false;
    decode = std::min(decode, thread_seconds() - begin);
  }
  const double n = static_cast<double>(raw.size());
  *point = {static_cast<double>(size) / n, encode / n, decode / n};
  return true;
}

void Speed::add_numbers(Point point) {
  numbers_.insert(std::ranges::lower_bound(numbers_, point.fraction, {}, &Point::fraction), point);
}

// Data that leave less than a calibrated point take less time: constant planes or long repeats, of
// which zeros are the utmost.
Speed::Point Speed::towards_zeros(const Point& point, double fraction) const {
  const double part = (fraction - zeros.fraction) / (point.fraction - zeros.fraction);
  return part < 1 ? mix(zeros, point, std::max(0.0, part)) : point;
}

Speed::Point Speed::numbers_at(double fraction) const {
  if (numbers_.empty()) return {fraction, 1, 1};
  const auto above = std::ranges::lower_bound(numbers_, fraction, {}, &Point::fraction);
  if (above == numbers_.begin()) return towards_zeros(numbers_.front(), fraction);
  if (above == numbers_.end()) return numbers_.back();
  return mix(above[-1], *above,
             (fraction - above[-1].fraction) / (above->fraction - above[-1].fraction));
}

Speed::Point Speed::at(double fraction, const Features& features) const {
  const double z = features.zero_lines;
  const double rest = z < 1 ? (fraction - z * zeros.fraction) / (1 - z) : 0;
  return with_zeros(mix(numbers_at(rest), towards_zeros(text, rest), text_share(features)), z);
}

// Most of `mixed` where lines of zeros and others alternate.
Speed::Point Speed::with_zeros(const Point& others, double z) const {
  Point point = mix(others, zeros, z);
  point.encode += 4 * z * (1 - z) * mixed.encode;
  point.decode += 4 * z * (1 - z) * mixed.decode;
  return point;
}

Speed::Point Speed::beyond_mixture(const Point& half) const {
  const Point plain = at(half.fraction, {.zero_lines = 0.5});
  return {half.fraction, std::max(0.0, half.encode - plain.encode),
          std::max(0.0, half.decode - plain.decode)};
}

Speed::Point Speed::fastest(const Features& features) const {
  if (numbers_.empty()) return numbers_at(0);
  Point numbers = numbers_.front();
  for (const Point& point : numbers_) {
    numbers.encode = std::min(numbers.encode, point.encode);
    numbers.decode = std::min(numbers.decode, point.decode);
  }
  return with_zeros(mix(numbers, text, text_share(features)), features.zero_lines);
}

ConstBytes Workbench::data(size_t kind, DType dtype) {
  if (dtype != dtype_) data_.clear();
  dtype_ = dtype;
  for (size_t k = data_.size(); k <= kind; ++k) {
    data_.emplace_back(kBlock);
    wirepress::fill(static_cast<Kind>(k), dtype, data_.back());
  }
  return data_[kind];
}

void Workbench::fill(ConstBytes data) {
  if (far_.empty()) far_.resize(2 * kBlocks * kBlock + kBlocks * kRoom);
  for (size_t i = 0; i < kBlocks; ++i) std::ranges::copy(data, raw(i).begin());
}

const Speed& speed_of(const Recipe& recipe, const std::string& text, Workbench* bench) {
  static std::map<std::string, Speed> known;
  std::string key = text + "/" + dtype_name(recipe.step[0].args.dtype);
  for (int i = 0; i < recipe.n_steps; ++i) key += std::string("/") + recipe.step[i].kernel->variant;
  const std::lock_guard lock(g_mutex);
  const auto [it, is_new] = known.try_emplace(key);
  if (is_new) it->second = calibrate(recipe, bench);
  return it->second;
}

ConstBytes dense_block(DType dtype) {
  static std::map<DType, std::vector<std::byte>> known;
  const std::lock_guard lock(g_mutex);
  std::vector<std::byte>& block = known[dtype];
  if (block.empty()) {
    block.resize(Workbench::kBlock);
    fill(kDense, dtype, block);
  }
  return block;
}

double machine_pace() { return g_pace; }

void check_pace(double share) {
  constexpr double kSame = 1.2;  // quiet machines differ by as much
  static std::mutex mutex;
  static std::array<double, 5> last = {1, 1, 1, 1, 1};
  static size_t n = 0;
  const std::lock_guard lock(mutex);
  last[n++ % last.size()] = std::clamp(g_pace * share, 0.25, 4.0);
  std::array<double, 5> sorted = last;
  std::ranges::nth_element(sorted, sorted.begin() + 2);
  const double now = sorted[2] / g_pace;
  if (now < 1 / kSame || now > kSame) g_pace = sorted[2];
}

double hash_speed() {
  const std::lock_guard lock(g_mutex);
  static const double seconds = [] {
    constexpr size_t kSize = 128 << 10;
    const std::vector<std::byte> data(kSize, std::byte{1});
    double best = 1;
    uint32_t sum = 0;
    for (size_t turn = 0; turn < kMostTurns; ++turn) {
      const double begin = thread_seconds();
      sum ^= short_hash(data, sum + turn);
      best = std::min(best, thread_seconds() - begin);
    }
    return best / static_cast<double>(kSize);
  }();
  return seconds;
}

double copy_speed(Workbench* bench) {
  const std::lock_guard lock(g_mutex);
  static const double seconds = [&] {
    const std::vector<std::byte> data(Workbench::kBlock, std::byte{1});
    bench->fill(data);
    return Workbench::seconds([&](size_t i) {
      std::memcpy(bench->back(i).data(), bench->raw(i).data(), Workbench::kBlock);
    });
  }();
  return seconds;
}

}  // namespace wirepress
