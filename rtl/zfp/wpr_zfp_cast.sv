// SPDX-License-Identifier: Apache-2.0
// The float32 values of a cell as fixed-point numbers with the cell's exponent: libzfp's
// exponent_block and fwd_cast. A number is trunc(value * 2^(156 - exponent)). Latency
// 3 + log4(Values) clocks, one cell a clock.
//
// A cell whose largest magnitude lies below 2^-98, for which libzfp has no defined code, is as one
// of zeros: tiny_o. NaN and infinities are not taken for anything.
module wpr_zfp_cast #(
  parameter int unsigned Values = 16  // 4 or 16
) (
  input  logic                    clk_i,
  input  logic [Values-1:0][31:0] values_i,
  output logic [Values-1:0][30:0] numbers_o,
  output logic              [7:0] exponent_o,  // of the largest magnitude, with the bias 127
  output logic                    tiny_o
);

  localparam int unsigned Steps = $clog2(Values) / 2;
  localparam logic [7:0] Least = 8'd29;  // the exponent of 2^-98

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    return a > b ? a : b;
  endfunction

  // ---- the largest exponent, of four a clock ----------------------------------------------------

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

  // ---- how far each value lies below it; shifted; negated ---------------------------------------

  logic [2:0][7:0] exponent_q;
  assign exponent_o = exponent_q[2];
  always_ff @(posedge clk_i) begin
    exponent_q <= {exponent_q[1:0], g_most[Steps].most};
    tiny_o     <= exponent_q[1] < Least;
  end

  for (genvar i = 0; i < int'(Values); i++) begin : g_value
    logic [31:0] value;
    logic [7:0] below, below_q;
    logic [23:0] significand_q;
    logic [29:0] number_q;
    logic [1:0] negative_q;
    assign value = g_most[Steps].values[i];
    // A denormal has the exponent of the least normal number.
    assign below = g_most[Steps].most - {value[30:24], value[23] || value[30:23] == '0};
    always_ff @(posedge clk_i) begin
      below_q       <= below;
      significand_q <= {value[30:23] != '0, value[22:0]};
      number_q      <= below_q[7:5] != '0 ? '0 : {significand_q, 6'b0} >> below_q[4:0];
      negative_q    <= {negative_q[0], value[31]};
      numbers_o[i]  <= ({1'b0, number_q} ^ {31{negative_q[1]}}) + 31'(negative_q[1]);
    end
  end

endmodule
