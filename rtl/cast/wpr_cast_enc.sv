// SPDX-License-Identifier: Apache-2.0
// Encoder of the casts fp16 and bf16 (codecs/fp16/spec.md, codecs/bf16/spec.md), round=nearest: a
// packet of float32 words in, 16 a clock; a packet of 16-bit words out, 32 a beat. The bytes are
// those of every other encoder of these codecs.
//
// Does not round at random (round=stochastic), and does not know bytes behind the last whole value:
// who frames the code appends them. A packet has at least one value.
//
// Rate: 16 values a clock; a beat leaves for two that came. Latency 4 clocks from the beat that
// fills or ends one. m_axis_tready stops all stages at once, s_axis_tready follows it in the same
// clock.
module wpr_cast_enc (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Settings: constant from a packet's first beat in to its last one out. Tied to constants, the
  // logic for the others goes away.
  input logic cfg_half_i,      // fp16; 0: bf16
  input logic cfg_saturate_i,  // finite values stay finite

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

  logic move;
  assign s_axis_tready = move;

  logic v1_q, v2_q, v3_q, last1_q, last2_q, last3_q;
  logic [Lanes-1:0] keep1_q, keep2_q, keep3_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      {v3_q, v2_q, v1_q}          <= {v2_q, v1_q, s_axis_tvalid};
      {last3_q, last2_q, last1_q} <= {last2_q, last1_q, s_axis_tlast};
      for (int l = 0; l < int'(Lanes); l++) keep1_q[l] <= !s_axis_tlast || s_axis_tkeep[4*l];
      keep2_q <= keep1_q;
      keep3_q <= keep2_q;
    end
    if (!rst_ni) {v3_q, v2_q, v1_q} <= '0;
  end

  // Where no rounding is wanted.
  typedef enum logic [1:0] {Rounded, Nan, Infinite, Largest} kind_t;

  logic [Lanes-1:0][15:0] code3_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane

    // ---- 1: what it is --------------------------------------------------------------------------

    logic [31:0] word;
    logic [7:0] exponent;
    logic [22:0] fraction;
    logic [7:0] distance;  // of fp16's denormals: bits that go beside the usual 13
    logic special, beyond, all_go;
    assign word     = s_axis_tdata[32*l+:32];
    assign exponent = word[30:23];
    assign fraction = word[22:0];
    assign special  = exponent == 8'hFF;
    // Finite and larger than 65504, or than the largest bfloat16.
    assign beyond   = cfg_half_i ? exponent > 8'd142 || (exponent == 8'd142 && word[22:13] == '1 &&
                                                         word[12:0] != '0)
                                 : exponent == 8'hFE && word[22:16] == '1 && word[15:0] != '0;
    assign distance = 8'd113 - exponent;
    assign all_go   = exponent < 8'd101;  // below half of the least denormal
    logic sign1_q, one1_q, low1_q;
    kind_t kind1_q;
    logic [4:0] exponent1_q;
    logic [22:0] fraction1_q;
    logic [7:0] top1_q;
    logic [3:0] shift1_q;
    logic [11:0] mask;
    always_comb for (int i = 0; i < 12; i++) mask[i] = all_go || 8'(i) < distance;
    always_ff @(posedge clk_i) begin
      if (move) begin
        sign1_q <= word[31];
        kind1_q <= special ? (fraction != '0 ? Nan : Infinite)
                 : beyond && cfg_saturate_i ? Largest
                 : cfg_half_i && exponent > 8'd142 ? Infinite : Rounded;
        one1_q      <= exponent >= 8'd113;  // fp16: no denormal
        exponent1_q <= 5'(exponent - 8'd112);
        shift1_q    <= exponent >= 8'd113 ? 4'd0 : all_go ? 4'd12 : distance[3:0];
        fraction1_q <= fraction;
        top1_q      <= exponent;
        // What is shifted out.
        low1_q      <= cfg_half_i && exponent < 8'd113 && (fraction[11:0] & mask) != '0;
      end
    end

    // ---- 2: the word that it is cut to, and which way to round it -------------------------------

    logic [22:0] shifted;
    assign shifted = 23'({1'b1, fraction1_q} >> shift1_q);
    logic sign2_q, up2_q;
    kind_t kind2_q;
    logic [14:0] cut2_q;
    logic guard, sticky, odd;
    assign guard  = cfg_half_i ? shifted[12] : fraction1_q[15];
    assign odd    = cfg_half_i ? shifted[13] : fraction1_q[16];
    assign sticky = cfg_half_i ? shifted[11:0] != '0 || low1_q : fraction1_q[14:0] != '0;
    always_ff @(posedge clk_i) begin
      if (move) begin
        sign2_q <= sign1_q;
        kind2_q <= kind1_q;
        cut2_q  <= cfg_half_i ? {exponent1_q & {5{one1_q}}, shifted[22:13]}
                              : {top1_q, fraction1_q[22:16]};
        up2_q   <= guard && (sticky || odd);
      end
    end

    // ---- 3: rounded -----------------------------------------------------------------------------

    logic [14:0] rounded;
    assign rounded = cut2_q + 15'(up2_q);
    always_ff @(posedge clk_i) begin
      if (move) begin
        unique case (kind2_q)
          Nan: code3_q[l] <= cfg_half_i ? 16'h7E00 : 16'h7FC0;
          Infinite: code3_q[l] <= {sign2_q, cfg_half_i ? 15'h7C00 : 15'h7F80};
          Largest: code3_q[l] <= {sign2_q, cfg_half_i ? 15'h7BFF : 15'h7F7F};
          default: code3_q[l] <= {sign2_q, rounded};
        endcase
      end
    end
  end

  // ---- 4: two beats to one ----------------------------------------------------------------------

  logic upper_q, out_valid_q, out_last_q, full;
  logic [255:0] lower_q;
  logic [511:0] out_q;
  logic [2*Lanes-1:0] out_keep_q;
  assign move = m_axis_tready || !out_valid_q;
  assign full = v3_q && (upper_q || last3_q);
  always_ff @(posedge clk_i) begin
    if (move) begin
      out_valid_q <= full;
      out_last_q  <= last3_q;
      out_q       <= {code3_q, upper_q ? lower_q : code3_q};
      out_keep_q  <= upper_q ? {keep3_q, {Lanes{1'b1}}} : {{Lanes{1'b0}}, keep3_q};
      if (v3_q) begin
        lower_q <= code3_q;
        upper_q <= !full;
      end
    end
    if (!rst_ni) {upper_q, out_valid_q} <= '0;
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tlast  = out_last_q;
  always_comb for (int i = 0; i < 2 * int'(Lanes); i++) m_axis_tkeep[2*i+:2] = {2{out_keep_q[i]}};

endmodule
