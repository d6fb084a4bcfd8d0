// SPDX-License-Identifier: Apache-2.0
// int8 encoder with round=nearest (codecs/int8/spec.md): a packet of float32 words in, 16 a clock;
// a packet of its code out. The bytes are those of every other encoder of int8.
//
// Does not round at random (round=stochastic), and does not know bytes behind the last whole value:
// who frames the code appends them. A packet has at least one value.
//
// Rows of 16 values are stored until the scale of their block is known, which its largest value
// makes, and the reciprocal of that, by which the values are multiplied.
//
// Rate: 16 values a clock, less one clock in four blocks; a block, and so a packet, takes 8 clocks
// at least. Latency: a block, and about 65 clocks.
module wpr_int8_enc #(
  parameter bit Mult18 = 1'b0  // for multipliers of 18 by 18 bits (wpr_product)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from two clocks before a packet until its last beat has left.
  input logic [3:0] cfg_block_i,  // 7 to 12: a block has so many values, as a power of two

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
  localparam int unsigned LogRows = 9;  // of the memory: more than a block of 4096 values

  // What is known of a block when it is in.
  typedef struct packed {
    logic       last;  // of its packet
    logic [7:0] rows;  // less one
    logic [3:0] rest;  // values of its last row, less one
  } block_t;
  // Its scale: a float32 word with 16 bits of fraction. The codes beside 0 and NaN are all 0.
  typedef struct packed {
    logic        coded;
    logic [7:0]  exponent;
    logic [15:0] fraction;
  } scale_t;

  // ---- in: rows to memory -----------------------------------------------------------------------

  logic [7:0] mask_q;  // rows of a block, less one
  always_ff @(posedge clk_i) for (int i = 0; i < 8; i++) mask_q[i] <= i + 4 < int'(cfg_block_i);

  logic [LogRows:0] in_q, in_d, out_q;  // rows, with a bit for the time round
  logic [7:0] in_row_q;
  logic take, block_last, room_q;
  logic [5:0] scale_level;
  assign s_axis_tready = room_q;
  assign take          = s_axis_tvalid && room_q;
  assign block_last    = s_axis_tlast || in_row_q == mask_q;
  assign in_d          = in_q + (LogRows + 1)'(take);
  always_ff @(posedge clk_i) begin
    in_q   <= in_d;
    // Up to ten blocks more are on their way to the queue of scales.
    room_q <= in_d - out_q != {1'b1, {LogRows{1'b0}}} && scale_level < 6'd20;
    if (take) in_row_q <= block_last ? '0 : in_row_q + 8'd1;
    if (!rst_ni) begin
      in_q     <= '0;
      in_row_q <= '0;
      room_q   <= 1'b0;
    end
  end

  logic [10:1] v_q;  // 6 and above: of a block
  logic [5:1] first_q, block_last_q;
  logic [Lanes-1:0][31:0] words1_q;
  logic [Lanes-1:0] keep1_q;
  logic [LogRows-1:0] at1_q;
  block_t block1;
  block_t [10:2] block_q;
  logic last1_q;
  logic [7:0] row1_q;
  always_comb begin
    block1 = '{last: last1_q, rows: row1_q, rest: '0};
    for (int l = 0; l < int'(Lanes); l++) if (keep1_q[l]) block1.rest = 4'(l);
  end
  always_ff @(posedge clk_i) begin
    v_q          <= {v_q[9:6], v_q[5] && block_last_q[5], v_q[4:1], take};
    first_q      <= {first_q[4:1], in_row_q == '0};
    block_last_q <= {block_last_q[4:1], block_last};
    block_q      <= {block_q[9:2], block1};
    last1_q      <= s_axis_tlast;
    row1_q       <= in_row_q;
    at1_q        <= in_q[LogRows-1:0];
    for (int l = 0; l < int'(Lanes); l++) begin
      keep1_q[l]  <= !s_axis_tlast || s_axis_tkeep[4*l];
      words1_q[l] <= !s_axis_tlast || s_axis_tkeep[4*l] ? s_axis_tdata[32*l+:32] : '0;
    end
    if (!rst_ni) v_q <= '0;
  end
  logic [511:0] rows_q[1 << LogRows];
  always_ff @(posedge clk_i) if (v_q[1]) rows_q[at1_q] <= words1_q;

  // ---- the largest magnitude of a block ---------------------------------------------------------

  logic [30:0] most5, most6_q;
  wpr_largest largest (.clk_i, .words_i(words1_q), .most_o(most5));
  always_ff @(posedge clk_i) begin
    if (v_q[5] && (first_q[5] || most5 > most6_q)) most6_q <= most5;
  end

  // ---- its scale --------------------------------------------------------------------------------
  // The largest value / 127, rounded to a float and then up to 17 bits, is its significand of 24
  // bits / 127 rounded up: a quotient that is not whole lies 1/127 or more from a whole number, and
  // so does not become one. With 2^14 = 129 * 127 + 1 and 2^7 = 127 + 1 the parts a, b, c of a *
  // 2^14 + b * 2^7 + c make (129 a + b) * 127 and a rest of a + b + c, which is cut once more.

  logic [23:0] significand6;
  logic [17:0] whole7_q, whole8_q, quotient9_q;
  logic [10:0] rest7_q;
  logic [7:0] rest8_q;
  logic [9:7][7:0] exponent_q;
  logic [15:0] halved9;
  scale_t scale10_q;
  assign significand6 = {1'b1, most6_q[22:0]};
  assign halved9      = quotient9_q[16:1] + 16'(quotient9_q[0]);
  always_ff @(posedge clk_i) begin
    exponent_q  <= {exponent_q[8:7], most6_q[30:23]};
    whole7_q    <= 18'(significand6[23:7]) + 18'(significand6[23:14]);
    rest7_q     <= 11'(significand6[23:14]) + 11'(significand6[13:7]) + 11'(significand6[6:0]);
    whole8_q    <= whole7_q + 18'(rest7_q[10:7]);
    rest8_q     <= 8'(rest7_q[6:0]) + 8'(rest7_q[10:7]);
    quotient9_q <= whole8_q + (rest8_q > 8'd127 ? 18'd2 : 18'(rest8_q != '0));
    scale10_q.coded    <= exponent_q[9] != '1 && exponent_q[9] >= 8'd27;
    scale10_q.exponent <= exponent_q[9] - (quotient9_q[17] ? 8'd6 : 8'd7);
    scale10_q.fraction <= quotient9_q[17] ? halved9 : quotient9_q[15:0];
    // 127 times the scale must be finite.
    if (quotient9_q[17] && exponent_q[9] == 8'd254 && halved9 == 16'h0205) begin
      scale10_q.fraction <= 16'h0204;
    end
    if (exponent_q[9] == '1) {scale10_q.exponent, scale10_q.fraction} <= 24'hFF8000;
    if (exponent_q[9] < 8'd27) {scale10_q.exponent, scale10_q.fraction} <= '0;
  end

  scale_t scale;
  block_t scale_block;
  logic scale_valid, scale_take;
  wpr_fifo #(.Width($bits(scale_t) + $bits(block_t)), .LogDepth(5)) scales (
    .clk_i,
    .rst_ni,
    .s_valid_i(v_q[10]),
    .s_ready_o(),  // it is
    .s_data_i ({scale10_q, block_q[10]}),
    .m_valid_o(scale_valid),
    .m_ready_i(scale_take),
    .m_data_o ({scale, scale_block}),
    .level_o  (scale_level)
  );

  // ---- its reciprocal ---------------------------------------------------------------------------
  // 2^41 / the scale's significand: a bit that is 1, and 24 more in three parts of 8 clocks each,
  // in which three blocks are at once. It is never halfway between two floats.

  localparam int unsigned Parts = 3;
  logic [2:0] clock_q;
  logic hand_on, result_room;
  assign hand_on    = clock_q == '1;
  assign scale_take = hand_on && result_room;
  scale_t [Parts:0] part_scale;
  block_t [Parts:0] part_block;
  logic [Parts:0] part_valid;
  logic [Parts-1:0][16:0] part_rest;
  logic [Parts:0][23:0] part_bits;
  assign part_scale[0] = scale;
  assign part_block[0] = scale_block;
  assign part_valid[0] = scale_valid && result_room;
  assign part_rest[0]  = 17'h10000 - 17'(scale.fraction);  // 2^17 less the significand
  assign part_bits[0]  = '0;
  for (genvar p = 0; p < int'(Parts); p++) begin : g_part
    scale_t scale_q;
    block_t block_here_q;
    logic valid_q, fits;
    logic [16:0] rest_q, rest;
    logic [17:0] twice;
    logic [17:0] less;  // above -2^17, and below 2^17
    logic [6:0] own_q;
    logic [15:0] before_q;  // the bits of the parts before
    assign twice = {rest_q, 1'b0};
    assign less  = twice - {2'b01, scale_q.fraction};
    assign fits  = !less[17];
    assign rest  = fits ? less[16:0] : twice[16:0];
    always_ff @(posedge clk_i) begin
      own_q  <= {own_q[5:0], fits};
      rest_q <= hand_on ? part_rest[p] : rest;
      if (hand_on) begin
        scale_q      <= part_scale[p];
        block_here_q <= part_block[p];
        valid_q      <= part_valid[p];
        before_q     <= part_bits[p][15:0];
      end
      if (!rst_ni) valid_q <= 1'b0;
    end
    assign part_scale[p+1] = scale_q;
    assign part_block[p+1] = block_here_q;
    assign part_valid[p+1] = valid_q;
    if (p + 1 < int'(Parts)) begin : g_next
      assign part_rest[p+1] = rest;
    end
    assign part_bits[p+1]  = {before_q, own_q, fits};
  end

  scale_t divided_scale_q;
  block_t divided_block_q;
  logic divided_q;
  logic [23:0] inverse_q;  // its fraction; 2^23: a power of two
  always_ff @(posedge clk_i) begin
    clock_q         <= clock_q + 3'd1;
    divided_q       <= hand_on && part_valid[Parts];
    divided_scale_q <= part_scale[Parts];
    divided_block_q <= part_block[Parts];
    inverse_q       <= 24'(part_bits[Parts][23:1]) + 24'(part_bits[Parts][0]);
    if (!rst_ni) begin
      clock_q   <= '0;
      divided_q <= 1'b0;
    end
  end

  scale_t r_scale;
  block_t r_block;
  logic [23:0] r_inverse;
  logic r_valid, r_ready;
  logic [4:0] r_level;
  assign result_room = r_level < 5'd10;  // up to four more are on their way
  wpr_fifo #(.Width($bits(scale_t) + $bits(block_t) + 24), .LogDepth(4)) results (
    .clk_i,
    .rst_ni,
    .s_valid_i(divided_q),
    .s_ready_o(),  // it is
    .s_data_i ({divided_scale_q, divided_block_q, inverse_q}),
    .m_valid_o(r_valid),
    .m_ready_i(r_ready),
    .m_data_o ({r_scale, r_block, r_inverse}),
    .level_o  (r_level)
  );

  // ---- the rows again ---------------------------------------------------------------------------

  // What goes along with a row.
  typedef struct packed {
    logic       row;
    logic       begins;  // the block
    logic       last;    // of the packet
    logic [3:0] rest;    // values, less one, of the last one
    scale_t     scale;
  } tag_t;
  tag_t tag;
  tag_t [11:1] tags_q;
  logic ends, room;
  logic [7:0] row_q;
  always_comb begin
    tag.row    = r_valid && room;
    tag.begins = row_q == '0;
    ends       = row_q == r_block.rows;
    tag.last   = ends && r_block.last;
    tag.rest   = r_block.rest;
    tag.scale  = r_scale;
  end
  assign r_ready = room && ends;
  always_ff @(posedge clk_i) begin
    tags_q <= {tags_q[10:1], tag};
    if (tag.row) begin
      out_q <= out_q + 1'b1;
      row_q <= ends ? '0 : row_q + 8'd1;
    end
    if (!rst_ni) begin
      for (int i = 1; i <= 11; i++) tags_q[i].row <= 1'b0;
      out_q <= '0;
      row_q <= '0;
    end
  end

  logic [Lanes-1:0][31:0] read_q, words2_q;
  logic [23:0] inverse1_q, inverse2_q;
  // Of the block: 260 less the reciprocal's exponent; far above every value's where it has no
  // codes.
  logic [8:0] above1_q, above2_q;
  always_ff @(posedge clk_i) read_q <= rows_q[out_q[LogRows-1:0]];
  always_ff @(posedge clk_i) begin
    words2_q   <= read_q;
    inverse1_q <= {1'b1, r_inverse[22:0]};
    inverse2_q <= inverse1_q;
    above1_q   <= 9'(r_scale.exponent) + 9'd7 - 9'(r_inverse[23]);
    if (!r_scale.coded) above1_q <= '1;
    above2_q   <= above1_q;
  end

  // ---- codes ------------------------------------------------------------------------------------
  // The product of 48 bits is rounded to a float, which is rounded to a whole number. Both at once:
  // up where it is above a half, and to even where the float is a half.

  logic [Lanes-1:0][7:0] codes11_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    // 3: factors; that of values whose code is 0 is 0. Denormals are such, beside a scale that is
    // not 0. Each lane has a factor of its own, which can lie beside its multipliers.
    logic [8:0] below;
    logic [23:0] significand3_q, inverse3_q;
    logic [3:0] below3_q;
    logic [10:3] sign_q;
    assign below = above2_q - 9'(words2_q[l][30:23]);
    always_ff @(posedge clk_i) begin
      significand3_q <= {1'b1, words2_q[l][22:0]};
      inverse3_q     <= inverse2_q;
      if (below > 9'd8) inverse3_q <= '0;
      below3_q       <= below[3:0];
      sign_q         <= {sign_q[9:3], words2_q[l][31]};
    end

    // 4 to 8: the product; bit 46 is worth 2^(6 - below).
    logic [47:0] product8_q;
    logic [8:4][3:0] below_q;
    wpr_product #(.Mult18(Mult18)) multiplier (
      .clk_i,
      .a_i      (significand3_q),
      .b_i      (inverse3_q),
      .product_o(product8_q)
    );
    always_ff @(posedge clk_i) below_q <= {below_q[7:4], below3_q};

    // 9: whether the bits behind the whole number are alike, but for nine of them, and the float is
    // a half if those are. The float has 24 bits, from the first of the product's 48 that is 1,
    // which is its first or its second. Bits of 1 it must carry into, and must not carry into bits
    // of 0.
    function automatic logic alike(input logic [5:0] bits);
      return bits == '0 || bits == '1;
    endfunction
    logic [8:0] upper9_q;
    logic ones9_q, near9_q, guard, sticky;
    logic [2:0] alike9_q;
    logic [3:0] below9_q;
    assign guard  = product8_q[47] ? product8_q[23] : product8_q[22];
    assign sticky = product8_q[21:0] != '0 || (product8_q[47] && product8_q[22]);
    always_ff @(posedge clk_i) begin
      upper9_q <= product8_q[47:39];
      ones9_q  <= product8_q[38];
      alike9_q <= {alike(product8_q[38:33]), alike(product8_q[33:28]),
                   alike({product8_q[28:24], product8_q[24]})};
      near9_q  <= (product8_q[47] || product8_q[24] == product8_q[23]) &&
                  (product8_q[24] ? guard : !(guard && sticky));
      below9_q <= below_q[8];
    end

    // 10: the whole number and the bit behind it; whether the float is a half if that bit is unlike
    // those behind it.
    logic [7:0] whole10_q;
    logic half10_q, ones10_q;
    logic [7:0] unlike;
    always_comb for (int i = 0; i < 8; i++) unlike[i] = 4'(i) < below9_q && upper9_q[i] != ones9_q;
    always_ff @(posedge clk_i) begin
      whole10_q <= 8'(upper9_q >> below9_q);
      half10_q  <= &alike9_q && near9_q && unlike == '0;
      ones10_q  <= ones9_q;
    end

    // 11: rounded, with its sign.
    logic up;
    assign up = half10_q && whole10_q[0] != ones10_q ? whole10_q[1] : whole10_q[0];
    always_ff @(posedge clk_i) begin
      codes11_q[l] <= ({1'b0, whole10_q[7:1]} ^ {8{sign_q[10]}}) + 8'(up != sign_q[10]);
    end
  end

  logic f_valid, f_ready, f_begins, f_last;
  logic [3:0] f_rest;
  logic [23:0] f_scale;
  logic [3:0][31:0] f_codes;
  logic [5:0] f_level;
  assign room = f_level < 6'd18;  // up to twelve more are on their way
  wpr_fifo #(.Width(158), .LogDepth(5)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[11].row),
    .s_ready_o(),  // it is
    .s_data_i ({tags_q[11].begins, tags_q[11].last, tags_q[11].rest, tags_q[11].scale.exponent,
                 tags_q[11].scale.fraction, codes11_q}),
    .m_valid_o(f_valid),
    .m_ready_i(f_ready),
    .m_data_o ({f_begins, f_last, f_rest, f_scale, f_codes}),
    .level_o  (f_level)
  );

  // ---- out: a row's codes begin at any of four words --------------------------------------------
  // Four words leave for each row, and up to four are kept. Those leave alone where a scale comes
  // on top of four, and at the end of a packet.

  logic move, alone, tail_q, spills;
  logic [2:0] kept_q, kept_next_q, at;
  logic [4:0] less_size;  // bytes up to the end of a last row, less one
  logic [3:0] tail_less_q;
  assign at        = f_begins ? kept_next_q : kept_q;
  assign alone     = f_begins && kept_q[2];
  assign less_size = {at + 3'(f_rest[3:2]), f_rest[1:0]};
  assign spills    = less_size[4];
  assign f_ready   = move && !tail_q && !alone;

  logic v9_q, alone9_q, begins9_q, last9_q;
  logic [2:0] kept9_q;
  logic [3:0] less9_q;
  logic [31:0] scale9_q;
  logic [3:0][31:0] codes9_q, kept_words_q, words;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v9_q      <= tail_q || f_valid;
      alone9_q  <= tail_q || alone;
      begins9_q <= f_begins;
      last9_q   <= tail_q || (!alone && f_last && !spills);
      less9_q   <= tail_q ? tail_less_q : !alone && f_last && !spills ? less_size[3:0] : 4'd15;
      kept9_q   <= kept_q;
      scale9_q  <= {1'b0, f_scale, 7'b0};
      for (int j = 0; j < 4; j++) codes9_q[j] <= f_codes[2'(j)-at[1:0]];
      tail_q      <= !tail_q && f_valid && !alone && f_last && spills;
      tail_less_q <= less_size[3:0];
      if (!tail_q && f_valid) begin
        kept_q      <= alone || f_last ? '0 : at;
        kept_next_q <= alone || f_last ? 3'd1 : at + 3'd1;
      end
      if (v9_q && !alone9_q) kept_words_q <= codes9_q;
    end
    if (!rst_ni) begin
      v9_q        <= 1'b0;
      tail_q      <= 1'b0;
      kept_q      <= '0;
      kept_next_q <= 3'd1;
    end
  end
  logic [15:0] keep9;
  always_comb begin
    for (int j = 0; j < 4; j++) begin
      words[j] = alone9_q || 3'(j) < kept9_q ? kept_words_q[j]
               : begins9_q && 3'(j) == kept9_q ? scale9_q : codes9_q[j];
    end
    for (int i = 0; i < 16; i++) keep9[i] = 4'(i) <= less9_q;
  end
  wpr_widen #(.Wide(64), .Narrow(16)) widen (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(v9_q),
    .s_axis_tready(move),
    .s_axis_tdata (words),
    .s_axis_tkeep (keep9),
    .s_axis_tlast (last9_q),
    .s_axis_tuser (1'b0),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser ()
  );

endmodule
