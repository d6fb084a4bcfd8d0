// SPDX-License-Identifier: Apache-2.0
// zfp encoder for float32 in three dimensions (codecs/zfp/spec.md, Stream): a packet of cells in,
// 16 values a beat; a packet with the stream of libzfp out, filled up with zeros to a multiple of 8
// bytes.
//
// A cell is four beats, z = 0 to 3; of a beat x runs fastest. s_axis_tuser is the place of the
// cell's last value that is there (bits 5-4 are z, 3-2 y, 1-0 x), the same in its four beats: the
// cell is filled up from there, as the specification says, along x, y and z. So a cell at the edge
// has four beats as well, of which those behind that z may hold anything.
//
// What wpr_zfp_enc does not do, this does not, either.
//
// Rate: a cell in four clocks; in as many as its pieces take if those are more. A piece takes a
// clock for each 512 bits, and none if it is empty; what fills up a cell at a rate is of the last
// one. And a clock a packet. Latency about 55 clocks. A queue takes what is on its way, so that
// nothing stops a stage.
module wpr_zfp_enc3 #(
  parameter int unsigned CellBits = 2120,  // that a cell may have; 2120 hold all modes
  localparam int unsigned SizeBits = $clog2(CellBits + 1)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // As wpr_zfp_cell3 has them. Constant from two clocks before a packet until it has left.
  input logic                cfg_rate_i,
  input logic [SizeBits-1:0] cfg_bits_i,
  input logic [         5:0] cfg_planes_i,
  input logic signed [  9:0] cfg_offset_i,

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [  5:0] s_axis_tuser,
  input  logic         s_axis_tlast,   // with the last cell's last beat

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,

  // The bits of each group of 1024 values, for the payload's index, about when its last bit leaves.
  output logic        m_group_tvalid,
  input  logic        m_group_tready,
  output logic [16:0] m_group_tdata,
  output logic        m_group_tlast  // the packet's last one
);

  localparam int unsigned PieceBits = 9 + 8 * 64 + 63;
  localparam int unsigned OutBits = 512;
  localparam int unsigned LogQueue = 6;

  // ---- beats that may come: as many as the queue takes ------------------------------------------

  logic [LogQueue:0] inside_q;  // beats that have come, and not left the queue as pieces
  logic take, drop, pop, room_q;
  logic [1:0] z_q;
  assign s_axis_tready = room_q;
  assign take = s_axis_tvalid && room_q;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + (LogQueue + 1)'(take) - (LogQueue + 1)'(pop) - (LogQueue + 1)'(drop);
    room_q   <= inside_q < (LogQueue + 1)'((1 << LogQueue) - 1);
    if (take) z_q <= z_q + 2'd1;
    if (!rst_ni) {inside_q, room_q, z_q} <= '0;
  end

  typedef struct packed {
    logic       valid;
    logic       last;
    logic [1:0] z;
    logic [5:0] end_at;  // the place of the last value
  } beat_t;
  beat_t [4:1] beat_q;
  logic [15:0][31:0] values_q;
  always_ff @(posedge clk_i) begin
    for (int i = 2; i <= 4; i++) beat_q[i] <= beat_q[i-1];
    beat_q[1] <= '{valid: take, last: s_axis_tlast, z: z_q, end_at: s_axis_tuser};
    values_q  <= s_axis_tdata;
    if (!rst_ni) for (int i = 1; i <= 4; i++) beat_q[i].valid <= 1'b0;
  end

  // ---- cells at the edge are filled up: along x, along y, along z -------------------------------

  function automatic logic [3:0][31:0] filled(input logic [3:0][31:0] line, input logic [1:0] at);
    filled[0] = line[0];
    filled[1] = at == 2'd0 ? line[0] : line[1];
    filled[2] = at == 2'd0 ? line[0] : at == 2'd1 ? line[1] : line[2];
    filled[3] = at == 2'd3 ? line[3] : line[0];
  endfunction

  logic [15:0][31:0] rows_q, columns_q, cell_q;
  for (genvar i = 0; i < 4; i++) begin : g_line
    logic [3:0][31:0] column;
    assign column = filled({rows_q[12+i], rows_q[8+i], rows_q[4+i], rows_q[i]},
                           beat_q[2].end_at[3:2]);
    always_ff @(posedge clk_i) begin
      rows_q[4*i+:4] <= filled(values_q[4*i+:4], beat_q[1].end_at[1:0]);
      for (int j = 0; j < 4; j++) columns_q[4*j+i] <= column[j];
    end
  end

  logic [15:0][31:0] first_q, second_q;  // planes of the cell
  logic [1:0] z, end_z;
  assign {z, end_z} = {beat_q[3].z, beat_q[3].end_at[5:4]};
  always_ff @(posedge clk_i) begin
    if (beat_q[3].valid && z == 2'd0) first_q <= columns_q;
    if (beat_q[3].valid && z == 2'd1) second_q <= columns_q;
    cell_q <= z <= end_z ? columns_q : z == 2'd2 && end_z == 2'd1 ? second_q : first_q;
  end

  // ---- cells; the queue of their pieces, but for empty ones in the midst of a group of 64 -------

  // What the packer asks about a piece is found out before the queue, whose words come late.
  typedef struct packed {
    logic                 last;
    logic                 ends;   // its group
    logic                 empty;
    logic [          2:0] beats;  // of OutBits, before its last one
    logic [          9:0] tail;   // bits of that
    logic [ SizeBits-1:0] size;
    logic [PieceBits-1:0] code;
  } queued_t;
  queued_t found, queued;
  logic c_valid, q_valid, unused_ready, whole_beats;
  logic [LogQueue:0] unused_level;
  logic [5:0] number_q;  // of the piece in its group
  assign found.ends  = found.last || &number_q;
  assign found.empty = found.size == '0;
  assign whole_beats = found.size[8:0] == '0 && !found.empty;
  assign found.beats = 3'(found.size >> 9) - 3'(whole_beats);
  assign found.tail  = {whole_beats, found.size[8:0]};
  assign drop        = c_valid && found.empty && !found.ends;
  always_ff @(posedge clk_i) begin
    if (c_valid) number_q <= found.last ? '0 : number_q + 6'd1;
    if (!rst_ni) number_q <= '0;
  end
  wpr_zfp_cell3 #(.Most(CellBits)) code_cell (
    .clk_i,
    .rst_ni,
    .cfg_rate_i,
    .cfg_bits_i,
    .cfg_planes_i,
    .cfg_offset_i,
    .valid_i (beat_q[4].valid),
    .z_i     (beat_q[4].z),
    .last_i  (beat_q[4].last),
    .values_i(cell_q),
    .valid_o (c_valid),
    .last_o  (found.last),
    .code_o  (found.code),
    .size_o  (found.size)
  );
  wpr_fifo #(.Width($bits(queued_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(c_valid && !drop),
    .s_ready_o(unused_ready),
    .s_data_i (found),
    .m_valid_o(q_valid),
    .m_ready_i(pop),
    .m_data_o (queued),
    .level_o  (unused_level)
  );

  // ---- a piece leaves in beats of OutBits -------------------------------------------------------

  logic p_valid, p_ready, more, nothing, group_free;
  logic [OutBits-1:0] p_bits;
  logic [9:0] m_size;
  logic [2:0] gone_q;  // of the piece's beats, those that have left
  assign more    = gone_q != queued.beats;
  assign nothing = queued.empty && !queued.last;  // but its group ends
  assign p_valid = q_valid && group_free && !nothing;
  assign p_bits  = gone_q == 3'd0 ? queued.code[OutBits-1:0]
                 : gone_q == 3'd1 ? OutBits'(queued.code[PieceBits-1:OutBits]) : '0;
  assign pop     = q_valid && group_free && (nothing || (p_ready && !more));
  always_ff @(posedge clk_i) begin
    if (p_valid && p_ready) gone_q <= more ? gone_q + 3'd1 : '0;
    if (!rst_ni) gone_q <= '0;
  end

  // ---- groups -----------------------------------------------------------------------------------

  logic [16:0] group_q, group;
  assign group      = group_q + 17'(queued.size);
  assign group_free = !m_group_tvalid || m_group_tready;
  always_ff @(posedge clk_i) begin
    if (group_free) begin
      m_group_tvalid <= pop && queued.ends;
      m_group_tdata  <= group;
      m_group_tlast  <= queued.last;
    end
    if (pop) group_q <= queued.ends ? '0 : group;
    if (!rst_ni) begin
      m_group_tvalid <= 1'b0;
      group_q        <= '0;
    end
  end

  wpr_pack #(.Lanes(OutBits), .Unit(1)) pack (
    .clk_i,
    .rst_ni,
    .s_valid_i(p_valid),
    .s_ready_o(p_ready),
    .s_data_i (p_bits),
    .s_size_i (more ? 10'(OutBits) : queued.tail),
    .s_last_i (queued.last && !more),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o (m_axis_tdata),
    .m_size_o (m_size),
    .m_last_o (m_axis_tlast)
  );
  always_comb for (int i = 0; i < 8; i++) m_axis_tkeep[8*i+:8] = {8{10'(64 * i) < m_size}};

endmodule
