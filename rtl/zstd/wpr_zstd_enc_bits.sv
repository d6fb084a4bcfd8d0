// SPDX-License-Identifier: Apache-2.0
// Pieces of a bit stream to rows of 64 bits, a piece a clock. Bits of a piece beyond its size are
// 0. A row leaves two clocks behind the piece that fills it. flush_i, in a clock without a piece
// and three clocks behind the last one, gives the row that is not full.
module wpr_zstd_enc_bits #(
  parameter int unsigned Most = 16,  // bits of a piece; 64 at most
  localparam int unsigned SizeWidth = $clog2(Most + 1)
) (
  input  logic                 clk_i,
  input  logic                 start_i,    // a stream begins
  input  logic                 s_valid_i,
  input  logic [SizeWidth-1:0] s_n_i,
  input  logic [     Most-1:0] s_bits_i,
  input  logic                 flush_i,
  output logic                 m_valid_o,
  output logic [         63:0] m_row_o,
  output logic [         19:0] n_o         // bits until now
);

  localparam int unsigned Width = 63 + Most;
  logic v1_q, full1_q;
  logic [Width-1:0] bits1_q, sum;
  logic [63:0] left_q;
  logic full;
  assign full = 7'(n_o[5:0]) + 7'(s_n_i) >= 7'd64;
  assign sum = Width'(left_q) | bits1_q;
  always_ff @(posedge clk_i) begin
    v1_q      <= s_valid_i;
    m_valid_o <= 1'b0;
    bits1_q   <= Width'(s_bits_i) << n_o[5:0];
    full1_q   <= full;
    if (s_valid_i) n_o <= n_o + 20'(s_n_i);
    if (v1_q) begin
      m_row_o   <= sum[63:0];
      m_valid_o <= full1_q;
      left_q    <= full1_q ? 64'(sum[Width-1:64]) : sum[63:0];
    end
    if (flush_i) begin
      m_row_o   <= left_q;
      m_valid_o <= n_o[5:0] != '0;
    end
    if (start_i) begin
      n_o    <= '0;
      left_q <= '0;
      v1_q   <= 1'b0;
    end
  end

endmodule
