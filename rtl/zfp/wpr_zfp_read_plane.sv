// SPDX-License-Identifier: Apache-2.0
// Finds the code of a bit plane in that of a cell and reads it: wpr_zfp_read_bits. One plane a
// clock. What the plane below waits for comes Loop clocks later, 4 with four values and 7 with 16;
// bits_o comes 2 clocks behind that.
module wpr_zfp_read_plane #(
  parameter int unsigned Values   = 16,   // 4 or 16
  parameter int unsigned CodeBits = 119,  // of a cell's planes, at most; 16 or more
  parameter int unsigned MostPlace = CodeBits,  // where the plane begins, at most
  localparam int unsigned Log = $clog2(Values),
  localparam int unsigned PlaceBits = $clog2(CodeBits + 1)
) (
  input  logic                 clk_i,
  input  logic [PlaceBits-1:0] end_i,     // bits of a cell's planes; constant
  input  logic                 use_i,     // 0: the plane has no code
  input  logic [ CodeBits-1:0] code_i,    // of the cell's planes; bits from end_i on are 0
  input  logic [PlaceBits-1:0] place_i,   // where the plane above begins; all ones: behind the end
  input  logic [        Log:0] length_i,  // of the plane above
  input  logic [   Values-1:0] known_i,   // of the coefficients below n
  output logic [ CodeBits-1:0] code_o,
  output logic [PlaceBits-1:0] place_o,   // of this plane
  output logic [        Log:0] length_o,
  output logic [   Values-1:0] known_o,
  output logic [   Values-1:0] bits_o
);

  localparam int unsigned Places = 2 * Values;  // of a plane's code, and one more
  localparam int unsigned Fine = 4;             // bits of a place that shift in the second clock
  localparam int unsigned Near = Places + (1 << Fine) - 2;
  localparam int unsigned Loop = Values > 4 ? 7 : 4;

  wpr_zfp_delay #(.Width(CodeBits), .Clocks(Loop)) keep_code (
    .clk_i,
    .data_i(code_i),
    .data_o(code_o)
  );

  // ---- 1: where the plane begins; the code from about there -------------------------------------

  // Shifted by the largest step first, since each step has to make fewer bits than the one before.
  function automatic logic [CodeBits-1:0] coarse(input logic [CodeBits-1:0] code,
                                                 input logic [PlaceBits-1:0] from);
    for (int b = int'(PlaceBits) - 1; b >= int'(Fine); b--) begin
      if (from[b] && (1 << b) <= MostPlace) code = code >> (1 << b);
    end
    return code;
  endfunction
  function automatic logic [Near-1:0] fine(input logic [Near-1:0] code,
                                           input logic [Fine-1:0] from);
    for (int b = int'(Fine) - 1; b >= 0; b--) begin
      if (from[b] && (1 << b) <= MostPlace) code = code >> (1 << b);
    end
    return code;
  endfunction

  logic [Loop:1][PlaceBits-1:0] place_q;
  logic [Values-1:0] known_q;
  logic use_q;
  logic [PlaceBits:0] begins, left_q;
  logic [PlaceBits-1:0] place;
  logic [Near-1:0] near_q;
  assign begins = (PlaceBits + 1)'(place_i) + (PlaceBits + 1)'(length_i);
  assign place  = begins[PlaceBits-1:0] | {PlaceBits{begins[PlaceBits]}};
  assign place_o = place_q[Loop];
  always_ff @(posedge clk_i) begin
    place_q <= {place_q[Loop-1:1], place};
    left_q  <= (PlaceBits + 1)'(end_i) - (PlaceBits + 1)'(place_q[Loop-1]);
    known_q <= known_i;
    use_q   <= use_i;
    near_q  <= Near'(coarse(code_i, place));
  end

  // ---- from 2 on --------------------------------------------------------------------------------

  wpr_zfp_read_bits #(.Values(Values), .LeftBits(PlaceBits + 1)) read (
    .clk_i,
    .use_i  (use_q),
    .code_i ((Places - 1)'(fine(near_q, place_q[1][Fine-1:0]))),
    .known_i(known_q),
    .length_o,
    .more_o (),
    .known_o,
    .n_o    (),
    .left_i (left_q),
    .bits_o
  );

endmodule
