// SPDX-License-Identifier: Apache-2.0
// tkeep of a beat with so many bytes; 0 stands for all of them. No registers.
module wpr_keep #(
  parameter int unsigned Bytes = 64,  // 8 or more
  localparam int unsigned Log = $clog2(Bytes)
) (
  input  logic [  Log-1:0] size_i,
  output logic [Bytes-1:0] keep_o
);

  // By fours, as synthesis makes a chain of 64 comparisons otherwise.
  logic [Bytes/4-1:0] below, at;  // fours before the end; the one where it is
  always_comb begin
    for (int i = 0; i < int'(Bytes) / 4; i++) begin
      below[i] = (Log - 2)'(i) < size_i[Log-1:2];
      at[i]    = (Log - 2)'(i) == size_i[Log-1:2];
    end
    for (int i = 0; i < int'(Bytes); i++) begin
      keep_o[i] = size_i == '0 || below[i/4] || (at[i/4] && 2'(i) < size_i[1:0]);
    end
  end

endmodule
