// SPDX-License-Identifier: Apache-2.0
// wpr_lz_single: byte k of all that is made, whichever it is (k_i), is what byte k of the elements
// is: that literal, or a byte of a match with that offset. A clock makes 8 bytes at most, of one
// match; one with an offset below 8 stands first; the packet's end comes when all before it is made,
// and nothing behind it.
module wpr_lz_single_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic [3:0] k_i,             // a byte, constant
  input logic       s_valid_i,
  input logic       s_end_i,
  input logic [4:0] s_n_literals_i,
  input logic [4:0] s_n_match_i,
  input logic [4:0] s_offset_i,
  input logic       ready_i
);

  logic s_ready, m_valid, m_end, m_bad;
  logic [3:0][3:0] ends;
  logic [4:0] offset;
  logic [3:0] n_literals;
  wpr_lz_single #(.OffsetWidth(5)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o     (s_ready),
    .s_end_i,
    .s_bad_i       (1'b0),
    .s_n_literals_i,
    .s_n_match_i   (9'(s_n_match_i)),
    .s_offset_i,
    .ready_i,
    .m_valid_o     (m_valid),
    .m_end_o       (m_end),
    .m_bad_o       (m_bad),
    .m_ends_o      (ends),
    .m_offset_o    (offset),
    .m_n_literals_o(n_literals)
  );

  // What a byte of an element, or one made in a clock, is: a literal, or of a match.
  typedef logic [5:0] count_t;
  typedef struct packed {
    logic literal;
    logic [4:0] offset;
  } byte_t;

  logic started_q = 1'b0, ended_q = 1'b0;
  logic [3:0] k_q;
  count_t in_q = '0, out_q = '0, end_q = '0;  // end: bytes before the packet's end
  count_t all, of_element, of_clock;
  byte_t expected_q, made;
  assign all        = count_t'(s_n_literals_i) + count_t'(s_n_match_i);
  assign of_element = count_t'(k_i) - in_q;
  assign of_clock   = count_t'(k_i) - out_q;
  assign made       = of_clock < count_t'(ends[0]) || of_clock >= count_t'(ends[1]) ?
                      '{1'b1, 5'd0} : '{1'b0, offset};
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    if (rst_ni && s_valid_i && s_ready && !in_q[5]) begin
      in_q <= in_q + all;
      if (count_t'(k_i) >= in_q && of_element < all) begin
        expected_q <= of_element < count_t'(s_n_literals_i) ? '{1'b1, 5'd0} : '{1'b0, s_offset_i};
      end
    end
    if (rst_ni && s_valid_i && s_ready && s_end_i) begin
      ended_q <= 1'b1;
      end_q   <= in_q;
    end
    if (rst_ni && m_valid && !out_q[5]) out_q <= out_q + count_t'(ends[3]);
    assume (rst_ni == started_q);
    if (started_q) assume (k_i == k_q);
    assume (s_n_literals_i <= 5'd23);
    assume (s_n_match_i <= 5'd15 && all <= 6'd31);
    assume (!s_end_i || all == '0);
    assume (!(ended_q && s_valid_i && s_end_i));
    if (started_q && rst_ni && m_valid) begin
      in_order: assert (ends[0] <= ends[1] && ends[1] <= ends[2] && ends[2] == ends[3]);
      fits: assert (ends[3] <= 4'd8);
      same: assert (!(count_t'(k_i) >= out_q && of_clock < count_t'(ends[3])) ||
                    made == expected_q);
      literals: assert (n_literals == ends[0] + ends[2] - ends[1]);
      stands_first: assert (!(ends[0] != '0 && ends[1] != ends[0] && offset < 5'd8));
      at_end: assert (!m_end || (ended_q && ends[3] == '0 && (out_q == end_q || end_q[5])));
    end
    all_three: cover (m_valid && ends[0] != '0 && ends[1] != ends[0] && ends[2] == 4'd8 &&
                      ends[2] != ends[1] && out_q != '0);
    cut: cover (m_valid && out_q == 6'd8 && ends[0] == 4'd8);
  end

endmodule
