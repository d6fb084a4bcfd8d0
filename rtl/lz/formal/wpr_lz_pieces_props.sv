// SPDX-License-Identifier: Apache-2.0
// wpr_lz_pieces: byte k of the code, whichever it is (k_i), is byte k of all pieces behind each other,
// of which the literals come four clocks later; a packet ends behind its last piece's last byte, and
// beats before it are whole. Bytes are 0 or 255.
module wpr_lz_pieces_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [4:0] k_i,            // a byte, constant
  input logic       s_valid_i,
  input logic [2:0] s_n_head_i,
  input logic [3:0] head_i,
  input logic [3:0] s_n_i,
  input logic [1:0] s_n_tail_i,
  input logic [2:0] tail_i,
  input logic       s_last_i,
  input logic [7:0] bytes_i,
  input logic       m_axis_tready
);

  logic [31:0] head;
  logic [23:0] tail;
  logic [63:0] bytes, data;
  logic [7:0] keep;
  logic room, m_valid, m_last;
  always_comb begin
    for (int i = 0; i < 4; i++) head[8*i+:8] = {8{head_i[i]}};
    for (int i = 0; i < 3; i++) tail[8*i+:8] = {8{tail_i[i]}};
    for (int i = 0; i < 8; i++) bytes[8*i+:8] = {8{bytes_i[i]}};
  end
  wpr_lz_pieces dut (
    .clk_i,
    .rst_ni,
    .room_o    (room),
    .s_valid_i (s_valid_i && room),
    .s_n_head_i,
    .s_head_i  (head),
    .s_n_i,
    .s_n_tail_i,
    .s_tail_i  (tail),
    .s_last_i,
    .bytes_i   (bytes),
    .m_axis_tvalid(m_valid),
    .m_axis_tready,
    .m_axis_tdata (data),
    .m_axis_tkeep (keep),
    .m_axis_tlast (m_last)
  );

  // Of bytes, more than a proof sees.
  typedef logic [8:0] count_t;
  logic started_q = 1'b0, ended_q = 1'b0;
  logic [4:0] k_q;
  count_t in_q = '0, out_q = '0, all, at, n_out;
  // Where byte k is among literals of a piece one to four clocks ago.
  logic [4:1] waits_q = '0;
  logic [4:1][2:0] literal_q;
  logic bit_q;
  assign all = count_t'(s_n_head_i) + count_t'(s_n_i) + count_t'(s_n_tail_i);
  assign at  = count_t'(k_i) - in_q;
  count_t at_literal, at_tail;
  assign at_literal = at - count_t'(s_n_head_i);
  assign at_tail    = at_literal - count_t'(s_n_i);
  always_comb begin
    n_out = '0;
    for (int i = 0; i < 8; i++) n_out += count_t'(keep[i]);
  end
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    waits_q   <= {waits_q[3:1], 1'b0};
    literal_q <= {literal_q[3:1], at_literal[2:0]};
    if (rst_ni && s_valid_i && room) begin
      in_q    <= in_q + all;
      ended_q <= ended_q || s_last_i;
      if (count_t'(k_i) >= in_q && at < all) begin
        if (at < count_t'(s_n_head_i)) bit_q <= head_i[at[1:0]];
        else if (at_literal < count_t'(s_n_i)) waits_q[1] <= 1'b1;
        else bit_q <= tail_i[at_tail[1:0]];
      end
    end
    if (waits_q[4]) bit_q <= bytes_i[literal_q[4]];
    if (rst_ni && m_valid && m_axis_tready) out_q <= out_q + n_out;
    assume (rst_ni == started_q);
    if (started_q) assume (k_i == k_q);
    assume (s_n_head_i <= 3'd4 && s_n_i <= 4'd8 && all != '0);
    assume ((tail_i >> s_n_tail_i) == '0);
    assume (!(ended_q && s_valid_i));
    if (started_q && rst_ni && m_valid) begin
      same: assert (!(count_t'(k_i) >= out_q && count_t'(k_i) < out_q + n_out) ||
                    data[{3'(count_t'(k_i)-out_q), 3'b0}+:8] == {8{bit_q}});
      known: assert (out_q + n_out <= in_q);
      whole: assert ((keep & (keep + 8'd1)) == '0 && keep[0] && (m_last || keep == '1));
      at_end: assert (!m_last || (ended_q && out_q + n_out == in_q));
    end
    last: cover (m_valid && m_last && out_q == 9'd8 && n_out == 9'd3);
  end

endmodule
