// SPDX-License-Identifier: Apache-2.0
// A word so many moves later. It has no reset: synthesis makes shift registers of it.
module wpr_delay #(
  parameter int unsigned Width = 8,
  parameter int unsigned Moves = 2  // 1 or more
) (
  input  logic             clk_i,
  input  logic             move_i,
  input  logic [Width-1:0] s_data_i,
  output logic [Width-1:0] m_data_o
);

  // Split, a simulation moves words; whole, it would write an array by index.
  logic [Width-1:0] word_q[Moves]  /*verilator split_var*/;
  always_ff @(posedge clk_i) if (move_i) word_q[0] <= s_data_i;
  for (genvar i = 1; i < int'(Moves); i++) begin : g_word
    always_ff @(posedge clk_i) if (move_i) word_q[i] <= word_q[i-1];
  end
  assign m_data_o = word_q[Moves-1];

endmodule
