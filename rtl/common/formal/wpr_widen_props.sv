// SPDX-License-Identifier: Apache-2.0
// wpr_widen against a beat that is filled: it leaves when it is full or its packet ends, with what
// came in since the one before it, and is held until it is taken.
module wpr_widen_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        s_valid_i,
  input logic [15:0] s_data_i,
  input logic        s_half_i,
  input logic        s_last_i,
  input logic        s_user_i,
  input logic        m_ready_i
);

  logic s_ready, m_valid, m_last, m_user;
  logic [1:0] s_keep;
  logic [63:0] m_data;
  logic [7:0] m_keep;
  assign s_keep = s_half_i ? 2'b01 : 2'b11;
  wpr_widen #(.Wide(8), .Narrow(2), .User(1)) dut (
    .clk_i, .rst_ni, .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready), .s_axis_tdata(s_data_i),
    .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i), .s_axis_tuser(s_user_i),
    .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last), .m_axis_tuser(m_user)
  );

  logic started_q = 1'b0, full_q = 1'b0, last_q, user_q, ended_q = 1'b0;
  logic [3:0][15:0] parts_q;
  logic [2:0] n_q = '0, n;  // parts in it, of which the last one is half
  logic half_q, push, pop, whole;
  logic [7:0] keep;
  assign push  = s_valid_i && s_ready;
  assign pop   = m_valid && m_ready_i;
  assign n     = full_q ? '0 : n_q;
  assign whole = s_last_i || n == 3'd3;
  assign keep  = ~(8'hFF << {n_q, 1'b0}) >> (full_q && half_q);
  logic [3:0] same;
  always_comb begin
    for (int i = 0; i < 4; i++) same[i] = 3'(i) >= n_q || m_data[16*i+:16] == parts_q[i];
  end
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni) begin
      n_q    <= '0;
      full_q <= 1'b0;
    end else if (push) begin
      parts_q[2'(n)] <= s_data_i;
      n_q            <= n + 3'd1;
      full_q         <= whole;
      {half_q, last_q, user_q} <= {s_half_i, s_last_i, s_user_i};
    end else if (pop) begin
      n_q    <= '0;
      full_q <= 1'b0;
    end
    ended_q <= rst_ni && (ended_q || (pop && m_last && m_keep == 8'h1F));
    assume (rst_ni == started_q);
    assume (s_last_i || !s_half_i);
    if (started_q && rst_ni) begin
      offered: assert (m_valid == full_q);
      room: assert (s_ready == (!full_q || m_ready_i));
      count: assert (n_q <= 3'd4 && dut.part_q == 2'(n) && (full_q || n_q < 3'd4));
      stored: assert (same == '1);
      kept: assert (n_q == 0 || m_keep == keep);
    end
    if (started_q && rst_ni && m_valid) begin
      bytes: assert (n_q != 0 && m_keep == keep && m_last == last_q && m_user == user_q);
    end
    used: cover (ended_q && m_valid && m_keep == 8'hFF);
  end

endmodule
