// SPDX-License-Identifier: Apache-2.0
// wpr_zfp_join: pieces stand behind each other, and what is beyond the bits that are wanted is cut
// off; their sizes are added.
module wpr_zfp_join_props (
  input logic            clk_i,
  input logic [3:0][3:0] bits_i,
  input logic [3:0][2:0] sizes_i  // 0 to 4; two pieces have 7 at most, four 13
);

  logic [3:0][3:0] codes;
  logic [12:0] whole;
  logic [1:0][9:0] whole_q;
  logic [3:0] at;
  logic [1:0][3:0] size_q;
  always_comb begin
    whole = '0;
    at    = '0;
    for (int i = 0; i < 4; i++) begin
      codes[i] = bits_i[i] & ~(4'hF << sizes_i[i]);
      whole |= 13'(codes[i]) << at;
      at += 4'(sizes_i[i]);
    end
  end

  logic [9:0] code;
  logic [3:0] size;
  wpr_zfp_join #(.Pieces(4), .Step(3), .Extra(1), .Most(10)) dut (
    .clk_i,
    .codes_i(codes),
    .sizes_i(sizes_i),
    .code_o (code),
    .size_o (size)
  );

  logic [1:0] started_q = '0;
  always_ff @(posedge clk_i) begin
    started_q <= {started_q[0], 1'b1};
    whole_q   <= {whole_q[0], whole[9:0]};
    size_q    <= {size_q[0], at};
    for (int i = 0; i < 4; i++) assume (sizes_i[i] <= 3'd4);
    assume (4'(sizes_i[0]) + 4'(sizes_i[1]) <= 4'd7 && 4'(sizes_i[2]) + 4'(sizes_i[3]) <= 4'd7);
    assume (5'(sizes_i[0]) + 5'(sizes_i[1]) + 5'(sizes_i[2]) + 5'(sizes_i[3]) <= 5'd13);
    if (started_q[1]) begin
      same_code: assert (code == whole_q[1]);
      same_size: assert (size == size_q[1]);
    end
    cut_off: cover (started_q[1] && size_q[1] == 4'd13);
  end

endmodule
