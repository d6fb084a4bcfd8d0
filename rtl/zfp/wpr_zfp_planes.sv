// SPDX-License-Identifier: Apache-2.0
// The codes of all bit planes of a cell's coefficients, one behind the other
// (codecs/zfp/spec.md, A cell, 3). Latency 6 + log2(Values) clocks, one cell a clock.
//
// No plane waits for the one above: a plane's n is one more than the number of the last coefficient
// that has a 1 in a plane above it, which is an OR of many bits. A bound on the cell's size only
// cuts the code off.
module wpr_zfp_planes #(
  parameter int unsigned Values = 16,   // 4 or 16
  parameter int unsigned Most   = 247,  // bits of the code that are wanted
  localparam int unsigned Log = $clog2(Values),
  localparam int unsigned SizeBits = $clog2(33 * Values)
) (
  input  logic                    clk_i,
  input  logic [Values-1:0][31:0] coefficients_i,  // in the order of the code
  input  logic [         5:0]     planes_i,        // that are coded, 0 to 32: the uppermost ones
  output logic [    Most-1:0]     code_o,
  output logic [SizeBits-1:0]     size_o           // bits, also beyond Most
);

  // ---- 1: whether a coefficient, or one behind it, has a 1 in a plane ---------------------------

  // Ones spread to all numbers below: from the upper half of 2, 4, 8 ... numbers to the lower one.
  logic [Values-1:0][31:0] from, bits_q;
  logic [31:0][Values-1:0] from_q;  // by plane
  logic [31:0] use_q;
  always_comb begin
    from = coefficients_i;
    for (int s = 1; s < int'(Values); s *= 2) begin
      for (int i = 0; i < int'(Values); i++) if (i / s % 2 == 0) from[i] |= from[(i/s+1)*s];
    end
  end
  always_ff @(posedge clk_i) begin
    bits_q <= coefficients_i;
    for (int k = 0; k < 32; k++) begin
      for (int i = 0; i < int'(Values); i++) from_q[k][i] <= from[i][k];
      use_q[k] <= 6'(31 - k) < planes_i;
    end
  end

  // ---- 2: whether it has one in the planes above ------------------------------------------------

  logic [32:0][Values-1:0] known, known_q;  // by the planes from a number on
  logic [31:0][Values-1:0] bits2_q;
  logic [31:0] use2_q;
  always_comb begin
    known = {Values'(0), from_q};
    for (int s = 1; s < 32; s *= 2) begin
      for (int k = 0; k < 32; k++) if (k / s % 2 == 0) known[k] |= known[(k/s+1)*s];
    end
  end
  always_ff @(posedge clk_i) begin
    known_q <= known;
    use2_q  <= use_q;
    for (int k = 0; k < 32; k++) begin
      for (int i = 0; i < int'(Values); i++) bits2_q[k][i] <= bits_q[i][k] && use_q[k];
    end
  end

  // ---- the planes' codes, the uppermost one first -----------------------------------------------

  logic [31:0][2*Values-2:0] codes;
  logic [31:0][Log:0] sizes;
  for (genvar k = 0; k < 32; k++) begin : g_plane
    wpr_zfp_plane #(.Values(Values)) plane (
      .clk_i,
      .use_i    (use2_q[k]),
      .bits_i   (bits2_q[k]),
      .known_i  (known_q[k+1]),
      .reached_i(known_q[k]),
      .code_o   (codes[31-k]),
      .size_o   (sizes[31-k])
    );
  end
  wpr_zfp_join #(.Pieces(32), .Step(Values), .Extra(Values - 1), .Most(Most)) join_planes (
    .clk_i,
    .codes_i(codes),
    .sizes_i(sizes),
    .code_o,
    .size_o
  );

endmodule
