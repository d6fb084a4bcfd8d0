// SPDX-License-Identifier: Apache-2.0
// A host side wider than the wire: lanes (wpr_nic_lane) of 64 bytes a clock, each with its own
// memories and encoder, and one stream to the wire, in which the lanes' packets take turns. Order
// is kept within a lane. Only this direction; settings are inputs, constant while packets are
// inside.
module wpr_nic_lanes
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Lanes   = 4,    // 1, or a power of two
  parameter int unsigned Codec   = Tbq,  // of wpr_nic_lane
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
  input  logic [Lanes-1:0]         s_valid_i,
  output logic [Lanes-1:0]         s_ready_o,
  input  packet_beat_t [Lanes-1:0] s_beat_i,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output packet_beat_t             m_beat_o,
  output logic [Lanes-1:0][3:0]    event_o        // as of wpr_nic_tx
);

  localparam int unsigned Width = $bits(packet_beat_t) - 1;  // without last
  logic [Lanes-1:0] valid, ready, last;
  logic [Lanes-1:0][Width-1:0] data;
  for (genvar i = 0; i < Lanes; i++) begin : g_lane
    wpr_nic_lane #(.Codec(Codec), .Engines(Engines)) lane (
      .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_max_i, .cfg_header_i, .cfg_codec_i,
      .s_valid_i(s_valid_i[i]), .s_ready_o(s_ready_o[i]), .s_beat_i(s_beat_i[i]),
      .m_valid_o(valid[i]), .m_ready_i(ready[i]), .m_beat_o({last[i], data[i]}),
      .event_o(event_o[i])
    );
  end
  wpr_nic_merge #(.Inputs(Lanes), .Width(Width)) merge (
    .clk_i, .rst_ni, .s_valid_i(valid), .s_ready_o(ready), .s_data_i(data), .s_last_i(last),
    .m_valid_o, .m_ready_i, .m_data_o(m_beat_o[Width-1:0]), .m_last_o(m_beat_o.beat.last)
  );

endmodule
