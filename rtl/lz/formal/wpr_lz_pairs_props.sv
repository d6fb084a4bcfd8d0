// SPDX-License-Identifier: Apache-2.0
// wpr_lz_pairs: byte k of all that is made, whichever it is (k_i), is what byte k of the elements is:
// that literal, or a byte of a match with that offset. A clock makes 16 bytes at most; a match with
// an offset below 16 stands first; the packet's end comes when all is made.
module wpr_lz_pairs_props (
  input logic             clk_i,
  input logic             rst_ni,
  input logic [4:0]       k_i,             // a byte, constant
  input logic             s_valid_i,
  input logic             s_end_i,
  input logic             s_two_i,
  input logic [1:0][4:0]  s_n_literals_i,
  input logic [5:0]       s_n_match_i,
  input logic [4:0]       s_n_match2_i,
  input logic [1:0][4:0]  s_offset_i,
  input logic             ready_i
);

  logic s_ready, m_valid, m_end, m_bad;
  logic [3:0][4:0] ends;
  logic [1:0][4:0] offset;
  logic [4:0] n_literals;
  wpr_lz_pairs #(.OffsetWidth(5)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o     (s_ready),
    .s_end_i,
    .s_bad_i       (1'b0),
    .s_two_i,
    .s_n_literals_i,
    .s_n_match_i   (9'(s_n_match_i)),
    .s_n_match2_i,
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
  typedef logic [6:0] count_t;
  typedef struct packed {
    logic literal;
    logic [4:0] offset;
  } byte_t;
  function automatic byte_t byte_at(count_t i, count_t e0, count_t e1, count_t e2,
                                    logic [1:0][4:0] offsets);
    byte_at = '{1'b0, offsets[1]};
    if (i < e2) byte_at = '{1'b1, 5'd0};
    if (i < e1) byte_at = '{1'b0, offsets[0]};
    if (i < e0) byte_at = '{1'b1, 5'd0};
  endfunction

  logic started_q = 1'b0, ended_q = 1'b0;
  logic [4:0] k_q;
  count_t in_q = '0, out_q = '0;
  count_t first, all;  // bytes of an element
  byte_t expected_q, made;
  assign first = count_t'(s_n_literals_i[0]) + count_t'(s_n_match_i);
  assign all   = first + (s_two_i ? count_t'(s_n_literals_i[1]) + count_t'(s_n_match2_i) : '0);
  assign made  = byte_at(count_t'(k_i) - out_q, count_t'(ends[0]), count_t'(ends[1]),
                         count_t'(ends[2]), offset);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    if (rst_ni && s_valid_i && s_ready && !in_q[6]) begin
      in_q    <= in_q + all;
      ended_q <= ended_q || s_end_i;
      if (count_t'(k_i) >= in_q && count_t'(k_i) < in_q + all) begin
        expected_q <= byte_at(count_t'(k_i) - in_q, count_t'(s_n_literals_i[0]), first,
                              first + count_t'(s_n_literals_i[1]), s_offset_i);
      end
    end
    if (rst_ni && m_valid && !out_q[6]) out_q <= out_q + count_t'(ends[3]);
    assume (rst_ni == started_q);
    if (started_q) assume (k_i == k_q);
    assume (s_n_literals_i[0] <= 5'd16 && s_n_literals_i[1] <= 5'd16);
    assume (s_n_match_i <= 6'd40);
    assume (!s_two_i || (first <= 7'd16 && 6'(s_n_literals_i[1]) + 6'(s_n_match2_i) <= 6'd16));
    assume (!s_end_i || all == '0);
    assume (!(ended_q && s_valid_i));
    if (started_q && rst_ni && m_valid) begin
      in_order: assert (ends[0] <= ends[1] && ends[1] <= ends[2] && ends[2] <= ends[3]);
      fits: assert (ends[3] <= 5'd16);
      same: assert (!(count_t'(k_i) >= out_q && count_t'(k_i) < out_q + count_t'(ends[3])) ||
                    made == expected_q);
      literals: assert (n_literals == ends[0] + ends[2] - ends[1]);
      stands_first: assert (!(ends[0] != '0 && ends[1] != ends[0] && offset[0] < 5'd16));
      not_close: assert (!(ends[2] != '0 && ends[3] != ends[2] && offset[1] < 5'd16));
      at_end: assert (!m_end || (ended_q && ends[3] == '0 && (out_q == in_q || in_q[6])));
    end
    long_one: cover (m_valid && out_q == 7'd16 && ends[3] == 5'd16 && ends[0] == '0);
    two: cover (m_valid && ends[0] != '0 && ends[1] != ends[0] && ends[2] != ends[1] &&
                ends[3] != ends[2] && out_q != '0);
  end

endmodule
