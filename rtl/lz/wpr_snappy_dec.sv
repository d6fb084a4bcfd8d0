// SPDX-License-Identifier: Apache-2.0
// snappy decoder (codecs/snappy/spec.md): a packet of one raw Snappy stream in, `Bytes` a beat; a
// packet of the bytes that it expands to out, `Bytes` a beat.
//
// How many bytes a packet may have comes by s_cmd, at most 4 MiB; how many it has stands at the
// stream's head. A code that the specification refuses, one for more bytes than the packet may
// have, and an offset of 64 KiB or more, which the reference does not write, end the packet with
// m_axis_tuser set beside m_axis_tlast; its bytes are then not to be used, there are never more
// than it may have, the rest of the input packet is thrown away and the next one begins afresh.
//
// Rate: `Bytes` a clock out. With 8 bytes an element a clock; a literal of more than 8 bytes takes a
// clock for each 8 and, of more than 60, one more for its length. With 16 two elements a clock, where
// they are a literal of 12 bytes at most and a copy, a copy of 16 at most and such a literal, or two
// such copies. Latency 23 clocks with 8, 26 with 16. A packet of S bytes of code that may have
// N takes at most S + N + 40 clocks, whatever its bytes are, while both sides move.
module wpr_snappy_dec #(
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

  // ---- the code, and what its bytes are as tags -------------------------------------------------

  localparam int unsigned LogBytes = $clog2(Bytes);
  localparam int unsigned Most = Bytes == 8 ? 8 : 15;  // literals of a step with their tag
  localparam int unsigned First = Bytes == 8 ? 8 : 15;  // of more than those, with their tag
  localparam int unsigned Shown = Bytes == 8 ? 24 : 32;  // bytes that a step may reach
  typedef logic [LogBytes:0] count_t;
  typedef logic [$clog2(3*Bytes)-1:0] size_t;
  typedef struct packed {
    logic       literal;
    logic       more;  // its length is in bytes of its own
    logic       done;  // no literals but those that follow at once
    logic       copy;  // with an offset of up to 16 bits
    logic       few;   // a copy of up to 16 bytes
    logic [3:0] n;     // literals, 0 to Most
    logic [4:0] next;  // what is taken with them; and where it lies
    logic [4:0] length;  // of what is taken
  } tag_t;
  localparam int unsigned TagBits = $bits(tag_t);

  logic full, ended, pop;
  logic [8*Bytes-1:0] come;
  tag_t [Bytes-1:0] come_tags;
  tag_t [3*Bytes-1:0] tags;
  logic [24*Bytes-1:0] bytes;
  size_t size;  // bytes in the window, with `ended`
  always_comb begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic logic [5:0] high = come[8*j+2+:6];
      automatic logic [1:0] kind = come[8*j+:2];
      automatic logic all = high < 6'(Most);
      automatic logic [4:0] copy = kind == 2'd1 ? 5'd2 : kind == 2'd2 ? 5'd3 : 5'd5;
      come_tags[j].literal = kind == '0;
      come_tags[j].more    = kind == '0 && high >= 6'd60;
      come_tags[j].done    = kind == '0 && all;
      come_tags[j].copy    = kind == 2'd1 || kind == 2'd2;
      come_tags[j].few     = kind == 2'd1 || (kind == 2'd2 && high[5:4] == '0);
      come_tags[j].n       = kind != '0 || high >= 6'd60 ? '0 : all ? high[3:0] + 4'd1 : 4'(First);
      come_tags[j].length  = kind != '0 ? copy : 5'd1 + 5'(come_tags[j].n);
      come_tags[j].next    = 5'(j) + come_tags[j].length;
    end
  end

  typedef enum logic [2:0] {Head, Size, Tag, Length, Literals, Ended, Flush} state_e;
  state_e state_q, state_d;
  wpr_lz_window #(.Bytes(Bytes), .Beside(Bytes * TagBits)) window (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .come_data_o  (come),
    .come_beside_i(come_tags),
    .full_o       (full),
    .ended_o      (ended),
    .size_o       (size),
    .bytes_o      (bytes),
    .beside_o     (tags),
    .pop_i        (pop),
    .flush_i      (state_q == Flush)
  );

  // ---- two elements -----------------------------------------------------------------------------

  // Of each byte of the first word, as a tag: whether a step takes the element behind it, too, and
  // what is taken then. That is known when the word becomes the first one, from it and the word
  // behind it; of a packet's first word it is not.
  typedef struct packed {
    logic       two;
    logic       literal;  // the second one, behind a copy
    logic [3:0] n;        // literals: one of both at most has some
    logic [4:0] next;     // what is taken
  } pair_t;
  pair_t pair;
  logic paired;
  logic [LogBytes-1:0] at_q;  // of the next byte, in the first word
  if (Bytes == 16) begin : g_pairs
    pair_t [Bytes-1:0] pairs, pairs_q;
    logic paired_q;
    always_comb begin
      for (int j = 0; j < int'(Bytes); j++) begin
        automatic tag_t first = tags[int'(Bytes)+j];
        automatic tag_t second = tags[int'(Bytes)+j+int'(first.length[3:0])];
        automatic logic two = first.length <= 5'd13 && (first.literal ? first.done && second.copy :
                              first.few && (second.few || (second.done && second.n <= 4'd12)));
        pairs[j].two     = two;
        pairs[j].literal = second.literal;
        pairs[j].n       = first.n | (two ? second.n : '0);
        pairs[j].next    = 5'(j) + first.length + (two ? second.length : '0);
      end
    end
    always_ff @(posedge clk_i) begin
      if (pop) pairs_q <= pairs;
      if (pop) paired_q <= 1'b1;
      if (!rst_ni || state_q == Flush) paired_q <= 1'b0;
    end
    assign pair   = pairs_q[at_q];
    assign paired = paired_q && !ended;
  end else begin : g_no_pairs
    assign pair   = '0;
    assign paired = 1'b0;
  end

  // ---- a step: a tag and literals behind it, two elements, literals more, or a byte of a length -

  logic [24:0] rest_q;  // literals behind the next ones
  logic [2:0] number_q;  // of a byte of a length
  logic [1:0] last_number_q;
  count_t n_q;  // the next literals; none where a length has just come, which is one less
  logic done_q, skip_q, room_q, bad_q, over_q, close_q, looked_q, empty_q;
  tag_t tag;
  logic step, two, last_byte;
  count_t n;
  logic [4:0] next;
  logic [7:0] value;
  assign tag   = tags[at_q];
  assign value = bytes[8*at_q+:8];
  // With the packet's end in sight a step takes two clocks: one looks whether it is reached.
  assign step  = full && !skip_q && room_q && (looked_q || !ended) && state_q != Size &&
                 state_q != Ended && state_q != Flush;
  assign two   = state_q == Tag && paired && pair.two;
  always_comb begin
    n         = '0;
    next      = 5'(at_q) + 5'd1;
    last_byte = number_q[1:0] == last_number_q;
    if (state_q == Tag) begin
      n    = paired ? count_t'(pair.n) : count_t'(tag.n);
      next = paired ? pair.next : tag.next;
    end else if (state_q == Literals) begin
      n    = n_q;
      next = 5'(at_q) + 5'(n_q);
    end
    state_d = state_q;
    if (state_q == Head && !value[7]) state_d = Size;
    else if (state_q == Tag && tag.literal && !tag.done) state_d = tag.more ? Length : Literals;
    else if (state_q == Length && last_byte) state_d = Literals;
    else if (state_q == Literals && done_q) state_d = Tag;
    if (looked_q && over_q) state_d = state_q == Head ? Size : Ended;
    if (!step) state_d = state_q;
    if (state_q == Size && s_cmd_tvalid && s_cmd_tready) state_d = empty_q ? Ended : Tag;
    if (state_q == Ended && room_q) state_d = Flush;
    if (state_q == Flush && ended) state_d = Head;
  end
  assign pop = skip_q || (step && next[4:LogBytes] != '0);

  // The size at the stream's head: of 32 bits, in 5 bytes at most. What is wrong with it, or with a
  // length, is said with the packet's end.
  logic [34:0] size_q;
  logic wrong_q, copy_ready;
  assign s_cmd_tready = state_q == Size && copy_ready;
  always_ff @(posedge clk_i) begin
    if (step && state_q == Head) begin
      for (int i = 0; i < 5; i++) if (number_q == 3'(i)) size_q[7*i+:7] <= value[6:0];
      if (number_q > 3'd4 || (number_q == 3'd4 && value[6:4] != '0)) wrong_q <= 1'b1;
      empty_q <= looked_q && over_q;
    end
    if (s_cmd_tvalid && s_cmd_tready && size_q > 35'(s_cmd_tdata)) wrong_q <= 1'b1;
    if (step && state_q == Length && number_q == 3'd3 && value != '0) wrong_q <= 1'b1;
    if (!rst_ni || state_q == Flush) begin
      size_q  <= '0;
      wrong_q <= 1'b0;
    end
  end

  logic dummy, few_left;
  assign dummy    = n_q == '0;
  assign few_left = value[7:2] < 6'(First + Bytes);
  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    looked_q <= ended && !looked_q && !skip_q && state_q != Size;
    // The stream ends behind its head, a copy, or a literal's last byte.
    close_q  <= size_t'(next) == size && ((state_q == Tag && (tag.done || !tag.literal)) ||
                                 (state_q == Literals && done_q) ||
                                 (state_q == Head && !value[7]));
    over_q   <= size_t'(next) >= size;
    if (step) begin
      at_q  <= next[LogBytes-1:0];
      bad_q <= !close_q;
      unique case (state_q)
        Head: number_q <= number_q == '1 ? '1 : number_q + 3'd1;
        Tag: begin
          number_q      <= '0;
          last_number_q <= value[3:2];
          // Of a literal of Most + 1 to 60 the rest.
          n_q           <= tag.more ? '0 : few_left ? count_t'(value[7:2] - 6'(First - 1)) :
                                           count_t'(Bytes);
          done_q        <= !tag.more && few_left;
          rest_q        <= tag.more ? '0 : 25'(value[7:2]) - 25'(First - 1 + Bytes);
        end
        Length: begin
          number_q <= number_q + 3'd1;
          for (int i = 0; i < 3; i++) if (number_q == 3'(i)) rest_q[8*i+:8] <= value;
        end
        default: begin
          n_q    <= rest_q[24:LogBytes] != '0 ? count_t'(Bytes) :
                    count_t'(rest_q[LogBytes-1:0]) + count_t'(dummy);
          done_q <= rest_q <= (dummy ? 25'(Bytes - 1) : 25'(Bytes));
          rest_q <= rest_q - (dummy ? 25'(Bytes - 1) : 25'(Bytes));
        end
      endcase
    end
    if (pop) skip_q <= step && Bytes == 8 && next[4];
    if (!rst_ni || state_q == Flush) begin
      at_q     <= '0;
      skip_q   <= 1'b0;
      looked_q <= 1'b0;
      number_q <= '0;
    end
    if (!rst_ni) state_q <= Head;
  end

  // ---- elements ---------------------------------------------------------------------------------

  // A copy; more of it than 16 bits of an offset is 0, which is refused.
  function automatic logic [8:0] length(logic [7:0] code);
    length = code[1:0] == 2'd1 ? 9'(code[4:2]) + 9'd4 : 9'(code[7:2]) + 9'd1;
  endfunction
  function automatic logic [15:0] near_offset(logic [23:0] code);
    near_offset = code[1:0] == 2'd1 ? 16'({code[7:5], code[15:8]}) : code[23:8];
  endfunction

  // Literals are gathered to 16 or to a copy behind them, but with 16 bytes leave as they come, with
  // the copy of their own step.
  logic v1_q, end1_q, fin1_q, copy1_q, bad1_q, pair1_q, literal1_q, second_literal1_q;
  count_t n1_q, begin1_q;
  logic [8*Shown-1:0] bytes1_q;
  logic [39:0] tag1;
  logic [23:0] second1;
  logic [4:0] gathered_q, gathered, n2_q, second_n2_q, second_n_match2_q, second_at1_q;
  logic v2_q, end2_q, bad2_q, two2_q, push1, of_second1;
  logic [8:0] n_match2_q;
  logic [15:0] offset2_q, second_offset2_q;
  logic [LogBytes-1:0] at1_q;
  assign tag1       = bytes1_q[8*at1_q+:40];
  assign second1    = bytes1_q[8*second_at1_q+:24];
  assign of_second1 = pair1_q && literal1_q;  // a literal and its copy are one element
  assign gathered   = gathered_q + 5'(n1_q);
  assign push1      = v1_q && (copy1_q || end1_q || fin1_q ||
                               (Bytes == 8 ? gathered[4] : n1_q != '0));
  always_ff @(posedge clk_i) begin
    v1_q              <= step || (state_q == Ended && room_q);
    end1_q            <= state_q == Ended;
    bad1_q            <= bad_q || wrong_q;
    fin1_q            <= state_d == Ended;
    copy1_q           <= step && state_q == Tag && (!tag.literal || two) &&
                         !(looked_q && over_q && !close_q);
    pair1_q           <= two;
    literal1_q        <= tag.literal;
    second_literal1_q <= pair.literal;
    n1_q              <= step && !(looked_q && over_q && !close_q) ? n : '0;
    begin1_q          <= two && !tag.literal ? count_t'(tag.next) + count_t'(1) :
                                               count_t'(at_q) + count_t'(state_q == Tag);
    at1_q             <= at_q;
    second_at1_q      <= tag.next;
    bytes1_q          <= bytes[8*Shown-1:0];

    v2_q              <= push1;
    end2_q            <= end1_q;
    bad2_q            <= bad1_q;
    two2_q            <= pair1_q && !literal1_q;
    n2_q              <= pair1_q && !literal1_q ? '0 : gathered;
    n_match2_q        <= '0;
    if (copy1_q) n_match2_q <= length(of_second1 ? second1[7:0] : tag1[7:0]);
    offset2_q         <= of_second1 ? near_offset(second1) :
                         tag1[1:0] == 2'd3 && tag1[39:24] != '0 ? '0 : near_offset(tag1[23:0]);
    second_n2_q       <= second_literal1_q ? 5'(n1_q) : '0;
    second_n_match2_q <= second_literal1_q ? '0 : 5'(length(second1[7:0]));
    second_offset2_q  <= near_offset(second1);
    if (v1_q) gathered_q <= push1 || Bytes == 16 ? '0 : gathered;
    if (!rst_ni) begin
      v1_q       <= 1'b0;
      v2_q       <= 1'b0;
      gathered_q <= '0;
    end
  end

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

  wpr_lz_copy #(.Bytes(Bytes), .Exact(1'b1)) copy (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid    (s_cmd_tvalid && state_q == Size),
    .s_cmd_tready    (copy_ready),
    .s_cmd_tdata     (size_q > 35'(s_cmd_tdata) ? '0 : size_q[22:0]),
    .s_valid_i       (element_valid),
    .s_ready_o       (element_ready),
    .s_end_i         (element.last),
    .s_bad_i         (element.bad),
    .s_n_literals_i  (element.n_literals),
    .s_n_match_i     (element.n_match),
    .s_offset_i      (element.offset),
    .s_two_i         (second.two),
    .s_n_literals2_i (second.n_literals),
    .s_n_match2_i    (second.n_match),
    .s_offset2_i     (second.offset),
    .literals_n_i    (n1_q),
    .literals_begin_i(begin1_q),
    .literals_first_i('1),
    .literals_gap_i  ('0),
    .literals_bytes_i(bytes1_q[16*Bytes-1:0]),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
