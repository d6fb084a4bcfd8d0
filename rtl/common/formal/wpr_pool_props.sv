// SPDX-License-Identifier: Apache-2.0
// wpr_pool with two engines that are queues and stop when they like: any one beat, chosen by
// pick_i, leaves behind exactly those that were before it.
module wpr_pool_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [1:0] s_data_i,
  input logic       s_last_i,
  input logic       m_ready_i,
  input logic [1:0] stop_i,
  input logic       pick_i
);

  logic s_ready, m_valid, m_last;
  logic [1:0] m_data, e_valid, e_ready, e_last, f_valid, f_ready, f_last;
  logic [1:0][1:0] e_data, f_data;
  wpr_pool #(.Engines(2), .In(2), .Out(2), .LogQueue(1), .LogInside(1)) dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .s_last_i,
    .m_valid_o(m_valid), .m_ready_i, .m_data_o(m_data), .m_last_o(m_last),
    .e_valid_o(e_valid), .e_ready_i(e_ready), .e_data_o(e_data), .e_last_o(e_last),
    .f_valid_i(f_valid), .f_ready_o(f_ready), .f_data_i(f_data), .f_last_i(f_last)
  );
  assign f_valid = e_valid & ~stop_i;
  assign e_ready = f_ready & ~stop_i;
  assign f_data  = e_data;
  assign f_last  = e_last;

  logic started_q = 1'b0, picked_q = 1'b0, offered_q;
  logic [2:0] beat_q, picked_beat_q;
  logic [5:0] ahead_q, inside_q = '0;
  logic [3:0] packets_q = '0;
  logic push, pop;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_data, m_last};
    if (rst_ni) begin
      inside_q  <= inside_q + 6'(push) - 6'(pop);
      packets_q <= packets_q + 4'(pop && m_last);
      if (pick_i && push && !picked_q) begin
        picked_q      <= 1'b1;
        picked_beat_q <= {s_data_i, s_last_i};
        ahead_q       <= inside_q - 6'(pop);
      end else if (picked_q && pop) begin
        if (ahead_q == 0) picked_q <= 1'b0;
        else ahead_q <= ahead_q - 6'd1;
      end
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni && m_valid) begin
      counted: assert (inside_q != 0);
      order: assert (!picked_q || ahead_q != 0 || picked_beat_q == {m_data, m_last});
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_valid && beat_q == {m_data, m_last});
    end
    two: cover (packets_q == 4'd2);
  end

endmodule
