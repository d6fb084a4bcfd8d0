// SPDX-License-Identifier: Apache-2.0
// What came so many clocks ago: from a ring of LUT RAM, which is smaller than shift registers, and
// from registers where that is only one or two.
module wpr_zfp_delay #(
  parameter int unsigned Width  = 16,
  parameter int unsigned Clocks = 5   // also 0
) (
  input  logic             clk_i,
  input  logic [Width-1:0] data_i,
  output logic [Width-1:0] data_o
);

  if (Clocks == 0) begin : g_wire
    assign data_o = data_i;
  end else if (Clocks == 1) begin : g_one
    always_ff @(posedge clk_i) data_o <= data_i;
  end else if (Clocks == 2) begin : g_two
    logic [Width-1:0] data_q;
    always_ff @(posedge clk_i) {data_o, data_q} <= {data_q, data_i};
  end else begin : g_ring
    localparam int unsigned Ring = Clocks - 1;
    localparam int unsigned Log = $clog2(Ring);
    (* ram_style = "distributed" *) logic [Width-1:0] ring_q[Ring];
    logic [Log-1:0] at_q;  // finds into the ring from anywhere
    always_ff @(posedge clk_i) begin
      at_q         <= at_q >= Log'(Ring - 1) ? '0 : at_q + 1'b1;
      data_o       <= ring_q[at_q];
      ring_q[at_q] <= data_i;
    end
  end

endmodule
