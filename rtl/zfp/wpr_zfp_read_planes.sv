// SPDX-License-Identifier: Apache-2.0
// Reads the codes of all bit planes of a cell, one behind the other (codecs/zfp/spec.md, A cell,
// 3): the inverse of wpr_zfp_planes. One cell a clock, 226 clocks later, or 130 with four values.
//
// A plane begins where the one above ends, so planes are read one after the other: each has a
// wpr_zfp_read_plane of its own, through which the cells go in a row.
module wpr_zfp_read_planes #(
  parameter int unsigned Values   = 16,   // 4 or 16
  parameter int unsigned CodeBits = 119,  // of a cell's planes, at most
  localparam int unsigned Log = $clog2(Values),
  localparam int unsigned PlaceBits = $clog2(CodeBits + 1)
) (
  input  logic                    clk_i,
  input  logic [PlaceBits-1:0]    end_i,          // bits of a cell's planes; constant
  input  logic [ CodeBits-1:0]    code_i,         // bits from end_i on are 0
  output logic [Values-1:0][31:0] coefficients_o  // in the order of the code
);

  localparam int unsigned Loop = Values > 4 ? 7 : 4;

  for (genvar p = 0; p <= 32; p++) begin : g_plane
    logic [CodeBits-1:0] code;
    logic [PlaceBits-1:0] place;
    logic [Log:0] length;
    logic [Values-1:0] known;
    if (p == 0) begin : g_first
      assign code = code_i;
      assign {place, length, known} = '0;
    end else begin : g_read
      logic [Values-1:0] bits, aligned;
      localparam int unsigned Before = (p - 1) * (2 * Values - 1);  // bits of the planes above
      wpr_zfp_read_plane #(
        .Values   (Values),
        .CodeBits (CodeBits),
        .MostPlace(Before)
      ) read (
        .clk_i,
        .end_i,
        .use_i   (1'b1),
        .code_i  (g_plane[p-1].code),
        .place_i (g_plane[p-1].place),
        .length_i(g_plane[p-1].length),
        .known_i (g_plane[p-1].known),
        .code_o  (code),
        .place_o (place),
        .length_o(length),
        .known_o (known),
        .bits_o  (bits)
      );
      wpr_zfp_delay #(.Width(Values), .Clocks(Loop * (32 - p))) align (
        .clk_i,
        .data_i(bits),
        .data_o(aligned)
      );
      for (genvar i = 0; i < int'(Values); i++) begin : g_coefficient
        assign coefficients_o[i][32-p] = aligned[i];
      end
    end
  end

endmodule
