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
  input  logic [      Bytes-1:0] first_i,  // but for those of them that are not set here: they
  input  logic [$clog2(Bytes):0] behind_i, // lie where they would if all lay from behind_i on
  input  logic [ 16*Bytes-1:0]   bytes_i,
  input  logic [$clog2(Bytes):0] take_i,   // 0 to Bytes leave; came 3 (16: 4) clocks ago or more
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

  // Of each lane: whether one comes, which of bytes_i it is, and to which row it goes. With 16 bytes
  // that is found a clock before it is done.
  typedef struct packed {
    logic write;
    logic [LogBytes:0] from;
    logic [5:0] row;
  } order_t;
  order_t [Bytes-1:0] found, orders;
  logic [Bytes-1:0] comes;  // a literal, by its number
  logic [16*Bytes-1:0] bytes;
  always_comb begin
    for (int i = 0; i < int'(Bytes); i++) comes[i] = (LogBytes + 1)'(i) < n_i;
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic logic [LogBytes-1:0] past = LogBytes'(j) - write_q[LogBytes-1:0];  // its number
      found[j].write = comes[past];
      found[j].from  = (LogBytes + 1)'(past) + (first_i[past] ? begin_i : behind_i);
      found[j].row   = write_q[LogBytes+:6] + 6'(j < int'(write_q[LogBytes-1:0]));
    end
  end
  if (Bytes == 16) begin : g_later
    always_ff @(posedge clk_i) {orders, bytes} <= {found, bytes_i};
  end else begin : g_at_once
    assign {orders, bytes} = {found, bytes_i};
  end

  for (genvar j = 0; j < int'(Bytes); j++) begin : g_lane
    (* ram_style = "distributed" *) logic [7:0] bytes_q[64];
    logic [5:0] row, row1_q;
    logic [7:0] byte1_q;
    logic write1_q;
    assign row = read_q[LogBytes+:6] + 6'(j < int'(read_q[LogBytes-1:0]));
    assign lanes_o[8*j+:8] = bytes_q[row];
    always_ff @(posedge clk_i) begin
      write1_q <= orders[j].write;
      row1_q   <= orders[j].row;
      byte1_q  <= bytes[8*orders[j].from+:8];
    end
    always_ff @(posedge clk_i) if (write1_q) bytes_q[row1_q] <= byte1_q;
  end

endmodule
