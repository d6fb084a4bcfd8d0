// SPDX-License-Identifier: Apache-2.0
// 64 bytes a clock without gaps, for the area table.
module wpr_pack_bytes (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [511:0] s_data_i,
  input  logic [6:0] s_size_i,
  input  logic             s_last_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [511:0] m_data_o,
  output logic [6:0] m_size_o,
  output logic             m_last_o
);
  wpr_pack #(.Lanes(64), .Unit(8)) core (.*);
endmodule
