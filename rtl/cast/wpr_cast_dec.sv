// SPDX-License-Identifier: Apache-2.0
// Decoder of the casts fp16 and bf16 (codecs/fp16/spec.md, codecs/bf16/spec.md): a packet of 16-bit
// words in, up to 32 a beat; a packet of float32 words out, 16 a clock.
//
// Every word is a value, so nothing but a packet's size can be wrong: one of an odd number of bytes
// has m_axis_tuser set beside m_axis_tlast, and its last byte is dropped. Does not know bytes
// behind the last value. A packet has at least two bytes.
//
// Rate: 16 values a clock. Latency 4 clocks. m_axis_tready stops all stages at once.
module wpr_cast_dec (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input logic cfg_half_i,  // fp16; 0: bf16. Constant from a packet's first beat in to its last out

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // read with tlast only
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Lanes = 16;

  logic move;

  // ---- 1: a beat becomes two, or one that is the last -------------------------------------------

  logic v1_q, last1_q, odd1_q, two1_q;  // two: the upper half waits
  logic [1:0][Lanes-1:0][15:0] words1_q;
  logic [1:0][Lanes-1:0] keep1_q;
  logic [2*Lanes-1:0] keep, odd;
  always_comb begin
    for (int i = 0; i < 2 * int'(Lanes); i++) begin
      keep[i] = !s_axis_tlast || s_axis_tkeep[2*i+1];
      odd[i]  = s_axis_tlast && s_axis_tkeep[2*i] && !s_axis_tkeep[2*i+1];
    end
  end
  assign s_axis_tready = !v1_q || (move && !two1_q);
  always_ff @(posedge clk_i) begin
    if (s_axis_tready) begin
      v1_q     <= s_axis_tvalid;
      last1_q  <= s_axis_tlast;
      words1_q <= s_axis_tdata;
      keep1_q  <= keep;
      odd1_q   <= |odd;
      two1_q   <= s_axis_tvalid && keep[Lanes];
    end else if (move) begin
      words1_q[0] <= words1_q[1];
      keep1_q[0]  <= keep1_q[1];
      two1_q      <= 1'b0;
    end
    if (!rst_ni) {v1_q, two1_q} <= '0;
  end

  // ---- 2, 3: fp16's denormals get an exponent ---------------------------------------------------

  logic v2_q, v3_q, last2_q, last3_q, bad2_q, bad3_q;
  logic [Lanes-1:0] keep2_q, keep3_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      {v3_q, v2_q}       <= {v2_q, v1_q};
      {last3_q, last2_q} <= {last2_q, last1_q && !two1_q};
      {bad3_q, bad2_q}   <= {bad2_q, odd1_q};
      keep2_q <= keep1_q[0];
      keep3_q <= keep2_q;
    end
    if (!rst_ni) {v3_q, v2_q} <= '0;
  end

  logic [Lanes-1:0][31:0] value3_q;
  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    logic [15:0] word2_q;
    logic [3:0] zeros, zeros2_q;  // before the first one of the fraction
    logic tiny2_q, special2_q;
    always_comb begin
      zeros = 4'd10;
      for (int i = 0; i < 10; i++) if (words1_q[0][l][i]) zeros = 4'(9 - i);
    end
    always_ff @(posedge clk_i) begin
      if (move) begin
        word2_q    <= words1_q[0][l];
        zeros2_q   <= zeros;
        tiny2_q    <= words1_q[0][l][14:10] == 5'd0;
        special2_q <= words1_q[0][l][14:10] == 5'h1F;
      end
    end

    logic [9:0] normal;  // a denormal's fraction behind its first one
    logic [7:0] exponent;
    assign normal   = 10'({word2_q[9:0], 1'b0} << zeros2_q);
    assign exponent = special2_q ? 8'hFF
                    : tiny2_q ? (zeros2_q == 4'd10 ? 8'd0 : 8'd112 - 8'(zeros2_q))
                    : 8'(word2_q[14:10]) + 8'd112;
    always_ff @(posedge clk_i) begin
      if (move) begin
        value3_q[l] <= cfg_half_i
            ? {word2_q[15], exponent, word2_q[9] || (special2_q && word2_q[9:0] != '0),
               word2_q[8:0], 13'b0}
            : {word2_q, 16'b0};
        if (cfg_half_i && tiny2_q) value3_q[l][22:0] <= {normal, 13'b0};
      end
    end
  end

  // ---- 4: out -----------------------------------------------------------------------------------

  wpr_rows_out out (
    .clk_i,
    .rst_ni,
    .move_o      (move),
    .row_valid_i (v3_q),
    .row_last_i  (last3_q),
    .row_wrong_i (bad3_q),
    .row_keep_i  (keep3_q),
    .row_values_i(value3_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
