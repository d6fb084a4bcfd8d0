// SPDX-License-Identifier: Apache-2.0
// Boxes of rtl/nic that Verilator made C++ of, clock by clock.
#include <verilated.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "Vwpr_nic_bx.h"
#include "Vwpr_nic_fre.h"
#include "Vwpr_nic_lz4.h"
#include "Vwpr_nic_tbq.h"
#include "Vwpr_nic_zfp.h"
#include "streams.hpp"

namespace nic {
namespace {

constexpr uint8_t kControl = 0x04, kLargest = 0x08, kPort = 0x10, kHeader = 0x20, kCounters = 0x40;

template <class Model>
class Box : public End {
 public:
  Box(const Settings& settings, Library* library, size_t frame_header)
      : host_in_(settings.pause, 4 * settings.seed),
        wire_in_(settings.pause, 4 * settings.seed + 1),
        wire_out_("adap_tx", settings.pause, settings.line, 4 * settings.seed + 2),
        host_out_("c2h", settings.pause, 0, 4 * settings.seed + 3) {
    context_.randReset(2);  // what has no reset begins with anything
    model_ = std::make_unique<Model>(&context_);
    model_->rst_ni = 0;
    model_->s_axil_bready = model_->s_axil_rready = 1;
    model_->s_axil_wstrb = 15;
    for (int i = 0; i < 5; ++i) step();
    model_->rst_ni = 1;
    set_up(settings, library->header(), frame_header);
  }
  ~Box() override { model_->final(); }

  void from_host(Bytes packet) override { host_in_.add(std::move(packet)); }
  void from_wire(Bytes packet) override { wire_in_.add(std::move(packet)); }

  bool clock(uint64_t now) override {
    now_ = now;
    return step();
  }

  Counted counted() override {
    uint64_t all[7];
    for (uint8_t i = 0; i < 7; ++i) all[i] = read(static_cast<uint8_t>(kCounters + 4 * i));
    return {all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
  }

 private:
  bool step() {
    Model& m = *model_;
    host_in_.offer(h2c());
    wire_in_.offer(adap_rx());
    wire_out_.ready(adap_tx());
    host_out_.ready(c2h());
    m.clk_i = 0;
    m.eval();
    bool moved = false;
    if (m.rst_ni) {
      moved |= host_in_.moves(m.h2c_tready);
      if (moved && begun == 0) begun = now_;
      moved |= wire_in_.moves(m.adap_rx_tready);
      moved |= wire_out_.moves(adap_tx(), now_, &to_wire);
      moved |= host_out_.moves(c2h(), now_, &to_host);
    }
    answered_ = (m.s_axil_awvalid && m.s_axil_awready) || m.s_axil_rvalid;
    m.clk_i = 1;
    m.eval();
    return moved;
  }
  auto h2c() {
    Model& m = *model_;
    return Ports{m.h2c_tvalid, m.h2c_tready, m.h2c_tdata, m.h2c_tkeep, m.h2c_tlast, m.h2c_tuser};
  }
  auto adap_rx() {
    Model& m = *model_;
    return Ports{m.adap_rx_tvalid, m.adap_rx_tready, m.adap_rx_tdata,
                 m.adap_rx_tkeep,  m.adap_rx_tlast,  m.adap_rx_tuser};
  }
  auto adap_tx() {
    Model& m = *model_;
    return Ports{m.adap_tx_tvalid, m.adap_tx_tready, m.adap_tx_tdata,
                 m.adap_tx_tkeep,  m.adap_tx_tlast,  m.adap_tx_tuser};
  }
  auto c2h() {
    Model& m = *model_;
    return Ports{m.c2h_tvalid, m.c2h_tready, m.c2h_tdata, m.c2h_tkeep, m.c2h_tlast, m.c2h_tuser};
  }

  void set_up(const Settings& settings, const Bytes& header, size_t frame_header) {
    if (header.size() != frame_header)
      throw std::runtime_error("the box takes a frame header of " + std::to_string(frame_header) +
                               " bytes, this recipe's has " + std::to_string(header.size()));
    if (read(0) != 0x01525057) throw std::runtime_error("register 0 is not the box's");
    write(kLargest, settings.largest);
    write(kPort, settings.port);
    for (size_t i = 0; 4 * i < header.size(); ++i) {
      uint32_t word = 0;
      std::memcpy(&word, header.data() + 4 * i, std::min<size_t>(4, header.size() - 4 * i));
      write(static_cast<uint8_t>(kHeader + 4 * i), word);
    }
    write(kControl, (settings.on ? 3u : 0u) | static_cast<uint32_t>(settings.codec) << 8);
  }
  void write(uint8_t address, uint32_t value) {
    model_->s_axil_awaddr = address;
    model_->s_axil_wdata = value;
    model_->s_axil_awvalid = model_->s_axil_wvalid = 1;
    answer("a write");
    model_->s_axil_awvalid = model_->s_axil_wvalid = 0;
    step();
  }
  uint32_t read(uint8_t address) {
    model_->s_axil_araddr = address;
    model_->s_axil_arvalid = 1;
    step();
    model_->s_axil_arvalid = 0;
    answer("a read");
    return model_->s_axil_rdata;
  }
  void answer(const char* what) {
    for (int i = 0; i < 16; ++i) {
      step();
      if (answered_) return;
    }
    throw std::runtime_error(std::string("the registers do not answer ") + what);
  }

  VerilatedContext context_;
  std::unique_ptr<Model> model_;
  Source host_in_, wire_in_;
  Sink wire_out_, host_out_;
  uint64_t now_ = 0;
  bool answered_ = false;
};

}  // namespace

std::unique_ptr<End> simulated(const std::string& codec, const Settings& settings,
                               Library* library) {
  if (codec == "fre") return std::make_unique<Box<Vwpr_nic_fre>>(settings, library, 16);
  if (codec == "bx") return std::make_unique<Box<Vwpr_nic_bx>>(settings, library, 15);
  if (codec == "lz4") return std::make_unique<Box<Vwpr_nic_lz4>>(settings, library, 13);
  if (codec == "zfp") return std::make_unique<Box<Vwpr_nic_zfp>>(settings, library, 19);
  if (codec == "tbq") return std::make_unique<Box<Vwpr_nic_tbq>>(settings, library, 16);
  return nullptr;
}

}  // namespace nic
