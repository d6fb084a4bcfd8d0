// SPDX-License-Identifier: Apache-2.0
// rtl/nic/wpr_nic_lanes.sv in its parts, clock by clock: lanes, to which packets from the host go
// in turns, and what merges their streams. (As one model it would be a C++ file of 80 MB.)
#include <verilated.h>

#include "Vwpr_nic_lane_lz4.h"
#include "Vwpr_nic_lane_tbq.h"
#include "Vwpr_nic_lane_zfp.h"
#include "Vwpr_nic_merge.h"
#include "streams.hpp"

namespace nic {
namespace {

// A packet_beat_t of wpr_nic_pkg.sv, in words: size and src, keep, data; last, which wpr_nic_merge
// has apart.
constexpr size_t kKeepAt = 1, kDataAt = 3, kLastAt = 19;

// tuser as streams.hpp has it, of a beat's word of size and src, and back.
uint32_t halves_swapped(uint32_t word) { return std::rotl(word, 16); }

template <class Model>
class Lane {
 public:
  Lane(VerilatedContext* context, const Settings& settings, const Bytes& header, uint64_t seed)
      : model_(std::make_unique<Model>(context)), source_(settings.pause, seed) {
    model_->cfg_enable_i = settings.on;
    model_->cfg_ports_i = settings.port;
    model_->cfg_max_i = settings.largest;
    model_->cfg_codec_i = settings.codec;
    std::fill_n(&model_->cfg_header_i[0], (header.size() + 3) / 4, 0);
    for (size_t i = 0; i < header.size(); ++i)
      model_->cfg_header_i[i / 4] |= uint32_t{header[i]} << 8 * (i % 4);
  }
  ~Lane() { model_->final(); }

  Source& source() { return source_; }
  Model& ports() { return *model_; }

  void offer() {
    Model& m = *model_;
    uint64_t keep = 0;
    uint32_t user = 0;
    source_.offer(
        Ports{m.s_valid_i, m.s_ready_o, &m.s_beat_i[kDataAt], keep, m.s_beat_i[kLastAt], user});
    std::memcpy(&m.s_beat_i[kKeepAt], &keep, sizeof(keep));
    m.s_beat_i[0] = halves_swapped(user);
    model_->clk_i = 0;
    model_->eval();
  }
  bool answer(bool taken) {
    model_->m_ready_i = taken;
    model_->eval();
    return source_.moves(model_->s_ready_o);
  }
  void rise() {
    model_->clk_i = 1;
    model_->eval();
  }

 private:
  std::unique_ptr<Model> model_;
  Source source_;
};

template <class Model>
class Lanes : public End {
  auto adap_tx() {
    Vwpr_nic_merge& m = *merge_;
    uint64_t keep = 0;
    std::memcpy(&keep, &m.m_data_o[kKeepAt], sizeof(keep));
    return Ports{m.m_valid_o,    m.m_ready_i, &m.m_data_o[kDataAt],
                 uint64_t{keep}, m.m_last_o,  halves_swapped(m.m_data_o[0])};
  }

 public:
  Lanes(const Settings& settings, Library* library)
      : wire_out_("adap_tx", settings.pause, settings.line, settings.seed) {
    context_.randReset(2);  // what has no reset begins with anything
    merge_ = std::make_unique<Vwpr_nic_merge>(&context_);
    for (size_t i = 0; i < settings.lanes; ++i)
      lanes_.push_back(std::make_unique<Lane<Model>>(&context_, settings, library->header(),
                                                     settings.seed + 1 + i));
    merge_->s_valid_i = 0;
    reset(0);
    for (int i = 0; i < 5; ++i) step();
    reset(1);
  }
  ~Lanes() override { merge_->final(); }

  void from_host(Bytes packet) override {
    lanes_[next_]->source().add(std::move(packet));
    next_ = (next_ + 1) % lanes_.size();
  }
  void from_wire(Bytes) override {}
  bool clock(uint64_t now) override {
    now_ = now;
    return step();
  }
  Counted counted() override { return counted_; }

 private:
  void reset(uint8_t level) {
    merge_->rst_ni = level;
    for (auto& lane : lanes_) lane->ports().rst_ni = level;
  }

  bool step() {
    for (auto& lane : lanes_) lane->offer();
    join();
    bool moved = false;
    for (size_t i = 0; i < lanes_.size(); ++i)
      moved |= lanes_[i]->answer((merge_->s_ready_o >> i & 1) != 0);
    if (merge_->rst_ni) {
      if (moved && begun == 0) begun = now_;
      moved |= wire_out_.moves(adap_tx(), now_, &to_wire);
      for (auto& lane : lanes_) count(lane->ports().event_o);
    }
    for (auto& lane : lanes_) lane->rise();
    merge_->clk_i = 1;
    merge_->eval();
    return moved;
  }

  // The lanes' beats into the merged stream.
  void join() {
    uint64_t valid = 0, last = 0;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const Model& lane = lanes_[i]->ports();
      valid |= uint64_t{lane.m_valid_o} << i;
      last |= uint64_t{lane.m_beat_o[kLastAt]} << i;
      if (lane.m_valid_o) std::copy_n(&lane.m_beat_o[0], kLastAt, &merge_->s_data_i[kLastAt * i]);
    }
    merge_->s_valid_i = valid;
    merge_->s_last_i = last;
    wire_out_.ready(adap_tx());
    merge_->clk_i = 0;
    merge_->eval();
  }

  void count(unsigned events) {
    counted_.coded += events & 1;
    counted_.stored += events >> 1 & 1;
    counted_.passed += events >> 2 & 1;
    counted_.dropped += events >> 3 & 1;
  }

  VerilatedContext context_;
  std::unique_ptr<Vwpr_nic_merge> merge_;
  std::vector<std::unique_ptr<Lane<Model>>> lanes_;
  Sink wire_out_;
  size_t next_ = 0;
  uint64_t now_ = 0;
  Counted counted_;
};

}  // namespace

std::unique_ptr<End> lanes(const std::string& codec, const Settings& settings, Library* library) {
  if (codec == "lz4") return std::make_unique<Lanes<Vwpr_nic_lane_lz4>>(settings, library);
  if (codec == "tbq") return std::make_unique<Lanes<Vwpr_nic_lane_tbq>>(settings, library);
  if (codec == "zfp") return std::make_unique<Lanes<Vwpr_nic_lane_zfp>>(settings, library);
  return nullptr;
}

}  // namespace nic
