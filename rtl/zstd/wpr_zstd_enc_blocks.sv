// SPDX-License-Identifier: Apache-2.0
// Records of windows (wpr_lz_match) to blocks: sequences, literals, how often each literal comes,
// and the bytes as they were. There is memory for two blocks: one is read while the other comes.
//
// A match that costs more bits than its bytes do as literals becomes literals: one of four bytes
// that is not near and not as far as the last one, and one of five from far away. A match over the
// end of a block becomes two.
module wpr_zstd_enc_blocks
  import wpr_zstd_enc_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  output logic        room_o,     // wpr_lz_match
  input  logic        s_valid_i,
  input  logic        s_first_i,
  input  logic        s_last_i,
  input  logic [ 3:0] s_n_i,
  input  logic [22:0] s_left_i,
  input  logic [63:0] s_bytes_i,
  input  logic [ 3:0] s_run_i,
  input  logic        s_start_i,
  input  logic [ 2:0] s_at_i,
  input  logic [ 3:0] s_end_i,
  input  logic [15:0] s_offset_i,

  output logic        m_valid_o,  // a block, in the banks in turns
  input  logic        m_ready_i,
  output block_t      m_block_o,
  input  logic        free_i,     // the oldest block is not needed any more

  // What there is of blocks: of bank _i, two clocks later, but for counts, which take three.
  input  logic            bank_count_i,
  input  logic            count_i,     // reading a number sets it to 0
  input  logic [7:0]      byte_i,
  output logic [16:0]     n_o,
  input  logic            codes_i,     // the same of a code of sequences; these take two clocks
  input  logic [5:0]      code_i,
  output logic [2:0][13:0] n_codes_o,  // literal lengths, offsets, match lengths
  input  logic            bank_i,
  input  logic [12:0]     sequence_i,
  output sequence_t       sequence_o,
  input  logic [12:0]     literals_i,  // row of 8
  output logic [63:0]     literals_o,
  input  logic [12:0]     raw_i,
  output logic [63:0]     raw_o
);

  localparam int unsigned LogWindows = LogBlock - 3;
  typedef struct packed {
    logic first;
    logic last;
    logic [3:0] n;
    logic [22:0] left;
    logic [63:0] bytes;
    logic [3:0] run;
    logic start;
    logic [2:0] at;
    logic [3:0] stop;
    logic [15:0] offset;
  } record_t;

  // ---- records wait while both banks have a block -----------------------------------------------

  record_t head, record_q;
  logic head_valid, record_valid_q, go, pop;
  logic [5:0] level;
  wpr_fifo #(.Width($bits(record_t)), .LogDepth(5)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(),  // there is room: room_o
    .s_data_i ({s_first_i, s_last_i, s_n_i, s_left_i, s_bytes_i, s_run_i, s_start_i, s_at_i,
                s_end_i, s_offset_i}),
    .m_valid_o(head_valid),
    .m_ready_i(pop),
    .m_data_o (head),
    .level_o  (level)
  );
  assign pop = go || !record_valid_q;
  always_ff @(posedge clk_i) begin
    room_o <= level < 6'd24;
    if (pop) begin
      record_q       <= head;
      record_valid_q <= head_valid;
    end
    if (!rst_ni) begin
      room_o         <= 1'b0;
      record_valid_q <= 1'b0;
    end
  end

  // ---- what becomes of a record, with the next one in sight -------------------------------------

  logic [LogWindows-1:0] window_q;  // of the block
  logic [1:0] used_q;               // blocks that come, or came and are needed
  logic bank_q, begins, ends, drop_q, open_q, close_q, starts, keeps, cut, pushes, fresh_q;
  logic [8:0] clear_q;              // after a reset numbers are set to 0
  logic [3:0] run, cont, stop, lead, behind, begin_of_rest;
  logic [4:0] size;
  logic [15:0] offset_q;
  logic [16:0] run_q, size_q, literals_q, n_literals_q, n_q;
  logic near;
  assign begins = window_q == '0;
  assign ends   = record_q.last || window_q == '1;
  assign go     = record_valid_q && (record_q.last || head_valid) &&
                  (!begins || (used_q != 2'd2 && clear_q[8] && !close_q));
  assign run    = drop_q ? 4'd0 : record_q.run;
  assign cont   = begins && run < 4'd3 ? 4'd0 : run;
  assign stop   = record_q.stop;
  // Bytes of the match that begins, more than those of two windows do not matter.
  assign size   = 5'(stop) - 5'(record_q.at) + (stop[3] && !record_q.last ? 5'(head.run) : 5'd0);
  assign near   = record_q.offset == offset_q || record_q.offset < 16'd256;
  assign keeps  = size >= 5'd6 || (size >= 5'd5 && record_q.offset < 16'd8192) ||
                  (near && size >= 5'd4);
  assign cut    = ends && stop[3] && record_q.at > 3'd5;  // too short in this block
  assign starts = record_q.start && keeps && !cut;
  assign lead   = (starts ? 4'(record_q.at) : record_q.n) - cont;
  assign begin_of_rest = starts ? stop : record_q.n;
  assign behind = record_q.n - begin_of_rest;

  logic open, close_push;
  logic [16:0] literals_before, run_before, size_before;
  assign open            = begins ? cont != '0 : open_q;  // a match reaches this window
  assign run_before      = begins ? '0 : run_q;
  assign size_before     = begins ? '0 : size_q;
  assign literals_before = begins ? '0 : literals_q;
  assign pushes          = go && open && !cont[3];
  assign close_push      = close_q && open_q;

  typedef struct packed {
    logic fresh;  // the first of its block
    logic [16:0] literals;
    logic [16:0] size;
    logic [15:0] offset;
  } push_t;
  push_t push1_q;
  logic push1_valid_q, bank1_q;
  logic same_q, same, first_q, last_record_q;
  logic [22:0] frame_q;
  logic [7:0] value_q, value;
  assign value = begins ? record_q.bytes[7:0] : value_q;
  always_comb begin
    same = begins || same_q;
    for (int i = 0; i < 8; i++) if (i < int'(record_q.n)) same &= record_q.bytes[8*i+:8] == value;
  end
  always_ff @(posedge clk_i) begin
    close_q       <= go && ends;
    push1_valid_q <= pushes || close_push;
    bank1_q       <= bank_q ^ close_push;  // which belongs to the block that ended
    push1_q       <= '{fresh_q || begins, literals_before,
                       size_before + 17'(cont), offset_q};
    if (close_push) push1_q <= '{fresh_q, literals_q, size_q, offset_q};
    if (pushes || close_push) fresh_q <= 1'b0;
    if (go) begin
      drop_q       <= record_q.start && !keeps && stop[3] && !record_q.last;
      window_q     <= ends ? '0 : window_q + 1'b1;
      size_q       <= size_before + 17'(cont);
      open_q       <= open && cont[3];
      literals_q   <= literals_before;
      run_q        <= run_before + 17'(lead);
      same_q       <= same;
      value_q      <= value;
      n_q          <= (begins ? '0 : n_q) + 17'(record_q.n);
      n_literals_q <= (begins ? '0 : n_literals_q) + 17'(lead) + 17'(behind);
      if (begins) begin
        first_q  <= record_q.first;
        frame_q  <= record_q.left;
        fresh_q  <= 1'b1;
      end
      if (pushes) fresh_q <= 1'b0;
      if (record_q.start && keeps) offset_q <= record_q.offset;
      if (starts) begin
        open_q     <= 1'b1;
        literals_q <= run_before + 17'(lead);
        size_q     <= 17'(stop) - 17'(record_q.at);
        run_q      <= 17'(behind);
      end
      if (ends) bank_q <= !bank_q;
      last_record_q <= record_q.last;
    end else if (close_q) begin
      open_q <= 1'b0;
    end
    if (!rst_ni) begin
      {close_q, push1_valid_q, bank_q, drop_q, open_q} <= '0;
      window_q <= '0;
    end
  end

  // ---- offsets that repeat one of the block's last three ----------------------------------------

  // Those of the block before are not used: it may yet be one without sequences.
  logic [2:0][15:0] last_q;
  logic [2:0] known_q, known, is;
  logic none, push2_valid_q, bank2_q;
  logic [13:0] n_sequences_q;
  sequence_t push2_q;
  assign known = push1_q.fresh ? '0 : known_q;
  assign none  = push1_q.literals == '0;
  always_comb for (int i = 0; i < 3; i++) is[i] = known[i] && last_q[i] == push1_q.offset;
  always_ff @(posedge clk_i) begin
    push2_valid_q <= push1_valid_q;
    bank2_q       <= bank1_q;
    if (push1_valid_q) begin
      n_sequences_q    <= push1_q.fresh ? 14'd1 : n_sequences_q + 14'd1;
      push2_q.literals <= push1_q.literals[15:0];
      push2_q.match    <= 16'(push1_q.size - 17'd3);
      push2_q.offset   <= is[0] && !none ? 17'd1 : is[1] ? (none ? 17'd1 : 17'd2) :
                          is[2] && !is[0] ? (none ? 17'd2 : 17'd3) : 17'(push1_q.offset) + 17'd3;
      known_q <= known;
      if (!(is[0] && !none)) begin
        known_q[0] <= 1'b1;
        last_q[0]  <= push1_q.offset;
        known_q[1] <= known[0];
        last_q[1]  <= last_q[0];
        if (!is[1]) begin
          known_q[2] <= known[1];
          last_q[2]  <= last_q[1];
        end
      end
    end
    if (!rst_ni) push2_valid_q <= 1'b0;
  end

  // ---- blocks -----------------------------------------------------------------------------------

  logic close2_q, close3_q, any_q;
  logic [16:0] n_literals2_q, n_literals3_q, n2_q, n3_q;
  logic first2_q, first3_q, last2_q, last3_q, same2_q, same3_q;
  logic [7:0] value2_q, value3_q;
  logic [22:0] frame2_q, frame3_q;
  always_ff @(posedge clk_i) begin
    {close3_q, close2_q} <= {close2_q, close_q} & {2{rst_ni}};
    n_literals2_q <= n_literals_q;
    n2_q          <= n_q;
    first2_q      <= first_q;
    last2_q       <= last_record_q;
    frame2_q      <= frame_q;
    same2_q       <= same_q;
    value2_q      <= value_q;
    any_q         <= !fresh_q || close_push;
    {n_literals3_q, n3_q, first3_q} <= {n_literals2_q, n2_q, first2_q};
    {last3_q, frame3_q, same3_q, value3_q} <= {last2_q, frame2_q, same2_q, value2_q};
  end
  logic any3_q;
  always_ff @(posedge clk_i) any3_q <= any_q;
  block_t done;
  assign done = '{first3_q, last3_q, frame3_q, n3_q, n_literals3_q,
                  any3_q ? n_sequences_q : 14'd0, same3_q, value3_q};
  wpr_fifo #(.Width($bits(block_t)), .LogDepth(1)) blocks (
    .clk_i,
    .rst_ni,
    .s_valid_i(close3_q),
    .s_ready_o(),  // there are two banks
    .s_data_i (done),
    .m_valid_o,
    .m_ready_i,
    .m_data_o (m_block_o),
    .level_o  ()
  );
  always_ff @(posedge clk_i) begin
    used_q <= used_q + 2'(go && begins) - 2'(free_i);
    if (!clear_q[8]) clear_q <= clear_q + 1'b1;
    if (!rst_ni) begin
      used_q  <= '0;
      clear_q <= '0;
    end
  end

  // ---- how often each code comes ----------------------------------------------------------------

  logic [2:0][5:0] code3_q;
  logic push3_q, bank3_q, bank_codes1_q;
  logic [1:0][2:0][13:0] n_codes;
  always_ff @(posedge clk_i) begin
    push3_q    <= push2_valid_q && rst_ni;
    bank3_q    <= bank2_q;
    code3_q[0] <= literal_code(push2_q.literals);
    code3_q[1] <= 6'(highest(push2_q.offset));
    code3_q[2] <= match_code(push2_q.match);
    bank_codes1_q <= bank_count_i;
  end
  assign n_codes_o = n_codes[bank_codes1_q];
  for (genvar b = 0; b < 2; b++) begin : g_tally
    for (genvar k = 0; k < 3; k++) begin : g_kind
      wpr_zstd_enc_tally tally (
        .clk_i,
        .s_valid_i(push3_q && bank3_q == 1'(b)),
        .s_code_i (code3_q[k]),
        .read_i   (!clear_q[8] || (codes_i && bank_count_i == 1'(b))),
        .code_i   (!clear_q[8] ? clear_q[5:0] : code_i),
        .n_o      (n_codes[b][k])
      );
    end
  end

  // ---- memories ---------------------------------------------------------------------------------

  logic [13:0] sequence1_q, literals1_q, raw1_q;
  logic [12:0] to_q;
  always_ff @(posedge clk_i) begin
    to_q        <= push1_q.fresh ? 13'd0 : n_sequences_q[12:0];
    sequence1_q <= {bank_i, sequence_i};
    literals1_q <= {bank_i, literals_i};
    raw1_q      <= {bank_i, raw_i};
  end

  (* ram_style = "block" *) sequence_t sequences_q[2 << LogWindows];
  always_ff @(posedge clk_i) begin
    sequence_o <= sequences_q[sequence1_q];
    if (push2_valid_q) sequences_q[{bank2_q, to_q}] <= push2_q;
  end

  (* ram_style = "block" *) logic [63:0] bytes_q[2 << LogWindows];
  always_ff @(posedge clk_i) begin
    raw_o <= bytes_q[raw1_q];
    if (go) bytes_q[{bank_q, window_q}] <= record_q.bytes;
  end

  logic [3:0] n;
  logic [2:0] write;
  logic [12:0] write_row;
  logic [7:0] count_valid_q;
  logic [7:0][7:0] count_bytes_q;
  logic count_bank_q;
  assign n = lead + behind;
  assign {write_row, write} = begins ? 16'd0 : n_literals_q[15:0];
  always_ff @(posedge clk_i) count_bank_q <= bank_q;
  for (genvar j = 0; j < 8; j++) begin : g_lane
    (* ram_style = "block" *) logic [7:0] lane_q[2 << LogWindows];
    logic [13:0] row1_q;
    logic [2:0] past, from;
    assign past = 3'(j) - write;
    assign from = 4'(past) < lead ? past + cont[2:0] : past - lead[2:0] + begin_of_rest[2:0];
    always_ff @(posedge clk_i) begin
      count_valid_q[j] <= go && 4'(past) < n;
      row1_q           <= {bank_q, write_row + 13'(j < int'(write))};
      count_bytes_q[j] <= record_q.bytes[8*from+:8];
    end
    always_ff @(posedge clk_i) begin
      literals_o[8*j+:8] <= lane_q[literals1_q];
      if (count_valid_q[j]) lane_q[row1_q] <= count_bytes_q[j];
    end
  end

  logic [1:0][16:0] counts;
  logic bank_count1_q, bank_count2_q, bank_count3_q;
  always_ff @(posedge clk_i) begin
    {bank_count3_q, bank_count2_q, bank_count1_q} <= {bank_count2_q, bank_count1_q, bank_count_i};
  end
  assign n_o = counts[bank_count3_q];
  for (genvar b = 0; b < 2; b++) begin : g_counts
    wpr_zstd_enc_counts count (
      .clk_i,
      .s_valid_i(count_bank_q == 1'(b) ? count_valid_q : '0),
      .s_bytes_i(count_bytes_q),
      .read_i   (!clear_q[8] || (count_i && bank_count_i == 1'(b))),
      .byte_i   (!clear_q[8] ? clear_q[7:0] : byte_i),
      .n_o      (counts[b])
    );
  end

endmodule
