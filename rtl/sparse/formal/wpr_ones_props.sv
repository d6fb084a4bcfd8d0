// SPDX-License-Identifier: Apache-2.0
// wpr_ones: the numbers of all ones leave, of a word from the lowest on, with their word's tag;
// what is offered is held; none_o says that nothing is left to leave.
module wpr_ones_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_bits_i,
  input logic       s_tag_i,
  input logic       m_ready_i
);

  logic s_ready, m_valid, m_tag, none;
  logic [1:0] m_one;
  wpr_ones #(.Bits(4), .Tag(1)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(s_ready),
    .s_bits_i,
    .s_tag_i,
    .m_valid_o(m_valid),
    .m_ready_i,
    .m_one_o  (m_one),
    .m_tag_o  (m_tag),
    .none_o   (none)
  );

  // Up to three words that have ones, the first one without those that have left.
  logic started_q = 1'b0, offered_q, full_q = 1'b0;
  logic [2:0] beat_q;
  logic [2:0][3:0] words_q;
  logic [2:0] tags_q;
  logic [1:0] count_q, at;
  logic push, pop, shift;
  logic [3:0] rest;
  assign push  = s_valid_i && s_ready && s_bits_i != '0;
  assign pop   = m_valid && m_ready_i;
  assign rest  = words_q[0] & (words_q[0] - 4'd1);
  assign shift = pop && rest == '0;
  assign at    = count_q - 2'(shift);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_one, m_tag};
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      if (shift) {words_q, tags_q} <= {4'd0, words_q[2:1], 1'b0, tags_q[2:1]};
      else if (pop) words_q[0] <= rest;
      if (push) begin
        words_q[at] <= s_bits_i;
        tags_q[at]  <= s_tag_i;
      end
      count_q <= at + 2'(push);
      full_q  <= full_q || (push && s_bits_i == '1);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      held: assert (!offered_q || (m_valid && {m_one, m_tag} == beat_q));
      known: assert (!m_valid || count_q != '0);
      lowest: assert (!m_valid || (words_q[0][m_one] && (words_q[0] & ~(4'hF << m_one)) == '0));
      own_tag: assert (!m_valid || m_tag == tags_q[0]);
      all_left: assert (!none || count_q == '0);
      room: assert (!push || at != 2'd3);
    end
    used: cover (full_q && none);
  end

endmodule
