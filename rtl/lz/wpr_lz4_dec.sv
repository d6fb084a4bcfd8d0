// SPDX-License-Identifier: Apache-2.0
// lz4 decoder (codecs/lz4/spec.md): a packet of one LZ4 block in, `Bytes` a beat; a packet of the
// bytes that it expands to out, `Bytes` a beat.
//
// How many bytes a packet may have comes by s_cmd, at most 4 MiB. A code that the specification
// refuses, an offset of 0 and a code for more bytes than that end the packet with m_axis_tuser set
// beside m_axis_tlast; its bytes are then not to be used, there are never more than it may have,
// the rest of the input packet is thrown away and the next one begins afresh. The format's end
// rules, which a decoder may ask for, are not.
//
// Rate: `Bytes` a clock out. With 8 bytes a sequence a clock; with 16 two, where both have no long
// length, 7 literals at most the first, 16 bytes each of code together and of what they expand to.
// A byte of a long length takes a clock, and so does each word of code; with 8 bytes the byte that is
// all of a length of literals takes none, where it lies in its token's word. Latency 20 clocks with
// 8, 23 with 16. A packet of S bytes of code that may have N takes at most S + N + 40 clocks,
// whatever its bytes are, while both sides move.
module wpr_lz4_dec #(
  parameter int unsigned Bytes       = 8,  // of a beat: 8 or 16
  parameter int unsigned LogElements = 4   // that wait for the copy engine
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,   // bytes that the next packet may have: at most 2^22

  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic               s_axis_tlast,

  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [8*Bytes-1:0] m_axis_tdata,
  output logic [  Bytes-1:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or no byte
  output logic               m_axis_tlast,
  output logic               m_axis_tuser    // with tlast: the packet was not valid
);

  // ---- the code, and what its bytes are as tokens -----------------------------------------------

  localparam int unsigned LogBytes = $clog2(Bytes);
  localparam int unsigned Most = Bytes == 8 ? 8 : 13;  // literals of a step with all around them
  localparam int unsigned First = Bytes == 8 ? 8 : 15;  // literals that follow a long length
  localparam int unsigned Shown = Bytes == 8 ? 24 : 32;  // bytes that a step may reach
  typedef logic [LogBytes:0] count_t;
  typedef logic [$clog2(3*Bytes)-1:0] size_t;
  typedef struct packed {
    logic       last;         // the byte is not 255: a length ends
    logic       more;         // literal length goes on
    logic       more_match;   // match length goes on
    logic       done;         // no literals but those that follow at once
    logic       with_length;  // the byte behind is all of a long literal length, and taken, too
    logic       few;          // with its match 16 bytes at most, and no long length
    logic [3:0] n;            // these, 0 to Most
    logic [4:0] length;       // of what is taken with them: token, literals, offset
  } token_t;

  typedef enum logic [2:0] {Token, Length, Literals, Match, Ended, Flush} state_e;
  state_e state_q, state_d;
  logic full, ended, more, shift, pop;
  logic [24*Bytes-1:0] bytes;
  logic [8*Bytes-1:0] come;
  size_t size;  // bytes in the window, with `ended`
  wpr_lz_window #(.Bytes(Bytes)) window (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .full_o (full),
    .ended_o(ended),
    .size_o (size),
    .bytes_o(bytes),
    .come_o (come),
    .more_o (more),
    .shift_o(shift),
    .pop_i  (pop),
    .flush_i(state_q == Flush)
  );

  // Of each byte of a word, as a token, on the word's way to the first place: what it is; what stands
  // behind its sequence; and, with 16 bytes, whether a step takes the sequence behind it, too, or the
  // byte behind its offset. It does so only before the packet's end.
  typedef struct packed {
    token_t     token;
    logic       two;
    logic       long_match;  // the byte behind the offset is all of a long match length
    logic       more_match;  // match length goes on
    logic       leaves;      // what is taken reaches the next word
    logic [3:0] n;           // literals of both
    logic [4:0] first_next;  // where what is behind the first sequence lies,
    logic [4:0] next;        // and what is not taken
  } step_t;
  token_t [Bytes-1:0] come_tokens, third_q, second_q, behind_q;
  step_t [Bytes-1:0] steps, steps_q;
  always_comb begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic logic [3:0] n = come[8*j+4+:4];
      automatic logic all = n <= 4'(Most);
      automatic logic length = Bytes == 8 && j < 7 && n == '1 && come[8*((j+1)%8)+:8] != '1;
      come_tokens[j].last        = come[8*j+:8] != '1;
      come_tokens[j].more        = n == '1;
      come_tokens[j].more_match  = come[8*j+:4] == '1;
      come_tokens[j].done        = all;
      come_tokens[j].few         = 5'(n) + 5'(come[8*j+:4]) <= 5'd12;
      come_tokens[j].with_length = length;
      come_tokens[j].n           = length ? 4'd7 : n == '1 ? 4'd0 : all ? n : 4'd8;
      come_tokens[j].length      = length ? 5'd9 : n == '1 ? 5'd1 : all ? 5'(n) + 5'd3 : 5'd9;
    end
  end
  always_comb begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic token_t first = second_q[j];
      automatic logic [4:0] sum = 5'(first.n[2:0]) + 5'(behind_q[j].n);
      automatic logic fits = Bytes == 16 && more && first.done && !first.n[3];
      steps[j].token      = first;
      steps[j].two        = fits && first.few && behind_q[j].few && sum <= 5'd10;
      steps[j].long_match = fits && first.more_match && behind_q[j].last;
      steps[j].more_match = first.more_match && !steps[j].long_match;
      steps[j].n          = steps[j].two ? sum[3:0] : first.n;
      steps[j].first_next = 5'(j) + first.length;
      steps[j].next       = steps[j].two ? 5'(j + 6) + sum :
                            steps[j].long_match ? 5'(j + 4) + 5'(first.n[2:0]) :
                            steps[j].first_next;
      steps[j].leaves     = steps[j].next >= 5'(Bytes);
    end
  end
  always_ff @(posedge clk_i) begin
    if (shift) begin
      third_q  <= come_tokens;
      second_q <= third_q;
      steps_q  <= steps;
      for (int j = 0; j < int'(Bytes); j++) begin
        automatic token_t [2*Bytes-1:0] tokens = {come_tokens, third_q};
        behind_q[j] <= tokens[(j+3+int'(third_q[j].n[2:0]))%int'(2*Bytes)];
      end
    end
  end

  // ---- a step: a token, its literals and its offset, or two of them; or some of many literals ---

  logic [22:0] left_q;  // literals behind the next ones, or of a long length what follows First
  count_t n_q;  // the next ones, without a token,
  count_t take_q;  // and what is taken with no token: these and an offset, or a byte of a length
  logic done_q, more_match_q, first_q, skip_q, room_q, bad_q, over_q, close_q, looked_q;
  logic [LogBytes-1:0] at_q;  // of the next byte, in the first word
  step_t found;
  token_t token;
  logic step, two, long_match, done, more_match, leaves, ends;
  count_t n;
  logic [4:0] next, first_next;  // behind all, and behind the first sequence
  logic [7:0] value, value_behind;
  assign found = steps_q[at_q];
  assign token = found.token;
  assign value = bytes[8*at_q+:8];
  assign value_behind = bytes[8*at_q+8+:8];
  // With the packet's end in sight a step takes two clocks: one looks whether it is reached.
  assign step  = full && !skip_q && room_q && (looked_q || !ended) && state_q != Ended &&
                 state_q != Flush;
  assign ends       = looked_q && (close_q || over_q);  // the packet, with the step
  assign two        = state_q == Token && found.two;
  assign long_match = state_q == Token && found.long_match;
  always_comb begin
    n          = '0;
    done       = 1'b0;
    first_next = 5'(at_q) + 5'(take_q);
    more_match = more_match_q;
    if (state_q == Token) begin
      n          = count_t'(found.n);
      done       = token.done;
      first_next = found.first_next;
      more_match = found.more_match;
    end else if (state_q == Literals) begin
      n          = n_q;
      done       = done_q;
    end
    next    = state_q == Token ? found.next : first_next;
    state_d = state_q;
    if (state_q == Token && !token.done) begin
      state_d = token.more && !token.with_length ? Length : Literals;
    end
    else if (done) state_d = more_match ? Match : Token;
    else if (state_q == Length && token.last) state_d = Literals;
    else if (state_q == Match && token.last) state_d = Token;
    if (ends) state_d = Ended;
    if (!step) state_d = state_q;
    if (state_q == Ended && room_q) state_d = Flush;
    if (state_q == Flush && ended) state_d = Token;
  end
  // Whether next is in another word, but known earlier than that: the longest path is from here to
  // the window's words. Of the sum of at_q and take_q only the carry.
  logic carry;
  always_comb begin
    carry = 1'b0;
    for (int i = 0; i < int'(LogBytes); i++) begin
      carry = (at_q[i] && take_q[i]) || (carry && (at_q[i] || take_q[i]));
    end
    leaves = state_q == Token ? found.leaves : carry || take_q[LogBytes];
  end
  assign pop = full && (skip_q || (step && leaves));

  // Of literals that are left, the next ones: `last_part` are taken with the offset behind them.
  logic last_part;
  count_t part;
  assign part      = Bytes == 8 || left_q[22:4] == '0 ? count_t'(8) : count_t'(16);
  assign last_part = left_q[22:4] == '0 && left_q[3:0] <= 4'(Bytes == 8 ? 8 : 14);

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    looked_q <= full && ended && !looked_q && !skip_q;
    close_q  <= done && size_t'(next) == size + size_t'(2);
    over_q   <= size_t'(next) > size;
    if (step) begin
      at_q         <= next[LogBytes-1:0];
      more_match_q <= more_match;
      first_q      <= state_q != Match;
      bad_q        <= !close_q;
      // Of a token with Most + 1 to 14 literals the rest. Of a longer length first First, or 7 with
      // it: then 8 are next, and what the byte behind the token says is left.
      // A byte of a length is taken alone.
      if (state_q == Token && token.with_length) begin
        n_q    <= count_t'(8);
        take_q <= value_behind == '0 ? count_t'(10) : count_t'(8);
        done_q <= value_behind == '0;
        left_q <= 23'(value_behind);
      end else if (state_q == Token) begin
        n_q    <= count_t'(value[6:4]);
        take_q <= token.more || token.done ? count_t'(1) : count_t'(value[6:4]) + count_t'(2);
        done_q <= 1'b1;
        left_q <= 23'(15 - First);
      end else if (state_q == Literals) begin
        n_q    <= last_part ? count_t'(left_q[3:0]) : part;
        take_q <= done_q ? count_t'(1) :
                  last_part ? count_t'(left_q[3:0]) + count_t'(2) : part;
        done_q <= last_part;
        left_q <= left_q - 23'(part);
      end else begin
        n_q    <= count_t'(First);
        take_q <= state_q == Length && token.last ? count_t'(First) : count_t'(1);
        done_q <= 1'b0;
        if (!left_q[22]) left_q <= left_q + 23'(value);  // enough to be refused
      end
    end
    if (pop) skip_q <= Bytes == 8 && step && next[4];
    if (!rst_ni || state_q == Flush) begin
      at_q     <= '0;
      skip_q   <= 1'b0;
      looked_q <= 1'b0;
    end
    if (!rst_ni) state_q <= Token;
  end

  // ---- elements ---------------------------------------------------------------------------------

  // Literals are gathered to their match, with 8 bytes up to 23; a match waits for the first byte of
  // a long length.
  logic v1_q, end1_q, fin1_q, match1_q, more1_q, first1_q, bad1_q, two1_q, long1_q, wait1_q;
  count_t n1_q, first_n1_q, begin1_q;  // of two sequences: all, and the first one's
  count_t behind1_q;  // begin1_q, and the first offset and the second token
  logic [Bytes-1:0] of_first1_q;  // which literals are the first one's
  logic [3:0] code1_q;
  logic [3:0] code_q;  // of the match behind literals
  logic [7:0] value1_q;
  logic [4:0] next1_q, first_next1_q;
  logic [8*Shown-1:0] bytes1_q;
  logic [15:0] offset1, offset2_q, second_offset2_q;
  logic [7:0] second_value1;  // behind the first offset
  logic [4:0] gathered_q, gathered, n2_q, second_n2_q, second_n_match2_q;
  logic v2_q, end2_q, bad2_q, two2_q, push1;
  logic [8:0] n_match1, n_match2_q;
  assign gathered     = gathered_q + 5'(two1_q ? first_n1_q : n1_q);
  assign offset1      = bytes1_q[8*(first_next1_q-5'd2)+:16];
  assign second_value1 = bytes1_q[8*first_next1_q+:8];
  assign push1        = v1_q && (match1_q || more1_q || end1_q || fin1_q ||
                                 (Bytes == 8 ? gathered[4] : !wait1_q));
  always_comb begin
    n_match1 = '0;
    if (match1_q) n_match1 = 9'(code1_q) + 9'd4;
    if (more1_q) n_match1 = 9'(value1_q) + (first1_q ? 9'd19 : 9'd0);
    if (long1_q) n_match1 = 9'(second_value1) + 9'd19;
  end
  always_ff @(posedge clk_i) begin
    v1_q          <= step || (state_q == Ended && room_q);
    end1_q        <= state_q == Ended;
    bad1_q        <= bad_q;
    fin1_q        <= ends;
    match1_q      <= done && !more_match && !ends;
    more1_q       <= state_q == Match && !ends;
    first1_q      <= first_q;
    two1_q        <= two;
    long1_q       <= long_match;
    wait1_q       <= done ? more_match : state_q != Literals;
    n1_q          <= step && !(looked_q && over_q && !close_q) ? n : '0;
    first_n1_q    <= count_t'(token.n);
    for (int i = 0; i < int'(Bytes); i++) of_first1_q[i] <= !two || count_t'(i) < count_t'(token.n);
    begin1_q      <= count_t'(at_q) + (state_q != Token ? count_t'(0) :
                                        token.with_length ? count_t'(2) : count_t'(1));
    behind1_q     <= count_t'(at_q) + count_t'(4);
    next1_q       <= next;
    first_next1_q <= first_next;
    code1_q       <= value[3:0];
    if (state_q == Literals) code1_q <= code_q;
    value1_q <= value;
    bytes1_q <= bytes[8*Shown-1:0];

    v2_q       <= push1;
    end2_q     <= end1_q;
    bad2_q     <= bad1_q;
    n2_q       <= gathered;
    n_match2_q <= n_match1;
    // More of a match has the offset of its beginning.
    if (v1_q && !more1_q) offset2_q <= offset1;
    if (v1_q) gathered_q <= push1 ? '0 : gathered;
    two2_q            <= two1_q;
    second_n2_q       <= 5'(n1_q) - 5'(first_n1_q);
    second_n_match2_q <= 5'(second_value1[3:0]) + 5'd4;
    second_offset2_q  <= bytes1_q[8*(next1_q-5'd2)+:16];
    if (!rst_ni) begin
      v1_q       <= 1'b0;
      v2_q       <= 1'b0;
      gathered_q <= '0;
    end
  end
  always_ff @(posedge clk_i) if (step && state_q == Token) code_q <= value[3:0];

  logic element_valid, element_ready;
  logic [LogElements:0] level;
  typedef struct packed {
    logic bad;
    logic last;
    logic [4:0] n_literals;
    logic [8:0] n_match;
    logic [15:0] offset;
  } element_t;
  typedef struct packed {
    logic two;
    logic [4:0] n_literals;
    logic [4:0] n_match;
    logic [15:0] offset;
  } second_t;
  element_t element;
  second_t second, second_in;
  assign second_in = {two2_q, second_n2_q, second_n_match2_q, second_offset2_q};
  localparam int unsigned Width = $bits(element_t) + (Bytes == 8 ? 0 : $bits(second_t));
  logic [$bits(element_t)+$bits(second_t)-1:0] shown;
  assign {second, element} = shown;
  wpr_fifo #(.Width(Width), .LogDepth(LogElements)) elements (
    .clk_i,
    .rst_ni,
    .s_valid_i(v2_q),
    .s_ready_o(),
    .s_data_i (Width'({second_in, bad2_q, end2_q, n2_q, n_match2_q, offset2_q})),
    .m_valid_o(element_valid),
    .m_ready_i(element_ready),
    .m_data_o (shown[Width-1:0]),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) begin
    room_q <= rst_ni && level < (LogElements + 1)'((1 << LogElements) - 6);
  end

  if (Bytes == 8) begin : g_no_second
    assign shown[Width+:$bits(second_t)] = '0;
  end

  wpr_lz_copy #(.Bytes(Bytes)) copy (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_valid_i       (element_valid),
    .s_ready_o       (element_ready),
    .s_end_i         (element.last),
    .s_bad_i         (element.bad),
    .s_n_literals_i  (element.n_literals),
    .s_n_match_i     (element.n_match),
    .s_offset_i      (element.offset),
    .s_two_i         (second.two),
    .s_n_literals2_i (second.n_literals),
    .s_n_match2_i    (7'(second.n_match)),
    .s_offset2_i     (second.offset),
    .literals_n_i    (n1_q),
    .literals_begin_i(begin1_q),
    .literals_first_i(of_first1_q),
    .literals_behind_i(behind1_q),
    .literals_bytes_i(bytes1_q[16*Bytes-1:0]),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
