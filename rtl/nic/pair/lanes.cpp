// SPDX-License-Identifier: Apache-2.0
// rtl/nic/wpr_nic_lanes.sv, clock by clock: packets from the host go to its lanes in turns.
#include <verilated.h>

#include "Vwpr_nic_lanes.h"
#include "streams.hpp"

namespace nic {
namespace {

constexpr int kWord = 32;

// Bits [kBits * lane, kBits * (lane + 1)) of a port.
template <size_t kBits, class Port>
struct Part {
  Port& port;
  size_t lane;

  Part& operator=(uint64_t value) {
    if constexpr (std::is_integral_v<Port>) {
      const Port mask = Port{1} << lane;
      port = value != 0 ? port | mask : port & ~mask;
    } else if constexpr (kBits < kWord) {
      const size_t shift = kBits * lane % kWord;
      uint32_t& word = port[kBits * lane / kWord];
      word = (word & ~(((1u << kBits) - 1) << shift)) | static_cast<uint32_t>(value) << shift;
    } else {
      for (size_t i = 0; i < kBits / kWord; ++i)
        port[kBits / kWord * lane + i] = static_cast<uint32_t>(value >> kWord * i);
    }
    return *this;
  }
  explicit operator bool() const { return (port >> lane & 1) != 0; }
};

template <class Port>
struct Words {
  Port& port;
  size_t lane;
  uint32_t& operator[](size_t i) { return port[kBeat / 4 * lane + i]; }
};

class Lanes : public End {
 public:
  Lanes(const Settings& settings, Library* library)
      : wire_out_("adap_tx", settings.pause, settings.line, settings.seed) {
    for (size_t i = 0; i < settings.lanes; ++i)
      host_in_.emplace_back(settings.pause, settings.seed + 1 + i);
    context_.randReset(2);
    model_ = std::make_unique<Vwpr_nic_lanes>(&context_);
    set_up(settings, library->header());
    model_->rst_ni = 0;
    for (int i = 0; i < 5; ++i) step();
    model_->rst_ni = 1;
  }
  ~Lanes() override { model_->final(); }

  void from_host(Bytes packet) override {
    host_in_[next_].add(std::move(packet));
    next_ = (next_ + 1) % host_in_.size();
  }
  void from_wire(Bytes) override {}
  bool clock(uint64_t now) override {
    now_ = now;
    return step();
  }
  Counted counted() override { return counted_; }

 private:
  auto h2c(size_t lane) {
    Vwpr_nic_lanes& m = *model_;
    return Ports{Part<1, QData>{m.s_axis_tvalid, lane},
                 Part<1, QData>{m.s_axis_tready, lane},
                 Words<decltype(m.s_axis_tdata)>{m.s_axis_tdata, lane},
                 Part<64, decltype(m.s_axis_tkeep)>{m.s_axis_tkeep, lane},
                 Part<1, QData>{m.s_axis_tlast, lane},
                 Part<16, decltype(m.s_axis_tuser_size)>{m.s_axis_tuser_size, lane},
                 Part<16, decltype(m.s_axis_tuser_src)>{m.s_axis_tuser_src, lane}};
  }
  auto adap_tx() {
    Vwpr_nic_lanes& m = *model_;
    return Ports{m.m_axis_tvalid, m.m_axis_tready,     m.m_axis_tdata,    m.m_axis_tkeep,
                 m.m_axis_tlast,  m.m_axis_tuser_size, m.m_axis_tuser_src};
  }

  void set_up(const Settings& settings, const Bytes& header) {
    constexpr int kTauExponent = 15;  // in cfg_tau_i
    model_->s_axis_tvalid = 0;
    model_->cfg_enable_i = settings.on;
    model_->cfg_ports_i = settings.port;
    model_->cfg_max_i = settings.largest;
    model_->cfg_tau_i = static_cast<uint32_t>(settings.codec) << kTauExponent;
    for (size_t i = 0; i < kFrameHeader / 4; ++i)
      std::memcpy(&model_->cfg_header_i[i], header.data() + 4 * i, 4);
  }

  bool step() {
    Vwpr_nic_lanes& m = *model_;
    for (size_t i = 0; i < host_in_.size(); ++i) host_in_[i].offer(h2c(i));
    wire_out_.ready(adap_tx());
    m.clk_i = 0;
    m.eval();
    bool moved = false, ended = false;
    if (m.rst_ni) {
      for (size_t i = 0; i < host_in_.size(); ++i) moved |= host_in_[i].moves(h2c(i), &ended);
      if (ended && begun == 0) begun = now_;
      moved |= wire_out_.moves(adap_tx(), now_, &to_wire);
      count();
    }
    m.clk_i = 1;
    m.eval();
    return moved;
  }
  void count() {
    for (size_t word = 0; word < 8; ++word)
      for (uint32_t left = model_->event_o[word]; left != 0; left &= left - 1) {
        const int kind = std::countr_zero(left) % 4;
        ++(kind == 0   ? counted_.coded
           : kind == 1 ? counted_.stored
           : kind == 2 ? counted_.passed
                       : counted_.dropped);
      }
  }

  VerilatedContext context_;
  std::unique_ptr<Vwpr_nic_lanes> model_;
  std::vector<Source> host_in_;
  Sink wire_out_;
  size_t next_ = 0;
  uint64_t now_ = 0;
  Counted counted_;
};

}  // namespace

std::unique_ptr<End> lanes(const Settings& settings, Library* library) {
  return std::make_unique<Lanes>(settings, library);
}

}  // namespace nic
