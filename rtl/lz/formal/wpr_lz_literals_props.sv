// SPDX-License-Identifier: Apache-2.0
// wpr_lz_literals: byte k of all that leave is byte k of all that came, whichever it is (k_i), and lies
// in its lane, as long as no more leave than came three clocks ago. Those that come have a gap behind
// the first ones. Bytes are 0 or 255.
module wpr_lz_literals_props (
  input logic         clk_i,
  input logic         rst_ni,
  input logic [  4:0] k_i,     // a byte, constant
  input logic [  3:0] n_i,
  input logic [  3:0] begin_i,
  input logic [  3:0] first_i,
  input logic [  2:0] gap_i,  // further than begin_i
  input logic [ 15:0] bits_i,
  input logic [  3:0] take_i
);

  logic [15:0][7:0] bytes;
  logic [7:0] is_first;
  always_comb for (int i = 0; i < 8; i++) is_first[i] = 4'(i) < first_i;
  logic [63:0] lanes;
  always_comb for (int i = 0; i < 16; i++) bytes[i] = {8{bits_i[i]}};
  logic [2:0] first;
  wpr_lz_literals dut (
    .clk_i,
    .rst_ni,
    .n_i,
    .begin_i,
    .first_i (is_first),
    .behind_i(begin_i + 4'(gap_i)),
    .bytes_i(bytes),
    .take_i,
    .lanes_o(lanes),
    .first_o(first)
  );

  logic started_q = 1'b0;
  logic [4:0] k_q;
  logic [6:0] in_q = '0, in1_q = '0, in2_q = '0, out_q = '0;
  logic [7:0] byte_q;
  logic [3:0] index, nth;
  assign nth    = 4'(7'(k_i) - in_q);
  assign index  = begin_i + nth + (nth < first_i ? 4'd0 : 4'(gap_i));
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    if (rst_ni) begin
      in_q  <= in_q + 7'(n_i);
      in1_q <= in_q;
      in2_q <= in1_q;
      out_q <= out_q + 7'(take_i);
      if (7'(k_i) >= in_q && 7'(k_i) < in_q + 7'(n_i)) byte_q <= bytes[index];
    end
    assume (rst_ni == started_q);
    assume (n_i <= 4'd8 && begin_i <= 4'd8 && take_i <= 4'd8);
    assume (!rst_ni || out_q + 7'(take_i) <= in2_q);
    if (started_q) assume (k_i == k_q);
    if (started_q && rst_ni) begin
      turn: assert (first == out_q[2:0]);
      same: assert (!(7'(k_i) >= out_q && 7'(k_i) < out_q + 7'(take_i)) ||
                    lanes[8*k_i[2:0]+:8] == byte_q);
    end
    used: cover (out_q == 7'd8 && take_i == 4'd5);
  end

endmodule
