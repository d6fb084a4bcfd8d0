// SPDX-License-Identifier: Apache-2.0
// wpr_zstd_enc_tally: of any one code (code_i) it counts each that came since the number was read.
module wpr_zstd_enc_tally_props (
  input logic       clk_i,
  input logic [5:0] k_i,        // a code, constant
  input logic       s_valid_i,
  input logic [5:0] s_code_i,
  input logic       read_i,
  input logic [5:0] code_i
);

  logic [13:0] n;
  wpr_zstd_enc_tally dut (
    .clk_i,
    .s_valid_i,
    .s_code_i,
    .read_i,
    .code_i,
    .n_o(n)
  );

  logic started_q = 1'b0, known_q = 1'b0, read_q = 1'b0;
  logic [5:0] k_q;
  logic [13:0] count_q = '0, before_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    read_q    <= read_i && code_i == k_i && known_q;
    before_q  <= count_q;
    if (read_i && code_i == k_i) begin
      known_q <= 1'b1;
      count_q <= '0;
    end else if (!read_i && s_valid_i && s_code_i == k_i) begin
      count_q <= count_q + 14'd1;
    end
    assume (!(read_i && s_valid_i));
    if (started_q) begin
      assume (k_i == k_q);
      same: assert (!read_q || n == before_q);
    end
    used: cover (read_q && n == 14'd3);
  end

endmodule
