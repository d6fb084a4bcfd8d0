// SPDX-License-Identifier: Apache-2.0
// wpr_prepend and wpr_behead behind each other: packets come out as they went in, with their
// headers beside them, however beats end and either side pauses. Without Overlap wpr_behead holds
// beats of one packet only. Each packet's first byte is its number here, which is also its header.
// While what leaves is taken, an offered beat is in within three clocks, so they never hang.
module wpr_header_props #(
  parameter bit Overlap = 1'b1  // of wpr_behead
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        h_valid_i,
  input logic        s_valid_i,
  input logic [31:0] s_data_i,
  input logic [ 2:0] s_size_i,
  input logic        s_last_i,
  input logic        m_ready_i
);

  logic h_ready, s_ready, p_valid, p_ready, p_last, m_valid, m_last, runt;
  logic [31:0] p_data, m_data;
  logic [3:0] s_keep, p_keep, m_keep;
  logic [7:0] header, number_q = '0;
  always_comb for (int i = 0; i < 4; i++) s_keep[i] = 3'(i) < s_size_i;

  wpr_prepend #(.Bytes(4), .Header(1)) prepend (
    .clk_i, .rst_ni, .h_valid_i, .h_ready_o(h_ready), .h_data_i(number_q),
    .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready), .s_axis_tdata(s_data_i),
    .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i),
    .m_axis_tvalid(p_valid), .m_axis_tready(p_ready), .m_axis_tdata(p_data),
    .m_axis_tkeep(p_keep), .m_axis_tlast(p_last)
  );
  wpr_behead #(.Bytes(4), .Header(1), .Overlap(Overlap)) behead (
    .clk_i, .rst_ni,
    .s_axis_tvalid(p_valid), .s_axis_tready(p_ready), .s_axis_tdata(p_data),
    .s_axis_tkeep(p_keep), .s_axis_tlast(p_last), .h_data_o(header),
    .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last), .runt_o(runt)
  );

  logic started_q = 1'b0, offered_q, begins_q = 1'b1, long_q = 1'b0;
  logic [36:0] beat_q, queue_q[3];
  logic [7:0] out_q = '0;
  logic [1:0] n_q = '0, ended_q = '0;  // ended: packets whole in wpr_behead
  logic push, pop, waits_q, h_waits_q;  // offered, and not taken: who offers must go on
  logic [35:0] s_beat_q;
  logic [31:0] bits;
  logic [1:0] calm_q = '0;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  always_comb for (int i = 0; i < 4; i++) bits[8*i+:8] = {8{m_keep[i]}} & m_data[8*i+:8];

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {bits, m_keep, m_last};
    waits_q   <= s_valid_i && !s_ready;
    h_waits_q <= h_valid_i && !h_ready;
    s_beat_q  <= {s_data_i, s_size_i, s_last_i};
    if (rst_ni) begin
      if (h_ready) number_q <= number_q + 8'd1;
      if (push) begins_q <= s_last_i;
      if (pop && m_last) out_q <= out_q + 8'd1;
      if (pop) for (int i = 0; i < 2; i++) queue_q[i] <= queue_q[i+1];
      if (push) queue_q[n_q-2'(pop)] <= {s_data_i, s_keep, s_last_i};
      n_q <= n_q + 2'(push) - 2'(pop);
      ended_q <= ended_q + 2'(p_valid && p_ready && p_last) - 2'(pop && m_last);
      long_q <= long_q || (pop && !m_last);
    end
    if (!rst_ni || s_ready || !s_valid_i || !h_valid_i || !m_ready_i) calm_q <= '0;
    else calm_q <= calm_q + 2'd1;
    assume (rst_ni == started_q);
    assume (s_last_i ? s_size_i != 0 && s_size_i <= 3'd4 : s_size_i == 3'd4);
    assume (!started_q || !waits_q || (s_valid_i && s_beat_q == {s_data_i, s_size_i, s_last_i}));
    assume (!started_q || !h_waits_q || h_valid_i);
    for (int i = 0; i < 4; i++) assume (s_keep[i] || s_data_i[8*i+:8] == 8'd0);
    if (started_q && rst_ni) begin
      room: assert (n_q <= 2'd2 && !runt);
      moves: assert (calm_q != 2'd3);
      apart: assert (Overlap || !p_valid || !p_ready || ended_q == '0);
    end
    if (started_q && rst_ni && m_valid) begin
      bytes: assert (n_q != 0 && {bits, m_keep, m_last} == queue_q[0]);
      headers: assert (header == out_q);
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_valid && beat_q == {bits, m_keep, m_last});
    end
    used: cover (long_q && out_q == 8'd1 && m_valid && m_keep == 4'h7);
  end

endmodule
