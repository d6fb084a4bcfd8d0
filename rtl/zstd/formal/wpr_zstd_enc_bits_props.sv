// SPDX-License-Identifier: Apache-2.0
// wpr_zstd_enc_bits: bit k of all that leave is bit k of all that came, whichever it is (k_i), in row
// k / 64; a row leaves two clocks behind the piece that fills it, or one behind flush_i. The bits of
// a piece are alike.
module wpr_zstd_enc_bits_props (
  input logic        clk_i,
  input logic [ 6:0] k_i,       // a bit, constant
  input logic        s_valid_i,
  input logic [ 5:0] s_n_i,
  input logic        s_bit_i,
  input logic        flush_i
);

  logic start, row_valid;
  logic [39:0] s_bits;
  assign s_bits = s_bit_i ? ~(40'hFFFFFFFFFF << s_n_i) : '0;
  logic [63:0] row;
  logic [19:0] n;
  wpr_zstd_enc_bits #(.Most(40)) dut (
    .clk_i,
    .start_i  (start),
    .s_valid_i,
    .s_n_i,
    .s_bits_i (s_bits),
    .flush_i,
    .m_valid_o(row_valid),
    .m_row_o  (row),
    .n_o      (n)
  );

  logic [1:0] started_q = '0;
  logic [6:0] k_q;
  logic [8:0] in_q = '0;
  logic [2:0] rows_q = '0, quiet_q = '0;
  logic bit_q, flushed_q = 1'b0, flushed1_q = 1'b0, flushed2_q = 1'b0;
  assign start = started_q != 2'b11;
  always_ff @(posedge clk_i) begin
    started_q <= {started_q[0], 1'b1};
    k_q <= k_i;
    if (!start && s_valid_i) begin
      in_q <= in_q + 9'(s_n_i);
      if (9'(k_i) >= in_q && 9'(k_i) < in_q + 9'(s_n_i)) bit_q <= s_bit_i;
    end
    quiet_q <= s_valid_i ? '0 : quiet_q == 3'd7 ? 3'd7 : quiet_q + 3'd1;
    if (flush_i) flushed_q <= 1'b1;
    {flushed2_q, flushed1_q} <= {flushed1_q, flushed_q};
    if (!start && row_valid) rows_q <= rows_q + 3'd1;
    assume (s_n_i <= 6'd40);
    assume (!start || (!s_valid_i && !flush_i));
    assume (!s_valid_i || !flushed_q);
    assume (!flush_i || (!s_valid_i && quiet_q >= 3'd2 && !flushed_q));
    assume (in_q <= 9'd200);
    if (!start) assume (k_i == k_q);
    if (started_q == 2'b11) begin
      count: assert (n == 20'(in_q));
      same: assert (!(row_valid && rows_q == 3'(k_i[6]) && 9'(k_i) < in_q) ||
                    row[k_i[5:0]] == bit_q);
      all: assert (!flushed2_q || 9'({rows_q, 6'd0}) >= in_q);
    end
    used: cover (row_valid && rows_q == 3'd1 && !flushed_q);
  end

endmodule
