// SPDX-License-Identifier: Apache-2.0
// wpr_packetizer and wpr_reassembler behind each other: messages come out as they went in, any one beat
// chosen by pick_i behind exactly those that were before it, with its tkeep and tlast; between the two,
// headers have the blocks' sizes and numbers in order. Nothing is dropped or lost.
module wpr_blocks_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [1:0] s_data_i,
  input logic [1:0] s_size_i,   // of a last beat: 1, 8, 9 or 16 bytes
  input logic       s_last_i,
  input logic       stop_i,
  input logic       m_ready_i,
  input logic       pick_i
);

  logic s_ready, b_valid, b_ready, b_last, r_ready, m_valid, m_last, m_user, dropped;
  logic [127:0] b_data, m_data;
  logic [15:0] s_keep, b_keep, m_keep;
  always_comb begin
    case (s_last_i ? s_size_i : 2'd3)
      2'd0: s_keep = 16'h0001;
      2'd1: s_keep = 16'h00FF;
      2'd2: s_keep = 16'h01FF;
      default: s_keep = 16'hFFFF;
    endcase
  end
  wpr_packetizer #(.Bytes(16), .LogDepth(2)) packetizer (
    .clk_i, .rst_ni, .cfg_beats_i(2'd1), .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready),
    .s_axis_tdata({126'd0, s_data_i}), .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i),
    .m_axis_tvalid(b_valid), .m_axis_tready(b_ready), .m_axis_tdata(b_data),
    .m_axis_tkeep(b_keep), .m_axis_tlast(b_last)
  );
  assign b_ready = r_ready && !stop_i;
  wpr_reassembler #(.Bytes(16), .LogSlots(1), .LogBeats(1)) reassembler (
    .clk_i, .rst_ni, .cfg_patience_i(16'hFFFF), .s_axis_tvalid(b_valid && !stop_i),
    .s_axis_tready(r_ready), .s_axis_tdata(b_data), .s_axis_tkeep(b_keep), .s_axis_tlast(b_last),
    .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last), .m_axis_tuser(m_user), .dropped_o(dropped)
  );

  logic started_q = 1'b0, picked_q = 1'b0, begins_q = 1'b1, two_q = 1'b0;
  logic [18:0] beat_q;
  logic [4:0] ahead_q, inside_q = '0;
  logic [5:0] size_q, size;      // of the block that leaves, so far; with this beat
  logic [5:0] says_q;            // its header
  logic [15:0] number_q = '0;
  logic push, pop, b_pop;
  assign push  = s_valid_i && s_ready;
  assign pop   = m_valid && m_ready_i;
  assign b_pop = b_valid && b_ready;
  assign size  = (begins_q ? 6'd0 : size_q) + 6'($countones(b_keep));
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (rst_ni) begin
      inside_q <= inside_q + 5'(push) - 5'(pop);
      if (pick_i && push && !picked_q) begin
        picked_q <= 1'b1;
        beat_q   <= {s_data_i, s_keep, s_last_i};
        ahead_q  <= inside_q - 5'(pop);
      end else if (picked_q && pop) begin
        if (ahead_q == 0) picked_q <= 1'b0;
        else ahead_q <= ahead_q - 5'd1;
      end
      if (b_pop) begin
        begins_q <= b_last;
        size_q   <= size;
        if (begins_q) says_q <= b_data[5:0];
        if (b_last) number_q <= number_q + 16'd1;
      end
      two_q <= two_q || (pop && number_q == 16'd2);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      lossless: assert (!dropped && (!m_valid || !m_user));
      sizes: assert (!b_pop || !b_last || size == (begins_q ? b_data[5:0] : says_q) + 6'd8);
      numbers: assert (!b_pop || !begins_q || b_data[47:32] == number_q);
    end
    if (started_q && rst_ni && m_valid) begin
      counted: assert (inside_q != 0);
      order: assert (!picked_q || ahead_q != 0 || beat_q == {m_data[1:0], m_keep, m_last});
    end
    used: cover (two_q && m_valid && m_last && m_keep == 16'h01FF);
  end

endmodule
