// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of 16 float32 words: that of a NaN above infinity's. A row a clock, latency
// 4 clocks, nothing stops it.
module wpr_largest (
  input  logic              clk_i,
  input  logic [15:0][31:0] words_i,
  output logic [30:0]       most_o
);

  function automatic logic [30:0] larger(input logic [30:0] a, input logic [30:0] b);
    return a > b ? a : b;
  endfunction
  logic [7:0][30:0] most1_q;
  logic [3:0][30:0] most2_q;
  logic [1:0][30:0] most3_q;
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 8; i++) most1_q[i] <= larger(words_i[2*i][30:0], words_i[2*i+1][30:0]);
    for (int i = 0; i < 4; i++) most2_q[i] <= larger(most1_q[2*i], most1_q[2*i+1]);
    for (int i = 0; i < 2; i++) most3_q[i] <= larger(most2_q[2*i], most2_q[2*i+1]);
    most_o <= larger(most3_q[0], most3_q[1]);
  end

endmodule
