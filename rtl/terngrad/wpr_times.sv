// SPDX-License-Identifier: Apache-2.0
// A 32-bit number times a constant, the lower 32 bits. One a clock, latency 2 clocks. Two multipliers of
// 27x18 bits, or three of 18x18.
//
// Of the constant the upper six bits, less what makes the others a signed number, are 2^31 or that and
// 2^26.
module wpr_times #(
  parameter logic [31:0] Factor = 32'h7FFFFFFF,
  // The factor is 2^31 - 5 * 2^18 and a signed number of 18 bits: one of three multipliers less,
  // two adders of 14 bits more.
  parameter bit Five = 1'b0
) (
  input  logic        clk_i,
  input  logic [31:0] x_i,
  output logic [31:0] y_o
);

  localparam logic signed [25:0] Low = Five ? 26'(signed'(Factor[17:0])) : Factor[25:0];
  localparam logic [5:0] High = Factor[31:26] + 6'(Factor[25]);
  if (High[5:1] != 5'd16) begin : g_other
    $error("wpr_times: another kind of factor");
  end

  logic signed [17:0] x_low;
  logic [31:0] low, low_q;
  logic [14:0] high_q;
  logic [5:0] top;
  assign x_low = {1'b0, x_i[16:0]};
  assign top   = {x_i[0], 5'b0} ^ (High[0] ? x_i[5:0] : '0);
  if (Five) begin : g_five
    (* keep *) logic [13:0] five;  // or the two adders become one of three numbers, which is larger
    assign five = x_i[13:0] + {x_i[11:0], 2'b0};
    assign low  = 32'(x_low * Low) - {five, 18'b0};
  end else begin : g_product
    assign low = 32'(x_low * Low);
  end
  always_ff @(posedge clk_i) begin
    low_q  <= low;
    high_q <= 15'(x_i[31:17] * Factor[14:0]) + {top, 9'b0};
    y_o    <= {low_q[31:17] + high_q, low_q[16:0]};
  end

endmodule
