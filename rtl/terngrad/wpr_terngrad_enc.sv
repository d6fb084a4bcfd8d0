// SPDX-License-Identifier: Apache-2.0
// terngrad encoder with clip=0 (codecs/terngrad/spec.md): a packet of float32 words in, 16 a clock; a
// packet of its code out. The bytes are those of every other encoder of terngrad with that seed.
//
// Does not clip, and does not know bytes behind the last whole value: who frames the code appends them.
// A packet has at least one value.
//
// A chunk of 4096 values is stored, since its scale is that of the largest, twice: while one is read
// the next one comes in.
//
// Rate: 16 values a clock, and one clock more a chunk. Latency: a chunk, and about 25 clocks.
module wpr_terngrad_enc (
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
  tag_t [14:1] tags_q;
  logic out_q;

  // ---- in: a chunk fills one of two buffers -------------------------------------------------------

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

  logic [5:1] v_q, last_q, end_q, first_q, to_q;
  logic [7:0] row1_q;
  logic [Lanes-1:0][31:0] words1_q;
  always_ff @(posedge clk_i) begin
    v_q     <= {v_q[4:1], take};
    last_q  <= {last_q[4:1], chunk_last};
    end_q   <= {end_q[4:1], s_axis_tlast};
    first_q <= {first_q[4:1], in_row == '0};
    to_q    <= {to_q[4:1], in_buffer};
    row1_q  <= in_row;
    words1_q <= words;
    if (!rst_ni) v_q <= '0;
  end
  logic [511:0] rows_q[512];
  always_ff @(posedge clk_i) if (v_q[1]) rows_q[{to_q[1], row1_q}] <= words1_q;

  // ---- the largest magnitude ----------------------------------------------------------------------

  logic [30:0] most5, most_q, most;
  wpr_largest largest (.clk_i, .words_i(words1_q), .most_o(most5));
  assign most = first_q[5] || most5 > most_q ? most5 : most_q;
  logic [1:0][30:0] scales_q;
  logic [1:0][7:0] chunk_rows_q;  // less one
  logic [1:0] ends_q, ready_q;
  logic [5:2][7:0] rows_beside_q;
  always_ff @(posedge clk_i) begin
    rows_beside_q <= {rows_beside_q[4:2], row1_q};
    if (v_q[5]) begin
      most_q <= most;
      if (last_q[5]) begin
        scales_q[to_q[5]]     <= most;
        chunk_rows_q[to_q[5]] <= rows_beside_q[5];
        ends_q[to_q[5]]       <= end_q[5];
        ready_q[to_q[5]]      <= 1'b1;
      end
    end
    if (tag.row && tag.ends) ready_q[out_q] <= 1'b0;
    if (!rst_ni) ready_q <= '0;
  end

  // ---- the chunk again: rows of random bits, and the values when these are there --------------------

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
    tags_q <= {tags_q[13:1], tag};
    if (tag.row) begin
      row_q           <= tag.ends ? '0 : row_q + 8'd1;
      packet_begins_q <= tag.last;
      if (tag.ends) out_q <= !out_q;
    end
    if (!rst_ni) begin
      for (int i = 1; i <= 14; i++) tags_q[i].row <= 1'b0;
      row_q           <= '0;
      out_q           <= 1'b0;
      packet_begins_q <= 1'b1;
    end
  end

  logic [Lanes-1:0][31:0] bits;
  wpr_hash hash (
    .clk_i,
    .seed_i (cfg_seed_i),
    .first_i(cfg_first_i),
    .row_i  (tag.row),
    .begin_i(packet_begins_q),
    .bits_o (bits)
  );

  assign release_chunk = tags_q[9].row && tags_q[9].ends;
  assign released      = tags_q[9].buffer;
  logic [511:0] read_q;
  logic [Lanes-1:0][31:0] words11_q;
  logic [30:0] scale11_q;
  logic [13:12] nan_q;
  always_ff @(posedge clk_i) read_q <= rows_q[{tags_q[9].buffer, tags_q[9].number}];
  always_ff @(posedge clk_i) begin
    words11_q <= read_q;
    scale11_q <= scales_q[tags_q[10].buffer];
    nan_q     <= {nan_q[12], scale11_q[30:23] == '1};
  end
  logic [7:0] exponent11;
  logic [23:0] significand11;
  assign exponent11    = scale11_q[30:23] == '0 ? 8'd1 : scale11_q[30:23];
  assign significand11 = {scale11_q[30:23] != '0, scale11_q[22:0]};

  // A value is taken where it is above drawn * scale, 23 bits by 24, rounded to a float: where the
  // product is below the middle between the value and the float before it, or is the middle and the
  // value is odd. Both as whole numbers, four times over.
  logic [Lanes-1:0] taken14_q, negative14_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    logic [22:0] drawn;
    logic [39:0] low12_q;
    logic [29:0] high12_q;
    logic [46:0] product13_q;
    assign drawn = bits[l][31:9];

    logic [31:0] word;
    logic [7:0] exponent, below;
    logic [25:0] middle12_q;
    logic [4:0] shift12_q;
    logic far12_q, far13_q, odd12_q, odd13_q, some12_q, some13_q, sign12_q, sign13_q;
    logic none12_q, none13_q;  // nothing was drawn: any value but 0 is above that
    logic [48:0] middle13_q;
    assign word     = words11_q[l];
    assign exponent = word[30:23] == '0 ? 8'd1 : word[30:23];
    assign below    = exponent11 - exponent;
    logic taken;
    assign taken = some13_q && !nan_q[13] &&
                   (far13_q ? none13_q : {product13_q, 2'b0, !odd13_q} < {middle13_q, 1'b1});
    always_ff @(posedge clk_i) begin
      low12_q     <= 40'(drawn) * 40'(significand11[16:0]);
      high12_q    <= 30'(drawn) * 30'(significand11[23:17]);
      product13_q <= 47'(low12_q) + {high12_q, 17'b0};
      // The float before a power of two is half as far away.
      middle12_q  <= {word[30:23] != '0, word[22:0], 2'b0} -
                     (word[22:0] == '0 && word[30:24] != '0 ? 26'd1 : 26'd2);
      middle13_q  <= {middle12_q, 23'b0} >> shift12_q;
      shift12_q   <= below[4:0];
      {far13_q, far12_q}   <= {far12_q, below > 8'd23};
      {odd13_q, odd12_q}   <= {odd12_q, word[0]};
      {some13_q, some12_q} <= {some12_q, word[30:0] != '0};
      {sign13_q, sign12_q} <= {sign12_q, word[31]};
      {none13_q, none12_q} <= {none12_q, drawn == '0};
      taken14_q[l]    <= taken;
      negative14_q[l] <= taken && sign13_q;
    end
  end

  // ---- out: the scale of a chunk, and two words for two rows, one a clock ----------------------------

  logic [15:0] taken_q, negative_q;  // of the row before
  always_ff @(posedge clk_i) begin
    if (tags_q[14].row && !tags_q[14].number[0]) {taken_q, negative_q} <= {taken14_q, negative14_q};
  end

  logic g_valid, g_ready, g_ends, g_last, w_ready, head_q, second_q;
  logic [31:0] taken, negative, g_taken, g_negative, word;
  logic [30:0] scale;
  logic [5:0] level;
  assign taken    = tags_q[14].number[0] ? {taken14_q, taken_q} : {16'b0, taken14_q};
  assign negative = tags_q[14].number[0] ? {negative14_q, negative_q} : {16'b0, negative14_q};
  assign room     = level < 6'd20;  // up to eight more are on their way
  wpr_fifo #(.Width(66), .LogDepth(5)) groups (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[14].row && (tags_q[14].number[0] || tags_q[14].ends)),
    .s_ready_o(),  // it is
    .s_data_i ({tags_q[14].ends, tags_q[14].last, taken, negative}),
    .m_valid_o(g_valid),
    .m_ready_i(g_ready),
    .m_data_o ({g_ends, g_last, g_taken, g_negative}),
    .level_o  (level)
  );
  // As many scales as groups at most; each is there before the first group of its chunk.
  wpr_fifo #(.Width(31), .LogDepth(5)) scales (
    .clk_i,
    .rst_ni,
    .s_valid_i(tags_q[11].row && tags_q[11].begins),
    .s_ready_o(),
    .s_data_i (scale11_q),
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
