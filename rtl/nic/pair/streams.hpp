// SPDX-License-Identifier: Apache-2.0
// AXI4-Streams of a simulated box: packets in and out, beat by beat.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <stdexcept>

#include "end.hpp"

namespace nic {

constexpr size_t kBeat = 64;
constexpr uint32_t kSource = 3;                          // in tuser; it goes through
constexpr double kBytesPerClockOfGbps = 1 / 8.0 / 0.25;  // at 250 MHz

class Coin {
 public:
  Coin(double probability, uint64_t seed)
      : draws_(probability > 0), coin_(probability), random_(seed) {}
  bool operator()() { return draws_ && coin_(random_); }

 private:
  const bool draws_;
  std::bernoulli_distribution coin_;
  std::mt19937_64 random_;
};

// Ports of an AXI4-Stream: references, or what stands for a part of wider ones.
template <class Valid, class Ready, class Data, class Keep, class Last, class User>
struct Ports {
  Valid valid;
  Ready ready;
  Data data;
  Keep keep;
  Last last;
  User user;  // from bit 0 the packet's size, from 16 its source
};
template <class... T>
Ports(T&&...) -> Ports<T...>;

// Packets into the box.
class Source {
 public:
  Source(double pause, uint64_t seed) : pause_(pause, seed) {}
  void add(Bytes packet) { queue_.push_back(std::move(packet)); }

  void offer(auto ports) {
    offered_ = offered_ || (!queue_.empty() && !pause_());
    ports.valid = offered_;
    if (!offered_) return;
    const Bytes& packet = queue_.front();
    const size_t n = std::min(packet.size() - at_, kBeat);
    uint32_t words[kBeat / 4];
    std::memset(words, 0xA5, sizeof(words));  // bytes that are not there may be anything
    std::memcpy(words, packet.data() + at_, n);
    for (size_t i = 0; i < kBeat / 4; ++i) ports.data[i] = words[i];
    ports.keep = ~uint64_t{0} >> (kBeat - n);
    ports.last = at_ + n == packet.size();
    ports.user = kSource << 16 | static_cast<uint16_t>(packet.size());
  }
  // After the box has answered: whether a beat moves.
  bool moves(bool ready) {
    if (!offered_ || !ready) return false;
    offered_ = false;
    at_ += kBeat;
    if (at_ >= queue_.front().size()) {
      queue_.pop_front();
      at_ = 0;
    }
    return true;
  }

 private:
  std::deque<Bytes> queue_;
  size_t at_ = 0;  // of the first packet
  bool offered_ = false;
  Coin pause_;
};

// Packets out of the box; holds it to what the shell wants of a stream.
class Sink {
 public:
  Sink(const char* name, double pause, double line, uint64_t seed)
      : name_(name), pause_(pause, seed), per_clock_(line * kBytesPerClockOfGbps) {}

  void ready(auto ports) {
    budget_ = std::min(budget_ + per_clock_, per_clock_);
    ports.ready = (per_clock_ == 0 || budget_ > 0) && !pause_();
  }
  bool moves(const auto& ports, uint64_t clock, std::deque<Timed>* out) {
    if (!ports.valid || !ports.ready) return false;
    const auto n = static_cast<size_t>(std::popcount(static_cast<uint64_t>(ports.keep)));
    uint32_t words[kBeat / 4];
    for (size_t i = 0; i < kBeat / 4; ++i) words[i] = ports.data[i];
    if (now_.packet.empty()) now_.first = clock;
    const auto* bytes = reinterpret_cast<const uint8_t*>(words);
    now_.packet.insert(now_.packet.end(), bytes, bytes + n);
    budget_ -= static_cast<double>(n + (ports.last ? kWireOverhead : 0));
    expect(n > 0 && ports.keep == ~uint64_t{0} >> (kBeat - n) && (ports.last || n == kBeat),
           "tkeep has gaps, or none");
    const uint32_t size = ports.user & 0xFFFF;
    expect(ports.user >> 16 == kSource, "tuser's source is wrong");
    if (now_.packet.size() == n) size_ = size;
    expect(size == size_, "tuser's size changes within a packet");
    if (!ports.last) return true;
    expect(now_.packet.size() == size_, "tuser's size is not the packet's");
    now_.last = clock;
    out->push_back(std::move(now_));
    now_ = {};
    return true;
  }

 private:
  void expect(bool right, const char* what) const {
    if (!right) throw std::runtime_error(std::string(name_) + ": " + what);
  }
  const char* name_;
  Coin pause_;
  const double per_clock_;
  double budget_ = 0;
  uint32_t size_ = 0;
  Timed now_;
};

}  // namespace nic
