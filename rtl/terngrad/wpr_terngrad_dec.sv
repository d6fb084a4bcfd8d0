// SPDX-License-Identifier: Apache-2.0
// terngrad decoder (codecs/terngrad/spec.md): a packet of code in, 512 bits a beat; a packet of float32
// words out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock, and one clock more a chunk of 4096. Latency 5 clocks from a chunk's third
// word. m_axis_tready stops all stages at once.
module wpr_terngrad_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

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

  // ---- a chunk: its scale, and two words for two rows ------------------------------------------------
  // The lower row goes on with the second word, the upper one a clock later.

  typedef enum logic [2:0] {Idle, Scale, Taken, Negative, Refuse, Drain} state_t;
  state_t state_q;
  logic move, one_row, final_group, lower, refuse, upper_q, upper_last_q;
  logic [3:0] upper_rest_q;
  logic [CountWidth-1:0] left_q;  // values in front of this group that have not left, less one
  logic [6:0] group_q;            // of the chunk
  logic [31:0] scale_q, taken_q;
  logic [15:0] negative_q;  // of the upper row
  logic w_take;
  assign final_group  = left_q[CountWidth-1:5] == '0;
  assign one_row      = final_group && !left_q[4];
  assign s_cmd_tready = state_q == Idle;
  // An upper row is on its way in the clock after its words, when others may come.
  assign w_ready = state_q == Drain ||
                   (move && (state_q == Scale || state_q == Taken || state_q == Negative));
  assign w_take  = w_valid && w_ready;
  assign lower   = w_take && state_q == Negative;
  assign refuse  = move && state_q == Refuse && !upper_q;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Scale;
      Scale, Taken: if (w_take) state_q <= w_last ? Refuse : state_q == Scale ? Taken : Negative;
      Negative:
        if (w_take) begin
          if (final_group) state_q <= w_last ? Idle : Drain;
          else state_q <= w_last ? Refuse : &group_q ? Scale : Taken;
        end
      Refuse: if (refuse) state_q <= Idle;
      default: if (w_take && w_last) state_q <= Idle;
    endcase
    if (w_take) begin
      if (state_q == Scale) scale_q <= word;
      if (state_q == Taken) taken_q <= word;
      if (state_q == Negative) negative_q <= word[31:16];
      if (state_q == Scale) group_q <= '0;
      else if (state_q == Negative) group_q <= group_q + 7'd1;
    end
    if (state_q == Idle) left_q <= s_cmd_tdata;
    else if (lower) left_q <= left_q - CountWidth'(2 * Lanes);
    if (move) begin
      upper_q      <= lower && !one_row;
      upper_last_q <= final_group;
      upper_rest_q <= left_q[3:0];
    end
    if (!rst_ni) begin
      state_q <= Idle;
      upper_q <= 1'b0;
    end
  end

  // ---- 1: a row, and whether an encoder writes its group ---------------------------------------------

  logic v1_q, last1_q, empty1_q, wrong1_q, any1_q, nan1_q, finite1_q;
  logic [Lanes-1:0] keep, taken1_q, negative1_q, keep1_q;
  logic [31:0] beyond;
  logic [30:0] scale1_q;
  always_comb begin
    for (int i = 0; i < 32; i++) beyond[i] = final_group && 5'(i) > left_q[4:0];
    for (int l = 0; l < int'(Lanes); l++) begin
      keep[l] = upper_q ? !upper_last_q || 4'(l) <= upper_rest_q : !beyond[l];
    end
  end
  always_ff @(posedge clk_i) begin
    if (move) begin
      v1_q        <= lower || upper_q || refuse;
      last1_q     <= upper_q ? upper_last_q : one_row || state_q == Refuse;
      empty1_q    <= refuse;
      keep1_q     <= keep & {Lanes{!refuse}};
      taken1_q    <= upper_q ? taken_q[31:16] : taken_q[15:0];
      negative1_q <= upper_q ? negative_q : word[15:0];
      scale1_q    <= scale_q[30:0];
      nan1_q      <= scale_q == Nan;
      finite1_q   <= !scale_q[31] && scale_q[30:23] != '1;
      any1_q      <= lower && taken_q != '0;
      wrong1_q    <= lower && ((word & ~taken_q) != '0 || (taken_q & beyond) != '0 ||
                               (final_group && (!w_last || w_keep != '1)));
    end
    if (!rst_ni) v1_q <= 1'b0;
  end

  // ---- 2: values ---------------------------------------------------------------------------------------

  logic out_valid_q, out_last_q, out_bad_q, bad_q, wrong;
  logic [Lanes-1:0] out_keep_q;
  logic [Lanes-1:0][31:0] out_q;
  assign move  = m_axis_tready || !out_valid_q;
  assign wrong = bad_q || empty1_q || wrong1_q || (nan1_q ? any1_q : !finite1_q);
  always_ff @(posedge clk_i) begin
    if (move) begin
      out_valid_q <= v1_q;
      out_last_q  <= last1_q;
      out_bad_q   <= last1_q && wrong;
      out_keep_q  <= keep1_q;
      for (int l = 0; l < int'(Lanes); l++) begin
        out_q[l] <= nan1_q ? Nan : {negative1_q[l], scale1_q} & {32{taken1_q[l]}};
      end
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
