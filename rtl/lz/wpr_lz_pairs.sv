// SPDX-License-Identifier: Apache-2.0
// What wpr_lz_bytes makes in each clock, for 16 bytes a clock: elements in, each of literals and a
// match behind them, or two of them; what one clock makes out, which is up to two pieces of
// elements.
//
// A match of more than 16 bytes is cut into one piece of the rest, which its literals may have
// beside them, and pieces of 16. A piece joins the one before it where both together have 16 bytes
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

  function automatic logic close(offset_t offset);
    close = offset[OffsetWidth-1:4] == '0;
  endfunction

  // The element: its first pieces, and how many of 16 follow; which of both are one piece.
  logic valid_q, two_q, done, room_q;
  logic [1:0] whole_q;
  piece_t [1:0] element_q, element;
  logic [4:0] more_q, more;
  typedef enum logic [1:0] {First, Second, Long} state_e;
  state_e state_q, state_d;
  assign s_ready_o = !valid_q || (done && room_q);
  always_comb begin
    element[0] = '{s_end_i, s_bad_i, s_n_literals_i[0], s_n_match_i[4:0], s_offset_i[0]};
    element[1] = '{1'b0, 1'b0, s_n_literals_i[1], s_n_match2_i, s_offset_i[1]};
    if (!s_two_i) element[0].n_match[4] = 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      valid_q   <= s_valid_i;
      two_q     <= s_two_i;
      element_q <= element;
      more_q    <= s_two_i ? '0 : s_n_match_i[8:4];
      state_q   <= First;
      for (int k = 0; k < 2; k++) begin
        whole_q[k] <= 6'(element[k].n_literals) + 6'(element[k].n_match) <= 6'd16 &&
                      !(close(element[k].offset) && element[k].n_literals != '0 &&
                        element[k].n_match != '0);
      end
    end else if (room_q) begin
      state_q <= state_d;
      more_q  <= more;
    end
    if (!rst_ni) valid_q <= 1'b0;
  end

  logic of_second;
  logic [1:0] v1, v1_q;
  piece_t [1:0] pieces1, pieces1_q;
  piece_t long;
  assign of_second = state_q == Second;
  assign long      = '{1'b0, 1'b0, 5'd0, 5'd16, element_q[0].offset};
  always_comb begin
    pieces1[0] = element_q[of_second];
    pieces1[1] = element_q[of_second];
    pieces1[1].n_literals = '0;
    if (whole_q[of_second]) pieces1[1] = two_q ? element_q[1] : long;
    else pieces1[0].n_match = '0;
    more    = more_q - 5'(whole_q[0]);
    v1[0]   = element_q[of_second].last || element_q[of_second].n_literals != '0 ||
              element_q[of_second].n_match != '0;
    v1[1]   = !whole_q[of_second];
    state_d = Long;
    done    = more_q == '0 || (more_q == 5'd1 && whole_q[0]);
    if (state_q == First && two_q) begin
      v1[1]   = 1'b1;
      state_d = Second;
      done    = whole_q == '1;
      if (whole_q == 2'b01) v1[1] = 1'b0;
    end else if (state_q == First) begin
      if (more_q != '0) v1[1] = 1'b1;
    end else if (state_q == Second) begin
      done = 1'b1;
    end else begin
      pieces1 = {long, long};
      more    = more_q - 5'd2;
      v1      = {more_q != 5'd1, 1'b1};
      done    = more_q[4:1] == '0 || more_q == 5'd2;
    end
  end
  always_ff @(posedge clk_i) begin
    v1_q      <= v1 & {2{valid_q && room_q && rst_ni}};
    pieces1_q <= pieces1;
  end

  // ---- without gaps, and whether one joins the one before it ------------------------------------

  // Nothing joins the packet's end.
  function automatic logic [5:0] size(piece_t piece);
    size = piece.last ? 6'd31 : 6'(piece.n_literals) + 6'(piece.n_match);
  endfunction
  function automatic logic waits(piece_t piece);
    waits = piece.n_match != '0 && close(piece.offset);
  endfunction

  logic [1:0] v2_q, waits2_q, joins2;
  logic [1:0][5:0] size2_q;
  logic [5:0] size3_q;  // of the last one before
  piece_t [1:0] pieces2_q;
  assign joins2[0] = size3_q + size2_q[0] <= 6'd16 && !waits2_q[0];
  assign joins2[1] = size2_q[0] + size2_q[1] <= 6'd16 && !waits2_q[1];
  always_ff @(posedge clk_i) begin
    v2_q         <= {&v1_q, |v1_q} & {2{rst_ni}};
    pieces2_q[0] <= v1_q[0] ? pieces1_q[0] : pieces1_q[1];
    pieces2_q[1] <= pieces1_q[1];
    size2_q[0]   <= v1_q[0] ? size(pieces1_q[0]) : size(pieces1_q[1]);
    size2_q[1]   <= size(pieces1_q[1]);
    waits2_q[0]  <= v1_q[0] ? waits(pieces1_q[0]) : waits(pieces1_q[1]);
    waits2_q[1]  <= waits(pieces1_q[1]);
    if (v2_q[0]) size3_q <= v2_q[1] ? size2_q[1] : size2_q[0];
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
  queued_t head, second;
  logic write_q, read_q, joined;
  logic [1:0] valid, take, room;
  always_comb begin
    for (int k = 0; k < 2; k++) begin
      in[k] = '{joins2[k], pieces2_q[k].last, pieces2_q[k].bad, pieces2_q[k].n_literals,
                pieces2_q[k].n_literals + pieces2_q[k].n_match, pieces2_q[k].offset};
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
  assign second = heads[!read_q];
  assign joined = valid[!read_q] && second.joins;
  always_comb begin
    take[read_q]  = ready_i;
    take[!read_q] = ready_i && valid[read_q] && joined;
  end
  always_ff @(posedge clk_i) begin
    write_q        <= write_q ^ (v2_q == 2'b01);
    read_q         <= read_q ^ (ready_i && valid[read_q] && !joined);
    m_valid_o      <= ready_i && valid[read_q] && rst_ni;
    m_end_o        <= head.last;
    m_bad_o        <= head.bad;
    m_ends_o[0]    <= head.n_literals;
    m_ends_o[1]    <= head.all;
    m_ends_o[2]    <= head.all + (joined ? second.n_literals : '0);
    m_ends_o[3]    <= head.all + (joined ? second.all : '0);
    m_n_literals_o <= head.n_literals + (joined ? second.n_literals : '0);
    m_offset_o     <= {second.offset, head.offset};
    if (!rst_ni) {write_q, read_q} <= '0;
  end

endmodule
