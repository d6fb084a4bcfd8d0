// SPDX-License-Identifier: Apache-2.0
// The codes of all bit planes of a cell's coefficients, one behind the other
// (codecs/zfp/spec.md, A cell, 3). Latency 2 + log2(Values) clocks and those of joining the planes
// (wpr_zfp_pkg), one cell a clock.
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

  // In three clocks, and by groups: else ones would be passed on from number to number, and from
  // plane to plane, to save logic.

  // ---- 1: whether a coefficient, or one behind it of its eight, has a 1 in a plane --------------

  localparam int unsigned Eight = Values > 8 ? 8 : Values;
  logic [31:0][Values-1:0] bits, from_eight, from_eight_q;  // by plane
  logic [31:0] use_q;
  always_comb begin
    for (int k = 0; k < 32; k++) begin
      for (int i = 0; i < int'(Values); i++) bits[k][i] = coefficients_i[i][k];
    end
    from_eight = bits;
    for (int k = 0; k < 32; k++) begin
      for (int i = int'(Values) - 2; i >= 0; i--) begin
        if ((i + 1) % int'(Eight) != 0) from_eight[k][i] |= from_eight[k][i+1];
      end
    end
  end
  always_ff @(posedge clk_i) begin
    from_eight_q <= from_eight;
    for (int k = 0; k < 32; k++) use_q[k] <= 6'(31 - k) < planes_i;
  end

  // ---- 2: of all behind it, in the plane or those above it of its four; 3: in all above ---------

  logic [31:0][Values-1:0] from, from_four, from_four_q, known;
  logic [32:0][Values-1:0] known_q;  // by the planes from a number on
  logic [2:0][31:0][Values-1:0] bits_q;
  logic [1:0][31:0] later_use_q;
  always_comb begin
    from = from_eight_q;
    for (int k = 0; k < 32; k++) begin
      for (int i = int'(Values - Eight) - 1; i >= 0; i--) from[k][i] |= from[k][(i/8+1)*8];
    end
    from_four = from;
    for (int k = 30; k >= 0; k--) if (k % 4 != 3) from_four[k] |= from_four[k+1];
    known = from_four_q;
    for (int k = 27; k >= 0; k--) known[k] |= known[(k/4+1)*4];
  end
  always_ff @(posedge clk_i) begin
    from_four_q <= from_four;
    known_q     <= {Values'(0), known};
    later_use_q <= {later_use_q[0], use_q};
    bits_q[0]   <= bits;
    bits_q[2]   <= bits_q[1];
    for (int k = 0; k < 32; k++) bits_q[1][k] <= use_q[k] ? bits_q[0][k] : '0;
  end

  // ---- the planes' codes, the uppermost one first -----------------------------------------------

  logic [31:0][2*Values-2:0] codes;
  logic [31:0][Log:0] sizes;
  for (genvar k = 0; k < 32; k++) begin : g_plane
    wpr_zfp_plane #(.Values(Values)) plane (
      .clk_i,
      .use_i    (later_use_q[1][k]),
      .bits_i   (bits_q[2][k]),
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
