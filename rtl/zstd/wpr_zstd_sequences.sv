// SPDX-License-Identifier: Apache-2.0
// The sequences section of a block in the zstd decoder: its header and tables, then a sequence every
// two clocks: literals, and a match with its offset, repeat offsets resolved.
//
// Of the two clocks the first adds how many bits each part has, behind the tables' memories; the
// second takes them and makes the next states, before these memories. Everything else lies behind.
module wpr_zstd_sequences
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogWindow = 17  // of up to so many bits an offset may be
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous; a frame begins: no table and no offset is known from before

  input  logic     start_i,
  input  address_t begins_i,  // the section's first byte
  input  address_t ends_i,    // and the one behind its last
  input  address_t have_i,    // bytes of the packet that have come
  input  logic     ended_i,   // and all of them
  output logic     busy_o,    // until all sequences have been taken
  output logic     bad_o,     // the section is not valid; its sequences end

  output logic               valid_o,
  input  logic               take_i,
  output logic [       16:0] literals_o,
  output logic [       17:0] match_o,    // 3 or more
  output logic [LogWindow:0] offset_o,   // 0: not valid

  output logic [1:0]       request_o,
  output row_t [1:0]       row_o,
  input  logic [1:0]       grant_i,
  input  logic [1:0]       response_i,
  input  logic [63:0]      data_i
);

  typedef enum logic [3:0] {
    Idle, Number, Empty, Modes, Table, Make, Default, Describe, Bits, Tables, Open, States, Add,
    Take, Taken, Done
  } state_e;
  state_e state_q;

  // ---- header and tables ------------------------------------------------------------------------

  logic ready, take, counts_take;
  logic [39:0] bits;
  address_t at, ends_q;
  logic [2:0] bit_place;
  logic [5:0] n, counts_n;
  wpr_zstd_forward forward (
    .clk_i,
    .rst_ni,
    .have_i    (have_i[AddressWidth-1:3]),
    .ended_i,
    .seek_i    (start_i),
    .byte_i    (begins_i),
    .ready_o   (ready),
    .bits_o    (bits),
    .at_o      (at),
    .bit_o     (bit_place),
    .take_i    (take),
    .n_i       (n),
    .request_o (request_o[1]),
    .row_o     (row_o[1]),
    .grant_i   (grant_i[1]),
    .response_i(response_i[1]),
    .data_i
  );

  logic [1:0] table_q;  // literal lengths, offsets, match lengths; 3: all are known
  logic [2:0] known_q, predefined_q;
  logic table_bad_q;  // a clock ago, in Table
  logic [5:0] modes_q;  // the next table's highest
  mode_e mode;
  logic [5:0] most_symbol, default_q, default_size;
  logic [3:0] most_log, default_log;
  logic signed [3:0] default_count, default_count_q;  // _q: that of the code before
  assign mode = mode_e'(modes_q[5:4]);
  always_comb begin
    most_symbol   = 6'd35;
    most_log      = 4'd9;
    default_size  = 6'd36;
    default_log   = 4'd6;
    default_count = literal_default(default_q);
    if (table_q == 2'd1) begin
      most_symbol   = 6'd31;
      most_log      = 4'd8;
      default_size  = 6'd29;
      default_log   = 4'd5;
      default_count = offset_default(default_q);
    end
    if (table_q == 2'd2) begin
      most_symbol   = 6'd52;
      default_size  = 6'd53;
      default_count = match_default(default_q);
    end
  end

  logic [5:0] most_symbol_q;
  logic [3:0] most_log_q;
  always_ff @(posedge clk_i) begin
    {most_symbol_q, most_log_q} <= {most_symbol, most_log};
    default_count_q             <= default_count;
  end

  logic counts_start, counts_busy, counts_bad, counts_valid, counts_less;
  logic [3:0] counts_log;
  logic [9:0] counts_count;
  wpr_zstd_counts counts (
    .clk_i,
    .rst_ni,
    .start_i      (counts_start),
    .most_log_i   (most_log_q),
    .most_symbol_i(most_symbol_q),
    .busy_o       (counts_busy),
    .bad_o        (counts_bad),
    .log_o        (counts_log),
    .count_valid_o(counts_valid),
    .count_o      (counts_count),
    .less_o       (counts_less),
    .ready_i      (ready && state_q == Describe),
    .bits_i       (bits[10:0]),
    .bit_i        (bit_place),
    .take_o       (counts_take),
    .n_o          (counts_n)
  );

  logic table_begin, table_end, table_rle, count_valid, count_less;
  logic described_q;  // Make: a table that is described, or else a predefined one
  logic rle_q;  // Table waits for the only symbol of one: known a clock late
  logic [3:0] count_log;
  logic [9:0] count;
  assign counts_start = state_q == Make && described_q;
  assign table_begin  = state_q == Make;
  assign table_rle    = rle_q && ready;
  assign table_end    = (state_q == Describe && !counts_busy && !counts_bad) ||
                        (state_q == Default && default_q > default_size);
  assign count_valid  = state_q != Default ? counts_valid :
                        default_q != '0 && default_q <= default_size;
  assign count_log    = state_q == Default ? default_log : counts_log;
  assign count_less   = state_q == Default ? default_count_q < 0 : counts_less;
  assign count        = state_q != Default ? counts_count :
                        default_count_q < 0 ? 10'd1 : 10'($unsigned(default_count_q));

  always_comb begin
    take = (state_q == Describe && counts_take) || rle_q || state_q inside {Number, Modes};
    n    = state_q == Describe ? counts_n : 6'd8;
    if (state_q == Number) begin
      n = bits[7:0] < 8'd128 ? 6'd8 : bits[7:0] < 8'd255 ? 6'd16 : 6'd24;
    end
  end

  // A clock behind, so that what is counted need not be known in the clock that counts it.
  logic [1:0] table1_q;
  logic count_valid1_q, count_less1_q, table_begin1_q, table_end1_q, table_rle1_q;
  logic [3:0] count_log1_q;
  logic [9:0] count1_q;
  logic [5:0] rle1_q;  // the only symbol
  always_ff @(posedge clk_i) begin
    table_begin1_q <= table_begin;
    table_rle1_q   <= table_rle && rst_ni;
    rle1_q         <= bits[5:0];
    table1_q       <= table_q;
    count_valid1_q <= count_valid;
    count_less1_q  <= count_less;
    count_log1_q   <= count_log;
    count1_q       <= count;
    table_end1_q   <= table_end;
  end

  logic [2:0] table_busy;
  logic read;
  logic [8:0] literal_state, literal_base_state, match_state, match_base_state;
  logic [7:0] offset_state, offset_base_state;
  logic [5:0] literal_code, match_code;
  logic [4:0] offset_code;
  logic [3:0] literal_n, match_n, offset_n, literal_log, match_log, offset_log;
  logic [5:0] literal_made, match_made;
  logic [4:0] offset_made, offset_extra, match_extra, literal_extra;
  logic [4:0] offset_all, match_all, literal_all;
  wpr_zstd_fse #(.MostLog(9), .SymbolWidth(6)) literal_table (
    .clk_i,
    .rst_ni,
    .begin_i      (table_begin1_q && table1_q == 2'd0),
    .count_valid_i(count_valid1_q),
    .count_i      (count1_q),
    .less_i       (count_less1_q),
    .end_i        (table_end1_q && table1_q == 2'd0),
    .log_i        (count_log1_q),
    .rle_i        (table_rle1_q && table1_q == 2'd0),
    .symbol_i     (rle1_q),
    .busy_o       (table_busy[0]),
    .log_o        (literal_log),
    .made_o       (literal_made),
    .extra_i      (literal_bits(literal_made)),
    .read_i       (read),
    .state_i      (literal_state),
    .symbol_o     (literal_code),
    .extra_o      (literal_extra),
    .all_o        (literal_all),
    .n_o          (literal_n),
    .state_o      (literal_base_state)
  );
  wpr_zstd_fse #(.MostLog(8), .SymbolWidth(5)) offset_table (
    .clk_i,
    .rst_ni,
    .begin_i      (table_begin1_q && table1_q == 2'd1),
    .count_valid_i(count_valid1_q),
    .count_i      (count1_q[8:0]),
    .less_i       (count_less1_q),
    .end_i        (table_end1_q && table1_q == 2'd1),
    .log_i        (count_log1_q),
    .rle_i        (table_rle1_q && table1_q == 2'd1),
    .symbol_i     (rle1_q[4:0]),
    .busy_o       (table_busy[1]),
    .log_o        (offset_log),
    .made_o       (offset_made),
    .extra_i      (offset_made > 5'(LogWindow) ? '0 : offset_made),
    .read_i       (read),
    .state_i      (offset_state),
    .symbol_o     (offset_code),
    .extra_o      (offset_extra),
    .all_o        (offset_all),
    .n_o          (offset_n),
    .state_o      (offset_base_state)
  );
  wpr_zstd_fse #(.MostLog(9), .SymbolWidth(6)) match_table (
    .clk_i,
    .rst_ni,
    .begin_i      (table_begin1_q && table1_q == 2'd2),
    .count_valid_i(count_valid1_q),
    .count_i      (count1_q),
    .less_i       (count_less1_q),
    .end_i        (table_end1_q && table1_q == 2'd2),
    .log_i        (count_log1_q),
    .rle_i        (table_rle1_q && table1_q == 2'd2),
    .symbol_i     (rle1_q),
    .busy_o       (table_busy[2]),
    .log_o        (match_log),
    .made_o       (match_made),
    .extra_i      (match_bits(match_made)),
    .read_i       (read),
    .state_i      (match_state),
    .symbol_o     (match_code),
    .extra_o      (match_extra),
    .all_o        (match_all),
    .n_o          (match_n),
    .state_o      (match_base_state)
  );

  // ---- sequences --------------------------------------------------------------------------------

  localparam int unsigned Extra = LogWindow + 32;  // most bits of a sequence's values
  localparam int unsigned Peek = Extra + 27;  // and with those of the next states, 9 each

  logic back_ready, back_bad, back_take;
  logic [Peek-1:0] back_bits;
  logic signed [21:0] left;
  logic [6:0] all_q;  // bits that are taken
  logic [17:0] size_q;
  wpr_zstd_backward #(.Peek(Peek), .Chunk(64), .EveryClock(1'b0)) backward (
    .clk_i,
    .rst_ni,
    .start_i   (state_q == Open),
    .ends_i    (ends_q),
    .size_i    (size_q),
    .ready_o   (back_ready),
    .bad_o     (back_bad),
    .bits_o    (back_bits),
    .take_i    (back_take),
    .n_i       (all_q),
    .codes_i   (1'b0),
    .least_i   ('0),
    .reached_o (),
    .left_o    (left),
    .request_o (request_o[0]),
    .row_o     (row_o[0]),
    .grant_i   (grant_i[0]),
    .response_i(response_i[0]),
    .data_i
  );

  // Add: where each part begins, and how many bits the states have. How many the values have stands
  // in the tables, which saves this clock the way from codes to numbers.
  logic [16:0] number_q;  // of sequences that are to come
  logic none_q;  // there were none
  logic first_q, room_q;  // first: the states are read, no sequence
  logic final_q;  // the sequence is the last one
  logic far;  // an offset beyond the window
  logic [5:0] match_at_q, literal_at_q;
  logic [6:0] literal_state_at_q, match_state_at_q, offset_state_at_q;
  logic [3:0] literal_n_q, match_n_q, offset_n_q;
  assign far = offset_code > 5'(LogWindow);
  // The sum of three, without a carry from the first to the second.
  function automatic logic [6:0] sum(logic [4:0] a, logic [4:0] b, logic [4:0] c);
    logic [4:0] odd, carries;
    odd     = a ^ b ^ c;
    carries = a & b | a & c | b & c;
    return 7'(odd) + 7'({carries, 1'b0});
  endfunction
  logic [6:0] values;
  assign values = sum(offset_extra, match_extra, literal_extra);
  always_ff @(posedge clk_i) begin
    if (state_q == States) begin
      literal_state_at_q <= '0;
      offset_state_at_q  <= 7'(literal_log);
      match_state_at_q   <= 7'(literal_log) + 7'(offset_log);
      all_q              <= 7'(literal_log) + 7'(offset_log) + 7'(match_log);
      literal_n_q        <= literal_log;
      offset_n_q         <= offset_log;
      match_n_q          <= match_log;
    end else if (state_q == Add) begin
      match_at_q         <= 6'(offset_extra);
      literal_at_q       <= 6'(offset_extra) + 6'(match_extra);
      literal_state_at_q <= values;
      match_state_at_q   <= sum(offset_extra, match_extra, literal_all);
      offset_state_at_q  <= sum(offset_extra, match_all, literal_all);
      all_q              <= final_q ? values : sum(offset_all, match_all, literal_all);
      literal_n_q        <= literal_n;
      offset_n_q         <= offset_n;
      match_n_q          <= match_n;
    end
  end

  // Take: the next states.
  function automatic logic [8:0] next_state(logic [Peek-1:0] shown, logic [6:0] from,
                                            logic [3:0] size);
    logic [Peek-1:0] flipped;  // so that where they begin is an index
    logic [8:0] found, bits_of;
    for (int i = 0; i < Peek; i++) flipped[i] = shown[Peek-1-i];
    found = flipped[from+:9];
    for (int i = 0; i < 9; i++) bits_of[i] = found[8-i];
    return bits_of >> (4'd9 - size);
  endfunction
  assign back_take     = state_q == Take && back_ready && room_q;
  assign read          = back_take;
  assign literal_state = (first_q ? '0 : literal_base_state) |
                         next_state(back_bits, literal_state_at_q, literal_n_q);
  assign match_state   = (first_q ? '0 : match_base_state) |
                         next_state(back_bits, match_state_at_q, match_n_q);
  assign offset_state  = (first_q ? '0 : offset_base_state) |
                         8'(next_state(back_bits, offset_state_at_q, offset_n_q));

  // ---- values -----------------------------------------------------------------------------------

  function automatic logic [15:0] highest(logic [Extra-1:0] shown, logic [5:0] from);
    logic [Extra-1:0] flipped;
    logic [15:0] found;
    for (int i = 0; i < Extra; i++) flipped[i] = shown[Extra-1-i];
    found = flipped[from+:16];
    for (int i = 0; i < 16; i++) highest[i] = found[15-i];
  endfunction
  logic v1_q, far1_q, v2_q, v3_q, v4_q, v5_q;
  logic [Extra-1:0] bits1_q;
  logic [5:0] match_at1_q, literal_at1_q;
  logic [4:0] offset_extra1_q, match_extra1_q, literal_extra1_q, match_extra2_q, literal_extra2_q;
  logic [5:0] match_code1_q, literal_code1_q, match_code2_q, literal_code2_q;
  logic [15:0] match_bits2_q, literal_bits2_q, match_bits3_q, literal_bits3_q;
  logic [16:0] match_base3_q, literal_base3_q;
  logic [16:0] literals4_q, literals5_q;
  logic none3_q;  // no literals
  logic [17:0] match4_q, match5_q;
  logic [LogWindow:0] offset2_q, offset3_q;  // value of the offset
  // A new offset; what the value means, 0 to 2: one of the last ones; 3: one less; 4: a new one. An
  // offset of 0 is not valid, and one beyond the window, which cannot be followed, becomes one.
  logic [LogWindow:0] fresh4_q, offset5_q;
  logic [2:0] which4_q;
  always_ff @(posedge clk_i) begin
    v1_q             <= back_take && !first_q;
    far1_q           <= far;
    bits1_q          <= back_bits[Peek-1-:Extra];
    match_at1_q      <= match_at_q;
    literal_at1_q    <= literal_at_q;
    offset_extra1_q  <= offset_extra;
    match_extra1_q   <= match_extra;
    literal_extra1_q <= literal_extra;
    match_code1_q    <= match_code;
    literal_code1_q  <= literal_code;

    v2_q             <= v1_q;
    match_bits2_q    <= highest(bits1_q, match_at1_q);
    literal_bits2_q  <= highest(bits1_q, literal_at1_q);
    match_extra2_q   <= match_extra1_q;
    literal_extra2_q <= literal_extra1_q;
    match_code2_q    <= match_code1_q;
    literal_code2_q  <= literal_code1_q;
    offset2_q        <= far1_q ? '0 : (LogWindow + 1)'(1) << offset_extra1_q |
                    (LogWindow + 1)'(bits1_q[Extra-1-:LogWindow] >>
                                     (5'(LogWindow) - offset_extra1_q));

    v3_q            <= v2_q;
    literal_base3_q <= literal_base(literal_code2_q);
    literal_bits3_q <= literal_bits2_q >> (5'd16 - literal_extra2_q);
    match_base3_q   <= match_base(match_code2_q);
    match_bits3_q   <= match_bits2_q >> (5'd16 - match_extra2_q);
    offset3_q       <= offset2_q;
    none3_q         <= literal_code2_q == '0;

    v4_q        <= v3_q;
    literals4_q <= literal_base3_q + 17'(literal_bits3_q);
    match4_q    <= 18'(match_base3_q) + 18'(match_bits3_q);
    fresh4_q    <= offset3_q == '0 || offset3_q > (LogWindow + 1)'((1 << LogWindow) + 3) ? '0 :
                   offset3_q - (LogWindow + 1)'(3);
    which4_q    <= offset3_q == '0 || offset3_q > (LogWindow + 1)'(3) ? 3'd4 :
                   3'(offset3_q[1:0]) - 3'(!none3_q);
    if (!rst_ni) begin
      v1_q <= 1'b0;
      v2_q <= 1'b0;
      v3_q <= 1'b0;
      v4_q <= 1'b0;
    end
  end

  // Repeat offsets: values 1 to 3 are the last three ones, or, without literals, the second, the
  // third, and one less than the first.
  logic [2:0][LogWindow:0] repeat_q;
  logic [LogWindow:0] offset;
  always_comb begin
    unique case (which4_q)
      3'd0:    offset = repeat_q[0];
      3'd1:    offset = repeat_q[1];
      3'd2:    offset = repeat_q[2];
      3'd3:    offset = repeat_q[0] == '0 ? '0 : repeat_q[0] - 1'b1;
      default: offset = fresh4_q;
    endcase
  end
  always_ff @(posedge clk_i) begin
    v5_q        <= v4_q;
    literals5_q <= literals4_q;
    match5_q    <= match4_q;
    offset5_q   <= offset;
    if (v4_q && which4_q != 3'd0) begin
      repeat_q[0] <= offset;
      repeat_q[1] <= repeat_q[0];
      if (which4_q != 3'd1) repeat_q[2] <= repeat_q[1];
    end
    if (!rst_ni) begin
      v5_q     <= 1'b0;
      repeat_q <= {(LogWindow + 1)'(8), (LogWindow + 1)'(4), (LogWindow + 1)'(1)};
    end
  end

  logic [4:0] level;
  wpr_fifo #(.Width(36 + LogWindow), .LogDepth(4)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(v5_q),
    .s_ready_o(),
    .s_data_i ({literals5_q, match5_q, offset5_q}),
    .m_valid_o(valid_o),
    .m_ready_i(take_i),
    .m_data_o ({literals_o, match_o, offset_o}),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) room_q <= rst_ni && level < 5'd11;

  logic come_q, short_q;  // a clock ago: all of the section had; it never will
  always_ff @(posedge clk_i) begin
    come_q  <= have_i >= ends_q;
    short_q <= ended_i && have_i < ends_q;
  end

  // ---- what comes next --------------------------------------------------------------------------

  assign busy_o = state_q != Idle || v1_q || v2_q || v3_q || v4_q || v5_q ||
                  level != '0;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Number:
      if (ready) begin
        number_q <= bits[7:0] < 8'd128 ? 17'(bits[7:0]) :
                    bits[7:0] < 8'd255 ? {2'b0, bits[6:0], bits[15:8]} :
                    17'(bits[23:8]) + 17'h7F00;
        none_q   <= bits[7:0] == 8'd0 || bits[15:0] == 16'h0080;
        state_q  <= Empty;
      end
      Empty: begin
        table_q <= '0;
        if (!none_q) state_q <= Modes;
        else if (ready) begin
          state_q <= Idle;
          bad_o   <= at != ends_q;
        end
      end
      Modes:
      if (ready) begin
        modes_q <= bits[7:2];
        state_q <= Table;
        if (bits[1:0] != '0) begin
          bad_o   <= 1'b1;
          state_q <= Idle;
        end
      end
      Table: begin
        if (table_q == 2'd3) begin
          state_q <= Bits;
        end else if (mode != RleTable || table_rle) begin
          modes_q          <= modes_q << 2;
          known_q[table_q] <= 1'b1;
          table_q          <= table_q + 1'b1;
          if (mode != Repeated) predefined_q[table_q] <= mode == Predefined;
          described_q <= mode == Described;
          if (mode == Described || (mode == Predefined && !predefined_q[table_q])) begin
            table_q <= table_q;
            state_q <= Make;
          end
        end
      end
      Make: begin
        default_q <= '0;
        state_q   <= described_q ? Describe : Default;
      end
      Default: begin
        default_q <= default_q + 1'b1;
        if (table_end) begin
          table_q <= table_q + 1'b1;
          state_q <= Table;
        end
      end
      Describe:
      if (!counts_busy) begin
        table_q <= table_q + 1'b1;
        state_q <= counts_bad ? Idle : Table;
        bad_o   <= counts_bad;
      end
      Bits:
      if (ready) begin
        size_q  <= 18'(ends_q - at);
        state_q <= Tables;
        if (at >= ends_q) begin
          bad_o   <= 1'b1;
          state_q <= Idle;
        end
      end
      Tables: begin
        if (table_busy == '0 && come_q) state_q <= Open;
        if (short_q) begin
          bad_o   <= 1'b1;
          state_q <= Idle;
        end
      end
      Open: begin
        first_q <= 1'b1;
        state_q <= States;
      end
      States: state_q <= Take;
      Add:    state_q <= Take;
      Take: begin
        if (back_take) begin
          first_q <= 1'b0;
          final_q <= number_q == (first_q ? 17'd1 : 17'd2);
          if (!first_q) number_q <= number_q - 1'b1;
          state_q <= !first_q && final_q ? Taken : Add;
        end
        if (back_ready && (back_bad || left < 0)) begin
          bad_o   <= 1'b1;
          state_q <= Idle;
        end
      end
      Taken: state_q <= Done;
      Done: begin
        bad_o   <= left != '0;
        state_q <= Idle;
      end
      default: ;
    endcase
    rle_q       <= rst_ni && state_q == Table && table_q != 2'd3 && mode == RleTable && !table_rle;
    table_bad_q <= state_q == Table && table_q != 2'd3 &&
                   ((table_rle && bits[7:0] > 8'(most_symbol)) ||
                    (mode == Repeated && !known_q[table_q]));
    if (table_bad_q) begin
      bad_o   <= 1'b1;
      state_q <= Idle;
    end
    if (start_i) begin
      state_q <= Number;
      ends_q  <= ends_i;
      bad_o   <= 1'b0;
    end
    if (!rst_ni) begin
      state_q      <= Idle;
      bad_o        <= 1'b0;
      known_q      <= '0;
      predefined_q <= '0;
    end
  end

endmodule
