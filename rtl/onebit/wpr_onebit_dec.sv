// SPDX-License-Identifier: Apache-2.0
// onebit decoder (codecs/onebit/spec.md): a packet of code in, 512 bits a beat; a packet of float32
// words out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock, and two clocks more a block. Latency 5 clocks from a block's third word. m_axis_tready stops all
// stages at once.
module wpr_onebit_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from two clocks before a packet until its last value has left.
  input logic [3:0] cfg_block_i,  // 5 to 12: a block has so many values, as a power of two

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

  logic [6:0] mask_q;  // words of bits of a block, less one
  always_ff @(posedge clk_i) for (int i = 0; i < 7; i++) mask_q[i] <= i + 5 < int'(cfg_block_i);

  logic w_valid, w_ready, w_last;
  logic [31:0] word;
  logic [3:0] w_keep;
  wpr_narrow #(.Wide(64), .Narrow(4)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(w_valid),
    .m_axis_tready(w_ready),
    .m_axis_tdata (word),
    .m_axis_tkeep (w_keep),
    .m_axis_tlast (w_last)
  );

  // ---- a block: two means, and words of bits, of two clocks each -----------------------------------

  typedef enum logic [2:0] {Idle, Negative, Other, Lower, Upper, Refuse, Drain} state_t;
  state_t state_q;
  logic move, final_row, rows;
  logic [CountWidth-1:0] left_q;  // values that have not left, less one
  logic [6:0] word_q;             // of the block
  logic [31:0] negative_q, other_q;
  assign final_row    = left_q[CountWidth-1:4] == '0;
  assign rows         = w_valid && (state_q == Lower || state_q == Upper);
  assign s_cmd_tready = state_q == Idle;
  always_comb begin
    unique case (state_q)
      Negative, Other, Upper: w_ready = move;
      Lower: w_ready = move && final_row;
      Drain: w_ready = 1'b1;
      default: w_ready = 1'b0;
    endcase
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Negative;
      Negative: if (w_valid && move) state_q <= w_last ? Refuse : Other;
      Other: if (w_valid && move) state_q <= w_last ? Refuse : Lower;
      Lower: if (w_valid && move) state_q <= !final_row ? Upper : w_last ? Idle : Drain;
      Upper:
        if (w_valid && move) begin
          if (final_row) state_q <= w_last ? Idle : Drain;
          else state_q <= w_last ? Refuse : word_q == mask_q ? Negative : Lower;
        end
      Refuse: if (move) state_q <= Idle;
      default: if (w_valid && w_last) state_q <= Idle;
    endcase
    if (w_valid && move) begin
      if (state_q == Negative) negative_q <= word;
      if (state_q == Other) other_q <= word;
      if (state_q == Negative) word_q <= '0;
      else if (state_q == Upper) word_q <= word_q + 7'd1;
    end
    if (state_q == Idle) left_q <= s_cmd_tdata;
    else if (rows && move) left_q <= left_q - CountWidth'(Lanes);
    if (!rst_ni) state_q <= Idle;
  end

  // ---- 1: a row of bits, and whether an encoder writes it and its means -----------------------------

  logic v1_q, last1_q, empty1_q, wrong1_q, any1_q, nan1_q, means1_q;
  logic [Lanes-1:0] bits, beyond, bits1_q, keep1_q;
  logic [31:0] negative1_q, other1_q;
  assign bits = state_q == Upper ? word[31:16] : word[15:0];
  always_comb for (int l = 0; l < int'(Lanes); l++) beyond[l] = final_row && 4'(l) > left_q[3:0];
  always_ff @(posedge clk_i) begin
    if (move) begin
      v1_q        <= rows || state_q == Refuse;
      last1_q     <= final_row || state_q == Refuse;
      empty1_q    <= state_q == Refuse;
      bits1_q     <= bits;
      keep1_q     <= ~beyond;
      negative1_q <= negative_q;
      other1_q    <= other_q;
      any1_q      <= bits != '0;
      nan1_q      <= negative_q == Nan && other_q == Nan;
      means1_q    <= (negative_q == '0 || (negative_q[31] && negative_q[30:0] != '0 &&
                                           negative_q[30:23] != '1)) &&
                     !other_q[31] && other_q[30:23] != '1;
      wrong1_q    <= final_row && ((bits & beyond) != '0 || !w_last || w_keep != '1 ||
                                   (state_q == Lower && word[31:16] != '0));
    end
    if (!rst_ni) v1_q <= 1'b0;
  end

  // ---- 2: values ---------------------------------------------------------------------------------------

  logic out_valid_q, out_last_q, out_bad_q, bad_q, wrong;
  logic [Lanes-1:0] out_keep_q;
  logic [Lanes-1:0][31:0] out_q;
  assign move  = m_axis_tready || !out_valid_q;
  assign wrong = bad_q || empty1_q || wrong1_q || (nan1_q ? any1_q : !means1_q);
  always_ff @(posedge clk_i) begin
    if (move) begin
      out_valid_q <= v1_q;
      out_last_q  <= last1_q;
      out_bad_q   <= last1_q && wrong;
      out_keep_q  <= keep1_q & {Lanes{!empty1_q}};
      for (int l = 0; l < int'(Lanes); l++) out_q[l] <= bits1_q[l] ? negative1_q : other1_q;
      if (v1_q) bad_q <= !last1_q && wrong;
    end
    if (!rst_ni) {out_valid_q, bad_q} <= '0;
  end
  assign m_axis_tvalid = out_valid_q;
  assign m_axis_tdata  = out_q;
  assign m_axis_tlast  = out_last_q;
  assign m_axis_tuser  = out_bad_q;
  always_comb for (int l = 0; l < int'(Lanes); l++) m_axis_tkeep[4*l+:4] = {4{out_keep_q[l]}};

endmodule
