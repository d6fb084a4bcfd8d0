// SPDX-License-Identifier: Apache-2.0
// Literals on their way from a parser to the copy engine: up to `Bytes` bytes in, and as many out in
// a clock. Byte k of all that came lies in lane k mod Bytes, so that nothing is shifted but on the
// way in. Holds 64 rows of lanes and does not say when they are too many.
module wpr_lz_literals #(
  parameter int unsigned Bytes = 8  // 8 or 16
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,   // synchronous
  input  logic [$clog2(Bytes):0] n_i,      // 0 to Bytes literals come: bytes_i from begin_i on,
  input  logic [$clog2(Bytes):0] begin_i,  // 0 to Bytes
  input  logic [$clog2(Bytes):0] first_i,  // and behind so many of them
  input  logic [            2:0] gap_i,    // so many bytes are none
  input  logic [ 16*Bytes-1:0]   bytes_i,
  input  logic [$clog2(Bytes):0] take_i,   // 0 to Bytes leave; came three clocks ago or earlier
  output logic [  8*Bytes-1:0]   lanes_o,  // the next ones
  output logic [$clog2(Bytes)-1:0] first_o  // lane of the next one
);

  localparam int unsigned LogBytes = $clog2(Bytes);
  typedef logic [LogBytes+5:0] place_t;  // row and lane
  place_t write_q, read_q;
  assign first_o = read_q[LogBytes-1:0];
  always_ff @(posedge clk_i) begin
    write_q <= write_q + place_t'(n_i);
    read_q  <= read_q + place_t'(take_i);
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
    end
  end

  for (genvar j = 0; j < int'(Bytes); j++) begin : g_lane
    (* ram_style = "distributed" *) logic [7:0] bytes_q[64];
    logic [LogBytes-1:0] past;  // where the lane's literal lies among those that come
    logic [LogBytes:0] from;
    logic [5:0] row, row1_q;
    logic [7:0] byte1_q;
    logic write1_q;
    assign past = LogBytes'(j) - write_q[LogBytes-1:0];
    assign from = begin_i + (LogBytes + 1)'(past) +
                  ({1'b0, past} < first_i ? '0 : (LogBytes + 1)'(gap_i));
    assign row  = read_q[LogBytes+:6] + 6'(j < int'(read_q[LogBytes-1:0]));
    assign lanes_o[8*j+:8] = bytes_q[row];
    always_ff @(posedge clk_i) begin
      write1_q <= {1'b0, past} < n_i;
      row1_q   <= write_q[LogBytes+:6] + 6'(j < int'(write_q[LogBytes-1:0]));
      byte1_q  <= bytes_i[8*from+:8];
    end
    always_ff @(posedge clk_i) if (write1_q) bytes_q[row1_q] <= byte1_q;
  end

endmodule
