// SPDX-License-Identifier: Apache-2.0
// A ring of rows of a stream in block RAM, and bits of it from any place on, one window a clock:
// two clocks after place_i is there, bits_o is what a shift by less than 32 makes of registers.
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
  output logic [    Width-1:0] bits_o
);

  localparam int unsigned Words = Bytes / 16;
  localparam int unsigned Log = $clog2(Words);
  localparam int unsigned Coarse = Width + 31;

  logic [LogRows-1:0] row;
  logic [Log-1:0] word, word_q;
  assign {row, word} = place_i[PlaceBits-1:7];

  logic [Words-1:0][127:0] read_q;
  for (genvar i = 0; i < int'(Words); i++) begin : g_word
    (* ram_style = "block" *) logic [127:0] rows_q[1 << LogRows];
    logic [LogRows-1:0] address;
    assign address = row + LogRows'(i == 0 && &word);  // behind a row's last word: a first one
    always_ff @(posedge clk_i) begin
      if (write_i) rows_q[row_i] <= data_i[128*i+:128];
    end
    always_ff @(posedge clk_i) read_q[i] <= rows_q[address];
  end

  logic [6:0] bit_q;
  logic [4:0] fine_q;
  logic [Coarse-1:0] coarse_q;
  always_ff @(posedge clk_i) begin
    word_q   <= word;
    bit_q    <= place_i[6:0];
    fine_q   <= bit_q[4:0];
    coarse_q <= Coarse'({read_q[word_q+Log'(1)], read_q[word_q]} >> {bit_q[6:5], 5'd0});
  end
  assign bits_o = Width'(coarse_q >> fine_q);

endmodule
