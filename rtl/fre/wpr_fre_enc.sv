// SPDX-License-Identifier: Apache-2.0
// fre encoder (codecs/fre/spec.md): a packet of float32 words in, one a clock; a packet of its bit
// stream out. The bytes are those of every other encoder of fre.
//
// Does not split a block in four streams (ways=4 is four of these), does not count, and does not
// know bytes behind the last whole value: who frames the stream appends them. A packet has at least
// one value.
//
// Rate: one value a clock while codes have at most 32 bits (m <= 20, any data); codes of 33 to 35
// bits take two clocks. A packet costs one clock more where its last code crosses a word. Latency 8
// clocks. m_axis_tready stops all stages at once, s_axis_tready follows it in the same clock: put a
// wpr_skid behind it where timing asks for one.
module wpr_fre_enc
  import wpr_fre_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: constant for at least two clocks before a packet and until its last word has left.
  // Tied to constants, the logic for all other settings goes away.
  input logic [4:0] cfg_m_i,        // mantissa bits kept, 1 to 23
  input logic       cfg_nearest_i,  // round=nearest; 0: truncate and midpoint
  input logic       cfg_flush_i,    // denormals and -0 become +0

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [31:0] s_axis_tdata,   // a float32 word; of bfloat16, its bits in the upper half
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [31:0] m_axis_tdata,
  output logic [ 3:0] m_axis_tkeep,   // all ones but with tlast
  output logic        m_axis_tlast
);

  // ---- settings, decoded ---------------------------------------------------------------------

  logic [22:0] drop_q;   // fraction bits that go
  logic [22:0] guard_q;  // the uppermost of them
  logic [23:0] unit_q;   // the lowest that stays
  logic [ 4:0] shift_q;  // 23 - m
  always_ff @(posedge clk_i) begin
    shift_q <= 5'(FractionBits) - cfg_m_i;
    for (int i = 0; i < 24; i++) unit_q[i] <= i == 23 - int'(cfg_m_i);
    for (int i = 0; i < 23; i++) begin
      drop_q[i]  <= i < 23 - int'(cfg_m_i);
      guard_q[i] <= i == 22 - int'(cfg_m_i) && cfg_nearest_i;
    end
  end

  // ---- flow: a stage moves when all behind it can ----------------------------------------------

  logic move_out;   // the output register takes a word
  logic move_pack;  // and not the first of a packet's last two: the packer's stages move too
  logic move;       // and the code in front of the packer goes completely
  assign s_axis_tready = move;

  // ---- 1: which way to round -------------------------------------------------------------------

  logic v1_q, last1_q, round1_q, tiny1_q, special1_q, zero1_q;
  logic [31:0] word1_q;
  logic [22:0] fraction;
  logic tiny, special, guard, sticky, odd, full, cut_nan;
  assign fraction = s_axis_tdata[22:0];
  assign tiny     = s_axis_tdata[30:23] == 8'h00;
  assign special  = s_axis_tdata[30:23] == 8'hFF;
  assign guard    = |(fraction & guard_q);
  assign sticky   = |(fraction & drop_q & ~guard_q);
  assign odd      = |({s_axis_tdata[23], fraction} & unit_q);
  // Rounded up, the largest values would become infinite.
  assign full     = s_axis_tdata[30:23] == 8'hFE && &(fraction | drop_q);
  assign cut_nan  = special && |fraction && !(|(fraction & ~drop_q));
  always_ff @(posedge clk_i) begin
    if (move) begin
      last1_q    <= s_axis_tlast;
      tiny1_q    <= tiny;
      special1_q <= special;
      zero1_q    <= tiny && (cfg_flush_i || fraction == '0);
      round1_q   <= guard && (sticky || odd) && !full && !special && !tiny;
      word1_q    <= tiny && cfg_flush_i ? '0 : s_axis_tdata | {9'b0, cut_nan, 22'b0};
    end
  end

  // ---- 2: round --------------------------------------------------------------------------------

  logic v2_q, last2_q, tiny2_q, special2_q, zero2_q;
  logic [31:0] word2_q;
  logic [30:0] rounded;
  assign rounded = word1_q[30:0] + {7'b0, unit_q & {24{round1_q}}};
  always_ff @(posedge clk_i) begin
    if (move) begin
      last2_q    <= last1_q;
      tiny2_q    <= tiny1_q;
      special2_q <= special1_q;
      zero2_q    <= zero1_q;
      word2_q    <= {word1_q[31], rounded};
      // Written so, it is the registers' reset, and no logic.
      if (!tiny1_q) for (int i = 0; i < 23; i++) if (drop_q[i]) word2_q[i] <= 1'b0;
    end
  end

  // ---- 3: against the value before it ----------------------------------------------------------

  logic v3_q, last3_q, equal3_q, zero3_q, tiny3_q, special3_q;
  logic signed [8:0] difference3_q;
  logic [31:0] word3_q, previous_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      last3_q       <= last2_q;
      word3_q       <= word2_q;
      equal3_q      <= word2_q == previous_q;
      zero3_q       <= zero2_q;
      tiny3_q       <= tiny2_q;
      special3_q    <= special2_q;
      difference3_q <= signed'({1'b0, word2_q[30:23]}) - signed'({1'b0, previous_q[30:23]});
    end
    if (!rst_ni || (move && v2_q && last2_q)) previous_q <= '0;
    else if (move && v2_q) previous_q <= word2_q;
  end

  // ---- 4: the case -----------------------------------------------------------------------------

  logic v4_q, last4_q, negative4_q, near;
  class_t class4_q;
  logic [31:0] word4_q;
  assign near = difference3_q >= -9'sd9 && difference3_q <= 9'sd9;
  always_ff @(posedge clk_i) begin
    if (move) begin
      last4_q     <= last3_q;
      word4_q     <= word3_q;
      negative4_q <= difference3_q[8];
      class4_q    <= equal3_q ? Equal
                   : zero3_q ? Zero
                   : tiny3_q ? Denormal
                   : special3_q || !near ? Escape
                   : difference3_q[8] ? -difference3_q[3:0] : difference3_q[3:0];
    end
  end

  // ---- 5: its prefix, and its payload by one of three ways, 0 on the others ---------------------

  logic v5_q, last5_q;
  logic [9:0] prefix5_q;
  logic [5:0] size5_q;
  logic [2:0] place5_q;     // where a difference's payload begins, in twos
  logic [24:0] near5_q;     // a difference's: fraction and sign
  logic [31:0] escape5_q;   // an escape's: fraction, exponent, sign
  logic [23:0] denormal5_q;
  logic [3:0] place;
  assign place = place_of(class4_q);
  always_ff @(posedge clk_i) begin
    if (move) begin
      last5_q     <= last4_q;
      prefix5_q   <= prefix_of(class4_q, class4_q == Zero ? word4_q[31] : negative4_q);
      size5_q     <= size_of(class4_q, cfg_m_i);
      place5_q    <= place[3:1];
      near5_q     <= class4_q > MaxDifference ? '0
                   : 25'({word4_q[31], word4_q[22:0]} >> shift_q) << place[0];
      escape5_q   <= class4_q != Escape ? '0 : word4_q >> shift_q;
      denormal5_q <= class4_q != Denormal ? '0 : {word4_q[31], word4_q[22:0]};
    end
  end

  // ---- 6: the code; one of more than 32 bits goes on in two parts ------------------------------

  logic v6_q, last6_q, long6;
  logic [CodeWidth-1:0] code6_q;
  logic [5:0] size6_q;
  assign long6 = size6_q > 6'd32;
  always_ff @(posedge clk_i) begin
    if (move) begin
      last6_q <= last5_q;
      size6_q <= size5_q;
      code6_q <= CodeWidth'(prefix5_q) | CodeWidth'({escape5_q, 3'b0}) |
                 CodeWidth'({denormal5_q, 4'b0}) |
                 CodeWidth'(near5_q) << {place5_q, 1'b0};
    end else if (move_pack) begin
      size6_q <= size6_q - 6'd32;
      code6_q <= code6_q >> 32;
    end
  end

  // ---- 7: to its place in the word, but for 16 bits -------------------------------------------

  logic v7_q, last7_q, cross7_q, half7_q;
  logic more7_q;  // a packet's last code crosses into one more word
  logic [ 4:0] fill_q, fill7_q;  // bits in the word: before the code at 6, and after that at 7
  logic [46:0] code7_q;
  logic [ 5:0] size6, fill_sum;
  logic whole6;
  assign whole6   = last6_q && !long6;
  assign size6    = long6 ? 6'd32 : size6_q;
  assign fill_sum = 6'(fill_q) + size6;
  always_ff @(posedge clk_i) begin
    if (move_pack) begin
      v7_q     <= v6_q;
      last7_q  <= whole6;
      cross7_q <= fill_sum[5];
      more7_q  <= v6_q && whole6 && fill_sum[5] && fill_sum[4:0] != '0;
      fill7_q  <= fill_sum[4:0];
      half7_q  <= fill_q[4];
      code7_q  <= {15'b0, code6_q[31:0]} << fill_q[3:0];
      if (v6_q) fill_q <= whole6 ? '0 : fill_sum[4:0];
    end else if (move_out) begin
      v7_q    <= 1'b0;
      more7_q <= 1'b0;
      code7_q <= '0;
    end
    if (!rst_ni) begin
      v7_q    <= 1'b0;
      more7_q <= 1'b0;
      fill_q  <= '0;
    end
  end

  // ---- 8: full words leave ---------------------------------------------------------------------

  logic out_valid_q, out_last_q, rest_last_q;  // rest_last: only the rest of a packet is left
  logic [31:0] out_q, rest_q, word;
  logic [3:0] out_keep_q;
  logic [62:0] placed;
  logic ends;
  assign placed = half7_q ? {code7_q, 16'b0} : {16'b0, code7_q};
  assign word   = rest_q | placed[31:0];
  assign ends   = rest_last_q || (v7_q && last7_q && !more7_q);

  // Bytes of a last word with so many bits; 0 stands for 32.
  function automatic logic [3:0] keep_of(input logic [4:0] bits);
    return bits == '0 ? 4'hF : {bits > 5'd24, bits > 5'd16, bits > 5'd8, 1'b1};
  endfunction

  assign move_out  = m_axis_tready || !out_valid_q;
  assign move_pack = move_out && !more7_q;
  assign move      = move_pack && !(v6_q && long6);

  always_ff @(posedge clk_i) begin
    if (move_out) begin
      out_valid_q <= ends || (v7_q && cross7_q);
      out_last_q  <= ends;
      out_q       <= word;
      out_keep_q  <= ends ? keep_of(fill7_q) : 4'hF;
      rest_last_q <= more7_q;
    end
    if (!rst_ni || (move_out && ends)) rest_q <= '0;
    else if (move_out && v7_q) rest_q <= cross7_q ? {1'b0, placed[62:32]} : word;
    if (!rst_ni) begin
      out_valid_q <= 1'b0;
      rest_last_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (move) {v6_q, v5_q, v4_q, v3_q, v2_q, v1_q} <= {v5_q, v4_q, v3_q, v2_q, v1_q, s_axis_tvalid};
    if (!rst_ni) {v6_q, v5_q, v4_q, v3_q, v2_q, v1_q} <= '0;
  end

  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tkeep  = out_keep_q;
  assign m_axis_tlast  = out_last_q;

endmodule
