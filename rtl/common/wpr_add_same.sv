// SPDX-License-Identifier: Apache-2.0
// The sum of two float32 numbers that are not negative, rounded to nearest even, denormals included:
// magnitudes, without their signs. A pair a clock, latency 6 clocks, nothing stops it.
//
// Numbers of one sign lose no leading bits, so there is nothing to count or to shift up behind the
// addition, and it is half of a float adder. What is not finite, or has become so, has an exponent of
// 255 from there on; which fraction it has is not said (infinity and NaN are one).
module wpr_add_same (
  input  logic        clk_i,
  input  logic [30:0] a_i,
  input  logic [30:0] b_i,
  output logic [30:0] sum_o
);

  // Denormals have the exponent of the smallest normal numbers.
  function automatic logic [7:0] exponent(input logic [7:0] field);
    return field == '0 ? 8'd1 : field;
  endfunction
  function automatic logic [23:0] significand(input logic [30:0] word);
    return {word[30:23] != '0, word[22:0]};
  endfunction

  // ---- 1: which is larger, and by how many bits --------------------------------------------------

  logic larger_b1_q;
  logic [7:0] exponent_a1_q, exponent_b1_q, above_a1_q, above_b1_q;
  logic [23:0] a1_q, b1_q;
  always_ff @(posedge clk_i) begin
    larger_b1_q   <= b_i[30:23] > a_i[30:23];
    above_a1_q    <= exponent(a_i[30:23]) - exponent(b_i[30:23]);
    above_b1_q    <= exponent(b_i[30:23]) - exponent(a_i[30:23]);
    exponent_a1_q <= exponent(a_i[30:23]);
    exponent_b1_q <= exponent(b_i[30:23]);
    a1_q          <= significand(a_i);
    b1_q          <= significand(b_i);
  end

  // ---- 2: that one first --------------------------------------------------------------------------

  logic [23:0] x2_q, y2_q;
  logic [7:0] exponent2_q, above;
  logic [4:0] shift2_q;  // 26 and more: y is only not 0
  assign above = larger_b1_q ? above_b1_q : above_a1_q;
  always_ff @(posedge clk_i) begin
    x2_q        <= larger_b1_q ? b1_q : a1_q;
    y2_q        <= larger_b1_q ? a1_q : b1_q;
    exponent2_q <= larger_b1_q ? exponent_b1_q : exponent_a1_q;
    shift2_q    <= above[7:5] != '0 ? 5'd31 : above[4:0];
  end

  // ---- 3: the other one to its place; below it the next bit, and whether there is more -------------

  logic [23:0] x3_q, gone;
  logic [24:0] y3_q;
  logic [7:0] exponent3_q;
  logic sticky3_q;
  always_comb for (int i = 0; i < 24; i++) gone[i] = i + 1 < int'(shift2_q);
  always_ff @(posedge clk_i) begin
    x3_q        <= x2_q;
    y3_q        <= {y2_q, 1'b0} >> shift2_q;
    exponent3_q <= exponent2_q;
    sticky3_q   <= (y2_q & gone) != '0;
  end

  // ---- 4: sum ---------------------------------------------------------------------------------------

  logic [24:0] sum4_q;
  logic guard4_q, sticky4_q;
  logic [7:0] exponent4_q;
  always_ff @(posedge clk_i) begin
    sum4_q      <= {1'b0, x3_q} + {1'b0, y3_q[24:1]};
    guard4_q    <= y3_q[0];
    sticky4_q   <= sticky3_q;
    exponent4_q <= exponent3_q;
  end

  // ---- 5: its exponent, and whether it is rounded up --------------------------------------------------

  logic carry, lost;
  logic [22:0] fraction5_q;
  logic [7:0] exponent5_q;
  logic up5_q;
  assign carry = sum4_q[24];
  assign lost  = exponent4_q == '1;  // not finite: it stays so
  always_ff @(posedge clk_i) begin
    fraction5_q <= carry ? sum4_q[23:1] : sum4_q[22:0];
    exponent5_q <= lost ? '1 : carry ? exponent4_q + 8'd1 : sum4_q[23] ? exponent4_q : '0;
    up5_q       <= !lost && (carry ? sum4_q[0] && (guard4_q || sticky4_q || sum4_q[1])
                                   : guard4_q && (sticky4_q || sum4_q[0]));
    if (!lost && carry && exponent4_q == 8'hFE) up5_q <= 1'b0;  // infinite already
  end

  // ---- 6: rounded, from a denormal to a number or to infinity where it must be -------------------------

  always_ff @(posedge clk_i) sum_o <= {exponent5_q, fraction5_q} + 31'(up5_q);

endmodule
