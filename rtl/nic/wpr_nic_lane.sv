// SPDX-License-Identifier: Apache-2.0
// One lane of wpr_nic_lanes: wpr_nic_tx with its encoder.
module wpr_nic_lane
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Codec   = Tbq,  // as of wpr_nic
  parameter int unsigned Engines = 8,
  localparam int unsigned FrameHeader = frame_header_of(Codec)
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,        // synchronous
  input  logic                     cfg_enable_i,
  input  logic [3:0][15:0]         cfg_ports_i,   // as of wpr_nic_tx
  input  logic [15:0]              cfg_max_i,
  input  logic [8*FrameHeader-1:0] cfg_header_i,
  input  logic [7:0]               cfg_codec_i,   // as of wpr_nic_encoder
  input  logic                     s_valid_i,
  output logic                     s_ready_o,
  input  packet_beat_t             s_beat_i,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output packet_beat_t             m_beat_o,
  output logic [3:0]               event_o        // as of wpr_nic_tx
);

  logic raw_valid, raw_ready, code_valid, code_ready, code_bad;
  beat_t raw, code;
  wpr_nic_tx #(.FrameHeader(FrameHeader), .Unit(unit_of(Codec))) tx (
    .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_max_i, .cfg_header_i, .s_valid_i,
    .s_ready_o, .s_beat_i, .m_valid_o, .m_ready_i, .m_beat_o, .raw_valid_o(raw_valid),
    .raw_ready_i(raw_ready), .raw_beat_o(raw), .code_valid_i(code_valid),
    .code_ready_o(code_ready), .code_beat_i(code), .code_bad_i(code_bad), .event_o
  );
  wpr_nic_encoder #(.Codec(Codec), .Engines(Engines)) encoder (
    .clk_i, .rst_ni, .cfg_codec_i, .raw_valid_i(raw_valid), .raw_ready_o(raw_ready),
    .raw_beat_i(raw), .code_valid_o(code_valid), .code_ready_i(code_ready), .code_beat_o(code),
    .code_bad_o(code_bad)
  );

endmodule
