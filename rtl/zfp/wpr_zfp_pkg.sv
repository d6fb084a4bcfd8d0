// SPDX-License-Identifier: Apache-2.0
// How long wpr_zfp_join takes, for those that send something along beside it.
package wpr_zfp_pkg;

  // Bits of the number by which the second of two joins of so many pieces is shifted.
  function automatic int unsigned shift_bits(input int unsigned pieces, input int unsigned step,
                                             input int unsigned extra);
    return $clog2(pieces * step + extra + 1);
  endfunction

  // A shift by more than 64 places takes two clocks.
  function automatic bit shifts_twice(input int unsigned pieces, input int unsigned step,
                                      input int unsigned extra);
    return shift_bits(pieces, step, extra) > 6;
  endfunction

  function automatic int unsigned join_clocks(input int unsigned pieces, input int unsigned step,
                                              input int unsigned extra);
    join_clocks = 0;
    for (int unsigned p = 1; p < pieces; p *= 2) begin
      join_clocks += shifts_twice(p, step, extra) ? 2 : 1;
    end
  endfunction

endpackage
