// SPDX-License-Identifier: Apache-2.0
// A whole number from -127 to 127 times a float32 number above 0 with 17 significant bits, as a
// float32 word, or the NaN 7fc00000. The product is exact. It must be finite and no denormal, which
// the module does not check. A product of 0 is +0.
//
// One product a clock, latency 3 clocks; only clocks with move_i count.
module wpr_multiple (
  input  logic        clk_i,
  input  logic        move_i,
  input  logic        nan_i,       // with a count: a NaN instead
  input  logic        negative_i,
  input  logic [ 6:0] count_i,     // its absolute value
  input  logic [23:0] unit_i,      // a clock behind its count: bits 30 to 7 of the number's word
  output logic [31:0] product_o
);

  // ---- 1: the count with its first one uppermost ------------------------------------------------

  logic nan1_q, negative1_q, some1_q;
  logic [2:0] zeros, zeros1_q;  // in front of it
  logic [6:0] count1_q;
  always_comb begin
    zeros = '0;
    for (int i = 0; i < 7; i++) if (count_i[i]) zeros = 3'(6 - i);
  end
  always_ff @(posedge clk_i) begin
    if (move_i) begin
      nan1_q      <= nan_i;
      negative1_q <= negative_i;
      some1_q     <= count_i != '0;
      zeros1_q    <= zeros;
      count1_q    <= count_i << zeros;
    end
  end

  // ---- 2, 3: the product, of 23 or 24 bits ------------------------------------------------------

  logic nan2_q, negative2_q, some2_q;
  logic [7:0] exponent2_q;
  logic [23:0] product2_q;
  always_ff @(posedge clk_i) begin
    if (move_i) begin
      nan2_q      <= nan1_q;
      negative2_q <= negative1_q;
      some2_q     <= some1_q;
      exponent2_q <= unit_i[23:16] + 8'd6 - 8'(zeros1_q);
      product2_q  <= 24'(count1_q) * 24'({1'b1, unit_i[15:0]});
      product_o   <= nan2_q ? 32'h7FC00000
                   : {negative2_q, exponent2_q + 8'(product2_q[23]),
                      product2_q[23] ? product2_q[22:0] : {product2_q[21:0], 1'b0}} &
                     {32{some2_q}};
    end
  end

endmodule
