// SPDX-License-Identifier: Apache-2.0
// wpr_packet_fifo: any one word, chosen by pick_i, leaves behind exactly the words of whole packets
// that were before it, or never if its packet is dropped; no word leaves before its packet is
// whole.
module wpr_packet_fifo_props #(
  parameter int unsigned LogPackets = 2
) (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [1:0] s_data_i,
  input logic       s_last_i,
  input logic       s_drop_i,
  input logic       m_ready_i,
  input logic       pick_i
);

  logic s_ready, m_valid, m_first, m_last, dropped;
  logic [1:0] m_data;
  logic m_meta;
  wpr_packet_fifo #(
    .Width(2), .Meta(1), .LogDepth(2), .LogPackets(LogPackets),
    .RamStyle("distributed")  // which writes in more clocks
  ) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(s_ready),
    .s_data_i,
    .s_last_i,
    .s_drop_i,
    .s_meta_i (s_data_i[0]),  // of the last word: so it can be checked when that leaves
    .m_valid_o(m_valid),
    .m_ready_i,
    .m_data_o (m_data),
    .m_first_o(m_first),
    .m_last_o (m_last),
    .m_meta_o (m_meta),
    .dropped_o(dropped),
    .s_ample_o()
  );

  logic started_q = 1'b0, picked_q = 1'b0, whole_q, begins_q = 1'b1, offered_q;
  logic [1:0] word_q;
  logic [4:0] beat_q;
  logic [5:0] ahead_q, inside_q = '0, pending_q = '0;  // words of whole packets; of the one coming
  logic push, pop, over, keep;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  assign over = pending_q == 6'd4;  // five words and more are too many
  assign keep = push && s_last_i && !s_drop_i && !over;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_data, m_first, m_last, m_meta};
    if (rst_ni) begin
      inside_q  <= inside_q + (keep ? pending_q + 6'd1 : 6'd0) - 6'(pop);
      if (push) pending_q <= s_last_i ? '0 : over ? 6'd4 : pending_q + 6'd1;
      if (pop) begins_q <= m_last;
      if (pick_i && push && !picked_q && !over) begin
        picked_q <= !s_last_i || keep;
        whole_q  <= s_last_i;
        word_q   <= s_data_i;
        ahead_q  <= inside_q - 6'(pop) + pending_q;
      end else if (picked_q) begin
        if (push && s_last_i && !whole_q) begin
          whole_q  <= 1'b1;
          picked_q <= keep;
        end
        if (pop) begin
          if (ahead_q == 0) picked_q <= 1'b0;
          else ahead_q <= ahead_q - 6'd1;
        end
      end
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      told: assert (dropped == (push && s_last_i && !keep));
    end
    if (started_q && rst_ni && m_valid) begin
      counted: assert (inside_q != 0 && m_first == begins_q);
      known: assert (!m_last || m_meta == m_data[0]);
    end
    if (started_q && rst_ni && picked_q && m_valid && ahead_q == 0) begin
      order: assert (whole_q && m_data == word_q);
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_valid && beat_q == {m_data, m_first, m_last, m_meta});
    end
    used: cover (dropped && inside_q == 2);
  end

endmodule
