// SPDX-License-Identifier: Apache-2.0
// What the decoders of lz4 and snappy hand to wpr_lz_copy.
package wpr_lz_pkg;

  // So many literals and a match behind them; or, with `last`, the packet's end.
  typedef struct packed {
    logic        last;
    logic        bad;         // with last: the packet is not valid
    logic [4:0]  n_literals;
    logic [8:0]  n_match;     // bytes, or 0
    logic [15:0] offset;
  } element_t;

  // With 16 bytes: an element behind that one, taken in the same clock.
  typedef struct packed {
    logic        two;         // it is there
    logic [4:0]  n_literals;
    logic [4:0]  n_match;
    logic [15:0] offset;
  } second_t;

endpackage
