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
// Rate: `Bytes` a clock out. Two elements a clock, where they are a literal and a copy, a copy and a
// literal, or two copies: with 8 bytes literals of at most 7 bytes before a copy and of 5 behind one,
// with 16 of 12 (before a copy 14, but near a word's end) and copies of 16. A longer literal takes a
// clock for each `Bytes` and, of more than 60, one more for its length. With 8 bytes two far copies are
// made in two clocks of three (wpr_lz_bytes). Latency 23 clocks with 8, 26 with 16. A packet of S
// bytes of code that may have N takes at most S + N + 40 clocks, whatever its bytes are, while both
// sides move.
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
  localparam int unsigned MostTwo = Bytes == 8 ? 7 : 14;  // of them with a copy behind them
  localparam int unsigned MostBehind = Bytes == 8 ? 5 : 12;  // or before them
  localparam int unsigned Shown = Bytes == 8 ? 24 : 32;  // bytes that a step may reach
  typedef logic [LogBytes:0] count_t;
  typedef logic [$clog2(3*Bytes)-1:0] size_t;
  typedef struct packed {
    logic       literal;
    logic       more;  // its length is in bytes of its own
    logic       done;  // no literals but those that follow at once
    logic       first;  // it may be the first of two elements
    logic       copy;  // with an offset of up to 16 bits, behind a literal
    logic       behind;  // an element that may stand behind a copy
    logic [3:0] past;  // bytes that are taken behind it: of a literal 0 to Most of its own
  } tag_t;
  // Of two elements the end must be one of the first two words, or of three with 8 bytes.
  function automatic tag_t tag_of(logic [7:0] code, int j);
    automatic logic [5:0] high = code[7:2];
    automatic logic literal = code[1:0] == 2'd0;
    automatic logic all = high < 6'(Most);
    automatic logic few = Bytes == 8 || code[1:0] == 2'd1 || high < 6'd16;  // bytes of a copy
    tag_of.literal = literal;
    tag_of.more    = literal && high >= 6'd60;
    tag_of.done    = literal && all;
    tag_of.copy    = code[1:0] == 2'd1 || code[1:0] == 2'd2;
    tag_of.first   = literal ? high < 6'(27 - j < int'(MostTwo) ? 27 - j : int'(MostTwo)) :
                               tag_of.copy && few;
    tag_of.behind  = literal ? high < 6'(MostBehind) : tag_of.copy && few;
    tag_of.past    = !literal ? (code[1:0] == 2'd1 ? 4'd1 : code[1:0] == 2'd2 ? 4'd2 : 4'd4) :
                     high >= 6'd60 ? '0 : all ? high[3:0] + 4'd1 : 4'(First);
  endfunction

  typedef enum logic [2:0] {Head, Size, Tag, Length, Literals, Ended, Flush} state_e;
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

  // Of each byte of a word, as a tag, on the word's way to the first place: what it is; what stands
  // behind its element; and whether a step takes both. It does so only before the packet's end.
  typedef struct packed {
    tag_t       tag;
    logic       two;
    logic       literal_behind;  // the second one, behind a copy
    logic       leaves;          // what is taken reaches the next word
    logic [3:0] n;               // literals: one of both at most has some
    logic [4:0] first_next;      // where the next element lies,
    logic [4:0] next;            // and where what is not taken
  } step_t;
  tag_t [Bytes-1:0] third_q, second_q, behind_q;
  step_t [Bytes-1:0] steps, steps_q;
  logic [16*Bytes-1:0] third_bytes;  // and those that come
  assign third_bytes = {come, bytes[16*Bytes+:8*Bytes]};
  always_comb begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic tag_t first = second_q[j];
      automatic tag_t behind = behind_q[j];
      automatic logic two = more && first.first && (first.literal ? behind.copy : behind.behind);
      steps[j].tag            = first;
      steps[j].two            = two;
      steps[j].literal_behind = two && behind.literal;
      steps[j].n              = (first.literal ? first.past : '0) |
                                (two && behind.literal ? behind.past : '0);
      steps[j].first_next     = 5'(j + 1) + 5'(first.past);
      steps[j].next           = steps[j].first_next + (two ? 5'(behind.past) + 5'd1 : '0);
      steps[j].leaves         = steps[j].next >= 5'(Bytes);
    end
  end
  always_ff @(posedge clk_i) begin
    if (shift) begin
      second_q <= third_q;
      steps_q  <= steps;
      for (int j = 0; j < int'(Bytes); j++) begin
        // Of the first of two, 1 to Bytes bytes behind it.
        automatic int at_behind = j + 1 + int'(third_q[j].past[LogBytes-1:0]);
        third_q[j]  <= tag_of(come[8*j+:8], j);
        behind_q[j] <= tag_of(third_bytes[8*at_behind+:8], 0);
      end
    end
  end

  // ---- a step: a tag and literals behind it, two elements, literals more, or a byte of a length -

  logic [24:0] rest_q;  // literals behind the next ones
  logic [2:0] number_q;  // of a byte of a length
  logic [1:0] last_number_q;
  count_t n_q;  // the next literals; none where a length has just come, which is one less
  count_t take_q;  // what is taken where no tag is: these, or a byte of a length
  logic done_q, skip_q, room_q, bad_q, over_q, close_q, looked_q, empty_q;
  logic [LogBytes-1:0] at_q;  // of the next byte, in the first word
  step_t found;
  tag_t tag;
  logic step, two, leaves, last_byte;
  count_t n;
  logic [4:0] next;
  logic [7:0] value;
  assign found = steps_q[at_q];
  assign tag   = found.tag;
  assign value = bytes[8*at_q+:8];
  // With the packet's end in sight a step takes two clocks: one looks whether it is reached.
  assign step  = full && !skip_q && room_q && (looked_q || !ended) && state_q != Size &&
                 state_q != Ended && state_q != Flush;
  assign two   = state_q == Tag && found.two;
  always_comb begin
    n         = '0;
    next      = 5'(at_q) + 5'(take_q);
    last_byte = number_q[1:0] == last_number_q;
    if (state_q == Tag) begin
      n    = count_t'(found.n);
      next = found.next;
    end else if (state_q == Literals) begin
      n = n_q;
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
  // Whether next is in another word, but known earlier than that, as the window waits for it. Of the
  // sum of at_q and take_q only the carry.
  logic carry;
  always_comb begin
    carry = 1'b0;
    for (int i = 0; i < int'(LogBytes); i++) begin
      carry = (at_q[i] && take_q[i]) || (carry && (at_q[i] || take_q[i]));
    end
    leaves = state_q == Tag ? found.leaves : carry || take_q[LogBytes];
  end
  assign pop = full && (skip_q || (step && leaves));

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
  count_t n_next;
  assign dummy    = n_q == '0;
  assign few_left = value[7:2] < 6'(First + Bytes);
  assign n_next   = rest_q[24:LogBytes] != '0 ? count_t'(Bytes) :
                    count_t'(rest_q[LogBytes-1:0]) + count_t'(dummy);
  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    looked_q <= full && ended && !looked_q && !skip_q && state_q != Size;
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
          take_q        <= tag.more ? count_t'(1) :
                           few_left ? count_t'(value[7:2] - 6'(First - 1)) : count_t'(Bytes);
          number_q      <= '0;
          last_number_q <= value[3:2];
          // Of a literal of Most + 1 to 60 the rest.
          n_q           <= tag.more ? '0 : few_left ? count_t'(value[7:2] - 6'(First - 1)) :
                                           count_t'(Bytes);
          done_q        <= !tag.more && few_left;
          rest_q        <= tag.more ? '0 : 25'(value[7:2]) - 25'(First - 1 + Bytes);
        end
        Length: begin
          take_q   <= last_byte ? '0 : count_t'(1);
          number_q <= number_q + 3'd1;
          for (int i = 0; i < 3; i++) if (number_q == 3'(i)) rest_q[8*i+:8] <= value;
        end
        default: begin
          n_q    <= n_next;
          take_q <= n_next;
          done_q <= rest_q <= (dummy ? 25'(Bytes - 1) : 25'(Bytes));
          rest_q <= rest_q - (dummy ? 25'(Bytes - 1) : 25'(Bytes));
        end
      endcase
    end
    if (pop) skip_q <= Bytes == 8 && step && next[4];
    if (!rst_ni || state_q == Flush) begin
      at_q     <= '0;
      skip_q   <= 1'b0;
      looked_q <= 1'b0;
      number_q <= '0;
      take_q   <= count_t'(1);
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
  logic v1_q, end1_q, fin1_q, copy1_q, bad1_q, pair1_q, literal1_q, literal_behind1_q;
  count_t n1_q, n_first1_q, begin1_q;  // literals of a step, and those before a copy
  logic [8*Shown-1:0] bytes1_q;
  logic [39:0] tag1;
  logic [23:0] second1;
  logic [4:0] gathered_q, gathered, n2_q, second_n2_q, second_at1_q;
  logic [6:0] second_n_match2_q;
  logic v2_q, end2_q, bad2_q, two2_q, push1, of_second1;
  logic [8:0] n_match2_q;
  logic [15:0] offset2_q, second_offset2_q;
  logic [LogBytes-1:0] at1_q;
  assign tag1       = bytes1_q[8*at1_q+:40];
  assign second1    = bytes1_q[8*second_at1_q+:24];
  assign of_second1 = pair1_q && literal1_q;  // a literal and its copy are one element
  assign gathered   = gathered_q + 5'(n_first1_q);
  assign push1      = v1_q && (copy1_q || end1_q || fin1_q ||
                               (Bytes == 8 ? gathered[4] : n1_q != '0));
  always_ff @(posedge clk_i) begin
    v1_q              <= step || (state_q == Ended && room_q);
    end1_q            <= state_q == Ended;
    bad1_q            <= bad_q || wrong_q;
    fin1_q            <= looked_q && over_q && state_q != Head;
    copy1_q           <= step && state_q == Tag && (!tag.literal || two) &&
                         !(looked_q && over_q && !close_q);
    pair1_q           <= two;
    literal1_q        <= tag.literal;
    literal_behind1_q <= two && found.literal_behind;
    n1_q              <= step && !(looked_q && over_q && !close_q) ? n : '0;
    n_first1_q        <= step && !(looked_q && over_q && !close_q) &&
                         !(two && found.literal_behind) ? n : '0;
    begin1_q          <= two && !tag.literal ? count_t'(found.first_next) + count_t'(1) :
                                               count_t'(at_q) + count_t'(state_q == Tag);
    at1_q             <= at_q;
    second_at1_q      <= found.first_next;
    bytes1_q          <= bytes[8*Shown-1:0];

    v2_q              <= push1;
    end2_q            <= end1_q;
    bad2_q            <= bad1_q;
    two2_q            <= pair1_q && !literal1_q && !(Bytes == 8 && literal_behind1_q);
    n2_q              <= gathered;
    n_match2_q        <= '0;
    if (copy1_q) n_match2_q <= length(of_second1 ? second1[7:0] : tag1[7:0]);
    offset2_q         <= of_second1 ? near_offset(second1) :
                         tag1[1:0] == 2'd3 && tag1[39:24] != '0 ? '0 : near_offset(tag1[23:0]);
    second_n2_q       <= literal_behind1_q ? 5'(n1_q) : '0;
    second_n_match2_q <= literal_behind1_q ? '0 : 7'(length(second1[7:0]));
    second_offset2_q  <= near_offset(second1);
    if (v1_q) begin
      gathered_q <= gathered;
      if (push1) gathered_q <= Bytes == 8 && literal_behind1_q ? 5'(n1_q) : '0;
    end
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
    logic [6:0] n_match;
    logic [15:0] offset;
  } second_t;
  element_t element;
  second_t second, second_in;
  assign second_in = {two2_q, second_n2_q, second_n_match2_q, second_offset2_q};
  wpr_fifo #(.Width($bits(element_t) + $bits(second_t)), .LogDepth(LogElements)) elements (
    .clk_i,
    .rst_ni,
    .s_valid_i(v2_q),
    .s_ready_o(),
    .s_data_i ({second_in, bad2_q, end2_q, n2_q, n_match2_q, offset2_q}),
    .m_valid_o(element_valid),
    .m_ready_i(element_ready),
    .m_data_o ({second, element}),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) begin
    room_q <= rst_ni && level < (LogElements + 1)'((1 << LogElements) - 6);
  end

  wpr_lz_copy #(.Bytes(Bytes), .Matches(2), .Exact(1'b1)) copy (
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
    .literals_behind_i('0),
    .literals_bytes_i(bytes1_q[16*Bytes-1:0]),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
