// SPDX-License-Identifier: Apache-2.0
// Pieces of up to 512 bits, for the area table.
module wpr_split_bits (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [511:0] s_data_i,
  input  logic [9:0] s_size_i,
  input  logic             s_last_i,
  input  logic             c_valid_i,
  output logic             c_ready_o,
  input  logic [9:0] c_size_i,
  input  logic             c_last_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [511:0] m_data_o,
  output logic [9:0] m_size_o,
  output logic             m_last_o,
  output logic             m_error_o
);
  wpr_split #(.Lanes(512), .Unit(1)) core (.*);
endmodule
