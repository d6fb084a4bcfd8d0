// SPDX-License-Identifier: Apache-2.0
// The error bounds, value by value, for every mode, both types and all numbers of dimensions; what
// the codec does with shapes; and payloads that no encoder writes.
#include "codecs/sz3/sz3.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace wirepress {
namespace {

using Shape = std::vector<uint64_t>;

template <typename T>
constexpr DType kDType = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;

struct Mode {
  sz3::ParamIndex index;
  int real;
};

class Sz3 {
 public:
  Sz3(DType dtype, const Mode& mode, const Shape& shape = {})
      : entry_(*find_codec("sz3", 3)), kernel_(*entry_.kernels.back()) {
    args_.dtype = dtype;
    args_.value[mode.index] = mode.real;
    args_.n_dims = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), args_.shape.begin());
    EXPECT_TRUE(entry_.codec->check(&args_).ok());
    EXPECT_TRUE(kernel_.open(args_, &state_).ok());
  }
  ~Sz3() { kernel_.close(state_); }
  Sz3(const Sz3&) = delete;
  Sz3& operator=(const Sz3&) = delete;

  template <typename T>
  std::vector<std::byte> encode(const std::vector<T>& raw) {
    const ConstBytes bytes = std::as_bytes(std::span(raw));
    std::vector<std::byte> code(entry_.codec->bound(args_, bytes.size()));
    size_t written = 0;
    const Status status = kernel_.encode(state_, args_, bytes, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  template <typename T>
  Status decode(ConstBytes code, std::vector<T>* raw) {
    size_t written = 0;
    return kernel_.decode(state_, args_, code, std::as_writable_bytes(std::span(*raw)), &written);
  }

 private:
  const Entry& entry_;
  const Kernel& kernel_;
  Args args_;
  void* state_ = nullptr;
};

// A number in 0..1 for each index, the same on every machine.
double noise(uint64_t i) {
  uint64_t z = (i + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

template <typename T>
std::vector<T> field(const Shape& shape) {
  size_t n = 1;
  for (const uint64_t extent : shape) n *= extent;
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = 0;
    size_t rest = i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      sum += std::sin(0.1 * static_cast<double>(rest % shape[axis]) + static_cast<double>(axis));
    values[i] = static_cast<T>(sum * 100 + noise(i));
  }
  return values;
}

// Every kind of number, between smooth ones.
template <typename T>
std::vector<T> rough(size_t n) {
  using Limits = std::numeric_limits<T>;
  const std::array<T, 12> edges = {0,
                                   -T{0},
                                   Limits::denorm_min(),
                                   -Limits::denorm_min(),
                                   Limits::min(),
                                   Limits::min() / 2,
                                   Limits::max(),
                                   Limits::lowest(),
                                   Limits::infinity(),
                                   -Limits::infinity(),
                                   Limits::quiet_NaN(),
                                   1};
  std::vector<T> values = field<T>({n});
  for (size_t i = 0; i < n; ++i) {
    const double draw = noise(i + 1000);
    if (draw < 0.2) values[i] = edges[static_cast<size_t>(draw * 5 * 11.999)];
    if (draw > 0.9) values[i] = static_cast<T>(values[i] * std::exp2(draw * 1000 - 950));
  }
  return values;
}

template <typename T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// The bounds of spec.md. Empty: kept.
template <typename T>
std::string broken_law(const Mode& mode, const std::vector<T>& raw, const std::vector<T>& decoded) {
  double least = 0, most = 0, sum = 0;
  bool any = false;
  for (const T x : raw) {
    if (!std::isfinite(x)) continue;
    least = any ? std::min(least, static_cast<double>(x)) : static_cast<double>(x);
    most = any ? std::max(most, static_cast<double>(x)) : static_cast<double>(x);
    any = true;
  }
  const double range = std::min(most - least, std::numeric_limits<double>::max());
  const double asked = real_of(mode.real);
  for (size_t i = 0; i < raw.size(); ++i) {
    const std::string where = " at " + std::to_string(i);
    const T x = raw[i], y = decoded[i];
    if (!std::isfinite(x)) {
      if (!same_bits(x, y)) return "a NaN or infinity changed" + where;
      continue;
    }
    const double error = std::fabs(static_cast<double>(y) - static_cast<double>(x));
    if (mode.index == sz3::kAbs && !(error <= asked)) return "beyond abs" + where;
    if (mode.index == sz3::kRel && !(error <= asked * range)) return "beyond rel" + where;
    if (mode.index == sz3::kPw) {
      if (!(error <= asked * std::fabs(static_cast<double>(x)))) return "beyond pw" + where;
      if (std::signbit(x) != std::signbit(y)) return "the sign turned" + where;
    }
    if (range > 0) sum += error / range * error / range;
  }
  const double mean = sum / static_cast<double>(raw.size());
  if (mode.index == sz3::kPsnr && !(mean <= std::pow(10, -asked / 10) * (1 + 1e-9)))
    return "too much noise";
  return "";
}

const std::vector<Mode> kModes = {
    {sz3::kAbs, real_param(1, -3)},    {sz3::kAbs, real_param(7, 0)},
    {sz3::kAbs, real_param(1, -30)},   {sz3::kRel, real_param(1, -3)},
    {sz3::kRel, real_param(1, -7)},    {sz3::kRel, real_param(5, -1)},
    {sz3::kPsnr, real_param(60, 0)},   {sz3::kPsnr, real_param(5, 0)},
    {sz3::kPsnr, real_param(130, 0)},  {sz3::kPw, real_param(1, -2)},
    {sz3::kPw, real_param(15625, -6)}, {sz3::kPw, real_param(1, -7)},
    {sz3::kPw, real_param(9, -1)},
};

template <typename T>
void keeps_its_bound(const std::vector<T>& raw, const Shape& shape) {
  for (const Mode& mode : kModes) {
    Sz3 codec(kDType<T>, mode, shape);
    const std::vector<std::byte> code = codec.encode(raw);
    std::vector<T> decoded(raw.size());
    const Status status = codec.decode(code, &decoded);
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(broken_law(mode, raw, decoded), "")
        << "parameter " << mode.index << " " << real_text(mode.real) << ", " << sizeof(T)
        << " bytes, " << shape.size() << "-D, " << raw.size();
  }
}

const std::vector<Shape> kShapes = {{3000},         {55, 61},      {1, 300},      {17, 19, 23},
                                    {4, 33, 65},    {7, 6, 9, 11}, {2, 1, 40, 3}, {70, 1, 1, 1},
                                    {5, 34, 3, 34}, {1, 1, 1, 1},  {2, 2, 2, 2},  {130, 2}};

TEST(Sz3, KeepsItsBoundInAllDimensions) {
  for (const Shape& shape : kShapes) {
    keeps_its_bound(field<float>(shape), shape);
    keeps_its_bound(field<double>(shape), shape);
  }
}

TEST(Sz3, KeepsItsBoundForEveryKindOfNumber) {
  for (const size_t n : {1, 2, 3, 7, 64, 1000, 5000}) {
    keeps_its_bound(rough<float>(n), {});
    keeps_its_bound(rough<double>(n), {});
  }
  keeps_its_bound(rough<float>(8 * 9 * 10 * 11), {8, 9, 10, 11});
  keeps_its_bound(rough<double>(40 * 50), {40, 50});
}

// SZ3's order of visits must meet each value once whatever the extents: the decoder relies on it.
#ifdef __x86_64__
// Programs that flush denormals to zero, on either side.
TEST(Sz3, KeepsItsBoundWhereDenormalsAreFlushed) {
  constexpr unsigned kFlush = 0x8040;
  std::vector<float> raw(5000);
  for (size_t i = 0; i < raw.size(); ++i)
    raw[i] = i % 7 == 0 ? 1e-40f * static_cast<float>(i + 1) : 1 + static_cast<float>(i) / 5000;
  const unsigned before = _mm_getcsr();
  for (const bool in_decoder : {false, true}) {
    Sz3 codec(DType::kFloat32, {sz3::kPw, real_param(1, -2)});
    if (!in_decoder) _mm_setcsr(before | kFlush);
    const auto code = codec.encode(raw);
    _mm_setcsr(in_decoder ? before | kFlush : before);
    std::vector<float> back(raw.size());
    const Status status = codec.decode(code, &back);
    _mm_setcsr(before);
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < raw.size(); ++i) {
      const auto was = static_cast<double>(raw[i]), is = static_cast<double>(back[i]);
      ASSERT_LE(std::abs(is - was), 1e-2 * was) << i << ": " << was << " became " << is;
    }
  }
}
#endif

TEST(Sz3, VisitsEachValueOnceForAllSmallShapes) {
  const Mode mode = {sz3::kAbs, real_param(1, -3)};
  for (uint64_t a = 1; a <= 9; ++a)
    for (uint64_t b = 1; b <= 9; ++b)
      for (uint64_t c = 1; c <= 5; ++c)
        for (const uint64_t d : {1, 2, 3, 33, 34, 66}) {
          const Shape shape = {d, a, b, c};
          const std::vector<float> raw = field<float>(shape);
          Sz3 codec(DType::kFloat32, mode, shape);
          std::vector<float> decoded(raw.size());
          ASSERT_TRUE(codec.decode(codec.encode(raw), &decoded).ok());
          ASSERT_EQ(broken_law(mode, raw, decoded), "") << a << ' ' << b << ' ' << c << ' ' << d;
        }
}

TEST(Sz3, UsesTheShapeOfWholeRows) {
  const Shape shape = {16, 32, 32};
  const std::vector<float> raw = field<float>(shape);
  const Mode mode = {sz3::kRel, real_param(1, -3)};
  const auto dimensions = [&](const std::vector<float>& block, const Shape& array) {
    Sz3 codec(DType::kFloat32, mode, array);
    const std::vector<std::byte> code = codec.encode(block);
    EXPECT_EQ(static_cast<int>(code[0]), sz3::kLinear);
    return 1 + (static_cast<int>(code[1]) & 3);
  };
  EXPECT_EQ(dimensions(raw, {}), 1);
  EXPECT_EQ(dimensions(raw, {16 * 32 * 32}), 1);
  EXPECT_EQ(dimensions(raw, {16 * 32, 32}), 2);
  EXPECT_EQ(dimensions(raw, shape), 3);
  EXPECT_EQ(dimensions(raw, {1, 16, 32, 32}), 3);  // an extent of 1 is none
  EXPECT_EQ(dimensions(raw, {4, 4, 32, 32}), 4);
  EXPECT_EQ(dimensions({raw.begin(), raw.begin() + 4 * 1024}, shape), 3);  // a slab
  EXPECT_EQ(dimensions({raw.begin(), raw.begin() + 1024}, shape), 2);      // one row of it
  EXPECT_EQ(dimensions({raw.begin(), raw.begin() + 4 * 1024 + 1}, shape), 1);
  EXPECT_EQ(dimensions(raw, {16, 0, 32}), 1);
}

TEST(Sz3, ConstantBlocksAreShort) {
  const Mode rel = {sz3::kRel, real_param(1, -3)}, pw = {sz3::kPw, real_param(1, -3)};
  const Mode abs = {sz3::kAbs, real_param(1, -3)};
  const std::vector<float> zeros(5000), near = {1.0f, 1.0005f, 1.001f, 1.0002f};
  for (const Mode& mode : {rel, pw, abs})
    EXPECT_EQ(Sz3(DType::kFloat32, mode).encode(zeros).size(), 1 + 4 + 1u);
  EXPECT_EQ(Sz3(DType::kFloat32, abs).encode(near).size(), 1 + 4 + 1u);
  std::vector<double> masked(5000, std::nan(""));
  masked[17] = 3.5;
  EXPECT_LT(Sz3(DType::kFloat64, rel).encode(masked).size(), 40u);
}

TEST(Sz3, TakesOneBoundAndFloats) {
  const Codec& codec = *find_codec("sz3", 3)->codec;
  const auto refused = [&](DType dtype, std::array<int, 4> value) {
    Args args;
    args.dtype = dtype;
    args.value = value;
    return codec.check(&args).code() == Code::kParameter;
  };
  const int small = real_param(1, -3);
  EXPECT_FALSE(refused(DType::kFloat32, {0, 0, 0, 0}));
  EXPECT_FALSE(refused(DType::kFloat64, {small, 0, 0, 0}));
  EXPECT_FALSE(refused(DType::kBytes, {0, 0, 0, small}));
  EXPECT_TRUE(refused(DType::kFloat16, {small, 0, 0, 0}));
  EXPECT_TRUE(refused(DType::kInt32, {small, 0, 0, 0}));
  EXPECT_TRUE(refused(DType::kFloat32, {small, small, 0, 0}));
  EXPECT_TRUE(refused(DType::kFloat32, {0, 0, 0, real_param(1, 0)}));
  EXPECT_TRUE(refused(DType::kFloat32, {0, real_param(2, 0), 0, 0}));
  EXPECT_TRUE(refused(DType::kFloat32, {0, 0, real_param(401, 0), 0}));
}

TEST(Sz3, RefusesWhatNoEncoderWrites) {
  const Shape shape = {8, 9, 10};
  const std::vector<float> raw = field<float>(shape);
  Sz3 codec(DType::kFloat32, {sz3::kRel, real_param(1, -3)}, shape);
  const std::vector<std::byte> good = codec.encode(raw);
  std::vector<float> out(raw.size());
  ASSERT_TRUE(codec.decode(good, &out).ok());
  const auto refused = [&](size_t at, const std::vector<int>& bytes) {
    std::vector<std::byte> bad = good;
    for (size_t i = 0; i < bytes.size(); ++i) bad[at + i] = static_cast<std::byte>(bytes[i]);
    return codec.decode(bad, &out).code() == Code::kCorrupt;
  };
  constexpr size_t kStep = 10, kStream = 18, kTable = 22;
  EXPECT_TRUE(refused(0, {4}));                                 // method
  EXPECT_TRUE(refused(1, {6 << 3 | 2}));                        // order
  EXPECT_TRUE(refused(1, {3}));                                 // the step is read as an extent
  EXPECT_TRUE(refused(2, {0, 0, 0, 0}));                        // no extent
  EXPECT_TRUE(refused(2, {11, 0, 0, 0}));                       // does not divide
  EXPECT_TRUE(refused(2, {255, 255, 255, 255}));                // larger than the block
  EXPECT_TRUE(refused(kStep, {0, 0, 0, 0, 0, 0, 0, 0}));        // no step
  EXPECT_TRUE(refused(kStep, {0, 0, 0, 0, 0, 0, 0xF8, 0x7F}));  // NaN
  EXPECT_TRUE(refused(kStep, {0, 0, 0, 0, 0, 0, 0xF0, 0x7F}));  // infinite
  EXPECT_TRUE(refused(kStep + 7, {0xBF}));                      // negative
  EXPECT_TRUE(refused(kStream, {255, 255, 255, 255}));          // beyond the payload
  EXPECT_TRUE(refused(kTable, {0}));                            // no code
  EXPECT_TRUE(refused(kTable, {162}));                          // more tokens than there are
  EXPECT_TRUE(refused(kTable + 1, {0xCC}));                     // too long
  EXPECT_TRUE(refused(kTable + 1, {0x11, 0x11}));               // no prefix code
  EXPECT_TRUE(refused(good.size() - 1, {1}));                   // a run that is missing
  std::vector<float> other(raw.size() + 1);
  EXPECT_EQ(codec.decode(good, &other).code(), Code::kCorrupt);  // not that many values
}

}  // namespace
}  // namespace wirepress
