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
  input  logic [          6:0] length_i,  // of that, with more_i
  input  logic [     1:0][4:0] more_i,
  input  logic [ LeftBits-1:0] left_i,    // bits that the cell has from there on; 0: no more
  input  logic [          5:0] planes_i,  // that the cell has from this one on
  input  logic [          6:0] n_i,
  output logic [PlaceBits-1:0] place_o,
  output logic [          6:0] length_o,
  output logic [     1:0][4:0] more_o,
  output logic [ LeftBits-1:0] left_o,
  output logic [          5:0] planes_o,
  output logic [          6:0] n_o,
  output logic [         63:0] bits_o
);

  // ---- 1: where the plane begins ----------------------------------------------------------------

  logic [PlaceBits-1:0] place_was, place, place_q;
  logic [LogRows-1:0] next_row;
  logic [LeftBits-1:0] left_q, left_was;
  logic [LeftBits:0] left;
  logic [6:0] length;
  logic [1:0][4:0] more;
  logic [5:0] planes, planes_q;
  logic [6:0] n_q;
  logic [63:0] known_q;  // of the coefficients below n
  logic [1:0] use_q;
  assign place_was = first_i ? place_i : place_o;
  assign length    = first_i ? length_i : length_o;
  assign more      = first_i ? more_i : more_o;
  assign left_was  = first_i ? left_i : left_o;
  assign planes    = first_i ? planes_i : planes_o;
  assign place     = place_was + PlaceBits'(length) + PlaceBits'(more[0]) + PlaceBits'(more[1]);
  // Not of place, so that one sum does not wait for another.
  assign next_row  = LogRows'((place_was + PlaceBits'(length) + PlaceBits'(more[0]) +
                               PlaceBits'(more[1]) + PlaceBits'(128)) >> (PlaceBits - LogRows));
  assign left      = {1'b0, left_was} - (LeftBits + 1)'(length) - (LeftBits + 1)'(more[0]) -
                     (LeftBits + 1)'(more[1]);
  always_ff @(posedge clk_i) begin
    place_q  <= place;
    left_q   <= left[LeftBits] ? '0 : left[LeftBits-1:0];
    planes_q <= planes == '0 ? '0 : planes - 6'd1;
    n_q      <= first_i ? n_i : n_o;
    known_q  <= ~({64{1'b1}} << n_q);
    use_q    <= {use_q[0], planes != '0};
  end

  wpr_zfp_delay #(.Width(PlaceBits + LeftBits + 6), .Clocks(8)) keep (
    .clk_i,
    .data_i({place_q, left_q, planes_q}),
    .data_o({place_o, left_o, planes_o})
  );

  // ---- 1 to 3: its code; bits that the cell does not have are 0 ---------------------------------

  logic [126:0] window, mask;
  wpr_zfp_window #(.Width(127), .Bytes(Bytes), .LogRows(LogRows)) stream (
    .clk_i,
    .write_i,
    .row_i,
    .data_i,
    .place_i(place),
    .next_i (next_row),
    .bits_o (window)
  );

  logic [15:0] whole_q;  // all of eight bits are the cell's
  logic [7:0] rest_q;    // of eight bits that the cell's end cuts, those before it
  always_ff @(posedge clk_i) begin
    whole_q <= {16{left_q[LeftBits-1:7] != '0}} | ~(16'hFFFF << left_q[6:3]);
    rest_q  <= ~(8'hFF << left_q[2:0]);
  end
  logic [15:0] begins;  // their first one is
  assign begins = {whole_q[14:0], 1'b1};
  always_comb begin
    for (int i = 0; i < 127; i++) begin
      mask[i] = whole_q[i/8] || (begins[i/8] && rest_q[i%8]);
    end
  end

  // ---- 3 to 9: its bits -------------------------------------------------------------------------

  wpr_zfp_read_bits #(.Values(64), .LeftBits(LeftBits + 1)) read (
    .clk_i,
    .use_i  (use_q[1]),
    .code_i (window & mask),
    .known_i(known_q),
    .length_o,
    .more_o,
    .known_o(),
    .n_o,
    .left_i ({1'b0, left_o}),
    .bits_o
  );

endmodule
