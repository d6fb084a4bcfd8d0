// SPDX-License-Identifier: Apache-2.0
// fre decoder, ways=4 (codecs/fre/spec.md): a packet of a block's payload in, 64 bits a clock; a
// packet of its float32 words out, four a clock, in order. Four wpr_fre_dec, the payload in front
// of them and the values behind them, each twice: while one block is decoded the next one comes in
// and the one before leaves.
//
// How many values a packet has is not in its payload and comes by s_cmd. A payload that the
// specification refuses, or of more than 4 bytes for each of 2^LogBlock values, makes a packet of
// one beat without a byte, m_axis_tuser set beside m_axis_tlast: no wrong value leaves. The next
// packet begins afresh.
//
// Does not know bytes behind the last value. m is at most 20.
//
// Rate: four values a clock while a way's code has 16 bits on average or fewer; about 120 clocks
// more a block. Latency: a payload comes in, is decoded, and leaves.
module wpr_fre_dec4
  import wpr_fre_pkg::*;
#(
  parameter int unsigned LogBlock = 12  // values in a block, at most; 4 to 15
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: as of wpr_fre_dec; constant from a packet's first beat in to its last one out.
  input logic [4:0] cfg_m_i,         // mantissa bits kept, 1 to 20
  input logic       cfg_midpoint_i,
  input logic       cfg_bfloat16_i,

  input  logic                s_cmd_tvalid,
  output logic                s_cmd_tready,
  input  logic [LogBlock-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // read with tlast only: 1, 3, 7 ... 255
  input  logic        s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [127:0] m_axis_tdata,
  output logic [ 15:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned LogRows = LogBlock - 2;   // of four values
  localparam int unsigned LogCodes = LogBlock - 1;  // rows of 8 bytes
  localparam int unsigned LogBytes = LogBlock + 2;
  localparam int unsigned Head = 12;  // bytes of sizes

  // ---- payloads come in, into one of two buffers ------------------------------------------------

  logic [1:0] full_q, over_q;
  logic in_q, run_q;  // the buffer that fills, and the one that is decoded
  logic dropping_q, take, release_code;
  logic [LogCodes-1:0] row_q;
  logic [1:0][LogBytes-1:0] most_q;  // bytes less one
  logic [2:0] last_bytes;            // less one
  logic [63:0] codes_q[2 << LogCodes];
  logic [63:0] read;
  logic [LogCodes-1:0] address;
  assign s_axis_tready = !full_q[in_q];
  assign take          = s_axis_tvalid && s_axis_tready;
  assign last_bytes = s_axis_tkeep[4] ? {1'b1, s_axis_tkeep[6], s_axis_tkeep[6] ? s_axis_tkeep[7]
                                                                                : s_axis_tkeep[5]}
                    : {1'b0, s_axis_tkeep[2], s_axis_tkeep[2] ? s_axis_tkeep[3] : s_axis_tkeep[1]};
  always_ff @(posedge clk_i) if (take && !dropping_q) codes_q[{in_q, row_q}] <= s_axis_tdata;
  always_ff @(posedge clk_i) read <= codes_q[{run_q, address}];
  always_ff @(posedge clk_i) begin
    if (take && s_axis_tlast) begin
      most_q[in_q] <= {row_q, last_bytes};
      over_q[in_q] <= dropping_q;
      full_q[in_q] <= 1'b1;
      in_q         <= !in_q;
      row_q        <= '0;
      dropping_q   <= 1'b0;
    end else if (take) begin
      if (&row_q) dropping_q <= 1'b1;
      else row_q <= row_q + 1'b1;
    end
    if (release_code) full_q[run_q] <= 1'b0;
    if (!rst_ni) begin
      full_q     <= '0;
      in_q       <= 1'b0;
      row_q      <= '0;
      dropping_q <= 1'b0;
    end
  end

  // ---- a block: its sizes are read and checked, way by way, then all four run -------------------

  typedef enum logic [2:0] {Idle, Sizes01, Size2, Ways, Start, Run} state_t;
  state_t state_q;
  logic [1:0] way_q;  // in Ways
  logic [LogBlock-1:0] count_q;  // values less one
  logic [LogRows-1:0] rows;      // less one
  logic tiny, bad_q, ended, out_free;
  logic [3:0] empty_q, run_way;
  logic [1:0][LogBytes-1:0] low_q, size_q;  // size: of this way and the next
  logic [1:0][31-LogBytes:0] high_q;        // of sizes: more bits than a payload's have
  logic [LogBytes:0] at_q, limit_q;  // a way's first byte, and the first byte after the payload
  logic [LogBytes-1:0] last_of_way;  // of the way before; of the last one in the first one's clock
  logic none;  // the way has no byte
  assign rows = count_q[LogBlock-1:2];
  assign tiny = rows < LogRows'(3);
  assign last_of_way = LogBytes'((way_q == 2'd0 ? limit_q : at_q) - 1'b1);
  assign none        = way_q == 2'd3 ? at_q >= limit_q : size_q[0] == '0;

  assign s_cmd_tready = state_q == Idle && full_q[run_q] && out_free;
  assign release_code = state_q == Run && ended;
  assign run_way      = state_q == Start && !bad_q ? ~empty_q : '0;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid && s_cmd_tready) state_q <= Sizes01;
      Sizes01: state_q <= Size2;
      Size2: state_q <= Ways;
      Ways: if (way_q == 2'd3) state_q <= Start;
      Start: state_q <= Run;
      default: if (ended) state_q <= Idle;
    endcase
    if (state_q == Idle) begin
      count_q <= s_cmd_tdata;
      bad_q   <= over_q[run_q] || most_q[run_q] < LogBytes'(Head);
      at_q    <= (LogBytes + 1)'(Head);
      way_q   <= '0;
    end
    limit_q <= {1'b0, most_q[run_q]} + 1'b1;
    // The memory is slow: what is read is looked at a clock later.
    for (int i = 0; i < 2; i++) {high_q[i], low_q[i]} <= read[32*i+:32];
    for (int w = 0; w < 4; w++) empty_q[w] <= empty_way(w, tiny, 2'(rows), count_q[1:0]);
    if (state_q == Size2) begin
      size_q <= low_q;
      bad_q  <= bad_q || high_q != '0;
    end
    if (state_q == Ways) begin
      way_q  <= way_q + 2'd1;
      at_q   <= at_q + (LogBytes + 1)'(size_q[0]);
      size_q <= {low_q[0], size_q[1]};  // the third one comes beside the first way
      bad_q  <= bad_q || none != empty_q[way_q] || (way_q == 2'd0 && high_q[0] != '0) ||
                (way_q != 2'd0 && at_q > limit_q);
    end
    if (release_code) run_q <= !run_q;
    if (!rst_ni) begin
      state_q <= Idle;
      run_q   <= 1'b0;
    end
  end

  // ---- rows are read for the ways in turns: way w when slot = w ---------------------------------

  logic [1:0] slot_q, slot1_q;
  logic [3:0] wants, holds, first_q, upper_q, stop_upper_q;
  logic [3:0][LogCodes-1:0] next_q, stop_q;  // the row to be read, and the last one
  logic [3:0] more_q;  // rows are to be read
  logic [3:0] at_stop_q;
  logic [3:0][1:0] skip_q, stop_bytes_q;
  logic issue, issue_last, read_q, read_last_q;
  assign issue      = state_q == Run && more_q[slot_q] && wants[slot_q];
  assign issue_last = at_stop_q[slot_q];
  assign address    = state_q == Idle ? '0 : state_q == Sizes01 ? LogCodes'(1) : next_q[slot_q];
  always_ff @(posedge clk_i) begin
    slot_q      <= slot_q + 2'd1;
    slot1_q     <= slot_q;
    read_q      <= issue;
    read_last_q <= issue_last;
    if (issue) begin
      next_q[slot_q] <= next_q[slot_q] + 1'b1;
      more_q[slot_q] <= !issue_last;
    end
    if (state_q == Ways) begin
      next_q[way_q]       <= at_q[LogBytes-1:3];
      upper_q[way_q]      <= at_q[2];  // the stream begins in the upper word
      skip_q[way_q]       <= at_q[1:0];
      stop_q[way_q-2'd1]       <= last_of_way[LogBytes-1:3];
      stop_upper_q[way_q-2'd1] <= last_of_way[2];
      stop_bytes_q[way_q-2'd1] <= last_of_way[1:0];
    end
    for (int w = 0; w < 4; w++) at_stop_q[w] <= next_q[w] == stop_q[w];
    if (state_q == Start) more_q <= run_way;
    if (!rst_ni) begin
      slot_q <= '0;
      read_q <= 1'b0;
      more_q <= '0;
    end
  end

  // ---- four decoders ----------------------------------------------------------------------------

  logic [1:0] done_q;
  logic out_q;  // the buffer that values go to
  logic [3:0] valid, accept, last, refused, running_q, turn_q;
  logic [3:0][31:0] value;
  logic [3:0][LogBlock-1:0] to_q;  // where in the block
  logic bad_way_q;
  for (genvar w = 0; w < 4; w++) begin : g_way
    logic [1:0] words_q;  // of a row, which are there
    logic [63:0] pair_q;
    logic last_row_q, word_ready, cmd_q, cmd_ready, got;
    logic [LogRows-1:0] values;  // less one
    logic [3:0] keep;
    logic word_last;
    always_comb begin
      case (w)
        2: values = rows == LogRows'(1) && count_q[1:0] == '0 ? '0 : rows;
        3: values = rows + LogRows'(count_q[1:0]) - LogRows'(3);
        default: values = rows;
      endcase
    end
    assign got       = read_q && slot1_q == 2'(w);
    assign holds[w]  = words_q != '0;
    // What is there will have gone when the row arrives.
    assign wants[w]  = words_q == '0;
    assign word_last = last_row_q && words_q != 2'd3;
    assign keep      = word_last ? {stop_bytes_q[w] == 2'd3, stop_bytes_q[w][1],
                                    stop_bytes_q[w] != 2'd0, 1'b1} : 4'hF;
    always_ff @(posedge clk_i) begin
      if (got) begin
        pair_q     <= read;
        last_row_q <= read_last_q;
        words_q    <= {!read_last_q || stop_upper_q[w], !first_q[w] || !upper_q[w]};
      end else if (holds[w] && word_ready) begin
        words_q <= words_q[0] ? {words_q[1], 1'b0} : 2'd0;
      end
      if (state_q == Start) first_q[w] <= 1'b1;
      else if (got) first_q[w] <= 1'b0;
      if (run_way[w]) cmd_q <= 1'b1;
      else if (cmd_ready) cmd_q <= 1'b0;
      if (!rst_ni) begin
        words_q <= '0;
        cmd_q   <= 1'b0;
      end
    end
    wpr_fre_dec #(
      .CountWidth(LogRows),
      .HalfRate  (1'b1)
    ) decoder (
      .clk_i,
      .rst_ni,
      .cfg_m_i,
      .cfg_midpoint_i,
      .cfg_bfloat16_i,
      .s_cmd_tvalid (cmd_q),
      .s_cmd_tready (cmd_ready),
      .s_cmd_tdata  (values),
      .s_cmd_tuser  (skip_q[w]),
      .s_axis_tvalid(holds[w]),
      .s_axis_tready(word_ready),
      .s_axis_tdata (words_q[0] ? pair_q[31:0] : pair_q[63:32]),
      .s_axis_tkeep (keep),
      .s_axis_tlast (word_last),
      .m_axis_tvalid(valid[w]),
      .m_axis_tready(turn_q[w]),
      .m_axis_tdata (value[w]),
      .m_axis_tlast (last[w]),
      .m_axis_tuser (refused[w])
    );
  end

  // ---- values go to banks: way w to bank (w + slot) % 4, so that no two meet --------------------

  logic [3:0][1:0] wait_q, wait_d;  // clocks to the way's turn
  logic [LogRows:0] quarter;
  assign quarter = (LogRows + 1)'(rows) + 1'b1;
  assign accept  = valid & turn_q;
  always_comb begin
    for (int w = 0; w < 4; w++) wait_d[w] = wait_q[w] - 2'd1 + 2'(accept[w]);
  end
  assign ended = running_q == '0 && holds == '0 && more_q == '0 && !read_q;
  always_ff @(posedge clk_i) begin
    for (int w = 0; w < 4; w++) begin
      wait_q[w] <= wait_d[w];
      turn_q[w] <= wait_d[w] == '0;
      if (accept[w]) to_q[w] <= to_q[w] + 1'b1;
    end
    running_q <= (running_q & ~(accept & last)) | run_way;
    bad_way_q <= state_q != Run ? bad_q : bad_way_q || |(accept & last & refused);
    if (state_q == Start) begin
      to_q[0]   <= '0;
      to_q[1]   <= LogBlock'(quarter);
      to_q[2]   <= LogBlock'({quarter, 1'b0});
      to_q[3]   <= LogBlock'({quarter, 1'b0}) + LogBlock'(quarter);
      wait_q[0] <= 2'd0 - slot_q - 2'd1;
      wait_q[1] <= quarter[1:0] - 2'd1 - slot_q - 2'd1;
      wait_q[2] <= {quarter[0], 1'b0} - 2'd2 - slot_q - 2'd1;
      wait_q[3] <= {quarter[0], 1'b0} + quarter[1:0] - 2'd3 - slot_q - 2'd1;
      turn_q    <= '0;
    end
    if (!rst_ni) running_q <= '0;
  end

  logic leave_q, leave_move, leaving;
  logic [LogRows-1:0] leave_row_q;
  logic [1:0][LogRows-1:0] done_rows_q;
  logic [1:0][1:0] done_words_q;
  logic [1:0] done_bad_q;
  for (genvar b = 0; b < 4; b++) begin : g_bank
    logic [31:0] values_q[2 << LogRows];
    logic [1:0] way;
    logic write_q, buffer_q;
    logic [LogRows-1:0] to_row_q;
    logic [31:0] value_q;
    assign way = 2'(b) - slot_q;
    always_ff @(posedge clk_i) begin
      write_q  <= accept[way];
      buffer_q <= out_q;
      to_row_q <= to_q[way][LogBlock-1:2];
      value_q  <= value[way];
    end
    always_ff @(posedge clk_i) if (write_q) values_q[{buffer_q, to_row_q}] <= value_q;
    always_ff @(posedge clk_i) begin
      if (leave_move) m_axis_tdata[32*b+:32] <= values_q[{leave_q, leave_row_q}];
    end
  end

  // ---- the values leave -------------------------------------------------------------------------

  logic out_valid_q, out_last_q, out_bad_q, leave_last;
  logic [3:0] out_words_q;
  assign out_free   = !done_q[out_q];
  assign leave_move = m_axis_tready || !out_valid_q;
  assign leave_last = done_bad_q[leave_q] || leave_row_q == done_rows_q[leave_q];
  assign leaving    = leave_move && done_q[leave_q] && leave_last;
  always_ff @(posedge clk_i) begin
    if (release_code) begin
      done_rows_q[out_q]  <= rows;
      done_words_q[out_q] <= count_q[1:0];
      done_bad_q[out_q]   <= bad_way_q;
      done_q[out_q]       <= 1'b1;
      out_q               <= !out_q;
    end
    if (leave_move) begin
      out_valid_q <= done_q[leave_q];
      out_last_q  <= leave_last;
      out_bad_q   <= done_bad_q[leave_q];
      for (int i = 0; i < 4; i++) begin
        out_words_q[i] <= !done_bad_q[leave_q] && (!leave_last || 2'(i) <= done_words_q[leave_q]);
      end
      if (done_q[leave_q]) leave_row_q <= leave_last ? '0 : leave_row_q + 1'b1;
    end
    if (leaving) begin
      done_q[leave_q] <= 1'b0;
      leave_q         <= !leave_q;
    end
    if (!rst_ni) begin
      done_q      <= '0;
      out_q       <= 1'b0;
      leave_q     <= 1'b0;
      leave_row_q <= '0;
      out_valid_q <= 1'b0;
    end
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tuser  = out_bad_q;
  always_comb begin
    for (int i = 0; i < 4; i++) m_axis_tkeep[4*i+:4] = {4{out_words_q[i]}};
  end

endmodule
