// SPDX-License-Identifier: Apache-2.0
// Literals on their way from a parser to the copy engine: up to 8 bytes in, up to 8 out in a clock.
// Byte k of all that came lies in lane k mod 8, so that nothing is shifted but on the way in. Holds
// 512 bytes and does not say when they are too many.
module wpr_lz_literals (
  input  logic         clk_i,
  input  logic         rst_ni,   // synchronous
  input  logic [  3:0] n_i,      // 0 to 8 literals come: bytes_i from begin_i on
  input  logic [  3:0] begin_i,  // 0 to 8
  input  logic [127:0] bytes_i,
  input  logic [  3:0] take_i,   // 0 to 8 leave; those that came three clocks ago or earlier
  output logic [ 63:0] lanes_o,  // the next 8
  output logic [  2:0] first_o   // lane of the next one
);

  logic [8:0] write_q, read_q;
  assign first_o = read_q[2:0];
  always_ff @(posedge clk_i) begin
    write_q <= write_q + 9'(n_i);
    read_q  <= read_q + 9'(take_i);
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
    end
  end

  for (genvar j = 0; j < 8; j++) begin : g_lane
    (* ram_style = "distributed" *) logic [7:0] bytes_q[64];
    logic [2:0] past;  // where the lane's literal lies among those that come
    logic [3:0] from;
    logic [5:0] row, row1_q;
    logic [7:0] byte1_q;
    logic write1_q;
    assign past = 3'(j) - write_q[2:0];
    assign from = begin_i + 4'(past);
    assign row  = read_q[8:3] + 6'(j < int'(read_q[2:0]));
    assign lanes_o[8*j+:8] = bytes_q[row];
    always_ff @(posedge clk_i) begin
      write1_q <= 4'(past) < n_i;
      row1_q   <= write_q[8:3] + 6'(j < int'(write_q[2:0]));
      byte1_q  <= bytes_i[8*from+:8];
    end
    always_ff @(posedge clk_i) if (write1_q) bytes_q[row1_q] <= byte1_q;
  end

endmodule
