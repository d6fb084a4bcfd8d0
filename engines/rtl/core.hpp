// SPDX-License-Identifier: Apache-2.0
// Simulated FPGA cores (rtl/), clock by clock: what kernels of the engine rtl and tests of cores
// share. A Model is a class that Verilator made of a module with ports clk_i, rst_ni, s_axis_* and
// m_axis_*.
#pragma once

#include <verilated.h>

#include <cstdint>
#include <memory>

#include "base/kernel.hpp"
#include "engines/rtl/simulation.hpp"

namespace wirepress::rtl {

// One simulated core. Used by one thread at a time.
template <class Model>
class Core {
 public:
  Core() {
    context_.randReset(2);  // what has no reset begins with anything
    model_ = std::make_unique<Model>(&context_);
    reset();
  }
  ~Core() { model_->final(); }

  Model& ports() { return *model_; }

  void reset() {
    model_->rst_ni = 0;
    model_->s_axis_tvalid = 0;
    model_->m_axis_tready = 0;
    for (int i = 0; i < 3; ++i) {
      settle();
      rise();
    }
    model_->rst_ni = 1;
  }

  // Sends one packet and receives one. A Source has
  //   bool more()              whether there is a beat to send
  //   void offer(Model&)       puts it on the ports
  //   void sent()
  // a Sink
  //   bool take(const Model&)  a beat from the ports; true: it was the last one
  //   bool full()              it can take no more: the packet is given up, the core reset
  // and `each` is called with the ports before each clock, and after the core has answered, to
  // drive what else the core has. kDevice: nothing has moved for `most_idle` clocks.
  template <class Source, class Sink, class Each>
  Status run(Source& source, Sink& sink, Each& each, int most_idle = 4096) {
    const uint64_t begin = clocks_;
    bool offered = false, ended = false;
    int idle = 0;
    while (!ended || source.more()) {
      offered = offered || (source.more() && !draw(pauses_.source));
      if (offered) source.offer(*model_);
      model_->s_axis_tvalid = offered;
      model_->m_axis_tready = !draw(pauses_.sink);
      each.before(*model_);
      settle();
      each.after(*model_);
      const bool in = offered && model_->s_axis_tready;
      const bool out = model_->m_axis_tvalid && model_->m_axis_tready;
      if (out) ended = sink.take(*model_) || ended;
      rise();
      if (in) source.sent();
      offered = offered && !in;
      idle = in || out ? 0 : idle + 1;
      if (sink.full() || idle == most_idle) break;
    }
    model_->s_axis_tvalid = 0;
    clocks.fetch_add(clocks_ - begin, std::memory_order_relaxed);
    if (sink.full() || idle == most_idle) reset();
    if (idle == most_idle)
      return fail(Code::kDevice, "core %s: no beat in %d clocks", model_->hierName(), most_idle);
    return {};
  }

 private:
  void settle() {
    model_->clk_i = 0;
    model_->eval();
  }
  void rise() {
    model_->clk_i = 1;
    model_->eval();
    ++clocks_;
  }
  bool draw(unsigned of_256) {  // xorshift; no state is lost on what never pauses
    if (of_256 == 0) return false;
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return (random_ >> 32 & 255) < of_256;
  }

  VerilatedContext context_;
  std::unique_ptr<Model> model_;
  const Pauses pauses_ = pauses;
  uint64_t clocks_ = 0, random_ = pauses_.seed;
};

}  // namespace wirepress::rtl
