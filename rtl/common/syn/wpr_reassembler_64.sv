// SPDX-License-Identifier: Apache-2.0
// 8 slots of 4 KiB, for the area table.
module wpr_reassembler_64 (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic [15:0] cfg_patience_i,
  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [63:0] s_axis_tkeep,
  input  logic               s_axis_tlast,
  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [63:0] m_axis_tkeep,
  output logic               m_axis_tlast,
  output logic               m_axis_tuser,
  output logic               dropped_o
);
  wpr_reassembler #(.Bytes(64), .LogSlots(3), .LogBeats(6)) core (.*);
endmodule
