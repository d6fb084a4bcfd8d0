// SPDX-License-Identifier: Apache-2.0
// The code of a cell of 4^Dims float32 values (codecs/zfp/spec.md, A cell). One cell a clock, 7 +
// 6 * Dims clocks later and those of joining its planes (wpr_zfp_pkg); nothing stops it.
//
// P, the number of planes, is min(cfg_planes_i, exponent + cfg_offset_i), at least 0; a cell
// without planes is coded as one of zeros.
module wpr_zfp_cell #(
  parameter int unsigned Dims = 2,     // 1 or 2
  parameter int unsigned Most = 256,   // bits of a cell
  localparam int unsigned Values = 1 << (2 * Dims),
  localparam int unsigned SizeBits = $clog2(Most + 1)
) (
  input logic clk_i,

  input logic                cfg_rate_i,   // every cell has cfg_bits_i bits
  input logic [SizeBits-1:0] cfg_bits_i,   // 9 to Most
  input logic [         5:0] cfg_planes_i, // 0 to 32
  input logic signed [  9:0] cfg_offset_i, // accuracy: 2 * Dims - 124 - floor(log2 accuracy)

  input  logic [Values-1:0][31:0] values_i,  // x runs fastest
  output logic [    Most-1:0]     code_o,    // bits beyond the size are 0
  output logic [SizeBits-1:0]     size_o
);

  localparam int unsigned Log = 2 * Dims;
  localparam int unsigned HeadBits = 9;
  localparam int unsigned PlanesBits = $clog2(33 * Values);
  localparam int unsigned Joining = wpr_zfp_pkg::join_clocks(32, Values, Values - 1);
  localparam int unsigned Coding = 3 + Log + 3 * Dims + Joining;  // clocks, of all behind the cast

  // ---- numbers, and the cell's exponent ---------------------------------------------------------

  logic [Dims:0][Values-1:0][30:0] numbers;  // transformed along so many dimensions
  logic [7:0] exponent;
  logic tiny;
  logic [Values-1:0][31:0] values;
  logic [7:0] most;
  wpr_zfp_most #(.Values(Values)) most_of_values (
    .clk_i,
    .values_i,
    .values_o  (values),
    .exponent_o(most)
  );
  wpr_zfp_cast #(.Values(Values)) cast_values (
    .clk_i,
    .values_i  (values),
    .exponent_i(most),
    .numbers_o (numbers[0]),
    .exponent_o(exponent),
    .tiny_o    (tiny)
  );

  logic [Coding-1:0][8:0] head_q;  // exponent + 1; whether the cell is coded
  logic [3*Dims:0][5:0] planes_q;
  logic signed [10:0] wanted;
  assign wanted = signed'({3'b0, exponent}) + 11'(cfg_offset_i);
  always_ff @(posedge clk_i) begin
    head_q   <= {head_q[Coding-2:0], {exponent + 8'd1,
                                      !tiny && cfg_planes_i != '0 && wanted > 0}};
    planes_q <= {planes_q[3*Dims-1:0],
                 wanted < signed'(11'(cfg_planes_i)) ? wanted[5:0] : cfg_planes_i};
  end

  // ---- transformed: x, then y; coefficients in their order --------------------------------------

  for (genvar d = 0; d < int'(Dims); d++) begin : g_dimension
    localparam int unsigned Apart = 1 << (2 * d);  // the numbers of a line
    for (genvar i = 0; i < int'(Values / 4); i++) begin : g_line
      localparam int unsigned First = d == 0 ? 4 * i : i;
      logic [3:0][30:0] line;
      wpr_zfp_lift lift (
        .clk_i,
        .line_i({numbers[d][First+3*Apart], numbers[d][First+2*Apart], numbers[d][First+Apart],
                 numbers[d][First]}),
        .line_o(line)
      );
      for (genvar j = 0; j < 4; j++) begin : g_number
        assign numbers[d+1][First+j*Apart] = line[j];
      end
    end
  end

  localparam logic [31:0] Odd = 32'hAAAA_AAAA;
  localparam logic [15:0][3:0] Square = 64'hFEBD_7AC3_9682_5410;
  logic [Values-1:0][31:0] ordered, coefficients_q;
  always_comb begin
    for (int i = 0; i < int'(Values); i++) begin
      ordered[i] = 32'(signed'(numbers[Dims][Dims == 1 ? i : int'(Square[i])]));
    end
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Values); i++) coefficients_q[i] <= (ordered[i] + Odd) ^ Odd;
  end

  // ---- planes, behind the head ------------------------------------------------------------------

  logic [Most-HeadBits-1:0] planes;
  logic [PlanesBits-1:0] planes_size;
  wpr_zfp_planes #(.Values(Values), .Most(Most - HeadBits)) code_planes (
    .clk_i,
    .coefficients_i(coefficients_q),
    .planes_i      (planes_q[3*Dims]),
    .code_o        (planes),
    .size_o        (planes_size)
  );

  logic [HeadBits-1:0] head;
  logic [Most-1:0] inside_q;  // of cfg_bits_i
  assign head = head_q[Coding-1];
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Most); i++) inside_q[i] <= !cfg_rate_i || SizeBits'(i) < cfg_bits_i;
    code_o <= head[0] ? {planes, head} & inside_q : '0;
    size_o <= cfg_rate_i ? cfg_bits_i
            : head[0] ? SizeBits'(planes_size) + SizeBits'(HeadBits) : SizeBits'(1);
  end

endmodule
