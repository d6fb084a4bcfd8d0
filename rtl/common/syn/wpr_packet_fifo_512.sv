// SPDX-License-Identifier: Apache-2.0
// Three packets of 9.6 kB, as the NIC box keeps them, for the area table.
module wpr_packet_fifo_512 (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [511:0] s_data_i,
  input  logic             s_last_i,
  input  logic             s_drop_i,
  input  logic [47:0] s_meta_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [511:0] m_data_o,
  output logic             m_first_o,
  output logic             m_last_o,
  output logic [47:0] m_meta_o,
  output logic             dropped_o
);
  wpr_packet_fifo #(.Width(512), .Meta(48), .LogDepth(9), .LogPackets(5)) core (.*);
endmodule
