// SPDX-License-Identifier: Apache-2.0
// A number as the float32 number * 2^(exponent - 157) (codecs/zfp/spec.md, A cell, 5): libzfp's
// inv_cast, whose two factors and product are each rounded to nearest even. Latency 6 clocks, one
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

  // ---- 1 to 3: magnitude, and zeros above it ----------------------------------------------------

  logic [5:1] negative_q;
  logic [3:1][7:0] exponent_q;
  logic [4:1][31:0] size_q;
  logic [5:0] zeros, zeros_q;
  // Of digits of four bits, the upper one first: not 0; the first one of these; zeros above its 1.
  logic [7:0] digits_q, first;
  logic [1:0][7:0] lead_q;
  always_comb begin
    for (int d = 0; d < 8; d++) first[d] = digits_q[d] && (digits_q & ~(8'hFF << d)) == '0;
    zeros = {digits_q == '0, |(first & 8'hF0), |(first & 8'hCC), |(first & 8'hAA),
             |(first & lead_q[1]), |(first & lead_q[0])};
  end
  always_ff @(posedge clk_i) begin
    size_q     <= {size_q[3:1], ({32{number_i[31]}} ^ number_i) + 32'(number_i[31])};
    negative_q <= {negative_q[4:1], number_i[31]};
    exponent_q <= {exponent_q[2:1], exponent_i};
    for (int d = 0; d < 8; d++) begin
      digits_q[d]  <= size_q[1][31-4*d-:4] != '0;
      lead_q[1][d] <= size_q[1][31-4*d-:2] == '0;
      lead_q[0][d] <= !size_q[1][31-4*d] && (size_q[1][30-4*d] || !size_q[1][29-4*d]);
    end
    zeros_q <= zeros;
  end

  // ---- 4, 5: shifted up, but no farther than the least normal number ----------------------------

  logic [4:0] up_q;
  logic [8:0] left;  // of the exponent when the zeros are gone
  logic [8:0] exponent4_q, exponent5_q;
  logic [2:0] near_q;  // the exponent is that of infinity, or more; one less; two less
  logic nothing_q, nothing2_q;
  logic [31:0] raised_q;  // of a denormal value without a 1 on top
  assign left = 9'(exponent_q[3]) - 9'(zeros_q);
  always_ff @(posedge clk_i) begin
    up_q        <= left[8] ? exponent_q[3][4:0] : zeros_q[4:0];
    exponent4_q <= left[8] ? '0 : left;
    nothing_q   <= zeros_q[5] || exponent_q[3] < 8'd8;
    raised_q    <= size_q[4] << up_q;
    exponent5_q <= exponent4_q;
    near_q      <= {exponent4_q == 9'd253, exponent4_q == 9'd254, exponent4_q >= 9'd255};
    nothing2_q  <= nothing_q;
  end

  // ---- 6: rounded; the 1 on top adds one to the exponent, and a carry another one ---------------

  // Of an exponent that is near that of infinity, the sum's lowest bit tells whether there was a
  // carry: so nothing waits for the sum's upper bits.
  logic [30:0] rounded;
  logic up, infinite;
  assign up       = raised_q[7] && (raised_q[8] || raised_q[6:0] != '0);
  assign rounded  = 31'(({exponent5_q, 23'd0, 1'b1} + {8'd0, raised_q[31:8], up}) >> 1);
  assign infinite = near_q[0] || (near_q[1] && (raised_q[31] || rounded[23])) ||
                    (near_q[2] && raised_q[31] && rounded[23]);
  always_ff @(posedge clk_i) begin
    value_o[31]   <= negative_q[5];
    value_o[30:0] <= nothing2_q ? '0 : infinite ? 31'h7F80_0000 : rounded;
  end

endmodule
