// SPDX-License-Identifier: Apache-2.0
// zfp encoder for float32 (codecs/zfp/spec.md, Stream): a packet of cells in, 16 values a beat; a
// packet with the stream of libzfp out, filled up with zeros to a multiple of 8 bytes.
//
// With Dims = 2 a beat is a cell, with Dims = 1 four cells; x runs fastest. s_axis_tuser is the
// place of the beat's last value that is there: with Dims = 2 the cell is filled up from there, as
// the specification says, to the right and then below (of tuser, bits 3-2 are y and 1-0 x); with
// Dims = 1 the last cell is, and there are none behind it.
//
// Does not gather cells from the rows of an array, and does not write the payload's head and index.
// Blocks that have to be coded reversibly (NaN, infinities; the specification says which) are not
// for it: their code would be another.
//
// Rate: a beat a clock, and a clock a packet; with pieces of more than a beat out, a clock more
// each. Latency about 30 clocks. A queue takes what is on its way, so that nothing stops a stage.
module wpr_zfp_enc #(
  parameter int unsigned Dims     = 2,    // 1 or 2
  parameter int unsigned CellBits = 256,  // that a cell may have; 140 or 536 hold all modes
  // Bits of which cells, or four of them, have a multiple. 1 where Bytes do not hold a beat's code.
  parameter int unsigned Unit     = 1,
  parameter int unsigned Bytes    = 32,   // of a beat out; all of a beat in, or half of that
  // It takes 2^LogQueue - 1 beats whose code does not leave, 31 or more.
  parameter int unsigned LogQueue = 6,
  localparam int unsigned SizeBits = $clog2(CellBits + 1)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // As wpr_zfp_cell has them. Constant from two clocks before a packet until it has left.
  input logic                cfg_rate_i,
  input logic [SizeBits-1:0] cfg_bits_i,
  input logic [         5:0] cfg_planes_i,
  input logic signed [  9:0] cfg_offset_i,

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [  3:0] s_axis_tuser,
  input  logic         s_axis_tlast,

  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [8*Bytes-1:0] m_axis_tdata,
  output logic [  Bytes-1:0] m_axis_tkeep,  // all ones but with tlast
  output logic               m_axis_tlast,

  // The bits of each group of 1024 values, for the payload's index, about when its last bit leaves.
  output logic        m_group_tvalid,
  input  logic        m_group_tready,
  output logic [16:0] m_group_tdata,
  output logic        m_group_tlast  // the packet's last one
);

  localparam int unsigned Values = 1 << (2 * Dims);
  localparam int unsigned Cells = 16 / Values;
  localparam int unsigned PieceBits = Cells * CellBits;
  localparam int unsigned OutBits = 8 * Bytes;
  localparam int unsigned PieceSizeBits = $clog2(PieceBits + 1);
  // Clocks from a beat in to its code, and to its piece in the queue.
  localparam int unsigned Coded = 8 + 7 * Dims + wpr_zfp_pkg::join_clocks(32, Values, Values - 1);
  localparam int unsigned Latency = Coded + wpr_zfp_pkg::join_clocks(Cells, CellBits, 0);

  // ---- beats that may come: as many as the queue takes ------------------------------------------

  logic [LogQueue:0] inside_q;  // beats that have come, and not left the queue
  logic take, pop, room_q;
  assign s_axis_tready = room_q;
  assign take = s_axis_tvalid && room_q;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + (LogQueue + 1)'(take) - (LogQueue + 1)'(pop);
    room_q   <= inside_q < (LogQueue + 1)'((1 << LogQueue) - 1);
    if (!rst_ni) {inside_q, room_q} <= '0;
  end

  typedef struct packed {
    logic       valid;
    logic       last;
    logic [3:0] end_at;  // the place of the last value
  } beat_t;
  beat_t [Latency:1] beat_q;
  logic [15:0][31:0] values_q;
  always_ff @(posedge clk_i) begin
    for (int i = 2; i <= int'(Latency); i++) beat_q[i] <= beat_q[i-1];
    beat_q[1] <= '{valid: take, last: s_axis_tlast, end_at: s_axis_tuser};
    values_q  <= s_axis_tdata;
    if (!rst_ni) for (int i = 1; i <= int'(Latency); i++) beat_q[i].valid <= 1'b0;
  end

  // ---- cells at the edge are filled up: along x, then along y -----------------------------------

  function automatic logic [3:0][31:0] filled(input logic [3:0][31:0] line, input logic [1:0] at);
    filled[0] = line[0];
    filled[1] = at == 2'd0 ? line[0] : line[1];
    filled[2] = at == 2'd0 ? line[0] : at == 2'd1 ? line[1] : line[2];
    filled[3] = at == 2'd3 ? line[3] : line[0];
  endfunction

  logic [Dims:0][15:0][31:0] values;
  assign values[0] = values_q;
  for (genvar i = 0; i < 4; i++) begin : g_row
    logic ends;  // here, and not at its fourth value
    assign ends = Dims == 2 || beat_q[1].end_at[3:2] == 2'(i);
    always_ff @(posedge clk_i) begin
      values[1][4*i+:4] <= filled(values_q[4*i+:4], ends ? beat_q[1].end_at[1:0] : 2'd3);
    end
  end
  if (Dims == 2) begin : g_columns
    for (genvar i = 0; i < 4; i++) begin : g_column
      logic [3:0][31:0] column;
      assign column = filled({values[1][12+i], values[1][8+i], values[1][4+i], values[1][i]},
                             beat_q[2].end_at[3:2]);
      always_ff @(posedge clk_i) begin
        for (int j = 0; j < 4; j++) values[2][4*j+i] <= column[j];
      end
    end
  end

  // ---- cells; joined ----------------------------------------------------------------------------

  logic [Cells-1:0][CellBits-1:0] codes, there_codes;
  logic [Cells-1:0][SizeBits-1:0] sizes, there_sizes;
  for (genvar c = 0; c < int'(Cells); c++) begin : g_cell
    wpr_zfp_cell #(.Dims(Dims), .Most(CellBits)) code_cell (
      .clk_i,
      .cfg_rate_i,
      .cfg_bits_i,
      .cfg_planes_i,
      .cfg_offset_i,
      .values_i(values[Dims][c*Values+:Values]),
      .code_o  (codes[c]),
      .size_o  (sizes[c])
    );
    logic there_q;
    always_ff @(posedge clk_i) begin
      there_q <= c == 0 || beat_q[Coded-1].end_at[3:2] >= 2'(c);
    end
    assign there_codes[c] = there_q ? codes[c] : '0;
    assign there_sizes[c] = there_q ? sizes[c] : '0;
  end

  logic [PieceBits-1:0] piece;
  logic [PieceSizeBits-1:0] piece_size;
  if (Cells == 1) begin : g_cell_alone
    assign piece      = there_codes[0];
    assign piece_size = there_sizes[0];
  end else begin : g_cells
    wpr_zfp_join #(.Pieces(Cells), .Step(CellBits), .Extra(0), .Most(PieceBits)) join_cells (
      .clk_i,
      .codes_i(there_codes),
      .sizes_i(there_sizes),
      .code_o (piece),
      .size_o (piece_size)
    );
  end

  // ---- the queue, and the packer ----------------------------------------------------------------

  // What the packer asks about a piece is found out before the queue, whose words come late.
  localparam int unsigned Lanes = OutBits / Unit;
  localparam int unsigned LaneBits = $clog2(Lanes + 1);
  localparam bit Split = PieceBits > OutBits;  // a piece may leave in two beats
  typedef struct packed {
    logic                     last;
    logic                     split;  // a beat of OutBits leaves before its last one
    logic [     LaneBits-1:0] lanes;  // of that
    logic [PieceSizeBits-1:0] size;
    logic [    PieceBits-1:0] piece;
  } queued_t;
  queued_t found, queued;
  logic [PieceSizeBits-1:0] last_beat;  // its bits
  logic q_valid, unused_ready;
  logic [LogQueue:0] unused_level;
  always_comb begin
    found.last  = beat_q[Latency].last;
    found.split = Split && piece_size > PieceSizeBits'(OutBits);
    last_beat   = found.split ? piece_size - PieceSizeBits'(OutBits) : piece_size;
    found.lanes = LaneBits'((PieceSizeBits'(Unit - 1) + last_beat) / PieceSizeBits'(Unit));
    found.size  = piece_size;
    found.piece = piece;
  end
  wpr_fifo #(.Width($bits(queued_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(beat_q[Latency].valid),
    .s_ready_o(unused_ready),
    .s_data_i (found),
    .m_valid_o(q_valid),
    .m_ready_i(pop),
    .m_data_o (queued),
    .level_o  (unused_level)
  );

  logic p_valid, p_ready, more, rest_q, group_free;  // rest: a beat of the piece has left
  logic [OutBits-1:0] p_piece;
  logic [LaneBits-1:0] m_lanes;
  assign more    = queued.split && !rest_q;
  assign p_valid = q_valid && group_free;
  assign pop     = p_valid && p_ready && !more;
  always_ff @(posedge clk_i) begin
    if (p_valid && p_ready) rest_q <= more;
    if (!rst_ni) rest_q <= 1'b0;
  end
  if (Split) begin : g_split
    assign p_piece = rest_q ? OutBits'(queued.piece[PieceBits-1:OutBits])
                            : queued.piece[OutBits-1:0];
  end else begin : g_whole
    assign p_piece = OutBits'(queued.piece);
  end

  // ---- groups: of 64 beats ----------------------------------------------------------------------

  logic [5:0] number_q;
  logic [16:0] group_q, group;
  assign group      = group_q + 17'(queued.size);
  assign group_free = !m_group_tvalid || m_group_tready;
  always_ff @(posedge clk_i) begin
    if (group_free) begin
      m_group_tvalid <= pop && (queued.last || &number_q);
      m_group_tdata  <= group;
      m_group_tlast  <= queued.last;
    end
    if (pop) begin
      number_q <= queued.last ? '0 : number_q + 6'd1;
      group_q  <= queued.last || &number_q ? '0 : group;
    end
    if (!rst_ni) begin
      m_group_tvalid <= 1'b0;
      number_q       <= '0;
      group_q        <= '0;
    end
  end

  wpr_pack #(.Lanes(Lanes), .Unit(Unit)) pack (
    .clk_i,
    .rst_ni,
    .s_valid_i(p_valid),
    .s_ready_o(p_ready),
    .s_data_i (p_piece),
    .s_size_i (more ? LaneBits'(Lanes) : queued.lanes),
    .s_last_i (queued.last && !more),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o (m_axis_tdata),
    .m_size_o (m_lanes),
    .m_last_o (m_axis_tlast)
  );
  always_comb begin
    for (int i = 0; i < int'(Bytes / 8); i++) begin
      m_axis_tkeep[8*i+:8] = {8{LaneBits'(64 / Unit * i) < m_lanes}};
    end
  end

endmodule
