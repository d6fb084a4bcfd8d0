// SPDX-License-Identifier: Apache-2.0
// One FSE table of an encoder, and its state. The table is made of how often each code comes, and
// described (RFC 8878, 4.1.1); or it is that of a predefined distribution. It takes about 530
// clocks. Then a code in gives the bits of its step two clocks later, a code a clock; the first
// code chooses the state, and gives no bits.
module wpr_zstd_enc_table
  import wpr_zstd_enc_pkg::*;
#(
  parameter int Kind = Literal,
  parameter int Log  = 7,        // accuracy of own tables, 6 or 7
  parameter int LogPredefined = 6
) (
  input  logic        clk_i,
  input  logic        rst_ni,   // synchronous
  input  logic        start_i,
  input  logic        own_i,    // made of the numbers
  input  logic        bank_i,   // for the description
  input  logic [13:0] n_i,      // of all codes; 256 and more where own_i
  output logic        busy_o,

  output logic        count_o,  // wpr_zstd_enc_tally
  output logic [ 5:0] code_o,
  input  logic [13:0] number_i,

  output logic [ 6:0] size_o,   // bytes of the description, with own_i
  input  logic        bank_read_i,
  input  logic [ 2:0] row_i,
  output logic [63:0] row_o,    // of it, two clocks later

  input  logic        s_valid_i,
  input  logic        s_first_i,
  input  logic [ 5:0] s_code_i,
  output logic [ 2:0] m_n_o,    // bits, of the code two clocks ago
  output logic [ 6:0] m_bits_o, // those beyond are 0
  output logic [ 6:0] state_o   // after it
);

  localparam int unsigned Codes = Kind == Literal ? 36 : Kind == Match ? 53 : 29;
  localparam int unsigned Shift = 16;  // of the reciprocal

  typedef enum logic [3:0] {
    Idle, Load, Normalize, Correct, Trim, Second, Describe, Flush, Low, Spread, Place
  } state_e;
  state_e state_q;
  logic own_q;
  logic [6:0] at_q;                         // code, and clocks beyond the last one
  logic [7:0] size;                         // states
  logic [2:0] log;
  assign log    = own_q ? 3'(Log) : 3'(LogPredefined);
  assign size   = 8'd1 << log;
  assign busy_o = state_q != Idle;

  // ---- numbers, and what each has in a table of 2^Log -------------------------------------------

  typedef struct packed {
    logic low;        // less than once, at the end of the table
    logic [7:0] n;
  } share_t;
  (* ram_style = "distributed" *) logic [13:0] numbers_q[64];
  (* ram_style = "distributed" *) share_t shares_q[64];
  logic [6:0] load_q;
  logic [13:0] most_number_q;
  logic [5:0] most_q;
  logic [6:0] distinct_q;
  logic [15:0] quotient_q;                  // 2^(Log + Shift) / n, for n of 256 and more
  logic [14:0] remainder_q;
  logic [15:0] difference;
  logic [5:0] divide_q;
  logic [29:0] product2_q;
  logic [13:0] number1_q;
  logic zero2_q;
  logic [6:0] at1_q, at2_q;
  logic [7:0] rounded;
  share_t share_at, write;
  logic writes;
  logic [5:0] write_at;
  logic signed [9:0] left_q;                // of the table
  logic [4:0] least_q;
  logic trims;
  int predefined;
  assign difference = {remainder_q, divide_q == 6'd0} - {2'b0, n_i};
  assign rounded    = 8'((product2_q + 30'(1 << (Shift - 1))) >> Shift);
  assign share_at   = shares_q[at_q[5:0]];
  assign trims      = share_at.n >= 8'(least_q) && left_q < 0 && at_q < 7'(Codes);
  assign predefined = times(Kind, int'(at2_q));
  always_comb begin
    writes   = 1'b0;
    write_at = at2_q[5:0];
    write    = '0;
    unique case (state_q)
      Normalize: begin
        writes  = !at2_q[6];
        write.n = zero2_q ? 8'd0 : rounded == '0 ? 8'd1 : rounded;
        if (!own_q) write = '{predefined < 0, predefined < 0 ? 8'd1 : 8'(predefined)};
      end
      Correct: begin
        writes   = own_q;
        write_at = most_q;
        write.n  = distinct_q == 7'd1 ? size - 8'd1 : 8'(10'(shares_q[most_q].n) + left_q);
        if (left_q < -$signed(10'(shares_q[most_q].n >> 2)) && distinct_q != 7'd1) writes = 1'b0;
      end
      Trim: begin
        writes   = trims;
        write_at = at_q[5:0];
        write.n  = share_at.n - 8'd1;
      end
      Second: begin  // one code alone would have all states: another one gets one of them
        writes   = own_q && distinct_q == 7'd1;
        write_at = 6'(most_q == '0);
        write.n  = 8'd1;
      end
      default: ;
    endcase
  end

  // ---- the description --------------------------------------------------------------------------

  logic piece_valid_q, zeros_q;
  logic [1:0] run_q;                        // of zeros
  logic [7:0] rest_q;                       // of the states, and one more
  logic [8:0] most_value, value;
  logic [3:0] n_value, piece_n_q;
  logic [2:0] rest_high;
  logic [10:0] piece_q;
  logic row_valid;
  logic [63:0] row;
  logic [19:0] n_bits;
  always_comb begin
    rest_high  = 3'(highest(17'(rest_q)));
    most_value = 9'((9'd2 << rest_high) - 9'd1 - 9'(rest_q));
    value      = 9'(share_at.n) + 9'd1;
    if (value >= 9'd1 << rest_high) value += most_value;
    n_value = 4'(rest_high) + 4'(value >= most_value);
  end
  wpr_zstd_enc_bits #(.Most(11)) pack (
    .clk_i,
    .start_i,
    .s_valid_i(piece_valid_q),
    .s_n_i    (piece_n_q),
    .s_bits_i (piece_q),
    .flush_i  (state_q == Flush && at_q == 7'd4),
    .m_valid_o(row_valid),
    .m_row_o  (row),
    .n_o      (n_bits)
  );
  assign size_o = 7'((n_bits + 20'd7) >> 3);
  (* ram_style = "distributed" *) logic [63:0] rows_q[16];
  logic [2:0] write_row_q;
  logic [3:0] read_row_q;
  always_ff @(posedge clk_i) begin
    read_row_q <= {bank_read_i, row_i};
    row_o      <= rows_q[read_row_q];
    if (row_valid) begin
      rows_q[{bank_i, write_row_q}] <= row;
      write_row_q <= write_row_q + 3'd1;
    end
    if (start_i) write_row_q <= '0;
  end

  // ---- codes spread over the states, and the states of each code side by side -------------------

  typedef struct packed {
    logic [2:0] most;
    logic [8:0] limit;
    logic [6:0] base;
    logic [6:0] begins;
  } entry_t;
  (* ram_style = "distributed" *) entry_t entries_q[64];
  (* ram_style = "distributed" *) logic [5:0] symbols_q[128];
  (* ram_style = "distributed" *) logic [6:0] next_q[64];
  (* ram_style = "distributed" *) logic [6:0] states_q[128];
  logic [6:0] place_q, high_q, earlier_q, next_place;
  logic [7:0] of_code_q;                    // states that the code is still to get
  logic [5:0] code_q, placed_q;
  logic puts, placing_q;
  logic [2:0] most_bits;
  entry_t entry;
  assign next_place = (place_q + 7'(size >> 1) + 7'(size >> 3) + 7'd3) & 7'(size - 8'd1);
  assign puts       = state_q == Spread && of_code_q != '0 && place_q <= high_q;
  always_comb begin
    most_bits = log;
    if (share_at.n > 8'd1) most_bits = log - 3'(highest(17'(share_at.n - 8'd1)));
    entry = '{most_bits, 9'(share_at.n) << most_bits, earlier_q - 7'(share_at.n), earlier_q};
  end
  logic takes;                              // the next code
  assign takes = state_q == Spread && (of_code_q == '0 || (of_code_q == 8'd1 && puts)) && !at_q[6];
  always_ff @(posedge clk_i) begin
    if (state_q == Low && share_at.low) symbols_q[high_q] <= at_q[5:0];
    else if (puts) symbols_q[place_q] <= code_q;
    if (takes) entries_q[at_q[5:0]] <= entry;
    if (takes) next_q[at_q[5:0]] <= earlier_q;
    else if (placing_q) next_q[placed_q] <= next_q[placed_q] + 7'd1;
    if (placing_q) states_q[next_q[placed_q]] <= 7'(at_q - 7'd1);
  end

  always_ff @(posedge clk_i) begin
    if (writes) shares_q[write_at] <= write;
    if (!load_q[6]) numbers_q[load_q[5:0]] <= number_i;
    load_q        <= count_o ? {1'b0, code_o} : 7'h40;
    at1_q         <= at_q;
    at2_q         <= at1_q;
    number1_q     <= numbers_q[at_q[5:0]];
    product2_q    <= 30'(number1_q) * 30'(quotient_q);
    zero2_q       <= number1_q == '0;
    piece_valid_q <= 1'b0;
    placing_q     <= 1'b0;
    at_q          <= at_q + 7'd1;
    if (divide_q <= 6'(Log + Shift)) begin
      divide_q    <= divide_q + 6'd1;
      quotient_q  <= {quotient_q[14:0], !difference[15]};
      remainder_q <= difference[15] ? {remainder_q[13:0], divide_q == '0} : difference[14:0];
    end
    unique case (state_q)
      Load: begin
        if (!load_q[6] && number_i != '0) begin
          distinct_q <= distinct_q + 7'd1;
          if (number_i > most_number_q) begin
            most_number_q <= number_i;
            most_q        <= load_q[5:0];
          end
        end
        if (at_q == 7'd66) begin
          at_q    <= '0;
          state_q <= Normalize;
          left_q  <= 10'(size);
        end
      end
      Normalize: begin
        if (!at2_q[6]) left_q <= left_q - 10'(write.n);
        if (at_q == 7'd66) state_q <= Correct;
      end
      Correct: begin
        at_q    <= '0;
        least_q <= 5'd16;
        state_q <= writes || !own_q ? Second : Trim;
      end
      Trim: begin
        if (trims) left_q <= left_q + 10'sd1;
        if (at_q == 7'd63) begin
          at_q <= '0;
          if (left_q == '0) state_q <= Second;
          if (least_q > 5'd2) least_q <= least_q >> 1;
        end
      end
      Second: begin
        at_q    <= '0;
        rest_q  <= size + 8'd1;
        zeros_q <= 1'b0;
        run_q   <= '0;
        high_q  <= 7'(size - 8'd1);
        piece_n_q     <= 4'd4;
        piece_q       <= 11'(Log - 5);
        piece_valid_q <= own_q;
        state_q       <= own_q ? Describe : Low;
      end
      Describe: begin
        if (zeros_q && share_at.n == '0) begin
          run_q <= run_q == 2'd2 ? 2'd0 : run_q + 2'd1;
          piece_valid_q <= run_q == 2'd2;
          piece_n_q     <= 4'd2;
          piece_q       <= 11'd3;
        end else begin
          run_q         <= '0;
          zeros_q       <= share_at.n == '0;
          rest_q        <= rest_q - share_at.n;
          piece_valid_q <= 1'b1;
          piece_n_q     <= n_value + (zeros_q ? 4'd2 : 4'd0);
          piece_q       <= zeros_q ? {value, run_q} : 11'(value);
        end
        if (rest_q == share_at.n + 8'd1) begin
          at_q    <= '0;
          state_q <= Flush;
        end
      end
      Flush:
      if (at_q == 7'd6) begin
        at_q    <= '0;
        state_q <= Low;
      end
      Low: begin
        if (share_at.low) high_q <= high_q - 7'd1;
        if (at_q == 7'd63) state_q <= Spread;
        place_q   <= '0;
        of_code_q <= '0;
        earlier_q <= '0;
        if (at_q == 7'd63) at_q <= '0;
      end
      Spread: begin
        if (!takes) at_q <= at_q;
        if (of_code_q != '0 && (puts || place_q > high_q)) place_q <= next_place;
        if (puts) of_code_q <= of_code_q - 8'd1;
        if (takes) begin
          code_q    <= at_q[5:0];
          of_code_q <= share_at.low ? 8'd0 : share_at.n;
          earlier_q <= earlier_q + 7'(share_at.n);
        end
        if (at_q[6] && (of_code_q == '0 || (of_code_q == 8'd1 && puts))) begin
          at_q    <= '0;
          state_q <= Place;
        end
      end
      Place: begin
        placing_q <= 1'b1;
        placed_q  <= symbols_q[at_q];
        if (8'(at_q) == size - 8'd1) state_q <= Idle;
      end
      default: begin
        at_q          <= '0;
        distinct_q    <= '0;
        most_number_q <= '0;
        divide_q      <= '0;
        remainder_q   <= '0;
        quotient_q    <= '0;
        if (start_i) begin
          state_q <= Load;
          own_q   <= own_i;
        end
      end
    endcase
    if (!rst_ni) begin
      state_q   <= Idle;
      placing_q <= 1'b0;
      load_q    <= 7'h40;
    end
  end
  assign count_o = state_q == Load && !at_q[6];
  assign code_o  = at_q[5:0];

  // ---- codes to bits ----------------------------------------------------------------------------

  entry_t entry_q;
  logic valid_q, first_q;
  logic [7:0] state;
  logic [6:0] place;
  logic [2:0] n;
  assign state = size | 8'(state_o);
  assign n     = entry_q.most - 3'({1'b0, state} < entry_q.limit);
  assign place = first_q ? entry_q.begins : 7'(state >> n) + entry_q.base;
  always_ff @(posedge clk_i) begin
    entry_q <= entries_q[s_code_i];
    valid_q <= s_valid_i;
    first_q <= s_first_i;
    if (valid_q) begin
      state_o  <= states_q[place];
      m_n_o    <= first_q ? '0 : n;
      m_bits_o <= first_q ? '0 : state_o & ~(7'h7f << n);
    end
  end

endmodule
