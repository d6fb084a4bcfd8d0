// SPDX-License-Identifier: Apache-2.0
// snappy decoder (codecs/snappy/spec.md): a packet of one raw Snappy stream in, 8 bytes a beat; a
// packet of the bytes that it expands to out, 8 a beat.
//
// How many bytes a packet may have comes by s_cmd, at most 4 MiB; how many it has stands at the
// stream's head. A code that the specification refuses, one for more bytes than the packet may
// have, and an offset of 64 KiB or more, which the reference does not write, end the packet with
// m_axis_tuser set beside m_axis_tlast; its bytes are then not to be used, there are never more
// than it may have, the rest of the input packet is thrown away and the next one begins afresh.
//
// Rate: an element a clock, 8 bytes a clock out; a literal of more than 8 bytes takes a clock for
// each 8 and, of more than 60, one more for its length. Latency 20 clocks. A packet of S bytes of
// code that may have N takes at most S + N + 40 clocks, whatever its bytes are, while both sides
// move.
module wpr_snappy_dec #(
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

  // ---- the code, and what its bytes are as tags -------------------------------------------------

  typedef struct packed {
    logic       literal;
    logic       more;  // its length is in bytes of its own
    logic       done;  // no literals but those that follow at once
    logic [3:0] n;     // these, 0 to 8
    logic [4:0] next;  // what is taken with them; and where it lies
  } tag_t;
  localparam int unsigned TagBits = $bits(tag_t);

  logic full, ended, pop;
  logic [63:0] come;
  tag_t [7:0] come_tags, tags;
  tag_t [15:0] later_tags;
  logic [191:0] bytes;
  logic [4:0] size;  // bytes in the window, with `ended`
  always_comb begin
    for (int j = 0; j < 8; j++) begin
      automatic logic [5:0] high = come[8*j+2+:6];
      automatic logic [1:0] kind = come[8*j+:2];
      automatic logic few = high < 6'd8;
      automatic logic [4:0] copy = kind == 2'd1 ? 5'd2 : kind == 2'd2 ? 5'd3 : 5'd5;
      come_tags[j].literal = kind == '0;
      come_tags[j].more    = kind == '0 && high >= 6'd60;
      come_tags[j].done    = kind == '0 && few;
      come_tags[j].n       = kind != '0 || high >= 6'd60 ? '0 : few ? high[3:0] + 4'd1 : 4'd8;
      come_tags[j].next    = 5'(j) + (kind != '0 ? copy : 5'd1 + 5'(come_tags[j].n));
    end
  end

  typedef enum logic [2:0] {Head, Size, Tag, Length, Literals, Ended, Flush} state_e;
  state_e state_q, state_d;
  wpr_lz_window #(.Beside(8 * TagBits)) window (
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
    .beside_o     ({later_tags, tags}),
    .pop_i        (pop),
    .flush_i      (state_q == Flush)
  );

  // ---- a step: a tag and up to 8 literals behind it, 8 literals more, or a byte of a length -----

  logic [2:0] at_q;  // of the next byte, in the first word
  logic [24:0] rest_q;  // literals behind the next ones
  logic [2:0] number_q;  // of a byte of a length
  logic [1:0] last_number_q;
  logic [3:0] n_q;  // the next literals; none where a length has just come, which is one less
  logic done_q, skip_q, room_q, bad_q, over_q, close_q, looked_q, empty_q;
  tag_t tag;
  logic step, last_byte;
  logic [3:0] n;
  logic [4:0] next;
  logic [7:0] value;
  assign tag   = tags[at_q];
  assign value = bytes[8*at_q+:8];
  // With the packet's end in sight a step takes two clocks: one looks whether it is reached.
  assign step  = full && !skip_q && room_q && (looked_q || !ended) && state_q != Size &&
                 state_q != Ended && state_q != Flush;
  always_comb begin
    n         = '0;
    next      = 5'(at_q) + 5'd1;
    last_byte = number_q[1:0] == last_number_q;
    if (state_q == Tag) begin
      n    = tag.n;
      next = tag.next;
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
  assign pop = skip_q || (step && next[4:3] != '0);

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

  logic dummy;
  assign dummy = n_q == '0;
  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    looked_q <= ended && !looked_q && !skip_q && state_q != Size;
    // The stream ends behind its head, a copy, or a literal's last byte.
    close_q  <= next == size && ((state_q == Tag && (tag.done || !tag.literal)) ||
                                 (state_q == Literals && done_q) ||
                                 (state_q == Head && !value[7]));
    over_q   <= next >= size;
    if (step) begin
      at_q  <= next[2:0];
      bad_q <= !close_q;
      unique case (state_q)
        Head: number_q <= number_q == '1 ? '1 : number_q + 3'd1;
        Tag: begin
          number_q      <= '0;
          last_number_q <= value[3:2];
          // Of a literal of 9 to 60 the rest.
          n_q           <= tag.more ? '0 : value[7:2] < 6'd16 ? value[5:2] - 4'd7 : 4'd8;
          done_q        <= !tag.more && value[7:2] < 6'd16;
          rest_q        <= tag.more ? '0 : 25'(value[7:2]) - 25'd15;
        end
        Length: begin
          number_q <= number_q + 3'd1;
          for (int i = 0; i < 3; i++) if (number_q == 3'(i)) rest_q[8*i+:8] <= value;
        end
        default: begin
          n_q    <= rest_q > 25'd7 ? 4'd8 : rest_q[3:0] + 4'(dummy);
          done_q <= rest_q <= (dummy ? 25'd7 : 25'd8);
          rest_q <= rest_q - (dummy ? 25'd7 : 25'd8);
        end
      endcase
    end
    if (pop) skip_q <= step && next[4];
    if (!rst_ni || state_q == Flush) begin
      at_q     <= '0;
      skip_q   <= 1'b0;
      looked_q <= 1'b0;
      number_q <= '0;
    end
    if (!rst_ni) state_q <= Head;
  end

  // ---- elements ---------------------------------------------------------------------------------

  // Literals are gathered to 16 or to a copy behind them.
  logic v1_q, end1_q, fin1_q, copy1_q, bad1_q;
  logic [3:0] n1_q, begin1_q;
  logic [191:0] bytes1_q;
  logic [39:0] tag1;
  logic [4:0] gathered_q, gathered, n2_q;
  logic v2_q, end2_q, bad2_q, push1;
  logic [8:0] n_match2_q;
  logic [15:0] offset2_q;
  logic [2:0] at1_q;
  assign tag1     = 40'(bytes1_q >> {at1_q, 3'b0});
  assign gathered = gathered_q + 5'(n1_q);
  assign push1    = v1_q && (copy1_q || end1_q || fin1_q || gathered[4]);
  always_ff @(posedge clk_i) begin
    v1_q     <= step || (state_q == Ended && room_q);
    end1_q   <= state_q == Ended;
    bad1_q   <= bad_q || wrong_q;
    fin1_q   <= state_d == Ended;
    copy1_q  <= step && state_q == Tag && !tag.literal && !(looked_q && over_q && !close_q);
    n1_q     <= step && !(looked_q && over_q && !close_q) ? n : '0;
    begin1_q <= 4'(at_q) + 4'(state_q == Tag);
    at1_q    <= at_q;
    bytes1_q <= bytes;

    v2_q       <= push1;
    end2_q     <= end1_q;
    bad2_q     <= bad1_q;
    n2_q       <= gathered;
    n_match2_q <= '0;
    if (copy1_q) n_match2_q <= tag1[1:0] == 2'd1 ? 9'(tag1[4:2]) + 9'd4 : 9'(tag1[7:2]) + 9'd1;
    // A far offset becomes 0, which is refused.
    offset2_q  <= tag1[1:0] == 2'd1 ? 16'({tag1[7:5], tag1[15:8]}) :
                  tag1[1:0] == 2'd3 && tag1[39:24] != '0 ? '0 : tag1[23:8];
    if (v1_q) gathered_q <= push1 ? '0 : gathered;
    if (!rst_ni) begin
      v1_q       <= 1'b0;
      v2_q       <= 1'b0;
      gathered_q <= '0;
    end
  end

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

  wpr_lz_copy #(.Exact(1'b1)) copy (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid    (s_cmd_tvalid && state_q == Size),
    .s_cmd_tready    (copy_ready),
    .s_cmd_tdata     (size_q > 35'(s_cmd_tdata) ? '0 : size_q[22:0]),
    .s_valid_i       (element_valid),
    .s_ready_o       (element_ready),
    .s_end_i         (element[30]),
    .s_bad_i         (element[31]),
    .s_n_literals_i  (element[29:25]),
    .s_n_match_i     (element[24:16]),
    .s_offset_i      (element[15:0]),
    .s_two_i         (1'b0),
    .s_n_literals2_i ('0),
    .s_n_match2_i    ('0),
    .s_offset2_i     ('0),
    .literals_n_i    (n1_q),
    .literals_begin_i(begin1_q),
    .literals_first_i('1),
    .literals_gap_i  ('0),
    .literals_bytes_i(bytes1_q[127:0]),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
