// SPDX-License-Identifier: Apache-2.0
// lz4 decoder (codecs/lz4/spec.md): a packet of one LZ4 block in, 8 bytes a beat; a packet of the
// bytes that it expands to out, 8 a beat.
//
// How many bytes a packet may have comes by s_cmd, at most 4 MiB. A code that the specification
// refuses, an offset of 0 and a code for more bytes than that end the packet with m_axis_tuser set
// beside m_axis_tlast; its bytes are then not to be used, there are never more than it may have,
// the rest of the input packet is thrown away and the next one begins afresh. The format's end
// rules, which a decoder may ask for, are not.
//
// Rate: a sequence a clock, 8 bytes a clock out. A byte of a long length takes a clock, and so does
// each word of code. Latency 20 clocks. A packet of S bytes of code that may have N takes at most
// S + N + 40 clocks, whatever its bytes are, while both sides move.
module wpr_lz4_dec #(
  parameter int unsigned LogElements = 4  // that wait for the copy engine
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,   // bytes that the next packet may have: at most 2^22

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or for no byte
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet was not valid
);

  // ---- the code, and what its bytes are as tokens -----------------------------------------------

  typedef struct packed {
    logic       last;        // the byte is not 255: a length ends
    logic       more;        // literal length goes on
    logic       more_match;  // match length goes on
    logic       done;        // no literals but those that follow at once
    logic [3:0] n;           // these, 0 to 8
    logic [4:0] next;        // what is taken with them: token, literals, offset; and where it lies
  } token_t;
  localparam int unsigned TokenBits = $bits(token_t);

  logic full, ended, pop;
  logic [63:0] come;
  token_t [7:0] come_tokens, tokens;
  logic [191:0] bytes;
  logic [4:0] size;  // bytes in the window, with `ended`
  always_comb begin
    for (int j = 0; j < 8; j++) begin
      automatic logic [3:0] n = come[8*j+4+:4];
      come_tokens[j].last       = come[8*j+:8] != '1;
      come_tokens[j].more       = n == '1;
      come_tokens[j].more_match = come[8*j+:4] == '1;
      come_tokens[j].done       = n <= 4'd8;
      come_tokens[j].n          = n == '1 ? 4'd0 : n <= 4'd8 ? n : 4'd8;
      come_tokens[j].next       = 5'(j) + (n == '1 ? 5'd1 : n <= 4'd8 ? 5'(n) + 5'd3 : 5'd9);
    end
  end

  typedef enum logic [2:0] {Token, Length, Literals, Match, Ended, Flush} state_e;
  state_e state_q, state_d;
  wpr_lz_window #(.Beside(8 * TokenBits)) window (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .come_data_o  (come),
    .come_beside_i(come_tokens),
    .full_o       (full),
    .ended_o      (ended),
    .size_o       (size),
    .bytes_o      (bytes),
    .beside_o     (tokens),
    .pop_i        (pop),
    .flush_i      (state_q == Flush)
  );

  // ---- a step: up to 8 literals, with what stands around them -----------------------------------

  logic [2:0] at_q;  // of the next byte, in the first word
  logic [22:0] left_q;  // literals, behind a long length
  logic [3:0] n_q, take_q;  // of those, the next ones; and with the offset behind them
  logic done_q, more_match_q, first_q, skip_q, room_q, bad_q, over_q, close_q, looked_q;
  token_t token;
  logic step, done, more_match;
  logic [3:0] n;
  logic [4:0] next;
  logic [7:0] value;
  assign token = tokens[at_q];
  assign value = bytes[8*at_q+:8];
  // With the packet's end in sight a step takes two clocks: one looks whether it is reached.
  assign step  = full && !skip_q && room_q && (looked_q || !ended) && state_q != Ended &&
                 state_q != Flush;
  always_comb begin
    n          = '0;
    done       = 1'b0;
    next       = 5'(at_q) + 5'd1;
    more_match = more_match_q;
    if (state_q == Token) begin
      n          = token.n;
      done       = token.done;
      next       = token.next;
      more_match = token.more_match;
    end else if (state_q == Literals) begin
      n    = n_q;
      done = done_q;
      next = 5'(at_q) + 5'(take_q);
    end
    state_d = state_q;
    if (state_q == Token && !token.done) state_d = token.more ? Length : Literals;
    else if (done) state_d = more_match ? Match : Token;
    else if (state_q == Length && token.last) state_d = Literals;
    else if (state_q == Match && token.last) state_d = Token;
    if (looked_q && (close_q || over_q)) state_d = Ended;
    if (!step) state_d = state_q;
    if (state_q == Ended && room_q) state_d = Flush;
    if (state_q == Flush && ended) state_d = Token;
  end
  assign pop = skip_q || (step && next[4:3] != '0);

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    looked_q <= ended && !looked_q && !skip_q;
    close_q  <= done && next == size + 5'd2;
    over_q   <= next > size;
    if (step) begin
      at_q         <= next[2:0];
      more_match_q <= more_match;
      first_q      <= state_q != Match;
      bad_q        <= !close_q;
      // Of a token with 9 to 14 literals the rest; of a longer length, which is in left_q.
      done_q <= state_q == Token || (state_q == Literals && left_q <= 23'd16);
      n_q    <= state_q == Token ? {1'b0, value[6:4]} : 4'd8;
      take_q <= state_q == Token ? {1'b0, value[6:4]} + 4'd2 : 4'd8;
      if (state_q == Literals && left_q <= 23'd16) begin
        n_q    <= left_q[3:0] - 4'd8;
        take_q <= left_q[3:0] - 4'd6;
      end
      if (state_q == Token) left_q <= 23'd15;
      else if (state_q == Literals) left_q <= left_q - 23'd8;
      else if (!left_q[22]) left_q <= left_q + 23'(value);  // enough to be refused
    end
    if (pop) skip_q <= step && next[4];
    if (!rst_ni || state_q == Flush) begin
      at_q     <= '0;
      skip_q   <= 1'b0;
      looked_q <= 1'b0;
    end
    if (!rst_ni) state_q <= Token;
  end

  // ---- elements ---------------------------------------------------------------------------------

  // Literals are gathered to 16 or to their match; a match waits for the first byte of a long
  // length.
  logic v1_q, end1_q, fin1_q, match1_q, more1_q, first1_q, bad1_q;
  logic [3:0] n1_q, begin1_q, code1_q;
  logic [3:0] code_q;  // of the match behind literals
  logic [7:0] value1_q;
  logic [191:0] bytes1_q;
  logic [15:0] offset1, offset2_q;
  logic [4:0] gathered_q, gathered, n2_q;
  logic v2_q, end2_q, bad2_q, push1;
  logic [8:0] n_match1, n_match2_q;
  assign gathered = gathered_q + 5'(n1_q);
  assign offset1  = 16'(bytes1_q >> {5'(begin1_q) + 5'(n1_q), 3'b0});
  assign push1    = v1_q && (match1_q || more1_q || end1_q || fin1_q || gathered[4]);
  always_comb begin
    n_match1 = '0;
    if (match1_q) n_match1 = 9'(code1_q) + 9'd4;
    if (more1_q) n_match1 = 9'(value1_q) + (first1_q ? 9'd19 : 9'd0);
  end
  always_ff @(posedge clk_i) begin
    v1_q     <= step || (state_q == Ended && room_q);
    end1_q   <= state_q == Ended;
    bad1_q   <= bad_q;
    fin1_q   <= state_d == Ended;
    match1_q <= done && !more_match && state_d != Ended;
    more1_q  <= state_q == Match && state_d != Ended;
    first1_q <= first_q;
    n1_q     <= step && !(looked_q && over_q && !close_q) ? n : '0;
    begin1_q <= 4'(at_q) + 4'(state_q == Token);
    code1_q  <= value[3:0];
    if (state_q == Literals) code1_q <= code_q;
    value1_q <= value;
    bytes1_q <= bytes;

    v2_q       <= push1;
    end2_q     <= end1_q;
    bad2_q     <= bad1_q;
    n2_q       <= gathered;
    n_match2_q <= n_match1;
    // More of a match has the offset of its beginning.
    if (v1_q && !more1_q) offset2_q <= offset1;
    if (v1_q) gathered_q <= push1 ? '0 : gathered;
    if (!rst_ni) begin
      v1_q       <= 1'b0;
      v2_q       <= 1'b0;
      gathered_q <= '0;
    end
  end
  always_ff @(posedge clk_i) if (step && state_q == Token) code_q <= value[3:0];

  logic element_valid, element_ready;
  logic [LogElements:0] level;
  logic [31:0] element;
  wpr_fifo #(.Width(32), .LogDepth(LogElements)) elements (
    .clk_i,
    .rst_ni,
    .s_valid_i(v2_q),
    .s_ready_o(),
    .s_data_i ({bad2_q, end2_q, n2_q, n_match2_q, offset2_q}),
    .m_valid_o(element_valid),
    .m_ready_i(element_ready),
    .m_data_o (element),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) begin
    room_q <= rst_ni && level < (LogElements + 1)'((1 << LogElements) - 6);
  end

  wpr_lz_copy copy (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_valid_i       (element_valid),
    .s_ready_o       (element_ready),
    .s_end_i         (element[30]),
    .s_bad_i         (element[31]),
    .s_n_literals_i  (element[29:25]),
    .s_n_match_i     (element[24:16]),
    .s_offset_i      (element[15:0]),
    .literals_n_i    (n1_q),
    .literals_begin_i(begin1_q),
    .literals_bytes_i(bytes1_q[127:0]),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
