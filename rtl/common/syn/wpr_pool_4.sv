// SPDX-License-Identifier: Apache-2.0
// Four engines with queues of a packet of 1.5 kB, for the area table.
module wpr_pool_4 (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         s_valid_i,
  output logic                         s_ready_o,
  input  logic [518:0]             s_data_i,
  input  logic                         s_last_i,
  output logic                         m_valid_o,
  input  logic                         m_ready_i,
  output logic [518:0]             m_data_o,
  output logic                         m_last_o,
  output logic [3:0]           e_valid_o,
  input  logic [3:0]           e_ready_i,
  output logic [3:0][518:0] e_data_o,
  output logic [3:0]           e_last_o,
  input  logic [3:0]           f_valid_i,
  output logic [3:0]           f_ready_o,
  input  logic [3:0][518:0] f_data_i,
  input  logic [3:0]           f_last_i
);
  wpr_pool #(.Engines(4), .In(519), .Out(519), .LogQueue(5)) core (.*);
endmodule
