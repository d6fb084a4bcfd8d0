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

  // What there is of blocks: of bank _i, two clocks later, but for counts of bytes, which take three.
  input  logic            bank_count_i,
  input  logic            count_i,     // reading a number sets it to 0
  input  logic [7:0]      byte_i,
  output logic [16:0]     n_o,
  input  logic            codes_i,     // the same of a code of sequences
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

  record_t head, next_q, record_q;
  logic head_valid, next_valid_q, record_valid_q, go, move, pop;
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
  // What is known of a record alone, and of how its match goes on in the next one.
  logic [4:0] size_q;   // of the match that begins; more than those of two windows do not matter
  logic [3:0] rest_q;   // bytes behind it
  logic late_q;         // it is too short if this is the block's last window
  logic uniform_q;      // all bytes are the first one
  logic uniform;
  logic near_q, middle_q;  // its offset is less than 256, than 8192
  // It is that of the match before: of the record before, if its match was worth its bits, or of
  // the last one that was. Both are compared, because which of them holds is known late.
  logic repeats_record_q, repeats_older_q, record_kept_q, repeats;
  logic keeps;          // the match is worth its bits
  logic [15:0] offset_q;  // of the match before
  assign move = next_valid_q && (next_q.last || head_valid) && (go || !record_valid_q);
  assign pop  = move || !next_valid_q;
  always_comb begin
    uniform = 1'b1;
    for (int i = 1; i < 8; i++) begin
      if (i < int'(next_q.n)) uniform &= next_q.bytes[8*i+:8] == next_q.bytes[7:0];
    end
  end
  always_ff @(posedge clk_i) begin
    room_o <= level < 6'd24;
    if (pop) begin
      next_q       <= head;
      next_valid_q <= head_valid;
    end
    if (go) record_valid_q <= 1'b0;
    if (move) begin
      record_q       <= next_q;
      record_valid_q <= 1'b1;
      size_q         <= 5'(next_q.stop) - 5'(next_q.at) +
                        (next_q.stop[3] && !next_q.last ? 5'(head.run) : 5'd0);
      rest_q         <= next_q.n - next_q.stop;
      late_q         <= next_q.stop[3] && next_q.at > 3'd5;
      uniform_q      <= uniform;
      near_q         <= next_q.offset < 16'd256;
      middle_q       <= next_q.offset < 16'd8192;
      repeats_record_q <= next_q.offset == record_q.offset;
      repeats_older_q  <= next_q.offset == offset_q;
      record_kept_q    <= go && record_q.start && keeps;
    end
    if (!rst_ni) begin
      room_o         <= 1'b0;
      next_valid_q   <= 1'b0;
      record_valid_q <= 1'b0;
    end
  end

  // ---- what becomes of a record -----------------------------------------------------------------

  logic [LogWindows-1:0] window_q;  // of the block
  logic begins_q, full_q;           // it is the first one, or the last one
  logic [1:0] used_q;               // blocks that come, or came and are needed
  logic bank_q, ends, drop_q, open_q, close_q, starts, pushes, fresh_q;
  logic [8:0] clear_q;              // after a reset numbers are set to 0
  logic [3:0] run, cont, stop, lead_start, lead_whole;
  logic [16:0] run_q, match_q, literals_q, n_q;
  assign ends   = record_q.last || full_q;
  assign go     = record_valid_q && (!begins_q || (used_q != 2'd2 && clear_q[8] && !close_q));
  assign run    = drop_q ? 4'd0 : record_q.run;
  assign cont   = begins_q && run < 4'd3 ? 4'd0 : run;
  assign stop   = record_q.stop;
  assign repeats = record_kept_q ? repeats_record_q : repeats_older_q;
  assign keeps   = size_q >= 5'd6 || (size_q >= 5'd5 && middle_q) ||
                   ((near_q || repeats) && size_q >= 5'd4);
  assign starts = record_q.start && keeps && !(ends && late_q);
  assign lead_start = 4'(record_q.at) - cont;
  assign lead_whole = record_q.n - cont;

  logic open, close_push;
  logic [16:0] literals_before, run_before, match_before;
  assign open            = begins_q ? cont != '0 : open_q;  // a match reaches this window
  assign run_before      = begins_q ? '0 : run_q;
  assign match_before    = begins_q ? '0 : match_q;
  assign literals_before = begins_q ? '0 : literals_q;
  assign pushes          = go && open && !cont[3];
  assign close_push      = close_q && open_q;

  typedef struct packed {
    logic fresh;  // the first of its block
    logic [16:0] literals;
    logic [16:0] size;
    logic [15:0] offset;
  } push_t;
  push_t push1_q;
  logic none1_q;  // it has no literals
  logic push1_valid_q, bank1_q;
  logic same_q, same, first_q, last_record_q;
  logic [22:0] frame_q;
  logic [7:0] value_q, value;
  assign value = begins_q ? record_q.bytes[7:0] : value_q;
  assign same  = uniform_q && (begins_q || (same_q && record_q.bytes[7:0] == value_q));
  always_ff @(posedge clk_i) begin
    close_q       <= go && ends;
    push1_valid_q <= pushes || close_push;
    bank1_q       <= bank_q ^ close_push;  // which belongs to the block that ended
    push1_q       <= '{fresh_q || begins_q, literals_before,
                       match_before + 17'(cont), offset_q};
    none1_q       <= literals_q == '0 || (begins_q && !close_push);
    if (close_push) push1_q <= '{fresh_q, literals_q, match_q, offset_q};
    if (pushes || close_push) fresh_q <= 1'b0;
    if (go) begin
      drop_q       <= record_q.start && !keeps && stop[3] && !record_q.last;
      window_q     <= ends ? '0 : window_q + 1'b1;
      begins_q     <= ends;
      full_q       <= !ends && window_q == LogWindows'((1 << LogWindows) - 2);
      match_q      <= match_before + 17'(cont);
      open_q       <= open && cont[3];
      literals_q   <= literals_before;
      run_q        <= run_before + 17'(lead_whole);
      same_q       <= same;
      value_q      <= value;
      n_q          <= (begins_q ? '0 : n_q) + 17'(record_q.n);
      if (begins_q) begin
        first_q  <= record_q.first;
        frame_q  <= record_q.left;
        fresh_q  <= 1'b1;
      end
      if (pushes) fresh_q <= 1'b0;
      if (record_q.start && keeps) offset_q <= record_q.offset;
      if (starts) begin
        open_q     <= 1'b1;
        literals_q <= run_before + 17'(lead_start);
        match_q    <= 17'(stop) - 17'(record_q.at);
        run_q      <= 17'(rest_q);
      end
      if (ends) bank_q <= !bank_q;
      last_record_q <= record_q.last;
    end else if (close_q) begin
      open_q <= 1'b0;
    end
    if (!rst_ni) begin
      {close_q, push1_valid_q, bank_q, drop_q, open_q} <= '0;
      window_q <= '0;
      begins_q <= 1'b1;
      full_q   <= 1'b0;
    end
  end

  // ---- offsets that repeat one of the block's last three ----------------------------------------

  // Those of the block before are not used: it may yet be one without sequences. What the next offset
  // is equal to is known with it: it is compared with the last ones, and with the one before it. What
  // that one did to them says which of these count.
  logic [2:0][15:0] last_q;
  logic [2:0] known_q, known, is, equals1_q, moved1_q;
  logic same_again1_q, none, first_again, push2_valid_q, bank2_q;
  logic [13:0] n_sequences_q;
  sequence_t push2_q;
  assign known = push1_q.fresh ? '0 : known_q;
  assign none  = none1_q;
  assign first_again = is[0] && !none;
  always_comb begin
    is[0] = known[0] && (moved1_q[0] ? same_again1_q : equals1_q[0]);
    for (int i = 1; i < 3; i++) is[i] = known[i] && (moved1_q[i] ? equals1_q[i-1] : equals1_q[i]);
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 3; i++) equals1_q[i] <= last_q[i] == offset_q;
    same_again1_q <= push1_q.offset == offset_q;
    moved1_q      <= {push1_valid_q && !first_again && !is[1], push1_valid_q && !first_again,
                      push1_valid_q};
  end
  always_ff @(posedge clk_i) begin
    push2_valid_q <= push1_valid_q;
    bank2_q       <= bank1_q;
    if (push1_valid_q) begin
      n_sequences_q    <= push1_q.fresh ? 14'd1 : n_sequences_q + 14'd1;
      push2_q.literals <= push1_q.literals[15:0];
      push2_q.match    <= 16'(push1_q.size - 17'd3);
      push2_q.offset   <= first_again ? 17'd1 : is[1] ? (none ? 17'd1 : 17'd2) :
                          is[2] && !is[0] ? (none ? 17'd2 : 17'd3) : 17'(push1_q.offset) + 17'd3;
      known_q <= known;
      if (!first_again) begin
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
  logic [16:0] n_literals_q, n_literals3_q, n2_q, n3_q;
  logic first2_q, first3_q, last2_q, last3_q, same2_q, same3_q;
  logic [7:0] value2_q, value3_q;
  logic [22:0] frame2_q, frame3_q;
  always_ff @(posedge clk_i) begin
    {close3_q, close2_q} <= {close2_q, close_q} & {2{rst_ni}};
    n2_q          <= n_q;
    first2_q      <= first_q;
    last2_q       <= last_record_q;
    frame2_q      <= frame_q;
    same2_q       <= same_q;
    value2_q      <= value_q;
    any_q         <= !fresh_q || close_push;
    n_literals3_q <= n_literals_q;  // which is known a clock later than the others
    {n3_q, first3_q} <= {n2_q, first2_q};
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
    used_q <= used_q + 2'(go && begins_q) - 2'(free_i);
    if (!clear_q[8]) clear_q <= clear_q + 1'b1;
    if (!rst_ni) begin
      used_q  <= '0;
      clear_q <= '0;
    end
  end

  // ---- how often each code comes ----------------------------------------------------------------

  // Of a sequence: the highest bits of its numbers, and its codes.
  logic [4:0] literals_low3_q;
  logic [5:0] match_low3_q;
  logic [2:0][4:0] high3_q;
  logic [2:0][5:0] code4_q;
  logic push3_valid_q, push4_valid_q, bank3_q, bank4_q;
  logic codes1_q, bank_codes1_q, bank_codes2_q;
  logic [5:0] code1_q;
  logic [1:0][2:0][13:0] n_codes;
  always_ff @(posedge clk_i) begin
    push3_valid_q <= push2_valid_q && rst_ni;
    push4_valid_q <= push3_valid_q && rst_ni;
    {bank4_q, bank3_q} <= {bank3_q, bank2_q};
    literals_low3_q <= push2_q.literals[4:0];
    match_low3_q    <= push2_q.match[5:0];
    high3_q[0] <= highest(17'(push2_q.literals));
    high3_q[1] <= highest(push2_q.offset);
    high3_q[2] <= highest(17'(push2_q.match));
    code4_q[0] <= literal_code(literals_low3_q, high3_q[0]);
    code4_q[1] <= 6'(high3_q[1]);
    code4_q[2] <= match_code(match_low3_q, high3_q[2]);
    codes1_q   <= codes_i && rst_ni;
    code1_q    <= code_i;
    {bank_codes2_q, bank_codes1_q} <= {bank_codes1_q, bank_count_i};
  end
  assign n_codes_o = n_codes[bank_codes2_q];
  for (genvar b = 0; b < 2; b++) begin : g_tally
    for (genvar k = 0; k < 3; k++) begin : g_kind
      wpr_zstd_enc_tally tally (
        .clk_i,
        .s_valid_i(push4_valid_q && bank4_q == 1'(b)),
        .s_code_i (code4_q[k]),
        .read_i   (!clear_q[8] || (codes1_q && bank_codes1_q == 1'(b))),
        .code_i   (!clear_q[8] ? clear_q[5:0] : code1_q),
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

  // Literals of a window: `lead` bytes before the match that begins and those behind it. Three clocks
  // find out how many, where each goes, and which goes to each lane.
  logic go2_q, begins2_q, starts2_q, bank_lanes2_q, go3_q, bank_lanes3_q;
  logic [3:0] lead_start2_q, lead_whole2_q, rest2_q, lead2, n2, lead3_q, literals3_q;
  logic [2:0] cont2_q, cont3_q, behind2_q, skip3_q;  // left out before `lead`, and behind it
  logic [63:0] bytes2_q, bytes3_q;
  logic [15:0] to3_q;
  logic [7:0] count_valid_q;
  logic [7:0][7:0] count_bytes_q;
  logic count_bank_q;
  assign lead2 = starts2_q ? lead_start2_q : lead_whole2_q;
  assign n2    = lead2 + (starts2_q ? rest2_q : 4'd0);
  always_ff @(posedge clk_i) begin
    go2_q         <= go && rst_ni;
    begins2_q     <= begins_q;
    starts2_q     <= starts;
    bank_lanes2_q <= bank_q;
    lead_start2_q <= lead_start;
    lead_whole2_q <= lead_whole;
    rest2_q       <= rest_q;
    behind2_q     <= starts ? stop[2:0] : record_q.n[2:0];
    cont2_q       <= cont[2:0];
    bytes2_q      <= record_q.bytes;

    go3_q         <= go2_q && rst_ni;
    bank_lanes3_q <= bank_lanes2_q;
    lead3_q       <= lead2;
    literals3_q   <= n2;
    cont3_q       <= cont2_q;
    skip3_q       <= behind2_q - lead2[2:0];
    bytes3_q      <= bytes2_q;
    to3_q         <= begins2_q ? 16'd0 : n_literals_q[15:0];
    if (go2_q) n_literals_q <= (begins2_q ? '0 : n_literals_q) + 17'(n2);

    count_bank_q <= bank_lanes3_q;
  end
  for (genvar j = 0; j < 8; j++) begin : g_lane
    (* ram_style = "block" *) logic [7:0] lane_q[2 << LogWindows];
    logic [13:0] row1_q;
    logic [2:0] past, from;
    assign past = 3'(j) - to3_q[2:0];
    assign from = past + (4'(past) < lead3_q ? cont3_q : skip3_q);
    always_ff @(posedge clk_i) begin
      count_valid_q[j] <= go3_q && 4'(past) < literals3_q;
      row1_q           <= {bank_lanes3_q, to3_q[15:3] + 13'(j < int'(to3_q[2:0]))};
      count_bytes_q[j] <= bytes3_q[8*from+:8];
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
