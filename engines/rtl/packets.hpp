// SPDX-License-Identifier: Apache-2.0
// Packets of bytes for Core::run: sources and sinks over AXI4-Stream ports of 4 bytes a beat and
// more, and the port that tells a core how large its packet is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/kernel.hpp"

namespace wirepress::rtl {

// Bytes between memory and a data port: Verilator has words up to 64 bits, and arrays beyond.
template <size_t kBeat>
void drive(auto& data, const std::byte* from, size_t n) {
  std::array<uint32_t, kBeat / 4> words;
  words.fill(~uint32_t{0});  // bytes that are not there may be anything
  std::memcpy(words.data(), from, n);
  if constexpr (kBeat <= 8) {
    data = std::bit_cast<std::remove_cvref_t<decltype(data)>>(words);
  } else {
    for (size_t i = 0; i < words.size(); ++i) data[i] = words[i];
  }
}
template <size_t kBeat>
void sample(const auto& data, std::byte* to, size_t n) {
  std::array<uint32_t, kBeat / 4> words;
  if constexpr (kBeat <= 8) {
    words = std::bit_cast<std::array<uint32_t, kBeat / 4>>(data);
  } else {
    for (size_t i = 0; i < words.size(); ++i) words[i] = data[i];
  }
  std::memcpy(to, words.data(), n);
}

// Bytes into a core, as one packet.
template <size_t kBeat>
struct BytesIn {
  ConstBytes rest;
  bool more() const { return !rest.empty(); }
  size_t size() const { return std::min(rest.size(), kBeat); }
  void sent() { rest = rest.subspan(size()); }
  void offer(auto& core) const {
    using Keep = std::remove_cvref_t<decltype(core.s_axis_tkeep)>;
    drive<kBeat>(core.s_axis_tdata, rest.data(), size());
    core.s_axis_tkeep = static_cast<Keep>(~uint64_t{0} >> (64 - size()));
    core.s_axis_tlast = rest.size() <= kBeat;
  }
};

// A packet's bytes, as far as there is room.
template <size_t kBeat>
struct BytesOut {
  Bytes room;
  bool give_up = true;  // where there is no more
  size_t size = 0;
  bool over = false, bad = false;
  bool full() const { return over && give_up; }
  bool take(const auto& core) {
    const auto n = static_cast<size_t>(std::popcount(uint64_t{core.m_axis_tkeep}));
    over = over || n > room.size() - size;
    if (!over && n > 0) {
      sample<kBeat>(core.m_axis_tdata, room.data() + size, n);
      size += n;
    }
    if constexpr (requires { core.m_axis_tuser; }) bad = core.m_axis_tlast && core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

// A packet's size, in the units of the core, for cores that want to know.
struct Command {
  uint32_t size;
  bool sent = false;
  void before(auto& core) const {
    if constexpr (requires { core.s_cmd_tvalid; }) {
      core.s_cmd_tvalid = !sent;
      core.s_cmd_tdata = size;
    }
    if constexpr (requires { core.s_cmd_tuser; }) core.s_cmd_tuser = 0;
  }
  void after(const auto& core) {
    if constexpr (requires { core.s_cmd_tready; }) sent = sent || core.s_cmd_tready;
  }
};

struct NoPorts {  // none but the streams
  void before(const auto&) {}
  void after(const auto&) {}
};

}  // namespace wirepress::rtl
