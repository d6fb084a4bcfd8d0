// SPDX-License-Identifier: Apache-2.0
// What wpr_lz_bytes makes in each clock, for 8 bytes and two matches a clock: elements in, each of
// literals and a match behind them, or one and a match that stands alone; up to 8 bytes of one
// element out, and where it ends, as much of the next one as fits.
//
// A match with an offset below 8 reads what its own clock makes, if anything stands before it: it
// begins in a clock of its own. A second match reads history, and not only the last 64 bytes, where
// reads_i says that it may; else literals alone stand there.
module wpr_lz_double #(
  parameter int unsigned OffsetWidth = 16
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                        s_valid_i,
  output logic                        s_ready_o,
  input  logic                        s_end_i,         // of the packet: no literal and no match
  input  logic                        s_bad_i,         // with s_end_i: the packet is not valid
  input  logic                        s_two_i,         // a match behind the element
  input  logic [4:0]                  s_n_literals_i,
  input  logic [8:0]                  s_n_match_i,     // bytes, or 0
  input  logic [6:0]                  s_n_match2_i,    // of the second
  input  logic [1:0][OffsetWidth-1:0] s_offset_i,

  input  logic                        ready_i,         // for what is valid in the next clock
  input  logic                        reads_i,         // it may have a second match of history
  output logic                        m_valid_o,
  output logic                        m_end_o,
  output logic                        m_bad_o,
  output logic [3:0][3:0]             m_ends_o,        // as wpr_lz_bytes has them
  output logic [1:0][OffsetWidth-1:0] m_offset_o,
  output logic [3:0]                  m_n_literals_o
);

  typedef logic [OffsetWidth-1:0] offset_t;
  typedef struct packed {
    logic       last;
    logic       bad;
    logic       close;    // a match that would read literals of its own clock
    offset_t    offset;
    logic [8:0] n_match;
    logic [8:0] all;      // bytes with its match
    logic [4:0] waiting;  // literals
  } element_t;
  typedef struct packed {
    logic     behind;    // its match may be made behind another one,
    logic     reads;     // where it may read history
    logic     brief;     // it has 8 bytes at most
    logic     alone;     // a clock makes it whole
    element_t element;
  } queued_t;
  function automatic queued_t queued(logic last, logic bad, logic [4:0] n_literals,
                                     logic [8:0] n_match, offset_t offset);
    automatic logic [8:0] all = n_match + 9'(n_literals);
    automatic logic close = n_match != '0 && offset < offset_t'(8);
    queued.behind  = !close && !last;
    queued.reads   = n_match != '0 && offset >= offset_t'(64);
    queued.brief   = all <= 9'd8;
    queued.alone   = all <= 9'd8 && (!close || n_literals == '0);
    queued.element = '{last, bad, close, offset, n_match, all, n_literals};
  endfunction

  // ---- elements in two queues, in turn ----------------------------------------------------------

  queued_t [1:0] in, heads;
  logic [1:0] room, put, valid, take;
  logic write_q, read_q;
  always_comb begin
    in[0] = queued(s_end_i, s_bad_i, s_n_literals_i, s_n_match_i, s_offset_i[0]);
    in[1] = queued(1'b0, 1'b0, '0, 9'(s_n_match2_i), s_offset_i[1]);
    for (int b = 0; b < 2; b++) put[b] = s_valid_i && s_ready_o && (write_q == 1'(b) || s_two_i);
  end
  assign s_ready_o = &room;
  for (genvar b = 0; b < 2; b++) begin : g_queue
    wpr_skid #(.Width($bits(queued_t))) queue (
      .clk_i,
      .rst_ni,
      .s_valid_i(put[b]),
      .s_ready_o(room[b]),
      .s_data_i (in[write_q!=1'(b)]),
      .m_valid_o(valid[b]),
      .m_ready_i(take[b]),
      .m_data_o (heads[b])
    );
  end

  // ---- the element that is made; behind its end all of the next one, as much of it as fits, or
  // ---- literals of it

  element_t next, behind, made_q;  // of what is made: what is left in this clock
  logic next_valid, behind_valid, made_valid_q, both, alone, load, whole;
  logic ends_q;  // the element, in this clock
  logic [3:0] space_q;  // 0 where no element is made, or where it does not end
  assign next         = heads[read_q].element;
  assign behind       = heads[!read_q].element;
  assign both         = heads[read_q].behind && (!heads[read_q].reads || reads_i);
  assign alone        = heads[!read_q].alone;
  assign next_valid   = valid[read_q];
  assign behind_valid = valid[!read_q];
  assign load         = !made_valid_q || (ready_i && ends_q);
  assign whole        = next_valid && both && heads[read_q].brief && next.all[3:0] <= space_q;
  always_comb for (int b = 0; b < 2; b++) take[b] = load && (read_q == 1'(b) || whole);

  function automatic logic [3:0] space(logic ends, logic [3:0] made);
    space = ends ? 4'd8 - made : '0;
  endfunction
  logic fits, match_left, all_long, next_ends, rest_long, rest_close, rest_ends;
  logic [4:0] rest_waiting;
  logic [8:0] rest;
  assign fits         = next.waiting <= 5'(space_q);
  assign all_long     = next.all > 9'd16 || 5'(next.all) > 5'(space_q) + 5'd8;
  assign match_left   = fits && !both;  // all of it, and nothing else
  assign next_ends    = match_left ? next.n_match <= 9'd8 : !all_long && !next.close;
  assign rest_waiting = made_q.waiting > 5'd8 ? made_q.waiting - 5'd8 : '0;
  assign rest_close   = made_q.close && made_q.waiting != '0 && rest_waiting == '0;
  assign rest         = rest_close ? made_q.n_match : made_q.all - 9'd8;
  assign rest_long    = rest_close ? made_q.n_match > 9'd8 : made_q.all > 9'd16;
  assign rest_ends    = !rest_long && (rest_waiting == '0 || !made_q.close);
  always_ff @(posedge clk_i) begin
    if (load && whole) begin
      made_valid_q <= behind_valid;
      made_q       <= behind;
      ends_q       <= alone;
      space_q      <= space(behind_valid && alone && !behind.last, behind.all[3:0]);
    end else if (load) begin
      made_valid_q   <= next_valid;
      made_q         <= next;
      made_q.waiting <= fits ? '0 : next.waiting - 5'(space_q);
      made_q.all     <= match_left ? next.n_match : next.all - 9'(space_q);
      ends_q         <= next_ends;
      space_q        <= !next_valid || next.last || !next_ends ? '0 :
                        match_left ? 4'd8 - next.n_match[3:0] :
                        {~space_q[3], space_q[2:0]} - next.all[3:0];
    end else if (ready_i) begin
      made_q.waiting <= rest_waiting;
      made_q.all     <= rest;
      ends_q         <= rest_ends;
      space_q        <= space(rest_ends, rest[3:0]);
    end
    write_q <= write_q ^ (s_valid_i && s_ready_o && !s_two_i);
    read_q  <= read_q ^ (load && next_valid && !(whole && behind_valid));
    if (!rst_ni) begin
      made_valid_q <= 1'b0;
      space_q      <= '0;
      write_q      <= 1'b0;
      read_q       <= 1'b0;
    end
  end

  // Literals of the element that is made, its match, and literals of the next one and its match.
  logic [3:0] n_first, until_match, n_literals;
  logic [3:0] n_first1_q, until_match1_q, n_literals1_q, n_behind1_q;
  assign n_first     = made_q.waiting > 5'd8 ? 4'd8 : made_q.waiting[3:0];
  assign until_match = made_q.close && made_q.waiting != '0 ? n_first :
                       made_q.all > 9'd8 ? 4'd8 : made_q.all[3:0];
  assign n_literals  = !next_valid ? '0 : fits ? next.waiting[3:0] : space_q;
  assign m_ends_o[0]    = n_first1_q;
  assign m_ends_o[1]    = until_match1_q;
  assign m_ends_o[2]    = until_match1_q + n_literals1_q;
  assign m_ends_o[3]    = until_match1_q + n_behind1_q;
  assign m_n_literals_o = n_first1_q + n_literals1_q;
  always_ff @(posedge clk_i) begin
    m_valid_o      <= ready_i && made_valid_q && rst_ni;
    m_end_o        <= made_q.last;
    m_bad_o        <= made_q.bad;
    n_first1_q     <= n_first;
    until_match1_q <= until_match;
    n_literals1_q  <= n_literals;
    n_behind1_q    <= whole ? next.all[3:0] : next_valid && both ? space_q : n_literals;
    m_offset_o     <= {next.offset, made_q.offset};
  end

endmodule
