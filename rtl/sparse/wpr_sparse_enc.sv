// SPDX-License-Identifier: Apache-2.0
// Encoder of the sparse codecs (codecs/common/sparse/spec.md): a packet of float32 words in, 16 a
// clock; a packet of the values that reach a threshold, and their positions, out. The bytes are
// those of every other encoder of graddrop that takes the same threshold.
//
// The threshold is an input: that of a sample, or the one that suited the block before. The encoder
// does no error feedback. Bytes behind the last whole value are not coded: the framer appends them.
// A packet has at least one value. A packet of more than 2^LogValues values is cut there, and its
// code ends with m_axis_tuser.
//
// The number of values sent decides the layout, so a block is stored. The memory holds two blocks,
// so the next one comes in meanwhile. A pass then searches the rows, 16 values a clock; values that
// are sent leave one a clock, and positions wait in two queues till the values have left.
//
// Rate: 16 values a clock where up to one in 19 is sent, and where all are written because
// positions do not pay; between, a word of 32 bits of the code a clock; 18 clocks more a block.
// Latency: a block, and about 40 clocks.
module wpr_sparse_enc #(
  parameter int unsigned LogValues = 14  // a block has up to 2^LogValues values; 9 or more
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // The float32 word, without its sign, that a value's must reach: 1 to 0x7F800000. Constant from a
  // packet's first beat till two clocks after its last one.
  input logic [30:0] cfg_threshold_i,

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,   // the value that comes first lowest
  input  logic [ 63:0] s_axis_tkeep,   // read with tlast only: whole values
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet had too many values
);

  localparam int unsigned Lanes = 16;
  localparam int unsigned LogRows = LogValues - 4;
  localparam int unsigned LogMemory = LogRows + 1;  // rows of two blocks
  localparam int unsigned WidthBits = $clog2(LogValues + 1);
  localparam int unsigned LogFacts = 4;
  localparam int unsigned LogQueue = 4;  // of positions that have not been written

  typedef logic [LogMemory-1:0] at_t;  // a row's place
  typedef logic [LogValues-1:0] position_t;
  typedef logic [LogValues:0] count_t;

  // ---- in: rows of two blocks -------------------------------------------------------------------

  logic take, store, close, full, many, free, pop_facts;
  logic beyond_q;  // the packet has filled its block
  logic [LogRows-1:0] in_row_q, rows_q;  // rows_q: of the block that is read, less one
  logic [LogMemory:0] used_q;
  logic [LogFacts-1:0] blocks_q;  // that are in, and wait
  logic [3:0] in_lane;            // of the packet's last value
  assign full          = used_q[LogMemory];
  assign many          = blocks_q == '1;
  assign s_axis_tready = beyond_q || (!full && !many);
  assign take          = s_axis_tvalid && s_axis_tready;
  assign store         = take && !beyond_q;
  assign close         = take && s_axis_tlast;
  always_comb begin
    in_lane = '0;
    for (int l = 1; l < int'(Lanes); l++) in_lane += 4'(s_axis_tkeep[4*l]);
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      in_row_q <= close ? '0 : in_row_q + 1'b1;
      beyond_q <= !close && (beyond_q || in_row_q == '1);
    end
    used_q   <= used_q + (LogMemory + 1)'(store) - (free ? (LogMemory + 1)'(rows_q) + 1'b1 : '0);
    blocks_q <= blocks_q + (LogFacts)'(close) - (LogFacts)'(pop_facts);
    if (!rst_ni) begin
      in_row_q <= '0;
      beyond_q <= 1'b0;
      used_q   <= '0;
      blocks_q <= '0;
    end
  end

  // What goes along with a row.
  typedef struct packed {
    logic      row;
    logic      close;
    logic      beyond;
    position_t last;    // of the block, with close
  } tag_t;
  tag_t [5:1] tags_q;
  always_ff @(posedge clk_i) begin
    tags_q <= {tags_q[4:1], tag_t'{row: store, close: close, beyond: beyond_q,
                                   last: beyond_q ? '1 : {in_row_q, in_lane}}};
    if (!rst_ni) for (int i = 1; i <= 5; i++) {tags_q[i].row, tags_q[i].close} <= '0;
  end

  // ---- 1, 2, 3: what is sent, and as which word; the rest is 0 ----------------------------------

  logic [Lanes-1:0][31:0] words1_q, words2_q, words3_q;
  logic [Lanes-1:0] reach1, nan1, reach2_q, nan2_q, reach3_q;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      reach1[l] = words1_q[l][30:0] >= cfg_threshold_i;
      nan1[l]   = words1_q[l][30:23] == '1 && words1_q[l][22:0] != '0;
    end
  end
  always_ff @(posedge clk_i) begin
    reach2_q <= reach1;
    nan2_q   <= nan1;
    reach3_q <= reach2_q;
    words2_q <= words1_q;
    for (int l = 0; l < int'(Lanes); l++) begin
      words1_q[l]        <= !s_axis_tlast || s_axis_tkeep[4*l] ? s_axis_tdata[32*l+:32] : '0;
      words3_q[l][30:22] <= {words2_q[l][30:23], words2_q[l][22] || nan2_q[l]};
      if (!reach2_q[l]) words3_q[l][30:22] <= '0;
      {words3_q[l][31], words3_q[l][21:0]} <= {words2_q[l][31], words2_q[l][21:0]};
      if (!reach2_q[l] || nan2_q[l]) {words3_q[l][31], words3_q[l][21:0]} <= '0;
    end
  end

  at_t write_q, scan_q, read;
  logic scan, go;
  logic [511:0] rows[1 << LogMemory];
  logic [Lanes-1:0] marks[1 << LogMemory];
  logic [511:0] row1_q;
  logic [Lanes-1:0] marks1_q, marks2_q;
  always_ff @(posedge clk_i) begin
    if (tags_q[3].row) write_q <= write_q + 1'b1;
    if (!rst_ni) write_q <= '0;
  end
  always_ff @(posedge clk_i) if (tags_q[3].row) rows[write_q] <= words3_q;
  always_ff @(posedge clk_i) if (tags_q[3].row) marks[write_q] <= reach3_q;
  always_ff @(posedge clk_i) if (go) row1_q <= rows[read];
  always_ff @(posedge clk_i) marks1_q <= marks[scan_q];

  // ---- 4, 5: how many are sent ------------------------------------------------------------------

  function automatic logic [2:0] ones(input logic [3:0] bits);
    return 3'(bits[0]) + 3'(bits[1]) + 3'(bits[2]) + 3'(bits[3]);
  endfunction
  logic [3:0][2:0] fours4_q;
  logic [4:0] total5_q;
  count_t count_q, count;
  assign count = count_q + (tags_q[5].row ? count_t'(total5_q) : '0);
  always_ff @(posedge clk_i) begin
    for (int k = 0; k < 4; k++) fours4_q[k] <= ones(reach3_q[4*k+:4]);
    total5_q <= 5'(fours4_q[0]) + 5'(fours4_q[1]) + 5'(fours4_q[2]) + 5'(fours4_q[3]);
    count_q  <= tags_q[5].close ? '0 : count;
    if (!rst_ni) count_q <= '0;
  end

  // ---- how a block is written -------------------------------------------------------------------

  logic have_facts, beyond, busy_q, planned_q, beyond_plan_q, planned, begin_pass;
  position_t last, plan_last;
  count_t facts_count, plan_count, n, high_bits;
  logic [WidthBits-1:0] width;
  logic [LogValues-2:0] high_bytes;
  logic [LogValues-3:0] low_bytes;
  logic dense;
  wpr_fifo #(.Width(2 * LogValues + 2), .LogDepth(LogFacts)) facts (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[5].close),
    .s_ready_o(),  // there is room: blocks_q
    .s_data_i ({tags_q[5].beyond, tags_q[5].last, count}),
    .m_valid_o(have_facts),
    .m_ready_i(pop_facts),
    .m_data_o ({beyond, last, facts_count}),
    .level_o  ()
  );
  assign pop_facts = have_facts && !busy_q;
  wpr_sparse_layout #(.LogValues(LogValues)) layout (
    .clk_i,
    .rst_ni,
    .start_i     (pop_facts),
    .last_i      (last),
    .count_i     (facts_count),
    .done_o      (planned),
    .last_o      (plan_last),
    .count_o     (plan_count),
    .n_o         (n),
    .width_o     (width),
    .top_o       (),
    .high_bits_o (high_bits),
    .pad_o       (),
    .high_bytes_o(high_bytes),
    .low_bytes_o (low_bytes),
    .dense_o     (dense)
  );
  always_ff @(posedge clk_i) begin
    if (pop_facts) beyond_plan_q <= beyond;
    busy_q    <= pop_facts || (busy_q && !begin_pass);
    planned_q <= planned || (planned_q && !begin_pass);
    if (!rst_ni) {busy_q, planned_q} <= '0;
  end

  // ---- a pass over a block: its rows in which something is sent, all where positions do not pay -

  logic pass_q, scanning_q, dense_q, drained, queued;
  logic [2:1] scanned_q;
  logic [LogRows-1:0] scan_row_q;
  at_t base_q;
  at_t [2:1] scanned_at_q;
  logic [WidthBits-1:0] width_q;
  count_t left_q;                    // values, or rows, that have not left the memory
  logic [LogValues-5:0] end_word_q;  // of the high parts
  logic [5:0] row_level;
  logic row_valid, row_ready, one_valid;
  logic [Lanes-1:0] row_marks;
  at_t row_at, lane_at;
  logic lane_valid, lane_ready;
  logic [3:0] lane, one_lane;
  assign begin_pass = planned_q && !pass_q && queued;
  assign scan       = scanning_q && row_level < 6'd24;
  assign free       = pass_q && drained;
  always_ff @(posedge clk_i) begin
    if (begin_pass) begin
      base_q     <= scan_q;
      rows_q     <= plan_last[LogValues-1:4];
      dense_q    <= dense;
      width_q    <= width;
      end_word_q <= (LogValues - 4)'((high_bits - 1'b1) >> 5);
      left_q     <= dense ? count_t'(plan_last[LogValues-1:4]) + 1'b1 : plan_count;
    end else if (one_valid && go) begin
      left_q <= left_q - 1'b1;
    end
    pass_q       <= begin_pass || (pass_q && !drained);
    scanning_q   <= begin_pass || (scanning_q && !(scan && scan_row_q == rows_q));
    scan_row_q   <= begin_pass ? '0 : scan_row_q + LogRows'(scan);
    scan_q       <= scan_q + LogMemory'(scan);
    scanned_q    <= {scanned_q[1], scan};
    scanned_at_q <= {scanned_at_q[1], scan_q};
    marks2_q     <= marks1_q;
    if (!rst_ni) begin
      {pass_q, scanning_q} <= '0;
      scanned_q <= '0;
      scan_q    <= '0;
    end
  end
  wpr_fifo #(.Width(LogMemory + Lanes), .LogDepth(5)) found (
    .clk_i,
    .rst_ni,
    .s_valid_i(scanned_q[2] && (dense_q || marks2_q != '0)),
    .s_ready_o(),  // there is room: row_level
    .s_data_i ({scanned_at_q[2], dense_q ? Lanes'(1) : marks2_q}),
    .m_valid_o(row_valid),
    .m_ready_i(row_ready),
    .m_data_o ({row_at, row_marks}),
    .level_o  (row_level)
  );
  wpr_ones #(.Bits(Lanes), .Tag(LogMemory)) lanes (
    .clk_i,
    .rst_ni,
    .s_valid_i(row_valid),
    .s_ready_o(row_ready),
    .s_bits_i (row_marks),
    .s_tag_i  (row_at),
    .m_valid_o(lane_valid),
    .m_ready_i(lane_ready),
    .m_one_o  (lane),
    .m_tag_o  (lane_at),
    .none_o   ()
  );
  wpr_skid #(.Width(LogMemory + 4)) one (
    .clk_i,
    .rst_ni,
    .s_valid_i(lane_valid),
    .s_ready_o(lane_ready),
    .s_data_i ({lane_at, lane}),
    .m_valid_o(one_valid),
    .m_ready_i(go),
    .m_data_o ({read, one_lane})
  );

  // ---- a value of a row, or a row ---------------------------------------------------------------

  logic near_q, dense_ready;  // near: a queue is so full that values wait
  logic [2:1] v_q, final_q;
  logic [2:1][3:0] lane_q;
  at_t [2:1] at_q;
  logic [511:0] row2_q;
  logic v3_q, v4_q, v5_q, final3_q, final4_q, final5_q;
  logic [31:0] value3_q;
  position_t position3_q, high4_q, low4_q, index_q;
  count_t bit5_q;
  assign go = dense_q ? !v_q[2] || dense_ready : !near_q;
  always_ff @(posedge clk_i) begin
    if (go) begin
      v_q     <= {v_q[1], one_valid};
      final_q <= {final_q[1], left_q == count_t'(1)};
      lane_q  <= {lane_q[1], one_lane};
      at_q    <= {at_q[1], read};
      row2_q  <= row1_q;
    end
    v3_q        <= go && v_q[2] && !dense_q;
    final3_q    <= final_q[2];
    value3_q    <= row2_q[32*lane_q[2]+:32];
    position3_q <= {LogRows'(at_q[2] - base_q), lane_q[2]};
    v4_q        <= v3_q;
    final4_q    <= final3_q;
    high4_q     <= position3_q >> width_q;
    low4_q      <= position3_q & ~('1 << width_q);
    v5_q        <= v4_q;
    final5_q    <= final4_q;
    bit5_q      <= count_t'(high4_q) + count_t'(index_q);
    if (v4_q) index_q <= final4_q ? '0 : index_q + 1'b1;
    if (!rst_ni) begin
      v_q  <= '0;
      {v3_q, v4_q, v5_q} <= '0;
      index_q <= '0;
    end
  end

  logic [31:0] stored[3];  // from the queues of values, high parts and low parts
  logic [2:0] stored_valid, stored_ready;
  logic [9:0] value_level;
  wpr_ram_fifo #(.Width(32), .LogDepth(9)) values (
    .clk_i,
    .rst_ni,
    .s_valid_i(v3_q),
    .s_ready_o(),  // there is room: near_q
    .s_data_i (value3_q),
    .m_valid_o(stored_valid[0]),
    .m_ready_i(stored_ready[0]),
    .m_data_o (stored[0]),
    .level_o  (value_level)
  );

  // ---- high parts: bits at their places in words ------------------------------------------------

  logic bit_valid, bit_final, same, flush, tail_q, word_ready;
  count_t bit_at;
  logic [LogQueue:0] bit_level;
  logic [LogValues-5:0] word_q;
  logic [31:0] word_bits_q;
  wpr_fifo #(.Width(LogValues + 2), .LogDepth(LogQueue)) bits (
    .clk_i,
    .rst_ni,
    .s_valid_i(v5_q),
    .s_ready_o(),  // there is room: near_q
    .s_data_i ({final5_q, bit5_q}),
    .m_valid_o(bit_valid),
    .m_ready_i(same && !tail_q),
    .m_data_o ({bit_final, bit_at}),
    .level_o  (bit_level)
  );
  assign same  = bit_at[LogValues:5] == word_q;
  assign flush = tail_q || (bit_valid && !same);
  always_ff @(posedge clk_i) begin
    if (flush && word_ready) begin
      word_bits_q <= '0;
      word_q      <= tail_q && word_q == end_word_q ? '0 : word_q + 1'b1;
      tail_q      <= tail_q && word_q != end_word_q;
    end else if (bit_valid && same && !tail_q) begin
      word_bits_q <= word_bits_q | 32'(1) << bit_at[4:0];
      tail_q      <= bit_final;
    end
    if (!rst_ni) begin
      word_bits_q <= '0;
      word_q      <= '0;
      tail_q      <= 1'b0;
    end
  end
  wpr_ram_fifo #(.Width(32), .LogDepth(LogValues - 4)) highs (
    .clk_i,
    .rst_ni,
    .s_valid_i(flush),
    .s_ready_o(word_ready),
    .s_data_i (word_bits_q),
    .m_valid_o(stored_valid[1]),
    .m_ready_i(stored_ready[1]),
    .m_data_o (stored[1]),
    .level_o  ()
  );

  // ---- low parts: behind each other -------------------------------------------------------------

  logic low_valid, low_final, low_ready, packed_valid, packed_ready;
  position_t low;
  logic [LogQueue:0] low_level;
  logic [31:0] packed_word;
  logic [5:0] packed_size;
  wpr_fifo #(.Width(LogValues + 1), .LogDepth(LogQueue)) parts (
    .clk_i,
    .rst_ni,
    .s_valid_i(v4_q),
    .s_ready_o(),  // there is room: near_q
    .s_data_i ({final4_q, low4_q}),
    .m_valid_o(low_valid),
    .m_ready_i(low_ready),
    .m_data_o ({low_final, low}),
    .level_o  (low_level)
  );
  wpr_pack #(.Lanes(32), .Unit(1)) pack (
    .clk_i,
    .rst_ni,
    .s_valid_i(low_valid),
    .s_ready_o(low_ready),
    .s_data_i (32'(low)),
    .s_size_i (6'(width_q)),
    .s_last_i (low_final),
    .m_valid_o(packed_valid),
    .m_ready_i(packed_ready || packed_size == '0),
    .m_data_o (packed_word),
    .m_size_o (packed_size),
    .m_last_o ()
  );
  wpr_ram_fifo #(.Width(32), .LogDepth(LogValues - 6)) lows (
    .clk_i,
    .rst_ni,
    .s_valid_i(packed_valid && packed_size != '0),
    .s_ready_o(packed_ready),
    .s_data_i (packed_word),
    .m_valid_o(stored_valid[2]),
    .m_ready_i(stored_ready[2]),
    .m_data_o (stored[2]),
    .level_o  ()
  );
  assign drained = !scanning_q && scanned_q == '0 && left_q == '0 && v_q == '0 &&
                   !v3_q && !v4_q && !v5_q && !bit_valid && !low_valid && !tail_q;
  always_ff @(posedge clk_i) begin
    near_q <= value_level >= 10'd496 || bit_level >= (LogQueue + 1)'(8) ||
              low_level >= (LogQueue + 1)'(8);
  end

  // ---- out: the parts of a packet, a word a clock; or its rows ----------------------------------

  // Block RAM is late in its clock: what is read goes to registers before it is chosen from.
  logic [31:0] part[3];
  logic [2:0] part_valid, part_ready;
  for (genvar i = 0; i < 3; i++) begin : gen_parts
    wpr_skid #(.Width(32)) slice (
      .clk_i,
      .rst_ni,
      .s_valid_i(stored_valid[i]),
      .s_ready_o(stored_ready[i]),
      .s_data_i (stored[i]),
      .m_valid_o(part_valid[i]),
      .m_ready_i(part_ready[i]),
      .m_data_o (part[i])
    );
  end

  typedef enum logic [2:0] {Head, Values, Highs, Lows, Rows} part_t;
  part_t part_q;
  logic plan_valid, plan_beyond, plan_dense, piece_valid, piece_ready, piece_last, ends, leave;
  count_t head;
  logic [LogValues-2:0] plan_high;
  logic [LogValues-3:0] plan_low;
  logic [3:0] plan_lane;
  logic [LogValues+2:0] bytes_q;  // of the part that have not left
  logic [31:0] piece;
  logic [2:0] piece_size;
  logic words_out_q, bad_q;  // a packet of words is on its way out
  logic rows_end;
  wpr_fifo #(.Width(3 * LogValues + 4), .LogDepth(1)) plans (
    .clk_i,
    .rst_ni,
    .s_valid_i(begin_pass),
    .s_ready_o(queued),
    .s_data_i ({beyond_plan_q, dense, dense ? n : plan_count, high_bytes, low_bytes,
                plan_last[3:0]}),
    .m_valid_o(plan_valid),
    .m_ready_i(leave),
    .m_data_o ({plan_beyond, plan_dense, head, plan_high, plan_low, plan_lane}),
    .level_o  ()
  );
  assign ends = bytes_q <= (LogValues + 3)'(4);
  always_comb begin
    unique case (part_q)
      Values:  {piece_valid, piece} = {part_valid[0], part[0]};
      Highs:   {piece_valid, piece} = {part_valid[1], part[1]};
      Lows:    {piece_valid, piece} = {part_valid[2], part[2]};
      default: {piece_valid, piece} = {plan_valid && !plan_dense && !words_out_q, 32'(head)};
    endcase
    if (part_q == Rows) piece_valid = 1'b0;
    unique case (part_q)
      Head:    piece_last = head == '0;
      Highs:   piece_last = ends && plan_low == '0;
      Lows:    piece_last = ends;
      default: piece_last = 1'b0;
    endcase
  end
  assign piece_size = part_q == Head || !ends ? 3'd4 : bytes_q[2:0];
  assign part_ready = {3{piece_ready}} & {part_q == Lows, part_q == Highs, part_q == Values};
  assign leave      = part_q == Rows ? rows_end : piece_valid && piece_ready && piece_last;
  always_ff @(posedge clk_i) begin
    if (leave) begin
      part_q <= Head;
    end else if (part_q == Head && plan_valid && plan_dense) begin
      if (!words_out_q) part_q <= Rows;
    end else if (piece_valid && piece_ready) begin
      bytes_q <= bytes_q - (LogValues + 3)'(4);
      unique case (part_q)
        Head: begin
          part_q  <= Values;
          bytes_q <= {head, 2'b00};
        end
        Values:
          if (ends) begin
            part_q  <= Highs;
            bytes_q <= (LogValues + 3)'(plan_high);
          end
        default:
          if (ends) begin
            part_q  <= Lows;
            bytes_q <= (LogValues + 3)'(plan_low);
          end
      endcase
    end
    if (!rst_ni) part_q <= Head;
  end

  logic bytes_valid, bytes_ready, bytes_last, wide_valid, wide_last, move;
  logic [31:0] bytes;
  logic [2:0] bytes_size;
  logic [511:0] wide, rows_out;
  logic [63:0] wide_keep, rows_keep;
  logic rows_valid, rows_last;
  wpr_pack #(.Lanes(4), .Unit(8)) close_gaps (
    .clk_i,
    .rst_ni,
    .s_valid_i(piece_valid),
    .s_ready_o(piece_ready),
    .s_data_i (piece),
    .s_size_i (piece_size),
    .s_last_i (piece_last),
    .m_valid_o(bytes_valid),
    .m_ready_i(bytes_ready),
    .m_data_o (bytes),
    .m_size_o (bytes_size),
    .m_last_o (bytes_last)
  );
  wpr_widen #(.Wide(64), .Narrow(4)) widen (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(bytes_valid),
    .s_axis_tready(bytes_ready),
    .s_axis_tdata (bytes),
    .s_axis_tkeep (~(4'hF << bytes_size)),
    .s_axis_tlast (bytes_last),
    .s_axis_tuser (1'b0),
    .m_axis_tvalid(wide_valid),
    .m_axis_tready(move),
    .m_axis_tdata (wide),
    .m_axis_tkeep (wide_keep),
    .m_axis_tlast (wide_last),
    .m_axis_tuser ()
  );
  logic [63:0] row_keep;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) row_keep[4*l+:4] = {4{!final_q[2] || 4'(l) <= plan_lane}};
  end
  wpr_prepend #(.Bytes(64), .Header(4)) prepend (
    .clk_i,
    .rst_ni,
    .h_valid_i    (part_q == Rows),
    .h_ready_o    (),
    .h_data_i     (32'(head)),
    .s_axis_tvalid(v_q[2] && dense_q),
    .s_axis_tready(dense_ready),
    .s_axis_tdata (row2_q),
    .s_axis_tkeep (row_keep),
    .s_axis_tlast (final_q[2]),
    .m_axis_tvalid(rows_valid),
    .m_axis_tready(move),
    .m_axis_tdata (rows_out),
    .m_axis_tkeep (rows_keep),
    .m_axis_tlast (rows_last)
  );
  assign rows_end = move && rows_valid && rows_last;
  assign move     = m_axis_tready || !m_axis_tvalid;
  always_ff @(posedge clk_i) begin
    if (move) begin
      m_axis_tvalid <= rows_valid || wide_valid;
      m_axis_tdata  <= part_q == Rows ? rows_out : wide;
      m_axis_tkeep  <= part_q == Rows ? rows_keep : wide_keep;
      m_axis_tlast  <= part_q == Rows ? rows_last : wide_last;
      m_axis_tuser  <= part_q == Rows ? rows_last && plan_beyond : wide_last && bad_q;
    end
    if (piece_valid && piece_ready && part_q == Head) begin
      words_out_q <= 1'b1;
      bad_q       <= plan_beyond;
    end else if (move && wide_valid && wide_last) begin
      words_out_q <= 1'b0;
    end
    if (!rst_ni) begin
      m_axis_tvalid <= 1'b0;
      words_out_q   <= 1'b0;
    end
  end

endmodule
