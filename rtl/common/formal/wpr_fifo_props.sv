// SPDX-License-Identifier: Apache-2.0
// wpr_fifo, or wpr_ram_fifo, which has one word more outside its memory: any one word, chosen by
// pick_i, comes out behind exactly those that were before it; what is offered is held; a word that
// waits is offered at once, or in the clock after the way ahead opens.
module wpr_fifo_props #(
  parameter bit Ram = 1'b0
) (
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
  logic [1:0] write, read;
  logic [3:0][3:0] words;
  if (Ram) begin : g_ram
    wpr_ram_fifo #(.Width(4), .LogDepth(2)) dut (
      .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .m_valid_o(m_valid),
      .m_ready_i, .m_data_o(m_data), .level_o(level)
    );
    assign {write, read} = {dut.write_q, dut.read_q};
    always_comb for (int i = 0; i < 4; i++) words[i] = dut.words_q[i];
  end else begin : g_lut
    wpr_fifo #(.Width(4), .LogDepth(2)) dut (
      .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .m_valid_o(m_valid),
      .m_ready_i, .m_data_o(m_data), .level_o(level)
    );
    assign {write, read} = {dut.write_q, dut.read_q};
    always_comb for (int i = 0; i < 4; i++) words[i] = dut.words_q[i];
  end

  logic started_q = 1'b0, inside_q = 1'b0, filled_q = 1'b0, offered_q, due_q;
  logic [3:0] picked_q, data_q;
  logic [2:0] ahead_q, count_q;  // words before the picked one; words inside
  logic [2:0] behind_out;        // words before it in the memory
  logic push, pop, out;          // a word is outside the memory
  assign push       = s_valid_i && s_ready;
  assign pop        = m_valid && m_ready_i;
  assign out        = Ram && m_valid;
  assign behind_out = ahead_q - 3'(out);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    due_q     <= rst_ni && (m_ready_i || !m_valid) && level != '0;
    data_q    <= m_data;
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
      filled_q <= filled_q || count_q == 3'd4 + 3'(Ram);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      counted: assert (level + 3'(out) == count_q && level <= 3'd4);
      room: assert (s_ready == (level != 4));
      between: assert (2'(write - read) == level[1:0]);
      held: assert (!offered_q || (m_valid && m_data == data_q));
      prompt: assert (Ram ? !due_q || m_valid : m_valid == (count_q != 0));
    end
    if (started_q && rst_ni && inside_q) begin
      order: assert (!(m_valid && ahead_q == 0) || m_data == picked_q);
      if (!(out && ahead_q == 0)) begin
        place: assert (behind_out < level && words[2'(read + behind_out[1:0])] == picked_q);
      end
    end
    used: cover (filled_q && count_q == 0);
  end

endmodule
