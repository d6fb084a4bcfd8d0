// SPDX-License-Identifier: Apache-2.0
// What the modules of the zstd encoder share: what they say of a block, codes of lengths, and the
// FSE tables of the predefined distributions (RFC 8878, 3.1.1.3.2.2), and of one distribution for
// weights, from the encoder's side.
package wpr_zstd_enc_pkg;

  import wpr_zstd_pkg::literals_e;

  localparam int unsigned LogBlock = 16;  // bytes of a block at most; the last one may be shorter

  // What is known of a block when its bytes have come.
  typedef struct packed {
    logic        first;      // of its frame
    logic        last;
    logic [22:0] frame;      // bytes of the frame, with first
    logic [16:0] n;          // bytes
    logic [16:0] literals;
    logic [13:0] sequences;
    logic        same;       // all its bytes are `value`
    logic [7:0]  value;
  } block_t;

  // What the tree says of a block's literals. Huffman: not larger than raw ones by its estimate.
  typedef struct packed {
    literals_e   kind;
    logic [7:0]  value;    // Rle
    logic [7:0]  most;     // the largest byte among them
    logic [3:0]  longest;  // code, in bits
  } literals_t;

  typedef struct packed {
    logic [3:0]  n;     // bits; 0: no such literal
    logic [10:0] bits;
  } code_t;

  // A sequence, where match and offset are as they are coded: bytes less 3, and Offset_Value.
  typedef struct packed {
    logic [15:0] literals;
    logic [15:0] match;
    logic [16:0] offset;
  } sequence_t;

  // ---- codes of numbers; extra bits are the lowest bits of a number -----------------------------

  function automatic logic [4:0] highest(logic [16:0] value);
    logic [4:0] n;
    n = '0;
    for (int i = 0; i < 17; i++) if (value[i]) n = 5'(i);
    return n;
  endfunction

  // Of a number's lowest bits, and its highest one.
  function automatic logic [5:0] literal_code(logic [4:0] n, logic [4:0] high);
    if (high < 5'd4) return 6'(n);
    if (high == 5'd4) return n[3] ? 6'd20 + 6'(n[2]) : 6'd16 + 6'(n[2:1]);
    if (high == 5'd5) return n[4] ? 6'd24 : 6'd22 + 6'(n[3]);
    return 6'd19 + 6'(high);
  endfunction

  function automatic logic [5:0] match_code(logic [5:0] n, logic [4:0] high);  // bytes less 3
    if (high < 5'd5) return n;
    if (high == 5'd5) begin
      return n[4] ? 6'd38 + 6'(n[3]) : n[3] ? 6'd36 + 6'(n[2]) : 6'd32 + 6'(n[2:1]);
    end
    if (high == 5'd6) return n[5] ? 6'd42 : 6'd40 + 6'(n[4]);
    return 6'd36 + 6'(high);
  endfunction

  // ---- FSE from the encoder's side --------------------------------------------------------------

  // Which distribution.
  localparam int Literal = 0;
  localparam int Offset = 1;
  localparam int Match = 2;
  localparam int Weight = 3;

  // How often a code is in the table of a distribution; -1: once, at its end.
  function automatic int times(int kind, int code);
    if (kind == Literal) return code > 35 ? 0 : int'(wpr_zstd_pkg::literal_default(6'(code)));
    if (kind == Offset) return code > 28 ? 0 : int'(wpr_zstd_pkg::offset_default(6'(code)));
    if (kind == Match) return code > 52 ? 0 : int'(wpr_zstd_pkg::match_default(6'(code)));
    case (code)
      0: return 14;
      1: return 13;
      2: return 11;
      3: return 8;
      4: return 6;
      5: return 4;
      6: return 3;
      7, 8, 9, 10, 11: return 1;
      default: return 0;
    endcase
  endfunction

  // How the distribution of weights is described (RFC 8878, 4.1.1).
  localparam int unsigned WeightHeaderSize = 7;  // bytes
  localparam logic [8*WeightHeaderSize-1:0] WeightHeader = 56'h01d2515d2c38f1;

  // The states of each code side by side, in the order of codes and then of states.
  function automatic logic [63:0][5:0] states(int kind, int log);
    logic [63:0][5:0] by_code, symbol;
    int size, at, high, n;
    size = 1 << log;
    high = size - 1;
    at = 0;
    n = 0;
    by_code = '0;
    symbol = '0;
    for (int code = 0; code < 53; code++) begin
      if (times(kind, code) == -1) begin
        symbol[high[5:0]] = 6'(code);
        high = high - 1;
      end
    end
    for (int code = 0; code < 53; code++) begin
      for (int k = 0; k < times(kind, code); k++) begin
        symbol[at[5:0]] = 6'(code);
        at = (at + (size >> 1) + (size >> 3) + 3) & (size - 1);
        while (at > high) at = (at + (size >> 1) + (size >> 3) + 3) & (size - 1);
      end
    end
    for (int code = 0; code < 53; code++) begin
      for (int state = 0; state < size; state++) begin
        if (symbol[state[5:0]] == 6'(code) && times(kind, code) != 0) begin
          by_code[n[5:0]] = 6'(state);
          n = n + 1;
        end
      end
    end
    return by_code;
  endfunction

  // What a code does to a state. The state, with a one before it, gives its lowest `most` bits, or
  // one less where it is below `limit`; the others, plus `base`, say which of `states` follows.
  typedef struct packed {
    logic [2:0] most;
    logic [7:0] limit;
    logic [5:0] base;
    logic [5:0] begins;  // of the states of the code
  } step_t;

  function automatic step_t [63:0] steps(int kind, int log);
    step_t [63:0] found;
    int earlier, n, most;
    found = '0;
    earlier = 0;
    for (int code = 0; code < 53; code++) begin
      n = times(kind, code) == -1 ? 1 : times(kind, code);
      most = log;
      while (n > 1 && (n - 1) >> (log - most + 1) != 0) most = most - 1;
      if (n != 0) found[code] = '{3'(most), 8'(n << most), 6'(earlier - n), 6'(earlier)};
      earlier = earlier + n;
    end
    return found;
  endfunction

endpackage
