// SPDX-License-Identifier: Apache-2.0
// The library's random bits for 16 elements of an array that follow each other (spec.md of terngrad,
// qsgd, int8 and others): 32 bits for each, of a seed and of the element's index alone. A row a clock,
// latency 11 clocks, nothing stops it. Six multiplications of 16 bits a lane, of which four need only
// their lower half.
module wpr_hash (
  input logic clk_i,

  // Constant from four clocks before a packet's first row until its last one is out.
  input logic [63:0] seed_i,
  input logic [63:0] first_i,  // index of the first element of its first row

  input  logic              row_i,    // a row of bits is wanted
  input  logic              begin_i,  // with row: it is the first of a packet
  output logic [15:0][31:0] bits_o
);

  localparam int unsigned Lanes = 16;
  localparam logic [31:0] IndexLow = 32'h9E3779B1;
  localparam logic [31:0] IndexHigh = 32'h85EBCA6B;

  // ---- of a packet: what its first index and the seed make --------------------------------------

  logic [31:0] low1_q, low2_q, high1_q, high2_q, wrapped2_q, high3_q, wrapped3_q;
  always_ff @(posedge clk_i) begin
    low1_q     <= 32'(first_i[31:0] * IndexLow);
    high1_q    <= 32'(first_i[63:32] * IndexHigh);
    low2_q     <= low1_q + seed_i[31:0];
    high2_q    <= high1_q + seed_i[63:32];
    wrapped2_q <= high1_q + seed_i[63:32] + IndexHigh;  // for indices behind a multiple of 2^32
    high3_q    <= high2_q ^ high2_q >> 16;
    wrapped3_q <= wrapped2_q ^ wrapped2_q >> 16;
  end

  // ---- 0: where the row is ------------------------------------------------------------------------

  logic [31:0] base_q, base0_q;
  logic [32:0] index_q, index0_q;
  always_ff @(posedge clk_i) begin
    if (row_i) begin
      base_q  <= (begin_i ? low2_q : base_q) + 32'(Lanes * IndexLow);
      index_q <= (begin_i ? {1'b0, first_i[31:0]} : index_q) + 33'(Lanes);
    end
    base0_q  <= begin_i ? low2_q : base_q;
    index0_q <= begin_i ? {1'b0, first_i[31:0]} : index_q;
  end
  // Whether an index of the row is the first one behind a multiple of 2^32, and so which.
  logic crosses;
  assign crosses = index0_q[31:4] == '1;

  // ---- lanes ----------------------------------------------------------------------------------------

  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    logic [31:0] x1_q, x2_q, x6_q;
    logic wrapped1_q;
    always_ff @(posedge clk_i) begin
      x1_q       <= base0_q + 32'(l * IndexLow);
      wrapped1_q <= index0_q[32] || (crosses && int'(index0_q[3:0]) + l > 15);
      x2_q       <= x1_q ^ x1_q >> 16 ^ (wrapped1_q ? wrapped3_q : high3_q);
    end
    logic [31:0] y5, y9;
    wpr_times #(.Factor(32'h7FEB352D)) first (.clk_i, .x_i(x2_q), .y_o(y5));
    always_ff @(posedge clk_i) x6_q <= y5 ^ y5 >> 15;
    wpr_times #(.Factor(32'h846CA68B)) second (.clk_i, .x_i(x6_q), .y_o(y9));
    always_ff @(posedge clk_i) bits_o[l] <= y9 ^ y9 >> 16;
  end

endmodule
