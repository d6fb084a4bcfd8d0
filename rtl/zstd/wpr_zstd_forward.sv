// SPDX-License-Identifier: Apache-2.0
// Reads a packet in the zstd decoder forward, from a byte on: shows the next 40 bits and takes as
// many of them as it is told, four clocks for each time.
//
// What is shown behind the packet's end may be anything: the user compares at_o with it.
module wpr_zstd_forward
  import wpr_zstd_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  row_t     have_i,   // rows of the packet that have come as a whole
  input  logic     ended_i,  // all of the packet has
  input  logic     seek_i,   // to byte
  input  address_t byte_i,
  output logic     ready_o,  // bits are shown
  output logic [39:0] bits_o,  // the next one lowest
  output address_t at_o,     // the byte that has the next one, with ready_o
  output logic [2:0] bit_o,  // and its place there
  input  logic     take_i,   // has no effect without ready_o
  input  logic [5:0] n_i,    // 0 to 40; counts in the next clock

  output logic        request_o,
  output row_t        row_o,
  input  logic        grant_i,
  input  logic        response_i,
  input  logic [63:0] data_i
);

  row_t row_q;  // of words_q[0]
  logic [1:0][63:0] words_q;
  logic [1:0] valid_q;
  logic [6:0] bit_q;  // from the first word's begin on
  logic pending_q, drop_q;  // drop: what was asked for before a seek
  logic there_q;  // this row, or the one after a row more, has come
  logic move, take_q, want_q;
  logic [5:0] n_q;
  logic [127:0] turned;
  assign turned    = words_q >> bit_q[5:0];
  assign move      = bit_q[6];
  assign row_o     = row_q + row_t'(valid_q[0]);
  assign request_o = want_q;
  always_ff @(posedge clk_i) begin
    take_q  <= take_i && ready_o;
    n_q     <= n_i;
    bits_o  <= turned[39:0];
    at_o    <= {row_q + row_t'(bit_q[6]), bit_q[5:3]};
    bit_o   <= bit_q[2:0];
    ready_o <= valid_q == '1 && !move && !take_q;
    if (seek_i || (take_i && ready_o)) ready_o <= 1'b0;
    if (take_q) bit_q <= bit_q + 7'(n_q);
    if (move) begin
      bit_q[6] <= 1'b0;
      row_q    <= row_q + 1'b1;
      words_q  <= {64'b0, words_q[1]};
      valid_q  <= {1'b0, valid_q[1]};
    end
    there_q <= !seek_i && (ended_i || row_o + 1'b1 < have_i);
    want_q  <= !pending_q && valid_q != '1 && !move && there_q && !grant_i && !seek_i;
    if (grant_i) pending_q <= 1'b1;
    if (response_i) begin
      pending_q <= 1'b0;
      drop_q    <= 1'b0;
      if (!drop_q) begin
        // In a clock that moves, the only word that may be missing becomes the first one.
        words_q[valid_q[0] && !move] <= data_i;
        valid_q[valid_q[0] && !move] <= 1'b1;
      end
    end
    if (seek_i) begin
      valid_q <= '0;
      row_q   <= byte_i[AddressWidth-1:3];
      bit_q   <= {1'b0, byte_i[2:0], 3'b0};
      drop_q  <= (pending_q && !response_i) || grant_i;
      take_q  <= 1'b0;
    end
    if (!rst_ni) begin
      take_q    <= 1'b0;
      want_q    <= 1'b0;
      valid_q   <= '0;
      pending_q <= 1'b0;
      drop_q    <= 1'b0;
      bit_q     <= '0;
      row_q     <= '0;
      ready_o   <= 1'b0;
      there_q   <= 1'b0;
    end
  end

endmodule
