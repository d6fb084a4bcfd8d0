// SPDX-License-Identifier: Apache-2.0
// A number as the float32 number * 2^(exponent - 157) (codecs/zfp/spec.md, A cell, 5): libzfp's
// inv_cast, whose two factors and product are each rounded to nearest even. Latency 5 clocks, one
// number a clock.
//
// An exponent below 8 makes the power of two 0, so the value is a zero with the number's sign. From
// 8 on a denormal value is a multiple of 2^-149 as it stands: so no value is rounded twice.
module wpr_zfp_uncast (
  input  logic        clk_i,
  input  logic [31:0] number_i,
  input  logic [ 7:0] exponent_i,  // of the cell, with the bias 127
  output logic [31:0] value_o
);

  // ---- 1, 2: magnitude, and zeros above it ------------------------------------------------------

  logic [31:0] size_q, size2_q, size3_q;
  logic [4:1] negative_q;
  logic [7:0] exponent1_q, exponent2_q;
  logic [5:0] zeros, zeros_q;
  // Of digits of four bits, the upper one first: not 0; the first one of these; zeros above its 1.
  logic [7:0] digits, first;
  logic [1:0][7:0] lead;
  always_comb begin
    for (int d = 0; d < 8; d++) digits[d] = size_q[31-4*d-:4] != '0;
    for (int d = 0; d < 8; d++) begin
      first[d]   = digits[d] && (digits & ~(8'hFF << d)) == '0;
      lead[1][d] = size_q[31-4*d-:2] == '0;
      lead[0][d] = !size_q[31-4*d] && (size_q[30-4*d] || !size_q[29-4*d]);
    end
    zeros = {digits == '0, |(first & 8'hF0), |(first & 8'hCC), |(first & 8'hAA),
             |(first & lead[1]), |(first & lead[0])};
  end
  always_ff @(posedge clk_i) begin
    size_q      <= ({32{number_i[31]}} ^ number_i) + 32'(number_i[31]);
    negative_q  <= {negative_q[3:1], number_i[31]};
    exponent1_q <= exponent_i;
    size2_q     <= size_q;
    zeros_q     <= zeros;
    exponent2_q <= exponent1_q;
  end

  // ---- 3, 4: shifted up, but no farther than the least normal number ----------------------------

  logic [4:0] up_q;
  logic [8:0] exponent3_q, exponent4_q;
  logic nothing_q, nothing2_q;
  logic [30:0] raised_q;  // a 1 above it is implied, or there is none
  always_ff @(posedge clk_i) begin
    up_q        <= 8'(zeros_q) <= exponent2_q ? zeros_q[4:0] : exponent2_q[4:0];
    exponent3_q <= 8'(zeros_q) <= exponent2_q ? 9'(exponent2_q) - 9'(zeros_q) + 9'd1 : '0;
    nothing_q   <= zeros_q[5] || exponent2_q < 8'd8;
    size3_q     <= size2_q;
    raised_q    <= 31'(size3_q << up_q);
    exponent4_q <= exponent3_q;
    nothing2_q  <= nothing_q;
  end

  // ---- 5: rounded -------------------------------------------------------------------------------

  logic [31:0] rounded;
  always_comb begin
    rounded = {exponent4_q, raised_q[30:8]} +
              32'(raised_q[7] && (raised_q[8] || raised_q[6:0] != '0));
  end
  always_ff @(posedge clk_i) begin
    value_o[31]   <= negative_q[4];
    value_o[30:0] <= nothing2_q ? '0 : rounded[31] || &rounded[30:23] ? 31'h7F80_0000
                                                                      : rounded[30:0];
  end

endmodule
