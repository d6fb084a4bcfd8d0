// SPDX-License-Identifier: Apache-2.0
// fre decoder (codecs/fre/spec.md): a packet of a bit stream in, 32 bits a clock; a packet of
// float32 words out, one a clock.
//
// How many values a packet has is not in its stream and comes by s_cmd. Codes that the stream
// does not hold, or that the specification refuses, end the packet with m_axis_tuser set beside
// m_axis_tlast: its values are then not to be used, there may be fewer of them, the rest of the
// input packet is thrown away and the next one begins afresh.
//
// Does not join four streams (ways=4 is four of these) and does not know bytes behind the last
// value.
//
// Rate: one value a clock, whatever the codes, while they have at most 32 bits (m <= 20); the
// input's 32 bits a clock are the limit beyond. Five to eight clocks more a packet.
// Latency 12 clocks from the fourth word, or the last one, to the first value; a value leaves when
// the next is known.
//
// The next code's place depends on this code's size, which depends on its first seven bits. So for
// each of a word's 32 bits a key of the code that begins there is made one word ahead, and what is
// left of the loop is a lookup, a small table and a sum; fields are cut out after it in a pipeline.
module wpr_fre_dec
  import wpr_fre_pkg::*;
#(
  parameter int unsigned CountWidth = 24,  // bits of the number of values
  // A word is taken every other clock at most, and s_axis_tready comes from a register.
  parameter bit HalfRate = 1'b0
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: constant for at least two clocks before a packet and until its last value has left.
  // Tied to constants, the logic for all other settings goes away.
  input logic [4:0] cfg_m_i,         // mantissa bits kept, 1 to 23
  input logic       cfg_midpoint_i,  // round=midpoint
  input logic       cfg_bfloat16_i,

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one
  input  logic [           1:0] s_cmd_tuser,   // bytes of its first word before the stream

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [31:0] s_axis_tdata,
  input  logic [ 3:0] s_axis_tkeep,   // read with tlast only: 1, 3, 7 or 15
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [31:0] m_axis_tdata,   // a float32 word; of bfloat16, its bits in the upper half
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet was not valid
);

  logic move;  // all behind the words moves at once

  // ---- words: w0 is being decoded, the others are ahead of it -----------------------------------

  logic v0_q, v1_q, v2_q, v3_q, last0_q, last1_q, last2_q, last3_q;
  logic [31:0] w0_q, w1_q, w2_q, w3_q;
  logic [2:0] bytes0_q, bytes1_q, bytes2_q;  // of a last word, 1 to 4
  logic [3:0] gone_q;  // bytes that w3 does not have
  // The key of a code that begins at each bit of w0 and of w1, by planes.
  logic [2:0][31:0] keys0_q, keys1_q;
  logic pop, take0, take1, take2;

  // A word goes to w1 when the bits after it are known. Behind the last word of a packet are zeros,
  // and w1 stays empty until that has gone. All this is made for both cases of `pop`, which is
  // late.
  logic [1:0] takes0, takes1, takes2, ready, loads;
  always_comb begin
    for (int p = 0; p < 2; p++) begin
      logic stays;  // w0 does
      stays     = v0_q && p == 0;
      takes0[p] = v1_q && !stays;
      takes1[p] = v2_q && (last2_q || v3_q) && (v1_q ? !stays && !last1_q : !(stays && last0_q));
      takes2[p] = v3_q && (!v2_q || takes1[p]);
      ready[p]  = !v3_q || (takes2[p] && !HalfRate);
      loads[p]  = !v3_q || takes2[p];
    end
  end
  assign take0         = takes0[pop];
  assign take1         = takes1[pop];
  assign take2         = takes2[pop];
  assign s_axis_tready = ready[pop];

  logic [5:0] behind_q;  // the bits behind w2, where that is not the last one
  logic [37:0] ahead;    // w2 and the bits that decide how long codes at its end are
  assign ahead = {last2_q ? 6'd0 : behind_q, w2_q};
  logic [2:0][31:0] keys2;
  always_comb begin
    for (int i = 0; i < 32; i++) begin
      {keys2[2][i], keys2[1][i], keys2[0][i]} = key_of(ahead[i+:7]);
    end
  end
  always_ff @(posedge clk_i) begin
    if (take0) begin
      w0_q     <= w1_q;
      keys0_q  <= keys1_q;
      last0_q  <= last1_q;
      bytes0_q <= bytes1_q;
    end
    if (take1) begin
      keys1_q  <= keys2;
      last1_q  <= last2_q;
      bytes1_q <= bytes2_q;
    end
    if (take0 && last1_q) w1_q <= '0;
    else if (take1) w1_q <= w2_q;
    if (take2) begin
      for (int i = 0; i < 4; i++) begin
        w2_q[8*i+:8] <= gone_q[i] ? '0 : w3_q[8*i+:8];
      end
      last2_q  <= last3_q;
      bytes2_q <= 3'(!gone_q[3]) + 3'(!gone_q[2]) + 3'(!gone_q[1]) + 3'd1;
    end
    if (loads[pop]) behind_q <= s_axis_tdata[5:0];
    if (s_axis_tready) begin
      w3_q     <= s_axis_tdata;
      last3_q  <= s_axis_tlast;
      gone_q   <= s_axis_tlast ? ~{s_axis_tkeep[3:1], 1'b1} : '0;
    end
    v0_q <= take0 || (v0_q && !pop);
    v1_q <= take1 || (v1_q && !take0);
    v2_q <= take2 || (v2_q && !take1);
    v3_q <= s_axis_tready ? s_axis_tvalid : v3_q && !take2;
    if (!rst_ni) {v0_q, v1_q, v2_q, v3_q} <= '0;
  end

  // ---- the loop: where codes begin -------------------------------------------------------------
  // A code that begins in w1 makes that w0 in the same clock: whether words move is so known from
  // registers alone.

  typedef enum logic [1:0] {Idle, Run, Check, Drain} state_t;
  state_t state_q;
  logic [CountWidth-1:0] left_q;  // values after this one
  logic [6:0] at_q;  // from the beginning of w0
  logic [5:0] base, size;
  logic beyond, known, begins, emit, finish, skip, ended0, ended1, good_end;

  logic [63:0] words;
  // Kept: tools that mix the lookup with what is made of it make both longer. A bit by +:1 is a
  // shift, of which Yosys makes the FPGA's wide multiplexers.
  (* keep *) logic first;
  (* keep *) logic [2:0] key;
  assign words = {w1_q, w0_q};
  assign first = words[at_q[5:0]+:1];
  always_comb begin
    for (int b = 0; b < 3; b++) begin
      logic [63:0] keys;
      keys   = {keys1_q[b], keys0_q[b]};
      key[b] = keys[at_q[5:0]+:1];
    end
  end
  // A code in w1 begins as far from that word's beginning.
  assign base   = state_q == Idle ? {1'b0, s_cmd_tuser, 3'b0} : {at_q[6], at_q[4:0]};
  assign size   = size_of_key(first, key, cfg_m_i);
  assign beyond = !last0_q && (at_q[6] || at_q[5]);

  // The code's words are there and will be w0, w1 and, for codes of more than 32 bits, w2.
  assign known  = beyond ? v1_q && (last1_q || last2_q || v3_q) : v0_q && (last0_q || v1_q);
  assign ended0 = last0_q && at_q[6:3] >= {1'b0, bytes0_q};
  assign ended1 = last1_q && {1'b0, at_q[4:3]} >= bytes1_q;
  // The last code has ended in the last byte.
  assign good_end = last0_q &&
                    (at_q[2:0] == '0 ? at_q[6:3] == {1'b0, bytes0_q}
                                     : at_q[6:3] + 4'd1 == {1'b0, bytes0_q});

  assign begins = state_q == Run && !(beyond ? at_q[6] || ended1 : ended0);
  assign emit   = move && begins && known;
  assign finish = move && v0_q && !beyond && (state_q == Check || (state_q == Run && ended0));
  assign skip   = move && v0_q && beyond && known && (state_q == Run || state_q == Check) && !emit;
  assign pop    = move && v0_q && (state_q == Drain || (state_q != Idle && beyond && known));

  assign s_cmd_tready = state_q == Idle && move;
  always_ff @(posedge clk_i) begin
    if (move) begin
      unique case (state_q)
        Idle: if (s_cmd_tvalid) state_q <= Run;
        Run: begin
          if (finish) state_q <= Drain;
          else if (emit && left_q == '0) state_q <= Check;
        end
        Check: if (finish) state_q <= Drain;
        Drain: if (pop && last0_q) state_q <= Idle;
      endcase
      if (state_q == Idle) left_q <= s_cmd_tdata;
      else if (emit) left_q <= left_q - 1'b1;
    end
    if (state_q == Idle || emit || skip) at_q <= 7'(base) + (begins ? 7'(size) : 7'd0);
    if (!rst_ni) state_q <= Idle;
  end

  // ---- 1, 2, 3: the code to bit 0 ---------------------------------------------------------------

  logic v1t_q, v2t_q, v3t_q, end1_q, end2_q, end3_q, bad1_q, bad2_q, bad3_q;
  logic [4:0] at1_q;
  logic at2_q, none1_q;
  logic [CodeWidth:0] code2_q;
  logic [CodeWidth-1:0] code3_q;
  logic [66:0] window;  // w0 is by now the word in which the code begins
  assign window = {last0_q || last1_q ? 3'd0 : w2_q[2:0], w1_q, w0_q};
  always_ff @(posedge clk_i) begin
    if (move) begin
      {v3t_q, v2t_q, v1t_q}    <= {v2t_q, v1t_q, emit || finish};
      {end3_q, end2_q, end1_q} <= {end2_q, end1_q, finish};
      {bad3_q, bad2_q, bad1_q} <= {bad2_q, bad1_q, !good_end || state_q == Run};
      at1_q   <= at_q[4:0];
      none1_q <= at_q[5] && finish;  // the last code ended with the last word
      at2_q   <= at1_q[0];
      code2_q <= none1_q ? '0 : (CodeWidth + 1)'(window >> {at1_q[4:1], 1'b0});
      code3_q <= at2_q ? code2_q[CodeWidth:1] : code2_q[CodeWidth-1:0];
    end
    if (!rst_ni) {v1t_q, v2t_q, v3t_q} <= '0;
  end

  // ---- 4: its case -----------------------------------------------------------------------------

  logic v4t_q, end4_q, bad4_q;
  class_t class4_q;
  logic [CodeWidth-1:0] code4_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v4t_q    <= v3t_q;
      end4_q   <= end3_q;
      // Behind the last code, up to the end of its byte, are zeros.
      bad4_q   <= end3_q && (bad3_q || code3_q[6:0] != '0);
      class4_q <= class_of(code3_q[6:0]);
      code4_q  <= code3_q;
    end
    if (!rst_ni) v4t_q <= 1'b0;
  end

  // ---- 5: its payload --------------------------------------------------------------------------

  logic v5t_q, end5_q, bad5_q, negative5_q;
  class_t class5_q;
  logic [3:0] step5_q;
  logic [31:0] payload5_q;  // of values with an exponent
  logic [23:0] word5_q;  // of others: sign and fraction
  always_ff @(posedge clk_i) begin
    if (move) begin
      v5t_q       <= v4t_q;
      end5_q      <= end4_q;
      bad5_q      <= bad4_q;
      class5_q    <= class4_q;
      payload5_q  <= class4_q == Escape ? code4_q[34:3]
                                        : {8'b0, 24'(code4_q >> place_of(class4_q))};
      word5_q     <= class4_q == Denormal ? code4_q[27:4] : {code4_q[4], 23'b0};
      step5_q     <= class4_q == 4'd6 ? 4'd6 + 4'(code4_q[8:7]) : class4_q;
      negative5_q <= class4_q != '0 && code4_q[6'(place_of(class4_q))-6'd1];
    end
    if (!rst_ni) v5t_q <= 1'b0;
  end

  // ---- 6: its fields ---------------------------------------------------------------------------

  logic v6t_q, end6_q, bad6_q, equal6_q, difference6_q, sign6_q;
  logic [7:0] exponent6_q;
  logic signed [4:0] step6_q;
  logic [22:0] fraction6_q;
  logic [4:0] align_q;  // 23 - m

  logic [8:0] above;  // what follows the mantissa
  logic exact;
  assign above = 9'(payload5_q >> cfg_m_i);
  assign exact = class5_q == Denormal || class5_q == Zero;
  always_ff @(posedge clk_i) begin
    align_q <= 5'(FractionBits) - cfg_m_i;
    if (move) begin
      v6t_q         <= v5t_q;
      end6_q        <= end5_q;
      equal6_q      <= class5_q == Equal;
      difference6_q <= class5_q <= MaxDifference;
      exponent6_q   <= class5_q == Escape ? above[7:0] : 8'd0;
      step6_q       <= negative5_q ? -5'(step5_q) : 5'(step5_q);
      fraction6_q   <= exact ? word5_q[22:0] : 23'(payload5_q[22:0] << align_q);
      sign6_q       <= exact ? word5_q[23] : class5_q == Escape ? above[8] : above[0];
      bad6_q        <= end5_q ? bad5_q
                     : class5_q == Escape ? above[7:0] == '0
                     : class5_q == Denormal && cfg_bfloat16_i && word5_q[15:0] != '0;
    end
    if (!rst_ni) v6t_q <= 1'b0;
  end

  // ---- 7: the value, from the one before it ----------------------------------------------------

  logic v7t_q, end7_q, bad7_q, difference7_q, carry7_q;
  logic [31:0] word7_q;  // +0 before a packet
  logic [8:0] exponent;
  assign exponent = difference6_q ? {1'b0, word7_q[30:23]} + {{4{step6_q[4]}}, step6_q}
                                  : {1'b0, exponent6_q};
  always_ff @(posedge clk_i) begin
    if (move) begin
      v7t_q         <= v6t_q;
      end7_q        <= end6_q;
      bad7_q        <= bad6_q;
      difference7_q <= difference6_q;
      carry7_q      <= exponent[8];
    end
    // One reset for both, which is the registers' own.
    if (!rst_ni || (move && v6t_q && end6_q)) word7_q <= '0;
    else if (move && v6t_q && !equal6_q) word7_q <= {sign6_q, exponent[7:0], fraction6_q};
    if (!rst_ni) v7t_q <= 1'b0;
  end

  // ---- 8: a value waits until it is known whether it is the last -------------------------------

  logic v8t_q, bad8_q, out_valid_q, out_last_q, out_bad_q;
  logic [31:0] word8_q, out_q;
  logic [22:0] half_q;  // what is added to values that lost bits
  logic normal, outside;
  assign normal  = word7_q[30:23] != 8'h00 && word7_q[30:23] != 8'hFF;
  assign outside = difference7_q && (carry7_q || !normal);
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 23; i++) begin
      half_q[i] <= i == 22 - int'(cfg_m_i) && cfg_midpoint_i && !(cfg_bfloat16_i && i < 16);
    end
    if (move) begin
      out_valid_q <= v7t_q && v8t_q;
      out_q       <= word8_q;
      out_last_q  <= end7_q;
      out_bad_q   <= end7_q && (bad7_q || bad8_q);
      if (v7t_q) begin
        v8t_q   <= !end7_q;
        bad8_q  <= !end7_q && (bad8_q || bad7_q || outside);
        word8_q <= {word7_q[31:23], word7_q[22:0] | (normal ? half_q : '0)};
      end
    end
    if (!rst_ni) {v8t_q, bad8_q, out_valid_q} <= '0;
  end

  assign move          = m_axis_tready || !out_valid_q;
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tuser  = out_bad_q;

endmodule
