// SPDX-License-Identifier: Apache-2.0
// zfp's decorrelating transform of a line of four numbers, the inverse of that in
// codecs/zfp/spec.md (A cell, 4): libzfp's fwd_lift. Latency 3 clocks, one line a clock.
//
// Numbers are in two's complement, below 2^30 in magnitude. The transform does not enlarge them:
// each of its rows adds up to 1 at most in magnitude.
module wpr_zfp_lift (
  input  logic             clk_i,
  input  logic [3:0][30:0] line_i,  // x first
  output logic [3:0][30:0] line_o
);

  function automatic logic [30:0] mean(input logic [30:0] a, input logic [30:0] b);
    return 31'(({a[30], a} + {b[30], b}) >> 1);
  endfunction
  function automatic logic [30:0] half(input logic [30:0] a);
    return 31'(signed'(a) >>> 1);
  endfunction

  logic [30:0] x0, z0, x1, w1, w2, x0_q, y0_q, z0_q, w0_q, x1_q, y1_q, z1_q, w1_q;
  assign x0 = mean(line_i[0], line_i[3]);
  assign z0 = mean(line_i[2], line_i[1]);
  assign x1 = mean(x0_q, z0_q);
  assign w1 = mean(w0_q, y0_q);
  assign w2 = w1_q + half(y1_q);
  always_ff @(posedge clk_i) begin
    x0_q   <= x0;
    w0_q   <= line_i[3] - x0;
    z0_q   <= z0;
    y0_q   <= line_i[1] - z0;
    x1_q   <= x1;
    z1_q   <= z0_q - x1;
    w1_q   <= w1;
    y1_q   <= y0_q - w1;
    line_o <= {w2, z1_q, y1_q - half(w2), x1_q};
  end

endmodule
