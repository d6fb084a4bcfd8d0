// SPDX-License-Identifier: Apache-2.0
// What wpr_lz_bytes makes in each clock, for 16 bytes a clock: elements in, each of literals and a
// match behind them, or two of them; what one clock makes out, which is up to two pieces of
// elements.
//
// An element of more than 16 bytes is cut: its first 16, the rest of them that is no whole 16, and
// pieces of 16. A piece joins the one before it where both together have 16 bytes
// at most; that is known before they wait, so that the last step is a choice. A match with an offset
// below 16 reads what its own clock makes, if anything stands before it: it joins nothing.
module wpr_lz_pairs #(
  parameter int unsigned OffsetWidth = 16
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                        s_valid_i,
  output logic                        s_ready_o,
  input  logic                        s_end_i,         // of the packet: no literal and no match
  input  logic                        s_bad_i,         // with s_end_i: the packet is not valid
  input  logic                        s_two_i,         // elements, each of 16 bytes at most
  input  logic [1:0][4:0]             s_n_literals_i,  // 16 at most
  input  logic [8:0]                  s_n_match_i,     // bytes, or 0
  input  logic [4:0]                  s_n_match2_i,    // of the second
  input  logic [1:0][OffsetWidth-1:0] s_offset_i,

  input  logic                        ready_i,
  output logic                        m_valid_o,
  output logic                        m_end_o,
  output logic                        m_bad_o,
  output logic [3:0][4:0]             m_ends_o,        // as wpr_lz_bytes has them
  output logic [1:0][OffsetWidth-1:0] m_offset_o,
  output logic [4:0]                  m_n_literals_o
);

  localparam int unsigned LogQueue = 4;  // of each of two
  typedef logic [OffsetWidth-1:0] offset_t;
  typedef struct packed {
    logic last;
    logic bad;
    logic [4:0] n_literals;
    logic [4:0] n_match;
    offset_t offset;
  } piece_t;

  // ---- elements to pieces -----------------------------------------------------------------------

  function automatic logic [4:0] size(piece_t piece);
    size = piece.n_literals + piece.n_match;
  endfunction
  // It may read what its own clock makes, but for its own beginning.
  function automatic logic close(piece_t piece);
    close = piece.n_match != '0 && piece.offset[OffsetWidth-1:4] == '0;
  endfunction

  // The element that came, how many bytes it has, and whether its literals are a piece without its
  // match.
  logic load, valid0_q, two0_q, apart0_q, apart_second0_q;
  piece_t element0_q, second0_q, second;
  logic [8:0] n_match0_q;
  logic [9:0] all0_q;
  assign second    = '{1'b0, 1'b0, s_n_literals_i[1], s_n_match2_i, s_offset_i[1]};
  assign s_ready_o = !valid0_q || load;
  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      valid0_q        <= s_valid_i;
      two0_q          <= s_two_i;
      element0_q      <= '{s_end_i, s_bad_i, s_n_literals_i[0], s_n_match_i[4:0], s_offset_i[0]};
      second0_q       <= second;
      n_match0_q      <= s_n_match_i;
      all0_q          <= 10'(s_n_match_i) + 10'(s_n_literals_i[0]);
      apart0_q        <= s_n_literals_i[0] != '0 && s_n_match_i != '0 &&
                         s_offset_i[0][OffsetWidth-1:4] == '0;
      apart_second0_q <= s_n_literals_i[1] != '0 && close(second);
    end
    if (!rst_ni) valid0_q <= 1'b0;
  end

  // What it becomes: its first 16 bytes, or its literals alone before a match that is close; the rest
  // that is no whole 16; and so many of 16. Of a second one just itself.
  piece_t first, rest, first_q, rest_q, second_q;
  logic long_one, even;
  logic [9:0] cut;  // bytes in pieces
  logic [4:0] whole;
  assign long_one = all0_q[9:5] != '0 || (all0_q[4] && all0_q[3:0] != '0);
  assign cut      = apart0_q ? {1'b0, n_match0_q} : all0_q;
  assign even     = cut[3:0] == '0;
  assign whole    = apart0_q || long_one ? 5'(cut[9:4] - 6'(!apart0_q) - 6'(even)) : '0;
  always_comb begin
    first           = element0_q;
    rest            = element0_q;
    rest.last       = 1'b0;
    rest.n_literals = '0;
    rest.n_match    = '0;
    if (long_one) first.n_match = 5'd16 - element0_q.n_literals;
    if (apart0_q) first.n_match = '0;
    if (apart0_q || long_one) rest.n_match = {even, cut[3:0]};
  end

  logic valid_q, two_q, two_at_once_q, apart_second_q, done, room_q;
  logic [4:0] whole_q;
  typedef enum logic [1:0] {First, Second, Long} state_e;
  state_e state_q;
  assign load = !valid_q || (done && room_q);
  always_ff @(posedge clk_i) begin
    if (load) begin
      valid_q        <= valid0_q;
      two_q          <= two0_q;
      two_at_once_q  <= !apart0_q && !apart_second0_q;
      apart_second_q <= apart_second0_q;
      first_q        <= first;
      rest_q         <= rest;
      second_q       <= second0_q;
      whole_q        <= whole;
      state_q        <= First;
    end else if (room_q) begin
      state_q <= two_q ? Second : Long;
      if (state_q == Long) whole_q <= whole_q - 5'd2;
    end
    if (!rst_ni) valid_q <= 1'b0;
  end

  logic [1:0] v1, v1_q;
  piece_t [1:0] pieces1, pieces1_q;
  always_comb begin
    unique case (state_q)
      First: begin
        pieces1 = {rest_q.n_match != '0 ? rest_q : second_q, first_q};
        v1[0]   = first_q.last || first_q.n_literals != '0 || first_q.n_match != '0;
        v1[1]   = rest_q.n_match != '0 || (two_q && !apart_second_q);
        done    = two_q ? two_at_once_q : whole_q == '0;
      end
      Second: begin
        pieces1 = {second_q, second_q};
        pieces1[1].n_literals = '0;
        if (apart_second_q) pieces1[0].n_match = '0;
        v1      = {apart_second_q, 1'b1};
        done    = 1'b1;
      end
      default: begin
        pieces1 = {rest_q, rest_q};
        pieces1[0].n_match = 5'd16;
        pieces1[1].n_match = 5'd16;
        v1      = {whole_q != 5'd1, 1'b1};
        done    = whole_q[4:2] == '0 && whole_q[1:0] != 2'd3;
      end
    endcase
  end
  always_ff @(posedge clk_i) begin
    v1_q      <= v1 & {2{valid_q && room_q && rst_ni}};
    pieces1_q <= pieces1;
  end

  // ---- without gaps, and whether one joins the one before it ------------------------------------

  logic [1:0] v2_q, close2_q, joins2;
  logic [1:0][4:0] size2_q;
  logic [4:0] size3_q;  // of the one before, and
  logic last3_q;
  piece_t [1:0] pieces2_q;
  assign joins2[0] = 6'(size3_q) + 6'(size2_q[0]) <= 6'd16 && !close2_q[0] && !pieces2_q[0].last &&
                     !last3_q;
  assign joins2[1] = 6'(size2_q[0]) + 6'(size2_q[1]) <= 6'd16 && !close2_q[1];
  always_ff @(posedge clk_i) begin
    v2_q         <= {&v1_q, |v1_q} & {2{rst_ni}};
    pieces2_q[0] <= v1_q[0] ? pieces1_q[0] : pieces1_q[1];
    pieces2_q[1] <= pieces1_q[1];
    size2_q[0]   <= v1_q[0] ? size(pieces1_q[0]) : size(pieces1_q[1]);
    size2_q[1]   <= size(pieces1_q[1]);
    close2_q[0]  <= v1_q[0] ? close(pieces1_q[0]) : close(pieces1_q[1]);
    close2_q[1]  <= close(pieces1_q[1]);
    if (v2_q[0]) size3_q <= v2_q[1] ? size2_q[1] : size2_q[0];
    if (v2_q[0]) last3_q <= pieces2_q[0].last;
  end

  // ---- pieces in two queues, in turn; a clock takes one, or two that are joined -----------------

  typedef struct packed {
    logic joins;
    logic last;
    logic bad;
    logic [4:0] n_literals;
    logic [4:0] all;
    offset_t offset;
  } queued_t;
  queued_t [1:0] in, heads;
  queued_t head, next;
  logic write_q, read_q, joined;
  logic [1:0] valid, take, room;
  always_comb begin
    for (int k = 0; k < 2; k++) begin
      in[k] = '{joins2[k], pieces2_q[k].last, pieces2_q[k].bad, pieces2_q[k].n_literals,
                size2_q[k], pieces2_q[k].offset};
    end
  end
  for (genvar b = 0; b < 2; b++) begin : g_queue
    logic [LogQueue:0] level;
    wpr_fifo #(.Width($bits(queued_t)), .LogDepth(LogQueue)) queue (
      .clk_i,
      .rst_ni,
      .s_valid_i(v2_q[write_q != 1'(b)]),
      .s_ready_o(),
      .s_data_i (in[write_q != 1'(b)]),
      .m_valid_o(valid[b]),
      .m_ready_i(take[b]),
      .m_data_o (heads[b]),
      .level_o  (level)
    );
    always_ff @(posedge clk_i) room[b] <= level < (LogQueue + 1)'(10);
  end
  assign room_q = &room;
  assign head   = heads[read_q];
  assign next   = heads[!read_q];
  assign joined = valid[!read_q] && next.joins;
  always_comb begin
    for (int b = 0; b < 2; b++) take[b] = ready_i && (read_q == 1'(b) || (valid[read_q] && joined));
  end
  always_ff @(posedge clk_i) begin
    write_q        <= write_q ^ (v2_q == 2'b01);
    read_q         <= read_q ^ (ready_i && valid[read_q] && !joined);
    m_valid_o      <= ready_i && valid[read_q] && rst_ni;
    m_end_o        <= head.last;
    m_bad_o        <= head.bad;
    m_ends_o[0]    <= head.n_literals;
    m_ends_o[1]    <= head.all;
    m_ends_o[2]    <= head.all + (joined ? next.n_literals : '0);
    m_ends_o[3]    <= head.all + (joined ? next.all : '0);
    m_n_literals_o <= head.n_literals + (joined ? next.n_literals : '0);
    m_offset_o     <= {next.offset, head.offset};
    if (!rst_ni) {write_q, read_q} <= '0;
  end

endmodule
