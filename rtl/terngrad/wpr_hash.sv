// SPDX-License-Identifier: Apache-2.0
// The library's random bits for 16 elements of an array that follow each other (spec.md of
// terngrad, qsgd, int8 and others): 32 bits for each, of a seed and of the element's index alone. A
// row a clock, latency 12 clocks, nothing stops it.
module wpr_hash #(
  parameter bit Mult18 = 1'b0  // for devices with multipliers of 18x18 bits: adders in their place
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from six clocks before a packet's first row until its last one is out.
  input logic [63:0] seed_i,
  input logic [63:0] first_i,  // index of the first element of its first row

  input  logic              row_i,    // a row of bits is wanted
  input  logic              begin_i,  // with row: it is the first of a packet
  output logic [15:0][31:0] bits_o
);

  localparam int unsigned Lanes = 16;
  localparam logic [31:0] IndexLow = 32'h9E3779B1;
  localparam logic [31:0] IndexHigh = 32'h85EBCA6B;

  // ---- of a packet: what its first index and the seed make, the two halves in turns -------------

  logic half_q, half1_q, half2_q, half3_q, half4_q;
  logic [31:0] first1_q, product2_q, product3_q, sum4_q;
  logic [15:0] cross_a2_q, cross_b2_q;
  logic [31:0] index1;
  assign index1 = half1_q ? IndexHigh : IndexLow;
  logic [31:0] low_q, high_q, wrapped_q, high_mixed_q, wrapped_mixed_q;
  always_ff @(posedge clk_i) begin
    half_q     <= !half_q && rst_ni;
    {half4_q, half3_q, half2_q, half1_q} <= {half3_q, half2_q, half1_q, half_q};
    first1_q   <= half_q ? first_i[63:32] : first_i[31:0];
    product2_q <= 32'(first1_q[15:0]) * 32'(index1[15:0]);
    cross_a2_q <= 16'(first1_q[15:0] * index1[31:16]);
    cross_b2_q <= 16'(first1_q[31:16] * index1[15:0]);
    product3_q <= {product2_q[31:16] + cross_a2_q + cross_b2_q, product2_q[15:0]};
    sum4_q     <= product3_q + (half3_q ? seed_i[63:32] : seed_i[31:0]);
    if (half4_q) high_q <= sum4_q;
    else low_q <= sum4_q;
    wrapped_q       <= high_q + IndexHigh;  // for indices behind a multiple of 2^32
    high_mixed_q    <= high_q ^ high_q >> 16;
    wrapped_mixed_q <= wrapped_q ^ wrapped_q >> 16;
  end

  // ---- 0: where the row is ----------------------------------------------------------------------

  logic [31:0] base_q, base0_q;
  logic [32:0] index_q, index0_q;
  always_ff @(posedge clk_i) begin
    if (row_i) begin
      base_q  <= (begin_i ? low_q : base_q) + 32'(Lanes * IndexLow);
      index_q <= (begin_i ? {1'b0, first_i[31:0]} : index_q) + 33'(Lanes);
    end
    base0_q  <= begin_i ? low_q : base_q;
    index0_q <= begin_i ? {1'b0, first_i[31:0]} : index_q;
  end
  // Whether an index of the row is the first one behind a multiple of 2^32, and so which.
  logic crosses;
  assign crosses = index0_q[31:4] == '1;

  // ---- lanes ------------------------------------------------------------------------------------

  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    logic [31:0] x1_q, x2_q, y6, x7_q, y11;
    logic wrapped1_q;
    always_ff @(posedge clk_i) begin
      x1_q       <= base0_q + 32'(l * IndexLow);
      wrapped1_q <= index0_q[32] || (crosses && int'(index0_q[3:0]) + l > 15);
      x2_q       <= x1_q ^ x1_q >> 16 ^ (wrapped1_q ? wrapped_mixed_q : high_mixed_q);
    end
    wpr_times #(.Factor(32'h7FEB352D), .Mult18(Mult18)) first (.clk_i, .x_i(x2_q), .y_o(y6));
    always_ff @(posedge clk_i) x7_q <= y6 ^ y6 >> 15;
    wpr_times #(.Factor(32'h846CA68B), .Mult18(Mult18)) second (.clk_i, .x_i(x7_q), .y_o(y11));
    always_ff @(posedge clk_i) bits_o[l] <= y11 ^ y11 >> 16;
  end

endmodule
