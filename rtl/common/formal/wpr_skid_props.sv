// SPDX-License-Identifier: Apache-2.0
// wpr_skid against a queue of two words.
module wpr_skid_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_data_i,
  input logic       m_ready_i
);

  logic s_ready, m_valid;
  logic [3:0] m_data;
  wpr_skid #(.Width(4)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(s_ready),
    .s_data_i,
    .m_valid_o(m_valid),
    .m_ready_i,
    .m_data_o(m_data)
  );

  logic started_q = 1'b0;
  logic [1:0] count_q = '0;
  logic [3:0] first_q, second_q;
  logic [1:0] kept;
  logic push, pop;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  assign kept = count_q - 2'(pop);

  logic m_valid_q, m_ready_q, filled_q = 1'b0;
  logic [3:0] m_data_q;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    m_valid_q <= m_valid && rst_ni;
    m_ready_q <= m_ready_i;
    m_data_q  <= m_data;
    if (!rst_ni) begin
      count_q <= '0;
    end else begin
      count_q <= kept + 2'(push);
      if (pop) first_q <= second_q;
      if (push && kept == 2'd0) first_q <= s_data_i;
      if (push && kept == 2'd1) second_q <= s_data_i;
      filled_q <= filled_q || count_q == 2'd2;
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      order: assert (m_valid == (count_q != 0) && (!m_valid || m_data == first_q));
      room: assert (s_ready == (count_q != 2));
      counted: assert (count_q == 2'(dut.out_valid_q) + 2'(dut.skid_valid_q) &&
                       (dut.out_valid_q || !dut.skid_valid_q));
      stored: assert (count_q != 2 || dut.skid_q == second_q);
    end
    if (started_q && rst_ni && count_q != 0) begin
      rate: assert (!m_ready_q || s_ready);
    end
    if (started_q && rst_ni && m_valid_q && !m_ready_q) begin
      held: assert (m_valid && m_data == m_data_q);
    end
    used: cover (filled_q && count_q == 0);
  end

endmodule
