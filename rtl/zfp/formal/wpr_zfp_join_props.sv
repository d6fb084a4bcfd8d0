// SPDX-License-Identifier: Apache-2.0
// wpr_zfp_join: pieces stand behind each other, and what is beyond the bits that are wanted is cut
// off; their sizes are added. So also where the shift takes two clocks.
module wpr_zfp_join_props (
  input logic             clk_i,
  input logic [3:0][ 3:0] bits_i,
  input logic [3:0][ 2:0] sizes_i,      // 0 to 4; two pieces have 7 at most, four 13
  input logic [1:0][64:0] long_bits_i,
  input logic [1:0][ 6:0] long_sizes_i  // 0 to 65
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

  logic [1:0][64:0] long_codes;
  logic [129:0] long_whole;
  logic [1:0][99:0] long_whole_q;
  logic [1:0][7:0] long_size_q;
  always_comb begin
    for (int i = 0; i < 2; i++) long_codes[i] = long_bits_i[i] & ~({65{1'b1}} << long_sizes_i[i]);
    long_whole = 130'(long_codes[0]) | 130'(long_codes[1]) << long_sizes_i[0];
  end

  logic [99:0] long_code;
  logic [7:0] long_size;
  wpr_zfp_join #(.Pieces(2), .Step(65), .Extra(0), .Most(100)) long_dut (
    .clk_i,
    .codes_i(long_codes),
    .sizes_i(long_sizes_i),
    .code_o (long_code),
    .size_o (long_size)
  );

  logic [1:0] started_q = '0;
  always_ff @(posedge clk_i) begin
    started_q    <= {started_q[0], 1'b1};
    whole_q      <= {whole_q[0], whole[9:0]};
    size_q       <= {size_q[0], at};
    long_whole_q <= {long_whole_q[0], long_whole[99:0]};
    long_size_q  <= {long_size_q[0], 8'(long_sizes_i[0]) + 8'(long_sizes_i[1])};
    for (int i = 0; i < 2; i++) assume (long_sizes_i[i] <= 7'd65);
    for (int i = 0; i < 4; i++) assume (sizes_i[i] <= 3'd4);
    assume (4'(sizes_i[0]) + 4'(sizes_i[1]) <= 4'd7 && 4'(sizes_i[2]) + 4'(sizes_i[3]) <= 4'd7);
    assume (5'(sizes_i[0]) + 5'(sizes_i[1]) + 5'(sizes_i[2]) + 5'(sizes_i[3]) <= 5'd13);
    if (started_q[1]) begin
      same_code: assert (code == whole_q[1]);
      same_size: assert (size == size_q[1]);
      same_long_code: assert (long_code == long_whole_q[1]);
      same_long_size: assert (long_size == long_size_q[1]);
    end
    cut_off: cover (started_q[1] && size_q[1] == 4'd13);
  end

endmodule
