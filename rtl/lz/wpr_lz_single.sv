// SPDX-License-Identifier: Apache-2.0
// What wpr_lz_bytes makes in each clock, for 8 bytes a clock: elements in, each of literals and a
// match behind them; up to 8 bytes of one element out, and where it ends, literals of the next one
// behind it.
//
// A match with an offset below 8 reads what its own clock makes, if anything stands before it: it
// begins in a clock of its own.
module wpr_lz_single #(
  parameter int unsigned OffsetWidth = 16
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                   s_valid_i,
  output logic                   s_ready_o,
  input  logic                   s_end_i,         // of the packet: no literal and no match
  input  logic                   s_bad_i,         // with s_end_i: the packet is not valid
  input  logic [4:0]             s_n_literals_i,
  input  logic [8:0]             s_n_match_i,     // bytes, or 0
  input  logic [OffsetWidth-1:0] s_offset_i,

  input  logic                   ready_i,         // for what is valid in the next clock
  output logic                   m_valid_o,
  output logic                   m_end_o,
  output logic                   m_bad_o,
  output logic [3:0][3:0]        m_ends_o,        // as wpr_lz_bytes has them: no second match
  output logic [OffsetWidth-1:0] m_offset_o,
  output logic [3:0]             m_n_literals_o
);

  // The next element; the one that is made, of which `waiting` literals are left, `all` bytes with
  // its match, and for literals of the next one, where it ends in this clock, `space`.
  typedef struct packed {
    logic        last;
    logic        bad;
    logic        close;    // a match that would read literals of its own clock
    logic [OffsetWidth-1:0] offset;
    logic [8:0]  n_match;
    logic [8:0]  all;
    logic [4:0]  waiting;
  } element_t;
  element_t next, made_q;
  logic next_valid, made_valid_q, finish;
  logic one_clock;     // the next one's match has at most 8 bytes
  logic [3:0] behind;  // a clock's bytes behind such a match; 0 at an end and of longer ones
  logic ends_q;  // the element, in this clock
  logic [3:0] space_q;  // 0 where no element is made
  wpr_skid #(.Width($bits(element_t) + 5)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o,
    .s_data_i ({s_n_match_i <= 9'd8,
                s_end_i || s_n_match_i > 9'd8 ? 4'd0 : 4'd8 - s_n_match_i[3:0], s_end_i, s_bad_i,
                s_n_match_i != '0 && s_offset_i[OffsetWidth-1:3] == '0,
                s_offset_i, s_n_match_i, s_n_match_i + 9'(s_n_literals_i), s_n_literals_i}),
    .m_valid_o(next_valid),
    .m_ready_i(finish || !made_valid_q),
    .m_data_o ({one_clock, behind, next})
  );

  logic fits, all_long, next_ends, rest_long, rest_close, rest_ends;
  logic [4:0] rest_waiting;
  logic [8:0] rest;
  assign finish       = ready_i && made_valid_q && ends_q;
  assign fits         = next.waiting <= 5'(space_q);
  assign all_long     = next.all > {4'd0, space_q[3], !space_q[3], space_q[2:0]};  // space_q + 8
  assign next_ends    = fits ? one_clock : !all_long && !next.close;
  assign rest_waiting = made_q.waiting > 5'd8 ? made_q.waiting - 5'd8 : '0;
  assign rest_close   = made_q.close && made_q.waiting != '0 && rest_waiting == '0;
  assign rest         = rest_close ? made_q.n_match : made_q.all - 9'd8;
  assign rest_long    = rest_close ? made_q.n_match > 9'd8 : made_q.all > 9'd16;
  assign rest_ends    = !rest_long && (rest_waiting == '0 || !made_q.close);
  always_ff @(posedge clk_i) begin
    if (finish || !made_valid_q) begin
      made_valid_q   <= next_valid;
      made_q         <= next;
      made_q.waiting <= fits ? '0 : next.waiting - 5'(space_q);
      made_q.all     <= fits ? next.n_match : next.all - 9'(space_q);
      ends_q         <= next_ends;
      space_q        <= !next_valid ? '0 :
                        fits ? behind :
                        all_long || next.close ? '0 : {~space_q[3], space_q[2:0]} - next.all[3:0];
    end else if (ready_i) begin
      made_q.waiting <= rest_waiting;
      made_q.all     <= rest;
      ends_q         <= rest_ends;
      space_q        <= rest_ends ? 4'd8 - rest[3:0] : '0;
    end
    if (!rst_ni) begin
      made_valid_q <= 1'b0;
      space_q      <= '0;
    end
  end

  // Literals of the element that is made, its match, and literals of the next one.
  logic [3:0] n_first, until_match, n_behind;
  logic [3:0] n_first1_q, until_match1_q, n_behind1_q, n1;
  assign n_first     = made_q.waiting > 5'd8 ? 4'd8 : made_q.waiting[3:0];
  assign until_match = made_q.close && made_q.waiting != '0 ? n_first :
                       made_q.all > 9'd8 ? 4'd8 : made_q.all[3:0];
  assign n_behind    = !next_valid ? '0 : fits ? next.waiting[3:0] : space_q;
  assign n1          = until_match1_q + n_behind1_q;
  assign m_ends_o       = {n1, n1, until_match1_q, n_first1_q};
  assign m_n_literals_o = n_first1_q + n_behind1_q;
  always_ff @(posedge clk_i) begin
    m_valid_o      <= ready_i && made_valid_q && rst_ni;
    m_end_o        <= made_q.last;
    m_bad_o        <= made_q.bad;
    n_first1_q     <= n_first;
    until_match1_q <= until_match;
    n_behind1_q    <= n_behind;
    m_offset_o     <= made_q.offset;
  end

endmodule
