// SPDX-License-Identifier: Apache-2.0
// The largest exponent of float32 values: libzfp's exponent_block. Latency log4(Values) clocks, a
// row of values a clock. NaN and infinities are not taken for anything.
module wpr_zfp_most #(
  parameter int unsigned Values = 16  // 4 or 16
) (
  input  logic                    clk_i,
  input  logic [Values-1:0][31:0] values_i,
  output logic [Values-1:0][31:0] values_o,
  output logic              [7:0] exponent_o  // with the bias 127
);

  localparam int unsigned Steps = $clog2(Values) / 2;

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    return a > b ? a : b;
  endfunction

  for (genvar s = 0; s <= int'(Steps); s++) begin : g_most
    logic [Values-1:0][31:0] values;
    logic [(Values>>(2*s))-1:0][7:0] most;
    if (s == 0) begin : g_in
      assign values = values_i;
      always_comb for (int i = 0; i < int'(Values); i++) most[i] = values_i[i][30:23];
    end else begin : g_step
      always_ff @(posedge clk_i) begin
        values <= g_most[s-1].values;
        for (int i = 0; i < int'(Values >> (2 * s)); i++) begin
          most[i] <= larger(larger(g_most[s-1].most[4*i], g_most[s-1].most[4*i+1]),
                            larger(g_most[s-1].most[4*i+2], g_most[s-1].most[4*i+3]));
        end
      end
    end
  end

  assign values_o   = g_most[Steps].values;
  assign exponent_o = g_most[Steps].most;

endmodule
