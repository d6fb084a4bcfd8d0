// SPDX-License-Identifier: Apache-2.0
// One core of rtl/lz in a pool: blocks of wpr_packetizer in, 64 bytes a beat, and blocks with the
// same header out. The header says how many raw bytes there are, which the core must know. So a
// block on the way has its raw size in front, and its code behind.
//
// A code that the decoder refuses becomes a block of another size than its header says, which
// wpr_reassembler drops.
module wpr_pools_engine #(
  parameter int unsigned Codec  = 0,  // 0: lz4, 1: snappy
  parameter bit          Decode = 0
) (
  input  logic         clk_i,
  input  logic         rst_ni,         // synchronous
  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,
  input  logic         s_axis_tlast,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,
  output logic         m_axis_tlast
);

  // ---- headers past the core --------------------------------------------------------------------

  logic n_valid, n_ready, n_last, inside_q, header_room, header_valid, header_next, alone;
  logic size_room, size_valid, size_ready, begins;
  logic [63:0] n_data, header;
  logic [7:0] n_keep;
  logic [22:0] size;
  wpr_narrow #(.Wide(64), .Narrow(8)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(n_valid),
    .m_axis_tready(n_ready),
    .m_axis_tdata (n_data),
    .m_axis_tkeep (n_keep),
    .m_axis_tlast (n_last)
  );
  assign begins = n_valid && !inside_q && header_room && size_room;
  wpr_fifo #(.Width(65), .LogDepth(2)) headers (
    .clk_i,
    .rst_ni,
    .s_valid_i(begins),
    .s_ready_o(header_room),
    .s_data_i ({n_last, n_data}),
    .m_valid_o(header_valid),
    .m_ready_i(header_next),
    .m_data_o ({alone, header}),
    .level_o  ()
  );
  wpr_fifo #(.Width(23), .LogDepth(2)) sizes (
    .clk_i,
    .rst_ni,
    .s_valid_i(begins && !n_last),  // a header alone is no block
    .s_ready_o(size_room),
    .s_data_i (n_data[22:0]),
    .m_valid_o(size_valid),
    .m_ready_i(size_ready),
    .m_data_o (size),
    .level_o  ()
  );

  // ---- the core ---------------------------------------------------------------------------------

  logic c_valid, c_ready, c_last, c_bad, in_ready;
  logic [63:0] c_data;
  logic [7:0] c_keep;
  assign n_ready = inside_q ? in_ready : begins;
  always_ff @(posedge clk_i) begin
    if (n_valid && n_ready) inside_q <= !n_last;
    if (!rst_ni) inside_q <= 1'b0;
  end
  wpr_lz_core #(.Codec(Codec), .Decode(Decode)) core (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid (size_valid),
    .s_cmd_tready (size_ready),
    .s_cmd_tdata  (size),
    .s_axis_tvalid(n_valid && inside_q),
    .s_axis_tready(in_ready),
    .s_axis_tdata (n_data),
    .s_axis_tkeep (n_keep),
    .s_axis_tlast (n_last),
    .m_axis_tvalid(c_valid),
    .m_axis_tready(c_ready),
    .m_axis_tdata (c_data),
    .m_axis_tkeep (c_keep),
    .m_axis_tlast (c_last),
    .m_axis_tuser (c_bad)
  );

  // ---- its packet behind the header -------------------------------------------------------------

  logic behind_q, o_valid, o_ready, o_last;
  logic [29:0] count_q, header_q;  // bytes behind the header, and as many as it says
  logic [63:0] o_data;
  logic [7:0] o_keep;
  assign o_valid = behind_q ? c_valid : header_valid;
  assign o_data  = behind_q ? c_data : header;
  assign o_last  = behind_q ? c_last : alone;
  // Of a damaged block one byte or two: not as many as the header says.
  assign o_keep  = !behind_q ? 8'hff : c_bad && c_last ?
                   (count_q + 30'd1 == header_q ? 8'h03 : 8'h01) : c_keep;
  assign c_ready = behind_q && o_ready;
  assign header_next = !behind_q && o_ready;
  always_ff @(posedge clk_i) begin
    if (o_valid && o_ready) begin
      behind_q <= !o_last;
      count_q  <= behind_q ? count_q + 30'd8 : '0;
      if (!behind_q) header_q <= header[29:0];
    end
    if (!rst_ni) behind_q <= 1'b0;
  end
  wpr_widen #(.Wide(64), .Narrow(8)) widen (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(o_valid),
    .s_axis_tready(o_ready),
    .s_axis_tdata (o_data),
    .s_axis_tkeep (o_keep),
    .s_axis_tlast (o_last),
    .s_axis_tuser (1'b0),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser ()
  );

endmodule
