// SPDX-License-Identifier: Apache-2.0
// zfp decoder for float32 at a fixed rate (codecs/zfp/spec.md, Stream): a packet with libzfp's
// stream in; a packet of cells out, 16 values a beat, of the values that libzfp gives for any bits.
//
// With Dims = 2 a beat is a cell, with Dims = 1 four cells, or what is left in the last beat; x
// runs fastest. A cell at the edge comes whole.
//
// Does not put cells in the rows of an array, and does not read the payload's head and index.
// Blocks that are coded reversibly, with a precision or with an accuracy are not for it: their
// cells begin anywhere.
//
// Rate: a beat a clock, and a clock a packet. Latency about 250 clocks, or 160 with Dims = 1. A
// queue in block RAM takes what is on its way, so that nothing stops a stage.
module wpr_zfp_dec #(
  parameter int unsigned Dims       = 2,    // 1 or 2
  parameter int unsigned CellBits   = 128,  // that a cell may have: a beat of cells fits Bytes
  // Bits of which cells have a multiple; a divisor of 64.
  parameter int unsigned Unit       = 1,
  parameter int unsigned Bytes      = 64,   // of a beat in, 32 or 64
  parameter int unsigned CountWidth = 24,   // of a packet's number of cells
  localparam int unsigned SizeBits = $clog2(CellBits + 1)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Of a cell: 9 to CellBits. Constant from three clocks before a packet until it has left.
  input logic [SizeBits-1:0] cfg_bits_i,

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // the packet's cells, less one

  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,   // read with tlast only
  input  logic               s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Values = 1 << (2 * Dims);
  localparam int unsigned Cells = 16 / Values;
  localparam int unsigned LogCells = $clog2(Cells);
  localparam int unsigned InBits = 8 * Bytes;
  localparam int unsigned Lanes = InBits / Unit;
  localparam int unsigned LaneBits = $clog2(Lanes + 1);
  localparam int unsigned LogQueue = 8;
  // Clocks from a piece of the stream to its values.
  localparam int unsigned Latency = (Dims == 1 ? 2 + 130 : 226) + 1 + 1 + 3 * Dims + 6;

  // ---- what is cut from the stream: beats of cells, then what fills up the last word ------------

  logic [CountWidth-LogCells-1:0] beats_q;  // to be cut, less one
  logic [1:0] rest_q;                       // cells of the last one, less one
  logic busy_q, filling_q, ready, last_cells;
  logic [LaneBits-1:0] size, fill;
  logic [LaneBits-1:0] cells_size_q[4];  // of one to four cells
  logic [5:0] used_q;                    // bits of a word of 64 that are used up
  assign s_cmd_tready = !busy_q;
  assign fill         = LaneBits'(6'(-used_q)) / LaneBits'(Unit);
  assign last_cells   = beats_q == '0;
  assign size         = filling_q ? fill : cells_size_q[last_cells ? rest_q : 2'(Cells - 1)];
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) begin
      cells_size_q[i] <= LaneBits'((SizeBits + 2)'(i + 1) * (SizeBits + 2)'(cfg_bits_i) /
                                   (SizeBits + 2)'(Unit));
    end
    if (!busy_q) begin
      busy_q    <= s_cmd_tvalid;
      filling_q <= 1'b0;
      used_q    <= '0;
      beats_q   <= s_cmd_tdata[CountWidth-1:LogCells];
      rest_q    <= s_cmd_tdata[1:0] & 2'(Cells - 1);
    end else if (ready) begin
      filling_q <= last_cells;
      busy_q    <= !filling_q;
      used_q    <= used_q + 6'(size * LaneBits'(Unit));
      beats_q   <= beats_q - (CountWidth - LogCells)'(!last_cells);
    end
    if (!rst_ni) busy_q <= 1'b0;
  end

  logic c_valid, c_ready, c_last;
  logic [LaneBits-1:0] c_size;
  wpr_skid #(.Width(LaneBits + 1)) to_cut (
    .clk_i,
    .rst_ni,
    .s_valid_i(busy_q),
    .s_ready_o(ready),
    .s_data_i ({filling_q, size}),
    .m_valid_o(c_valid),
    .m_ready_i(c_ready),
    .m_data_o ({c_last, c_size})
  );

  // Words of 64 bits in a packet's last beat. Where there are other bytes as well, none: any piece
  // that ends there, or does not end the packet, is wrong then.
  logic [LaneBits-1:0] s_size;
  logic odd;
  always_comb begin
    s_size = '0;
    odd    = 1'b0;
    for (int i = 0; i < int'(Bytes / 8); i++) begin
      if (s_axis_tkeep[8*i]) s_size = LaneBits'(64 / Unit * (i + 1));
      odd = odd || (s_axis_tkeep[8*i] && !s_axis_tkeep[8*i+7]);
    end
    if (odd) s_size = '0;
  end

  logic p_valid, p_last, p_error, move;
  logic [InBits-1:0] p_bits;
  logic [LaneBits-1:0] p_size;
  wpr_split #(.Lanes(Lanes), .Unit(Unit)) split (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i (s_axis_tdata),
    .s_size_i (s_size),
    .s_last_i (s_axis_tlast),
    .c_valid_i(c_valid),
    .c_ready_o(c_ready),
    .c_size_i (c_size),
    .c_last_i (c_last),
    .m_valid_o(p_valid),
    .m_ready_i(move),
    .m_data_o (p_bits),
    .m_size_o (p_size),
    .m_last_o (p_last),
    .m_error_o(p_error)
  );

  // ---- a beat of cells waits for the next piece, which says whether it is the last one ----------

  typedef struct packed {
    logic       last;
    logic       bad;
    logic [1:0] rest;  // cells of the last beat, less one
  } facts_t;
  logic held_q, bad_q, enter;
  logic [InBits-1:0] bits_q;
  facts_t facts;
  logic [1:0] rest2_q;
  assign enter = p_valid && move && held_q;
  assign facts = '{last: p_last, bad: bad_q || p_error || p_bits[62:0] != '0, rest: rest2_q};
  always_ff @(posedge clk_i) begin
    if (p_valid && move) begin
      held_q <= !p_last;
      bad_q  <= !p_last && (bad_q || p_error);
      bits_q <= p_bits;
      for (int i = 0; i < int'(Cells); i++) if (p_size == cells_size_q[i]) rest2_q <= 2'(i);
    end
    if (!rst_ni) {held_q, bad_q} <= '0;
  end

  // ---- cells ------------------------------------------------------------------------------------

  logic [Cells-1:0][CellBits-1:0] codes;
  if (Cells == 1) begin : g_cell_alone
    assign codes = CellBits'(bits_q);
  end else begin : g_cells
    // The shift to a cell's first bit, by 16 and by 1.
    localparam int unsigned Near = CellBits + 15;
    logic [Cells-1:0][SizeBits+1:0] begins_q;
    logic [Cells-1:0][Near-1:0] near_q;
    always_ff @(posedge clk_i) begin
      for (int i = 0; i < int'(Cells); i++) begin
        begins_q[i] <= (SizeBits + 2)'(i) * (SizeBits + 2)'(cfg_bits_i);
        near_q[i]   <= Near'(bits_q >> {begins_q[i][SizeBits+1:4], 4'd0});
        codes[i]    <= CellBits'(near_q[i] >> begins_q[i][3:0]);
      end
    end
  end

  logic [15:0][31:0] values;
  for (genvar c = 0; c < int'(Cells); c++) begin : g_cell
    wpr_zfp_read_cell #(.Dims(Dims), .Most(CellBits)) read_cell (
      .clk_i,
      .cfg_bits_i,
      .code_i  (codes[c]),
      .values_o(values[c*Values+:Values])
    );
  end

  // ---- the queue, and the beats that may come: as many as it takes ------------------------------

  logic [Latency-1:0] valid_q;
  facts_t come, out;
  wpr_zfp_delay #(.Width($bits(facts_t)), .Clocks(Latency)) keep_facts (
    .clk_i,
    .data_i(facts),
    .data_o(come)
  );
  logic [LogQueue:0] inside_q, unused_level;
  logic pop, room_q, unused_ready;
  assign move = room_q;
  assign pop  = m_axis_tvalid && m_axis_tready;
  always_ff @(posedge clk_i) begin
    valid_q  <= {valid_q[Latency-2:0], enter};
    inside_q <= inside_q + (LogQueue + 1)'(enter) - (LogQueue + 1)'(pop);
    room_q   <= inside_q < (LogQueue + 1)'((1 << LogQueue) - 1);
    if (!rst_ni) begin
      valid_q  <= '0;
      inside_q <= '0;
      room_q   <= 1'b0;
    end
  end

  wpr_ram_fifo #(.Width(512 + $bits(facts_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q[Latency-1]),
    .s_ready_o(unused_ready),
    .s_data_i ({come, values}),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o ({out, m_axis_tdata}),
    .level_o  (unused_level)
  );

  assign m_axis_tlast = out.last;
  assign m_axis_tuser = out.last && out.bad;
  always_comb begin
    for (int i = 0; i < 4; i++) begin
      m_axis_tkeep[16*i+:16] = {16{Cells == 1 || !out.last || 2'(i) <= out.rest}};
    end
  end

endmodule
