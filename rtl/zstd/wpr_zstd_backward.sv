// SPDX-License-Identifier: Apache-2.0
// Reads a bit stream of a packet in the zstd decoder, which goes backward from its last byte's
// highest bit that is set: shows the next Peek bits and takes up to as many a clock.
//
// The stream must have come as a whole. Bits before its first one may be anything: left_o, how many
// bits are left, is then negative. A last byte of 0 is not valid.
module wpr_zstd_backward
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned Peek   = 11,
  parameter int unsigned Chunk  = 16,  // bits that come at once: 16, 32 or 64
  // At least Peek + Chunk - 1; with Chunk more, Peek bits may be taken in each clock.
  parameter int unsigned Window = 48,
  // Up to 11 bits are taken in a clock, which come as one bit of hot_i, and bits come meanwhile.
  // Without it as many as n_i says are, and bits come in other clocks.
  parameter bit EveryClock = 1'b1,
  localparam int unsigned CountWidth = $clog2(Window + 1)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic     start_i,
  input  address_t ends_i,   // the byte behind the last one
  input  logic [17:0] size_i,  // bytes, 1 or more
  output logic     ready_o,  // Peek bits are shown
  output logic     bad_o,    // the last byte is 0
  output logic [Peek-1:0] bits_o,  // the next one highest
  input  logic     take_i,   // with ready_o
  input  logic [CountWidth-1:0] n_i,  // 0 to Peek
  input  logic [11:0] hot_i,
  output logic signed [21:0] left_o,  // but for those taken in the last clock

  output logic        request_o,
  output row_t        row_o,
  input  logic        grant_i,
  input  logic        response_i,
  input  logic [63:0] data_i
);

  localparam int unsigned Parts = 64 / Chunk;
  localparam int unsigned PartWidth = Parts == 1 ? 1 : $clog2(Parts);

  // ---- words: two in a queue, of which the first is taken by parts ------------------------------

  row_t row_q;
  logic running_q;
  logic [1:0][63:0] words_q;
  logic [1:0] valid_q;
  logic [2:0] coming_q, drop_q;  // asked for; and for a stream before
  logic [PartWidth-1:0] part_q;
  logic insert, pop, come;
  logic [Chunk-1:0] chunk;
  logic [2:0] held;
  assign come      = response_i && drop_q == '0;
  assign held      = 3'(valid_q[0]) + 3'(valid_q[1]) + coming_q;
  assign row_o     = row_q;
  assign request_o = running_q && held < 3'd2;
  assign chunk     = words_q[0][64 - Chunk * (int'(part_q) + 1)+:Chunk];
  assign pop       = insert && (Parts == 1 || part_q == PartWidth'(Parts - 1));
  always_ff @(posedge clk_i) begin
    coming_q <= coming_q + 3'(grant_i) - 3'(come);
    if (response_i && !come) drop_q <= drop_q - 1'b1;
    if (grant_i) row_q <= row_q - 1'b1;
    if (insert) part_q <= Parts == 1 ? '0 : part_q + 1'b1;
    if (pop) begin
      words_q[0] <= words_q[1];
      valid_q    <= {1'b0, valid_q[1]};
    end
    if (come) begin
      if (pop ? valid_q[1] : valid_q[0]) begin
        words_q[1] <= data_i;
        valid_q[1] <= 1'b1;
      end else begin
        words_q[0] <= data_i;
        valid_q[0] <= 1'b1;
      end
    end
    if (start_i) begin
      row_q    <= row_t'((ends_i - 1'b1) >> 3);
      part_q   <= '0;
      valid_q  <= '0;
      coming_q <= '0;
      drop_q   <= drop_q + coming_q + 3'(grant_i) - 3'(response_i);
    end
    if (!rst_ni) begin
      valid_q  <= '0;
      coming_q <= '0;
      drop_q   <= '0;
    end
  end

  // ---- the window -------------------------------------------------------------------------------

  // First what stands behind the stream in its last row is skipped, a byte a clock, and then the
  // zeros before its first bit.
  typedef enum logic [1:0] {Idle, Skip, Mark, Shown} state_e;
  state_e state_q;
  logic [2:0] skip_q;  // bytes
  logic [Window-1:0] window_q, filled, turned;
  logic [CountWidth-1:0] count_q, n, n1_q;
  logic enough, go;
  logic [3:0] zeros;  // and the one behind them
  always_comb begin
    zeros = 4'd8;
    for (int i = 0; i < 8; i++) if (window_q[Window-8+i]) zeros = 4'(8 - i);
  end
  assign enough = count_q >= CountWidth'(Peek);
  assign insert = valid_q[0] && count_q <= CountWidth'(Window - Chunk) && (EveryClock || !go);
  assign filled = window_q | (insert ? Window'({chunk, {(Window - Chunk) {1'b0}}} >> count_q) : '0);
  assign go     = state_q == Shown ? take_i : enough && state_q != Idle;
  if (EveryClock) begin : g_hot
    logic [11:0] hot;
    always_comb begin
      hot = hot_i;
      if (state_q == Skip) hot = skip_q == '0 ? 12'd1 : 12'd1 << 8;
      if (state_q == Mark) hot = 12'd1 << zeros;
      n      = '0;
      turned = '0;
      for (int i = 0; i < 12; i++) begin
        if (hot[i]) n |= CountWidth'(i);
        if (hot[i]) turned |= filled << i;
      end
    end
  end else begin : g_number
    always_comb begin
      n = n_i;
      if (state_q == Skip) n = skip_q == '0 ? '0 : CountWidth'(8);
      if (state_q == Mark) n = CountWidth'(zeros);
      turned = window_q << n;
    end
  end
  assign bits_o  = window_q[Window-1-:Peek];
  assign ready_o = enough && state_q == Shown;
  always_ff @(posedge clk_i) begin
    window_q <= go ? turned : filled;
    count_q  <= count_q + (insert ? CountWidth'(Chunk) : '0) - (go ? n : '0);
    n1_q     <= go && state_q != Skip ? n : '0;
    left_o   <= left_o - 22'(n1_q);
    if (go && state_q == Skip) begin
      skip_q <= skip_q - 1'b1;
      if (skip_q == '0) state_q <= Mark;
    end
    if (go && state_q == Mark) begin
      state_q <= Shown;
      bad_o   <= window_q[Window-1-:8] == '0;
    end
    if (start_i) begin
      state_q   <= Skip;
      skip_q    <= 3'd0 - ends_i[2:0];
      window_q  <= '0;
      count_q   <= '0;
      n1_q      <= '0;
      left_o    <= 22'({size_i, 3'b0});
      bad_o     <= 1'b0;
      running_q <= 1'b1;
    end
    if (!rst_ni) begin
      state_q   <= Idle;
      running_q <= 1'b0;
      count_q   <= '0;
      bad_o     <= 1'b0;
    end
  end

endmodule
