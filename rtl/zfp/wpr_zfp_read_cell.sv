// SPDX-License-Identifier: Apache-2.0
// Reads the code of a cell of 4^Dims float32 values at a fixed rate (codecs/zfp/spec.md, A cell):
// the inverse of wpr_zfp_cell. One cell a clock, Latency clocks later; nothing stops it.
module wpr_zfp_read_cell #(
  parameter int unsigned Dims = 2,    // 1 or 2
  parameter int unsigned Most = 128,  // bits of a cell
  localparam int unsigned Values = 1 << (2 * Dims),
  localparam int unsigned SizeBits = $clog2(Most + 1)
) (
  input logic clk_i,

  input logic [SizeBits-1:0] cfg_bits_i,  // of every cell: 9 to Most

  input  logic [    Most-1:0]       code_i,   // bits from cfg_bits_i on may be anything
  output logic [Values-1:0][31:0]   values_o  // x runs fastest
);

  localparam int unsigned HeadBits = 9;
  localparam int unsigned PlanesBits = Most - HeadBits;
  localparam int unsigned PlaceBits = $clog2(PlanesBits + 1);
  localparam int unsigned Reading = Values > 4 ? 226 : 130;
  localparam int unsigned Exponent = Reading + 1 + 3 * Dims;  // clocks until it is wanted

  // ---- head -------------------------------------------------------------------------------------

  logic [PlaceBits-1:0] end_q;
  logic [Most-1:HeadBits] inside_q;  // of cfg_bits_i
  logic [PlanesBits-1:0] planes_q;
  logic [7:0] exponent_q, exponent;
  always_ff @(posedge clk_i) begin
    end_q <= PlaceBits'(cfg_bits_i - SizeBits'(HeadBits));
    for (int i = HeadBits; i < int'(Most); i++) inside_q[i] <= SizeBits'(i) < cfg_bits_i;
    planes_q   <= code_i[0] ? code_i[Most-1:HeadBits] & inside_q : '0;
    exponent_q <= code_i[HeadBits-1:1];
  end
  wpr_zfp_delay #(.Width(8), .Clocks(Exponent)) keep_exponent (
    .clk_i,
    .data_i(exponent_q),
    .data_o(exponent)
  );

  // ---- planes; numbers at their places ----------------------------------------------------------

  logic [Values-1:0][31:0] coefficients;
  wpr_zfp_read_planes #(.Values(Values), .CodeBits(PlanesBits)) read_planes (
    .clk_i,
    .end_i         (end_q),
    .code_i        (planes_q),
    .coefficients_o(coefficients)
  );

  localparam logic [31:0] Odd = 32'hAAAA_AAAA;
  localparam logic [15:0][3:0] Square = 64'hFEBD_7AC3_9682_5410;
  logic [Dims:0][Values-1:0][31:0] numbers;  // the last ones first: transformed back
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < int'(Values); i++) begin
      numbers[Dims][Dims == 1 ? i : int'(Square[i])] <= (coefficients[i] ^ Odd) - Odd;
    end
  end

  // ---- transformed back: y, then x --------------------------------------------------------------

  for (genvar d = 0; d < int'(Dims); d++) begin : g_dimension
    localparam int unsigned Apart = 1 << (2 * d);  // the numbers of a line
    for (genvar i = 0; i < int'(Values / 4); i++) begin : g_line
      localparam int unsigned First = d == 0 ? 4 * i : i;
      logic [3:0][31:0] line;
      wpr_zfp_unlift lift (
        .clk_i,
        .line_i({numbers[d+1][First+3*Apart], numbers[d+1][First+2*Apart],
                 numbers[d+1][First+Apart], numbers[d+1][First]}),
        .line_o(line)
      );
      for (genvar j = 0; j < 4; j++) begin : g_number
        assign numbers[d][First+j*Apart] = line[j];
      end
    end
  end

  for (genvar i = 0; i < int'(Values); i++) begin : g_value
    wpr_zfp_uncast uncast (
      .clk_i,
      .number_i  (numbers[0][i]),
      .exponent_i(exponent),
      .value_o   (values_o[i])
    );
  end

endmodule
