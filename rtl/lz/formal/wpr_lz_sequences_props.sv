// SPDX-License-Identifier: Apache-2.0
// wpr_lz_sequences: the sequences of a packet, the first one, have all its bytes, its last one is
// the only one without a match, and literal k of all that leave is the one that came as such,
// whichever it is (k_i). Bytes are 0 or 255.
module wpr_lz_sequences_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [3:0] k_i,        // a literal, constant
  input logic       s_valid_i,
  input logic       s_last_i,
  input logic [3:0] s_n_i,
  input logic [7:0] s_bits_i,
  input logic [3:0] s_run_i,
  input logic       s_start_i,
  input logic [2:0] s_at_i,
  input logic [3:0] s_end_i,
  input logic [3:0] want_i,
  input logic       take_i,
  input logic       m_ready_i
);

  logic [7:0][7:0] in, out;
  always_comb for (int i = 0; i < 8; i++) in[i] = {8{s_bits_i[i]}};
  logic m_valid, m_last, have, taken, first_q = 1'b1;
  assign taken = take_i && have;
  logic [22:0] n_literals, n_match;
  wpr_lz_sequences #(.LogLiterals(8)) dut (
    .clk_i,
    .rst_ni,
    .room_o        (),
    .s_valid_i,
    .s_first_i     (first_q),
    .s_last_i,
    .s_n_i,
    .s_left_i      (23'd0),
    .s_bytes_i     (in),
    .s_run_i,
    .s_start_i,
    .s_at_i,
    .s_end_i,
    .s_offset_i    (16'd9),
    .m_valid_o     (m_valid),
    .m_ready_i,
    .m_first_o     (),
    .m_last_o      (m_last),
    .m_n_literals_o(n_literals),
    .m_n_match_o   (n_match),
    .m_offset_o    (),
    .want_i,
    .have_o        (have),
    .take_i        (taken),
    .bytes_o       (out)
  );

  logic started_q = 1'b0, open_q = 1'b0, ended_q = 1'b0, all_q = 1'b0;
  logic [3:0] k_q;
  logic [6:0] bytes_q = '0, came_q = '0, gone_q = '0, left_q = '0;
  logic [8:0][6:0] came;  // literals, with those of this window before byte i
  logic [7:0] k_byte_q;
  logic [7:0] is_literal;
  logic [3:0][6:0] gone_before_q;
  logic [3:0][3:0] n_before_q = '0;
  always_comb begin
    came[0] = came_q;
    for (int i = 0; i < 8; i++) begin
      is_literal[i] = 4'(i) < s_n_i && 4'(i) >= s_run_i &&
                      !(s_start_i && 4'(i) >= 4'(s_at_i) && 4'(i) < s_end_i);
      came[i+1] = came[i] + 7'(is_literal[i]);
    end
  end
  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    k_q           <= k_i;
    ended_q       <= rst_ni && (ended_q || (s_valid_i && s_last_i));
    gone_before_q <= {gone_before_q[2:0], gone_q};
    n_before_q    <= {n_before_q[2:0], rst_ni && taken ? want_i : 4'd0};
    if (rst_ni && s_valid_i) begin
      for (int i = 0; i < 8; i++) begin
        if (is_literal[i] && came[i] == 7'(k_i)) k_byte_q <= in[i];
      end
      came_q  <= came[8];
      bytes_q <= bytes_q + 7'(s_n_i);
      first_q <= s_last_i;
      open_q  <= (s_run_i == 4'd8 && open_q) || (s_start_i && s_end_i == 4'd8);
    end
    if (rst_ni && taken) gone_q <= gone_q + 7'(want_i);
    if (rst_ni && m_valid && m_ready_i) begin
      left_q <= left_q + n_literals[6:0] + n_match[6:0];
      all_q  <= m_last;
    end
    assume (rst_ni == started_q);
    if (started_q) assume (k_i == k_q);
    assume (want_i <= 4'd8);
    // What wpr_lz_match says of a window; of one packet.
    assume (!(ended_q && s_valid_i));
    assume (s_n_i <= 4'd8 && (s_last_i || s_n_i == 4'd8) && s_run_i <= s_n_i);
    assume (open_q || s_run_i == '0);
    assume (!s_last_i || (!s_start_i && s_run_i < 4'd8));
    assume (!s_start_i || (s_run_i < 4'd8 && 4'(s_at_i) >= s_run_i && s_end_i > 4'(s_at_i) &&
                           s_end_i <= 4'd8));
    if (started_q && rst_ni) begin
      closes: assert (!m_valid || m_last == (n_match == '0));
      sum: assert (!(m_valid && m_last) ||
                   left_q + n_literals[6:0] + n_match[6:0] == bytes_q);
      same: assert (!(7'(k_i) >= gone_before_q[3] &&
                      7'(k_i) < gone_before_q[3] + 7'(n_before_q[3])) ||
                    out[3'(7'(k_i) - gone_before_q[3])] == k_byte_q);
      no_more: assert (gone_q <= came_q);
    end
    matched: cover (all_q && left_q > 7'd20 && gone_q > 7'd4);
  end

endmodule
