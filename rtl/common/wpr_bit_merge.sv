// SPDX-License-Identifier: Apache-2.0
// Two pieces of a bit stream into one, b behind a: a node of the tree that joins the codes of lanes
// before wpr_pack. Latency 1 clock, one pair a clock.
//
// Bits of a and b beyond their sizes must be 0. Does not cut: the result has twice the width.
module wpr_bit_merge #(
  parameter int unsigned Width = 32,
  localparam int unsigned SizeBits = $clog2(Width + 1)
) (
  input  logic                clk_i,
  input  logic                rst_ni,     // synchronous
  input  logic                s_valid_i,
  output logic                s_ready_o,
  input  logic [   Width-1:0] s_a_i,
  input  logic [SizeBits-1:0] s_a_size_i, // bits, 0 to Width
  input  logic [   Width-1:0] s_b_i,
  input  logic [SizeBits-1:0] s_b_size_i,
  output logic                m_valid_o,
  input  logic                m_ready_i,
  output logic [ 2*Width-1:0] m_data_o,
  output logic [  SizeBits:0] m_size_o
);

  assign s_ready_o = m_ready_i || !m_valid_o;

  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      m_valid_o <= s_valid_i;
      m_data_o  <= (2 * Width)'(s_a_i) | (2 * Width)'(s_b_i) << s_a_size_i;
      m_size_o  <= (SizeBits + 1)'(s_a_size_i) + (SizeBits + 1)'(s_b_size_i);
    end
    if (!rst_ni) m_valid_o <= 1'b0;
  end

endmodule
