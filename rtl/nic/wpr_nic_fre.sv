// SPDX-License-Identifier: Apache-2.0
// wpr_nic_box with pools of fre encoders and decoders: m is in bits 8-12 of the control register,
// round=nearest in 13, flush in 14, round=midpoint in 15.
module wpr_nic_fre #(
  parameter int unsigned Encoders = 4,             // 4 bytes a clock each
  parameter int unsigned Decoders = 4,
  parameter logic [15:0] ToWire   = 16'h0040,
  parameter logic [15:0] ToHost   = 16'h0001
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
  wpr_nic_box #(.FrameHeader(16), .Unit(4), .ToWire(ToWire), .ToHost(ToHost)) box (
    .*, .cfg_codec_o(cfg_codec)
  );
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

endmodule
