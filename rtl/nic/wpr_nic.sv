// SPDX-License-Identifier: Apache-2.0
// wpr_nic_box with a codec, whose settings are in the control register:
// - fre, pools of encoders and decoders of 4 bytes a clock each: m in bits 8-12, round=nearest in
//   13, flush in 14, round=midpoint in 15;
// - tbq (of=one), one encoder and one decoder of 64 bytes a clock: bits 8-15 hold the exponent
//   field of tau, a power of two, as float32 has it;
// - bx, one encoder and one decoder of 64 bytes a clock: as fre;
// - lz4, pools of encoders and decoders of 8 bytes a clock each: no settings;
// - zfp in one dimension, one encoder and one decoder of 64 bytes a clock: the rate, 3 to 16, in
//   bits 8-12.
// Each packet is coded by itself, so a lost packet takes no other along.
module wpr_nic
  import wpr_axil_pkg::*, wpr_nic_pkg::*;
#(
  parameter int unsigned Codec    = Fre,  // of wpr_nic_pkg
  parameter int unsigned Encoders = 4,    // of fre and lz4
  parameter int unsigned Decoders = 4,
  parameter bit CodeBlockRam      = 1'b0  // of wpr_nic_box
) (
  input  logic           clk_i,
  input  logic           rst_ni,           // synchronous
  input  axil_request_t  axil_i,
  output axil_response_t axil_o,
  input  logic           h2c_valid_i,      // from the host
  output logic           h2c_ready_o,
  input  packet_beat_t   h2c_beat_i,
  output logic           adap_tx_valid_o,  // to the wire
  input  logic           adap_tx_ready_i,
  output packet_beat_t   adap_tx_beat_o,
  input  logic           adap_rx_valid_i,  // from the wire
  output logic           adap_rx_ready_o,
  input  packet_beat_t   adap_rx_beat_i,
  output logic           c2h_valid_o,      // to the host
  input  logic           c2h_ready_i,
  output packet_beat_t   c2h_beat_o
);

  logic enc_raw_valid, enc_raw_ready, enc_code_valid, enc_code_ready, enc_code_bad;
  logic dec_code_valid, dec_code_ready, dec_raw_valid, dec_raw_ready, dec_raw_bad;
  beat_t enc_raw, enc_code, dec_code, dec_raw;
  logic [15:0] dec_size;
  logic [7:0] cfg_codec;
  wpr_nic_box #(
    .FrameHeader(frame_header_of(Codec)), .Unit(unit_of(Codec)),
    .LeastBlock(Codec == Zfp ? 12 : 1),         // head and a word of stream
    .Foreign(Codec == Zfp ? 32'h80000000 : '0),  // codes without loss are for the host
    .CodeBlockRam(CodeBlockRam)
  ) box (
    .clk_i, .rst_ni, .axil_i, .axil_o, .h2c_valid_i, .h2c_ready_o, .h2c_beat_i,
    .adap_tx_valid_o, .adap_tx_ready_i, .adap_tx_beat_o, .adap_rx_valid_i, .adap_rx_ready_o,
    .adap_rx_beat_i, .c2h_valid_o, .c2h_ready_i, .c2h_beat_o,
    .enc_raw_valid_o(enc_raw_valid), .enc_raw_ready_i(enc_raw_ready), .enc_raw_beat_o(enc_raw),
    .enc_code_valid_i(enc_code_valid), .enc_code_ready_o(enc_code_ready),
    .enc_code_beat_i(enc_code), .enc_code_bad_i(enc_code_bad),
    .dec_code_valid_o(dec_code_valid), .dec_code_ready_i(dec_code_ready),
    .dec_code_beat_o(dec_code), .dec_code_size_o(dec_size),
    .dec_raw_valid_i(dec_raw_valid), .dec_raw_ready_o(dec_raw_ready), .dec_raw_beat_i(dec_raw),
    .dec_raw_bad_i(dec_raw_bad), .cfg_codec_o(cfg_codec)
  );
  wpr_nic_encoder #(.Codec(Codec), .Engines(Encoders)) encoder (
    .clk_i, .rst_ni, .cfg_codec_i(cfg_codec), .raw_valid_i(enc_raw_valid),
    .raw_ready_o(enc_raw_ready), .raw_beat_i(enc_raw), .code_valid_o(enc_code_valid),
    .code_ready_i(enc_code_ready), .code_beat_o(enc_code), .code_bad_o(enc_code_bad)
  );
  wpr_nic_decoder #(.Codec(Codec), .Engines(Decoders)) decoder (
    .clk_i, .rst_ni, .cfg_codec_i(cfg_codec), .code_valid_i(dec_code_valid),
    .code_ready_o(dec_code_ready), .code_beat_i(dec_code), .code_size_i(dec_size),
    .raw_valid_o(dec_raw_valid), .raw_ready_i(dec_raw_ready), .raw_beat_o(dec_raw),
    .raw_bad_o(dec_raw_bad)
  );

endmodule
