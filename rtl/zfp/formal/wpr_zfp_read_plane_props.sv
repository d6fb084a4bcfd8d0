// SPDX-License-Identifier: Apache-2.0
// wpr_zfp_read_plane: of any bits it reads a plane of four coefficients as codecs/zfp/spec.md (A
// cell, 3) says, bit after bit, also where the cell's code ends within the plane.
module wpr_zfp_read_plane_props (
  input logic       clk_i,
  input logic [7:0] code_i,
  input logic [2:0] n_i,    // of coefficients whose bits stand in the code as they are: 0 to 4
  input logic [3:0] end_i   // bits of the code
);

  // ---- as the specification has it --------------------------------------------------------------

  typedef enum logic [1:0] {Test, Value, Done} mode_t;
  mode_t mode;
  logic [7:0] code;
  logic [3:0] known, bits, reached, at, n;
  logic implied;
  always_comb begin
    code    = code_i & ~(8'hFF << end_i);
    n       = 4'(n_i);
    known   = ~(4'hF << n_i);
    bits    = code[3:0] & known;
    at      = n < end_i ? n : end_i;
    mode    = Test;
    implied = 1'b0;
    for (int i = 0; i < 9; i++) begin
      if (mode == Value && (n == 4'd3 || at == end_i)) begin
        bits[n[1:0]] = 1'b1;
        n            = n + 4'd1;
        mode         = Test;
        implied      = 1'b1;
      end
      if (mode == Test && (n == 4'd4 || at == end_i)) mode = Done;
      if (mode == Test) begin
        mode = code[at[2:0]] ? Value : Done;
        at   = at + 4'd1;
      end else if (mode == Value) begin
        bits[n[1:0]] = code[at[2:0]];
        mode         = code[at[2:0]] ? Test : Value;
        at           = at + 4'd1;
        n            = n + 4'd1;
      end
    end
    reached = ~(4'hF << n);
  end

  logic [15:0] dut_code;
  logic [4:0] dut_place;
  logic [3:0] dut_known, dut_bits;
  logic [2:0] dut_length;
  wpr_zfp_read_plane #(.Values(4), .CodeBits(16)) dut (
    .clk_i,
    .end_i   (5'(end_i)),
    .use_i   (1'b1),
    .code_i  (16'(code)),
    .place_i (5'd0),
    .length_i(3'd0),
    .known_i (known),
    .code_o  (dut_code),
    .place_o (dut_place),
    .length_o(dut_length),
    .known_o (dut_known),
    .bits_o  (dut_bits)
  );

  logic [5:0] started_q = '0;
  logic [5:0][3:0] bits_q;
  logic [3:0][3:0] reached_q, at_q;
  logic [5:0] implied_q;
  logic [3:0] end_q;
  always_ff @(posedge clk_i) begin
    started_q <= {started_q[4:0], 1'b1};
    bits_q    <= {bits_q[4:0], bits};
    implied_q <= {implied_q[4:0], implied};
    reached_q <= {reached_q[2:0], reached};
    at_q      <= {at_q[2:0], at};
    end_q     <= end_i;
    assume (n_i <= 3'd4);
    assume (end_i <= 4'd8);
    if (started_q[0]) assume (end_i == end_q);
    if (started_q[3]) begin
      begins_there: assert (dut_place == '0);
      same_length: assert (at_q[3] == end_i ? 4'(dut_length) >= end_i
                                            : 4'(dut_length) == at_q[3]);
      same_known: assert (at_q[3] == end_i || dut_known == reached_q[3]);
    end
    if (started_q[5]) same_bits: assert (dut_bits == bits_q[5]);
    no_bit: cover (started_q[5] && implied_q[5]);
  end

endmodule
