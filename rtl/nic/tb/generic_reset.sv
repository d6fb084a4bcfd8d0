// SPDX-License-Identifier: Apache-2.0
// Stands in for the OpenNIC shell's reset: holds reset for RESET_DURATION clocks, then sets
// mod_rst_done.
module generic_reset #(
  parameter int NUM_INPUT_CLK  = 1,  // 1 here
  parameter int RESET_DURATION = 100
) (
  input  logic                     mod_rstn,
  output logic                     mod_rst_done,
  input  logic [NUM_INPUT_CLK-1:0] clk,
  output logic [NUM_INPUT_CLK-1:0] rstn
);
  int unsigned left_q;
  always_ff @(posedge clk[0]) begin
    if (!mod_rstn) left_q <= RESET_DURATION;
    else if (left_q != 0) left_q <= left_q - 1;
  end
  assign mod_rst_done = mod_rstn && left_q == 0;
  assign rstn         = {NUM_INPUT_CLK{mod_rst_done}};
endmodule
