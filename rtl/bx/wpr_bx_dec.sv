// SPDX-License-Identifier: Apache-2.0
// bx decoder for float32 (codecs/bx/spec.md): a packet of chunks in, 512 bits a clock; a packet of
// float32 words out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock; about 20 to 35 clocks more a chunk of 4096. Latency about 35 clocks.
//
// A window shows the next 32 words of 16 bits, wherever they begin, three clocks after it is known
// how many are taken: one for a head, up to 16 for a bitmap, 32 for headers, which are kept, and
// then for each group its planes. How many those are follows from headers ahead of the window; what
// is left of the loop is one addition.
module wpr_bx_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: constant from two clocks before a packet until its last value has left. Tied to
  // constants, the logic for all other settings goes away.
  input logic [4:0] cfg_m_i,         // fraction bits kept, 1 to 23
  input logic       cfg_midpoint_i,  // round=midpoint

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // read with tlast only
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Lanes = 16;
  localparam int unsigned GroupWidth = CountWidth - 4;

  logic move;  // all behind the rows moves at once

  // ---- rows of 32 words: row 0 is being read, row 1 is behind it --------------------------------

  logic v0_q, v1_q, last0_q, last1_q, odd0_q, odd1_q, shift;
  logic [511:0] row0_q, row1_q;
  logic [5:0] words0_q, words1_q;  // of the last row
  logic [5:0] words_in;
  logic odd_in;
  always_comb begin
    words_in = '0;
    odd_in   = 1'b0;
    for (int i = 0; i < 32; i++) begin
      // The last one that is there.
      if (s_axis_tkeep[2*i] && (i == 31 || !s_axis_tkeep[2*(i%31)+2])) words_in |= 6'(i + 1);
      odd_in = odd_in || (s_axis_tkeep[2*i] && !s_axis_tkeep[2*i+1]);
    end
  end
  logic up;  // row 1 becomes row 0
  assign up            = v1_q && (shift || !v0_q);
  assign s_axis_tready = !v1_q || up;
  always_ff @(posedge clk_i) begin
    if (up) begin
      row0_q   <= row1_q;
      last0_q  <= last1_q;
      words0_q <= words1_q;
      odd0_q   <= odd1_q;
    end
    if (s_axis_tready) begin
      row1_q   <= s_axis_tdata;
      last1_q  <= s_axis_tlast;
      words1_q <= words_in;
      odd1_q   <= odd_in;
    end
    v0_q <= up || (v0_q && !shift);
    v1_q <= s_axis_tready ? s_axis_tvalid : v1_q;
    if (!rst_ni) {v0_q, v1_q} <= '0;
  end

  // ---- what is taken next -----------------------------------------------------------------------

  typedef enum logic [3:0] {
    Idle, Head, HeadWait, Map, MapWait, Count, Headers, HeadersWait, Groups, Refuse, Drain
  } state_t;
  state_t state_q;

  // What goes with a window.
  typedef struct packed {
    logic       head;
    logic       map;
    logic       headers;
    logic       group;
    logic       present;
    logic       mixed;
    logic       negative;
    logic       zero;
    logic       full;
    logic [3:0] width;
    logic [7:0] base;
    logic       last;
    logic       bad;
    logic [3:0] rest;  // values of a last group, less one
  } tag_t;
  tag_t tag, tag1_q, tag2_q, tag3_q;

  logic [5:0] at_q, wanted;  // words of row 0 that were taken, 0 to 32; words to take
  logic [6:0] next;
  logic asks, known, short, take, failed_q;
  assign next  = 7'(at_q) + 7'(wanted);
  // Row 1 may be needed. It is there, or comes, unless row 0 is the last.
  assign known = v0_q && (last0_q || v1_q);
  assign take  = move && asks && known;
  // A row that was read to its end goes, but for the last one: that tells whether all was read.
  assign shift = (take && next[6:5] != '0 && !last0_q) || (state_q == Drain && v0_q);
  // Where the packet ends, if it does in these two rows. What is not there was taken all the same:
  // it is the last thing that is.
  logic [6:0] end_at;
  logic ends, odd;
  assign ends   = last0_q || last1_q;
  assign end_at = last0_q ? 7'(words0_q) : 7'd32 + 7'(words1_q);
  assign odd    = last0_q ? odd0_q : odd1_q;
  assign short  = ends && next > end_at;
  always_ff @(posedge clk_i) begin
    if (state_q == Drain || state_q == Idle) at_q <= '0;
    else if (take) at_q <= shift ? {1'b0, next[4:0]} : next[5:0];
    failed_q <= take && short;
  end

  // The window, pipelined: by 8 words, by 2, by 1.
  logic [39*16-1:0] window1_q;
  logic [33*16-1:0] window2_q;
  logic [511:0] window_q;
  logic [2:0] at1_q;
  logic at2_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      window1_q <= (39 * 16)'({row1_q, row0_q} >> {at_q[4:3], 7'd0});
      at1_q     <= at_q[2:0];
      window2_q <= (33 * 16)'(window1_q >> {at1_q[2:1], 5'd0});
      at2_q     <= at1_q[0];
      window_q  <= at2_q ? window2_q[33*16-1:16] : window2_q[511:0];
      tag1_q    <= tag;
      tag2_q    <= tag1_q;
      tag3_q    <= tag2_q;
    end
    if (!rst_ni) {tag3_q, tag2_q, tag1_q} <= '0;
  end

  // ---- the chunk's head, bitmap and headers -----------------------------------------------------

  logic [GroupWidth-1:0] groups_q;  // of the packet that are left, less one
  logic [3:0] rest_q;               // values of its last group, less one
  // Of the chunk, a clock after it has begun: they are wanted later.
  logic [7:0] chunk_groups_q;  // less one
  logic chunk_is_last_q;
  logic [4:0] map_words_q;
  always_ff @(posedge clk_i) begin
    chunk_is_last_q <= groups_q[GroupWidth-1:8] == '0;
    chunk_groups_q  <= groups_q[GroupWidth-1:8] == '0 ? groups_q[7:0] : 8'hFF;
    map_words_q     <= 5'(chunk_groups_q[7:4]) + 5'd1;
  end

  logic [14:0] left_q;  // words of the chunk
  logic dense_q, empty_q;
  logic [8:0] present_q, headers_left_q;
  logic [5:0] row_headers_q;  // of these, in the next row
  logic [255:0] map_q;
  logic [3:0] count_q;
  logic [5:0] ones_q;

  function automatic logic [5:0] ones(input logic [31:0] bits);
    logic [5:0] sum;
    sum = '0;
    for (int i = 0; i < 32; i++) sum += 6'(bits[i]);
    return sum;
  endfunction

  function automatic logic [5:0] in_row(input logic [8:0] headers);
    return headers[8:5] != '0 ? 6'd32 : {1'b0, headers[4:0]};
  endfunction

  // Headers, 32 a row; a group's is read two clocks before its planes are taken.
  logic [2:0] header_row_q;
  logic [7:0] header_q;  // the next present group's
  logic [31:0][15:0] header_row;
  logic [15:0] header;
  for (genvar i = 0; i < 32; i++) begin : g_headers
    (* ram_style = "distributed" *) logic [15:0] headers_q[8];
    always_ff @(posedge clk_i) begin
      if (tag3_q.headers && move) headers_q[header_row_q] <= window_q[16*i+:16];
    end
    assign header_row[i] = headers_q[header_q[7:5]];
  end
  assign header = header_row[header_q[4:0]];

  // ---- groups ahead of the window ---------------------------------------------------------------

  logic ahead, more_q, v_h1_q, v_h2_q, present_h1_q, present_h2_q, last_h1_q, last_h2_q, bad_h2_q;
  logic [15:0] header_h1_q, header_h2_q;
  logic [5:0] planes_h2_q;
  logic [7:0] ahead_q;  // groups to be read ahead, less one
  logic bit_next;
  assign bit_next = !empty_q && (dense_q || map_q[0]);
  assign ahead    = !v_h2_q || (take && state_q == Groups);
  always_ff @(posedge clk_i) begin
    if (state_q != Groups) begin
      {v_h1_q, v_h2_q} <= '0;
      more_q           <= 1'b1;
      ahead_q          <= chunk_groups_q;
      header_q         <= '0;
    end else if (ahead) begin
      v_h1_q       <= more_q;
      present_h1_q <= bit_next;
      header_h1_q  <= header;
      last_h1_q    <= ahead_q == '0;
      if (more_q) begin
        header_q <= header_q + 8'(bit_next);
        ahead_q  <= ahead_q - 8'd1;
        more_q   <= ahead_q != '0;
      end
      v_h2_q       <= v_h1_q;
      present_h2_q <= present_h1_q;
      last_h2_q    <= last_h1_q;
      header_h2_q  <= header_h1_q;
      planes_h2_q  <= !present_h1_q ? '0
                    : 6'(header_h1_q[13] ? 5'd23 : cfg_m_i) + 6'(header_h1_q[11:8]) +
                      6'(header_h1_q[15]);
      bad_h2_q     <= present_h1_q && (header_h1_q[11:8] > 4'd8 || header_h1_q[15:14] == 2'd3 ||
                                       (header_h1_q[13] && cfg_m_i == 5'd23));
    end
  end
  // All headers were used when the last group stands in h2.
  logic used_q;
  always_ff @(posedge clk_i) if (ahead) used_q <= empty_q || 9'(header_q) == {1'b0, present_q[7:0]};

  // ---- the sequence -----------------------------------------------------------------------------

  logic chunk_good, packet_good;
  assign chunk_good  = (empty_q || left_q == 15'(planes_h2_q)) && used_q;
  assign packet_good = chunk_good && ends && next == end_at && !odd;
  always_comb begin
    case (state_q)
      Head: {asks, wanted} = {!failed_q, 6'd1};
      Map: {asks, wanted} = {1'b1, 6'(map_words_q)};
      Headers: begin
        asks   = row_headers_q != '0 && !failed_q;
        wanted = row_headers_q;
      end
      Groups: {asks, wanted} = {v_h2_q && !bad_h2_q && !failed_q, planes_h2_q};
      default: {asks, wanted} = '0;
    endcase
    tag          = '0;
    tag.head     = take && state_q == Head;
    tag.map      = take && state_q == Map;
    tag.headers  = take && state_q == Headers;
    tag.group    = (take && state_q == Groups) || (move && state_q == Refuse);
    tag.present  = present_h2_q;
    tag.mixed    = header_h2_q[15];
    tag.negative = header_h2_q[14];
    tag.full     = header_h2_q[13];
    tag.zero     = header_h2_q[12] || !present_h2_q;
    tag.width    = header_h2_q[11:8];
    tag.base     = header_h2_q[7:0];
    tag.last     = state_q == Refuse || (last_h2_q && chunk_is_last_q);
    tag.rest     = rest_q;
    tag.bad      = state_q == Refuse || !packet_good;
  end

  logic stuck;  // no more of this packet can be read
  assign stuck = failed_q || (state_q == Groups && v_h2_q && bad_h2_q);
  assign s_cmd_tready = state_q == Idle;
  always_ff @(posedge clk_i) begin
    case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Head;
      Head: if (take) state_q <= HeadWait;
      HeadWait:
        if (tag3_q.head && move) begin
          state_q <= window_q[15:0] == '0 ? Groups : window_q[15] ? Headers : Map;
        end
      Map: if (take) state_q <= MapWait;
      MapWait: if (tag3_q.map && move) state_q <= Count;
      Count: if (count_q == 4'd8) state_q <= Headers;
      Headers: begin
        if (row_headers_q == '0) state_q <= HeadersWait;
        else if (take && headers_left_q[8:5] == '0) state_q <= HeadersWait;
      end
      HeadersWait: if (!tag1_q.headers && !tag2_q.headers && !tag3_q.headers) state_q <= Groups;
      Groups:
        if (take && last_h2_q) state_q <= chunk_is_last_q ? Drain : chunk_good ? Head : Refuse;
      Refuse: if (move) state_q <= Drain;
      default: if (v0_q && last0_q) state_q <= Idle;
    endcase
    if (stuck && state_q != Refuse && state_q != Drain) state_q <= Refuse;

    if (state_q == Idle) {groups_q, rest_q} <= s_cmd_tdata;
    else if (take && state_q == Groups && last_h2_q) groups_q <= groups_q - GroupWidth'(256);

    if (state_q == HeadWait && tag3_q.head) begin
      left_q         <= window_q[14:0];
      dense_q        <= window_q[15];
      empty_q        <= window_q[15:0] == '0;
      present_q      <= window_q[15] ? 9'(chunk_groups_q) + 9'd1 : '0;
      headers_left_q <= 9'(chunk_groups_q) + 9'd1;
      row_headers_q  <= in_row(9'(chunk_groups_q) + 9'd1);
    end else if (take) begin
      left_q <= left_q - 15'(wanted);
    end
    count_q <= state_q == Count ? count_q + 4'd1 : '0;
    ones_q  <= state_q == Count && !count_q[3] ? ones(map_q[31:0]) : '0;
    if (state_q == Count) present_q <= present_q + 9'(ones_q);
    if (state_q == Count) begin
      headers_left_q <= present_q + 9'(ones_q);
      row_headers_q  <= in_row(present_q + 9'(ones_q));
    end else if (take && state_q == Headers) begin
      headers_left_q <= headers_left_q[8:5] == '0 ? '0 : headers_left_q - 9'd32;
      row_headers_q  <= headers_left_q[8:5] == '0 ? '0 : in_row(headers_left_q - 9'd32);
    end
    if (tag3_q.map && move) begin
      for (int i = 0; i < 16; i++) begin
        map_q[16*i+:16] <= 5'(i) < map_words_q ? window_q[16*i+:16] : '0;
      end
    end else if (state_q == Count && !count_q[3]) begin
      map_q <= {map_q[31:0], map_q[255:32]};
    end else if (state_q == Groups && ahead && more_q) begin
      map_q <= map_q >> 1;
    end
    if (state_q == HeadWait) header_row_q <= '0;
    else if (tag3_q.headers && move) header_row_q <= header_row_q + 3'd1;
    if (!rst_ni) state_q <= Idle;
  end

  // ---- 4: fields from planes --------------------------------------------------------------------

  tag_t tag4_q;
  logic [4:0] align_q;  // 23 - m
  logic [Lanes-1:0] sign4_q;
  logic [Lanes-1:0][7:0] offset4_q;
  logic [Lanes-1:0][22:0] fraction4_q;
  logic [7:0] mask;
  logic [Lanes-1:0][30:0] code;  // offset and fraction
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      for (int p = 0; p < 31; p++) begin
        code[l][p] = tag3_q.mixed ? window_q[16*(p+1)+l] : window_q[16*p+l];
      end
      if (!tag3_q.full) code[l] = {8'(code[l] >> cfg_m_i), 23'(code[l][22:0] << align_q)};
    end
  end
  always_comb for (int i = 0; i < 8; i++) mask[i] = 4'(i) < tag3_q.width;
  always_ff @(posedge clk_i) begin
    align_q <= 5'd23 - cfg_m_i;
    if (move) begin
      tag4_q <= tag3_q;
      for (int l = 0; l < int'(Lanes); l++) begin
        sign4_q[l]     <= tag3_q.mixed && window_q[l];
        offset4_q[l]   <= code[l][30:23] & mask;
        fraction4_q[l] <= code[l][22:0];
        if (!tag3_q.present) begin
          sign4_q[l]     <= 1'b0;
          offset4_q[l]   <= '0;
          fraction4_q[l] <= '0;
        end
      end
    end
    if (!rst_ni) tag4_q <= '0;
  end

  // ---- 5: words ---------------------------------------------------------------------------------

  logic group5_q, full5_q, last5_q, bad5_q;
  logic [3:0] rest5_q;
  logic [Lanes-1:0][31:0] word5_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      {group5_q, full5_q, last5_q, bad5_q} <= {tag4_q.group, tag4_q.full, tag4_q.last, tag4_q.bad};
      rest5_q <= tag4_q.rest;
      for (int l = 0; l < int'(Lanes); l++) begin
        word5_q[l] <= {{sign4_q[l], offset4_q[l]} +
                           (tag4_q.zero && offset4_q[l] == '0 ? 9'd0
                                                              : {tag4_q.negative, tag4_q.base}),
                       fraction4_q[l]};
      end
    end
    if (!rst_ni) group5_q <= 1'b0;
  end

  // ---- 6: out -----------------------------------------------------------------------------------

  logic [Lanes-1:0] beyond;
  logic [Lanes-1:0][31:0] values;
  logic [22:0] half_q;
  logic more;  // what is after the last value is not +0
  always_comb begin
    more = 1'b0;
    for (int l = 0; l < int'(Lanes); l++) begin
      beyond[l] = last5_q && 4'(l) > rest5_q;
      more      = more || (beyond[l] && word5_q[l] != '0);
      values[l] = word5_q[l] | {9'b0, half_q & {23{word5_q[l][30:23] != 8'h00 &&
                                                   word5_q[l][30:23] != 8'hFF && !full5_q}}};
    end
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 23; i++) half_q[i] <= i == 22 - int'(cfg_m_i) && cfg_midpoint_i;
  end
  wpr_rows_out out (
    .clk_i,
    .rst_ni,
    .move_o      (move),
    .row_valid_i (group5_q),
    .row_last_i  (last5_q),
    .row_wrong_i (last5_q && (bad5_q || more)),
    .row_keep_i  (~beyond),
    .row_values_i(values),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
