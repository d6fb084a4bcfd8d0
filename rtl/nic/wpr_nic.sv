// SPDX-License-Identifier: Apache-2.0
// wpr_nic_box with a codec, whose settings are in the control register:
// - fre, pools of encoders and decoders of 4 bytes a clock: m in bits 8-12, round=nearest in 13, flush
//   in 14, round=midpoint in 15;
// - tbq (of=one), one encoder and one decoder of 64 bytes a clock: tau is a power of two, whose exponent
//   as float32 has it is in bits 8-15;
// - bx, one encoder and one decoder of 64 bytes a clock: as fre.
// A packet is coded by itself: one that is lost takes nothing along.
module wpr_nic #(
  parameter int unsigned Codec    = 0,             // 0: fre, 1: tbq, 2: bx
  parameter int unsigned Encoders = 4,             // of fre
  parameter int unsigned Decoders = 4,
  parameter logic [15:0] ToWire   = 16'h0040,
  parameter logic [15:0] ToHost   = 16'h0001,
  parameter bit CodeBlockRam      = 1'b0           // of wpr_nic_box
) (
  input  logic         clk_i,
  input  logic         rst_ni,  // synchronous
  input  logic         s_axil_awvalid,
  output logic         s_axil_awready,
  input  logic [  7:0] s_axil_awaddr,
  input  logic         s_axil_wvalid,
  output logic         s_axil_wready,
  input  logic [ 31:0] s_axil_wdata,
  input  logic [  3:0] s_axil_wstrb,
  output logic         s_axil_bvalid,
  input  logic         s_axil_bready,
  output logic [  1:0] s_axil_bresp,
  input  logic         s_axil_arvalid,
  output logic         s_axil_arready,
  input  logic [  7:0] s_axil_araddr,
  output logic         s_axil_rvalid,
  input  logic         s_axil_rready,
  output logic [ 31:0] s_axil_rdata,
  output logic [  1:0] s_axil_rresp,
  // from the host
  input  logic         s_axis_h2c_tvalid,
  output logic         s_axis_h2c_tready,
  input  logic [511:0] s_axis_h2c_tdata,
  input  logic [ 63:0] s_axis_h2c_tkeep,
  input  logic         s_axis_h2c_tlast,
  input  logic [ 15:0]  s_axis_h2c_tuser_size,
  input  logic [ 15:0]  s_axis_h2c_tuser_src,
  input  logic [ 15:0]  s_axis_h2c_tuser_dst,
  // to the wire
  output logic         m_axis_adap_tx_tvalid,
  input  logic         m_axis_adap_tx_tready,
  output logic [511:0] m_axis_adap_tx_tdata,
  output logic [ 63:0] m_axis_adap_tx_tkeep,
  output logic         m_axis_adap_tx_tlast,
  output logic [ 15:0]  m_axis_adap_tx_tuser_size,
  output logic [ 15:0]  m_axis_adap_tx_tuser_src,
  output logic [ 15:0]  m_axis_adap_tx_tuser_dst,
  // from the wire
  input  logic         s_axis_adap_rx_tvalid,
  output logic         s_axis_adap_rx_tready,
  input  logic [511:0] s_axis_adap_rx_tdata,
  input  logic [ 63:0] s_axis_adap_rx_tkeep,
  input  logic         s_axis_adap_rx_tlast,
  input  logic [ 15:0]  s_axis_adap_rx_tuser_size,
  input  logic [ 15:0]  s_axis_adap_rx_tuser_src,
  input  logic [ 15:0]  s_axis_adap_rx_tuser_dst,
  // to the host
  output logic         m_axis_c2h_tvalid,
  input  logic         m_axis_c2h_tready,
  output logic [511:0] m_axis_c2h_tdata,
  output logic [ 63:0] m_axis_c2h_tkeep,
  output logic         m_axis_c2h_tlast,
  output logic [ 15:0]  m_axis_c2h_tuser_size,
  output logic [ 15:0]  m_axis_c2h_tuser_src,
  output logic [ 15:0]  m_axis_c2h_tuser_dst
);

  logic enc_raw_tvalid, enc_raw_tready, enc_raw_tlast;
  logic [511:0] enc_raw_tdata;
  logic [63:0] enc_raw_tkeep;
  logic enc_code_tvalid, enc_code_tready, enc_code_tlast, enc_code_tuser;
  logic [511:0] enc_code_tdata;
  logic [63:0] enc_code_tkeep;
  logic dec_code_tvalid, dec_code_tready, dec_code_tlast;
  logic [511:0] dec_code_tdata;
  logic [63:0] dec_code_tkeep;
  logic dec_raw_tvalid, dec_raw_tready, dec_raw_tlast, dec_raw_tuser;
  logic [511:0] dec_raw_tdata;
  logic [63:0] dec_raw_tkeep;
  logic [15:0] dec_code_tuser;
  logic [7:0] cfg_codec;
  wpr_nic_box #(
    .FrameHeader(Codec == 2 ? 15 : 16), .Unit(4), .ToWire(ToWire), .ToHost(ToHost),
    .CodeBlockRam(CodeBlockRam)
  ) box (
    .*, .cfg_codec_o(cfg_codec)
  );
  if (Codec == 0) begin : g_fre
    wpr_nic_fre_enc #(.Engines(Encoders)) encoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_nearest_i(cfg_codec[5]),
      .cfg_flush_i(cfg_codec[6]),
      .raw_tvalid(enc_raw_tvalid), .raw_tready(enc_raw_tready), .raw_tdata(enc_raw_tdata),
      .raw_tkeep(enc_raw_tkeep), .raw_tlast(enc_raw_tlast), .code_tvalid(enc_code_tvalid),
      .code_tready(enc_code_tready), .code_tdata(enc_code_tdata), .code_tkeep(enc_code_tkeep),
      .code_tlast(enc_code_tlast), .code_tuser(enc_code_tuser)
    );
    wpr_nic_fre_dec #(.Engines(Decoders)) decoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_midpoint_i(cfg_codec[7]),
      .code_tvalid(dec_code_tvalid), .code_tready(dec_code_tready), .code_tdata(dec_code_tdata),
      .code_tkeep(dec_code_tkeep), .code_tlast(dec_code_tlast), .code_tuser(dec_code_tuser),
      .raw_tvalid(dec_raw_tvalid), .raw_tready(dec_raw_tready), .raw_tdata(dec_raw_tdata),
      .raw_tkeep(dec_raw_tkeep), .raw_tlast(dec_raw_tlast), .raw_tuser(dec_raw_tuser)
    );
  end else begin : g_wide  // one encoder and one decoder of 64 bytes a clock
    logic unused, n_valid, n_ready, c_valid, c_ready;
    logic [13:0] n_less_one;
    assign unused         = ^dec_code_tuser[1:0];
    assign enc_code_tuser = 1'b0;
    wpr_nic_count count (
      .clk_i, .rst_ni, .s_axis_tvalid(dec_code_tvalid), .s_axis_tready(dec_code_tready),
      .s_axis_tlast(dec_code_tlast), .s_axis_tuser(dec_code_tuser[15:2] - 14'd1),
      .m_axis_tvalid(c_valid), .m_axis_tready(c_ready), .m_cmd_tvalid(n_valid),
      .m_cmd_tready(n_ready), .m_cmd_tdata(n_less_one)
    );
    if (Codec == 1) begin : g_tbq
      logic [22:0] tau;
      assign tau = {cfg_codec, 15'd0};
      wpr_tbq_enc encoder (
        .clk_i, .rst_ni, .cfg_tau_i(tau),
        .s_axis_tvalid(enc_raw_tvalid), .s_axis_tready(enc_raw_tready),
        .s_axis_tdata(enc_raw_tdata), .s_axis_tkeep(enc_raw_tkeep), .s_axis_tlast(enc_raw_tlast),
        .m_axis_tvalid(enc_code_tvalid), .m_axis_tready(enc_code_tready),
        .m_axis_tdata(enc_code_tdata), .m_axis_tkeep(enc_code_tkeep), .m_axis_tlast(enc_code_tlast)
      );
      wpr_tbq_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_tau_i(tau),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready),
        .s_axis_tdata(dec_code_tdata), .s_axis_tkeep(dec_code_tkeep), .s_axis_tlast(dec_code_tlast),
        .m_axis_tvalid(dec_raw_tvalid), .m_axis_tready(dec_raw_tready),
        .m_axis_tdata(dec_raw_tdata), .m_axis_tkeep(dec_raw_tkeep), .m_axis_tlast(dec_raw_tlast),
        .m_axis_tuser(dec_raw_tuser)
      );
    end else begin : g_bx
      wpr_bx_enc encoder (
        .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_nearest_i(cfg_codec[5]),
        .cfg_midpoint_i(cfg_codec[7]), .cfg_flush_i(cfg_codec[6]),
        .s_axis_tvalid(enc_raw_tvalid), .s_axis_tready(enc_raw_tready),
        .s_axis_tdata(enc_raw_tdata), .s_axis_tkeep(enc_raw_tkeep), .s_axis_tlast(enc_raw_tlast),
        .m_axis_tvalid(enc_code_tvalid), .m_axis_tready(enc_code_tready),
        .m_axis_tdata(enc_code_tdata), .m_axis_tkeep(enc_code_tkeep), .m_axis_tlast(enc_code_tlast)
      );
      wpr_bx_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_m_i(cfg_codec[4:0]), .cfg_midpoint_i(cfg_codec[7]),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready),
        .s_axis_tdata(dec_code_tdata), .s_axis_tkeep(dec_code_tkeep), .s_axis_tlast(dec_code_tlast),
        .m_axis_tvalid(dec_raw_tvalid), .m_axis_tready(dec_raw_tready),
        .m_axis_tdata(dec_raw_tdata), .m_axis_tkeep(dec_raw_tkeep), .m_axis_tlast(dec_raw_tlast),
        .m_axis_tuser(dec_raw_tuser)
      );
    end
  end

endmodule
