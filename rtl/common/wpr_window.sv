// SPDX-License-Identifier: Apache-2.0
// The first two words of a stream, for a reader that needs both before it takes the first. A word a
// clock; latency 1 clock. s_ready_o comes from a register, whatever pop_i waits for.
module wpr_window #(
  parameter int unsigned Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,    // synchronous
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [Width-1:0] s_data_i,
  output logic             first_valid_o,
  output logic [Width-1:0] first_o,
  output logic             second_valid_o,
  output logic [Width-1:0] second_o,
  input  logic             pop_i           // takes the first word, if there is one
);

  logic v0_q, v1_q, v2_q, come;
  logic [Width-1:0] word0_q, word1_q, word2_q;
  assign s_ready_o      = !v2_q;
  assign come           = s_valid_i && !v2_q;
  assign first_valid_o  = v0_q;
  assign first_o        = word0_q;
  assign second_valid_o = v1_q;
  assign second_o       = word1_q;

  always_ff @(posedge clk_i) begin
    if (pop_i) begin
      word0_q <= v1_q ? word1_q : s_data_i;
      word1_q <= v2_q ? word2_q : s_data_i;
      v0_q    <= v1_q || come;
      v1_q    <= v2_q || (v1_q && come);
      v2_q    <= 1'b0;
    end else begin
      if (!v0_q) word0_q <= s_data_i;
      if (!v1_q) word1_q <= s_data_i;
      v0_q <= v0_q || come;
      v1_q <= v1_q || (v0_q && come);
      v2_q <= v2_q || (v1_q && come);
    end
    if (!v2_q) word2_q <= s_data_i;
    if (!rst_ni) {v0_q, v1_q, v2_q} <= '0;
  end

endmodule
