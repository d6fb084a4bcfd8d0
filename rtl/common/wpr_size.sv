// SPDX-License-Identifier: Apache-2.0
// The number of bytes of a beat, 0 to Bytes, from its tkeep, which has no gaps. No registers.
module wpr_size #(
  parameter int unsigned Bytes = 64,
  localparam int unsigned Bits = $clog2(Bytes) + 1
) (
  input  logic [Bytes-1:0] keep_i,
  output logic [ Bits-1:0] size_o
);

  logic [Bytes-1:0] last;  // the last one's place
  assign last = keep_i & ~(keep_i >> 1);
  always_comb begin
    for (int j = 0; j < int'(Bits); j++) begin
      logic [Bytes-1:0] of_bit;
      for (int i = 0; i < int'(Bytes); i++) of_bit[i] = last[i] && (((i + 1) >> j) & 1) == 1;
      size_o[j] = |of_bit;
    end
  end

endmodule
