// SPDX-License-Identifier: Apache-2.0
// wpr_fifo: any one word, chosen by pick_i, comes out behind exactly those that were before it.
module wpr_fifo_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_data_i,
  input logic       m_ready_i,
  input logic       pick_i
);

  logic s_ready, m_valid;
  logic [3:0] m_data;
  logic [2:0] level;
  wpr_fifo #(.Width(4), .LogDepth(2)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(s_ready),
    .s_data_i,
    .m_valid_o(m_valid),
    .m_ready_i,
    .m_data_o(m_data),
    .level_o(level)
  );

  logic started_q = 1'b0, inside_q = 1'b0, filled_q = 1'b0;
  logic [3:0] picked_q;
  logic [2:0] ahead_q, count_q;  // words before the picked one; words inside
  logic push, pop;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni) begin
      count_q  <= '0;
      inside_q <= 1'b0;
    end else begin
      count_q <= count_q + 3'(push) - 3'(pop);
      if (pick_i && push && !inside_q) begin
        inside_q <= 1'b1;
        picked_q <= s_data_i;
        ahead_q  <= count_q - 3'(pop);
      end else if (inside_q && pop) begin
        if (ahead_q == 0) inside_q <= 1'b0;
        else ahead_q <= ahead_q - 3'd1;
      end
      filled_q <= filled_q || level == 3'd4;
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      counted: assert (level == count_q && count_q <= 3'd4);
      room: assert (s_ready == (count_q != 4) && m_valid == (count_q != 0));
      between: assert (2'(dut.write_q - dut.read_q) == level[1:0]);
    end
    if (started_q && rst_ni && inside_q) begin
      place: assert (ahead_q < count_q && dut.words_q[2'(dut.read_q + ahead_q[1:0])] == picked_q);
      order: assert (ahead_q != 0 || m_data == picked_q);
    end
    used: cover (filled_q && level == 0);
  end

endmodule
