// SPDX-License-Identifier: Apache-2.0
// Reads four bit planes of each cell of 64 values, one after the other, from its own copy of the
// stream: a cell in four clocks. A cell takes a turn of 9 clocks for a plane, so turns of four cells
// never meet: a cell that comes in clock 0 of four takes its turns in clocks 0, 1, 2 and 3.
//
// first_i is 1 in each fourth clock: a cell comes from the reader before this one. What it leaves
// with is valid in the same clocks. bits_o comes 11 clocks behind a turn's begin.
module wpr_zfp_read_turn #(
  parameter int unsigned Bytes   = 32,  // of a row, as in wpr_zfp_window
  parameter int unsigned LogRows = 9,
  localparam int unsigned PlaceBits = LogRows + 3 + $clog2(Bytes),
  localparam int unsigned LeftBits = 12
) (
  input logic clk_i,

  // The stream, as it comes.
  input logic               write_i,
  input logic [LogRows-1:0] row_i,
  input logic [8*Bytes-1:0] data_i,

  input  logic                 first_i,
  input  logic [PlaceBits-1:0] place_i,   // where the plane above begins, or the cell's head
  input  logic [          6:0] length_i,  // of that
  input  logic [ LeftBits-1:0] left_i,    // bits that the cell has from there on; 0: no more
  input  logic [          5:0] planes_i,  // that the cell has from this one on
  input  logic [         63:0] known_i,   // of the coefficients below n
  output logic [PlaceBits-1:0] place_o,
  output logic [          6:0] length_o,
  output logic [ LeftBits-1:0] left_o,
  output logic [          5:0] planes_o,
  output logic [         63:0] known_o,
  output logic [         63:0] bits_o
);

  // ---- 1: where the plane begins ----------------------------------------------------------------

  logic [PlaceBits-1:0] place_q;
  logic [LeftBits-1:0] left, left_q, left_was;
  logic [6:0] length;
  logic [5:0] planes, planes_q;
  logic [2:0][63:0] known_q;
  logic [2:0] use_q;
  assign length   = first_i ? length_i : length_o;
  assign left_was = first_i ? left_i : left_o;
  assign left     = left_was - LeftBits'(length);
  assign planes   = first_i ? planes_i : planes_o;
  always_ff @(posedge clk_i) begin
    place_q  <= (first_i ? place_i : place_o) + PlaceBits'(length);
    left_q   <= left_was < LeftBits'(length) ? '0 : left;
    planes_q <= planes == '0 ? '0 : planes - 6'd1;
    known_q  <= {known_q[1:0], first_i ? known_i : known_o};
    use_q    <= {use_q[1:0], planes != '0};
  end

  wpr_zfp_delay #(.Width(PlaceBits + LeftBits + 6), .Clocks(8)) keep (
    .clk_i,
    .data_i({place_q, left_q, planes_q}),
    .data_o({place_o, left_o, planes_o})
  );

  // ---- 2 to 4: its code; bits that the cell does not have are 0 ---------------------------------

  logic [126:0] window, mask;
  wpr_zfp_window #(.Width(127), .Bytes(Bytes), .LogRows(LogRows)) stream (
    .clk_i,
    .write_i,
    .row_i,
    .data_i,
    .place_i(place_q),
    .bits_o (window)
  );

  logic [LeftBits-1:0] left2_q;
  logic [15:0] begins_q, whole_q;  // of eight bits, the first one is the cell's; all are
  logic [7:0] rest_q;              // of eight bits that the cell's end cuts, those before it
  always_ff @(posedge clk_i) begin
    left2_q <= left_q;
    for (int g = 0; g < 16; g++) begin
      begins_q[g] <= left2_q[LeftBits-1:3] >= (LeftBits - 3)'(g);
      whole_q[g]  <= left2_q[LeftBits-1:3] > (LeftBits - 3)'(g);
    end
    rest_q <= ~(8'hFF << left2_q[2:0]);
  end
  always_comb begin
    for (int i = 0; i < 127; i++) begin
      mask[i] = whole_q[i/8] || (begins_q[i/8] && rest_q[i%8]);
    end
  end

  // ---- 4 to 9: its bits -------------------------------------------------------------------------

  wpr_zfp_read_bits #(.Values(64), .LeftBits(LeftBits + 1)) read (
    .clk_i,
    .use_i  (use_q[2]),
    .code_i (window & mask),
    .known_i(known_q[2]),
    .length_o,
    .known_o,
    .left_i ({1'b0, left_o}),
    .bits_o
  );

endmodule
