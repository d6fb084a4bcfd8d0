// SPDX-License-Identifier: Apache-2.0
// How often each of 64 codes came: a code a clock. Reading a code's number sets it to 0; not while
// codes come.
module wpr_zstd_enc_tally (
  input  logic        clk_i,
  input  logic        s_valid_i,
  input  logic [ 5:0] s_code_i,
  input  logic        read_i,
  input  logic [ 5:0] code_i,
  output logic [13:0] n_o        // of the code a clock ago
);

  (* ram_style = "distributed" *) logic [13:0] counts_q[64];
  logic [5:0] at;
  logic [13:0] now;
  assign at  = read_i ? code_i : s_code_i;
  assign now = counts_q[at];
  always_ff @(posedge clk_i) begin
    n_o <= now;
    if (read_i || s_valid_i) counts_q[at] <= read_i ? '0 : now + 14'd1;
  end

endmodule
