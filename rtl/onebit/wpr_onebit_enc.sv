// SPDX-License-Identifier: Apache-2.0
// onebit encoder (codecs/onebit/spec.md): a packet of float32 words in, 16 a clock; a packet of its
// code out. The bytes are those of every other encoder of onebit: each of the 16 partial sums of a
// class of a block is one lane's, added up in order and rounded after each value.
//
// Does not know bytes behind the last whole value: who frames the code appends them. A packet has
// at least one value.
//
// An addition takes eight clocks, so eight blocks are added up at once, a row of one in each clock;
// blocks come into a memory that has room for 2^LogBuffers.
//
// Rate: 16 values a clock, less 9 rows a block; a block of 512 values or fewer takes about 75
// clocks at least, in which its means are divided. Latency: a block comes in, is read in eight
// times as many clocks, and about 150 clocks.
module wpr_onebit_enc #(
  parameter int unsigned LogBuffers = 4,  // blocks of 4096 values in memory; 10 are in use
  // Of the device: how wide its block RAM is with 2^(8 + LogBuffers) words, and whether its
  // multipliers are of 18 by 18 bits (wpr_add_same).
  parameter int unsigned RamBits = 9,
  parameter bit Mult18 = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from two clocks before a packet until its last beat has left.
  input logic [3:0] cfg_block_i,  // 5 to 12: a block has so many values, as a power of two

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,   // the value that comes first lowest
  input  logic [ 63:0] s_axis_tkeep,   // read with tlast only: whole values
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast
);

  localparam int unsigned Lanes = 16;
  localparam int unsigned Buffers = 1 << LogBuffers;
  typedef logic [LogBuffers-1:0] buffer_t;

  // ---- in: rows to memory -----------------------------------------------------------------------

  logic [7:0] mask_q;  // rows of a block, less one
  always_ff @(posedge clk_i) for (int i = 0; i < 8; i++) mask_q[i] <= i + 4 < int'(cfg_block_i);

  logic [LogBuffers:0] in_buffer_q, done_buffer_q, out_buffer_q;  // with a bit for the time round
  logic [7:0] in_row_q;
  logic take, block_last, room_q;
  assign s_axis_tready = room_q;
  assign take          = s_axis_tvalid && room_q;
  assign block_last    = s_axis_tlast || in_row_q == mask_q;
  logic [LogBuffers:0] in_buffer_d;
  assign in_buffer_d = in_buffer_q + (LogBuffers + 1)'(take && block_last);
  always_ff @(posedge clk_i) begin
    in_buffer_q <= in_buffer_d;
    room_q      <= in_buffer_d - out_buffer_q != (LogBuffers + 1)'(Buffers);
    if (take) in_row_q <= block_last ? '0 : in_row_q + 8'd1;
    if (!rst_ni) begin
      in_buffer_q <= '0;
      in_row_q    <= '0;
      room_q      <= 1'b0;
    end
  end

  logic v1_q, block_last1_q, last1_q;
  logic [4:2] v_q;
  buffer_t buffer1_q;
  buffer_t [4:2] buffer_q;
  logic [7:0] row1_q;
  logic [Lanes-1:0][31:0] words1_q;
  logic [Lanes-1:0] negative1, keep1_q;
  always_comb begin
    // -0 is not; a NaN may be, since its block has no bits in the end.
    for (int l = 0; l < int'(Lanes); l++) negative1[l] = words1_q[l][31] && words1_q[l][30:0] != '0;
  end
  always_ff @(posedge clk_i) begin
    v1_q          <= take;
    block_last1_q <= block_last;
    last1_q       <= s_axis_tlast;
    buffer1_q     <= in_buffer_q[LogBuffers-1:0];
    row1_q        <= in_row_q;
    for (int l = 0; l < int'(Lanes); l++) begin
      keep1_q[l]  <= !s_axis_tlast || s_axis_tkeep[4*l];
      words1_q[l] <= s_axis_tdata[32*l+:32];
      if (s_axis_tlast && !s_axis_tkeep[4*l]) words1_q[l] <= '0;
    end
    if (!rst_ni) v1_q <= 1'b0;
  end

  // Rows, in memories as wide as one block RAM: where two lie one behind the other, far apart, a
  // choice of them follows their slow outputs.
  logic [511:0] row1, read_q;
  buffer_t read_buffer;
  logic [7:0] read_row;
  assign row1 = words1_q;
  for (genvar i = 0; i < 512; i += int'(RamBits)) begin : g_rows
    localparam int unsigned Width = 512 - i < int'(RamBits) ? 512 - i : RamBits;
    logic [Width-1:0] rows_q[Buffers << 8];
    always_ff @(posedge clk_i) if (v1_q) rows_q[{buffer1_q, row1_q}] <= row1[i+:Width];
    always_ff @(posedge clk_i) read_q[i+:Width] <= rows_q[{read_buffer, read_row}];
  end
  // Bits, two rows a word.
  logic [15:0] even_bits_q[Buffers << 7];
  logic [15:0] odd_bits_q[Buffers << 7];
  always_ff @(posedge clk_i) begin
    if (v1_q && !row1_q[0]) even_bits_q[{buffer1_q, row1_q[7:1]}] <= negative1;
  end
  always_ff @(posedge clk_i) begin
    if (v1_q && row1_q[0]) odd_bits_q[{buffer1_q, row1_q[7:1]}] <= negative1;
  end

  function automatic logic [2:0] ones(input logic [3:0] bits);
    return 3'(bits[0]) + 3'(bits[1]) + 3'(bits[2]) + 3'(bits[3]);
  endfunction

  logic [Lanes-1:0] negative2_q, other2_q;
  logic [3:0][2:0] negatives3_q, others3_q;  // of four lanes
  logic [4:0] negatives4_q, others4_q;
  logic [4:2] first_q, block_last_q, last_q;
  logic [4:2][7:0] rows_beside_q;
  logic [12:0] n_negative_q, n_other_q, n_negative, n_other;
  // What is known of a block when it is in: its rows, less one; how many values have which mean;
  // and whether it is the last of its packet.
  logic [7:0] all_rows_q[Buffers];
  logic [25:0] counts_q[Buffers];
  logic [Buffers-1:0] lasts_q;
  assign n_negative = 13'(negatives4_q) + (first_q[4] ? '0 : n_negative_q);
  assign n_other    = 13'(others4_q) + (first_q[4] ? '0 : n_other_q);
  always_ff @(posedge clk_i) begin
    negative2_q   <= negative1;
    other2_q      <= keep1_q & ~negative1;
    for (int k = 0; k < 4; k++) begin
      negatives3_q[k] <= ones(negative2_q[4*k+:4]);
      others3_q[k]    <= ones(other2_q[4*k+:4]);
    end
    negatives4_q  <= 5'(negatives3_q[0]) + 5'(negatives3_q[1]) + 5'(negatives3_q[2]) +
                     5'(negatives3_q[3]);
    others4_q     <= 5'(others3_q[0]) + 5'(others3_q[1]) + 5'(others3_q[2]) + 5'(others3_q[3]);
    v_q           <= {v_q[3:2], v1_q};
    first_q       <= {first_q[3:2], row1_q == '0};
    block_last_q  <= {block_last_q[3:2], block_last1_q};
    last_q        <= {last_q[3:2], last1_q};
    rows_beside_q <= {rows_beside_q[3:2], row1_q};
    buffer_q      <= {buffer_q[3:2], buffer1_q};
    if (v_q[4]) begin
      n_negative_q <= n_negative;
      n_other_q    <= n_other;
      if (block_last_q[4]) done_buffer_q <= done_buffer_q + 1'b1;
    end
    if (!rst_ni) begin
      v_q           <= '0;
      done_buffer_q <= '0;
    end
  end
  logic done;
  assign done = v_q[4] && block_last_q[4];
  always_ff @(posedge clk_i) if (done) all_rows_q[buffer_q[4]] <= rows_beside_q[4];
  always_ff @(posedge clk_i) if (done) counts_q[buffer_q[4]] <= {n_other, n_negative};
  always_ff @(posedge clk_i) if (done) lasts_q[buffer_q[4]] <= last_q[4];

  // ---- what is added in this clock: slots take turns, each with a block -------------------------
  // Row by row, and then the lanes' partial sums: 8 apart, 4, 2 and 1, of one class and of the
  // other.

  typedef struct packed {
    logic       busy;
    buffer_t    buffer;
    logic [7:0] rows;   // less one
    logic [7:0] row;
    logic       total;  // partial sums; then in row's lowest bits: class, and how far apart
  } slot_t;
  slot_t [7:0] slots_q;  // the one whose turn it is lowest
  slot_t slot, slot_next;
  logic [LogBuffers:0] next_buffer_q;
  logic have_q, begins;
  assign slot   = slots_q[0];
  assign begins = !slot.busy && have_q;
  always_comb begin
    slot_next = slot;
    if (!slot.busy) begin
      slot_next = '{busy: have_q, buffer: next_buffer_q[LogBuffers-1:0],
                    rows: all_rows_q[next_buffer_q[LogBuffers-1:0]], row: '0, total: 1'b0};
    end else if (slot.row == slot.rows) begin
      slot_next.row   = '0;
      slot_next.rows  = 8'd7;
      slot_next.total = 1'b1;
      slot_next.busy  = !slot.total;
    end else begin
      slot_next.row = slot.row + 8'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    slots_q <= {slot_next, slots_q[7:1]};
    if (begins) next_buffer_q <= next_buffer_q + 1'b1;
    have_q <= done_buffer_q != next_buffer_q + (LogBuffers + 1)'(begins);
    if (!rst_ni) begin
      for (int i = 0; i < 8; i++) slots_q[i].busy <= 1'b0;
      next_buffer_q <= '0;
      have_q        <= 1'b0;
    end
  end

  // What goes along with an addition.
  typedef struct packed {
    logic       add;
    logic       first;   // row: sums were +0
    logic       total;
    logic       others;  // the class of partial sums
    logic [1:0] level;
    logic       done;    // the class
    logic [2:0] turn;
    buffer_t    buffer;
  } tag_t;
  tag_t tag1_q, tag2_q;
  tag_t [9:3] tags_q;
  logic [2:0] turn_q;
  logic [511:0] row_q;
  assign {read_buffer, read_row} = {slot.buffer, slot.row};
  always_ff @(posedge clk_i) begin
    turn_q <= turn_q + 3'd1;
    tag1_q <= '{add: slot.busy, first: !slot.total && slot.row == '0, total: slot.total,
                others: slot.row[2], level: slot.row[1:0], done: slot.total && &slot.row[1:0],
                turn: turn_q, buffer: slot.buffer};
    tag2_q <= tag1_q;
    tags_q <= {tags_q[8:3], tag2_q};
    row_q  <= read_q;
    if (!rst_ni) begin
      turn_q <= '0;
      {tag1_q, tag2_q, tags_q} <= '0;
    end
  end

  // ---- lanes ------------------------------------------------------------------------------------

  // A lane has eight sums of either class. One that nothing has been added to is 0, whatever its
  // memory holds.

  logic [Lanes-1:0][30:0] own3_q, sums9;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    (* ram_style = "distributed" *) logic [30:0] sums_q[16];
    (* ram_style = "distributed" *) logic [1:0] begun_q[8];
    logic other;  // the class
    logic [1:0] begun;
    assign other = tag2_q.total ? tag2_q.others : !row_q[32*l+31];
    assign begun = tag2_q.first ? '0 : begun_q[tag2_q.turn];
    always_ff @(posedge clk_i) begin
      if (tag2_q.add) begun_q[tag2_q.turn] <= begun | {other, !other};
    end

    logic [30:0] value3_q, partner, a4_q, b4_q;
    logic [9:3] others_q;
    always_ff @(posedge clk_i) begin
      own3_q[l] <= sums_q[{tag2_q.turn, other}];
      if (!begun[other]) own3_q[l] <= '0;
      value3_q <= row_q[32*l+:31];
      others_q <= {others_q[8:3], other};
      a4_q     <= own3_q[l];
      b4_q     <= tags_q[3].total ? partner : value3_q;
    end
    always_comb begin
      // A lane that has given away its sum adds up anything.
      if (l >= 8) partner = value3_q;
      else if (l >= 4 || tags_q[3].level == 2'd0) partner = own3_q[(l+8)%int'(Lanes)];
      else if (l >= 2 || tags_q[3].level == 2'd1) partner = own3_q[(l+4)%int'(Lanes)];
      else if (l >= 1 || tags_q[3].level == 2'd2) partner = own3_q[(l+2)%int'(Lanes)];
      else partner = own3_q[1];
    end
    wpr_add_same #(.Mult18(Mult18)) adder (
      .clk_i,
      .a_i  (a4_q),
      .b_i  (b4_q),
      .sum_o(sums9[l])
    );
    always_ff @(posedge clk_i) begin
      if (tags_q[9].add) sums_q[{tags_q[9].turn, others_q[9]}] <= sums9[l];
    end
  end

  // ---- means, one after the other ---------------------------------------------------------------

  logic total_valid, total_others, mean_ready, mean_valid, mean_others_q;
  buffer_t total_buffer, mean_buffer_q;
  logic [30:0] total, mean;
  logic [12:0] n8_other, n8_negative, n9_q, n_total;  // how many values were added up
  assign {n8_other, n8_negative} = counts_q[tags_q[8].buffer];
  always_ff @(posedge clk_i) n9_q <= tags_q[8].others ? n8_other : n8_negative;
  wpr_fifo #(.Width(LogBuffers + 45), .LogDepth(LogBuffers + 1)) totals (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[9].add && tags_q[9].done),
    .s_ready_o(),  // always: it has room for all blocks
    .s_data_i ({tags_q[9].buffer, tags_q[9].others, n9_q, sums9[0]}),
    .m_valid_o(total_valid),
    .m_ready_i(mean_ready),
    .m_data_o ({total_buffer, total_others, n_total, total}),
    .level_o  ()
  );
  wpr_mean #(.Bits(13)) division (
    .clk_i,
    .rst_ni,
    .s_valid_i(total_valid),
    .s_ready_o(mean_ready),
    .sum_i    (total),
    .n_i      (n_total),
    .m_valid_o(mean_valid),
    .m_data_o (mean)
  );
  logic [Buffers-1:0] ready_q;  // both means are there: the other values' comes second
  logic [30:0] negatives_q[Buffers];
  logic [30:0] others_q[Buffers];
  logic free;
  always_ff @(posedge clk_i) begin
    if (total_valid && mean_ready) {mean_buffer_q, mean_others_q} <= {total_buffer, total_others};
    if (mean_valid && mean_others_q) ready_q[mean_buffer_q] <= 1'b1;
    if (free) ready_q[out_buffer_q[LogBuffers-1:0]] <= 1'b0;
    if (!rst_ni) ready_q <= '0;
  end
  always_ff @(posedge clk_i) begin
    if (mean_valid && !mean_others_q) negatives_q[mean_buffer_q] <= mean;
  end
  always_ff @(posedge clk_i) if (mean_valid && mean_others_q) others_q[mean_buffer_q] <= mean;

  // ---- out: the means of a block, and its words of bits, one a clock ----------------------------

  typedef enum logic [1:0] {Wait, Negative, Other, Words} step_t;
  step_t step_q;
  buffer_t out_buffer;
  logic [7:0] out_rows_q;
  logic out_last_q;
  logic [30:0] out_negative_q, out_other_q;
  logic [6:0] word_q;
  logic out_move, nan, word_last;
  assign out_buffer = out_buffer_q[LogBuffers-1:0];
  assign nan        = out_negative_q[30:23] == '1 || out_other_q[30:23] == '1;
  assign word_last  = word_q == out_rows_q[7:1];
  assign free       = out_move && step_q == Words && word_last;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      unique case (step_q)
        Wait: if (ready_q[out_buffer]) step_q <= Negative;
        Negative: step_q <= Other;
        Other: step_q <= Words;
        default: if (word_last) step_q <= Wait;
      endcase
      word_q <= step_q == Words ? word_q + 7'd1 : '0;
      if (step_q == Wait) begin
        out_rows_q     <= all_rows_q[out_buffer];
        out_last_q     <= lasts_q[out_buffer];
        out_negative_q <= negatives_q[out_buffer];
        out_other_q    <= others_q[out_buffer];
      end
    end
    if (free) out_buffer_q <= out_buffer_q + 1'b1;
    if (!rst_ni) begin
      step_q       <= Wait;
      out_buffer_q <= '0;
    end
  end

  // The memories are read a clock later.
  logic v3_q, last3_q, head3_q, nan3_q, half3_q;
  logic [31:0] head_q;
  logic [15:0] even_q, odd_q;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      v3_q    <= step_q != Wait;
      last3_q <= step_q == Words && word_last && out_last_q;
      head3_q <= step_q != Words;
      nan3_q  <= nan;
      half3_q <= word_last && !out_rows_q[0];  // of the last word there is only one half
      head_q  <= nan ? 32'h7FC00000
               : step_q == Negative ? {out_negative_q != '0, out_negative_q} : {1'b0, out_other_q};
    end
    if (!rst_ni) v3_q <= 1'b0;
  end
  always_ff @(posedge clk_i) if (out_move) even_q <= even_bits_q[{out_buffer, word_q}];
  always_ff @(posedge clk_i) if (out_move) odd_q <= odd_bits_q[{out_buffer, word_q}];

  // They are slow: a register between them and all the places where a word can go.
  logic v4_q, last4_q;
  logic [31:0] word4_q;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      v4_q    <= v3_q;
      last4_q <= last3_q;
      word4_q <= head3_q ? head_q : {odd_q & {16{!half3_q}}, even_q} & {32{!nan3_q}};
    end
    if (!rst_ni) v4_q <= 1'b0;
  end
  wpr_words_out out (
    .clk_i,
    .rst_ni,
    .s_valid_i(v4_q),
    .s_ready_o(out_move),
    .s_data_i (word4_q),
    .s_last_i (last4_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
