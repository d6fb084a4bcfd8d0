// SPDX-License-Identifier: Apache-2.0
// wpr_pack against a queue of bits: what leaves is what came in, in order and without gaps, and as
// many packets leave as came in.
module wpr_pack_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_valid_i,
  input logic [3:0] s_data_i,
  input logic [2:0] s_size_i,
  input logic       s_last_i,
  input logic       m_ready_i
);

  logic s_ready, m_valid, m_last;
  logic [3:0] m_data;
  logic [2:0] m_size;
  wpr_pack #(.Lanes(4), .Unit(1)) dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o(s_ready), .s_data_i, .s_size_i, .s_last_i,
    .m_valid_o(m_valid), .m_ready_i, .m_data_o(m_data), .m_size_o(m_size), .m_last_o(m_last)
  );

  logic started_q = 1'b0, offered_q, full_q = 1'b0;
  logic [7:0] beat_q;
  logic [31:0] bits_q = '0;
  logic [5:0] n_q = '0, kept;
  logic [3:0] packets_q = '0;
  logic push, pop;
  logic [3:0] some, size;
  assign push = s_valid_i && s_ready;
  assign pop  = m_valid && m_ready_i;
  assign size = {1'b0, m_size};
  assign kept = n_q - (pop ? 6'(m_size) : 6'd0);
  always_comb for (int i = 0; i < 4; i++) some[i] = 4'(i) < size;

  // Bits of a packet that is not whole yet are inside.
  logic behind_q = 1'b0;
  always_ff @(posedge clk_i) if (rst_ni && push) behind_q <= !s_last_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_valid && !m_ready_i;
    beat_q    <= {m_data, m_size, m_last};
    if (rst_ni) begin
      bits_q    <= (pop ? bits_q >> m_size : bits_q) | (push ? 32'(s_data_i) << kept : 32'd0);
      n_q       <= kept + (push ? 6'(s_size_i) : 6'd0);
      packets_q <= packets_q + 4'(push && s_last_i) - 4'(pop && m_last);
      full_q     <= full_q || (pop && !m_last);
    end
    assume (rst_ni == started_q);
    assume (s_size_i <= 3'd4 && (s_data_i >> s_size_i) == 4'd0);
    if (started_q && rst_ni && m_valid) begin
      bits: assert (6'(m_size) <= n_q && m_data == (bits_q[3:0] & some));
      whole: assert (m_last || m_size == 3'd4);
      packets: assert (!m_last || packets_q != 0);
      // nothing of a packet is left behind its last word, if no other came
      ends: assert (!m_last || packets_q != 1 || n_q == 6'(m_size) || behind_q);
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_valid && beat_q == {m_data, m_size, m_last});
    end
    spilled: cover (m_valid && m_last && m_size == 3'd1 && full_q);
  end

endmodule
