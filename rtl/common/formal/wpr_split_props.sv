// SPDX-License-Identifier: Apache-2.0
// wpr_split: of any one packet, chosen by pick_i, pieces are its bits in order; one is called wrong
// when it lies behind the packet's end, or is the last and words are left, and only then (what follows a
// wrong one in its packet is not looked at). Sizes, ends and order are checked for all. It never
// hangs: while what leaves is taken, it takes a word or a size if both are offered, and a size in one of
// four clocks if its bits have come.
module wpr_split_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_data_i,
  input logic [2:0] s_size_i,
  input logic       s_last_i,
  input logic       c_valid_i,
  input logic [2:0] c_size_i,
  input logic       c_last_i,
  input logic       m_ready_i,
  input logic [1:0] pick_i
);

  logic s_ready, c_ready, m_valid, m_last, m_error;
  logic [3:0] m_data;
  logic [2:0] m_size;
  wpr_split #(.Lanes(4), .Unit(1)) dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .s_size_i, .s_last_i, .c_valid_i,
    .c_ready_o(c_ready), .c_size_i, .c_last_i, .m_valid_o(m_valid), .m_ready_i, .m_data_o(m_data),
    .m_size_o(m_size), .m_last_o(m_last), .m_error_o(m_error)
  );

  logic started_q = 1'b0, offered_q, used_q = 1'b0, crossed_q = 1'b0;
  logic [8:0] beat_q;
  logic [1:0] pick_q, in_q = '0, cut_q = '0;  // packets that have come; that were cut
  logic [31:0] bits_q = '0;                   // of the one picked
  logic [5:0] n_q = '0, at_q = '0, ends;      // its bits that have come; that were cut
  logic [3:0] words_q = '0, wanted;           // its words; those in which the pieces lie
  logic [1:0] due_q = '0;
  logic ended_q = 1'b0, wrong_q = 1'b0, push, issue, pop, ours, wrong;
  assign push   = s_valid_i && s_ready;
  assign issue  = c_valid_i && c_ready;
  assign pop    = m_valid && m_ready_i;
  assign ours   = cut_q == pick_i;
  assign ends   = at_q + 6'(c_size_i);
  // An empty piece between two words lies in the second one.
  assign wanted = ends[1:0] != '0 || (c_size_i == 0 && !(ended_q && words_q == ends[5:2] && ends != 0))
                ? ends[5:2] + 4'd1 : ends[5:2];
  assign wrong  = ends > n_q || (c_last_i && !(ended_q && words_q == wanted));

  // Pieces on their way: what is known of each, its bits and whether it is wrong.
  logic [3:0][3:0] size_q;  // last, size
  logic [3:0][3:0] data_q;
  logic [3:0] checked_q, bad_q;
  logic [2:0] inside_q = '0, place;
  assign place = inside_q - 3'(pop);
  logic [3:0] mask;
  always_comb for (int i = 0; i < 4; i++) mask[i] = 3'(i) < c_size_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    pick_q    <= pick_i;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_data, m_size, m_last, m_error};
    if (rst_ni) begin
      if (push && in_q == pick_i) begin
        bits_q  <= bits_q | 32'(s_data_i) << n_q;
        n_q     <= n_q + (s_last_i ? 6'(s_size_i) : 6'd4);
        words_q <= words_q + 4'd1;
        ended_q <= s_last_i;
      end
      if (push && s_last_i) in_q <= in_q + 2'd1;
      if (issue && c_last_i) cut_q <= cut_q + 2'd1;
      if (pop) {size_q, data_q, checked_q, bad_q} <= {4'd0, size_q[3:1], 4'd0, data_q[3:1],
                                                      1'b0, checked_q[3:1], 1'b0, bad_q[3:1]};
      if (issue) begin
        size_q[2'(place)]    <= {c_last_i, c_size_i};
        data_q[2'(place)]    <= 4'(bits_q >> at_q) & mask;
        checked_q[2'(place)] <= ours && !wrong_q;
        bad_q[2'(place)]     <= wrong;
        if (ours) begin
          at_q    <= ends;
          wrong_q <= wrong_q || wrong;
          crossed_q <= crossed_q || (!wrong && at_q[1:0] != 0 && ends > 6'd4 && at_q < 6'd4);
        end
      end
      inside_q <= place + 3'(issue);
      used_q   <= used_q || (pop && checked_q[0] && m_last && !m_error && crossed_q);
    end
    if (!rst_ni || !c_valid_i || c_ready || !m_ready_i || !ours || ends > n_q || at_q == n_q) due_q <= '0;
    else if (due_q != 2'd3) due_q <= due_q + 2'd1;
    assume (rst_ni == started_q);
    assume (!started_q || pick_i == pick_q);
    assume (s_size_i <= 3'd4 && c_size_i <= 3'd4 && (s_data_i >> (s_last_i ? s_size_i : 3'd4)) == 0);
    assume (in_q != 2'd3 && cut_q != 2'd3);
    if (started_q && rst_ni) begin
      held: assert (!offered_q || (m_valid && beat_q == {m_data, m_size, m_last, m_error}));
      moves: assert (!s_valid_i || !c_valid_i || !m_ready_i || s_ready || c_ready);
      prompt: assert (due_q != 2'd3 || c_ready);
      room: assert (!issue || place != 3'd4);
    end
    if (started_q && rst_ni && m_valid) begin
      counted: assert (inside_q != 0 && {m_last, m_size} == size_q[0]);
      errors: assert (!checked_q[0] || m_error == bad_q[0]);
      bits: assert (!checked_q[0] || bad_q[0] || m_data == data_q[0]);
    end
    used: cover (used_q);
  end

endmodule
