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

  // The bit after a code that begins at bit `at`. A table, not a sum: with m tied it is a function of
  // the case.
  function automatic logic [6:0] end_of(input class_t c, input logic [4:0] m,
                                        input int unsigned at);
    case (c)
      Equal: return 7'(at + 2);
      Zero: return 7'(at + 5);
      Denormal: return 7'(at + 28);
      Escape: return 7'(at + 12) + 7'(m);
      4'd0: return 7'(at + 3) + 7'(m);
      4'd1: return 7'(at + 5) + 7'(m);
      4'd2: return 7'(at + 6) + 7'(m);
      4'd3: return 7'(at + 7) + 7'(m);
      4'd4: return 7'(at + 8) + 7'(m);
      4'd5: return 7'(at + 9) + 7'(m);
      default: return 7'(at + 11) + 7'(m);
    endcase
  endfunction

  // Bits of the whole code.
  function automatic logic [5:0] size_of(input class_t c, input logic [4:0] m);
    return 6'(end_of(c, m, 0));
  endfunction

  // The case of a code by its first seven bits; of differences of 6 to 9 always 6.
  function automatic class_t class_of(input logic [6:0] bits);
    if (!bits[0]) return !bits[1] ? Equal : bits[2] ? Escape : bits[3] ? Denormal : Zero;
    for (int k = 0; k < 6; k++) if (!bits[k+1]) return class_t'(k);
    return 4'd6;
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
