// SPDX-License-Identifier: Apache-2.0
// A ring of rows of a stream in block RAM, and bits of it from any place on, one window a clock:
// two clocks after place_i is there, bits_o is what a shift by less than 8 makes of registers.
//
// A row is of words of 128 bits, each in a memory of its own, of which two that stand side by side
// are read. Does not know which rows are written.
module wpr_zfp_window #(
  parameter int unsigned Width   = 127,  // bits of a window, at most 129
  parameter int unsigned Bytes   = 32,   // of a row: 32 or 64
  parameter int unsigned LogRows = 9,
  localparam int unsigned PlaceBits = LogRows + 3 + $clog2(Bytes)
) (
  input  logic                 clk_i,
  input  logic                 write_i,
  input  logic [  LogRows-1:0] row_i,
  input  logic [  8*Bytes-1:0] data_i,
  input  logic [PlaceBits-1:0] place_i,  // a bit: its row, and which of the row
  input  logic [  LogRows-1:0] next_i,   // the row of the bit that stands 128 behind that
  output logic [    Width-1:0] bits_o
);

  localparam int unsigned Words = Bytes / 16;
  localparam int unsigned Log = $clog2(Words);
  localparam int unsigned Coarse = Width + 31;

  logic [Words-1:0][127:0] read_q;
  for (genvar i = 0; i < int'(Words); i++) begin : g_word
    (* ram_style = "block" *) logic [127:0] rows_q[1 << LogRows];
    logic [LogRows-1:0] address;  // a first word stands behind a row's last one
    assign address = i == 0 ? next_i : place_i[PlaceBits-1-:LogRows];
    always_ff @(posedge clk_i) begin
      if (write_i) rows_q[row_i] <= data_i[128*i+:128];
    end
    always_ff @(posedge clk_i) read_q[i] <= rows_q[address];
  end

  // Parts of 32 bits from the place's one on.
  logic [4:0] bit_q;
  logic [2:0] fine_q;
  logic [Coarse-1:0] coarse;
  logic [Width+6:0] near_q;
  if (Words == 2) begin : g_two
    // Of eight parts, of which the even ones and the odd ones are chosen each by numbers of their
    // own, and then by turns: so that a choice of four is one look-up table.
    localparam int unsigned Pairs = (Coarse + 63) / 64;
    logic [7:0][31:0] parts;
    logic [Pairs-1:0][1:0] even_q, odd_q;
    logic [Pairs-1:0][31:0] even, odd;
    logic [2*Pairs-1:0][31:0] turns;
    logic from_odd_q;
    assign parts = read_q;
    always_ff @(posedge clk_i) begin
      from_odd_q <= place_i[5];
      for (int j = 0; j < int'(Pairs); j++) begin
        odd_q[j]  <= place_i[7:6] + 2'(j);
        even_q[j] <= place_i[7:6] + 2'(place_i[5]) + 2'(j);
      end
    end
    always_comb begin
      for (int j = 0; j < int'(Pairs); j++) begin
        even[j]      = parts[{even_q[j], 1'b0}];
        odd[j]       = parts[{odd_q[j], 1'b1}];
        turns[2*j]   = from_odd_q ? odd[j] : even[j];
        turns[2*j+1] = from_odd_q ? even[j] : odd[j];
      end
    end
    assign coarse = Coarse'(turns);
  end else begin : g_more
    logic [Log-1:0] word_q;
    logic [1:0] part_q;
    always_ff @(posedge clk_i) {word_q, part_q} <= place_i[Log+6:5];
    assign coarse = Coarse'({read_q[word_q+Log'(1)], read_q[word_q]} >> {part_q, 5'd0});
  end
  always_ff @(posedge clk_i) begin
    bit_q  <= place_i[4:0];
    fine_q <= bit_q[2:0];
    near_q <= (Width + 7)'(coarse >> {bit_q[4:3], 3'd0});
  end
  assign bits_o = Width'(near_q >> fine_q);

endmodule
