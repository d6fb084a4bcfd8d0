// SPDX-License-Identifier: Apache-2.0
// wpr_window against a queue of three words, of which it shows two.
module wpr_window_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_data_i,
  input logic       pop_i
);

  logic s_ready, first_valid, second_valid;
  logic [3:0] first, second;
  wpr_window #(.Width(4)) dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .first_valid_o(first_valid),
    .first_o(first), .second_valid_o(second_valid), .second_o(second), .pop_i
  );

  logic started_q = 1'b0, filled_q = 1'b0, push, pop;
  logic [2:0][3:0] words_q;
  logic [1:0] count_q = '0, at;
  assign push = s_valid_i && s_ready;
  assign pop  = pop_i && count_q != 0;
  assign at   = count_q - 2'(pop);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      if (pop) words_q <= {4'd0, words_q[2:1]};
      if (push) words_q[at] <= s_data_i;
      count_q  <= at + 2'(push);
      filled_q <= filled_q || count_q == 2'd3;
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      room: assert (s_ready == (count_q != 2'd3));
      counted: assert (first_valid == (count_q != 0) && second_valid == count_q[1]);
      order: assert ((!first_valid || first == words_q[0]) &&
                     (!second_valid || second == words_q[1]));
      third: assert (dut.v2_q == (count_q == 2'd3) && (!dut.v2_q || dut.word2_q == words_q[2]));
    end
    used: cover (filled_q && count_q == 0);
  end

endmodule
