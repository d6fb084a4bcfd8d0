// SPDX-License-Identifier: Apache-2.0
// Decoder of the sparse codecs graddrop, dgc and topk, which have one code
// (codecs/common/sparse/spec.md): a packet of code in, 512 bits a beat; a packet of float32 words
// out, up to 16 a clock.
//
// The code does not hold the packet's number of values: s_cmd brings it. A code that the
// specification refuses ends the packet with m_axis_tuser set beside m_axis_tlast. The packet's
// values are then invalid and may be fewer; the next packet begins afresh. Bytes behind the last
// whole value are no part of a code.
//
// Positions follow the values, so a packet is stored. The memory holds two of the largest packets,
// so the next one comes in meanwhile. Values, high and low parts of positions are then read side by
// side, a word a clock.
//
// Rate: 16 values a clock, but for rows of 16 with more than one value sent, which take a clock for
// each, and 22 clocks more a packet; 16 values a clock where all are written. Latency: a packet,
// and about 60 clocks.
module wpr_sparse_dec #(
  parameter int unsigned LogValues = 14  // a block has up to 2^LogValues values; 9 or more
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                 s_cmd_tvalid,
  output logic                 s_cmd_tready,
  input  logic [LogValues-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Lanes = 16;
  localparam int unsigned LogRows = LogValues - 4;
  localparam int unsigned LogMemory = LogRows + 1;  // rows of two packets
  localparam int unsigned WidthBits = $clog2(LogValues + 1);
  localparam int unsigned LogFacts = 3;
  localparam int unsigned LogQueue = 4;

  typedef logic [LogMemory-1:0] at_t;  // a row's place
  typedef logic [LogValues-1:0] position_t;
  typedef logic [LogValues:0] count_t;
  typedef logic [LogRows:0] rows_t;
  typedef logic [LogValues+2:0] bytes_t;  // of a packet, without its count

  // ---- in: the count aside, the rest in rows that begin with the values -------------------------

  logic many, in_ready, body_valid, body_ready, body_last, runt, full, write, close;
  logic free, pop_facts;
  logic [511:0] body;
  logic [63:0] body_keep;
  logic [31:0] head;
  rows_t in_rows_q;
  logic [LogMemory:0] used_q;
  logic [LogFacts-1:0] packets_q;  // that are in, and wait
  assign many          = packets_q[LogFacts-1];  // three more may be on their way
  assign s_axis_tready = in_ready && !many;
  // Without overlap, since one packet is counted at a time: one of nothing but its count waits
  // until the packet before has left.
  wpr_behead #(.Bytes(64), .Header(4), .Overlap(0)) behead (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(s_axis_tvalid && !many),
    .s_axis_tready(in_ready),
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .h_data_o     (head),
    .m_axis_tvalid(body_valid),
    .m_axis_tready(body_ready),
    .m_axis_tdata (body),
    .m_axis_tkeep (body_keep),
    .m_axis_tlast (body_last),
    .runt_o       (runt)
  );
  assign full       = used_q[LogMemory];
  assign body_ready = in_rows_q[LogRows] || !full;
  assign write      = body_valid && body_ready && !in_rows_q[LogRows];
  assign close      = body_valid && body_ready && body_last;

  // How many bytes a last row has: full sixteens, and where the ones end in what follows them.
  function automatic logic [2:0] sixteens_of(input logic [63:0] keep);
    return 3'(keep[15]) + 3'(keep[31]) + 3'(keep[47]) + 3'(keep[63]);
  endfunction
  function automatic logic [14:0] rest_of(input logic [63:0] keep);
    logic [14:0] rest;
    rest = '0;
    for (int s = 0; s < 4; s++) rest |= keep[16*s+:15] & {15{!keep[16*s+15]}};
    return rest;
  endfunction
  function automatic logic [3:0] size_of(input logic [14:0] rest);
    logic [3:0] size;
    size[3] = rest[7];
    size[2] = rest[7] ? rest[11] : rest[3];
    size[1] = rest[{size[3:2], 2'b01}];
    size[0] = rest[{size[3:1], 1'b0}];
    return size;
  endfunction

  // What is known of a packet when it is in; its size takes a clock more.
  logic closed_q, counted_q, bad_q, facts_bad_q;
  rows_t facts_rows_q;
  logic [2:0] sixteens_q;
  logic [14:0] rest_q;
  count_t facts_count_q;
  logic [31:0] head_q;
  logic [63:0] keep_q;
  rows_t stored_q, rows_q;  // rows_q: of the packet that is read
  at_t write_q;
  logic [511:0] rows[1 << LogMemory];
  always_ff @(posedge clk_i) begin
    if (write) write_q <= write_q + 1'b1;
    if (body_valid && body_ready) begin
      in_rows_q <= body_last ? '0 : in_rows_q + rows_t'(!in_rows_q[LogRows]);
    end
    closed_q      <= close || runt;
    head_q        <= runt ? s_axis_tdata[31:0] : head;
    keep_q        <= runt ? '0 : body_keep;
    stored_q      <= runt ? '0 : in_rows_q + rows_t'(write);
    bad_q         <= runt ? !s_axis_tkeep[3] : in_rows_q[LogRows];
    counted_q     <= closed_q;
    facts_bad_q   <= bad_q || head_q[31:LogValues+1] != '0;
    facts_rows_q  <= stored_q;
    sixteens_q    <= sixteens_of(keep_q);
    rest_q        <= rest_of(keep_q);
    facts_count_q <= head_q[LogValues:0];
    used_q        <= used_q + (LogMemory + 1)'(write)
                     - (free ? (LogMemory + 1)'(rows_q) : '0);
    packets_q     <= packets_q + LogFacts'(closed_q) - LogFacts'(pop_facts);
    if (!rst_ni) begin
      write_q   <= '0;
      in_rows_q <= '0;
      closed_q  <= 1'b0;
      counted_q <= 1'b0;
      used_q    <= '0;
      packets_q <= '0;
    end
  end
  always_ff @(posedge clk_i) if (write) rows[write_q] <= body;

  // ---- how a packet is to be read ---------------------------------------------------------------

  logic have_facts, facts_bad, layout_done, dense;
  rows_t facts_rows;
  logic [6:0] facts_size;
  count_t facts_count, n, plan_count;
  position_t plan_last, top;
  logic [2:0] pad;
  logic [WidthBits-1:0] width;
  logic [LogValues-2:0] high_bytes;
  logic [LogValues-3:0] low_bytes;
  wpr_fifo #(.Width(LogRows + LogValues + 10), .LogDepth(LogFacts)) facts (
    .clk_i,
    .rst_ni,
    .s_valid_i(counted_q),
    .s_ready_o(),  // there is room: packets_q
    .s_data_i ({facts_bad_q, facts_rows_q, sixteens_q, size_of(rest_q), facts_count_q}),
    .m_valid_o(have_facts),
    .m_ready_i(pop_facts),
    .m_data_o ({facts_bad, facts_rows, facts_size, facts_count}),
    .level_o  ()
  );

  typedef enum logic [2:0] {Wait, Layout, Size, Judge, Planned} plan_state_t;
  plan_state_t plan_state_q;
  logic begin_packet, plan_bad_q, plan_dense_q;
  rows_t plan_rows_q;
  logic [6:0] plan_size_q;
  bytes_t expected_q, given_q;
  assign pop_facts    = plan_state_q == Wait && have_facts && s_cmd_tvalid;
  assign s_cmd_tready = pop_facts;
  wpr_sparse_layout #(.LogValues(LogValues)) layout (
    .clk_i,
    .rst_ni,
    .start_i     (pop_facts),
    .last_i      (s_cmd_tdata),
    .count_i     (facts_count),
    .done_o      (layout_done),
    .last_o      (plan_last),
    .count_o     (plan_count),
    .n_o         (n),
    .width_o     (width),
    .top_o       (top),
    .high_bits_o (),
    .pad_o       (pad),
    .high_bytes_o(high_bytes),
    .low_bytes_o (low_bytes),
    .dense_o     (dense)
  );
  always_ff @(posedge clk_i) begin
    unique case (plan_state_q)
      Wait: begin
        plan_bad_q  <= facts_bad;
        plan_rows_q <= facts_rows;
        plan_size_q <= facts_size;
        if (pop_facts) plan_state_q <= Layout;
      end
      Layout: begin
        given_q <= {plan_rows_q - rows_t'(plan_rows_q != '0), 6'b0} + bytes_t'(plan_size_q);
        if (layout_done) plan_state_q <= Size;
      end
      Size: begin
        plan_dense_q <= plan_count == n;
        expected_q   <= {plan_count, 2'b00} + (plan_count == n ? '0 : bytes_t'(high_bytes)
                                                                     + bytes_t'(low_bytes));
        plan_state_q <= Judge;
      end
      Judge: begin
        plan_bad_q   <= plan_bad_q || plan_count > n || (dense && !plan_dense_q)
                        || expected_q != given_q;
        plan_state_q <= Planned;
      end
      default: if (begin_packet) plan_state_q <= Wait;
    endcase
    if (!rst_ni) plan_state_q <= Wait;
  end

  // ---- a packet ---------------------------------------------------------------------------------

  typedef enum logic [2:0] {Idle, Sparse, Dense, Refuse, Clear} state_t;
  state_t state_q;
  logic wrong_q, move, row_leaves, row_last, fresh;
  at_t base_q;
  position_t last_q, top_q;
  logic [WidthBits-1:0] width_q;
  logic [2:0] pad_q;               // bits behind the low parts
  logic [1:0] high_rest_q;         // bytes in the last of them, 0: four
  assign begin_packet = plan_state_q == Planned && state_q == Idle;
  assign fresh        = rst_ni && state_q != Clear && state_q != Idle;
  assign free         = state_q == Clear;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: begin
        if (begin_packet) begin
          state_q <= plan_bad_q ? Refuse : plan_dense_q ? Dense : Sparse;
        end
        rows_q       <= plan_rows_q;
        last_q       <= plan_last;
        top_q        <= top;
        width_q      <= width;
        pad_q       <= pad;
        high_rest_q <= high_bytes[1:0];
      end
      Sparse: if (wrong_q) state_q <= Refuse;
              else if (row_leaves && row_last) state_q <= Clear;
      Dense, Refuse: if (row_leaves && row_last) state_q <= Clear;
      default: begin
        state_q <= Idle;
        base_q  <= base_q + LogMemory'(rows_q);
      end
    endcase
    if (!rst_ni) begin
      state_q <= Idle;
      base_q  <= '0;
    end
  end

  // ---- the memory, read for three queues in turns: words by their numbers -----------------------

  typedef enum logic [1:0] {Value, High, Low} part_t;
  localparam int unsigned WordBits = LogValues + 1;
  logic [2:0][WordBits-1:0] next_q;   // words to read
  logic [2:0][LogValues:0] left_q;    // so many of them
  logic [2:0] some_q, final_word;     // there are some; it is one
  logic [2:0][LogQueue:0] held_q;     // words of a queue that are inside, or on their way
  logic [2:0] want, pop_q;
  logic pick, read_on, dense_next;
  part_t part;
  bytes_t low_at;
  assign low_at = {plan_count, 2'b00} + bytes_t'(high_bytes);
  always_comb begin
    for (int p = 0; p < 3; p++) begin
      want[p]       = some_q[p] && !held_q[p][LogQueue];
      final_word[p] = left_q[p] == count_t'(1);
    end
    part = want[High] ? High : want[Low] ? Low : Value;
    pick = state_q == Sparse && want != '0;
  end
  assign dense_next = state_q == Dense && some_q[Value];
  assign read_on    = state_q != Dense || move;
  always_ff @(posedge clk_i) begin
    if (state_q == Idle) begin
      next_q[Value] <= '0;
      left_q[Value] <= plan_dense_q ? count_t'(plan_last[LogValues-1:4]) + 1'b1 : plan_count;
      next_q[High]  <= plan_count;
      left_q[High]  <= count_t'(high_bytes[LogValues-2:2]) + count_t'(high_bytes[1:0] != '0);
      next_q[Low]   <= WordBits'(low_at >> 2);
      left_q[Low]   <= (count_t'(low_bytes) + count_t'(low_at[1:0]) + count_t'(3)) >> 2;
      some_q[Value] <= plan_dense_q || plan_count != '0;
      some_q[High]  <= !plan_dense_q && high_bytes != '0;
      some_q[Low]   <= !plan_dense_q && low_bytes != '0;
      held_q        <= '0;
    end else begin
      for (int p = 0; p < 3; p++) begin
        if (pick && part == part_t'(p)) begin
          next_q[p] <= next_q[p] + 1'b1;
          left_q[p] <= left_q[p] - 1'b1;
          some_q[p] <= !final_word[p];
        end
        held_q[p] <= held_q[p] + (LogQueue + 1)'(pick && part == part_t'(p))
                     - (LogQueue + 1)'(pop_q[p]);
      end
      if (dense_next && read_on) begin
        next_q[Value] <= next_q[Value] + WordBits'(Lanes);
        left_q[Value] <= left_q[Value] - 1'b1;
        some_q[Value] <= !final_word[Value];
      end
    end
  end

  logic [5:1] v_q;
  part_t [5:1] part_q;
  logic [4:2][3:0] lane_q;
  logic [5:1] end_q;  // the last one of its part
  logic [WordBits-1:0] word1_q;  // its number
  at_t at2_q;
  logic [511:0] row3_q, row4_q, row5_q;
  logic [Lanes-1:0] in_last_q;               // lanes of a packet's last row
  logic [Lanes-1:0] keep5_q;                 // those of row 5 that have values
  logic [Lanes-1:0] sign_only_q, no_more_q;  // of the upper and lower half of its words
  logic [31:0] word5_q;
  always_ff @(posedge clk_i) begin
    if (read_on) begin
      v_q     <= {v_q[4:1], pick || dense_next};
      part_q  <= {part_q[4:1], part};
      lane_q  <= {lane_q[3:2], word1_q[3:0]};
      end_q   <= {end_q[4:1], final_word[part]};
      word1_q <= next_q[part];
      at2_q   <= base_q + LogMemory'(word1_q >> 4);
      row4_q  <= row3_q;
      row5_q  <= row4_q;
      keep5_q <= end_q[4] ? in_last_q : '1;
      for (int l = 0; l < int'(Lanes); l++) begin
        sign_only_q[l] <= row4_q[32*l+16+:16] == 16'h8000;
        no_more_q[l]   <= row4_q[32*l+:16] == 16'h0000;
      end
    end
    for (int l = 0; l < int'(Lanes); l++) in_last_q[l] <= 4'(l) <= last_q[3:0];
    word5_q <= row4_q[32*lane_q[4]+:32];
    if (!fresh) v_q <= '0;
  end
  always_ff @(posedge clk_i) if (read_on) row3_q <= rows[at2_q];

  logic value_valid, high_valid, low_valid, high_ready, low_ready, high_end, low_end, join_go;
  logic [31:0] value, high_word, low_word;
  wpr_fifo #(.Width(32), .LogDepth(LogQueue)) values (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(v_q[5] && part_q[5] == Value && state_q == Sparse),
    .s_ready_o(),  // there is room: held_q
    .s_data_i (word5_q),
    .m_valid_o(value_valid),
    .m_ready_i(join_go),
    .m_data_o (value),
    .level_o  ()
  );
  wpr_fifo #(.Width(33), .LogDepth(LogQueue)) highs (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(v_q[5] && part_q[5] == High && state_q == Sparse),
    .s_ready_o(),
    .s_data_i ({end_q[5], word5_q}),
    .m_valid_o(high_valid),
    .m_ready_i(high_ready),
    .m_data_o ({high_end, high_word}),
    .level_o  ()
  );
  wpr_fifo #(.Width(33), .LogDepth(LogQueue)) lows (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(v_q[5] && part_q[5] == Low && state_q == Sparse),
    .s_ready_o(),
    .s_data_i ({end_q[5], word5_q}),
    .m_valid_o(low_valid),
    .m_ready_i(low_ready),
    .m_data_o ({low_end, low_word}),
    .level_o  ()
  );
  always_ff @(posedge clk_i) begin
    pop_q <= {low_valid && low_ready, high_valid && high_ready, join_go} & {3{fresh}};
  end

  // ---- high parts: the ones of their words ------------------------------------------------------

  logic one_valid, one_ready, ones_none, high_over_q, at_valid, at_ready, all_found_q, too_few;
  logic [31:0] high_mask;
  logic [LogValues-5:0] high_number_q, one_word;
  logic [4:0] one_bit;
  count_t index_q;     // of the value whose position comes next
  count_t unfound_q;   // values whose position is to come
  count_t at;          // a value's high part
  always_comb begin
    for (int b = 0; b < 4; b++) begin
      high_mask[8*b+:8] = {8{!high_end || high_rest_q == '0 || 2'(b) < high_rest_q}};
    end
  end
  wpr_ones #(.Bits(32), .Tag(LogValues - 4)) ones (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(high_valid),
    .s_ready_o(high_ready),
    .s_bits_i (high_word & high_mask),
    .s_tag_i  (high_number_q),
    .m_valid_o(one_valid),
    .m_ready_i(one_ready),
    .m_one_o  (one_bit),
    .m_tag_o  (one_word),
    .none_o   (ones_none)
  );
  assign one_ready = at_ready && !all_found_q;
  assign too_few   = high_over_q && ones_none && !all_found_q;
  always_ff @(posedge clk_i) begin
    if (one_valid && one_ready) begin
      index_q     <= index_q + 1'b1;
      unfound_q   <= unfound_q - 1'b1;
      all_found_q <= unfound_q == count_t'(1);
    end
    if (high_valid && high_ready) begin
      high_number_q <= high_number_q + 1'b1;
      high_over_q   <= high_end;
    end
    if (!fresh) begin
      index_q       <= '0;
      unfound_q     <= plan_count;
      all_found_q   <= plan_count == '0;
      high_number_q <= '0;
      high_over_q   <= state_q == Idle && plan_count == '0;
    end
  end
  wpr_fifo #(.Width(LogValues + 1), .LogDepth(LogQueue)) places (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(one_valid && !all_found_q),
    .s_ready_o(at_ready),
    .s_data_i ({one_word, one_bit} - index_q),
    .m_valid_o(at_valid),
    .m_ready_i(join_go),
    .m_data_o (at),
    .level_o  ()
  );

  // ---- low parts: pieces of their words, and the bits behind the last one -----------------------

  typedef enum logic [1:0] {Parts, Pad, None} ask_t;
  ask_t ask_q;
  logic word0_valid, word0_end, word1_valid, unused_end, cut, low_near_q, piece_valid;
  logic some_low_q, low_over_q;
  logic [31:0] word0, word1;
  logic [4:0] cut_at_q;
  logic [5:0] cut_end;
  logic [WidthBits-1:0] cut_size_q, size1_q;
  count_t uncut_q;
  logic [2:1] cut_q, pad_cut_q;
  logic [LogValues+6:0] bytes1_q;
  logic [2:0] shift1_q;
  position_t piece2_q, piece;
  logic [LogQueue:0] piece_level;
  wpr_window #(.Width(33)) window (
    .clk_i,
    .rst_ni        (fresh),
    .s_valid_i     (low_valid),
    .s_ready_o     (low_ready),
    .s_data_i      ({low_end, low_word}),
    .first_valid_o (word0_valid),
    .first_o       ({word0_end, word0}),
    .second_valid_o(word1_valid),
    .second_o      ({unused_end, word1}),
    .pop_i         (cut && cut_end[5])
  );
  assign cut     = ask_q != None && word0_valid && (word1_valid || word0_end) && !low_near_q;
  assign cut_end = 6'(cut_at_q) + 6'(cut_size_q);
  always_ff @(posedge clk_i) begin
    if (cut) begin
      cut_at_q <= cut_end[4:0];
      uncut_q  <= uncut_q - 1'b1;
      if (ask_q == Pad) begin
        ask_q <= None;
      end else if (uncut_q == count_t'(1)) begin
        ask_q      <= pad_q == '0 ? None : Pad;
        cut_size_q <= WidthBits'(pad_q);
      end
    end
    cut_q      <= {cut_q[1], cut};
    pad_cut_q  <= {pad_cut_q[1], ask_q == Pad};
    bytes1_q   <= (LogValues + 7)'({word1, word0} >> {cut_at_q[4:3], 3'b0});
    shift1_q   <= cut_at_q[2:0];
    size1_q    <= cut_size_q;
    piece2_q   <= position_t'(bytes1_q >> shift1_q) & ~('1 << size1_q);
    low_over_q <= low_over_q || (cut_q[2] && pad_cut_q[2]);
    low_near_q <= piece_level >= (LogQueue + 1)'(8);
    if (!fresh) begin
      cut_q      <= '0;
      cut_at_q   <= {low_at[1:0], 3'b0};
      cut_size_q <= width;
      uncut_q    <= plan_count;
      ask_q      <= width == '0 ? None : Parts;
      some_low_q <= width != '0;
      low_over_q <= width == '0 || pad == '0;
    end
  end
  wpr_fifo #(.Width(LogValues), .LogDepth(LogQueue)) pieces (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(cut_q[2] && !pad_cut_q[2]),
    .s_ready_o(),  // there is room: low_near_q
    .s_data_i (piece2_q),
    .m_valid_o(piece_valid),
    .m_ready_i(join_go && some_low_q),
    .m_data_o (piece),
    .level_o  (piece_level)
  );

  // ---- a value with its position ----------------------------------------------------------------

  logic near_q, v1_q, v2_q, v3_q, beyond1_q, beyond2_q, any_q;
  logic low_bad, entry_bad;
  position_t high1_q, low1_q, position2_q, before_q;
  logic [LogRows-1:0] rows3_q;  // between its row and that of the value before it
  logic [3:0] lane3_q;
  logic [31:0] value1_q, value2_q, value3_q;
  assign join_go   = at_valid && value_valid && !near_q && (!some_low_q || piece_valid);
  assign low_bad   = cut_q[2] && pad_cut_q[2] && piece2_q != '0;
  assign entry_bad = beyond2_q || position2_q > last_q || (any_q && position2_q <= before_q) ||
                     value2_q[30:0] == '0;
  always_ff @(posedge clk_i) begin
    v1_q        <= join_go;
    beyond1_q   <= at > count_t'(top_q);
    high1_q     <= position_t'(at) << width_q;
    low1_q      <= some_low_q ? piece : '0;
    value1_q    <= value;
    v2_q        <= v1_q;
    beyond2_q   <= beyond1_q;
    position2_q <= high1_q | low1_q;
    value2_q    <= value1_q;
    v3_q        <= v2_q && !entry_bad;
    rows3_q     <= position2_q[LogValues-1:4] - before_q[LogValues-1:4];
    lane3_q     <= position2_q[3:0];
    value3_q    <= value2_q;
    if (v2_q) before_q <= position2_q;
    any_q       <= any_q || v2_q;
    wrong_q     <= wrong_q || (v2_q && entry_bad) || low_bad || too_few
                   || (one_valid && all_found_q);
    if (!fresh) begin
      {v1_q, v2_q, v3_q, any_q, wrong_q} <= '0;
      before_q <= '0;
    end
  end
  logic next_valid, next_ready, take;
  logic [LogRows-1:0] next_rows, rows_on_q;  // rows from the one that is being made to the value's
  logic [3:0] next_lane, lane_of_q;
  logic [31:0] next_value, entry_q;
  logic [LogQueue:0] entry_level;
  wpr_fifo #(.Width(LogRows + 36), .LogDepth(LogQueue)) entries (
    .clk_i,
    .rst_ni   (fresh),
    .s_valid_i(v3_q),
    .s_ready_o(),  // there is room: near_q
    .s_data_i ({rows3_q, lane3_q, value3_q}),
    .m_valid_o(next_valid),
    .m_ready_i(next_ready),
    .m_data_o ({next_rows, next_lane, next_value}),
    .level_o  (entry_level)
  );
  always_ff @(posedge clk_i) near_q <= entry_level >= (LogQueue + 1)'(8);

  // ---- rows -------------------------------------------------------------------------------------
  // A row leaves when the next value belongs to another one; the last row, when all is known to be
  // right. In the clock in which it leaves, the next row can have its first value.

  logic [LogRows-1:0] row_after_q;  // behind the one that is being made
  logic last_row_q, all_in_q, good_q, complete, row_go, row_wrong, row_valid;
  logic here_q, on_q, after_q;  // the next value is of this row, of a later one, of the next one
  count_t untaken_q;            // values that have no row yet
  logic [Lanes-1:0] row_keep;
  logic [Lanes-1:0][31:0] values_q;
  assign next_ready = take || !(here_q || on_q);
  always_ff @(posedge clk_i) begin
    if (next_ready) begin
      here_q    <= next_valid && next_rows == '0;
      on_q      <= next_valid && next_rows != '0;
      after_q   <= next_valid && next_rows == LogRows'(1);
      rows_on_q <= next_rows;
      lane_of_q <= next_lane;
      entry_q   <= next_value;
    end else if (row_go) begin
      rows_on_q <= rows_on_q - 1'b1;
      here_q    <= after_q;
      on_q      <= on_q && !after_q;
      after_q   <= on_q && rows_on_q == LogRows'(2);
    end
    if (!fresh) {here_q, on_q, after_q} <= '0;
  end
  assign complete   = on_q || (all_in_q && (!last_row_q || good_q));
  assign row_go     = complete && move;
  assign take       = here_q || (after_q && row_go);
  always_ff @(posedge clk_i) begin
    if (row_go) begin
      row_after_q <= row_after_q + 1'b1;
      last_row_q  <= row_after_q == last_q[LogValues-1:4];
    end
    if (take) untaken_q <= untaken_q - 1'b1;
    all_in_q <= untaken_q == '0 || (take && untaken_q == count_t'(1));
    good_q   <= all_in_q && high_over_q && ones_none && all_found_q && low_over_q && !wrong_q;
    for (int l = 0; l < int'(Lanes); l++) begin
      if (take && lane_of_q == 4'(l)) values_q[l] <= entry_q;
      else if (row_go || !fresh) values_q[l] <= '0;
    end
    if (!fresh) begin
      row_after_q <= LogRows'(1);
      last_row_q  <= plan_last[LogValues-1:4] == '0;
      untaken_q   <= plan_count;
      all_in_q    <= 1'b0;
      good_q      <= 1'b0;
    end
  end

  always_comb begin
    unique case (state_q)
      Sparse: begin
        {row_valid, row_last, row_wrong} = {complete, last_row_q, 1'b0};
        row_keep = last_row_q ? in_last_q : '1;
      end
      Dense: begin
        {row_valid, row_last} = {v_q[5], end_q[5]};
        row_keep  = keep5_q;
        row_wrong = (sign_only_q & no_more_q & keep5_q) != '0;  // -0
      end
      default: begin
        {row_valid, row_last, row_wrong} = {state_q == Refuse, 2'b11};
        row_keep = Lanes'(1);
      end
    endcase
  end
  assign row_leaves = row_valid && move;
  wpr_rows_out out (
    .clk_i,
    .rst_ni,
    .move_o      (move),
    .row_valid_i (row_valid),
    .row_last_i  (row_last),
    .row_wrong_i (row_wrong),
    .row_keep_i  (row_keep),
    .row_values_i(state_q == Dense ? row5_q : values_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
