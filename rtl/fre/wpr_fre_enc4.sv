// SPDX-License-Identifier: Apache-2.0
// fre encoder, ways=4 (codecs/fre/spec.md): a packet of float32 words in, four a clock, in order; a
// packet of the block's payload out: three sizes and four streams behind each other. Four
// wpr_fre_enc, a block's values in front of them and its code behind them, each twice: while one
// block is encoded the next one comes in and the one before leaves.
//
// Does not know bytes behind the last whole value: who frames the payload appends them. A packet
// has 1 to 2^LogBlock values; of one with more m_axis_tuser says so, and its code is of the first
// 2^LogBlock. m is at most 20: longer codes may not fit their memory.
//
// Rate: four values a clock while a code has 16 bits on average or fewer, which is 64 a clock;
// about 13 clocks more a block. Latency: a block comes in, is encoded, and leaves.
//
// Nothing stops a block that is being encoded: it begins when there is a free buffer for its code,
// and behind the one before in such a distance that its values do not meet that one's end.
module wpr_fre_enc4
  import wpr_fre_pkg::*;
#(
  parameter int unsigned LogBlock = 12  // values in a block, at most; 4 to 15
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: as of wpr_fre_enc; constant from a packet's first beat in to its last one out.
  input logic [4:0] cfg_m_i,        // mantissa bits kept, 1 to 20
  input logic       cfg_nearest_i,
  input logic       cfg_flush_i,

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [127:0] s_axis_tdata,   // the value that comes first lowest
  input  logic [ 15:0] s_axis_tkeep,   // read with tlast only: whole values
  input  logic         s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet had too many values
);

  localparam int unsigned LogRows = LogBlock - 2;   // of four values
  localparam int unsigned LogCodes = LogBlock - 3;  // rows of two words, of one stream

  // ---- values come in, four a row, into one of two buffers --------------------------------------

  logic [1:0] full_q, over_q;
  logic in_q, run_q;  // the buffer that fills, and the one that is encoded
  logic dropping_q;
  logic [LogRows-1:0] row_q;
  logic [1:0][LogRows-1:0] rows_q;  // less one
  logic [1:0][1:0] words_q;         // of the last row, less one
  logic take, release_block;
  assign s_axis_tready = !full_q[in_q];
  assign take          = s_axis_tvalid && s_axis_tready;
  always_ff @(posedge clk_i) begin
    if (take && s_axis_tlast) begin
      rows_q[in_q]  <= row_q;
      words_q[in_q] <= dropping_q ? 2'd3
                     : 2'(s_axis_tkeep[4]) + 2'(s_axis_tkeep[8]) + 2'(s_axis_tkeep[12]);
      over_q[in_q]  <= dropping_q;
      full_q[in_q]  <= 1'b1;
      in_q          <= !in_q;
      row_q         <= '0;
      dropping_q    <= 1'b0;
    end else if (take) begin
      if (&row_q) dropping_q <= 1'b1;
      else row_q <= row_q + 1'b1;
    end
    if (release_block) full_q[run_q] <= 1'b0;
    if (!rst_ni) begin
      full_q     <= '0;
      in_q       <= 1'b0;
      row_q      <= '0;
      dropping_q <= 1'b0;
    end
  end

  // ---- each way reads its quarter: way w from bank (w + slot) % 4, so that no two meet ----------

  logic running_q, start, tiny;
  logic [2:0] quiet_q;  // clocks since the last value was read
  logic [1:0] slot_q, slot1_q, slot2_q;
  logic [1:0] inside_q;  // blocks begun whose code has not left
  logic code_q;          // where the code of the next block goes
  logic [1:0] over_code_q;
  logic [3:0][LogBlock-1:0] at_q;
  logic [3:0][LogRows-1:0] left_q;
  logic [3:0] active_q, go, go1_q, go2_q, go3_q, last1_q, last2_q, last3_q, empty;
  logic [LogRows-1:0] rows;
  logic [LogRows:0] quarter;
  logic sent;  // a code has left
  assign rows    = rows_q[run_q];
  assign quarter = (LogRows + 1)'(rows) + 1'b1;
  // Only in blocks of fewer than four rows may a way have no value: they wait until all is quiet.
  assign tiny    = rows < LogRows'(3);
  // An encoder takes nothing in one clock, seven after a stream's last value.
  assign start   = !running_q && full_q[run_q] && &quiet_q && !inside_q[1] &&
                   (!tiny || inside_q == '0);

  always_comb begin
    for (int w = 0; w < 4; w++) begin
      go[w]    = active_q[w] && at_q[w][1:0] == 2'(w) + slot_q;
      empty[w] = empty_way(w, tiny, 2'(rows), words_q[run_q]);
    end
  end
  assign release_block = running_q && active_q == '0;
  always_ff @(posedge clk_i) begin
    slot_q  <= slot_q + 2'd1;
    slot1_q <= slot_q;
    slot2_q <= slot1_q;
    for (int w = 0; w < 4; w++) begin
      go1_q[w]   <= go[w];
      last1_q[w] <= left_q[w] == '0;
      if (go[w]) begin
        at_q[w]     <= at_q[w] + 1'b1;
        left_q[w]   <= left_q[w] - 1'b1;
        active_q[w] <= left_q[w] != '0;
      end
    end
    {go3_q, go2_q}     <= {go2_q, go1_q};
    {last3_q, last2_q} <= {last2_q, last1_q};
    quiet_q <= active_q != '0 ? '0 : quiet_q + 3'(!(&quiet_q));
    if (start) begin
      at_q[0]             <= '0;
      at_q[1]             <= LogBlock'(quarter);
      at_q[2]             <= LogBlock'({quarter, 1'b0});
      at_q[3]             <= LogBlock'({quarter, 1'b0}) + LogBlock'(quarter);
      left_q[0]           <= rows;
      left_q[1]           <= rows;
      left_q[2]           <= rows == LogRows'(1) && words_q[run_q] == '0 ? '0 : rows;
      left_q[3]           <= rows + LogRows'(words_q[run_q]) - LogRows'(3);
      active_q            <= ~empty;
      over_code_q[code_q] <= over_q[run_q];
      code_q              <= !code_q;
      running_q           <= 1'b1;
    end
    if (release_block) begin
      running_q <= 1'b0;
      run_q     <= !run_q;
    end
    if (start != sent) inside_q <= start ? inside_q + 2'd1 : inside_q - 2'd1;
    if (!rst_ni) begin
      {running_q, run_q, code_q} <= '0;
      inside_q                   <= '0;
      slot_q                     <= '0;
      {active_q, go1_q, go2_q, go3_q} <= '0;
    end
  end

  logic [3:0][31:0] read, read_q, value_q;
  for (genvar b = 0; b < 4; b++) begin : g_bank
    logic [31:0] values_q[2 << LogRows];
    logic [LogRows-1:0] address;
    assign address = at_q[2'(b)-slot_q][LogBlock-1:2];
    always_ff @(posedge clk_i) begin
      if (take && !dropping_q) values_q[{in_q, row_q}] <= s_axis_tdata[32*b+:32];
    end
    always_ff @(posedge clk_i) read[b] <= values_q[{run_q, address}];
  end
  always_ff @(posedge clk_i) begin
    read_q <= read;
    for (int w = 0; w < 4; w++) value_q[w] <= read_q[2'(w)+slot2_q];
  end

  // ---- four encoders, each into its part of a code's buffer -------------------------------------

  logic leave_q;  // the buffer that leaves
  logic [3:0][1:0] done_q;
  logic [3:0][1:0][LogBlock-1:0] most_q;  // bytes less one
  logic [3:1][1:0] none_q;  // the way has no value, and none after it has
  logic [3:0][63:0] code_row;
  logic [LogCodes-1:0] leave_row;
  logic leave_move;
  for (genvar w = 0; w < 4; w++) begin : g_way
    logic valid, last, to_q;
    logic [31:0] word;
    logic [3:0] keep;
    logic [LogCodes:0] count_q;
    wpr_fre_enc encoder (
      .clk_i,
      .rst_ni,
      .cfg_m_i,
      .cfg_nearest_i,
      .cfg_flush_i,
      .s_axis_tvalid(go3_q[w]),
      .s_axis_tready(),  // it is
      .s_axis_tdata (value_q[w]),
      .s_axis_tlast (last3_q[w]),
      .m_axis_tvalid(valid),
      .m_axis_tready(1'b1),
      .m_axis_tdata (word),
      .m_axis_tkeep (keep),
      .m_axis_tlast (last)
    );
    always_ff @(posedge clk_i) begin
      if (valid) begin
        count_q <= last ? '0 : count_q + 1'b1;
        if (last) begin
          most_q[w][to_q] <= {count_q, keep[2], keep[3] || (keep[1] && !keep[2])};
          done_q[w][to_q] <= 1'b1;
          to_q            <= !to_q;
        end
      end
      if (start && empty[w]) begin
        done_q[w][to_q] <= 1'b1;
        to_q            <= !to_q;
      end
      if (sent) done_q[w][leave_q] <= 1'b0;
      if (!rst_ni) begin
        done_q[w] <= '0;
        to_q      <= 1'b0;
        count_q   <= '0;
      end
    end
    if (w > 0) begin : g_none
      always_ff @(posedge clk_i) begin
        if (valid && last) none_q[w][to_q] <= 1'b0;
        if (start && empty[w]) none_q[w][to_q] <= 1'b1;
      end
    end
    for (genvar h = 0; h < 2; h++) begin : g_half
      logic [31:0] codes_q[2 << LogCodes];
      always_ff @(posedge clk_i) begin
        if (valid && count_q[0] == 1'(h)) codes_q[{to_q, count_q[LogCodes:1]}] <= word;
      end
      always_ff @(posedge clk_i) begin
        if (leave_move) code_row[w][32*h+:32] <= codes_q[{leave_q, leave_row}];
      end
    end
  end

  // ---- the code leaves: two rows of sizes, the ways' rows, and what is left of the last one -----

  typedef enum logic [2:0] {Sizes01, Size2, Way0, Way1, Way2, Way3, Rest} step_t;
  step_t step_q;
  logic valid0, valid1_q, valid2_q, valid3_q, valid4_q;
  logic [LogBlock-1:0] left_code_q, first_left;  // bytes of the way, less one
  logic way_last_q, first_is_last, next_way;  // the way's last row
  logic final_way, ends, ends1_q, ends2_q, ends3_q, ends4_q;
  logic whole, whole1_q, whole2_q, whole3_q, whole4_q;
  logic [3:0] n_bytes, sum;
  logic [2:0] fill_q, fill1_q, fill2_q, fill3_q;   // bytes before a row
  logic [2:0] end1_q, end2_q, end3_q, end4_q;      // and after it
  logic [LogCodes-1:0] leave_row_q;
  assign leave_row  = leave_row_q;
  assign leave_move = m_axis_tready || !m_axis_tvalid;
  assign valid0     = done_q[0][leave_q] && done_q[1][leave_q] && done_q[2][leave_q] &&
                      done_q[3][leave_q];
  assign first_is_last = first_left[LogBlock-1:3] == '0;
  assign next_way      = step_q < Way0 || way_last_q;
  always_comb begin
    case (step_q)
      Sizes01: n_bytes = 4'd8;
      Size2: n_bytes = 4'd4;
      Rest: n_bytes = 4'd0;
      default: n_bytes = way_last_q ? {1'b0, left_code_q[2:0]} + 4'd1 : 4'd8;
    endcase
    case (step_q)
      Size2: first_left = most_q[0][leave_q];
      Way0: first_left = most_q[1][leave_q];
      Way1: first_left = most_q[2][leave_q];
      default: first_left = most_q[3][leave_q];
    endcase
    case (step_q)
      Way0: final_way = way_last_q && none_q[1][leave_q];
      Way1: final_way = way_last_q && none_q[2][leave_q];
      Way2: final_way = way_last_q && none_q[3][leave_q];
      Way3: final_way = way_last_q;
      default: final_way = 1'b0;
    endcase
  end
  assign sum   = {1'b0, fill_q} + n_bytes;
  assign whole = sum[3];
  // The last bytes leave with this row, or alone after it.
  assign ends  = step_q == Rest || (final_way && (!whole || sum[2:0] == '0));
  assign sent  = leave_move && valid0 && ends;
  always_ff @(posedge clk_i) begin
    if (leave_move) begin
      if (valid0) begin
        fill_q <= ends ? '0 : sum[2:0];
        if (ends) step_q <= Sizes01;
        else if (final_way) step_q <= Rest;
        else if (next_way) step_q <= step_t'(step_q + 3'd1);
        leave_row_q <= next_way ? '0 : leave_row_q + 1'b1;
        left_code_q <= next_way ? first_left : left_code_q - LogBlock'(8);
        way_last_q  <= next_way ? first_is_last : left_code_q[LogBlock-1:3] == 1;
        if (ends) leave_q <= !leave_q;
      end
      valid1_q <= valid0;
      ends1_q  <= ends;
      whole1_q <= whole;
      fill1_q  <= fill_q;
      end1_q   <= sum[2:0];
    end
    if (!rst_ni) begin
      step_q      <= Sizes01;
      fill_q      <= '0;
      leave_row_q <= '0;
      leave_q     <= 1'b0;
      valid1_q    <= 1'b0;
    end
  end

  // The sizes are read a clock later, like the memories.
  function automatic logic [31:0] size_of_way(input logic none, input logic [LogBlock-1:0] most);
    return none ? 32'd0 : 32'(most) + 32'd1;
  endfunction
  logic over1_q, over2_q, over3_q, over4_q;
  logic [63:0] sizes1_q, sizes2_q, row3_q, turned_q;  // sizes: 0 in steps of ways
  logic [3:0][63:0] code2_q;                          // 0 but for that of the way whose step it is
  logic [3:0] way1_q;
  always_ff @(posedge clk_i) begin
    if (leave_move) begin
      over1_q <= over_code_q[leave_q];
      {over3_q, over2_q} <= {over2_q, over1_q};
      sizes1_q[31:0] <= step_q == Sizes01 ? size_of_way(1'b0, most_q[0][leave_q])
                                          : size_of_way(none_q[2][leave_q], most_q[2][leave_q]);
      sizes1_q[63:32] <= size_of_way(none_q[1][leave_q], most_q[1][leave_q]);
      if (step_q >= Way0) sizes1_q <= '0;
      for (int w = 0; w < 4; w++) way1_q[w] <= step_q == step_t'(int'(Way0) + w);
      // The memories are slow: no gates behind them, only registers, which have a reset.
      code2_q  <= code_row;
      for (int w = 0; w < 4; w++) if (!way1_q[w]) code2_q[w] <= '0;
      sizes2_q <= sizes1_q;
      row3_q   <= sizes2_q | code2_q[0] | code2_q[1] | code2_q[2] | code2_q[3];
    end
  end

  // Turned by an even number of bytes, then by one or none: byte i of a row to byte fill + i.
  logic odd4_q;
  logic [7:0] below4_q;
  logic [63:0] half_turned, placed, rest_q, joined, out_q;
  logic out_valid_q, out_last_q, out_over_q;
  logic [7:0] out_keep_q;
  always_comb begin
    half_turned = fill3_q[2] ? {row3_q[31:0], row3_q[63:32]} : row3_q;
    placed      = odd4_q ? {turned_q[55:0], turned_q[63:56]} : turned_q;
    for (int i = 0; i < 8; i++) joined[8*i+:8] = below4_q[i] ? rest_q[8*i+:8] : placed[8*i+:8];
  end
  always_ff @(posedge clk_i) begin
    if (leave_move) begin
      {valid4_q, valid3_q, valid2_q} <= {valid3_q, valid2_q, valid1_q};
      {ends4_q, ends3_q, ends2_q}    <= {ends3_q, ends2_q, ends1_q};
      {whole4_q, whole3_q, whole2_q} <= {whole3_q, whole2_q, whole1_q};
      {end4_q, end3_q, end2_q}       <= {end3_q, end2_q, end1_q};
      {fill3_q, fill2_q}             <= {fill2_q, fill1_q};
      over4_q  <= over3_q;
      odd4_q   <= fill3_q[0];
      turned_q <= fill3_q[1] ? {half_turned[47:0], half_turned[63:48]} : half_turned;
      for (int i = 0; i < 8; i++) below4_q[i] <= 3'(i) < fill3_q;
      if (valid4_q) rest_q <= whole4_q ? placed : joined;
      out_valid_q <= valid4_q && (whole4_q || ends4_q);
      out_q       <= joined;
      out_last_q  <= ends4_q;
      out_over_q  <= over4_q && ends4_q;
      for (int i = 0; i < 8; i++) out_keep_q[i] <= whole4_q || 3'(i) < end4_q;
    end
    if (!rst_ni) {valid4_q, valid3_q, valid2_q, out_valid_q} <= '0;
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tkeep  = out_keep_q;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tuser  = out_over_q;

endmodule
