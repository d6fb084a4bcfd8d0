// SPDX-License-Identifier: Apache-2.0
// The sum of two float32 numbers that are not negative, rounded to nearest even, denormals
// included: magnitudes, without their signs. A pair a clock, latency 5 clocks, nothing stops it.
//
// Numbers of one sign lose no leading bits. So nothing is counted or shifted up behind the
// addition, and half of a float adder is enough. A multiplication in a DSP block shifts the smaller
// number. A sum that is not finite has an exponent of 255; its fraction is undefined (infinity and
// NaN are one).
module wpr_add_same #(
  parameter bit Mult18 = 1'b0  // for multipliers of 18 by 18 bits: two, where one of 27 by 18 does
) (
  input  logic        clk_i,
  input  logic [30:0] a_i,
  input  logic [30:0] b_i,
  output logic [30:0] sum_o
);

  // Denormals have the exponent of the smallest normal numbers.
  function automatic logic [8:0] exponent(input logic [7:0] field);
    return {1'b0, field[7:1], field[0] || field == '0};
  endfunction

  // ---- 1: how far the exponents are apart -------------------------------------------------------

  logic [8:0] apart1_q;
  logic [7:0] field_a1_q, field_b1_q;
  logic [23:0] a1_q, b1_q;
  logic low_a1_q, low_b1_q;  // bits that go where 16 go
  always_ff @(posedge clk_i) begin
    apart1_q   <= exponent(b_i[30:23]) - exponent(a_i[30:23]);
    field_a1_q <= a_i[30:23];
    field_b1_q <= b_i[30:23];
    a1_q       <= {a_i[30:23] != '0, a_i[22:0]};
    b1_q       <= {b_i[30:23] != '0, b_i[22:0]};
    low_a1_q   <= a_i[14:0] != '0;
    low_b1_q   <= b_i[15:0] != '0;
  end

  // ---- 2: the larger one first; the other one's place but for 16 bits ---------------------------
  // Below the other one is one bit more. Where a is the larger one, apart is that distance less one
  // inverted: the one is in that bit.

  logic a_larger, low2_q;
  logic [7:0] shift, field2_q;
  logic [23:0] x2_q;
  logic [24:0] y, y2_q;
  logic [15:0] times2_q;  // 2^15 shifted down by the other four bits
  assign a_larger = apart1_q[8];
  assign shift    = apart1_q[7:0] ^ {8{a_larger}};
  assign y        = a_larger ? {1'b0, b1_q} : {a1_q, 1'b0};
  always_ff @(posedge clk_i) begin
    x2_q     <= a_larger ? a1_q : b1_q;
    field2_q <= a_larger ? field_a1_q : field_b1_q;
    // A denormal and a number with the smallest normal exponent need the same shift.
    if (!a_larger && !b1_q[23]) field2_q[0] <= field_a1_q[0];
    y2_q     <= shift[4] ? {16'b0, y[24:16]} : y;
    low2_q   <= shift[4] && (a_larger ? low_b1_q : low_a1_q);
    for (int i = 0; i < 16; i++) times2_q[i] <= shift[3:0] == 4'(15 - i);
    // Nothing of the smaller number is left, so there is no tie to resolve.
    if (shift[7:5] != '0) y2_q <= '0;
  end

  // ---- 3: to its place --------------------------------------------------------------------------

  logic [39:0] y3;  // 24 bits, the next one, and all below
  logic [23:0] x3_q;
  logic [7:0] field3_q;
  logic low3_q, lost3_q, top3_q, tiny3_q;
  always_ff @(posedge clk_i) begin
    x3_q     <= x2_q;
    field3_q <= field2_q;
    low3_q   <= low2_q;
    lost3_q  <= field2_q == 8'hFF;  // not finite: it stays so
    top3_q   <= field2_q == 8'hFE;
    tiny3_q  <= field2_q == 8'h00;
  end

  if (Mult18) begin : g_18
    // Times a power of two: the parts have no bit in common, and need no sum.
    logic [33:0] lower3_q;
    logic [21:0] upper3_q;
    always_ff @(posedge clk_i) begin
      lower3_q <= 34'(y2_q[17:0]) * 34'(times2_q);
      upper3_q <= 22'(y2_q[24:18]) * 22'(times2_q);
    end
    assign y3 = {upper3_q, 18'b0} | 40'(lower3_q);
  end else begin : g_27
    logic [39:0] y3_q;
    always_ff @(posedge clk_i) y3_q <= 40'(y2_q) * 40'(times2_q);
    assign y3 = y3_q;
  end

  // ---- 4: sum -----------------------------------------------------------------------------------

  logic [24:0] sum4_q;
  logic [7:0] field4_q;
  logic guard4_q, low4_q, lost4_q, top4_q, tiny4_q;
  always_ff @(posedge clk_i) begin
    sum4_q   <= {1'b0, x3_q} + {1'b0, y3[39:16]};
    guard4_q <= y3[15];
    low4_q   <= low3_q || y3[14:0] != '0;
    field4_q <= field3_q;
    {lost4_q, top4_q, tiny4_q} <= {lost3_q, top3_q, tiny3_q};
  end

  // ---- 5: its exponent; rounded, from a denormal to a number or to infinity where it must be ----

  logic carry, above, up;
  logic [22:0] fraction;
  assign carry    = sum4_q[24];
  assign fraction = carry ? sum4_q[23:1] : sum4_q[22:0];
  assign above    = !lost4_q && (carry || (tiny4_q && sum4_q[23]));
  // Infinite already, it is not rounded.
  assign up       = !lost4_q && (carry ? !top4_q && sum4_q[0] && (guard4_q || low4_q || sum4_q[1])
                                       : guard4_q && (low4_q || sum4_q[0]));
  logic unused;
  always_ff @(posedge clk_i) begin
    {sum_o, unused} <= {field4_q, fraction, 1'b1} + {7'b0, above, 23'b0, up};
  end

endmodule
