// SPDX-License-Identifier: Apache-2.0
// What came so many clocks ago.
module wpr_zfp_delay #(
  parameter int unsigned Width  = 16,
  parameter int unsigned Clocks = 1   // also 0
) (
  input  logic             clk_i,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  logic [Clocks:0][Width-1:0] data;
  assign data[0] = data_i;
  assign data_o  = data[Clocks];
  if (Clocks > 0) begin : g_delay
    always_ff @(posedge clk_i) data[Clocks:1] <= data[Clocks-1:0];
  end

endmodule
