// SPDX-License-Identifier: Apache-2.0
// wpr_nic_box with a codec, whose settings are in the control register:
// - fre, pools of encoders and decoders of 4 bytes a clock each: m in bits 8-12, round=nearest in
//   13, flush in 14, round=midpoint in 15;
// - tbq (of=one), one encoder and one decoder of 64 bytes a clock: bits 8-15 hold the exponent
//   field of tau, a power of two, as float32 has it;
// - bx, one encoder and one decoder of 64 bytes a clock: as fre. Each packet is coded by itself, so
//   a lost packet takes no other along.
module wpr_nic
  import wpr_axil_pkg::*, wpr_nic_pkg::*;
#(
  parameter int unsigned Codec    = 0,    // 0: fre, 1: tbq, 2: bx
  parameter int unsigned Encoders = 4,    // of fre
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

  logic enc_raw_valid, enc_raw_ready, enc_code_valid, enc_code_ready;
  logic dec_code_valid, dec_code_ready, dec_raw_valid, dec_raw_ready, dec_raw_bad;
  beat_t enc_raw, enc_code, dec_code, dec_raw;
  logic [15:0] dec_size;
  logic [7:0] cfg_codec;
  wpr_nic_box #(
    .FrameHeader(Codec == 2 ? 15 : 16), .Unit(4), .CodeBlockRam(CodeBlockRam)
  ) box (
    .clk_i, .rst_ni, .axil_i, .axil_o, .h2c_valid_i, .h2c_ready_o, .h2c_beat_i,
    .adap_tx_valid_o, .adap_tx_ready_i, .adap_tx_beat_o, .adap_rx_valid_i, .adap_rx_ready_o,
    .adap_rx_beat_i, .c2h_valid_o, .c2h_ready_i, .c2h_beat_o,
    .enc_raw_valid_o(enc_raw_valid), .enc_raw_ready_i(enc_raw_ready), .enc_raw_beat_o(enc_raw),
    .enc_code_valid_i(enc_code_valid), .enc_code_ready_o(enc_code_ready),
    .enc_code_beat_i(enc_code), .enc_code_bad_i(1'b0),
    .dec_code_valid_o(dec_code_valid), .dec_code_ready_i(dec_code_ready),
    .dec_code_beat_o(dec_code), .dec_code_size_o(dec_size),
    .dec_raw_valid_i(dec_raw_valid), .dec_raw_ready_o(dec_raw_ready), .dec_raw_beat_i(dec_raw),
    .dec_raw_bad_i(dec_raw_bad), .cfg_codec_o(cfg_codec)
  );
  if (Codec == 0) begin : g_fre
    wpr_nic_fre_enc #(.Engines(Encoders)) encoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_nearest_i(cfg_codec[5]),
      .cfg_flush_i(cfg_codec[6]), .raw_valid_i(enc_raw_valid), .raw_ready_o(enc_raw_ready),
      .raw_beat_i(enc_raw), .code_valid_o(enc_code_valid), .code_ready_i(enc_code_ready),
      .code_beat_o(enc_code)
    );
    wpr_nic_fre_dec #(.Engines(Decoders)) decoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_midpoint_i(cfg_codec[7]),
      .code_valid_i(dec_code_valid), .code_ready_o(dec_code_ready), .code_beat_i(dec_code),
      .code_size_i(dec_size), .raw_valid_o(dec_raw_valid), .raw_ready_i(dec_raw_ready),
      .raw_beat_o(dec_raw), .raw_bad_o(dec_raw_bad)
    );
  end else begin : g_wide  // one encoder and one decoder of 64 bytes a clock
    logic unused, n_valid, n_ready, c_valid, c_ready;
    logic [13:0] n_less_one;
    assign unused = ^dec_size[1:0];
    wpr_nic_count count (
      .clk_i, .rst_ni, .s_axis_tvalid(dec_code_valid), .s_axis_tready(dec_code_ready),
      .s_axis_tlast(dec_code.last), .s_axis_tuser(dec_size[15:2] - 14'd1),
      .m_axis_tvalid(c_valid), .m_axis_tready(c_ready), .m_cmd_tvalid(n_valid),
      .m_cmd_tready(n_ready), .m_cmd_tdata(n_less_one)
    );
    if (Codec == 1) begin : g_tbq
      logic [22:0] tau;
      assign tau = {cfg_codec, 15'd0};
      wpr_tbq_enc encoder (
        .clk_i, .rst_ni, .cfg_tau_i(tau),
        .s_axis_tvalid(enc_raw_valid), .s_axis_tready(enc_raw_ready),
        .s_axis_tdata(enc_raw.data), .s_axis_tkeep(enc_raw.keep), .s_axis_tlast(enc_raw.last),
        .m_axis_tvalid(enc_code_valid), .m_axis_tready(enc_code_ready),
        .m_axis_tdata(enc_code.data), .m_axis_tkeep(enc_code.keep), .m_axis_tlast(enc_code.last)
      );
      wpr_tbq_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_tau_i(tau),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready),
        .s_axis_tdata(dec_code.data), .s_axis_tkeep(dec_code.keep), .s_axis_tlast(dec_code.last),
        .m_axis_tvalid(dec_raw_valid), .m_axis_tready(dec_raw_ready),
        .m_axis_tdata(dec_raw.data), .m_axis_tkeep(dec_raw.keep), .m_axis_tlast(dec_raw.last),
        .m_axis_tuser(dec_raw_bad)
      );
    end else begin : g_bx
      wpr_bx_enc encoder (
        .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_nearest_i(cfg_codec[5]),
        .cfg_midpoint_i(cfg_codec[7]), .cfg_flush_i(cfg_codec[6]),
        .s_axis_tvalid(enc_raw_valid), .s_axis_tready(enc_raw_ready),
        .s_axis_tdata(enc_raw.data), .s_axis_tkeep(enc_raw.keep), .s_axis_tlast(enc_raw.last),
        .m_axis_tvalid(enc_code_valid), .m_axis_tready(enc_code_ready),
        .m_axis_tdata(enc_code.data), .m_axis_tkeep(enc_code.keep), .m_axis_tlast(enc_code.last)
      );
      wpr_bx_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_midpoint_i(cfg_codec[7]),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready),
        .s_axis_tdata(dec_code.data), .s_axis_tkeep(dec_code.keep), .s_axis_tlast(dec_code.last),
        .m_axis_tvalid(dec_raw_valid), .m_axis_tready(dec_raw_ready),
        .m_axis_tdata(dec_raw.data), .m_axis_tkeep(dec_raw.keep), .m_axis_tlast(dec_raw.last),
        .m_axis_tuser(dec_raw_bad)
      );
    end
  end

endmodule
