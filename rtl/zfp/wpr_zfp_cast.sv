// SPDX-License-Identifier: Apache-2.0
// The float32 values of a cell as fixed-point numbers with the cell's exponent: libzfp's fwd_cast.
// A number is trunc(value * 2^(156 - exponent)). Latency 3 clocks, a row of values a clock.
//
// A cell whose largest magnitude lies below 2^-98, for which libzfp has no defined code, is as one
// of zeros: tiny_o. NaN and infinities are not taken for anything.
module wpr_zfp_cast #(
  parameter int unsigned Values = 16
) (
  input  logic                    clk_i,
  input  logic [Values-1:0][31:0] values_i,
  input  logic              [7:0] exponent_i,  // of the cell's largest magnitude, with the bias 127
  output logic [Values-1:0][30:0] numbers_o,
  output logic              [7:0] exponent_o,
  output logic                    tiny_o
);

  localparam logic [7:0] Least = 8'd29;  // the exponent of 2^-98

  // ---- how far each value lies below the exponent; shifted; negated -----------------------------

  logic [2:0][7:0] exponent_q;
  assign exponent_o = exponent_q[2];
  always_ff @(posedge clk_i) begin
    exponent_q <= {exponent_q[1:0], exponent_i};
    tiny_o     <= exponent_q[1] < Least;
  end

  for (genvar i = 0; i < int'(Values); i++) begin : g_value
    logic [31:0] value;
    logic [7:0] below, below_q;
    logic [23:0] significand_q;
    logic [29:0] number_q;
    logic [1:0] negative_q;
    assign value = values_i[i];
    // A denormal has the exponent of the least normal number.
    assign below = exponent_i - {value[30:24], value[23] || value[30:23] == '0};
    always_ff @(posedge clk_i) begin
      below_q       <= below;
      significand_q <= {value[30:23] != '0, value[22:0]};
      number_q      <= below_q[7:5] != '0 ? '0 : {significand_q, 6'b0} >> below_q[4:0];
      negative_q    <= {negative_q[0], value[31]};
      numbers_o[i]  <= ({1'b0, number_q} ^ {31{negative_q[1]}}) + 31'(negative_q[1]);
    end
  end

endmodule
