// SPDX-License-Identifier: Apache-2.0
// The tables of a block's sequences, its own or the predefined ones, with their descriptions; and
// the bit stream of the sequences: the last one first, one a clock, and 17 clocks more.
module wpr_zstd_enc_sequences
  import wpr_zstd_enc_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,   // synchronous
  input  logic        tables_i,       // makes the tables, in 850 clocks
  input  logic        own_i,          // of their own; constant until start_i
  input  logic        tables_bank_i,
  input  logic [13:0] tables_n_i,     // sequences
  output logic        tables_busy_o,
  output logic        count_o,        // wpr_zstd_enc_blocks
  output logic [ 5:0] code_o,
  input  logic [2:0][13:0] n_codes_i,

  input  logic        bank_i,         // of the block whose sequences are coded
  input  logic        start_i,        // codes sequences with them
  input  logic [13:0] n_i,      // sequences, 1 and more
  output logic        busy_o,
  output logic        over_o,   // more bytes than a block may have
  output logic [17:0] size_o,   // bytes

  output logic [12:0] at_o,
  input  sequence_t   sequence_i,  // two clocks later

  output logic [2:0][6:0] table_size_o,  // bytes of their descriptions, from start_i on
  output logic [2:0][63:0] table_row_o,
  input  logic [12:0] row_i,
  output logic [63:0] row_o     // of the bit stream, two clocks later
);

  // What goes along: whether there is a sequence, whether it is the last one of the block, whether
  // the end of the stream is here instead.
  typedef struct packed {
    logic valid;
    logic last;
    logic finish;
  } tag_t;
  tag_t tag0_q, tag_q[8];
  logic [13:0] left_q;
  logic going_q, begin_q, finish_q;
  assign at_o = 13'(left_q - 14'd1);

  // ---- codes, and bits that stand beside them ---------------------------------------------------

  sequence_t s2_q, s3_q;
  logic [4:0] literal_high2_q, match_high2_q, offset_high2_q;
  logic [5:0] literal3_q, match3_q, offset3_q;
  logic [3:0] n_literal4_q, n_match4_q;
  logic [4:0] n_offset4_q, n_offset5_q;
  logic [15:0] literal4_q, match4_q, offset4_q, offset5_q;
  logic [30:0] both5_q;
  logic [15:0] literal_mask, match_mask, offset_mask;
  assign literal_mask = ~(16'hFFFF << n_literal4_q);
  assign match_mask   = ~(16'hFFFF << n_match4_q);
  assign offset_mask  = ~(16'hFFFF << n_offset4_q);
  logic [4:0] n_both5_q;
  logic [46:0] extra6_q;
  logic [5:0] n_extra6_q;

  logic [2:0] n_literal, n_match, n_offset;
  logic [6:0] literal, match, offset, literal_state, match_state;
  logic [5:0] offset_state;
  logic [2:0] tables_busy;
  logic [2:0][6:0] table_size;
  logic own_q;
  assign tables_busy_o = tables_busy != '0;
  wpr_zstd_enc_table #(.Kind(Literal), .Log(7), .LogPredefined(6)) literal_table (
    .clk_i,
    .rst_ni,
    .start_i    (tables_i),
    .own_i,
    .bank_i     (tables_bank_i),
    .n_i        (tables_n_i),
    .busy_o     (tables_busy[0]),
    .count_o    (count_o),
    .code_o     (code_o),
    .number_i   (n_codes_i[0]),
    .size_o     (table_size[0]),
    .bank_read_i(bank_i),
    .row_i      (row_i[2:0]),
    .row_o      (table_row_o[0]),
    .s_valid_i  (tag_q[3].valid),
    .s_first_i  (tag_q[3].last),
    .s_code_i   (literal3_q),
    .m_n_o      (n_literal),
    .m_bits_o   (literal),
    .state_o    (literal_state)
  );
  wpr_zstd_enc_table #(.Kind(Offset), .Log(6), .LogPredefined(5)) offset_table (
    .clk_i,
    .rst_ni,
    .start_i    (tables_i),
    .own_i,
    .bank_i     (tables_bank_i),
    .n_i        (tables_n_i),
    .busy_o     (tables_busy[1]),
    .count_o    (),
    .code_o     (),
    .number_i   (n_codes_i[1]),
    .size_o     (table_size[1]),
    .bank_read_i(bank_i),
    .row_i      (row_i[2:0]),
    .row_o      (table_row_o[1]),
    .s_valid_i  (tag_q[3].valid),
    .s_first_i  (tag_q[3].last),
    .s_code_i   (offset3_q),
    .m_n_o      (n_offset),
    .m_bits_o   (offset),
    .state_o    (offset_state)
  );
  wpr_zstd_enc_table #(.Kind(Match), .Log(7), .LogPredefined(6)) match_table (
    .clk_i,
    .rst_ni,
    .start_i    (tables_i),
    .own_i,
    .bank_i     (tables_bank_i),
    .n_i        (tables_n_i),
    .busy_o     (tables_busy[2]),
    .count_o    (),
    .code_o     (),
    .number_i   (n_codes_i[2]),
    .size_o     (table_size[2]),
    .bank_read_i(bank_i),
    .row_i      (row_i[2:0]),
    .row_o      (table_row_o[2]),
    .s_valid_i  (tag_q[3].valid),
    .s_first_i  (tag_q[3].last),
    .s_code_i   (match3_q),
    .m_n_o      (n_match),
    .m_bits_o   (match),
    .state_o    (match_state)
  );

  logic [20:0] steps6_q;
  logic [4:0] n_steps6_q;
  logic [63:0] piece7_q;
  logic [6:0] n_piece7_q;
  always_ff @(posedge clk_i) begin
    // The memory's two clocks are tags 0 and 1; 2 has the highest bits, 3 the codes, 5 the steps of
    // the states.
    tag0_q   <= '{going_q, begin_q, finish_q};
    tag_q[1] <= tag0_q;
    for (int i = 2; i < 8; i++) tag_q[i] <= tag_q[i-1];
    s2_q            <= sequence_i;
    literal_high2_q <= highest(17'(sequence_i.literals));
    match_high2_q   <= highest(17'(sequence_i.match));
    offset_high2_q  <= highest(sequence_i.offset);
    s3_q       <= s2_q;
    literal3_q <= literal_code(s2_q.literals[4:0], literal_high2_q);
    match3_q   <= match_code(s2_q.match[5:0], match_high2_q);
    offset3_q  <= 6'(offset_high2_q);

    n_literal4_q <= 4'(wpr_zstd_pkg::literal_bits(literal3_q));
    n_match4_q   <= 4'(wpr_zstd_pkg::match_bits(match3_q));
    n_offset4_q  <= offset3_q[4:0];
    {literal4_q, match4_q, offset4_q} <= {s3_q.literals, s3_q.match, s3_q.offset[15:0]};

    both5_q     <= 31'(literal4_q & literal_mask) | 31'(match4_q & match_mask) << n_literal4_q;
    n_both5_q   <= 5'(n_literal4_q) + 5'(n_match4_q);
    offset5_q   <= offset4_q & offset_mask;
    n_offset5_q <= n_offset4_q;

    extra6_q   <= 47'(both5_q) | 47'(offset5_q) << n_both5_q;
    n_extra6_q <= 6'(n_both5_q) + 6'(n_offset5_q);
    steps6_q   <= 21'(offset) | 21'(match) << n_offset |
                  21'(literal) << (4'(n_offset) + 4'(n_match));
    n_steps6_q <= 5'(n_offset) + 5'(n_match) + 5'(n_literal);
    if (tag_q[5].finish) begin
      steps6_q   <= own_q ? {1'b1, literal_state, offset_state, match_state} :
                    {4'd1, literal_state[5:0], offset_state[4:0], match_state[5:0]};
      n_steps6_q <= own_q ? 5'd21 : 5'd18;
      n_extra6_q <= '0;
      extra6_q   <= '0;
    end

    piece7_q   <= 64'(steps6_q) | 64'(extra6_q) << n_steps6_q;
    n_piece7_q <= 7'(n_steps6_q) + 7'(n_extra6_q);

    begin_q  <= 1'b0;
    finish_q <= 1'b0;
    if (going_q) begin
      left_q <= left_q - 14'd1;
      if (left_q == 14'd1) begin
        going_q  <= 1'b0;
        finish_q <= 1'b1;
      end
    end
    if (start_i) begin
      going_q <= 1'b1;
      begin_q <= 1'b1;
      left_q  <= n_i;
      own_q   <= own_i;
      table_size_o <= table_size;
    end
    if (!rst_ni) begin
      {going_q, finish_q} <= '0;
      tag0_q <= '0;
      for (int i = 1; i < 8; i++) tag_q[i] <= '0;
    end
  end

  // ---- rows -------------------------------------------------------------------------------------

  logic row_valid, flush;
  logic [63:0] row;
  logic [19:0] n_bits;
  logic [13:0] write_q;
  logic [2:0] wait_q;
  logic [12:0] row1_q;
  wpr_zstd_enc_bits #(.Most(64)) pack (
    .clk_i,
    .start_i,
    .s_valid_i(tag_q[7].valid || tag_q[7].finish),
    .s_n_i    (n_piece7_q),
    .s_bits_i (piece7_q),
    .flush_i  (flush),
    .m_valid_o(row_valid),
    .m_row_o  (row),
    .n_o      (n_bits)
  );
  logic [6:0] on_way;
  always_comb begin
    on_way[0] = tag0_q.valid || tag0_q.finish;
    for (int i = 1; i < 7; i++) on_way[i] = tag_q[i].valid || tag_q[i].finish;
  end
  assign flush  = wait_q == 3'd3;
  assign busy_o = going_q || finish_q || on_way != '0 || tag_q[7].finish || wait_q != '0;
  assign over_o = write_q[13];
  assign size_o = 18'((n_bits + 20'd7) >> 3);
  (* ram_style = "block" *) logic [63:0] rows_q[8192];
  always_ff @(posedge clk_i) begin
    if (row_valid && !over_o) write_q <= write_q + 14'd1;
    if (tag_q[7].finish) wait_q <= 3'd1;
    else if (wait_q != '0) wait_q <= wait_q == 3'd5 ? 3'd0 : wait_q + 3'd1;
    if (start_i) write_q <= '0;
    if (!rst_ni) wait_q <= '0;
  end
  always_ff @(posedge clk_i) begin
    row1_q <= row_i;
    row_o  <= rows_q[row1_q];
    if (row_valid && !over_o) rows_q[write_q[12:0]] <= row;
  end

endmodule
