// SPDX-License-Identifier: Apache-2.0
// What bench_mult.py drives: wpr_product and wpr_add_same for multipliers of 27 by 18 bits (0) and
// of 18 by 18 (1).
module wpr_mult_tb (
  input  logic             clk_i,
  input  logic [30:0]      a_i,
  input  logic [30:0]      b_i,
  output logic [1:0][47:0] product_o,
  output logic [1:0][30:0] sum_o
);
  for (genvar i = 0; i < 2; i++) begin : g_width
    wpr_product #(.Mult18(i)) product (
      .clk_i, .a_i(a_i[23:0]), .b_i(b_i[23:0]), .product_o(product_o[i])
    );
    wpr_add_same #(.Mult18(i)) add (.clk_i, .a_i, .b_i, .sum_o(sum_o[i]));
  end
endmodule
