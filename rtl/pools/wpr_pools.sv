// SPDX-License-Identifier: Apache-2.0
// Both ends of a link: messages to blocks, through encoders, to the link; and from the link through
// decoders to messages. 64 bytes a beat everywhere. Pools of lz4 or of snappy.
//
// Blocks have cfg_beats_i + 1 beats but the last of a message; LogQueue must hold a block and what
// its code is larger.
module wpr_pools #(
  parameter int unsigned Codec    = 0,  // 0: lz4, 1: snappy
  parameter int unsigned Encoders = 8,
  parameter int unsigned Decoders = 8,
  parameter int unsigned LogQueue = 9
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic [LogQueue-1:0] cfg_beats_i,
  input  logic [        15:0] cfg_patience_i, // of wpr_reassembler
  output logic                dropped_o,      // a block, damaged, late or repeated

  input  logic         s_axis_tvalid,  // messages
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,
  input  logic         s_axis_tlast,
  output logic         m_link_tvalid,  // blocks
  input  logic         m_link_tready,
  output logic [511:0] m_link_tdata,
  output logic [ 63:0] m_link_tkeep,
  output logic         m_link_tlast,

  input  logic         s_link_tvalid,
  output logic         s_link_tready,
  input  logic [511:0] s_link_tdata,
  input  logic [ 63:0] s_link_tkeep,
  input  logic         s_link_tlast,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the message lacks something
);

  logic p_valid, p_ready, p_last, d_valid, d_ready, d_last;
  logic [511:0] p_data, d_data;
  logic [63:0] p_keep, d_keep;
  wpr_packetizer #(.Bytes(64), .LogDepth(LogQueue)) packetizer (
    .clk_i,
    .rst_ni,
    .cfg_beats_i,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(p_valid),
    .m_axis_tready(p_ready),
    .m_axis_tdata (p_data),
    .m_axis_tkeep (p_keep),
    .m_axis_tlast (p_last)
  );
  wpr_pools_side #(.Codec(Codec), .Engines(Encoders), .LogQueue(LogQueue)) encoders (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(p_valid),
    .s_axis_tready(p_ready),
    .s_axis_tdata (p_data),
    .s_axis_tkeep (p_keep),
    .s_axis_tlast (p_last),
    .m_axis_tvalid(m_link_tvalid),
    .m_axis_tready(m_link_tready),
    .m_axis_tdata (m_link_tdata),
    .m_axis_tkeep (m_link_tkeep),
    .m_axis_tlast (m_link_tlast)
  );
  wpr_pools_side #(.Codec(Codec), .Decode(1), .Engines(Decoders), .LogQueue(LogQueue)) decoders (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(s_link_tvalid),
    .s_axis_tready(s_link_tready),
    .s_axis_tdata (s_link_tdata),
    .s_axis_tkeep (s_link_tkeep),
    .s_axis_tlast (s_link_tlast),
    .m_axis_tvalid(d_valid),
    .m_axis_tready(d_ready),
    .m_axis_tdata (d_data),
    .m_axis_tkeep (d_keep),
    .m_axis_tlast (d_last)
  );
  wpr_reassembler #(.Bytes(64), .LogSlots(2), .LogBeats(LogQueue)) reassembler (
    .clk_i,
    .rst_ni,
    .cfg_patience_i,
    .s_axis_tvalid(d_valid),
    .s_axis_tready(d_ready),
    .s_axis_tdata (d_data),
    .s_axis_tkeep (d_keep),
    .s_axis_tlast (d_last),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser,
    .dropped_o
  );

endmodule
