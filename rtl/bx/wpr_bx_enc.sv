// SPDX-License-Identifier: Apache-2.0
// bx encoder for float32 (codecs/bx/spec.md): a packet of float32 words in, 16 a clock, which is
// one group; a packet of its chunks out, 512 bits a clock. The bytes are those of every other
// encoder of bx.
//
// A chunk of 256 groups is stored, since its size and its headers stand in front of it, twice:
// while one leaves the next one comes in.
//
// Does not know bytes behind the last whole value: who frames the code appends them. A packet has
// at least one value.
//
// Rate: 16 values a clock; up to 11 clocks more a chunk, of which nine are for its head and
// headers. Latency: a chunk, and about 20 clocks.
//
// In: quantise (3 clocks), find least and largest exponent (4), make the header (4). Out: rows of
// up to 32 words of 16 bits (a head with its bitmap, headers, a group's planes) are turned to where
// the code ends and joined to it.
module wpr_bx_enc (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: constant from two clocks before a packet until its last beat has left. Tied to
  // constants, the logic for all other settings goes away.
  input logic [4:0] cfg_m_i,         // fraction bits kept, 1 to 23
  input logic       cfg_nearest_i,   // round=nearest; neither: truncate
  input logic       cfg_midpoint_i,  // round=midpoint
  input logic       cfg_flush_i,     // denormals and -0 become +0

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

  // ---- settings, decoded ------------------------------------------------------------------------

  logic [22:0] drop_q;   // fraction bits that go
  logic [22:0] guard_q;  // the uppermost of them
  logic [23:0] unit_q;   // the lowest that stays
  logic [4:0] shift_q;   // 23 - m
  logic some_q;          // bits go
  always_ff @(posedge clk_i) begin
    shift_q <= 5'd23 - cfg_m_i;
    some_q  <= cfg_m_i != 5'd23;
    for (int i = 0; i < 24; i++) unit_q[i] <= i == 23 - int'(cfg_m_i);
    for (int i = 0; i < 23; i++) begin
      drop_q[i]  <= i < 23 - int'(cfg_m_i);
      guard_q[i] <= i == 22 - int'(cfg_m_i);
    end
  end

  // ---- in: a chunk fills one of two buffers -----------------------------------------------------

  logic take, chunk_last, in_buffer, release_chunk, out_q;
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

  // A group on its way to its header: bit i of these is of stage i.
  localparam int unsigned Stages = 11;
  logic [Stages:1] valid_q, last_q, end_q, to_q;
  logic [Stages:1][7:0] number_q;
  always_ff @(posedge clk_i) begin
    valid_q  <= {valid_q[Stages-1:1], take};
    last_q   <= {last_q[Stages-1:1], chunk_last};
    end_q    <= {end_q[Stages-1:1], s_axis_tlast};
    to_q     <= {to_q[Stages-1:1], in_buffer};
    number_q <= {number_q[Stages-1:1], in_row};
    if (!rst_ni) valid_q <= '0;
  end

  // ---- 1, 2, 3: quantise ------------------------------------------------------------------------

  logic [Lanes-1:0][31:0] word1_q, word2_q, word3_q;
  logic [Lanes-1:0] round1_q, tiny1_q, number1_q;
  logic [Lanes-1:0] zero3_q, any3_q, negative3_q, denormal3_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_quantise
    logic [31:0] word;
    logic [22:0] fraction;
    logic [30:0] rounded;
    logic tiny, special, guard, sticky, odd, full, cut_nan;
    assign word     = words[l];
    assign fraction = word[22:0];
    assign tiny     = word[30:23] == 8'h00;
    assign special  = word[30:23] == 8'hFF;
    assign guard    = |(fraction & guard_q);
    assign sticky   = |(fraction & drop_q & ~guard_q);
    assign odd      = |({word[23], fraction} & unit_q);
    // Rounded up, the largest values would become infinite.
    assign full     = word[30:23] == 8'hFE && &(fraction | drop_q);
    assign cut_nan  = special && |fraction && !(|(fraction & ~drop_q));
    assign rounded  = word1_q[l][30:0] + {7'b0, unit_q & {24{round1_q[l]}}};
    always_ff @(posedge clk_i) begin
      word1_q[l]   <= tiny && cfg_flush_i ? '0 : word | {9'b0, cut_nan, 22'b0};
      tiny1_q[l]   <= tiny;
      number1_q[l] <= !tiny && !special;
      round1_q[l]  <= cfg_nearest_i && guard && (sticky || odd) && !full && !special && !tiny;
      word2_q[l]   <= {word1_q[l][31], rounded};
      for (int i = 0; i < 23; i++) begin
        // Where nothing stands there, it is the register's reset, and no logic.
        if (!tiny1_q[l] && drop_q[i]) begin
          word2_q[l][i] <= guard_q[i] && cfg_midpoint_i && number1_q[l];
        end
      end
      word3_q[l]   <= word2_q[l];
      zero3_q[l]     <= word2_q[l][30:23] == '0;
      any3_q[l]      <= word2_q[l][30:0] != '0 || word2_q[l][31];
      negative3_q[l] <= word2_q[l][31];
      denormal3_q[l] <= word2_q[l][30:23] == '0 && word2_q[l][22:0] != '0;
    end
  end

  // The words wait in memory, to be read with their header.
  logic [511:0] words_q[512];
  logic [511:0] read_words;
  logic [8:0] out_address;
  logic out_move;
  always_ff @(posedge clk_i) if (valid_q[3]) words_q[{to_q[3], number_q[3]}] <= word3_q;
  always_ff @(posedge clk_i) if (out_move) read_words <= words_q[out_address];

  // ---- 4 to 7: what a group has -----------------------------------------------------------------

  function automatic logic [7:0] larger(input logic [7:0] a, input logic [7:0] b);
    return a > b ? a : b;
  endfunction
  function automatic logic [7:0] smaller(input logic [7:0] a, input logic [7:0] b);
    return a < b ? a : b;
  endfunction

  logic [7:0][7:0] most4_q, least4_q;
  logic [3:0][7:0] most5_q, least5_q;
  logic [1:0][7:0] most6_q, least6_q;
  logic [7:0] most7_q, least7_q;  // least: of exponents that are not 0; if there is none, 255
  logic [7:4] any_q, zero_q, denormal_q, positive_q, all_negative_q;
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 8; i++) begin
      most4_q[i]  <= larger(word3_q[2*i][30:23], word3_q[2*i+1][30:23]);
      least4_q[i] <= smaller(word3_q[2*i][30:23] | {8{zero3_q[2*i]}},
                             word3_q[2*i+1][30:23] | {8{zero3_q[2*i+1]}});
    end
    for (int i = 0; i < 4; i++) begin
      most5_q[i]  <= larger(most4_q[2*i], most4_q[2*i+1]);
      least5_q[i] <= smaller(least4_q[2*i], least4_q[2*i+1]);
    end
    for (int i = 0; i < 2; i++) begin
      most6_q[i]  <= larger(most5_q[2*i], most5_q[2*i+1]);
      least6_q[i] <= smaller(least5_q[2*i], least5_q[2*i+1]);
    end
    most7_q  <= larger(most6_q[0], most6_q[1]);
    least7_q <= smaller(least6_q[0], least6_q[1]);

    any_q          <= {any_q[6:4], |any3_q};
    zero_q         <= {zero_q[6:4], |zero3_q};
    denormal_q     <= {denormal_q[6:4], |denormal3_q};
    positive_q     <= {positive_q[6:4], !(|negative3_q)};
    all_negative_q <= {all_negative_q[6:4], (negative3_q ^ zero3_q) == '1};
  end

  // ---- 8 to 11: its header ----------------------------------------------------------------------

  logic [7:0] base8_q, base9_q, base10_q, range9_q, most8_q;
  logic [10:8] present_q;
  logic zero8_q, zero9_q, zero10_q, full8_q, full9_q, full10_q;
  logic [1:0] sign8_q, sign9_q, sign10_q;
  logic [3:0] width10_q;
  always_ff @(posedge clk_i) begin
    present_q <= {present_q[9:8], any_q[7]};
    most8_q   <= most7_q;
    base8_q   <= most7_q == '0 ? '0 : least7_q - 8'(zero_q[7]);
    zero8_q   <= zero_q[7];
    full8_q   <= denormal_q[7] && some_q;
    sign8_q   <= positive_q[7] ? 2'd0 : all_negative_q[7] ? 2'd1 : 2'd2;
    base9_q   <= base8_q;
    range9_q  <= most8_q - base8_q;
    zero9_q   <= zero8_q;
    full9_q   <= full8_q;
    sign9_q   <= sign8_q;
    base10_q  <= base9_q;
    zero10_q  <= zero9_q;
    full10_q  <= full9_q;
    sign10_q  <= sign9_q;
    width10_q <= '0;
    for (int i = 0; i < 8; i++) if (range9_q[i]) width10_q <= 4'(i + 1);
  end

  // ---- the chunk's tables -----------------------------------------------------------------------

  // By group: what the planes want to know.
  typedef struct packed {
    logic [5:0] n_words;  // 0: not present
    logic       mixed;
    logic       full;
    logic [7:0] base;
  } info_t;
  info_t infos_q[512];
  info_t info11_q, read_info;
  logic present11_q;
  logic [15:0] header11_q;
  logic [5:0] n_planes;
  assign n_planes = 6'(full10_q ? 5'd23 : cfg_m_i) + 6'(width10_q) + 6'(sign10_q[1]);
  always_ff @(posedge clk_i) begin
    present11_q <= present_q[10];
    header11_q  <= {sign10_q, full10_q, zero10_q, width10_q, base10_q};
    info11_q    <= '{n_words: present_q[10] ? n_planes : '0, mixed: sign10_q[1], full: full10_q,
                     base: base10_q};
  end
  always_ff @(posedge clk_i) if (valid_q[11]) infos_q[{to_q[11], number_q[11]}] <= info11_q;
  always_ff @(posedge clk_i) if (out_move) read_info <= infos_q[out_address];

  // Headers of present groups behind each other, 32 a row; the bitmap, 16 bits at a time.
  logic [8:0] present_count_q, counted;
  logic [13:0] words_count_q, counted_words;
  logic [15:0] bits_q, bits;
  logic [1:0][8:0] presents_q;
  logic [1:0][13:0] sums_q;
  logic [1:0][7:0] groups_q;  // less one
  logic [1:0] ends_q, ready_q;
  assign counted       = present_count_q + 9'(present11_q);
  assign counted_words = words_count_q + 14'(info11_q.n_words);
  assign bits          = bits_q | 16'(present11_q) << number_q[11][3:0];
  always_ff @(posedge clk_i) begin
    if (valid_q[11]) begin
      present_count_q <= last_q[11] ? '0 : counted;
      words_count_q   <= last_q[11] ? '0 : counted_words;
      bits_q          <= last_q[11] || &number_q[11][3:0] ? '0 : bits;
      if (last_q[11]) begin
        presents_q[to_q[11]] <= counted;
        sums_q[to_q[11]]     <= counted_words;
        groups_q[to_q[11]]   <= number_q[11];
        ends_q[to_q[11]]     <= end_q[11];
        ready_q[to_q[11]]    <= 1'b1;
      end
    end
    if (release_chunk) ready_q[out_q] <= 1'b0;
    if (!rst_ni) begin
      present_count_q <= '0;
      words_count_q   <= '0;
      bits_q          <= '0;
      ready_q         <= '0;
    end
  end

  logic [511:0] read_headers;
  logic [255:0] read_bits;
  logic [2:0] header_row_q;
  for (genvar i = 0; i < 32; i++) begin : g_headers
    (* ram_style = "distributed" *) logic [15:0] headers_q[16];
    always_ff @(posedge clk_i) begin
      if (valid_q[11] && present11_q && present_count_q[4:0] == 5'(i)) begin
        headers_q[{to_q[11], present_count_q[7:5]}] <= header11_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (out_move) read_headers[16*i+:16] <= headers_q[{out_q, header_row_q}];
    end
  end
  for (genvar i = 0; i < 16; i++) begin : g_bits
    logic [1:0][15:0] map_q;
    always_ff @(posedge clk_i) begin
      if (valid_q[11] && number_q[11][7:4] == 4'(i)) map_q[to_q[11]] <= bits;
      if (out_move) read_bits[16*i+:16] <= map_q[out_q];
    end
  end

  // ---- out 0: which row comes next --------------------------------------------------------------

  typedef enum logic [1:0] {Head, Headers, Groups, Rest} step_t;
  step_t step_q;
  logic [7:0] out_group_q;
  logic valid0, dense, packet_end;
  logic [8:0] present, left_q;
  logic [4:0] map_words;
  logic [15:0] head;
  logic [5:0] row_words;
  // What a head is made of, two clocks after its chunk has become the next.
  logic dense_q, none_q;
  logic [1:0] settled_q;
  logic [4:0] map_words_q;
  logic [14:0] head_words_q;
  assign present   = presents_q[out_q];
  assign dense     = present == 9'(groups_q[out_q]) + 9'd1;
  assign map_words = dense_q ? 5'd0 : map_words_q;
  assign head      = none_q ? '0 : {dense_q, head_words_q + 15'(map_words)};
  always_ff @(posedge clk_i) begin
    settled_q    <= ready_q[out_q] && !release_chunk ? {settled_q[0], 1'b1} : '0;
    dense_q      <= dense;
    none_q       <= present == '0;
    map_words_q  <= 5'(groups_q[out_q][7:4]) + 5'd1;
    head_words_q <= 15'(sums_q[out_q]) + 15'(present);
  end
  assign valid0     = settled_q[1];
  assign packet_end = ends_q[out_q];
  assign out_address = {out_q, out_group_q};
  always_comb begin
    case (step_q)
      Head: row_words = none_q ? 6'd1 : 6'(map_words) + 6'd1;
      Headers: row_words = left_q > 9'd32 ? 6'd32 : left_q[5:0];
      default: row_words = 6'd0;  // Groups: by its header
    endcase
  end
  logic chunk_done;
  assign chunk_done = (step_q == Head && none_q) ||
                      (step_q == Groups && out_group_q == groups_q[out_q]);
  assign release_chunk = out_move && valid0 &&
                         (step_q == Rest || (chunk_done && !packet_end));
  always_ff @(posedge clk_i) begin
    if (out_move && valid0) begin
      case (step_q)
        Head: begin
          step_q <= !none_q ? Headers : packet_end ? Rest : Head;
          left_q <= present;
        end
        Headers: begin
          left_q <= left_q - 9'd32;
          if (left_q <= 9'd32) step_q <= Groups;
        end
        Groups: if (chunk_done) step_q <= packet_end ? Rest : Head;
        default: step_q <= Head;
      endcase
      header_row_q <= step_q == Headers ? header_row_q + 3'd1 : '0;
      out_group_q  <= step_q == Groups ? (chunk_done ? '0 : out_group_q + 8'd1) : '0;
      if (release_chunk) out_q <= !out_q;
    end
    if (!rst_ni) begin
      step_q       <= Head;
      out_q        <= 1'b0;
      out_group_q  <= '0;
      header_row_q <= '0;
    end
  end

  // ---- out 1: memories have been read; 2: registers behind them ---------------------------------

  logic valid1_q, valid2_q;
  step_t step1_q, step2_q;
  logic [15:0] head1_q, head2_q;
  logic [5:0] row_words1_q, row_words2_q;
  info_t info2_q;
  logic [511:0] words2_q, headers2_q;
  logic [255:0] bits2_q;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      {valid2_q, valid1_q}         <= {valid1_q, valid0};
      {step2_q, step1_q}           <= {step1_q, step_q};
      {head2_q, head1_q}           <= {head1_q, head};
      {row_words2_q, row_words1_q} <= {row_words1_q, row_words};
      info2_q    <= read_info;
      words2_q   <= read_words;
      headers2_q <= read_headers;
      bits2_q    <= read_bits;
    end
    if (!rst_ni) {valid2_q, valid1_q} <= '0;
  end

  // ---- out 3: offsets of exponents --------------------------------------------------------------

  logic valid3_q, mixed3_q, full3_q;
  step_t step3_q;
  logic [Lanes-1:0][31:0] value3_q;  // sign, offset, fraction
  logic [511:0] other3_q;  // a row that is no group
  logic [5:0] n3_q;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      valid3_q <= valid2_q;
      step3_q  <= step2_q;
      mixed3_q <= info2_q.mixed;
      full3_q  <= info2_q.full;
      n3_q     <= step2_q == Groups ? info2_q.n_words : row_words2_q;
      other3_q <= step2_q == Head ? {240'b0, bits2_q, head2_q} : headers2_q;
      for (int l = 0; l < int'(Lanes); l++) begin
        value3_q[l] <= {words2_q[32*l+31],
                        words2_q[32*l+23+:8] -
                            (words2_q[32*l+23+:8] != '0 ? info2_q.base : 8'd0),
                        words2_q[32*l+:23]};
      end
    end
    if (!rst_ni) valid3_q <= 1'b0;
  end

  // ---- out 4: planes; where the row goes --------------------------------------------------------

  logic valid4_q, ends4_q, whole4_q;
  logic [511:0] row4_q, planes;
  logic [5:0] fill_q, fill4_q;  // words before this row that have not left, 0 to 32
  logic [6:0] sum;
  logic more;  // than a row
  assign sum  = 7'(fill_q) + 7'(n3_q);
  assign more = sum[6] || (sum[5] && sum[4:0] != '0);
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      logic [31:0] code;
      code = {1'b0, full3_q ? value3_q[l][30:0] : value3_q[l][30:0] >> shift_q};
      if (mixed3_q) code = {code[30:0], value3_q[l][31]};
      for (int p = 0; p < 32; p++) planes[16*p+l] = code[p];
    end
  end
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      valid4_q <= valid3_q;
      ends4_q  <= step3_q == Rest;
      whole4_q <= more;
      fill4_q  <= fill_q;
      row4_q   <= step3_q == Groups ? planes : other3_q;
      // A full row stays until it is known that more comes: the last one leaves with tlast.
      if (valid3_q) fill_q <= step3_q == Rest ? '0 : {more ? sum[6] : sum[5], sum[4:0]};
    end
    if (!rst_ni) begin
      valid4_q <= 1'b0;
      fill_q   <= '0;
    end
  end

  // ---- out 5, 6, 7: turned by 16 and 8, 4 and 2, and one word; joined ---------------------------

  logic valid5_q, ends5_q, whole5_q, valid6_q, ends6_q, whole6_q, out_valid_q, out_last_q;
  logic [5:0] fill5_q, fill6_q;
  logic [511:0] row5_q, row6_q, placed, joined, rest_q, out_data_q;
  logic [31:0] below6_q, out_keep_q;
  logic [511:0] turn5a, turn5, turn6a, turn6;
  assign turn5a = fill4_q[4] ? {row4_q[255:0], row4_q[511:256]} : row4_q;
  assign turn5  = fill4_q[3] ? {turn5a[383:0], turn5a[511:384]} : turn5a;
  assign turn6a = fill5_q[2] ? {row5_q[447:0], row5_q[511:448]} : row5_q;
  assign turn6  = fill5_q[1] ? {turn6a[479:0], turn6a[511:480]} : turn6a;
  assign placed = fill6_q[0] ? {row6_q[495:0], row6_q[511:496]} : row6_q;
  always_comb begin
    for (int i = 0; i < 32; i++) begin
      joined[16*i+:16] = below6_q[i] ? rest_q[16*i+:16] : placed[16*i+:16];
    end
  end
  assign out_move = m_axis_tready || !out_valid_q;
  always_ff @(posedge clk_i) begin
    if (out_move) begin
      {valid6_q, valid5_q} <= {valid5_q, valid4_q};
      {ends6_q, ends5_q}   <= {ends5_q, ends4_q};
      {whole6_q, whole5_q} <= {whole5_q, whole4_q};
      {fill6_q, fill5_q}   <= {fill5_q, fill4_q};
      row5_q <= turn5;
      row6_q <= turn6;
      for (int i = 0; i < 32; i++) below6_q[i] <= 6'(i) < fill5_q;
      if (valid6_q) rest_q <= whole6_q ? placed : joined;
      out_valid_q <= valid6_q && (whole6_q || ends6_q);
      out_last_q  <= ends6_q;
      out_data_q  <= joined;
      for (int i = 0; i < 32; i++) out_keep_q[i] <= !ends6_q || 6'(i) < fill6_q;
    end
    if (!rst_ni) {valid6_q, valid5_q, out_valid_q} <= '0;
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_data_q;
  assign m_axis_tlast  = out_last_q;
  always_comb begin
    for (int i = 0; i < 32; i++) m_axis_tkeep[2*i+:2] = {2{out_keep_q[i]}};
  end

endmodule
