// SPDX-License-Identifier: Apache-2.0
// terngrad encoder with clip=0 (codecs/terngrad/spec.md): a packet of float32 words in, 16 a clock;
// a packet of its code out. The bytes are those of every other encoder of terngrad with that seed.
//
// Does not clip, and does not know bytes behind the last whole value: who frames the code appends
// them. A packet has at least one value.
//
// A chunk of 4096 values is stored, since its scale is that of the largest, twice: while one is
// read the next one comes in.
//
// Rate: 16 values a clock, and 5 clocks more a chunk. Latency: a chunk, and about 50 clocks. The
// scale of a chunk of fewer than 16 rows is found behind that of the one before it.
module wpr_terngrad_enc #(
  parameter bit Mult18 = 1'b0  // for devices with multipliers of 18x18 bits: see wpr_times
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from a packet's first beat in to its last one out.
  input logic [63:0] cfg_seed_i,
  input logic [63:0] cfg_first_i,  // index of the packet's first value in its array

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

  // What is known of a row when the chunk is read again.
  typedef struct packed {
    logic       row;
    logic       begins;  // the chunk
    logic       ends;    // the chunk
    logic       last;    // of the packet, with ends
    logic       buffer;
    logic [7:0] number;
  } tag_t;
  tag_t tag;
  tag_t [22:1] tags_q;
  logic out_q;

  // ---- in: a chunk fills one of two buffers -----------------------------------------------------

  logic take, chunk_last, in_buffer, release_chunk, released;
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
    .free_buffer_i(released)
  );

  logic row1_q, first1_q, last1_q, end1_q, buffer1_q;
  logic [7:0] number1_q;
  logic [Lanes-1:0][31:0] words1_q;
  always_ff @(posedge clk_i) begin
    row1_q    <= take && rst_ni;
    first1_q  <= in_row == '0;
    last1_q   <= chunk_last;
    end1_q    <= s_axis_tlast;
    buffer1_q <= in_buffer;
    number1_q <= in_row;
    words1_q  <= words;
  end
  // Exponents are wanted before the rest.
  logic [Lanes-1:0][7:0] exponents1;
  logic [Lanes-1:0][23:0] rests1;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      exponents1[l] = words1_q[l][30:23];
      rests1[l]     = {words1_q[l][31], words1_q[l][22:0]};
    end
  end
  logic [8*Lanes-1:0] exponents_q[512];
  logic [24*Lanes-1:0] rests_q[512];
  always_ff @(posedge clk_i) begin
    if (row1_q) begin
      exponents_q[{buffer1_q, number1_q}] <= exponents1;
      rests_q[{buffer1_q, number1_q}]     <= rests1;
    end
  end

  // ---- the largest magnitude --------------------------------------------------------------------

  logic soon, done, soon_buffer_q, done_buffer_q;
  logic [30:0] most;
  wpr_chunk_largest largest (
    .clk_i,
    .rst_ni,
    .row_i  (row1_q),
    .first_i(first1_q),
    .last_i (last1_q),
    .words_i(words1_q),
    .soon_o (soon),
    .done_o (done),
    .most_o (most)
  );
  logic [1:0][30:0] scales_q;
  logic [1:0][7:0] chunk_rows_q;  // less one
  logic [1:0] ends_q, ready_q;
  always_ff @(posedge clk_i) begin
    if (row1_q && last1_q) begin
      chunk_rows_q[buffer1_q] <= number1_q;
      ends_q[buffer1_q]       <= end1_q;
    end
    if (tag.row && tag.ends) ready_q[out_q] <= 1'b0;
    if (soon) begin
      ready_q[soon_buffer_q] <= 1'b1;  // for a scale is wanted eleven clocks behind a tag
      soon_buffer_q          <= !soon_buffer_q;
    end
    if (done) begin
      scales_q[done_buffer_q] <= most;
      done_buffer_q           <= !done_buffer_q;
    end
    if (!rst_ni) begin
      ready_q       <= '0;
      soon_buffer_q <= 1'b0;
      done_buffer_q <= 1'b0;
    end
  end

  // ---- the chunk again: rows of random bits, and the values when these are there ----------------

  logic packet_begins_q, room;
  logic [7:0] row_q;
  always_comb begin
    tag.row    = ready_q[out_q] && room;
    tag.begins = row_q == '0;
    tag.ends   = row_q == chunk_rows_q[out_q];
    tag.last   = tag.ends && ends_q[out_q];
    tag.buffer = out_q;
    tag.number = row_q;
  end
  always_ff @(posedge clk_i) begin
    tags_q <= {tags_q[21:1], tag};
    if (tag.row) begin
      row_q           <= tag.ends ? '0 : row_q + 8'd1;
      packet_begins_q <= tag.last;
      if (tag.ends) out_q <= !out_q;
    end
    if (!rst_ni) begin
      for (int i = 1; i <= 22; i++) tags_q[i].row <= 1'b0;
      row_q           <= '0;
      out_q           <= 1'b0;
      packet_begins_q <= 1'b1;
    end
  end

  logic [Lanes-1:0][31:0] bits;
  wpr_hash #(.Mult18(Mult18)) hash (
    .clk_i,
    .rst_ni,
    .seed_i (cfg_seed_i),
    .first_i(cfg_first_i),
    .row_i  (tag.row),
    .begin_i(packet_begins_q),
    .bits_o (bits)
  );

  // Rows come and go in the same order, none faster than the other: the next chunk may come into
  // the buffer of a long one while its last rows wait to be read, 18 clocks behind their tags.
  logic release_long, release_short;
  assign release_long  = tags_q[1].row && tags_q[1].ends && tags_q[1].number[7:4] != '0;
  assign release_short = tags_q[17].row && tags_q[17].ends && tags_q[17].number[7:4] == '0;
  assign release_chunk = release_long || release_short;
  assign released      = release_long ? tags_q[1].buffer : tags_q[17].buffer;
  logic [8*Lanes-1:0] exponents11_q;
  logic [24*Lanes-1:0] rests19_q;
  always_ff @(posedge clk_i) exponents11_q <= exponents_q[{tags_q[10].buffer, tags_q[10].number}];
  always_ff @(posedge clk_i) rests19_q <= rests_q[{tags_q[18].buffer, tags_q[18].number}];
  logic [Lanes-1:0][7:0] exponents12_q;
  logic [Lanes-1:0][23:0] rests20_q;
  logic [14:12][7:0] scale_exponents_q;
  logic [23:0] significand14_q;
  logic nan14_q, normal_scale13_q;
  always_ff @(posedge clk_i) begin
    exponents12_q     <= exponents11_q;
    rests20_q         <= rests19_q;
    scale_exponents_q <= {scale_exponents_q[13:12], scales_q[tags_q[11].buffer][30:23]};
    normal_scale13_q  <= scale_exponents_q[12] != '0;
    significand14_q   <= {normal_scale13_q, scales_q[tags_q[13].buffer][22:0]};
    nan14_q           <= scale_exponents_q[13] == '1;
  end
  logic [7:0] exponent12;
  assign exponent12 = scale_exponents_q[12] == '0 ? 8'd1 : scale_exponents_q[12];

  // A value is taken where it is above drawn * scale, 23 bits by 24, rounded to a float: where the
  // product is below the middle between the value and the float before it, or is the middle and the
  // value is odd. As whole numbers, the value being 2^23 times its significand, with the product
  // times 2 to the difference of the exponents: what is drawn is shifted before it is multiplied,
  // and where it does not fit 24 bits (the scale is normal then) the product is above any value.
  logic [Lanes-1:0] taken22_q, negative22_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    // The shift, but for its lowest bit.
    logic [7:0] below;
    logic [4:1] shift13_q;
    logic [2:1] shift14_q;
    logic [20:13] low_shift_q;
    logic [22:0] drawn;
    logic [23:0] coarse, coarse14_q, shifted, shifted15_q;
    logic fits14_q;
    logic [23:0] significand15_q;
    logic [21:15] never_q;
    assign drawn = bits[l][31:9];
    assign below = exponent12 - (exponents12_q[l] == '0 ? 8'd1 : exponents12_q[l]);
    always_comb begin
      unique case (shift13_q[4:3])
        2'd0: coarse = {1'b0, drawn};
        2'd1: coarse = {drawn[15:0], 8'b0};
        2'd2: coarse = {drawn[7:0], 16'b0};
        default: coarse = '0;
      endcase
      unique case (shift14_q)
        2'd0: shifted = coarse14_q;
        2'd1: shifted = {coarse14_q[21:0], 2'b0};
        2'd2: shifted = {coarse14_q[19:0], 4'b0};
        default: shifted = {coarse14_q[17:0], 6'b0};
      endcase
    end
    always_ff @(posedge clk_i) begin
      shift13_q   <= {below[4:3] | {2{below[7:5] != '0}}, below[2:1]};
      shift14_q   <= shift13_q[2:1];
      coarse14_q  <= coarse;
      fits14_q    <= !((shift13_q[4:3] != 2'd0 && drawn[22:16] != '0) ||
                       (shift13_q[4] && drawn[15:8] != '0) ||
                       (shift13_q[4:3] == 2'd3 && drawn[7:0] != '0));
      // Those multipliers are many and lie all over a device, so each lane has this register for
      // itself: it holds what it has where the product does not matter, or synthesis would make
      // all of them one.
      if (!Mult18 || fits14_q) significand15_q <= significand14_q;
      shifted15_q <= shifted;
      never_q     <= {never_q[20:15], !fits14_q || nan14_q ||
                      (shift14_q != 2'd0 && coarse14_q[23:22] != '0) ||
                      (shift14_q[2] && coarse14_q[21:20] != '0) ||
                      (shift14_q == 2'd3 && coarse14_q[19:18] != '0)};
      low_shift_q <= {low_shift_q[19:13], below[0]};
    end

    logic [47:0] whole20;
    logic [30:0] product20;  // from 2^17
    logic zero21_q;          // below that
    wpr_product #(.Mult18(Mult18)) product (
      .clk_i,
      .a_i      (shifted15_q),
      .b_i      (significand15_q),
      .product_o(whole20)
    );
    assign product20 = whole20[47:17];
    always_ff @(posedge clk_i) zero21_q <= whole20[16:0] == '0;

    // The product with the shift's lowest bit, less the value, whose last place is 1 (where that
    // bit is 0, twice both). The middle is 1/2 below the value, or 1/4 if that is a power of two,
    // for the float before it is then half as far away: where the difference, rounded down, is -1,
    // lower bits decide.
    logic [20:13] normal_q, above_q;  // exponent above 0, above 1
    logic [23:0] significand20;
    logic power, odd, beyond, beyond_odd, beyond21_q, beyond_zero21_q, sign21_q, taken;
    logic [26:0] less21_q;
    assign significand20 = {normal_q[20], rests20_q[l][22:0]};
    assign power = above_q[20] && rests20_q[l][22:0] == '0;
    // With zero below, where the value is odd: what is the middle is not beyond it.
    assign odd = rests20_q[l][0] && product20[2:0] == '0;
    assign beyond = low_shift_q[20] ? product20[4] && (product20[3] || !power) :
                    product20[4] || !power;
    assign beyond_odd = low_shift_q[20] ? product20[4] && product20[3] :
                        product20[4] || (product20[3] && !power);
    assign taken = less21_q[26] && !never_q[21] &&
                   !(less21_q[25:0] == '1 && (zero21_q ? beyond_zero21_q : beyond21_q));
    always_ff @(posedge clk_i) begin
      normal_q        <= {normal_q[19:13], exponents12_q[l] != '0};
      above_q         <= {above_q[19:13], exponents12_q[l][7:1] != '0};
      less21_q        <= 27'(product20[30:5]) -
                    (low_shift_q[20] ? 27'(significand20) : 27'({significand20, 1'b0}));
      beyond21_q      <= beyond;
      beyond_zero21_q <= odd ? beyond_odd : beyond;
      sign21_q        <= rests20_q[l][23];
      taken22_q[l]    <= taken;
      negative22_q[l] <= taken && sign21_q;
    end
  end

  // ---- out: the scale of a chunk, and two words for two rows, one a clock -----------------------

  // A group is two rows, or at a chunk's end one.
  logic [15:0] taken23_q, negative23_q, taken_beside_q, negative_beside_q;
  logic group23_q, ends23_q, last23_q;
  always_ff @(posedge clk_i) begin
    if (!tags_q[22].number[0]) {taken23_q, negative23_q} <= {taken22_q, negative22_q};
    {taken_beside_q, negative_beside_q} <= tags_q[22].number[0] ? {taken22_q, negative22_q} : '0;
    group23_q <= tags_q[22].row && (tags_q[22].number[0] || tags_q[22].ends);
    ends23_q  <= tags_q[22].ends;
    last23_q  <= tags_q[22].last;
    if (!rst_ni) group23_q <= 1'b0;
  end

  logic g_valid, g_ready, g_ends, g_last, w_ready, head_q, second_q;
  logic [31:0] g_taken, g_negative, word;
  logic [30:0] scale;
  logic [5:0] level;
  assign room     = level < 6'd16;  // up to 14 more are on their way
  wpr_fifo #(.Width(66), .LogDepth(5)) groups (
    .clk_i,
    .rst_ni,
    .s_valid_i(group23_q),
    .s_ready_o(),  // it is
    .s_data_i ({ends23_q, last23_q, taken_beside_q, taken23_q, negative_beside_q, negative23_q}),
    .m_valid_o(g_valid),
    .m_ready_i(g_ready),
    .m_data_o ({g_ends, g_last, g_taken, g_negative}),
    .level_o  (level)
  );
  // As many scales as groups at most; each is there before the first group of its chunk.
  wpr_fifo #(.Width(31), .LogDepth(5)) scales (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[14].row && tags_q[14].begins),
    .s_ready_o(),
    .s_data_i ({scale_exponents_q[14], significand14_q[22:0]}),
    .m_valid_o(),
    .m_ready_i(g_valid && w_ready && head_q),
    .m_data_o (scale),
    .level_o  ()
  );
  assign g_ready = w_ready && !head_q && second_q;
  always_ff @(posedge clk_i) begin
    if (g_valid && w_ready) begin
      head_q   <= g_ready && g_ends;
      second_q <= !head_q && !second_q;
    end
    if (!rst_ni) begin
      head_q   <= 1'b1;
      second_q <= 1'b0;
    end
  end
  assign word = head_q ? (scale[30:23] == '1 ? 32'h7FC00000 : {1'b0, scale})
              : second_q ? g_negative : g_taken;
  wpr_words_out out (
    .clk_i,
    .rst_ni,
    .s_valid_i(g_valid),
    .s_ready_o(w_ready),
    .s_data_i (word),
    .s_last_i (!head_q && second_q && g_last),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
