// SPDX-License-Identifier: Apache-2.0
// The stream against libzfp's own, the error bound value by value, and decoding by parts.
#include "codecs/zfp/zfp.hpp"

#include <gtest/gtest.h>
#include <zfp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "codecs/common/testing/schedules.hpp"
#include "codecs/zfp/warp.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace wirepress {
namespace {

using zfp::Grid;
using Data = std::vector<std::byte>;

const Entry& entry() { return *find_codec("zfp", 3); }

// Parameters as text, "accuracy=1e-3"; "" is reversible.
Args args_of(DType dtype, const std::string& text, std::vector<uint64_t> shape = {}) {
  Args args;
  args.dtype = dtype;
  const size_t at = text.find('=');
  for (size_t i = 0; i < entry().codec->params.size(); ++i) {
    if (text.substr(0, at) != entry().codec->params[i].name) continue;
    const std::string value = text.substr(at + 1);
    if (entry().codec->params[i].real)
      EXPECT_TRUE(parse_real(value.data(), value.size(), &args.value[i]));
    else
      args.value[i] = std::stoi(value);
  }
  args.n_dims = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), args.shape.begin());
  EXPECT_TRUE(entry().codec->check(&args).ok());
  return args;
}

class Zfp {
 public:
  explicit Zfp(const Args& args, const Kernel& kernel = *entry().kernels.back())
      : args_(args), kernel_(kernel) {
    EXPECT_TRUE(kernel_.open(args_, &state_).ok());
  }
  ~Zfp() { kernel_.close(state_); }
  Zfp(const Zfp&) = delete;
  Zfp& operator=(const Zfp&) = delete;

  Data encode(ConstBytes raw) {
    Data code(entry().codec->bound(args_, raw.size()));
    size_t written = 0;
    const Status status = kernel_.encode(state_, args_, raw, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Status decode(ConstBytes code, Bytes raw) {
    size_t written = 0;
    return kernel_.decode(state_, args_, code, raw, &written);
  }
  Status decode_part(ConstBytes code, size_t part, Bytes raw) {
    return kernel_.decode_part(state_, args_, code, part, raw);
  }
  size_t parts(ConstBytes code, size_t raw_size) { return kernel_.parts(args_, code, raw_size); }

 private:
  Args args_;
  const Kernel& kernel_;
  void* state_ = nullptr;
};

template <typename T>
ConstBytes bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> round_trip(const Args& args, const std::vector<T>& in) {
  Zfp zfp(args);
  const Data code = zfp.encode(bytes_of(in));
  std::vector<T> out(in.size());
  const Status status = zfp.decode(code, std::as_writable_bytes(std::span(out)));
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || !std::memcmp(a.data(), b.data(), sizeof(T) * a.size()));
}

uint32_t head_of(const Data& code) {
  uint32_t word = 0;
  std::memcpy(&word, code.data(), 4);
  return word;
}
bool reversible(const Data& code) { return head_of(code) >> 31 != 0; }

template <typename T>
constexpr DType kType = std::is_same_v<T, float>    ? DType::kFloat32
                        : std::is_same_v<T, double> ? DType::kFloat64
                        : std::is_same_v<T, int32>  ? DType::kInt32
                                                    : DType::kInt64;
template <typename T>
constexpr zfp_type kLibType = std::is_same_v<T, float>    ? zfp_type_float
                              : std::is_same_v<T, double> ? zfp_type_double
                              : std::is_same_v<T, int32>  ? zfp_type_int32
                                                          : zfp_type_int64;

// ---- the same bytes as libzfp
// --------------------------------------------------------------------

// What zfp_compress writes, filled up to words of 64 bits.
template <typename T>
Data libzfps(const std::vector<T>& values, const std::vector<uint64_t>& shape,
             const std::string& mode) {
  zfp_field* field = zfp_field_alloc();
  zfp_field_set_type(field, kLibType<T>);
  zfp_field_set_pointer(field, const_cast<T*>(values.data()));
  const size_t d = shape.size();
  const auto n = [&](size_t i) { return shape[d - 1 - i]; };  // x first
  if (d == 1) zfp_field_set_size_1d(field, n(0));
  if (d == 2) zfp_field_set_size_2d(field, n(0), n(1));
  if (d == 3) zfp_field_set_size_3d(field, n(0), n(1), n(2));
  if (d == 4) zfp_field_set_size_4d(field, n(0), n(1), n(2), n(3));
  zfp_stream* stream = zfp_stream_open(nullptr);
  const double value = mode.empty() ? 0 : std::stod(mode.substr(mode.find('=') + 1));
  if (mode.empty()) zfp_stream_set_reversible(stream);
  if (mode[0] == 'a') zfp_stream_set_accuracy(stream, value);
  if (mode[0] == 'p') zfp_stream_set_precision(stream, static_cast<uint>(value));
  if (mode[0] == 'r')
    zfp_stream_set_rate(stream, value, kLibType<T>, static_cast<uint>(d), zfp_false);
  std::vector<uint64_t> buffer(zfp_stream_maximum_size(stream, field) / 8 + 2);
  bitstream* bits = stream_open(buffer.data(), 8 * buffer.size());
  zfp_stream_set_bit_stream(stream, bits);
  zfp_stream_rewind(stream);
  const size_t size = (zfp_compress(stream, field) + 7) / 8 * 8;
  zfp_field_free(field);
  zfp_stream_close(stream);
  stream_close(bits);
  const ConstBytes code = std::as_bytes(std::span(buffer)).first(size);
  return {code.begin(), code.end()};
}

template <typename T>
std::vector<T> waves(const std::vector<uint64_t>& shape, double size) {
  size_t n = 1;
  for (const uint64_t extent : shape) n *= extent;
  std::vector<T> values(n);
  std::mt19937_64 random(n);
  for (size_t i = 0; i < n; ++i) {
    double x = size;
    size_t left = i;
    for (size_t d = shape.size(); d-- > 0; left /= shape[d])
      x *= std::sin(0.1 * static_cast<double>(left % shape[d] + 1 + d));
    x += 1e-4 * size * static_cast<double>(random() % 1000) / 1000;
    if (i % 5000 > 4000) x = 0;
    values[i] = static_cast<T>(x);
  }
  return values;
}

template <typename T>
void expect_libzfps_bytes(const std::vector<uint64_t>& shape, const std::string& mode,
                          double size) {
  const std::vector<T> values = waves<T>(shape, size);
  const Data code = Zfp(args_of(kType<T>, mode, shape)).encode(bytes_of(values));
  const Data expected = libzfps(values, shape, mode);
  ASSERT_LE(4 + expected.size(), code.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), code.begin() + 4))
      << mode << ", " << shape.size() << " dimensions";
  const Grid grid = zfp::grid_of(args_of(kType<T>, mode, shape), values.size() * sizeof(T));
  const unsigned width = head_of(code) >> zfp::Head::kLeastBits & 31;
  EXPECT_EQ(code.size(), expected.size() + zfp::index_size(grid.groups, width) + 4);
  EXPECT_EQ(reversible(code), mode.empty());
  EXPECT_LE(code.size(),
            entry().codec->bound(args_of(kType<T>, mode, shape), values.size() * sizeof(T)));
}

const std::vector<std::vector<uint64_t>> kShapes = {
    {1},       {2},         {3},          {4},          {5},           {1023},       {1024},
    {1025},    {20000},     {5, 7},       {64, 64},     {6, 1000},     {123, 131},   {2, 3, 2},
    {3, 9, 5}, {8, 64, 32}, {21, 22, 23}, {2, 3, 4, 5}, {9, 6, 7, 10}, {8, 8, 8, 16}};

TEST(Zfp, FloatStreamsAreLibzfps) {
  for (const auto& shape : kShapes)
    for (const char* mode :
         {"", "accuracy=1e-3", "accuracy=1e-6", "accuracy=2", "rate=8", "rate=0.5", "rate=11.3",
          "rate=40", "precision=1", "precision=16", "precision=64"}) {
      expect_libzfps_bytes<float>(shape, mode, 1);
      expect_libzfps_bytes<double>(shape, mode, 1);
    }
}

TEST(Zfp, IntegerStreamsAreLibzfps) {
  for (const auto& shape : kShapes)
    for (const char* mode : {"", "rate=8", "rate=0.125", "precision=12", "precision=64"}) {
      expect_libzfps_bytes<int32>(shape, mode, 1e9);
      expect_libzfps_bytes<int64>(shape, mode, 4e18);
    }
}

// Sizes published for an encoder in hardware: exp(-(x^2 + y^2)), x = 2i/n, tolerance 1e-3, float32
// in two dimensions, words of 64 bits.
TEST(Zfp, SizesOfTheGaussianGrids) {
  constexpr size_t kSizes[][2] = {{3, 32},       {4, 24},       {8, 80},       {16, 208},
                                  {100, 4536},   {123, 6808},   {210, 17536},  {345, 43936},
                                  {354, 46096},  {500, 89216},  {505, 91608},  {510, 93304},
                                  {530, 100520}, {550, 107944}, {590, 123584}, {600, 126944}};
  for (const auto& [n, size] : kSizes) {
    std::vector<float> values(n * n);
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = 2.0 * static_cast<double>(i % n) / static_cast<double>(n);
      const double y = 2.0 * static_cast<double>(i / n) / static_cast<double>(n);
      values[i] = static_cast<float>(std::exp(-(x * x + y * y)));
    }
    const Args args = args_of(DType::kFloat32, "accuracy=1e-3", {n, n});
    const Data code = Zfp(args).encode(bytes_of(values));
    const Grid grid = zfp::grid_of(args, 4 * values.size());
    const unsigned width = head_of(code) >> zfp::Head::kLeastBits & 31;
    EXPECT_EQ(code.size() - zfp::index_size(grid.groups, width) - 4, size) << n;
  }
}

// ---- what comes back
// -----------------------------------------------------------------------------

template <typename T>
using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Runs of one kind after the other: a cell may be all of one or a mix.
template <typename T>
std::vector<T> any_words(size_t n, uint64_t seed) {
  std::vector<T> values(n);
  std::mt19937_64 random(seed);
  Word<T> word = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t draw = random();
    const Word<T> bits = static_cast<Word<T>>(random());
    constexpr Word<T> kSign = Word<T>{1} << (8 * sizeof(T) - 1);
    constexpr Word<T> kInfinity =
        sizeof(T) == 4 ? Word<T>{0x7F800000} : static_cast<Word<T>>(0x7FF0000000000000);
    switch ((draw >> 8 & 255) < 16 ? draw % 8 : i / 64 % 8) {
      case 0:
        word = bits & kSign;
        break;  // zeros
      case 1:
        word = bits & ~kInfinity;
        break;  // denormals
      case 2:
        word = bits | kInfinity;
        break;  // NaN
      case 3:
        word = (bits & kSign) | kInfinity;
        break;  // infinities
      case 4:
        word = word ^ (bits & 0xFFFF);
        break;
      default:
        word = bits;
    }
    std::memcpy(&values[i], &word, sizeof(T));
  }
  return values;
}

template <typename T>
void expect_every_bit() {
  for (const auto& shape : kShapes) {
    size_t n = 1;
    for (const uint64_t extent : shape) n *= extent;
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<T> in = any_words<T>(n, seed);
      EXPECT_TRUE(same_bits(round_trip(args_of(kType<T>, "", shape), in), in));
    }
    for (const double size : {1e-44, 1e-30, 1.0, 1e9}) {
      const std::vector<T> in = waves<T>(shape, size);
      EXPECT_TRUE(same_bits(round_trip(args_of(kType<T>, "", shape), in), in));
    }
  }
}

TEST(Zfp, ReversibleKeepsEveryBit) {
  expect_every_bit<float>();
  expect_every_bit<double>();
  expect_every_bit<int32>();
  expect_every_bit<int64>();
}

template <typename T>
void expect_exact_with(T odd) {
  std::vector<T> in(5000);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<T>(std::sin(0.01 * static_cast<double>(i)));
  in[4321] = odd;
  in[17] = static_cast<T>(-0.0);
  for (const char* mode : {"accuracy=1e-3", "rate=4", "precision=8"})
    EXPECT_TRUE(same_bits(round_trip(args_of(kType<T>, mode), in), in)) << mode << " " << odd;
}

TEST(Zfp, BlocksWithNanOrInfinityComeBackExactly) {
  using F = std::numeric_limits<float>;
  using D = std::numeric_limits<double>;
  for (const float odd : {F::quiet_NaN(), F::signaling_NaN(), F::infinity(), -F::infinity()})
    expect_exact_with<float>(odd);
  for (const double odd : {D::quiet_NaN(), D::signaling_NaN(), D::infinity(), -D::infinity()})
    expect_exact_with<double>(odd);
}

template <typename T>
void expect_bound(const std::vector<T>& in, const std::vector<uint64_t>& shape,
                  const std::string& tolerance) {
  const Args args = args_of(kType<T>, "accuracy=" + tolerance, shape);
  const std::vector<T> out = round_trip(args, in);
  const double bound = args.real(zfp::kAccuracyParam);
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_LE(std::fabs(static_cast<double>(in[i]) - static_cast<double>(out[i])), bound)
        << in[i] << " at " << i << ", " << shape.size() << " dimensions, " << tolerance;
}

// Finite values of every size, in runs of similar and of wild exponents.
template <typename T>
std::vector<T> wild(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  using L = std::numeric_limits<T>;
  for (size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    const int kind = static_cast<int>((i >> 8) % 6);
    const int span = L::max_exponent - L::min_exponent;
    const int exponent =
        kind == 0   ? L::min_exponent - 5
        : kind == 1 ? L::max_exponent
        : kind == 2 ? L::min_exponent + static_cast<int>(random() % static_cast<unsigned>(span))
        : kind == 3 ? (sizeof(T) == 4 ? -97 : -961) + static_cast<int>(random() % 3)
                    : static_cast<int>(random() % 30) - 20;
    values[i] = static_cast<T>(std::ldexp(unit, exponent));
    if (!std::isfinite(values[i])) values[i] = L::max();
    if (random() % 16 == 0) values[i] = 0;
    if (kind == 1 && random() % 4 == 0) values[i] = random() % 2 ? L::max() : L::lowest();
    if (kind == 0 && random() % 4 == 0) values[i] = L::denorm_min();
  }
  return values;
}

// Wild values of one kind only.
template <typename T>
std::vector<T> wild_kind(size_t n, size_t kind, uint64_t seed) {
  std::vector<T> all = wild<T>(6 * 256 * ((n + 255) / 256), seed), values;
  for (size_t i = 0; values.size() < n; ++i)
    if ((i >> 8) % 6 == kind) values.push_back(all[i]);
  return values;
}

// Noise of sizes around the tolerance: libzfp alone breaks its bound for some below half of it.
template <typename T>
std::vector<T> noise_near(size_t n, double tolerance, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) {
    const double size = std::ldexp(1.0, std::ilogb(tolerance) - 3 + static_cast<int>(i / 64 % 5));
    const double unit = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
    values[i] = static_cast<T>(size * (random() % 2 ? unit : std::copysign(0.999, unit)));
  }
  return values;
}

TEST(Zfp, KeepsItsBoundForNoiseNearIt) {
  for (const char* tolerance : {"1e-3", "2e-3", "5e1"}) {
    const double size = std::stod(tolerance);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      expect_bound(noise_near<float>(100000, size, seed), {100000}, tolerance);
      expect_bound(noise_near<float>(100000, size, seed), {250, 400}, tolerance);
      expect_bound(noise_near<float>(64000, size, seed), {40, 40, 40}, tolerance);
      expect_bound(noise_near<float>(65536, size, seed), {16, 16, 16, 16}, tolerance);
      expect_bound(noise_near<double>(100000, size, seed), {100000}, tolerance);
    }
  }
}

template <typename T>
void expect_bounds() {
  const std::vector<std::vector<uint64_t>> shapes = {{1500}, {37, 41}, {11, 12, 12}, {6, 6, 7, 6}};
  for (const auto& shape : shapes) {
    size_t n = 1;
    for (const uint64_t extent : shape) n *= extent;
    for (int exponent = -120; exponent <= 120;
         exponent += exponent > -60 && exponent < 20 ? 1 : 12) {
      const std::string tolerance = (exponent % 2 ? "1e" : "37e") + std::to_string(exponent);
      expect_bound(wild<T>(n, static_cast<uint64_t>(exponent + 200)), shape, tolerance);
      for (size_t kind = 0; kind < 6; ++kind)
        expect_bound(wild_kind<T>(n, kind, static_cast<uint64_t>(exponent + 200)), shape,
                     tolerance);
      expect_bound(waves<T>(shape, 1), shape, tolerance);
      expect_bound(waves<T>(shape, 1e-33), shape, tolerance);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Zfp, KeepsItsBoundFloat) { expect_bounds<float>(); }
TEST(Zfp, KeepsItsBoundDouble) { expect_bounds<double>(); }

TEST(Zfp, ToleranceBelowThePrecisionIsReversible) {
  const std::vector<float> in = waves<float>({64, 64}, 1);
  for (const char* mode : {"accuracy=1e-9", "accuracy=1e-5"}) {
    const bool exact = same_bits(round_trip(args_of(DType::kFloat32, mode, {64, 64}), in), in);
    EXPECT_EQ(exact, std::string(mode) == "accuracy=1e-9");
  }
}

// rate and precision have no bound, but finite values stay finite, and cells that libzfp would
// garble are zeros beside larger values, and exact where there are none.
TEST(Zfp, TinyValues) {
  for (const char* mode : {"rate=16", "precision=20"}) {
    std::vector<float> in(4096, 1e-33f);
    EXPECT_TRUE(same_bits(round_trip(args_of(DType::kFloat32, mode), in), in)) << mode;
    in[0] = 1;
    std::vector<float> out = round_trip(args_of(DType::kFloat32, mode), in);
    EXPECT_NEAR(out[0], 1, 0.01);
    for (size_t i = 4; i < in.size(); ++i) ASSERT_EQ(out[i], 0) << mode << " " << i;
    std::fill(in.begin(), in.end(), 0.0f);
    in[7] = 1e-30f;
    out = round_trip(args_of(DType::kFloat32, mode), in);
    EXPECT_TRUE(same_bits(out, in)) << mode;
    std::vector<double> wide(4096, 1e-300);
    EXPECT_TRUE(same_bits(round_trip(args_of(DType::kFloat64, mode), wide), wide)) << mode;
  }
}

TEST(Zfp, LargestValuesStayFinite) {
  std::mt19937 random(1);
  for (const char* mode : {"rate=3", "rate=8", "precision=2", "precision=9", "accuracy=1e32"}) {
    std::vector<float> in(4096);
    for (float& x : in) x = random() % 2 ? 3.4e38f : -3.3e38f;
    for (const float x : round_trip(args_of(DType::kFloat32, mode, {64, 64}), in))
      ASSERT_TRUE(std::isfinite(x)) << mode;
  }
}

TEST(Zfp, LargeIntegersAreExact) {
  for (const char* mode : {"rate=8", "precision=10"}) {
    std::vector<int32> in(1000, 5);
    in[500] = std::numeric_limits<int32>::min();
    EXPECT_TRUE(same_bits(round_trip(args_of(DType::kInt32, mode), in), in));
    in[500] = 1 << 30;
    EXPECT_TRUE(same_bits(round_trip(args_of(DType::kInt32, mode), in), in));
    std::vector<int64> wide(1000, 5);
    wide[500] = -(int64{1} << 62);
    EXPECT_TRUE(same_bits(round_trip(args_of(DType::kInt64, mode), wide), wide));
  }
}

#if defined(__x86_64__)
TEST(Zfp, DoesNotDependOnTheCallersRounding) {
  std::vector<float> in = any_words<float>(4096, 1);
  for (size_t i = 0; i < 2048; ++i) in[i] = static_cast<float>(i) * 1e-42f;
  Zfp zfp(args_of(DType::kFloat32, ""));
  const Data code = zfp.encode(bytes_of(in));
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0xE040);  // flush to zero, denormals are zero, towards zero
  const Data flushed = zfp.encode(bytes_of(in));
  std::vector<float> out(in.size());
  const Status status = zfp.decode(code, std::as_writable_bytes(std::span(out)));
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_EQ(flushed, code);
  EXPECT_TRUE(status.ok() && same_bits(in, out));
  EXPECT_EQ(after & 0xFFC0, (saved | 0xE040) & 0xFFC0);
}
#endif

// ---- shapes
// --------------------------------------------------------------------------------------

TEST(Zfp, GridOfABlock) {
  const auto grid = [](std::vector<uint64_t> shape, size_t values, DType dtype = DType::kFloat32) {
    return zfp::grid_of(args_of(dtype, "", shape), values * 4);
  };
  using Extents = std::array<size_t, kMaxDims>;
  EXPECT_EQ(grid({}, 100).n, (Extents{100, 1, 1, 1}));
  EXPECT_EQ(grid({200, 30, 20}, 2400).n, (Extents{20, 30, 4, 1}));  // x is the last
  EXPECT_EQ(grid({200, 30, 20}, 2400).dims, 3);
  EXPECT_EQ(grid({200, 30, 20}, 600).n, (Extents{20, 30, 1, 1}));  // one row: a dimension less
  EXPECT_EQ(grid({200, 30, 20}, 600).dims, 2);
  EXPECT_EQ(grid({200, 30, 20}, 601).dims, 1);  // no whole rows
  EXPECT_EQ(grid({1, 1, 7, 9}, 63).n, (Extents{9, 7, 1, 1}));
  EXPECT_EQ(grid({1, 1}, 1).dims, 1);
  EXPECT_EQ(grid({5, 1, 4, 3}, 60).n, (Extents{3, 4, 5, 1}));
  EXPECT_EQ(grid({5, 0}, 10).dims, 1);
  EXPECT_EQ(grid({5, uint64_t{1} << 40, uint64_t{1} << 40}, 10).dims, 1);
  EXPECT_EQ(grid({2, 5}, 10, DType::kBytes).dims, 2);
  EXPECT_EQ(grid({64, 64}, 4096).groups, 4u);
  EXPECT_EQ(zfp::grid_of(args_of(DType::kFloat64, "", {10, 10}), 803).tail, 3u);
}

TEST(Zfp, TakesWhatItsDocumentSays) {
  const auto refuses = [](DType dtype, std::array<int, kMaxParams> value) {
    Args args;
    args.dtype = dtype;
    args.value = value;
    return entry().codec->check(&args).code() == Code::kParameter;
  };
  EXPECT_TRUE(refuses(DType::kFloat16, {}));
  EXPECT_TRUE(refuses(DType::kUint32, {}));
  EXPECT_TRUE(refuses(DType::kFloat32, {real_param(1, -3), real_param(8, 0)}));
  EXPECT_TRUE(refuses(DType::kFloat32, {0, real_param(8, 0), 3}));
  EXPECT_TRUE(refuses(DType::kFloat32, {0, real_param(65, 0)}));
  EXPECT_TRUE(refuses(DType::kFloat32, {0, real_param(1, -1)}));
  EXPECT_TRUE(refuses(DType::kInt32, {real_param(1, 0)}));
  EXPECT_FALSE(refuses(DType::kInt64, {0, real_param(8, 0)}));
  EXPECT_FALSE(refuses(DType::kBytes, {real_param(1, -3)}));
}

// ---- parts
// ---------------------------------------------------------------------------------------

TEST(Zfp, PartsGiveTheWhole) {
  for (const char* mode : {"", "accuracy=1e-4", "rate=6", "precision=14"}) {
    for (const std::vector<uint64_t>& shape : std::vector<std::vector<uint64_t>>{
             {100003}, {301, 401}, {40, 50, 60}, {20, 20, 20, 21}, {5}}) {
      const std::vector<float> in = waves<float>(shape, 1);
      Zfp zfp(args_of(DType::kFloat32, mode, shape));
      const Data code = zfp.encode(bytes_of(in));
      std::vector<float> whole(in.size()), pieces(in.size(), -7);
      ASSERT_TRUE(zfp.decode(code, std::as_writable_bytes(std::span(whole))).ok());
      const size_t parts = zfp.parts(code, 4 * in.size());
      EXPECT_GE(parts, in.size() > 90000 ? 10u : 1u);
      EXPECT_LE(parts, 64u);
      for (size_t part = parts; part-- > 0;) {
        const Status status =
            zfp.decode_part(code, part, std::as_writable_bytes(std::span(pieces)));
        ASSERT_TRUE(status.ok()) << status.text();
      }
      EXPECT_TRUE(same_bits(whole, pieces)) << mode;
    }
  }
}

// The bytes behind the last value belong to the last part.
TEST(Zfp, LastPartHasTheTail) {
  Data raw(40003, std::byte{0x3D});
  Zfp zfp(args_of(DType::kFloat32, "accuracy=1e-3"));
  const Data code = zfp.encode(raw);
  Data pieces(raw.size());
  const size_t parts = zfp.parts(code, raw.size());
  for (size_t part = 0; part < parts; ++part) ASSERT_TRUE(zfp.decode_part(code, part, pieces).ok());
  EXPECT_TRUE(std::equal(raw.end() - 3, raw.end(), pieces.end() - 3));
}

// Threads take parts in turns. Prints what it gained; a machine that is busy gains less.
TEST(Zfp, TwoThreadsDecodeOnePayload) {
  const std::vector<uint64_t> shape = {64, 128, 128};
  const std::vector<float> in = waves<float>(shape, 1);
  const Args args = args_of(DType::kFloat32, "accuracy=1e-4", shape);
  const Data code = Zfp(args).encode(bytes_of(in));
  std::vector<float> expected(in.size());
  ASSERT_TRUE(Zfp(args).decode(code, std::as_writable_bytes(std::span(expected))).ok());
  const auto seconds = [&](size_t n_threads) {
    std::vector<float> out(in.size());
    const Bytes dst = std::as_writable_bytes(std::span(out));
    const auto work = [&](size_t first) {
      Zfp zfp(args);
      const size_t parts = zfp.parts(code, dst.size());
      for (size_t part = first; part < parts; part += n_threads)
        EXPECT_TRUE(zfp.decode_part(code, part, dst).ok());
    };
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (size_t i = 1; i < n_threads; ++i) threads.emplace_back(work, i);
    work(0);
    for (std::thread& thread : threads) thread.join();
    const auto end = std::chrono::steady_clock::now();
    EXPECT_TRUE(same_bits(out, expected));
    return std::chrono::duration<double>(end - begin).count();
  };
  double one = 1e9, two = 1e9;
  for (int i = 0; i < 5; ++i) {
    one = std::min(one, seconds(1));
    two = std::min(two, seconds(2));
  }
  std::printf("%zu bytes of %zu by parts: %.1f ms, two threads %.1f ms, x%.2f\n", code.size(),
              4 * in.size(), 1e3 * one, 1e3 * two, one / two);
}

// ---- damage
// --------------------------------------------------------------------------------------

bool parts_agree(Zfp* zfp, const Data& code, size_t raw_size) {
  Data raw(raw_size), pieces(raw_size);
  const bool good = zfp->decode(code, raw).ok();
  bool all = true;
  for (size_t part = 0; part < zfp->parts(code, raw_size); ++part)
    all &= zfp->decode_part(code, part, pieces).ok();
  return good == all && (!good || raw == pieces);
}

TEST(Zfp, DamageIsMetByAllAlike) {
  std::mt19937 random(1);
  for (const char* mode : {"", "accuracy=1e-4", "rate=6", "precision=14"}) {
    const std::vector<float> in = waves<float>({31, 29, 23}, 1);
    Zfp zfp(args_of(DType::kFloat32, mode, {31, 29, 23}));
    const Data code = zfp.encode(bytes_of(in));
    for (int i = 0; i < 300; ++i) {
      Data bad = code;
      const size_t at = i % 3 == 0   ? random() % 4
                        : i % 3 == 1 ? random() % bad.size()
                                     : bad.size() - 1 - random() % 60;
      bad[at] ^= static_cast<std::byte>(1 << random() % 8);
      if (i % 5 == 0) bad.resize(random() % bad.size());
      EXPECT_TRUE(parts_agree(&zfp, bad, 4 * in.size())) << mode << ", byte " << at;
    }
  }
}

TEST(Zfp, RefusesWhatNoEncoderWrites) {
  const std::vector<float> in = waves<float>({5000}, 1);
  Zfp zfp(args_of(DType::kFloat32, "accuracy=1e-4"));
  const Data good = zfp.encode(bytes_of(in));
  std::vector<float> out(in.size());
  const auto refused = [&](const Data& code) {
    return zfp.decode(code, std::as_writable_bytes(std::span(out))).code() == Code::kCorrupt;
  };
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused({}));
  for (const int bit : {25, 30}) {  // reserved
    Data bad = good;
    bad[static_cast<size_t>(bit) / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_TRUE(refused(bad));
  }
  Data bad = good;  // the last bit of the stream is padding
  const unsigned width = head_of(good) >> zfp::Head::kLeastBits & 31;
  const size_t index = zfp::index_size(5, width);
  bad[good.size() - index - 1] ^= std::byte{0x80};
  EXPECT_TRUE(refused(bad));
  if (4 * width % 8 != 0) {  // padding of the index
    bad = good;
    bad.back() ^= std::byte{0x80};
    EXPECT_TRUE(refused(bad));
  }
  bad = good;  // 8 bytes more
  bad.insert(bad.end() - static_cast<ptrdiff_t>(index), 8, std::byte{0});
  EXPECT_TRUE(refused(bad));
  Zfp lossless(args_of(DType::kFloat32, ""));
  EXPECT_EQ(lossless.decode(good, std::as_writable_bytes(std::span(out))).code(), Code::kCorrupt);
}

TEST(Zfp, TheExampleOfTheSpecification) {
  const float in[] = {1, 1.25f, 1.5f, 1.75f};
  const Data code =
      Zfp(args_of(DType::kFloat32, "accuracy=1e-1")).encode(std::as_bytes(std::span(in)));
  const std::string expected("\0\0\0\0\x01\xad\x2e\0\0\0\0\0", 12);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(code.data()), code.size()), expected);
}

// Where libzfp would break the bound, where values are tiny or huge, and where a code is damaged.
TEST(Zfp, OnAGpuEveryByteIsLibzfps) {
  const auto& kernels = entry().kernels;
  const auto emulated = std::ranges::find_if(kernels, [](const Kernel* kernel) {
    return std::string_view(kernel->variant) == "emulated";
  });
  ASSERT_NE(emulated, kernels.end());
  std::mt19937 random(1);
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{4001}, {61, 67}, {13, 17, 19}}) {
    size_t n = 1;
    for (const uint64_t extent : shape) n *= extent;
    std::vector<std::vector<float>> data = {noise_near<float>(n, 1e-3, 1), waves<float>(shape, 1)};
    for (size_t kind = 0; kind < 6; ++kind) data.push_back(wild_kind<float>(n, kind, kind));
    for (const auto& values : data) {
      for (const char* mode : {"accuracy=1e-3", "accuracy=2e-3", "accuracy=1e-20", "precision=7"}) {
        const Args args = args_of(DType::kFloat32, mode, shape);
        Zfp plain(args), there(args, **emulated);
        const Data code = plain.encode(bytes_of(values));
        EXPECT_EQ(there.encode(bytes_of(values)), code) << mode;
        for (int i = 0; i < 20; ++i) {
          Data bad = code;
          if (i > 0) bad[random() % bad.size()] ^= static_cast<std::byte>(1 << random() % 8);
          if (i % 5 == 4) bad.resize(random() % bad.size());
          std::vector<float> a(n), b(n);
          const Status one = plain.decode(bad, std::as_writable_bytes(std::span(a)));
          const Status other = there.decode(bad, std::as_writable_bytes(std::span(b)));
          EXPECT_EQ(one.code(), other.code()) << mode;
          EXPECT_TRUE(!one.ok() || same_bits(a, b)) << mode;
        }
      }
    }
  }
}

// By the kernels themselves: nothing goes to libzfp here.
TEST(Zfp, OnAGpuAnyOrderOfWarpsWillDo) {
  const std::vector<std::vector<uint64_t>> shapes = {{20003}, {101, 99}, {21, 18, 27}};
  for (const auto& shape : shapes) {
    for (const char* mode : {"rate=0.125", "rate=5.5", "rate=40", "accuracy=1e2", "accuracy=3e4",
                             "precision=1", "precision=13", "precision=32"}) {
      const Args args = args_of(DType::kFloat32, mode, shape);
      size_t size = 4;
      for (const uint64_t extent : shape) size *= extent;
      schedules::Schedules<zfp::Warps>("zfp", args, schedules::waves(size, 1)).hold(3);
    }
  }
}

}  // namespace
}  // namespace wirepress
