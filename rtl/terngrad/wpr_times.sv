// SPDX-License-Identifier: Apache-2.0
// A 32-bit number times a constant, the lower 32 bits. One a clock, latency 3 clocks.
module wpr_times #(
  parameter logic [31:0] Factor = 32'd1
) (
  input  logic        clk_i,
  input  logic [31:0] x_i,
  output logic [31:0] y_o
);

  logic [31:0] low_q, low2_q;
  logic [15:0] middle_a_q, middle_b_q, middle_q;
  always_ff @(posedge clk_i) begin
    low_q      <= 32'(x_i[15:0]) * 32'(Factor[15:0]);
    middle_a_q <= 16'(x_i[15:0] * Factor[31:16]);
    middle_b_q <= 16'(x_i[31:16] * Factor[15:0]);
    low2_q     <= low_q;
    middle_q   <= middle_a_q + middle_b_q;
    y_o        <= {low2_q[31:16] + middle_q, low2_q[15:0]};
  end

endmodule
