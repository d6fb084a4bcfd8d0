// SPDX-License-Identifier: Apache-2.0
// Pieces of a code to a packet of 8 bytes a beat. A piece has up to 4 bytes, up to 8 literals and
// up to 3 bytes behind them, of which some may be nothing; it is given in one clock, and its
// literals four clocks later, as wpr_lz_sequences gives them.
module wpr_lz_pieces (
  input  logic        clk_i,
  input  logic        rst_ni,     // synchronous
  output logic        room_o,     // for a piece
  input  logic        s_valid_i,
  input  logic [ 2:0] s_n_head_i,
  input  logic [31:0] s_head_i,
  input  logic [ 3:0] s_n_i,      // literals
  input  logic [ 1:0] s_n_tail_i,
  input  logic [23:0] s_tail_i,   // bytes beyond n_tail are 0
  input  logic        s_last_i,
  input  logic [63:0] bytes_i,    // literals of the piece four clocks ago

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast
  output logic        m_axis_tlast
);

  localparam int unsigned LogQueue = 4;
  typedef struct packed {
    logic [2:0] n_head;
    logic [31:0] head;
    logic [3:0] n;
    logic [1:0] n_tail;
    logic [23:0] tail;
    logic last;
  } piece_t;

  // ---- a piece without gaps ---------------------------------------------------------------------

  piece_t piece, piece4;
  logic [5:1] v_q;
  logic v6_q, last5_q, last6_q;
  logic [1:0] n_tail5_q;
  logic [23:0] tail5_q;
  logic [63:0] literals4;
  logic [95:0] front5_q;  // head and literals
  logic [127:0] data6_q;
  logic [4:0] n6_q;
  logic [3:0] n_front5_q;
  assign piece = {s_n_head_i, s_head_i, s_n_i, s_n_tail_i, s_tail_i, s_last_i};
  wpr_delay #(.Width($bits(piece_t)), .Moves(4)) until_literals (
    .clk_i,
    .move_i  (1'b1),
    .s_data_i(piece),
    .m_data_o(piece4)
  );
  assign literals4 = bytes_i & ~(64'hFFFFFFFFFFFFFFFF << {piece4.n, 3'b0});
  always_ff @(posedge clk_i) begin
    v_q <= {v_q[4:1], s_valid_i} & {5{rst_ni}};
    {n_tail5_q, tail5_q, last5_q} <= {piece4.n_tail, piece4.tail, piece4.last};
    unique case (piece4.n_head)
      3'd0: front5_q <= {32'd0, literals4};
      3'd1: front5_q <= {24'd0, literals4, piece4.head[7:0]};
      3'd2: front5_q <= {16'd0, literals4, piece4.head[15:0]};
      3'd3: front5_q <= {8'd0, literals4, piece4.head[23:0]};
      default: front5_q <= {literals4, piece4.head};
    endcase
    n_front5_q <= 4'(piece4.n_head) + piece4.n;
    v6_q       <= v_q[5] && rst_ni;
    last6_q    <= last5_q;
    n6_q       <= 5'(n_front5_q) + 5'(n_tail5_q);
    data6_q    <= 128'(front5_q) | 128'(tail5_q) << {n_front5_q, 3'b0};
  end

  logic [LogQueue:0] level;
  logic piece_valid, piece_ready, piece_last, packed_valid, packed_ready, packed_last;
  logic [127:0] piece_data, packed_data;
  logic [4:0] piece_n, packed_n;
  wpr_fifo #(.Width(134), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(v6_q),
    .s_ready_o(),  // there is room: room_o
    .s_data_i ({last6_q, n6_q, data6_q}),
    .m_valid_o(piece_valid),
    .m_ready_i(piece_ready),
    .m_data_o ({piece_last, piece_n, piece_data}),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) room_o <= rst_ni && level < (LogQueue + 1)'(7);

  // ---- pieces behind each other -----------------------------------------------------------------

  wpr_pack #(.Lanes(16), .Unit(8)) pack (
    .clk_i,
    .rst_ni,
    .s_valid_i(piece_valid),
    .s_ready_o(piece_ready),
    .s_data_i (piece_data),
    .s_size_i (piece_n),
    .s_last_i (piece_last),
    .m_valid_o(packed_valid),
    .m_ready_i(packed_ready),
    .m_data_o (packed_data),
    .m_size_o (packed_n),
    .m_last_o (packed_last)
  );
  logic [15:0] packed_keep;
  always_comb for (int i = 0; i < 16; i++) packed_keep[i] = 5'(i) < packed_n;
  wpr_narrow #(.Wide(16), .Narrow(8)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(packed_valid),
    .s_axis_tready(packed_ready),
    .s_axis_tdata (packed_data),
    .s_axis_tkeep (packed_keep),
    .s_axis_tlast (packed_last),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
