// SPDX-License-Identifier: Apache-2.0
// The tkeep of a beat with size_i bytes; 0 stands for a whole beat. No registers.
module wpr_keep #(
  parameter int unsigned Bytes = 64,  // 8 or more
  localparam int unsigned Log = $clog2(Bytes)
) (
  input  logic [  Log-1:0] size_i,
  output logic [Bytes-1:0] keep_o
);

  // By groups of four bytes, since synthesis would make a chain of 64 comparisons.
  logic [Bytes/4-1:0] below, at;  // groups before the end; the group with the end
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
