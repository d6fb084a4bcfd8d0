// SPDX-License-Identifier: Apache-2.0
// wpr_words_in: words are shown as they came, in order, the first two of those that are there, with
// what was said beside them and their packet's end. They repeat three bits here.
module wpr_words_in_props (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            s_valid_i,
  input logic [3:0][2:0] s_words_i,
  input logic [1:0]      s_more_i,   // words of a last beat, less one
  input logic            s_last_i,
  input logic            pop_i
);

  logic s_ready, come, first_valid, first_last, second_valid, second_last;
  logic [511:0] s_data;
  logic [63:0] s_keep;
  logic [127:0] come_data, first, second;
  logic [15:0] come_keep;
  logic [1:0] first_beside, second_beside;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      s_data[128*i+:128] = {2{s_words_i[i], 58'd0, s_words_i[i]}};
      s_keep[16*i+:16]   = !s_last_i || 2'(i) <= s_more_i ? '1 : '0;
    end
  end
  wpr_words_in #(.Narrow(16), .Beside(2)) dut (
    .clk_i, .rst_ni, .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready), .s_axis_tdata(s_data),
    .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i), .come_o(come), .come_data_o(come_data),
    .come_keep_o(come_keep), .come_beside_i(come_data[1:0] ^ come_data[2:1]),
    .first_valid_o(first_valid), .first_last_o(first_last), .first_data_o(first),
    .first_beside_o(first_beside), .second_valid_o(second_valid), .second_last_o(second_last),
    .second_data_o(second), .second_beside_o(second_beside), .pop_i
  );

  logic started_q = 1'b0, seen_q = 1'b0, push, pop;
  logic [7:0][2:0] words_q;
  logic [7:0] lasts_q;
  logic [3:0] count_q = '0, kept;
  logic [2:0] more;
  assign push = s_valid_i && s_ready;
  assign pop  = pop_i && first_valid;
  assign kept = count_q - 4'(pop);
  assign more = s_last_i ? 3'(s_more_i) + 3'd1 : 3'd4;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (rst_ni) begin
      if (pop) {words_q, lasts_q} <= {3'd0, words_q[7:1], 1'b0, lasts_q[7:1]};
      if (push) begin
        for (int i = 0; i < 4; i++) begin
          words_q[3'(kept+4'(i))] <= s_words_i[i];
          lasts_q[3'(kept+4'(i))] <= s_last_i && 3'(i + 1) == more;
        end
      end
      count_q <= kept + (push ? 4'(more) : 4'd0);
      seen_q  <= seen_q || (pop && first_last);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      room: assert (count_q <= 4'd7);
      counted: assert (!first_valid || count_q != 0);
      pair: assert (!second_valid || (first_valid && count_q > 4'd1));
      whole: assert (!come || come_keep == '1);
    end
    if (started_q && rst_ni && first_valid) begin
      order: assert (first == {2{words_q[0], 58'd0, words_q[0]}} && first_last == lasts_q[0]);
      beside: assert (first_beside == (words_q[0][1:0] ^ words_q[0][2:1]));
    end
    if (started_q && rst_ni && second_valid) begin
      order2: assert (second == {2{words_q[1], 58'd0, words_q[1]}} && second_last == lasts_q[1]);
      beside2: assert (second_beside == (words_q[1][1:0] ^ words_q[1][2:1]));
    end
    used: cover (seen_q && second_valid && second_last && !first_last);
  end

endmodule
