// SPDX-License-Identifier: Apache-2.0
// What the tests of the sparse codecs share: a codec at given parameters on each usable kernel.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codecs/common/sparse/sparse.hpp"

namespace wirepress::sparse {

using Floats = std::vector<float>;
using Data = std::vector<std::byte>;

class Coder {
 public:
  Coder(const Kernel& kernel, const Codec& codec, const std::vector<std::string>& reals)
      : kernel_(kernel), codec_(codec), args_(default_args(codec, DType::kFloat32)) {
    for (size_t i = 0; i < reals.size(); ++i)
      EXPECT_TRUE(parse_real(reals[i].data(), reals[i].size(), &args_.value[i]));
    EXPECT_TRUE(codec.check(&args_).ok());
    EXPECT_TRUE(kernel.open(args_, &state_).ok());
  }
  Coder(Coder&& other) noexcept
      : kernel_(other.kernel_), codec_(other.codec_), args_(other.args_), state_(other.state_) {
    other.state_ = nullptr;
  }
  ~Coder() { kernel_.close(state_); }
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;
  Coder& operator=(Coder&&) = delete;

  const char* variant() const { return kernel_.variant; }
  Args& args() { return args_; }
  size_t bound(size_t raw_size) const { return codec_.bound(args_, raw_size); }

  Data encode(const Floats& raw) { return encode_bytes(std::as_bytes(std::span(raw))); }
  Data encode_bytes(ConstBytes raw) {
    Data code(bound(raw.size()));
    size_t written = 0;
    const Status status = kernel_.encode(state_, args_, raw, code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Data encode_feedback(const Floats& raw, Floats* residual) {
    Data code(bound(4 * raw.size()));
    size_t written = 0;
    const Status status =
        kernel_.encode_feedback(state_, args_, std::as_bytes(std::span(raw)),
                                std::as_writable_bytes(std::span(*residual)), code, &written);
    EXPECT_TRUE(status.ok()) << status.text();
    code.resize(written);
    return code;
  }
  Floats decode(const Data& code, size_t n) {
    Floats raw(n, 7.0f);
    size_t written = 0;
    const Status status =
        kernel_.decode(state_, args_, code, std::as_writable_bytes(std::span(raw)), &written);
    EXPECT_TRUE(status.ok()) << status.text();
    return raw;
  }
  Status try_decode(ConstBytes code, size_t raw_size) {
    Data raw(raw_size);
    size_t written = 0;
    return kernel_.decode(state_, args_, code, raw, &written);
  }
  Status decode_add(const Data& code, Floats* sum) {
    return kernel_.decode_add(state_, args_, code, std::as_writable_bytes(std::span(*sum)));
  }
  Status add(const Data& a, const Data& b, size_t raw_size, Data* sum) {
    sum->resize(bound(raw_size));
    size_t written = 0;
    Status status = kernel_.add(state_, args_, a, b, raw_size, *sum, &written);
    sum->resize(status.ok() ? written : 0);
    return status;
  }

 private:
  const Kernel& kernel_;
  const Codec& codec_;
  Args args_;
  void* state_ = nullptr;
};

inline std::vector<Coder> coders(const char* codec, const std::vector<std::string>& reals = {}) {
  const Entry& entry = *find_codec(codec, std::strlen(codec));
  std::vector<Coder> result;
  for (const Kernel* kernel : entry.kernels)
    if (kernel->usable()) result.emplace_back(*kernel, *entry.codec, reals);
  return result;
}

inline uint32_t magnitude(float x) {
  return std::isnan(x) ? kNan : std::bit_cast<uint32_t>(x) & ~kSign;
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

// As gradients are: many zeros, the rest of all sizes.
inline Floats gradient(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<float> size(1e3f);
  Floats result(n);
  for (float& x : result)
    if (random() % 10 >= 4) x = random() % 2 ? size(random) : -size(random);
  return result;
}

// What `chosen` says, with only one NaN, and +0 elsewhere.
inline Floats masked(const Floats& x, const std::vector<bool>& chosen) {
  Floats result(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    if (chosen[i]) result[i] = std::isnan(x[i]) ? std::bit_cast<float>(kNan) : x[i];
  return result;
}

// Straight from the documents: the k largest that are not zero and reach the threshold.
inline std::vector<bool> largest(const Floats& x, size_t k, uint32_t threshold) {
  std::vector<size_t> order;
  for (size_t i = 0; i < x.size(); ++i)
    if (magnitude(x[i]) >= std::max(threshold, 1u)) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return magnitude(x[a]) > magnitude(x[b]); });
  order.resize(std::min(order.size(), k));
  std::vector<bool> result(x.size());
  for (const size_t i : order) result[i] = true;
  return result;
}

// Values that are hard on a choice: ties, not finite, denormals, both zeros, few sizes.
inline std::vector<Floats> hard_blocks(size_t n) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kQuiet = std::numeric_limits<float>::quiet_NaN();
  std::vector<Floats> blocks = {Floats(n),       Floats(n, -0.0f), Floats(n, -2.5f),
                                Floats(n, kNan), Floats(n, -kInf), gradient(n, 1),
                                gradient(n, 2)};
  std::mt19937 random(static_cast<unsigned>(n));
  Floats few(n), mixed(n), ramp(n), bits(n);
  const float kinds[] = {0.0f,   -0.0f,  1.0f,    -1.0f, 2.0f,   -2.0f, kInf, -kInf,
                         kQuiet, 1e-45f, -1e-40f, 3e38f, -3e38f, 0.5f,  0.5f, 0.5f};
  for (size_t i = 0; i < n; ++i) {
    few[i] = static_cast<float>(random() % 3) - 1;
    mixed[i] = kinds[random() % std::size(kinds)];
    ramp[i] = static_cast<float>(i);
    bits[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
  }
  blocks.insert(blocks.end(), {few, mixed, ramp, Floats(ramp.rbegin(), ramp.rend()), bits});
  for (const size_t n_inf : {1, 3}) {  // a few that are not finite among gradients
    Floats some = gradient(n, 3);
    for (size_t i = 0; i < n_inf && n > 0; ++i) some[random() % n] = i % 2 ? kQuiet : -kInf;
    blocks.push_back(some);
  }
  return blocks;
}

}  // namespace wirepress::sparse
