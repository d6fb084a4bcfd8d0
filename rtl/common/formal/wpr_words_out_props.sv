// SPDX-License-Identifier: Apache-2.0
// wpr_words_out: a beat has the words since the one before it, 16 or up to a packet's end; looked
// at is any one lane. Words say which of their packet they are here.
module wpr_words_out_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic       s_last_i,
  input logic       m_ready_i,
  input logic [3:0] lane_i
);

  logic s_ready, m_valid, m_last;
  logic [511:0] m_data;
  logic [63:0] m_keep;
  logic [4:0] number_q = '0, out_q = '0;  // words of this packet; of those that leave
  wpr_words_out dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i({number_q, 22'd0, number_q}),
    .s_last_i, .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last)
  );

  logic [3:0] lane_q;
  logic started_q = 1'b0, offered_q, push, pop, some_q = 1'b0;
  logic [36:0] beat_q;
  logic [4:0] since_q = '0;  // words that have not left
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  logic [3:0] keep;  // of the word at lane_i
  logic [31:0] word;
  logic [4:0] wanted;
  assign keep   = m_keep[4*lane_i+:4];
  assign word   = m_data[32*lane_i+:32];
  assign wanted = out_q + 5'(lane_i);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {word, keep, m_last};
    lane_q    <= lane_i;
    if (rst_ni) begin
      if (push) number_q <= s_last_i ? '0 : number_q + 5'd1;
      if (pop) out_q <= m_last ? '0 : out_q + 5'd16;
      since_q <= (pop ? '0 : since_q) + 5'(push);
      some_q  <= some_q || (pop && !m_last);
    end
    assume (rst_ni == started_q);
    assume (!started_q || lane_i == lane_q);
    if (started_q && rst_ni) begin
      held: assert (!offered_q || (m_valid && beat_q == {word, keep, m_last}));
      room: assert (s_ready == (!m_valid || m_ready_i));
      count: assert (since_q <= 5'd16 && (m_valid || since_q < 5'd16) &&
                     dut.widen.part_q == (m_valid ? '0 : since_q[3:0]) &&
                     number_q == (m_valid && m_last ? '0 : out_q + since_q));
    end
    if (started_q && rst_ni && since_q != 0) begin
      kept: assert (keep == {4{5'(lane_i) < since_q}});
      words: assert (5'(lane_i) >= since_q || word == {wanted, 22'd0, wanted});
    end
    if (started_q && rst_ni && m_valid) begin
      full: assert (since_q != 0 && (m_last || since_q == 5'd16));
    end
    used: cover (some_q && m_valid && m_last && since_q == 5'd2);
  end

endmodule
