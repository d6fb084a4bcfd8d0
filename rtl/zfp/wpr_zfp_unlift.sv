// SPDX-License-Identifier: Apache-2.0
// zfp's transform of a line of four numbers (codecs/zfp/spec.md, A cell, 4): libzfp's inv_lift, the
// inverse of wpr_zfp_lift. Latency 3 clocks, one line a clock. All is modulo 2^32, as in libzfp.
module wpr_zfp_unlift (
  input  logic             clk_i,
  input  logic [3:0][31:0] line_i,  // x first
  output logic [3:0][31:0] line_o
);

  function automatic logic [31:0] half(input logic [31:0] a);
    return 32'(signed'(a) >>> 1);
  endfunction

  // Of a pair that becomes its sum and twice itself less the sum, that is the difference.
  // libzfp's y += w - half(y) and w -= half(y) + y, of y's half and its lowest bit.
  logic [31:0] y1, x0_q, y0_q, z0_q, w0_q, x1_q, y1_q, z1_q, w1_q, z2;
  assign y1 = 32'(({w0_q, 1'b1} + {y0_q[31], y0_q}) >> 1);
  assign z2 = z1_q - y1_q;
  always_ff @(posedge clk_i) begin
    x0_q   <= line_i[0] - line_i[2];
    z0_q   <= line_i[2] + line_i[0];
    y0_q   <= line_i[1] + half(line_i[3]);
    w0_q   <= line_i[3];
    x1_q   <= x0_q;
    z1_q   <= z0_q;
    y1_q   <= y1;
    w1_q   <= y1 - {y0_q[30:0], 1'b0};
    line_o <= {w1_q + x1_q, z2, y1_q + z1_q, x1_q - w1_q};
  end

endmodule
