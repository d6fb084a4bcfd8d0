// SPDX-License-Identifier: Apache-2.0
// One lane of wpr_nic_lanes: wpr_nic_tx with an encoder of tbq (of=one), 64 bytes a clock.
module wpr_nic_lane
  import wpr_nic_pkg::*;
(
  input  logic             clk_i,
  input  logic             rst_ni,        // synchronous
  input  logic             cfg_enable_i,
  input  logic [3:0][15:0] cfg_ports_i,   // as of wpr_nic_tx
  input  logic [15:0]      cfg_max_i,
  input  logic [127:0]     cfg_header_i,
  input  logic [22:0]      cfg_tau_i,     // as of wpr_tbq_enc
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  packet_beat_t     s_beat_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output packet_beat_t     m_beat_o,
  output logic [3:0]       event_o        // as of wpr_nic_tx
);

  logic raw_valid, raw_ready, code_valid, code_ready;
  beat_t raw, code;
  wpr_nic_tx #(.FrameHeader(16), .Unit(4)) tx (
    .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_max_i, .cfg_header_i, .s_valid_i,
    .s_ready_o, .s_beat_i, .m_valid_o, .m_ready_i, .m_beat_o, .raw_valid_o(raw_valid),
    .raw_ready_i(raw_ready), .raw_beat_o(raw), .code_valid_i(code_valid),
    .code_ready_o(code_ready), .code_beat_i(code), .code_bad_i(1'b0), .event_o
  );
  wpr_tbq_enc encoder (
    .clk_i, .rst_ni, .cfg_tau_i,
    .s_axis_tvalid(raw_valid), .s_axis_tready(raw_ready), .s_axis_tdata(raw.data),
    .s_axis_tkeep(raw.keep), .s_axis_tlast(raw.last),
    .m_axis_tvalid(code_valid), .m_axis_tready(code_ready), .m_axis_tdata(code.data),
    .m_axis_tkeep(code.keep), .m_axis_tlast(code.last)
  );

endmodule
