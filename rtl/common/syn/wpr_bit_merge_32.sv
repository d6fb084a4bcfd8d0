// SPDX-License-Identifier: Apache-2.0
// Two pieces of up to 32 bits, for the area table.
module wpr_bit_merge_32 (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                s_valid_i,
  output logic                s_ready_o,
  input  logic [31:0] s_a_i,
  input  logic [5:0] s_a_size_i,
  input  logic [31:0] s_b_i,
  input  logic [5:0] s_b_size_i,
  output logic                m_valid_o,
  input  logic                m_ready_i,
  output logic [63:0] m_data_o,
  output logic [6:0] m_size_o
);
  wpr_bit_merge #(.Width(32)) core (.*);
endmodule
