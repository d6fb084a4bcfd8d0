// SPDX-License-Identifier: Apache-2.0
// 64 bytes a clock, for the area table.
module wpr_packetizer_64 (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [8:0] cfg_beats_i,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [63:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [63:0] m_axis_tkeep,
  output logic                m_axis_tlast
);
  wpr_packetizer #(.Bytes(64), .LogDepth(9)) core (.*);
endmodule
