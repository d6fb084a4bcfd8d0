// SPDX-License-Identifier: Apache-2.0
// An FSE table of the zstd decoder: built from how often each symbol stands in it, read a state at
// a time.
//
// begin_i, then the counts of the symbols from 0 on, at most one a clock, then end_i with the
// table's logarithm; or rle_i with the only symbol. The table is built in twice its size, and a
// clock for each symbol and each state that a rare symbol took; then busy_o falls.
module wpr_zstd_fse #(
  parameter int unsigned MostLog = 9,
  parameter int unsigned SymbolWidth = 6
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic begin_i,
  input  logic count_valid_i,
  input  logic [MostLog:0] count_i,
  input  logic less_i,         // -1: count_i is 1
  input  logic end_i,
  input  logic [3:0] log_i,    // with counts and end_i: 5 to MostLog
  input  logic rle_i,
  input  logic [SymbolWidth-1:0] symbol_i,
  output logic busy_o,         // from begin_i or rle_i on
  output logic [3:0] log_o,    // of the table

  // Bits that stand beside a symbol are kept with it: extra_i are those of made_o, in its clock.
  output logic [SymbolWidth-1:0] made_o,
  input  logic [4:0] extra_i,

  input  logic read_i,
  input  logic [MostLog-1:0] state_i,
  output logic [SymbolWidth-1:0] symbol_o,  // a clock behind
  output logic [4:0] extra_o,
  output logic [4:0] all_o,    // those and the bits of the next state
  output logic [3:0] n_o,      // bits of the next state,
  output logic [MostLog-1:0] state_o  // to which this is added: below, it is 0
);

  localparam int unsigned Size = 1 << MostLog;
  localparam int unsigned CountWidth = MostLog + 1;
  typedef logic [MostLog-1:0] place_t;
  typedef logic [SymbolWidth-1:0] symbol_t;

  typedef enum logic [2:0] {Idle, Counts, First, Spread, States, Last} state_e;
  state_e state_q;
  (* ram_style = "distributed" *) logic [CountWidth:0] counts_q[1 << SymbolWidth];
  symbol_t symbols_q[Size];
  logic [SymbolWidth+MostLog+13:0] table_q[Size];

  // ---- symbols to places ------------------------------------------------------------------------

  symbol_t symbol_q, next_q, last_symbol_q;  // next: the symbol behind, whose count is read
  place_t place_q, ahead_q, last, last_q, before_last_q, step_q;
  logic ends_q;  // place_q is the last one; ahead_q is the one behind place_q in Spread
  place_t high_q;  // the rarest stand behind it; counted from the end of a table of any size
  logic fits_q;  // place_q is not among them
  logic [CountWidth-1:0] left_q;  // of a symbol's states
  logic [CountWidth:0] next;
  logic put, take;
  logic write1_q, write2_q, write3_q;  // a place's state is on its way
  logic low_q;  // a rare symbol has come, whose place is known:
  place_t low_place_q;
  symbol_t low_symbol_q;
  assign put        = state_q == Spread && left_q != '0 && fits_q;
  assign take       = left_q == '0 || (left_q == CountWidth'(1) && fits_q);  // the next symbol
  assign next       = counts_q[next_q];
  assign last       = place_t'((CountWidth'(1) << log_i) - 1'b1);
  assign busy_o     = state_q != Idle;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Counts: begin
        if (count_valid_i) symbol_q <= symbol_q + 1'b1;
        if (count_valid_i && less_i) high_q <= high_q - 1'b1;
        if (end_i) begin
          state_q       <= First;
          last_symbol_q <= symbol_q - 1'b1;
          symbol_q      <= '0;
          last_q        <= last;
          log_o         <= log_i;
          step_q <= place_t'((CountWidth'(1) << log_i >> 1) + (CountWidth'(1) << log_i >> 3) +
                             CountWidth'(3));
        end
      end
      First: begin
        high_q  <= high_q & last_q;
        place_q <= '0;
        ahead_q <= step_q;
        fits_q  <= 1'b1;
        ends_q  <= 1'b0;
        next_q  <= next_q + 1'b1;
        before_last_q <= last_q - 1'b1;
        left_q  <= next[CountWidth] ? '0 : next[CountWidth-1:0];
        state_q <= Spread;
      end
      Spread: begin
        if (left_q != '0) begin
          place_q <= ahead_q;
          fits_q  <= ahead_q <= high_q;
          ahead_q <= (ahead_q + step_q) & last_q;
          if (fits_q) left_q <= left_q - 1'b1;
        end
        if (take) begin
          symbol_q <= symbol_q + 1'b1;
          next_q   <= next_q + 1'b1;
          left_q   <= next[CountWidth] ? '0 : next[CountWidth-1:0];
          if (symbol_q == last_symbol_q) begin
            state_q <= States;
            place_q <= '0;
          end
        end
      end
      States: begin
        place_q <= place_q + 1'b1;
        ends_q  <= place_q == before_last_q;
        if (ends_q) state_q <= Last;
      end
      Last: if (!write1_q && !write2_q) state_q <= Idle;
      default: ;
    endcase
    if (begin_i) begin
      state_q  <= Counts;
      symbol_q <= '0;
      next_q   <= '0;
      high_q   <= '1;
    end
    if (rle_i) begin
      state_q <= Last;
      log_o   <= '0;
      last_q  <= '0;
    end
    if (!rst_ni) state_q <= Idle;
  end
  always_ff @(posedge clk_i) begin
    low_q        <= state_q == Counts && count_valid_i && less_i;
    low_place_q  <= high_q & last;
    low_symbol_q <= symbol_q;
    if (low_q || put) symbols_q[low_q ? low_place_q : place_q] <= low_q ? low_symbol_q : symbol_q;
  end

  // ---- places to states -------------------------------------------------------------------------

  // A place's symbol; how often it has come; how many bits that leaves; the state.
  symbol_t symbol1_q, symbol2_q, symbol3_q;
  place_t place1_q, place2_q, place3_q;
  logic [CountWidth-1:0] count1, count2_q, count3_q;
  logic [3:0] high2, n3_q;
  logic [4:0] extra3_q;
  assign count1 = CountWidth'(counts_q[symbol1_q]);
  assign made_o = symbol2_q;
  always_comb begin
    high2 = '0;
    for (int i = 0; i <= MostLog; i++) if (count2_q[i]) high2 = 4'(i);
  end
  always_ff @(posedge clk_i) begin
    symbol1_q <= symbols_q[place_q];
    place1_q  <= place_q;
    write1_q  <= state_q == States;

    symbol2_q <= rle_i ? symbol_i : symbol1_q;
    place2_q  <= rle_i ? '0 : place1_q;
    count2_q  <= rle_i ? CountWidth'(1) : count1;
    write2_q  <= rle_i || write1_q;

    symbol3_q <= symbol2_q;
    place3_q  <= place2_q;
    count3_q  <= count2_q;
    n3_q      <= log_o - high2;
    extra3_q  <= extra_i;
    write3_q  <= write2_q;
  end
  always_ff @(posedge clk_i) begin
    if (state_q == Counts) begin
      if (count_valid_i) counts_q[symbol_q] <= {less_i, count_i};
    end else if (write1_q) begin
      counts_q[symbol1_q] <= {1'b0, count1 + 1'b1};
    end
  end
  always_ff @(posedge clk_i) begin
    if (write3_q) begin
      table_q[place3_q] <= {symbol3_q, extra3_q, extra3_q + 5'(n3_q), n3_q,
                            place_t'(count3_q << n3_q) & last_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (read_i) {symbol_o, extra_o, all_o, n_o, state_o} <= table_q[state_i];
  end

endmodule
