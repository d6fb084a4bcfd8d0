// SPDX-License-Identifier: Apache-2.0
// The decoder with blocks of 4096 values.
module wpr_onebit_dec_12 (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         s_cmd_tvalid,
  output logic         s_cmd_tready,
  input  logic [ 23:0] s_cmd_tdata,
  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,
  input  logic         s_axis_tlast,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,
  output logic         m_axis_tlast,
  output logic         m_axis_tuser
);
  wpr_onebit_dec decoder (
    .cfg_block_i(4'd12),
    .*
  );
endmodule
