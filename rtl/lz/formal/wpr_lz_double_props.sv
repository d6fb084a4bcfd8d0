// SPDX-License-Identifier: Apache-2.0
// wpr_lz_double: byte k of all that is made, whichever it is (k_i), is what byte k of the elements
// is: that literal, or a byte of a match with that offset. A clock makes 8 bytes at most, of two
// matches; one with an offset below 8 stands first, and the second reads history only where it may;
// the packet's end comes when all is made. Offsets have 7 bits.
module wpr_lz_double_props (
  input logic            clk_i,
  input logic            rst_ni,
  input logic [3:0]      k_i,             // a byte, constant
  input logic            s_valid_i,
  input logic            s_end_i,
  input logic            s_two_i,
  input logic [4:0]      s_n_literals_i,
  input logic [4:0]      s_n_match_i,
  input logic [3:0]      s_n_match2_i,
  input logic [1:0][6:0] s_offset_i,
  input logic            ready_i,
  input logic            reads_i
);

  logic s_ready, m_valid, m_end, m_bad;
  logic [3:0][3:0] ends;
  logic [1:0][6:0] offset;
  logic [3:0] n_literals;
  wpr_lz_double #(.OffsetWidth(7)) dut (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o     (s_ready),
    .s_end_i,
    .s_bad_i       (1'b0),
    .s_two_i,
    .s_n_literals_i,
    .s_n_match_i   (9'(s_n_match_i)),
    .s_n_match2_i  (7'(s_n_match2_i)),
    .s_offset_i,
    .ready_i,
    .reads_i,
    .m_valid_o     (m_valid),
    .m_end_o       (m_end),
    .m_bad_o       (m_bad),
    .m_ends_o      (ends),
    .m_offset_o    (offset),
    .m_n_literals_o(n_literals)
  );

  // What a byte of the elements, or one made in a clock, is: a literal, or of a match.
  typedef logic [6:0] count_t;
  typedef struct packed {
    logic literal;
    logic [6:0] offset;
  } byte_t;
  function automatic byte_t byte_at(count_t i, count_t e0, count_t e1, count_t e2,
                                    logic [1:0][6:0] offsets);
    byte_at = '{1'b0, offsets[1]};
    if (i < e2) byte_at = '{1'b1, 7'd0};
    if (i < e1) byte_at = '{1'b0, offsets[0]};
    if (i < e0) byte_at = '{1'b1, 7'd0};
  endfunction

  logic started_q = 1'b0, ended_q = 1'b0, reads_q = 1'b0;
  logic [3:0] k_q;
  count_t in_q = '0, out_q = '0;
  count_t first, all, of_clock;
  byte_t expected_q, made;
  assign first    = count_t'(s_n_literals_i) + count_t'(s_n_match_i);
  assign all      = first + (s_two_i ? count_t'(s_n_match2_i) : '0);
  assign of_clock = count_t'(k_i) - out_q;
  assign made     = byte_at(of_clock, count_t'(ends[0]), count_t'(ends[1]), count_t'(ends[2]),
                            offset);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    k_q       <= k_i;
    reads_q     <= reads_i;
    if (rst_ni && s_valid_i && s_ready && !in_q[5]) begin
      in_q    <= in_q + all;
      ended_q <= ended_q || s_end_i;
      if (count_t'(k_i) >= in_q && count_t'(k_i) < in_q + all) begin
        expected_q <= byte_at(count_t'(k_i) - in_q, count_t'(s_n_literals_i), first, first,
                              s_offset_i);
      end
    end
    if (rst_ni && m_valid && !out_q[5]) out_q <= out_q + count_t'(ends[3]);
    assume (rst_ni == started_q);
    if (started_q) assume (k_i == k_q);
    assume (s_n_literals_i <= 5'd23);
    assume (all <= 7'd31);
    assume (!s_end_i || (first == '0 && !s_two_i));
    assume (!(ended_q && s_valid_i));
    if (started_q && rst_ni && m_valid) begin
      in_order: assert (ends[0] <= ends[1] && ends[1] <= ends[2] && ends[2] <= ends[3]);
      fits: assert (ends[3] <= 4'd8);
      same: assert (!(count_t'(k_i) >= out_q && of_clock < count_t'(ends[3])) ||
                    made == expected_q);
      literals: assert (n_literals == ends[0] + ends[2] - ends[1]);
      stands_first: assert (!(ends[0] != '0 && ends[1] != ends[0] && offset[0] < 7'd8));
      not_close: assert (!(ends[3] != ends[2] && offset[1] < 7'd8));
      far: assert (!(ends[3] != ends[2] && offset[1] > 7'd64 && !reads_q));
      at_end: assert (!m_end || (ended_q && ends[3] == '0 && (out_q == in_q || in_q[5])));
    end
    all_four: cover (m_valid && ends[0] != '0 && ends[1] != ends[0] && ends[2] != ends[1] &&
                     ends[3] != ends[2] && out_q != '0);
    cut: cover (m_valid && out_q == 7'd8 && ends[0] == 4'd8);
  end

endmodule
