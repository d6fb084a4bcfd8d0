// SPDX-License-Identifier: Apache-2.0
// The sum of a packet's 16-bit words in network order, in ones' complement, as the checksums of IP
// and UDP have it (RFC 1071); a last odd byte is the upper half of a word. It watches a stream and
// never stops it. Bytes behind the packet's last one have to be 0. Latency 8 clocks; up to 512
// beats.
module wpr_sum16 #(
  parameter int unsigned Skip = 0,  // bytes at a packet's beginning that do not count; even
  parameter int unsigned Tag  = 1   // bits that go along from the last beat to the sum
) (
  input  logic           clk_i,
  input  logic           rst_ni,   // synchronous
  input  logic           valid_i,  // a beat moves
  input  logic           last_i,
  input  logic [511:0]   data_i,
  input  logic [Tag-1:0] tag_i,
  output logic           valid_o,
  output logic [ 15:0]   sum_o,
  output logic [Tag-1:0] tag_o
);

  localparam int unsigned Late = 5;  // clocks until a beat's sum is there
  logic first_q;
  logic [31:0][15:0] word;
  always_comb for (int i = 0; i < 32; i++) word[i] = {data_i[16*i+:8], data_i[16*i+8+:8]};

  logic [Late+2:0] valid_q;
  logic [Late-1:0] last_q;
  logic [Late+1:0][Tag-1:0] tag_q;
  // A tree of adders of two, a register behind each: a LUT a bit, where one of four takes three.
  logic [15:0][16:0] two_q;
  logic [7:0][17:0] four_q;
  logic [3:0][18:0] eight_q;
  logic [1:0][19:0] half_q;
  logic [20:0] all_q;
  logic [29:0] sum_q;
  logic [16:0] fold_q;
  logic fresh_q;  // all_q is a packet's first
  always_ff @(posedge clk_i) begin
    if (valid_i) first_q <= last_i;
    for (int i = 0; i < 16; i++) begin
      if (4 * i + 2 < int'(Skip)) begin  // both words or none: a register's reset, not a LUT
        two_q[i] <= first_q ? '0 : 17'(word[2*i+1]) + 17'(word[2*i]);
      end else begin
        two_q[i] <= 17'(word[2*i+1]) + 17'(first_q && 4 * i < int'(Skip) ? 16'd0 : word[2*i]);
      end
    end
    for (int i = 0; i < 8; i++) four_q[i] <= 18'(two_q[2*i]) + 18'(two_q[2*i+1]);
    for (int i = 0; i < 4; i++) eight_q[i] <= 19'(four_q[2*i]) + 19'(four_q[2*i+1]);
    for (int i = 0; i < 2; i++) half_q[i] <= 20'(eight_q[2*i]) + 20'(eight_q[2*i+1]);
    all_q <= 21'(half_q[0]) + 21'(half_q[1]);
    if (valid_q[Late-1]) begin
      sum_q   <= (fresh_q ? 30'd0 : sum_q) + 30'(all_q);
      fresh_q <= last_q[Late-1];
    end
    fold_q  <= 17'(sum_q[15:0]) + 17'(sum_q[29:16]);
    sum_o   <= fold_q[15:0] + 16'(fold_q[16]);
    valid_q <= {valid_q[Late+1:Late], valid_q[Late-1] && last_q[Late-1], valid_q[Late-2:0],
                valid_i};
    last_q  <= {last_q[Late-2:0], last_i};
    tag_q   <= {tag_q[Late:0], tag_i};
    tag_o   <= tag_q[Late+1];
    if (!rst_ni) begin
      first_q <= 1'b1;
      fresh_q <= 1'b1;
      valid_q <= '0;
    end
  end
  assign valid_o = valid_q[Late+2];

endmodule
