// SPDX-License-Identifier: Apache-2.0
// tbq encoder with of=one (codecs/tbq/spec.md): a packet of float32 words in, 16 a clock; a packet
// of its code out. The bytes are those of every other encoder of tbq.
//
// Does not know tau as a multiple of a mean (of=mean), does no error feedback, and does not know
// bytes behind the last whole value: who frames the code appends them. A packet has at least one
// value.
//
// A chunk of 4096 values is marked as it comes in, and both forms that it can have are stored: its
// marks, and a list of them, entry i in memory i mod 16. When it is in, the smaller one leaves, a
// word of 32 bits a clock, while the next chunk comes in.
//
// Rate: 16 values a clock, and at most one clock more a chunk. Latency: a chunk, and about 15
// clocks.
module wpr_tbq_enc (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // tau with 16 significant bits: bits 30 to 8 of its float32 word. Constant from a packet's first
  // beat in to its last one out.
  input logic [22:0] cfg_tau_i,

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

  // What is known of a chunk when it is in.
  typedef struct packed {
    logic        nan;
    logic        list;
    logic        last;   // of the packet
    logic [12:0] count;  // of its marks
    logic [ 6:0] groups;  // of 32 values, less one
  } chunk_t;

  // ---- in: a chunk fills one of two buffers -----------------------------------------------------

  logic [1:0] ready_q;
  logic in_buffer, out_q, take, chunk_last, release_chunk;
  logic [7:0] in_row;
  logic [Lanes-1:0][31:0] words;
  wpr_chunks_in chunks (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .row_o        (take),
    .words_o      (words),
    .buffer_o     (in_buffer),
    .number_o     (in_row),
    .last_o       (chunk_last),
    .free_i       (release_chunk),
    .free_buffer_i(out_q)
  );

  // What goes along with a row.
  typedef struct packed {
    logic       row;
    logic       first;   // of the chunk
    logic       last;    // of the chunk
    logic       final_;  // of the packet
    logic       buffer;
    logic [7:0] number;
  } tag_t;
  tag_t [9:1] tags_q;
  always_ff @(posedge clk_i) begin
    tags_q <= {tags_q[8:1], tag_t'{row: take, first: in_row == '0, last: chunk_last,
                                   final_: s_axis_tlast, buffer: in_buffer, number: in_row}};
    if (!rst_ni) for (int i = 1; i <= 9; i++) tags_q[i].row <= 1'b0;
  end

  // ---- 1, 2, 3: marks, and whether a value is not finite ----------------------------------------

  logic [Lanes-1:0][31:0] words1_q;
  logic [Lanes-1:0] above1, special1, marks2_q, negative2_q, marks3_q, negative3_q;
  logic special2_q;
  logic [6:3] nan_q;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      above1[l]   = words1_q[l][30:8] >= cfg_tau_i;
      special1[l] = words1_q[l][30:23] == '1;
    end
  end
  always_ff @(posedge clk_i) begin
    for (int l = 0; l < int'(Lanes); l++) begin
      negative2_q[l] <= words1_q[l][31];
    end
    words1_q    <= words;
    marks2_q    <= above1;
    special2_q  <= special1 != '0;
    marks3_q    <= marks2_q;
    negative3_q <= negative2_q & marks2_q;
    if (tags_q[2].row) nan_q[3] <= special2_q || (!tags_q[2].first && nan_q[3]);
    nan_q[6:4] <= nan_q[5:3];
  end

  // Marks and signs of a group of 32 values.
  logic [63:0] groups_q[256];
  logic [Lanes-1:0] marks_before_q, negative_before_q, marks_upper, negative_upper;
  assign marks_upper    = marks3_q & {Lanes{tags_q[3].number[0]}};
  assign negative_upper = negative3_q & {Lanes{tags_q[3].number[0]}};
  always_ff @(posedge clk_i) begin
    if (tags_q[3].row && !tags_q[3].number[0]) begin
      {marks_before_q, negative_before_q} <= {marks3_q, negative3_q};
    end
  end
  logic [Lanes-1:0] marks_lower, negative_lower;
  assign marks_lower    = tags_q[3].number[0] ? marks_before_q : marks3_q;
  assign negative_lower = tags_q[3].number[0] ? negative_before_q : negative3_q;
  always_ff @(posedge clk_i) begin
    if (tags_q[3].row && (tags_q[3].number[0] || tags_q[3].last)) begin
      groups_q[{tags_q[3].buffer, tags_q[3].number[7:1]}] <= {negative_upper, negative_lower,
                                                              marks_upper, marks_lower};
    end
  end

  // ---- 3, 4, 5: which place of the list a mark has ----------------------------------------------

  function automatic logic [2:0] ones(input logic [3:0] bits);
    return 3'(bits[0]) + 3'(bits[1]) + 3'(bits[2]) + 3'(bits[3]);
  endfunction
  logic [3:0][2:0] fours4_q;      // marks of four lanes
  logic [Lanes-1:0][1:0] inside4_q;  // marks before it among its four
  logic [Lanes-1:0][3:0] places5;  // before it in its row
  logic [Lanes-1:0] marks4_q, negative4_q, marks5_q, negative5_q, marks6_q, negative6_q;
  logic [Lanes-1:0][3:0] places5_q, places6_q;
  logic [4:0] total5_q;
  logic [12:0] base, count_q, base6_q;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      places5[l] = 4'(inside4_q[l]);
      for (int k = 0; k < l / 4; k++) places5[l] += 4'(fours4_q[k]);
    end
  end
  assign base = tags_q[5].first ? '0 : count_q;
  always_ff @(posedge clk_i) begin
    for (int k = 0; k < 4; k++) fours4_q[k] <= ones(marks3_q[4*k+:4]);
    for (int l = 0; l < int'(Lanes); l++) begin
      inside4_q[l] <= 2'(ones(marks3_q[l/4*4+:4] & ~(4'b1111 << l % 4)));
    end
    {marks4_q, negative4_q} <= {marks3_q, negative3_q};
    {marks5_q, negative5_q} <= {marks4_q, negative4_q};
    {marks6_q, negative6_q} <= {marks5_q, negative5_q};
    places5_q <= places5;
    total5_q  <= 5'(fours4_q[0]) + 5'(fours4_q[1]) + 5'(fours4_q[2]) + 5'(fours4_q[3]);
    for (int l = 0; l < int'(Lanes); l++) places6_q[l] <= base[3:0] + places5_q[l];
    base6_q <= base;
    if (tags_q[5].row) count_q <= base + 13'(total5_q);
  end

  // ---- 6, 7, 8: entries to the memories ---------------------------------------------------------
  // A list that is used has 510 entries or fewer; no more than 512 are stored.

  typedef struct packed {
    logic       negative;
    logic [7:0] row;
    logic [3:0] lane;
  } entry_t;
  logic move;
  logic [4:0] pairs_at;  // what is read
  entry_t [Lanes-1:0] pairs_q;
  logic [5:0] upper7_q;  // places by 16: of memories from the first place on
  logic [Lanes-1:0] wraps7_q;  // of the others it is one more
  always_ff @(posedge clk_i) begin
    upper7_q <= base6_q[12:9] == '0 ? {1'b0, base6_q[8:4]} : '1;
    for (int m = 0; m < int'(Lanes); m++) wraps7_q[m] <= 4'(m) < base6_q[3:0];
  end
  for (genvar m = 0; m < int'(Lanes); m++) begin : g_memory
    logic [Lanes-1:0] hits7_q, signs7_q;
    logic [3:0] lane;
    logic write8_q;
    logic [4:0] at8_q;
    logic [5:0] at;
    entry_t entry8_q;
    assign at = upper7_q + 6'(wraps7_q[m]);
    always_comb begin
      lane = '0;
      for (int l = 0; l < int'(Lanes); l++) if (hits7_q[l]) lane |= 4'(l);
    end
    always_ff @(posedge clk_i) begin
      for (int l = 0; l < int'(Lanes); l++) begin
        hits7_q[l]  <= marks6_q[l] && places6_q[l] == 4'(m);
        signs7_q[l] <= negative6_q[l] && places6_q[l] == 4'(m);
      end
      write8_q <= tags_q[7].row && hits7_q != '0 && !at[5] && !upper7_q[5];
      at8_q    <= at[4:0];
      entry8_q <= '{negative: signs7_q != '0, row: tags_q[7].number, lane: lane};
    end
    (* ram_style = "distributed" *) logic [12:0] entries_q[64];
    always_ff @(posedge clk_i) if (write8_q) entries_q[{tags_q[8].buffer, at8_q}] <= entry8_q;
    always_ff @(posedge clk_i) if (move) pairs_q[m] <= entries_q[{out_q, pairs_at}];
  end

  // The form of the chunk: a list where half its entries, rounded up, are fewer than two a group.
  logic [12:0] count7_q;
  logic list7_q, nan7_q;
  logic [9:0] most6;
  chunk_t [1:0] chunks_q;
  assign most6 = {1'b0, tags_q[6].number[7:1], 2'b00} + 10'd2;  // 4 a group, less 2
  always_ff @(posedge clk_i) begin
    count7_q <= count_q;
    list7_q  <= count_q <= 13'(most6);
    nan7_q   <= nan_q[6];
    if (tags_q[7].row && tags_q[7].last) begin
      chunks_q[tags_q[7].buffer] <= '{nan: nan7_q, list: list7_q, last: tags_q[7].final_,
                                      count: count7_q, groups: tags_q[7].number[7:1]};
    end
    if (tags_q[9].row && tags_q[9].last) ready_q[tags_q[9].buffer] <= 1'b1;
    if (release_chunk) ready_q[out_q] <= 1'b0;
    if (!rst_ni) ready_q <= '0;
  end

  // ---- out: the head of a chunk, and its words, one a clock -------------------------------------

  chunk_t chunk;
  logic have, body_q, ends, empty;
  logic [7:0] word_q, final_word;
  assign chunk         = chunks_q[out_q];
  assign have          = ready_q[out_q];
  assign empty         = chunk.nan || (chunk.list && chunk.count == '0);
  assign final_word    = chunk.list ? chunk.count[8:1] - 8'(!chunk.count[0])
                                      : {chunk.groups, 1'b1};
  assign ends          = body_q ? word_q == final_word : empty;
  assign release_chunk = have && move && ends;
  assign pairs_at      = word_q[7:3];
  logic va_q, lasta_q, heada_q, lista_q, cuta_q;
  logic [2:0] pair_q;
  logic [31:0] headword_q;
  logic [63:0] group_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      va_q       <= have;
      lasta_q    <= ends && chunk.last;
      heada_q    <= !body_q;
      lista_q    <= chunk.list;
      cuta_q     <= ends && chunk.count[0];
      pair_q     <= word_q[2:0];
      headword_q <= chunk.nan ? '1 : chunk.list ? 32'(chunk.count) : 32'h00010000;
      if (have) begin
        body_q <= !ends;
        word_q <= body_q && !ends ? word_q + 8'd1 : '0;
        if (ends) out_q <= !out_q;
      end
    end
    if (!rst_ni) begin
      va_q   <= 1'b0;
      body_q <= 1'b0;
      out_q  <= 1'b0;
      word_q <= '0;
    end
  end
  always_ff @(posedge clk_i) if (move) group_q <= groups_q[{out_q, word_q[7:1]}];

  function automatic logic [15:0] listed(input entry_t entry);
    return {entry.negative, 3'b0, entry.row, entry.lane};
  endfunction
  logic vb_q, lastb_q;
  logic [31:0] wordb_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      vb_q    <= va_q;
      lastb_q <= lasta_q;
      wordb_q <= heada_q ? headword_q
               : lista_q ? {listed(pairs_q[{pair_q, 1'b1}]) & {16{!cuta_q}},
                            listed(pairs_q[{pair_q, 1'b0}])}
               : pair_q[0] ? group_q[63:32] : group_q[31:0];
    end
    if (!rst_ni) vb_q <= 1'b0;
  end
  wpr_words_out out (
    .clk_i,
    .rst_ni,
    .s_valid_i(vb_q),
    .s_ready_o(move),
    .s_data_i (wordb_q),
    .s_last_i (lastb_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
