// SPDX-License-Identifier: Apache-2.0
// wpr_reassembler, whatever comes: what is offered is held; a lost block ends a message with a beat
// without bytes and only it does; tkeep has no gaps and is full but at a block's end. It never hangs:
// offered beats while what leaves is taken, something moves in one of seven clocks. Numbers and sizes
// are small here, and some of them far off.
module wpr_reassembler_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [2:0] s_number_i,
  input logic       s_far_i,
  input logic [5:0] s_says_i,   // size in the header
  input logic       s_first_i,
  input logic       s_final_i,
  input logic [1:0] s_data_i,
  input logic [4:0] s_size_i,   // of the beat
  input logic       s_last_i,
  input logic       m_ready_i
);

  logic s_ready, m_valid, m_last, m_user, dropped;
  logic [127:0] s_data, m_data;
  logic [15:0] s_keep, m_keep;
  assign s_data = {s_data_i, 61'd0, 15'd0, s_first_i, {13{s_far_i}}, s_number_i, 1'b1, s_final_i,
                   24'd0, s_says_i};
  always_comb for (int i = 0; i < 16; i++) s_keep[i] = 5'(i) < s_size_i;
  wpr_reassembler #(.Bytes(16), .LogSlots(1), .LogBeats(1)) dut (
    .clk_i, .rst_ni, .cfg_patience_i(16'd1), .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready),
    .s_axis_tdata(s_data), .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i),
    .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last), .m_axis_tuser(m_user), .dropped_o(dropped)
  );

  logic started_q = 1'b0, offered_q, lost_q = 1'b0;
  logic [145:0] beat_q;
  logic [2:0] calm_q = '0;
  logic push, pop;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_data, m_keep, m_last, m_user};
    lost_q    <= rst_ni && (lost_q || (pop && m_user));
    if (!rst_ni || push || pop || !s_valid_i || !m_ready_i) calm_q <= '0;
    else calm_q <= calm_q + 3'd1;
    assume (rst_ni == started_q);
    assume (s_last_i ? s_size_i != 0 && s_size_i <= 5'd16 : s_size_i == 5'd16);
    if (started_q && rst_ni) begin
      moves: assert (calm_q < 3'd7);
      held: assert (!offered_q || (m_valid && beat_q == {m_data, m_keep, m_last, m_user}));
    end
    if (started_q && rst_ni && m_valid) begin
      lost: assert (m_user == (m_keep == '0) && (!m_user || m_last));
      gaps: assert ((m_keep & (m_keep + 16'd1)) == '0);
    end
    used: cover (lost_q && m_valid && m_last && !m_user);
  end

endmodule
