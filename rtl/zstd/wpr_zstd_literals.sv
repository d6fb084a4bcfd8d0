// SPDX-License-Identifier: Apache-2.0
// The literals of a block on their way to the copy engine of the zstd decoder: from the packet
// itself, one byte again and again, or from four banks of what the Huffman streams have made; up to
// 8 a clock. A bank's rows are written while others of it are read.
//
// Literals that came and have not been used are at most 128.
module wpr_zstd_literals
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogRows = 13  // of a bank
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous
  input logic stop_i,  // gives no more than what is on its way

  input  logic   start_i,
  input  block_t block_i,    // of a clock before start_i on; not looked at behind it, nor is
  input  logic [LogRows-1:0] base_i,  // Huffman: first row in each bank
  output logic   busy_o,
  output row_t   row_o,      // Raw: rows before it are not needed any more
  input  logic   mine_i,     // Huffman: the block is that of the streams,
  input  logic [3:0][LogRows:0] rows_i,  // which have made so many rows

  input logic [3:0]              write_i,
  input logic [3:0][LogRows-1:0] write_row_i,
  input logic [3:0][       63:0] write_data_i,

  input  row_t     have_i,   // Raw: as wpr_zstd_forward
  input  logic     ended_i,
  output logic     request_o,
  output row_t     request_row_o,
  input  logic     grant_i,
  input  logic [63:0] data_i,

  input  logic [4:0] used_i,  // so many are used in this clock
  output logic [7:0] wait_o,  // have come and are not used: before this clock

  output logic [  3:0] n_o,  // to the copy engine (wpr_lz_literals)
  output logic [  3:0] begin_o,
  output logic [127:0] bytes_o
);

  // ---- what is asked for ------------------------------------------------------------------------

  literals_e kind_q;
  logic [7:0] value_q;
  // Of a Huffman stream, or of the literals, and of the next row's bytes before them; at most 8?
  logic [17:0] left_q;
  logic last_q;
  logic [17:0] later_q, quarter_q;  // of later streams
  logic more_q;  // later_q is not 0; known a clock behind it
  logic [1:0] bank_q;
  logic [LogRows-1:0] base_q;
  logic [LogRows:0] row_in_bank_q;
  row_t row_q;
  logic [2:0] begin_q;
  logic [3:0] n;
  logic go, room_q, made_q, busy_q, four;
  logic some_q;  // literals are left
  logic there_q;  // Raw: as in wpr_zstd_forward
  assign four          = block_i.kind == Huffman && block_i.four;
  assign n             = (last_q ? left_q[3:0] : 4'd8) - {1'b0, begin_q};
  assign row_o         = row_q;
  assign request_row_o = row_q;
  assign request_o     = kind_q == Raw && some_q && room_q && there_q;
  assign busy_o        = busy_q;
  logic [17:0] quarter1_q, first1_q, quarter, stream;
  logic [2:0] begins;
  logic made_now, made_next;
  assign begins    = block_i.kind == Raw ? block_i.literals[2:0] : '0;
  assign quarter   = (block_i.n + 18'd3) >> 2;
  assign stream    = bank_q == 2'd2 ? later_q : quarter_q;  // the next one
  assign made_now  = row_in_bank_q < rows_i[bank_q];
  assign made_next = row_in_bank_q + 1'b1 < rows_i[bank_q];
  always_comb begin
    go = some_q && room_q && (kind_q != Huffman || made_q);
    if (kind_q == Raw) go = grant_i;
  end

  // Those asked for and not used yet, a clock ago; those of them that have come.
  logic [7:0] owed_q, wait_q;
  logic [4:0] used1_q;
  logic [3:1][3:0] n_q;  // on their way
  assign wait_o = wait_q;
  logic [4:0] idle_q;  // nothing is on its way
  always_ff @(posedge clk_i) begin
    quarter1_q <= quarter;
    first1_q   <= four ? quarter : block_i.n + 18'(begins);
    used1_q <= used_i;
    owed_q  <= owed_q + 8'(n_q[1]) - 8'(used1_q);
    wait_q  <= wait_q + 8'(n_o) - 8'(used_i);
    room_q  <= owed_q <= 8'd104;  // of two clocks ago: three rows more fit
    more_q  <= later_q != '0;
    // A row that is there stays so; behind one that goes another one is.
    made_q  <= kind_q == Huffman && (!mine_i || (go ? made_next : made_now));
    there_q <= !start_i && (ended_i || row_q + 1'b1 < have_i);
    if (go) begin
      left_q        <= left_q - 18'd8;
      last_q        <= left_q <= 18'd16;
      begin_q       <= '0;
      row_q         <= row_q + 1'b1;
      row_in_bank_q <= row_in_bank_q + 1'b1;
      if (last_q) begin
        some_q        <= more_q;
        made_q        <= 1'b0;
        bank_q        <= bank_q + 1'b1;
        row_in_bank_q <= '0;
        left_q        <= stream;
        last_q        <= stream <= 18'd8;
        later_q       <= later_q - stream;
      end
    end
    idle_q <= {idle_q[3:0], !some_q};
    if (idle_q == '1 || stop_i) busy_q <= 1'b0;
    if (stop_i) some_q <= 1'b0;
    if (start_i) begin
      busy_q        <= 1'b1;
      some_q        <= block_i.n != '0;
      kind_q        <= block_i.kind;
      value_q       <= block_i.value;
      bank_q        <= '0;
      base_q        <= base_i;
      row_in_bank_q <= '0;
      row_q         <= block_i.literals[AddressWidth-1:3];
      begin_q       <= begins;
      made_q        <= 1'b0;
      quarter_q     <= quarter1_q;
      left_q        <= first1_q;
      last_q        <= first1_q <= 18'd8;
      later_q       <= four ? block_i.n - quarter1_q : '0;
      more_q        <= 1'b0;
      idle_q        <= '0;
    end
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      kind_q  <= Rle;
      owed_q  <= '0;
      wait_q  <= '0;
      used1_q <= '0;
      made_q  <= 1'b0;
      room_q  <= 1'b0;
      begin_q <= '0;
      some_q  <= 1'b0;
      there_q <= 1'b0;
    end
  end

  // ---- what comes -------------------------------------------------------------------------------

  logic [3:0][63:0] read2_q, read3_q;
  logic [LogRows-1:0] row1_q;
  always_ff @(posedge clk_i) row1_q <= base_q + LogRows'(row_in_bank_q);
  for (genvar k = 0; k < 4; k++) begin : g_bank
    logic [63:0] rows_q[1 << LogRows];
    always_ff @(posedge clk_i) if (write_i[k]) rows_q[write_row_i[k]] <= write_data_i[k];
    always_ff @(posedge clk_i) read2_q[k] <= rows_q[row1_q];
    always_ff @(posedge clk_i) read3_q[k] <= read2_q[k];
  end

  logic [3:1][2:0] first_q;
  logic [3:1][1:0] of_q;
  logic [63:0] row;
  assign row = kind_q == Raw ? data_i : kind_q == Rle ? {8{value_q}} : read3_q[of_q[3]];
  always_ff @(posedge clk_i) begin
    n_q     <= {n_q[2:1], go ? n : 4'd0};
    first_q <= {first_q[2:1], begin_q};
    of_q    <= {of_q[2:1], bank_q};
    n_o     <= n_q[3];
    begin_o <= 4'(first_q[3]);
    bytes_o <= {64'b0, row};
    if (!rst_ni) begin
      n_q <= '0;
      n_o <= '0;
    end
  end
endmodule
