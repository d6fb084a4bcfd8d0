// SPDX-License-Identifier: Apache-2.0
// wpr_sum16: a sum eight clocks behind a packet's last beat and only there, with its tag; it is
// that of the packet's words, one of which, wherever place_i says, is not 0 in a beat here.
module wpr_sum16_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        valid_i,
  input logic        last_i,
  input logic [15:0] word_i,
  input logic [ 4:0] place_i,
  input logic        odd_i,    // a last beat ends with the first byte of it
  input logic        tag_i
);

  logic valid, tag;
  logic [15:0] sum;
  logic [511:0] data;
  always_comb begin
    data = '0;
    data[16*place_i+:16] = {last_i && odd_i ? 8'd0 : word_i[15:8], word_i[7:0]};
  end
  wpr_sum16 #(.Skip(14), .Tag(1)) dut (
    .clk_i, .rst_ni, .valid_i, .last_i, .data_i(data), .tag_i, .valid_o(valid),
    .sum_o(sum), .tag_o(tag)
  );

  // In ones' complement after each beat: 16 bits, the carry added again.
  logic started_q = 1'b0, first_q = 1'b1, two_q = 1'b0;
  logic [15:0] sum_q = '0, word, base, folded;
  logic [16:0] added;
  logic [7:0] ends_q = '0, tags_q;
  logic [7:0][15:0] sums_q;
  assign word   = first_q && place_i < 5'd7 ? '0
                : {word_i[7:0], last_i && odd_i ? 8'd0 : word_i[15:8]};
  assign base   = first_q ? '0 : sum_q;
  assign added  = 17'(base) + 17'(word);
  assign folded = added[15:0] + 16'(added[16]);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    ends_q    <= {ends_q[6:0], rst_ni && valid_i && last_i};
    tags_q    <= {tags_q[6:0], tag_i};
    sums_q    <= {sums_q[6:0], folded};
    if (rst_ni && valid_i) begin
      first_q <= last_i;
      sum_q   <= folded;
      two_q   <= two_q || (!first_q && last_i);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      known: assert (valid == ends_q[7]);
      along: assert (!valid || tag == tags_q[7]);
      right: assert (!valid || sum == sums_q[7]);
    end
    used: cover (valid && two_q && sum == 16'h1234);
  end

endmodule
