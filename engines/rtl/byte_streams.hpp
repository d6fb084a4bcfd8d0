// SPDX-License-Identifier: Apache-2.0
// What cores with 8 bytes a beat are given and give (core.hpp): the bytes of a packet, and on s_cmd
// how many there are or may be.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/kernel.hpp"

namespace wirepress::rtl {

struct BytesIn {
  static constexpr size_t kBeat = 8;
  ConstBytes rest;
  bool more() const { return !rest.empty(); }
  size_t size() const { return std::min(rest.size(), kBeat); }
  void sent() { rest = rest.subspan(size()); }
  void offer(auto& core) const {
    uint64_t word = ~uint64_t{0};  // bytes that are not there may be anything
    std::memcpy(&word, rest.data(), size());
    core.s_axis_tdata = word;
    core.s_axis_tkeep = static_cast<uint8_t>((1u << size()) - 1);
    core.s_axis_tlast = rest.size() <= kBeat;
  }
};

struct BytesOut {
  Bytes room;
  size_t size = 0;
  bool over = false, bad = false;
  bool full() const { return over; }
  bool take(const auto& core) {
    const uint64_t word = core.m_axis_tdata;
    const auto n = static_cast<size_t>(std::popcount(static_cast<unsigned>(core.m_axis_tkeep)));
    over = over || n > room.size() - size;
    if (!over && n > 0) std::memcpy(room.data() + size, &word, n);
    if (!over) size += n;
    if constexpr (requires { core.m_axis_tuser; }) bad = core.m_axis_tlast && core.m_axis_tuser;
    return core.m_axis_tlast;
  }
};

struct Command {  // how many bytes the packet has, or may have
  uint32_t size;
  bool sent = false;
  void before(auto& core) const {
    core.s_cmd_tvalid = !sent;
    core.s_cmd_tdata = size;
  }
  void after(const auto& core) { sent = sent || core.s_cmd_tready; }
};

}  // namespace wirepress::rtl
