// SPDX-License-Identifier: Apache-2.0
// Reads the description of an FSE table in the zstd decoder: how often each symbol stands in the
// table, a symbol at a time, from the packet's next byte on (wpr_zstd_forward). Five clocks a
// symbol.
module wpr_zstd_counts
  import wpr_zstd_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic       start_i,
  input  logic [3:0] most_log_i,     // that the table may have
  input  logic [5:0] most_symbol_i,
  output logic       busy_o,
  output logic       bad_o,          // behind it: the description is not valid
  output logic [3:0] log_o,          // with count_valid_o and behind it

  output logic       count_valid_o,  // of the symbols in order, up to the last one that has any
  output logic [9:0] count_o,
  output logic       less_o,         // -1: count_o is 1

  input  logic        ready_i,
  input  logic [10:0] bits_i,
  input  logic [ 2:0] bit_i,
  output logic        take_o,  // has no effect without ready_i
  output logic [ 5:0] n_o
);

  typedef enum logic [2:0] {Idle, Log, Look, Count, Zeros, Fill, Align} state_e;
  state_e state_q;
  logic [9:0] left_q;  // one more than is left of the table
  logic [5:0] symbol_q;
  logic [1:0] fill_q;
  logic more_q;
  logic over_q;  // symbol_q > most_symbol_i

  // The highest bit of left_q: a count takes so many bits, or one more. The reader shows bits three
  // clocks behind what was taken last, so what follows from left_q alone is known before.
  logic [3:0] high, high_q;
  logic [9:0] low, full, less_q, above_q, value;
  logic long_code;
  always_comb begin
    high = '0;
    for (int i = 0; i < 10; i++) if (left_q[i]) high = 4'(i);
  end
  assign low       = bits_i[9:0] & ((10'd1 << high_q) - 10'd1);
  assign full      = 10'(bits_i[10:0] & ((11'd2 << high_q) - 11'd1));
  assign long_code = low >= less_q;
  assign value     = !long_code ? low : full[high_q] ? full - less_q : full;
  logic [9:0] value_q;
  logic [3:0] n_q;

  assign busy_o        = state_q != Idle;
  assign count_valid_o = state_q == Count || state_q == Fill;
  assign less_o        = state_q == Count && value_q == '0;
  assign count_o       = state_q == Fill ? '0 : value_q == '0 ? 10'd1 : value_q - 10'd1;
  logic last_q, looks_q;  // of a clock ago: there is nothing more; it was Look
  always_comb begin
    take_o = 1'b0;
    n_o    = 6'd4;
    unique case (state_q)
      Log:   take_o = 1'b1;
      Count: begin
        take_o = 1'b1;
        n_o    = 6'(n_q);
      end
      Zeros: begin
        take_o = 1'b1;
        n_o    = 6'd2;
      end
      Align: begin
        take_o = 1'b1;
        n_o    = bit_i == '0 ? '0 : 6'd8 - 6'(bit_i);
      end
      default: take_o = 1'b0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    high_q  <= high;
    less_q  <= 10'((11'd2 << high_q) - 11'd1 - 11'(left_q));
    above_q <= left_q + 1'b1;
    last_q  <= left_q <= 10'd1 || over_q;
    over_q  <= state_q inside {Count, Fill} ? symbol_q >= most_symbol_i : symbol_q > most_symbol_i;
    looks_q <= state_q == Look;
    unique case (state_q)
      Log:
      if (ready_i) begin
        log_o   <= bits_i[3:0] + 4'd5;
        left_q  <= 10'((11'd32 << bits_i[3:0]) + 11'd1);
        state_q <= Look;
        if (bits_i[3:0] + 5'd5 > 5'(most_log_i)) begin
          state_q <= Idle;
          bad_o   <= 1'b1;
        end
      end
      Look:
      if (looks_q && last_q) begin
        state_q <= Align;
        bad_o   <= left_q != 10'd1;
      end else if (looks_q && ready_i) begin
        value_q <= value;
        n_q     <= high_q + 4'(long_code);
        state_q <= Count;
      end
      Count: begin
        symbol_q <= symbol_q + 1'b1;
        // The count is one less than its value, or 1. More than is left: 0 is refused.
        if (value_q == '0) left_q <= left_q - 1'b1;
        else left_q <= above_q < value_q ? '0 : above_q - value_q;
        state_q <= value_q == 10'd1 ? Zeros : Look;
      end
      Zeros:
      if (ready_i) begin
        fill_q  <= bits_i[1:0];
        more_q  <= bits_i[1:0] == 2'd3;
        state_q <= bits_i[1:0] == 2'd0 ? Look : Fill;
      end
      Fill: begin
        symbol_q <= symbol_q + 1'b1;
        fill_q   <= fill_q - 1'b1;
        if (fill_q == 2'd1) state_q <= more_q ? Zeros : Look;
        if (over_q) begin
          state_q <= Idle;
          bad_o   <= 1'b1;
        end
      end
      Align:
      if (ready_i) state_q <= Idle;
      default: ;
    endcase
    if (start_i) begin
      state_q  <= Log;
      symbol_q <= '0;
      over_q   <= 1'b0;
      bad_o    <= 1'b0;
    end
    if (!rst_ni) begin
      state_q <= Idle;
      bad_o   <= 1'b0;
    end
  end

endmodule
