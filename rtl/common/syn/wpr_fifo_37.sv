// SPDX-License-Identifier: Apache-2.0
// A 32-bit stream's data, tkeep and tlast through wpr_fifo, for the area table.
module wpr_fifo_37 (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        s_valid_i,
  output logic        s_ready_o,
  input  logic [36:0] s_data_i,
  output logic        m_valid_o,
  input  logic        m_ready_i,
  output logic [36:0] m_data_o,
  output logic [ 4:0] level_o
);
  wpr_fifo #(.Width(37)) fifo (.*);
endmodule
