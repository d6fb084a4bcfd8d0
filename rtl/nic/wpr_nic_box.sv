// SPDX-License-Identifier: Apache-2.0
// All that lies between host and wire of one port, for the 250 MHz user box of an OpenNIC shell,
// but for the codec: wpr_nic_tx, wpr_nic_rx and their registers.
module wpr_nic_box
  import wpr_axil_pkg::*, wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,   // bytes of a frame's header with this codec
  parameter int unsigned Unit        = 4,    // bytes of a value
  parameter int unsigned LeastBlock  = 1,    // of wpr_nic_in
  parameter logic [31:0] Foreign     = '0,
  parameter bit CodeBlockRam         = 1'b0  // memory for codes: of wpr_nic_tx
) (
  input  logic           clk_i,
  input  logic           rst_ni,            // synchronous
  input  axil_request_t  axil_i,
  output axil_response_t axil_o,
  input  logic           h2c_valid_i,       // from the host
  output logic           h2c_ready_o,
  input  packet_beat_t   h2c_beat_i,
  output logic           adap_tx_valid_o,   // to the wire
  input  logic           adap_tx_ready_i,
  output packet_beat_t   adap_tx_beat_o,
  input  logic           adap_rx_valid_i,   // from the wire
  output logic           adap_rx_ready_o,
  input  packet_beat_t   adap_rx_beat_i,
  output logic           c2h_valid_o,       // to the host
  input  logic           c2h_ready_i,
  output packet_beat_t   c2h_beat_o,
  output logic           enc_raw_valid_o,   // to the encoder and back, as of wpr_nic_tx
  input  logic           enc_raw_ready_i,
  output beat_t          enc_raw_beat_o,
  input  logic           enc_code_valid_i,
  output logic           enc_code_ready_o,
  input  beat_t          enc_code_beat_i,
  input  logic           enc_code_bad_i,
  output logic           dec_code_valid_o,  // to the decoder and back, as of wpr_nic_rx
  input  logic           dec_code_ready_i,
  output beat_t          dec_code_beat_o,
  output logic [15:0]    dec_code_size_o,
  input  logic           dec_raw_valid_i,
  output logic           dec_raw_ready_o,
  input  beat_t          dec_raw_beat_i,
  input  logic           dec_raw_bad_i,
  output logic [ 7:0]    cfg_codec_o        // settings of the codec
);

  logic compress, expand;
  logic [15:0] most;
  logic [3:0][15:0] ports;
  logic [8*FrameHeader-1:0] frame_header;
  logic [6:0] events;
  wpr_nic_regs #(.FrameHeader(FrameHeader)) regs (
    .clk_i, .rst_ni, .axil_i, .axil_o, .cfg_compress_o(compress), .cfg_expand_o(expand),
    .cfg_codec_o, .cfg_max_o(most), .cfg_ports_o(ports), .cfg_header_o(frame_header),
    .event_i(events)
  );
  wpr_nic_tx #(.FrameHeader(FrameHeader), .Unit(Unit), .CodeBlockRam(CodeBlockRam)) tx (
    .clk_i, .rst_ni, .cfg_enable_i(compress), .cfg_ports_i(ports), .cfg_max_i(most),
    .cfg_header_i(frame_header),
    .s_valid_i(h2c_valid_i), .s_ready_o(h2c_ready_o), .s_beat_i(h2c_beat_i),
    .m_valid_o(adap_tx_valid_o), .m_ready_i(adap_tx_ready_i), .m_beat_o(adap_tx_beat_o),
    .raw_valid_o(enc_raw_valid_o), .raw_ready_i(enc_raw_ready_i), .raw_beat_o(enc_raw_beat_o),
    .code_valid_i(enc_code_valid_i), .code_ready_o(enc_code_ready_o),
    .code_beat_i(enc_code_beat_i), .code_bad_i(enc_code_bad_i), .event_o(events[3:0])
  );
  wpr_nic_rx #(
    .FrameHeader(FrameHeader), .Unit(Unit), .LeastBlock(LeastBlock), .Foreign(Foreign)
  ) rx (
    .clk_i, .rst_ni, .cfg_enable_i(expand), .cfg_ports_i(ports), .cfg_max_i(most),
    .cfg_header_i(frame_header),
    .s_valid_i(adap_rx_valid_i), .s_ready_o(adap_rx_ready_o), .s_beat_i(adap_rx_beat_i),
    .m_valid_o(c2h_valid_o), .m_ready_i(c2h_ready_i), .m_beat_o(c2h_beat_o),
    .code_valid_o(dec_code_valid_o), .code_ready_i(dec_code_ready_i),
    .code_beat_o(dec_code_beat_o), .code_size_o(dec_code_size_o), .raw_valid_i(dec_raw_valid_i),
    .raw_ready_o(dec_raw_ready_o), .raw_beat_i(dec_raw_beat_i), .raw_bad_i(dec_raw_bad_i),
    .event_o(events[6:4])
  );

endmodule
