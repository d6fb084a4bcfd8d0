// SPDX-License-Identifier: Apache-2.0
// The code of fre (codecs/fre/spec.md), as far as encoder and decoder share it.
package wpr_fre_pkg;

  localparam int unsigned FractionBits = 23;
  localparam int unsigned CodeWidth = 35;  // the longest code: an exponent's at m = 23

  // A case of the code. Below Equal: abs(d) of the exponent's difference d.
  typedef logic [3:0] class_t;
  localparam class_t MaxDifference = 4'd9;
  localparam class_t Equal         = 4'd10;
  localparam class_t Zero          = 4'd11;
  localparam class_t Denormal      = 4'd12;
  localparam class_t Escape        = 4'd13;  // the exponent itself is sent

  // Bits before the payload.
  function automatic logic [3:0] place_of(input class_t c);
    case (c)
      4'd0, Equal: return 4'd2;
      Escape: return 4'd3;
      Zero, Denormal: return 4'd4;
      4'd1, 4'd2, 4'd3, 4'd4, 4'd5: return c + 4'd3;
      default: return 4'd10;
    endcase
  endfunction

  // What stands there; bits are sent from the lowest up. Of zeros all: `negative` is their sign.
  function automatic logic [9:0] prefix_of(input class_t c, input logic negative);
    case (c)
      Equal: return 10'd0;
      Escape: return 10'd6;
      Zero: return {5'd0, negative, 4'd2};
      Denormal: return 10'd10;
      4'd0: return 10'd1;
      4'd1, 4'd2, 4'd3, 4'd4, 4'd5: return 10'((2 << c) - 1) | 10'(int'(negative) << (c + 2));
      default: return {negative, 2'(c - 4'd6), 7'h7F};
    endcase
  endfunction

  // Bits of the whole code. A table, not a sum: with m tied it is a function of the case.
  function automatic logic [5:0] size_of(input class_t c, input logic [4:0] m);
    case (c)
      Equal: return 6'd2;
      Zero: return 6'd5;
      Denormal: return 6'd28;
      Escape: return 6'd12 + 6'(m);
      4'd0: return 6'd3 + 6'(m);
      4'd1: return 6'd5 + 6'(m);
      4'd2: return 6'd6 + 6'(m);
      4'd3: return 6'd7 + 6'(m);
      4'd4: return 6'd8 + 6'(m);
      4'd5: return 6'd9 + 6'(m);
      default: return 6'd11 + 6'(m);
    endcase
  endfunction

  // The case of a code by its first seven bits; of differences of 6 to 9 always 6. A sum of
  // products: of a tree of choices Yosys makes wide multiplexers whose selects are undefined (its
  // issue 4722).
  function automatic class_t class_of(input logic [6:0] bits);
    class_t c;
    logic row;  // ones so far
    c   = {4{!bits[0] && !bits[1]}} & Equal;
    c  |= {4{!bits[0] && bits[1] && bits[2]}} & Escape;
    c  |= {4{!bits[0] && bits[1] && !bits[2] && bits[3]}} & Denormal;
    c  |= {4{!bits[0] && bits[1] && !bits[2] && !bits[3]}} & Zero;
    row = bits[0];
    for (int k = 0; k < 6; k++) begin
      c  |= {4{row && !bits[k+1]}} & class_t'(k);
      row = row && bits[k+1];
    end
    return c | ({4{row}} & 4'd6);
  endfunction

  // The case follows from a code's first bit and this key of the next six. Behind a 0 it is the
  // next three; behind a 1, where those are set, how many of the other three are, in a row.
  function automatic logic [2:0] key_of(input logic [6:0] bits);
    if (!bits[0]) return {bits[1], bits[2], bits[3]};
    if (bits[1] && bits[2] && bits[3]) return {1'b1, bits[4] && bits[5],
                                               bits[4] && (!bits[5] || bits[6])};
    return {1'b0, bits[1], bits[1] && bits[2]};
  endfunction

  // Bits of a code; again a sum of products.
  function automatic logic [5:0] size_of_key(input logic first, input logic [2:0] key,
                                             input logic [4:0] m);
    logic [5:0] size;
    size = '0;
    if (!first && !key[2]) size |= size_of(Equal, m);
    if (!first && key == 3'd4) size |= size_of(Zero, m);
    if (!first && key == 3'd5) size |= size_of(Denormal, m);
    if (!first && key[2] && key[1]) size |= size_of(Escape, m);
    if (first && key[2:1] == 2'd0) size |= size_of(4'd0, m);
    for (int k = 2; k < 8; k++) if (first && key == 3'(k)) size |= size_of(class_t'(k - 1), m);
    return size;
  endfunction

  // Of a block of ways=4 in rows of four values: whether a way has none, which is so in few rows
  // only. `rows` and `words` of the last row, both less one; tiny: fewer than four rows.
  function automatic logic empty_way(input int way, input logic tiny, input logic [1:0] rows,
                                     input logic [1:0] words);
    case (way)
      1: return tiny && rows == 2'd0 && words == 2'd0;
      2: return tiny && rows == 2'd0 && !words[1];
      3: return tiny && 3'(rows) + 3'(words) < 3'd3;
      default: return 1'b0;
    endcase
  endfunction

endpackage
