// SPDX-License-Identifier: Apache-2.0
// What the modules of the zstd decoder share: places in a packet, and the numbers of RFC 8878 that
// stand behind the codes of literal lengths, match lengths and offsets.
package wpr_zstd_pkg;

  // A byte's place in its packet, of which the last bit says that the packet is too long.
  localparam int unsigned AddressWidth = 25;
  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [AddressWidth-4:0] row_t;  // of 8 bytes

  localparam int unsigned MostBlock = 1 << 17;  // bytes that a block may expand to

  // Where the literals of a block come from.
  typedef enum logic [1:0] {
    Raw,
    Rle,
    Huffman
  } literals_e;

  // What the front half says of a block to the back half.
  typedef struct packed {
    literals_e   kind;
    logic        four;       // Huffman: four streams
    logic [7:0]  value;      // Rle
    logic [17:0] n;          // literals
    address_t    from;       // the block's first byte
    address_t    literals;   // Raw: their first byte
    logic        sequences;  // the block has a sequences section
    address_t    begins;     // it
    address_t    ends;       // the block
    logic        last;
  } block_t;

  // a >= b, in LUTs, three bits each: where much follows in the same clock, a carry chain is slower.
  function automatic logic at_least(logic [11:0] a, logic [11:0] b);
    logic [11:0] more, no_less;  // of a bit; then, each third one, of it and the two below
    more    = a & ~b;
    no_less = a | ~b;
    {more, no_less} = {more | (no_less & (more << 1 | (no_less << 1 & more << 2))),
                       more | (no_less & (more << 1 | (no_less << 1 & no_less << 2)))};
    return more[11] || (no_less[11] && (more[8] || (no_less[8] && (more[5] ||
           (no_less[5] && no_less[2])))));
  endfunction

  typedef enum logic [1:0] {
    Predefined,
    RleTable,
    Described,
    Repeated
  } mode_e;

  // ---- literal lengths and match lengths: extra bits and baseline of a code ---------------------

  function automatic logic [4:0] literal_bits(logic [5:0] code);
    if (code < 6'd16) return '0;
    if (code < 6'd20) return 5'd1;
    if (code < 6'd22) return 5'd2;
    if (code < 6'd24) return 5'd3;
    if (code == 6'd24) return 5'd4;
    return 5'(code - 6'd19);
  endfunction

  function automatic logic [16:0] literal_base(logic [5:0] code);
    if (code < 6'd16) return 17'(code);
    if (code < 6'd20) return 17'd16 + 17'({code[1:0], 1'b0});
    unique case (code)
      6'd20:   return 17'd24;
      6'd21:   return 17'd28;
      6'd22:   return 17'd32;
      6'd23:   return 17'd40;
      6'd24:   return 17'd48;
      default: return 17'd1 << (code - 6'd19);
    endcase
  endfunction

  function automatic logic [4:0] match_bits(logic [5:0] code);
    if (code < 6'd32) return '0;
    if (code < 6'd36) return 5'd1;
    if (code < 6'd38) return 5'd2;
    if (code < 6'd40) return 5'd3;
    if (code < 6'd42) return 5'd4;
    if (code == 6'd42) return 5'd5;
    return 5'(code - 6'd36);
  endfunction

  function automatic logic [16:0] match_base(logic [5:0] code);
    if (code < 6'd32) return 17'(code) + 17'd3;
    if (code < 6'd36) return 17'd35 + 17'({code[1:0], 1'b0});
    unique case (code)
      6'd36:   return 17'd43;
      6'd37:   return 17'd47;
      6'd38:   return 17'd51;
      6'd39:   return 17'd59;
      6'd40:   return 17'd67;
      6'd41:   return 17'd83;
      6'd42:   return 17'd99;
      default: return (17'd1 << (code - 6'd36)) + 17'd3;
    endcase
  endfunction

  // ---- predefined distributions: how often a code, or -1 for less than once ---------------------

  function automatic logic signed [3:0] literal_default(logic [5:0] code);
    if (code >= 6'd32) return -4'sd1;
    if (code == 6'd0) return 4'd4;
    if (code == 6'd1 || code == 6'd25) return 4'd3;
    if (code >= 6'd27 || (code >= 6'd13 && code <= 6'd15)) return 4'd1;
    return 4'd2;
  endfunction

  function automatic logic signed [3:0] offset_default(logic [5:0] code);
    if (code >= 6'd24) return -4'sd1;
    return code >= 6'd6 && code <= 6'd8 ? 4'd2 : 4'd1;
  endfunction

  function automatic logic signed [3:0] match_default(logic [5:0] code);
    if (code >= 6'd46) return -4'sd1;
    if (code == 6'd1) return 4'd4;
    if (code == 6'd2) return 4'd3;
    return code >= 6'd3 && code <= 6'd8 ? 4'd2 : 4'd1;
  endfunction

endpackage
