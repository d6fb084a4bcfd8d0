// SPDX-License-Identifier: Apache-2.0
// What bench_hash.py drives: wpr_hash with multipliers of 27 by 18 bits (0) and with adders (1).
module wpr_hash_tb (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [63:0]            seed_i,
  input  logic [63:0]            first_i,
  input  logic                   row_i,
  input  logic                   begin_i,
  output logic [1:0][15:0][31:0] bits_o
);
  for (genvar i = 0; i < 2; i++) begin : g_form
    wpr_hash #(.Mult18(i)) hash (
      .clk_i, .rst_ni, .seed_i, .first_i, .row_i, .begin_i, .bits_o(bits_o[i])
    );
  end
endmodule
