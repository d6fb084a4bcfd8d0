// SPDX-License-Identifier: Apache-2.0
// The sum of a packet's 16-bit words in network order, in ones' complement, as the checksums of
// IP and UDP have it (RFC 1071); a last odd byte is the upper half of a word. It watches a stream and
// never stops it. Latency 6 clocks; up to 512 beats.
module wpr_sum16 #(
  parameter int unsigned Skip = 0,  // bytes that a packet begins with and that do not count; even
  parameter int unsigned Tag  = 1   // what goes along from the last beat to the sum
) (
  input  logic           clk_i,
  input  logic           rst_ni,   // synchronous
  input  logic           valid_i,  // a beat moves
  input  logic           last_i,
  input  logic [511:0]   data_i,
  input  logic [ 63:0]   keep_i,
  input  logic [Tag-1:0] tag_i,
  output logic           valid_o,
  output logic [ 15:0]   sum_o,
  output logic [Tag-1:0] tag_o
);

  logic first_q;
  logic [31:0][15:0] word;
  always_comb begin
    for (int i = 0; i < 32; i++) begin
      word[i] = {keep_i[2*i] ? data_i[16*i+:8] : 8'd0, keep_i[2*i+1] ? data_i[16*i+8+:8] : 8'd0};
      if (first_q && 2 * i < int'(Skip)) word[i] = '0;
    end
  end

  logic [5:0] valid_q;
  logic [2:0] last_q;
  logic [4:0][Tag-1:0] tag_q;
  logic [15:0][16:0] pair_q;
  logic [3:0][18:0] eight_q;
  logic [20:0] all_q;
  logic [29:0] sum_q;
  logic [16:0] fold_q;
  logic fresh_q;  // all_q is a packet's first
  always_ff @(posedge clk_i) begin
    if (valid_i) first_q <= last_i;
    for (int i = 0; i < 16; i++) pair_q[i] <= 17'(word[2*i]) + 17'(word[2*i+1]);
    for (int i = 0; i < 4; i++) begin
      eight_q[i] <= 19'(pair_q[4*i]) + 19'(pair_q[4*i+1]) + 19'(pair_q[4*i+2]) + 19'(pair_q[4*i+3]);
    end
    all_q <= 21'(eight_q[0]) + 21'(eight_q[1]) + 21'(eight_q[2]) + 21'(eight_q[3]);
    if (valid_q[2]) begin
      sum_q   <= (fresh_q ? 30'd0 : sum_q) + 30'(all_q);
      fresh_q <= last_q[2];
    end
    fold_q  <= 17'(sum_q[15:0]) + 17'(sum_q[29:16]);
    sum_o   <= fold_q[15:0] + 16'(fold_q[16]);
    valid_q <= {valid_q[4], valid_q[3], valid_q[2] && last_q[2], valid_q[1:0], valid_i};
    last_q  <= {last_q[1:0], last_i};
    tag_q   <= {tag_q[3:0], tag_i};
    tag_o   <= tag_q[4];
    if (!rst_ni) begin
      first_q <= 1'b1;
      fresh_q <= 1'b1;
      valid_q <= '0;
    end
  end
  assign valid_o = valid_q[5];

endmodule
