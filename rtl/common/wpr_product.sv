// SPDX-License-Identifier: Apache-2.0
// The product of two numbers of 24 bits. One a clock, latency 5 clocks, nothing stops it. A device
// has multipliers in few places. So registers stand on both sides of them, which may lie in or
// beside a multiplier, and the first and last registers may lie where the numbers are made and
// used.
module wpr_product #(
  parameter bit Mult18 = 1'b0  // for multipliers of 18 by 18 bits: four, where two of 27 by 18 do
) (
  input  logic        clk_i,
  input  logic [23:0] a_i,
  input  logic [23:0] b_i,
  output logic [47:0] product_o
);

  logic [23:0] a1_q, b1_q;
  logic [40:0] low4_q;
  logic [30:0] high4_q;
  always_ff @(posedge clk_i) begin
    a1_q      <= a_i;
    b1_q      <= b_i;
    product_o <= {high4_q + 31'(low4_q[40:17]), low4_q[16:0]};
  end

  if (Mult18) begin : g_18
    // Cut by hand: a tool would make the same cut, but add the parts in the same clock.
    logic [1:0][34:0] low_low_q;
    logic [1:0][22:0] high_low_q;
    logic [1:0][24:0] low_high_q;
    logic [1:0][12:0] high_high_q;
    always_ff @(posedge clk_i) begin
      low_low_q   <= {low_low_q[0], 35'(a1_q[17:0]) * 35'(b1_q[16:0])};
      high_low_q  <= {high_low_q[0], 23'(a1_q[23:18]) * 23'(b1_q[16:0])};
      low_high_q  <= {low_high_q[0], 25'(a1_q[17:0]) * 25'(b1_q[23:17])};
      high_high_q <= {high_high_q[0], 13'(a1_q[23:18]) * 13'(b1_q[23:17])};
      low4_q      <= {high_low_q[1] + 23'(low_low_q[1][34:18]), low_low_q[1][17:0]};
      high4_q     <= {high_high_q[1] + 13'(low_high_q[1][24:18]), low_high_q[1][17:0]};
    end
  end else begin : g_27
    logic [23:0] a2_q, b2_q;
    logic [40:0] low3_q;
    logic [30:0] high3_q;
    always_ff @(posedge clk_i) begin
      a2_q    <= a1_q;
      b2_q    <= b1_q;
      low3_q  <= 41'(a2_q) * 41'(b2_q[16:0]);
      high3_q <= 31'(a2_q) * 31'(b2_q[23:17]);
      low4_q  <= low3_q;
      high4_q <= high3_q;
    end
  end

endmodule
