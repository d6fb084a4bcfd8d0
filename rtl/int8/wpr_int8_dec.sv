// SPDX-License-Identifier: Apache-2.0
// int8 decoder (codecs/int8/spec.md): a packet of code in, 512 bits a beat; a packet of float32
// words out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock, less one clock in four blocks and about three a packet. Latency 8
// clocks. m_axis_tready stops all stages at once.
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

  // ---- four words, and the four behind them -----------------------------------------------------

  logic v0, v1, last0, last1, pop;
  logic [3:0][31:0] words0, words1;
  logic [15:0] come_keep;
  logic [4:0] size, size0, size1;  // bytes
  always_comb begin
    size = '0;
    for (int i = 0; i < 16; i++) if (come_keep[i]) size = 5'(i + 1);
  end
  wpr_words_in #(.Narrow(16), .Beside(5)) fours (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .come_o         (),
    .come_data_o    (),
    .come_keep_o    (come_keep),
    .come_beside_i  (size),
    .first_valid_o  (v0),
    .first_last_o   (last0),
    .first_data_o   (words0),
    .first_beside_o (size0),
    .second_valid_o (v1),
    .second_last_o  (last1),
    .second_data_o  (words1),
    .second_beside_o(size1),
    .pop_i          (pop)
  );

  // ---- a row: 16 codes, with a scale in front of a block's first --------------------------------
  // The scale leaves alone where it is the last of four words.

  typedef enum logic [1:0] {Idle, Rows, Drain} state_t;
  state_t state_q;
  logic move, here, row, alone, no_row, crosses, final_q, begins_q, wrong;
  logic begins_d, final_d, next_final_q;
  logic [CountWidth-1:0] left_q;  // values that have not left, less one
  logic [7:0] row_q;              // of the block
  logic block_end_q;              // it is the block's last one
  logic [1:0] at_q, at_d;         // the word where the row begins, behind its scale
  logic [4:0] ends_q;             // bytes up to the row's end
  logic [4:0] final_size, final_size_q;  // bytes of the final row
  assign s_cmd_tready = state_q == Idle;
  assign crosses      = ends_q[4] && ends_q[3:0] != '0;
  assign here         = state_q == Rows && v0 && move;
  assign no_row       = begins_q && at_q == '0;
  assign alone        = here && no_row && !last0;
  assign row          = here && (last0 || (!no_row && (!crosses || v1)));
  // Behind a row that is not the final one there is more; behind that one there is nothing.
  always_comb begin
    if (no_row) wrong = 1'b1;
    else if (!final_q) wrong = last0 || (crosses && last1 && !size1[4] && ends_q[3:0] > size1[3:0]);
    else if (crosses) wrong = last0 || !last1 || size1[4] || ends_q[3:0] != size1[3:0];
    else wrong = !last0 || ends_q != size0;
  end
  assign pop = state_q == Drain || alone || (row && !final_q && !wrong);

  // The next row.
  assign begins_d   = state_q == Idle || (!alone && block_end_q);
  assign at_d       = state_q == Idle ? 2'd1 : at_q + 2'(begins_d);
  assign final_d    = state_q == Idle ? s_cmd_tdata[CountWidth-1:4] == '0
                    : alone ? final_q : next_final_q;
  assign final_size = state_q == Idle ? 5'(s_cmd_tdata[3:0]) + 5'd1 : final_size_q;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Rows;
      Rows: if (row && (final_q || wrong)) state_q <= Drain;
      default: if (v0 && last0) state_q <= Idle;
    endcase
    if (state_q == Idle || row || alone) begin
      final_q  <= final_d;
      begins_q <= begins_d;
      at_q     <= at_d;
      ends_q   <= {1'b0, at_d, 2'b00} + (final_d ? final_size : 5'd16);
    end
    final_size_q <= final_size;
    if (state_q == Idle) begin
      left_q       <= s_cmd_tdata;
      next_final_q <= s_cmd_tdata[CountWidth-1:4] == 1;
      row_q        <= '0;
      block_end_q  <= 1'b0;
    end else if (row) begin
      left_q       <= left_q - CountWidth'(Lanes);
      next_final_q <= left_q[CountWidth-1:4] == 2;
      row_q        <= block_end_q ? '0 : row_q + 8'd1;
      block_end_q  <= row_q + 8'd1 == mask_q;
    end
    if (!rst_ni) state_q <= Idle;
  end

  // ---- 1: a row and its scale -------------------------------------------------------------------

  logic [7:0][31:0] words;
  logic [2:1] v_q, last_q;
  logic wrong1_q;
  logic [31:0] scale1_q;
  logic [3:0][31:0] row1_q;
  logic [Lanes-1:0][7:0] codes1;
  logic [2:1][Lanes-1:0] keep_q;
  assign words  = {words1, words0};
  assign codes1 = row1_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      if (begins_q) scale1_q <= words0[at_q-2'd1];
      wrong1_q <= wrong;
      for (int j = 0; j < 4; j++) row1_q[j] <= words[3'(at_q)+3'(j)];
      for (int l = 0; l < int'(Lanes); l++) keep_q[1][l] <= !final_q || 4'(l) <= left_q[3:0];
      keep_q[2] <= keep_q[1];
      v_q       <= {v_q[1], row};
      last_q    <= {last_q[1], final_q || wrong};
    end
    if (!rst_ni) v_q <= '0;
  end

  // ---- 2: signs and magnitudes; whether an encoder writes them ----------------------------------

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
      wrong3_q <= v_q[2] && (wrong2_q || !valid2_q || least2_q != '0 ||
                             (!plain2_q && some2 != '0));
    end
  end

  // ---- 3, 4, 5: values --------------------------------------------------------------------------

  wpr_multiples_out out (
    .clk_i,
    .rst_ni,
    .move_o        (move),
    .row_valid_i   (v_q[2]),
    .row_last_i    (last_q[2]),
    .row_keep_i    (keep_q[2]),
    .row_nan_i     (nan2_q),
    .row_negative_i(negative2_q),
    .row_counts_i  (counts2_q),
    .unit_i        (unit3_q),
    .wrong_i       (wrong3_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
