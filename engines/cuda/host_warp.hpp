// SPDX-License-Identifier: Apache-2.0
// A warp of the host (warp.hpp): 32 lanes in arrays, in lockstep. A Schedule says which warp of
// which block goes on, when one waits.
#pragma once

#include <algorithm>
#include <memory>

#include "engines/cuda/warp.hpp"

namespace wirepress::cuda {

// What the warps of a launch have besides lanes; one that waits gives way to others.
class Schedule {
 public:
  virtual void sync() = 0;  // until all warps of the block of the one that calls are there
  virtual void wait() = 0;  // let others go on
  virtual ~Schedule() = default;
};

class HostWarp {
 public:
  template <typename T>
  struct Of {
    T v[kLanes];
  };
  template <typename T>
  using Four = std::array<Of<T>, 4>;
  template <typename T>
  using Sixteen = std::array<Of<T>, 16>;

  HostWarp(uint64_t block, uint64_t blocks, unsigned warp, std::byte* shared, Schedule* schedule)
      : block_(block), blocks_(blocks), warp_(warp), shared_(shared), schedule_(schedule) {}

  uint64_t block() const { return block_; }
  uint64_t blocks() const { return blocks_; }
  unsigned warp() const { return warp_; }
  std::byte* shared() const { return shared_; }

  static Of<uint32_t> lane() {
    Of<uint32_t> x;
    for (unsigned i = 0; i < kLanes; ++i) x.v[i] = i;
    return x;
  }
  template <typename T>
  static Of<T> all(T value) {
    Of<T> x;
    for (unsigned i = 0; i < kLanes; ++i) x.v[i] = value;
    return x;
  }
  template <class F, typename... T>
  static auto map(F f, const Of<T>&... x) {
    Of<decltype(f(x.v[0]...))> result;
    for (unsigned i = 0; i < kLanes; ++i) result.v[i] = f(x.v[i]...);
    return result;
  }
  template <class F, typename... T>
  static void each(F f, const Of<T>&... x) {
    for (unsigned i = 0; i < kLanes; ++i) f(x.v[i]...);
  }

  static uint32_t ballot(const Of<bool>& x) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < kLanes; ++i) bits |= uint32_t{x.v[i]} << i;
    return bits;
  }
  template <typename T>
  static Of<T> down(const Of<T>& x, unsigned n) {
    Of<T> y = x;
    for (unsigned i = 0; i + n < kLanes; ++i) y.v[i] = x.v[i + n];
    return y;
  }
  template <typename T>
  static Of<T> up(const Of<T>& x, unsigned n) {
    Of<T> y = x;
    for (unsigned i = n; i < kLanes; ++i) y.v[i] = x.v[i - n];
    return y;
  }
  template <typename T>
  static T from(const Of<T>& x, unsigned i) {
    return x.v[i];
  }
  static uint32_t most(const Of<uint32_t>& x) { return *std::max_element(x.v, x.v + kLanes); }
  static uint32_t either(const Of<uint32_t>& x) {
    uint32_t bits = 0;
    for (const uint32_t word : x.v) bits |= word;
    return bits;
  }
  static uint32_t sum(const Of<uint32_t>& x) {
    uint32_t sum = 0;
    for (const uint32_t word : x.v) sum += word;
    return sum;
  }

  static Four<uint32_t> rows(const std::byte* from, uint32_t n) {
    Four<uint32_t> x{};
    if (n > 0) std::memcpy(&x, std::assume_aligned<16>(from), 4 * std::min<size_t>(n, 128));
    return x;
  }
  static void put_rows(std::byte* to, uint32_t n, const Four<uint32_t>& x) {
    if (n > 0) std::memcpy(std::assume_aligned<16>(to), &x, 4 * std::min<size_t>(n, 128));
  }
  static Four<uint32_t> quads(const std::byte* from, uint32_t n) {
    const Four<uint32_t> row = rows(from, n);
    Four<uint32_t> x;
    for (unsigned i = 0; i < 128; ++i) x[i % 4].v[i / 4] = row[i / 32].v[i % 32];
    return x;
  }
  static void put_quads(std::byte* to, uint32_t n, const Four<uint32_t>& x) {
    Four<uint32_t> row;
    for (unsigned i = 0; i < 128; ++i) row[i / 32].v[i % 32] = x[i % 4].v[i / 4];
    put_rows(to, n, row);
  }
  template <typename T>
  static Sixteen<T> groups(const std::byte* from, uint32_t n) {
    T word[16 * kLanes] = {};
    if (n > 0)
      std::memcpy(word, std::assume_aligned<16>(from),
                  sizeof(T) * std::min<size_t>(n, 16 * kLanes));
    Sixteen<T> x;
    for (unsigned i = 0; i < 16 * kLanes; ++i) x[i % 16].v[i / 16] = word[i];
    return x;
  }

  template <typename T>
  static void put_groups(std::byte* to, uint32_t n, const Sixteen<T>& x) {
    T word[16 * kLanes];
    for (unsigned i = 0; i < 16 * kLanes; ++i) word[i] = x[i % 16].v[i / 16];
    if (n > 0)
      std::memcpy(std::assume_aligned<16>(to), word, sizeof(T) * std::min<size_t>(n, 16 * kLanes));
  }
  template <class F, typename T, typename... X>
  static auto of_groups(F f, const Sixteen<T>& q, const Of<X>&... x) {
    Of<decltype(f(&q[0].v[0], x.v[0]...))> result;
    for (unsigned i = 0; i < kLanes; ++i) {
      T own[16];
      for (unsigned k = 0; k < 16; ++k) own[k] = q[k].v[i];
      result.v[i] = f(own, x.v[i]...);
    }
    return result;
  }
  template <typename T, class F, typename... X>
  static Sixteen<T> make_groups(F f, const Of<X>&... x) {
    Sixteen<T> q;
    for (unsigned i = 0; i < kLanes; ++i) {
      T own[16] = {};
      f(own, x.v[i]...);
      for (unsigned k = 0; k < 16; ++k) q[k].v[i] = own[k];
    }
    return q;
  }

  static void settle() {}
  void sync() { schedule_->sync(); }
  void wait() { schedule_->wait(); }
  static uint64_t take_number(uint64_t* number) { return (*number)++; }
  static void publish(uint64_t* word, uint64_t value) { *word = value; }
  static uint64_t published(const uint64_t* word) { return *word; }
  static void set_bits(std::byte* word, uint32_t bits) { put(word, get<uint32_t>(word) | bits); }
  static uint32_t peek(const std::byte* word) { return get<uint32_t>(word); }
  static void add_to(std::byte* word, uint32_t n) { put(word, get<uint32_t>(word) + n); }
  static void at_most(uint64_t* word, uint64_t value) { *word = std::min(*word, value); }

 private:
  uint64_t block_, blocks_;
  unsigned warp_;
  std::byte* shared_;
  Schedule* schedule_;
};

}  // namespace wirepress::cuda
