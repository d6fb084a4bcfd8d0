// SPDX-License-Identifier: Apache-2.0
// SZ3's interpolation compressor with modules of our own around it: SZ3 brings the order in which
// values are visited and what is predicted for each; the quantiser, what becomes of the integers
// and the container are ours, because SZ3's trust the bytes that they read.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "SZ3/compressor/SZInterpolationCompressor.hpp"
#include "codecs/sz3/grid.hpp"
#include "codecs/sz3/integers.hpp"
#include "codecs/sz3/lorenzo.hpp"

namespace wirepress::sz3 {

constexpr int kLineSize = 32;  // SZ3's block size, in strides of a level

// What SZ3's compressor writes in front of its modules' bytes: extents, line size, cubic, order.
constexpr size_t kHeadSize = kMaxDims * sizeof(size_t) + 3 * sizeof(int);

// Multiples of a step, or the value itself where that breaks the bound.
template <typename T>
class Quantiser final : public SZ::concepts::QuantizerInterface<T> {
 public:
  Quantiser(double bound, std::vector<T>* literals) : literals_(*literals) { set_eb(bound); }

  // What SZ3's compressor calls between its levels.
  double get_eb() const { return bound_; }
  void set_eb(double bound) {
    bound_ = bound;
    step_ = 2 * bound;
    steps_ = 1 / step_;
  }
  size_t size_est() const { return kHeadSize; }

  [[gnu::always_inline]] int quantize_and_overwrite(T& value, T predicted) override {
    const double from = static_cast<double>(predicted);
    const double distance = (static_cast<double>(value) - from) * steps_;
    if (std::fabs(distance) < kMostSteps) {
      const double whole = distance + kRounder - kRounder;
      const T decoded = static_cast<T>(from + whole * step_);
      if (std::fabs(static_cast<double>(decoded) - static_cast<double>(value)) <= bound_) {
        value = decoded;
        return static_cast<int>(whole);
      }
    }
    return literal(value);
  }
  int quantize(T value, T predicted) override { return quantize_and_overwrite(value, predicted); }

  // There are as many literals as integers that say so; the reader has counted them.
  T recover(T predicted, int n) override {
    if (n == kLiteral) return literals_[next_++];
    return static_cast<T>(static_cast<double>(predicted) + n * step_);
  }

  void clear() override {}
  void save(SZ::uchar*&) const override {}
  void load(const SZ::uchar*&, size_t&) override {}
  void precompress_data() override {}
  void predecompress_data() override {}
  void postcompress_data() override {}
  void postdecompress_data() override {}

 private:
  // Added to a small number, it leaves no bits for a fraction: rounds to nearest, ties to even.
  static constexpr double kRounder = 0x1.8p52;

  [[gnu::noinline]] int literal(T value) {
    literals_.push_back(value);
    return kLiteral;
  }

  std::vector<T>& literals_;
  size_t next_ = 0;
  double bound_ = 0, step_ = 0, steps_ = 0;
};

// In place of SZ3's Huffman coder: takes the integers away, or brings them.
class Passage final : public SZ::concepts::EncoderInterface<int> {
 public:
  explicit Passage(Tokens* to) : to_(to) {}
  explicit Passage(std::vector<int>* from) : from_(from) {}

  void preprocess_encode(const std::vector<int>&, int) override {}
  size_t encode(const std::vector<int>& integers, SZ::uchar*&) override {
    to_->take(integers);
    return 0;
  }
  void postprocess_encode() override {}
  void preprocess_decode() override {}
  std::vector<int> decode(const SZ::uchar*&, size_t) override { return std::move(*from_); }
  void postprocess_decode() override {}
  SZ::uint save(SZ::uchar*&) override { return 0; }
  void load(const SZ::uchar*&, size_t&) override {}

 private:
  Tokens* to_ = nullptr;
  std::vector<int>* from_ = nullptr;
};

// No lossless stage: that is the next codec of the recipe.
class NoLossless final : public SZ::concepts::LosslessInterface {
 public:
  SZ::uchar* compress(SZ::uchar* data, size_t size, size_t& written) override {
    written = size;
    return data;
  }
  void postcompress_data(SZ::uchar* data) override { delete[] data; }
  SZ::uchar* decompress(const SZ::uchar* data, size_t&) override {
    return const_cast<SZ::uchar*>(data);  // only read, and not freed by the next function
  }
  void postdecompress_data(SZ::uchar*) override {}
};

template <typename T, unsigned N>
using Compressor = SZ::SZInterpolationCompressor<T, N, Quantiser<T>, Passage, NoLossless>;

template <typename T, unsigned N>
void quantise_in(const Grid& grid, double bound, T* values, std::vector<T>* literals,
                 Tokens* tokens) {
  SZ::Config config;
  config.setDims(grid.extent.begin(), grid.extent.begin() + N);
  config.interpBlockSize = kLineSize;
  config.interpAlgo = grid.cubic ? SZ::INTERP_ALGO_CUBIC : SZ::INTERP_ALGO_LINEAR;
  config.interpDirection = static_cast<uint8_t>(grid.order);
  Compressor<T, N> compressor(Quantiser<T>(bound, literals), Passage(tokens), NoLossless());
  size_t size = 0;
  compressor.compress(config, values, size);
}

template <typename T, unsigned N>
void restore_in(const Grid& grid, double bound, T* values, std::vector<T>* literals,
                std::vector<int>* integers) {
  std::array<SZ::uchar, kHeadSize> head;  // from values that were checked
  const std::array<int, 3> fields = {kLineSize, grid.cubic ? 1 : 0, static_cast<int>(grid.order)};
  std::memcpy(head.data(), grid.extent.data(), N * sizeof(size_t));
  std::memcpy(head.data() + N * sizeof(size_t), fields.data(), sizeof(fields));
  Compressor<T, N> compressor(Quantiser<T>(bound, literals), Passage(integers), NoLossless());
  compressor.decompress(head.data(), head.size(), values);
}

template <typename T>
void quantise_by_lorenzo(const Grid& grid, double bound, T* values, std::vector<T>* literals,
                         Tokens* tokens) {
  Quantiser<T> quantiser(bound, literals);
  std::vector<int> integers;
  integers.reserve(grid.count());
  visit_by_lorenzo(grid, values, [&](T& value, T predicted) {
    integers.push_back(quantiser.quantize_and_overwrite(value, predicted));
  });
  tokens->take(integers);
}

template <typename T>
void restore_by_lorenzo(const Grid& grid, double bound, T* values, std::vector<T>* literals,
                        const std::vector<int>& integers) {
  Quantiser<T> quantiser(bound, literals);
  const int* next = integers.data();
  visit_by_lorenzo(grid, values,
                   [&](T& value, T predicted) { value = quantiser.recover(predicted, *next++); });
}

// Replaces the values by what restore() makes of the tokens and literals.
template <typename T>
void quantise(const Grid& grid, double bound, T* values, std::vector<T>* literals, Tokens* tokens) {
  static constexpr decltype(&quantise_in<T, 1>) kFunctions[] = {
      quantise_in<T, 1>, quantise_in<T, 2>, quantise_in<T, 3>, quantise_in<T, 4>};
  literals->clear();
  if (grid.order == kLorenzo) return quantise_by_lorenzo(grid, bound, values, literals, tokens);
  kFunctions[grid.n_dims - 1](grid, bound, values, literals, tokens);
}

// `integers` are grid.count() many, and as many of them are kLiteral as there are literals.
template <typename T>
void restore(const Grid& grid, double bound, T* values, std::vector<T>* literals,
             std::vector<int>* integers) {
  static constexpr decltype(&restore_in<T, 1>) kFunctions[] = {restore_in<T, 1>, restore_in<T, 2>,
                                                               restore_in<T, 3>, restore_in<T, 4>};
  if (grid.order == kLorenzo) return restore_by_lorenzo(grid, bound, values, literals, *integers);
  kFunctions[grid.n_dims - 1](grid, bound, values, literals, integers);
}

}  // namespace wirepress::sz3
