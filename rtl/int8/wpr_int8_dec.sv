// SPDX-License-Identifier: Apache-2.0
// int8 decoder (codecs/int8/spec.md): a packet of code in, 512 bits a beat; a packet of float32 words
// out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock, less one clock in four blocks and about three a packet. Latency 8 clocks.
// m_axis_tready stops all stages at once.
module wpr_int8_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from two clocks before a packet until its last value has left.
  input logic [3:0] cfg_block_i,  // 7 to 12: a block has so many values, as a power of two

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Lanes = 16;
  localparam logic [31:0] Nan = 32'h7FC00000;
  localparam logic [24:0] LeastScale = 25'(32'h0A010280 >> 7);
  localparam logic [24:0] MostScale = 25'(32'h7C010200 >> 7);

  logic [7:0] mask_q;  // rows of a block, less one
  always_ff @(posedge clk_i) for (int i = 0; i < 8; i++) mask_q[i] <= i + 4 < int'(cfg_block_i);

  // ---- four words, and the four behind them -------------------------------------------------------

  logic n_valid, n_ready, n_last;
  logic [127:0] n_data;
  logic [15:0] n_keep;
  wpr_narrow #(.Wide(64), .Narrow(16)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(n_valid),
    .m_axis_tready(n_ready),
    .m_axis_tdata (n_data),
    .m_axis_tkeep (n_keep),
    .m_axis_tlast (n_last)
  );

  logic v0, v1, last0, last1, pop;
  logic [3:0][31:0] words0, words1;
  logic [4:0] size, size0, size1;  // bytes
  always_comb begin
    size = '0;
    for (int i = 0; i < 16; i++) if (n_keep[i]) size = 5'(i + 1);
  end
  wpr_window #(.Width(134)) window (
    .clk_i,
    .rst_ni,
    .s_valid_i     (n_valid),
    .s_ready_o     (n_ready),
    .s_data_i      ({size, n_last, n_data}),
    .first_valid_o (v0),
    .first_o       ({size0, last0, words0}),
    .second_valid_o(v1),
    .second_o      ({size1, last1, words1}),
    .pop_i         (pop)
  );

  // ---- a row: 16 codes, with a scale in front of a block's first ----------------------------------
  // The scale leaves alone where it is the last of four words.

  typedef enum logic [1:0] {Idle, Rows, Drain} state_t;
  state_t state_q;
  logic move, here, row, alone, crosses, final_q, begins_q, wrong;
  logic [CountWidth-1:0] left_q;  // values that have not left, less one
  logic [7:0] row_q;              // of the block
  logic [1:0] at_q, at;           // the word where the scale or the row begins; the row
  logic [5:0] ends;               // bytes up to the row's end
  assign s_cmd_tready = state_q == Idle;
  assign at           = at_q + 2'(begins_q);
  assign ends         = {2'b00, at, 2'b00} + (final_q ? 6'(left_q[3:0]) + 6'd1 : 6'd16);
  assign crosses      = ends > 6'd16;
  assign here         = state_q == Rows && v0 && move;
  assign alone        = here && begins_q && at_q == '1 && !last0;
  assign row          = here && !(begins_q && at_q == '1 && !last0) &&
                        (!crosses || last0 || v1);
  // Behind a row that is not the final one there is more; behind that one there is nothing.
  always_comb begin
    if (begins_q && at_q == '1) wrong = 1'b1;
    else if (!final_q) wrong = last0 || (crosses && last1 && ends > 6'(size1) + 6'd16);
    else if (crosses) wrong = last0 || !last1 || ends != 6'(size1) + 6'd16;
    else wrong = !last0 || ends != 6'(size0);
  end
  assign pop = state_q == Drain || alone || (row && !final_q && !wrong);
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Rows;
      Rows: if (row && (final_q || wrong)) state_q <= Drain;
      default: if (v0 && last0) state_q <= Idle;
    endcase
    if (state_q == Idle) begin
      left_q   <= s_cmd_tdata;
      final_q  <= s_cmd_tdata[CountWidth-1:4] == '0;
      row_q    <= '0;
      at_q     <= '0;
      begins_q <= 1'b1;
    end else if (row) begin
      left_q   <= left_q - CountWidth'(Lanes);
      final_q  <= left_q[CountWidth-1:4] == 1;
      row_q    <= row_q == mask_q ? '0 : row_q + 8'd1;
      at_q     <= at;
      begins_q <= row_q == mask_q;
    end else if (alone) begin
      at_q     <= '0;
      begins_q <= 1'b0;
    end
    if (!rst_ni) state_q <= Idle;
  end

  // ---- 1: a row and its scale ---------------------------------------------------------------------

  logic [7:0][31:0] words;
  logic [3:1] v_q, last_q;
  logic wrong1_q;
  logic [31:0] scale1_q;
  logic [3:0][31:0] row1_q;
  logic [Lanes-1:0][7:0] codes1;
  logic [5:1][Lanes-1:0] keep_q;
  assign words  = {words1, words0};
  assign codes1 = row1_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      if (begins_q) scale1_q <= words0[at_q];
      wrong1_q <= wrong;
      for (int j = 0; j < 4; j++) row1_q[j] <= words[3'(at)+3'(j)];
      for (int l = 0; l < int'(Lanes); l++) keep_q[1][l] <= !final_q || 4'(l) <= left_q[3:0];
      for (int s = 2; s <= 5; s++) keep_q[s] <= keep_q[s-1];
      v_q    <= {v_q[2:1], row};
      last_q <= {last_q[2:1], final_q || wrong};
    end
    if (!rst_ni) v_q <= '0;
  end

  // ---- 2: signs and magnitudes; whether an encoder writes them ------------------------------------

  logic nan2_q, plain2_q, valid2_q, wrong2_q, wrong3_q;
  logic [Lanes-1:0] negative2_q, least2_q, some2;
  logic [Lanes-1:0][6:0] counts2_q;
  logic [23:0] unit2_q, unit3_q;
  always_comb for (int l = 0; l < int'(Lanes); l++) some2[l] = counts2_q[l] != '0;
  always_ff @(posedge clk_i) begin
    if (move) begin
      nan2_q   <= scale1_q == Nan;
      plain2_q <= scale1_q != Nan && scale1_q != '0;
      valid2_q <= scale1_q == Nan || scale1_q == '0 ||
                  (scale1_q[6:0] == '0 && scale1_q[31:7] >= LeastScale &&
                   scale1_q[31:7] <= MostScale);
      wrong2_q <= wrong1_q;
      unit2_q  <= scale1_q[30:7];
      unit3_q  <= unit2_q;
      for (int l = 0; l < int'(Lanes); l++) begin
        negative2_q[l] <= codes1[l][7];
        counts2_q[l]   <= ((codes1[l][6:0] ^ {7{codes1[l][7]}}) + 7'(codes1[l][7])) &
                          {7{keep_q[1][l]}};
        least2_q[l]    <= keep_q[1][l] && codes1[l] == 8'h80;
      end
      wrong3_q <= wrong2_q || !valid2_q || least2_q != '0 || (!plain2_q && some2 != '0);
    end
  end

  // ---- 3, 4, 5: values ----------------------------------------------------------------------------

  logic v4_q, last4_q, wrong4_q, out_valid_q, out_last_q, out_bad_q, bad_q;
  logic [Lanes-1:0][31:0] out;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    wpr_multiple value (
      .clk_i,
      .move_i    (move),
      .nan_i     (nan2_q),
      .negative_i(negative2_q[l]),
      .count_i   (counts2_q[l]),
      .unit_i    (unit3_q),
      .product_o (out[l])
    );
  end
  assign move = m_axis_tready || !out_valid_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v4_q        <= v_q[3];
      last4_q     <= last_q[3];
      wrong4_q    <= wrong3_q;
      out_valid_q <= v4_q;
      out_last_q  <= last4_q;
      out_bad_q   <= last4_q && (bad_q || wrong4_q);
      if (v4_q) bad_q <= !last4_q && (bad_q || wrong4_q);
    end
    if (!rst_ni) {v4_q, out_valid_q, bad_q} <= '0;
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tuser  = out_bad_q;
  always_comb for (int l = 0; l < int'(Lanes); l++) m_axis_tkeep[4*l+:4] = {4{keep_q[5][l]}};

endmodule
