// SPDX-License-Identifier: Apache-2.0
// For the tests of gradient codecs: the law of error feedback (Kernel::encode_feedback,
// decode_add), that all kernels agree bit for bit, and data that tries them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "codecs/common/random.hpp"
#include "codecs/common/testing/states.hpp"

namespace wirepress::feedback {

using Floats = std::vector<float>;
using Coded = std::vector<std::byte>;

inline ConstBytes bytes(const Floats& values) { return std::as_bytes(std::span(values)); }
inline Bytes bytes(Floats& values) { return std::as_writable_bytes(std::span(values)); }
inline uint32_t word(float x) { return std::bit_cast<uint32_t>(x); }

inline double unit(uint64_t seed, uint64_t i) { return (random_bits(seed, i) + 0.5) * 0x1p-32; }

// 40 % zeros, else exponentially distributed sizes around `scale`, both signs.
inline Floats gradient(size_t n, uint64_t seed, double scale = 1e-3) {
  Floats out(n);
  for (size_t i = 0; i < n; ++i) {
    const double size = -scale * std::log(unit(seed, 3 * i));
    if (unit(seed, 3 * i + 1) < 0.6)
      out[i] = static_cast<float>(unit(seed, 3 * i + 2) < 0.5 ? size : -size);
  }
  return out;
}

inline Floats normal(size_t n, uint64_t seed, double sigma) {
  Floats out(n);
  for (size_t i = 0; i < n; ++i)
    out[i] = static_cast<float>(sigma * std::sqrt(-2 * std::log(unit(seed, 2 * i))) *
                                std::cos(6.283185307179586 * unit(seed, 2 * i + 1)));
  return out;
}

// A codec with one set of parameters: every kernel of this machine that knows feedback.
class Coder {
 public:
  Coder(const std::string& name, std::array<int, kMaxParams> params) {
    entry_ = find_codec(name.c_str(), name.size());
    args_.dtype = DType::kFloat32;
    args_.value = params;
    const Status status = entry_->codec->check(&args_);
    EXPECT_TRUE(status.ok()) << status.text();
    for (const Kernel* kernel : entry_->kernels)
      if (kernel->usable() && kernel->encode_feedback) kernels_.push_back(kernel);
  }
  Args& args() { return args_; }
  const Args& args() const { return args_; }
  const std::vector<const Kernel*>& kernels() const { return kernels_; }
  const Kernel& portable() const { return *kernels_.back(); }
  void* state(const Kernel& kernel) const { return states_->of(kernel, args_); }
  size_t bound(size_t n) const { return entry_->codec->bound(args_, n); }

  Coded encode(const Kernel& kernel, ConstBytes raw) const {
    Coded code(bound(raw.size()));
    size_t written = 0;
    const Status status = kernel.encode(state(kernel), args_, raw, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Coded encode(const Floats& values) const { return encode(portable(), bytes(values)); }
  Status decode(const Kernel& kernel, ConstBytes code, Bytes raw) const {
    size_t written = 0;
    return kernel.decode(state(kernel), args_, code, raw, &written);
  }
  Floats decode(const Coded& code, size_t n) const {
    Floats values(n);
    const Status status = decode(portable(), code, bytes(values));
    EXPECT_TRUE(status.ok()) << status.text();
    return values;
  }
  Floats quantised(const Floats& values) const { return decode(encode(values), values.size()); }

 private:
  std::shared_ptr<States> states_ = std::make_shared<States>();
  const Entry* entry_;
  Args args_;
  std::vector<const Kernel*> kernels_;
};

// NaNs are alike here: which payload an addition of two of them keeps is the processor's business.
inline bool same(float a, float b) {
  return word(a) == word(b) || (std::isnan(a) && std::isnan(b));
}

// The law for one pair of arrays and `tail` bytes more, at an address that is odd.
inline void check_pair(const Coder& coder, const Floats& g, const Floats& e, size_t tail,
                       const std::string& what) {
  const size_t n = g.size();
  Floats t(n);
  for (size_t i = 0; i < n; ++i) t[i] = g[i] + e[i];
  std::vector<std::byte> raw(4 * n + tail, std::byte{0x5A}), sum = raw;
  if (n > 0) std::memcpy(raw.data(), g.data(), 4 * n);
  if (n > 0) std::memcpy(sum.data(), t.data(), 4 * n);
  const Coded expected = coder.encode(coder.portable(), sum);
  std::vector<std::byte> decoded(raw.size());
  const Status status = coder.decode(coder.portable(), expected, decoded);
  ASSERT_TRUE(status.ok()) << what << ": " << status.text();
  Floats d(n);
  if (n > 0) std::memcpy(d.data(), decoded.data(), 4 * n);

  for (const Kernel* kernel : coder.kernels()) {
    const std::string where = what + ", " + std::to_string(n) + " values, " + kernel->variant;
    ASSERT_EQ(coder.encode(*kernel, sum), expected) << where;
    std::vector<std::byte> source(raw.size() + 1), rest(raw.size() + 1), code(expected.size() + 1);
    std::copy(raw.begin(), raw.end(), source.begin() + 1);
    if (n > 0) std::memcpy(rest.data() + 1, e.data(), 4 * n);
    const ConstBytes src = ConstBytes(source).subspan(1);
    const Bytes residual = Bytes(rest).subspan(1);

    size_t written = 0;
    const std::vector<std::byte> before = rest;
    if (!expected.empty()) {
      const Bytes small = Bytes(code).first(expected.size() - 1);
      EXPECT_EQ(
          kernel
              ->encode_feedback(coder.state(*kernel), coder.args(), src, residual, small, &written)
              .code(),
          Code::kDstTooSmall);
      ASSERT_EQ(rest, before) << where << ": touched the residual before it failed";
    }
    Coded room(coder.bound(raw.size()) + 1);
    const Status done = kernel->encode_feedback(coder.state(*kernel), coder.args(), src, residual,
                                                Bytes(room).subspan(1), &written);
    ASSERT_TRUE(done.ok()) << where << ": " << done.text();
    ASSERT_EQ(Coded(room.begin() + 1, room.begin() + 1 + static_cast<ptrdiff_t>(written)), expected)
        << where << ": not the code of src + residual";
    for (size_t i = 0; i < n; ++i) {
      float left;
      std::memcpy(&left, residual.data() + 4 * i, 4);
      const float law = std::isfinite(d[i]) ? t[i] - d[i] : 0.0f;
      ASSERT_EQ(word(left), word(law)) << where << ": residual " << i;
    }

    std::copy(raw.begin(), raw.end(), source.begin() + 1);
    const Bytes sums = Bytes(source).subspan(1);
    std::copy(expected.begin(), expected.end(), code.begin() + 1);
    const Status added =
        kernel->decode_add(coder.state(*kernel), coder.args(), ConstBytes(code).subspan(1), sums);
    ASSERT_TRUE(added.ok()) << where << ": " << added.text();
    for (size_t i = 0; i < n; ++i) {
      float s;
      std::memcpy(&s, sums.data() + 4 * i, 4);
      ASSERT_TRUE(same(s, g[i] + d[i])) << where << ": sum " << i;
    }
  }
}

// The law for sizes around groups and chunks, and for values of every kind.
inline void check_law(Coder coder, const std::string& what) {
  using Limits = std::numeric_limits<float>;
  const std::vector<size_t> sizes = {0,  1,   2,   15,  16,   17,   31,   32,   33,  63,
                                     65, 511, 512, 513, 1000, 4095, 4096, 4097, 9001};
  for (const size_t n : sizes) {
    coder.args().seed = 0x123456789 + n;
    coder.args().first = n % 2 ? 0 : 0xFFFFFE03;  // crosses 2^32 in the first chunk
    const Floats g = gradient(n, n), e = normal(n, n + 1, 5e-4), none(n);
    check_pair(coder, g, e, n % 4, what);
    check_pair(coder, g, none, 0, what + ", no residual");
    check_pair(coder, gradient(n, n, 1e-40), gradient(n, n + 1, 1e-39), 1, what + ", denormal");
    check_pair(coder, normal(n, n, 1e37), e, 2, what + ", large");
    check_pair(coder, none, Floats(n, -0.0f), 3, what + ", zeros");
    check_pair(coder, Floats(n, -0.0f), Floats(n, -0.0f), 3, what + ", negative zeros");
    check_pair(coder, Floats(n, Limits::max()), none, 0, what + ", the largest");
    for (const float odd : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                            Limits::signaling_NaN(), Limits::max(), Limits::denorm_min()}) {
      Floats spiked = g;
      if (n > 0) spiked[n * 5 / 7] = odd;
      check_pair(coder, spiked, e, 0, what + ", spiked");
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A value that is not finite makes its chunk NaN, and only that; nothing of it is left over.
inline void check_nan_chunks(const Coder& coder, size_t chunk) {
  const size_t n = 3 * chunk + 5;
  for (const float odd :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {size_t{0}, chunk - 1, chunk, 2 * chunk + 77 % chunk, n - 1}) {
      Floats g = gradient(n, at);
      g[at] = odd;
      const Floats decoded = coder.quantised(g);
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(std::isnan(decoded[i]), i / chunk == at / chunk) << at << ", value " << i;
    }
  }
}

// The mean of what `n_seeds` encodings decode to.
inline std::vector<double> mean_of_draws(Coder coder, const Floats& values, int n_seeds) {
  std::vector<double> mean(values.size());
  for (int seed = 0; seed < n_seeds; ++seed) {
    coder.args().seed = static_cast<uint64_t>(seed) * 7919 + 1;
    const Floats decoded = coder.quantised(values);
    for (size_t i = 0; i < values.size(); ++i) mean[i] += static_cast<double>(decoded[i]) / n_seeds;
  }
  return mean;
}

// Whether every kernel refuses the code.
inline bool refused(const Coder& coder, ConstBytes code, size_t raw_size) {
  Coded raw(raw_size);
  bool all = true;
  for (const Kernel* kernel : coder.kernels())
    all = coder.decode(*kernel, code, raw).code() == Code::kCorrupt && all;
  return all;
}

}  // namespace wirepress::feedback
