// SPDX-License-Identifier: Apache-2.0
// One FSE state of an encoder with a constant table: a code in, the bits of its step out two clocks
// later. The first code chooses the state, and gives no bits. A code in every other clock at most.
module wpr_zstd_enc_fse
  import wpr_zstd_enc_pkg::*;
#(
  parameter int Kind = Literal,
  parameter int Log  = 6         // accuracy
) (
  input  logic       clk_i,
  input  logic       s_valid_i,
  input  logic       s_first_i,
  input  logic [5:0] s_code_i,
  output logic [2:0] m_n_o,     // bits, of the code two clocks ago
  output logic [5:0] m_bits_o,  // those beyond are 0
  output logic [5:0] state_o    // after it, three clocks later
);

  localparam logic [63:0][5:0] States = states(Kind, Log);
  localparam step_t [63:0] Steps = steps(Kind, Log);

  // Both numbers of bits are tried at once: at the limit and above it `most`, else one less.
  step_t step_q;
  logic valid_q, first_q, placed_q, less;
  logic [5:0] place_q;
  logic [6:0] state;
  logic [5:0] place, place_most, place_less;
  logic [2:0] n, n_less;
  assign state      = 7'(1 << Log) | 7'(state_o);
  assign less       = {1'b0, state} < step_q.limit;
  assign n_less     = step_q.most - 3'd1;
  assign n          = less ? n_less : step_q.most;
  assign place_most = 6'(state >> step_q.most) + step_q.base;
  assign place_less = 6'(state >> n_less) + step_q.base;
  assign place      = first_q ? step_q.begins : less ? place_less : place_most;
  always_ff @(posedge clk_i) begin
    step_q  <= Steps[s_code_i];
    valid_q <= s_valid_i;
    first_q <= s_first_i;
    placed_q <= valid_q;
    place_q  <= place;
    if (placed_q) state_o <= States[place_q];
    if (valid_q) begin
      m_n_o    <= first_q ? '0 : n;
      m_bits_o <= first_q ? '0 : state_o & ~(6'h3f << n);
    end
  end

endmodule
