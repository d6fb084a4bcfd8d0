// SPDX-License-Identifier: Apache-2.0
// One FSE table of an encoder, and its state. The table is made of how often each code comes, and
// described (RFC 8878, 4.1.1); or it is that of a predefined distribution. It takes about 850
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
  output logic [Log-1:0] state_o  // after it, in as many bits as the table's size has
);

  localparam int unsigned Codes = Kind == Literal ? 36 : Kind == Match ? 53 : 29;
  localparam int unsigned Shift = 16;  // of the reciprocal
  function automatic logic [6:0] step_of(int log);
    return 7'((1 << log >> 1) + (1 << log >> 3) + 3);
  endfunction

  typedef enum logic [3:0] {
    Idle, Load, Normalize, Sum, Correct, Trim, Second, Describe, Flush, Low, Spread, Place
  } state_e;
  state_e state_q;
  logic own_q;
  logic [1:0] phase_q;                      // of the clocks that a code takes
  logic [6:0] at_q;                         // code, and clocks beyond the last one
  logic [7:0] size_q;                       // states
  logic [6:0] places_q, step_q;             // the last state; from one of a code to its next one
  logic [2:0] log_q;
  assign busy_o = state_q != Idle;

  // ---- numbers, and what each has in a table of 2^Log -------------------------------------------

  typedef struct packed {
    logic low;        // less than once, at the end of the table
    logic [7:0] n;
  } share_t;
  (* ram_style = "distributed" *) logic [13:0] numbers_q[64];
  (* ram_style = "distributed" *) share_t shares_q[64];
  logic [6:0] load1_q, load2_q;
  logic [13:0] most_number_q;
  logic [5:0] most_q;
  logic [6:0] distinct_q;
  logic [15:0] quotient_q;                  // 2^(Log + Shift) / n, for n of 256 and more
  logic [14:0] remainder_q;
  logic [15:0] difference;
  logic [5:0] divide_q;
  logic [29:0] product2_q;
  logic [13:0] number1_q;
  logic zero2_q, zero3_q;
  logic [6:0] at1_q, at2_q, at3_q;
  logic [7:0] rounded3_q;
  share_t share_q;                          // of the code a clock ago
  share_t predefined3_q, write, write_q;    // a share is written a clock behind its decision
  logic writes, writes_q;
  logic [5:0] write_at, write_at_q;
  logic signed [9:0] left_q;                // of the table
  logic [7:0] corrected_q;                  // what the commonest code would have with it
  logic far_q, one_q;                       // that is too few; there is one code
  logic [4:0] least_q;
  logic trims;
  int predefined;
  assign difference = {remainder_q, divide_q == 6'd0} - {2'b0, n_i};
  assign trims      = share_q.n >= 8'(least_q) && left_q < 0 && at_q < 7'(Codes);
  assign predefined = times(Kind, int'(at2_q));
  always_comb begin
    writes   = 1'b0;
    write_at = at3_q[5:0];
    write    = '0;
    unique case (state_q)
      Normalize: begin
        writes  = !at3_q[6];
        write.n = zero3_q ? 8'd0 : rounded3_q == '0 ? 8'd1 : rounded3_q;
        if (!own_q) write = predefined3_q;
      end
      Correct: begin
        writes   = own_q && phase_q[0] && (!far_q || one_q);
        write_at = most_q;
        write.n  = one_q ? size_q - 8'd1 : corrected_q;
      end
      Trim: begin
        writes   = trims && phase_q[0];
        write_at = at_q[5:0];
        write.n  = share_q.n - 8'd1;
      end
      Second: begin  // one code alone would have all states: another one gets one of them
        writes   = own_q && one_q && !phase_q[0];
        write_at = 6'(most_q == '0);
        write.n  = 8'd1;
      end
      default: ;
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (writes_q) shares_q[write_at_q] <= write_q;
    if (!load2_q[6]) numbers_q[load2_q[5:0]] <= number_i;
    writes_q      <= writes;
    write_at_q    <= write_at;
    write_q       <= write;
    load1_q       <= count_o ? {1'b0, code_o} : 7'h40;
    load2_q       <= load1_q;
    share_q       <= shares_q[state_q == Sum || state_q == Correct ? most_q : at_q[5:0]];
    at1_q         <= at_q;
    at2_q         <= at1_q;
    at3_q         <= at2_q;
    number1_q     <= numbers_q[at_q[5:0]];
    product2_q    <= 30'(number1_q) * 30'(quotient_q);
    zero2_q       <= number1_q == '0;
    rounded3_q    <= 8'((product2_q + 30'(1 << (Shift - 1))) >> Shift);
    zero3_q       <= zero2_q;
    predefined3_q <= '{predefined < 0, predefined < 0 ? 8'd1 : 8'(predefined)};
    corrected_q   <= share_q.n + left_q[7:0];
    far_q         <= left_q < -$signed(10'(share_q.n >> 2));
    one_q         <= distinct_q == 7'd1;
    if (divide_q <= 6'(Log + Shift)) begin
      divide_q    <= divide_q + 6'd1;
      quotient_q  <= {quotient_q[14:0], !difference[15]};
      remainder_q <= difference[15] ? {remainder_q[13:0], divide_q == '0} : difference[14:0];
    end
    if (state_q == Load && !load2_q[6] && number_i != '0) begin
      distinct_q <= distinct_q + 7'd1;
      if (number_i > most_number_q) begin
        most_number_q <= number_i;
        most_q        <= load2_q[5:0];
      end
    end
    if (state_q == Idle) begin
      distinct_q    <= '0;
      most_number_q <= '0;
      divide_q      <= '0;
      remainder_q   <= '0;
      quotient_q    <= '0;
    end
    if (!rst_ni) begin
      load1_q  <= 7'h40;
      load2_q  <= 7'h40;
      writes_q <= 1'b0;
    end
  end
  assign count_o = state_q == Load && !at_q[6];
  assign code_o  = at_q[5:0];

  // ---- the description --------------------------------------------------------------------------

  // A code takes three clocks: its share is read, what can be known of its value, and its bits.
  logic piece_valid_q, zeros_q;
  logic [1:0] run_q;                        // of zeros
  logic [7:0] rest_q, next_rest_q;          // of the states, and one more
  logic [8:0] most_value_q, value_q, value;
  logic [3:0] n_value, piece_n_q;
  logic [2:0] rest_high_q;
  logic [10:0] piece_q;
  logic long_value, described;
  logic row_valid;
  logic [63:0] row;
  logic [19:0] n_bits;
  always_comb begin
    long_value = value_q >> rest_high_q != '0;
    value      = value_q + (long_value ? most_value_q : '0);
    n_value    = 4'(rest_high_q) + 4'(long_value || value_q >= most_value_q);
  end
  assign described = state_q == Describe && phase_q == 2'd2;
  always_ff @(posedge clk_i) begin
    rest_high_q   <= 3'(highest(17'(rest_q)));
    most_value_q  <= 9'((9'd2 << rest_high_q) - 9'd1 - 9'(rest_q));
    value_q       <= 9'(share_q.n) + 9'd1;
    next_rest_q   <= rest_q - share_q.n;
    piece_valid_q <= 1'b0;
    if (described) begin
      if (zeros_q && share_q.n == '0) begin
        run_q         <= run_q == 2'd2 ? 2'd0 : run_q + 2'd1;
        piece_valid_q <= run_q == 2'd2;
        piece_n_q     <= 4'd2;
        piece_q       <= 11'd3;
      end else begin
        run_q         <= '0;
        zeros_q       <= share_q.n == '0;
        rest_q        <= next_rest_q;
        piece_valid_q <= 1'b1;
        piece_n_q     <= n_value + (zeros_q ? 4'd2 : 4'd0);
        piece_q       <= zeros_q ? {value, run_q} : 11'(value);
      end
    end
    if (state_q == Second) begin
      rest_q        <= size_q + 8'd1;
      zeros_q       <= 1'b0;
      run_q         <= '0;
      piece_n_q     <= 4'd4;
      piece_q       <= 11'(Log - 5);
      piece_valid_q <= own_q && phase_q[0];
    end
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
    logic [2:0] fewer;  // one less
    logic [8:0] limit;
    logic [6:0] base;
    logic [6:0] begins;
  } entry_t;
  (* ram_style = "distributed" *) entry_t entries_q[64];
  (* ram_style = "distributed" *) logic [5:0] symbols_q[128];
  (* ram_style = "distributed" *) logic [6:0] next_q[64];
  (* ram_style = "distributed" *) logic [6:0] states_q[128];
  logic [6:0] place_q, high_q, earlier_q, next_place;
  logic fits_q;                             // place_q is not that of a code which is rare
  logic [7:0] of_code_q;                    // states that the code is still to get
  logic [5:0] code_q, placed_q;
  logic puts, ends, low, takes, placing_q;
  logic lows_q;                             // share_q is one of those that Low reads
  assign next_place = (place_q + step_q) & places_q;
  assign puts       = state_q == Spread && of_code_q != '0 && fits_q;
  assign ends       = of_code_q == '0 || (of_code_q == 8'd1 && fits_q);
  assign low        = state_q == Low && lows_q && share_q.low;
  assign takes      = state_q == Spread && ends && !at_q[6] && phase_q[0];  // the next code
  always_ff @(posedge clk_i) begin
    lows_q <= state_q == Low;
    if (low) high_q <= high_q - 7'd1;
    if (state_q == Low) begin
      place_q   <= '0;
      fits_q    <= 1'b1;
      of_code_q <= '0;
      earlier_q <= '0;
    end
    if (state_q == Spread && of_code_q != '0) begin
      place_q <= next_place;
      fits_q  <= next_place <= high_q;
      if (fits_q) of_code_q <= of_code_q - 8'd1;
    end
    if (takes) begin
      code_q    <= at_q[5:0];
      of_code_q <= share_q.low ? 8'd0 : share_q.n;
      earlier_q <= earlier_q + 7'(share_q.n);
    end
    if (state_q == Second) high_q <= places_q;
    placing_q <= state_q == Place && rst_ni;
    placed_q  <= symbols_q[at_q];
    if (low || puts) begin
      symbols_q[state_q == Low ? high_q : place_q] <= state_q == Low ? at1_q[5:0] : code_q;
    end
  end

  // What a code's entry says, in three clocks.
  logic taken1_q, taken2_q;
  logic [5:0] taken_code1_q, taken_code2_q;
  logic [7:0] taken_n1_q, taken_n2_q;
  logic [6:0] earlier1_q, earlier2_q;
  logic [2:0] less_high2_q, most_bits;
  logic one2_q;
  assign most_bits = log_q - (one2_q ? 3'd0 : less_high2_q);
  always_ff @(posedge clk_i) begin
    taken1_q      <= takes && rst_ni;
    taken_code1_q <= at_q[5:0];
    taken_n1_q    <= share_q.n;
    earlier1_q    <= earlier_q;

    taken2_q      <= taken1_q && rst_ni;
    taken_code2_q <= taken_code1_q;
    taken_n2_q    <= taken_n1_q;
    earlier2_q    <= earlier1_q;
    less_high2_q  <= 3'(highest(17'(taken_n1_q - 8'd1)));
    one2_q        <= taken_n1_q <= 8'd1;

    if (taken2_q) begin
      entries_q[taken_code2_q] <= '{most_bits, most_bits - 3'd1, 9'(taken_n2_q) << most_bits,
                                    earlier2_q - 7'(taken_n2_q), earlier2_q};
    end
    if (taken2_q || placing_q) begin
      next_q[taken2_q ? taken_code2_q : placed_q] <= taken2_q ? earlier2_q :
                                                     next_q[placed_q] + 7'd1;
    end
    if (placing_q) states_q[next_q[placed_q]] <= at1_q | size_q[6:0];  // with the one before it
  end

  // ---- what comes next --------------------------------------------------------------------------

  always_ff @(posedge clk_i) begin
    at_q    <= at_q + 7'd1;
    phase_q <= 2'd0;
    unique case (state_q)
      Load: begin
        if (at_q == 7'd67) begin
          at_q    <= '0;
          state_q <= Normalize;
          left_q  <= 10'(size_q);
        end
      end
      Normalize: begin
        if (writes_q) left_q <= left_q - 10'(write_q.n);
        if (at_q == 7'd67) state_q <= Sum;
      end
      Sum: state_q <= Correct;  // the commonest code's share is read, then what it would be
      Correct: begin
        at_q       <= '0;
        least_q    <= 5'd16;
        phase_q[0] <= !phase_q[0];
        if (phase_q[0]) state_q <= !own_q || !far_q || one_q ? Second : Trim;
      end
      Trim: begin
        phase_q[0] <= !phase_q[0];
        if (!phase_q[0]) at_q <= at_q;
        if (trims && phase_q[0]) left_q <= left_q + 10'sd1;
        if (phase_q[0] && at_q == 7'd63) begin
          at_q    <= '0;
          state_q <= left_q == '0 ? Second : Trim;
          if (least_q > 5'd2) least_q <= least_q >> 1;
        end
      end
      Second: begin
        at_q       <= '0;
        phase_q[0] <= !phase_q[0];
        if (phase_q[0]) state_q <= own_q ? Describe : Low;
      end
      Describe: begin
        phase_q <= described ? 2'd0 : phase_q + 2'd1;
        if (!described) at_q <= at_q;
        if (described && next_rest_q == 8'd1) begin
          at_q    <= '0;
          state_q <= Flush;
        end
      end
      Flush:
      if (at_q == 7'd6) begin
        at_q    <= '0;
        state_q <= Low;
      end
      Low:
      if (at_q == 7'd64) begin
        at_q    <= '0;
        state_q <= Spread;
      end
      Spread: begin
        phase_q[0] <= !takes;
        if (!takes) at_q <= at_q;
        if (at_q[6] && ends) begin
          at_q    <= '0;
          state_q <= Place;
        end
      end
      Place: if (at_q == places_q) state_q <= Idle;
      default: begin
        at_q <= '0;
        if (start_i) begin
          state_q  <= Load;
          own_q    <= own_i;
          log_q    <= own_i ? 3'(Log) : 3'(LogPredefined);
          size_q   <= own_i ? 8'(1 << Log) : 8'(1 << LogPredefined);
          places_q <= own_i ? 7'((1 << Log) - 1) : 7'((1 << LogPredefined) - 1);
          step_q   <= own_i ? step_of(Log) : step_of(LogPredefined);
        end
      end
    endcase
    if (!rst_ni) state_q <= Idle;
  end

  // ---- codes to bits ----------------------------------------------------------------------------

  // Both numbers of bits are tried at once: at the limit and above it `most`, else one less.
  entry_t entry_q;
  logic valid_q, first_q, less;
  logic [7:0] state;
  logic [6:0] state_low_q, place, place_most, place_less;
  logic [2:0] n;
  assign state_o    = state_low_q[Log-1:0];
  assign state      = {size_q[7], state_low_q};
  assign less       = {1'b0, state} < entry_q.limit;
  assign n          = less ? entry_q.fewer : entry_q.most;
  assign place_most = 7'(state >> entry_q.most) + entry_q.base;
  assign place_less = 7'(state >> entry_q.fewer) + entry_q.base;
  assign place      = first_q ? entry_q.begins : less ? place_less : place_most;
  always_ff @(posedge clk_i) begin
    entry_q <= entries_q[s_code_i];
    valid_q <= s_valid_i;
    first_q <= s_first_i;
    if (valid_q) begin
      state_low_q <= states_q[place];
      m_n_o       <= first_q ? '0 : n;
      m_bits_o    <= first_q ? '0 : state_low_q & ~(7'h7f << n);
    end
  end

endmodule
