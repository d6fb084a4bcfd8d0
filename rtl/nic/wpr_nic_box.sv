// SPDX-License-Identifier: Apache-2.0
// What is between host and wire of one port, for the 250 MHz user box of an OpenNIC shell: wpr_nic_tx,
// wpr_nic_rx and their registers; the codec is its user's.
//
// tuser_dst: packets to the wire get ToWire, those to the host ToHost.
module wpr_nic_box #(
  parameter int unsigned FrameHeader = 16,         // bytes of a frame's header with this codec
  parameter int unsigned Unit        = 4,          // bytes of its values
  parameter logic [15:0] ToWire      = 16'h0040,
  parameter logic [15:0] ToHost      = 16'h0001,
  parameter bit CodeBlockRam         = 1'b0  // memory for codes, of devices with narrow block RAM
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
  output logic [ 15:0]  m_axis_c2h_tuser_dst,
  // to the encoder and back
  output logic         enc_raw_tvalid,
  input  logic         enc_raw_tready,
  output logic [511:0] enc_raw_tdata,
  output logic [ 63:0] enc_raw_tkeep,
  output logic         enc_raw_tlast,
  input  logic         enc_code_tvalid,
  output logic         enc_code_tready,
  input  logic [511:0] enc_code_tdata,
  input  logic [ 63:0] enc_code_tkeep,
  input  logic         enc_code_tlast,
  input  logic          enc_code_tuser,
  // to the decoder and back
  output logic         dec_code_tvalid,
  input  logic         dec_code_tready,
  output logic [511:0] dec_code_tdata,
  output logic [ 63:0] dec_code_tkeep,
  output logic         dec_code_tlast,
  output logic [ 15:0]  dec_code_tuser,
  input  logic         dec_raw_tvalid,
  output logic         dec_raw_tready,
  input  logic [511:0] dec_raw_tdata,
  input  logic [ 63:0] dec_raw_tkeep,
  input  logic         dec_raw_tlast,
  input  logic          dec_raw_tuser,
  output logic [  7:0] cfg_codec_o  // settings of the codec
);

  logic compress, expand, unused;
  logic [15:0] most;
  logic [3:0][15:0] ports;
  logic [8*FrameHeader-1:0] frame_header;
  logic [6:0] events;
  assign m_axis_adap_tx_tuser_dst = ToWire;
  assign m_axis_c2h_tuser_dst     = ToHost;
  assign unused = ^{s_axis_h2c_tuser_dst, s_axis_adap_rx_tuser_dst};

  wpr_nic_regs #(.FrameHeader(FrameHeader)) regs (
    .clk_i, .rst_ni, .s_axil_awvalid, .s_axil_awready, .s_axil_awaddr, .s_axil_wvalid,
    .s_axil_wready, .s_axil_wdata, .s_axil_wstrb, .s_axil_bvalid, .s_axil_bready, .s_axil_bresp,
    .s_axil_arvalid, .s_axil_arready, .s_axil_araddr, .s_axil_rvalid, .s_axil_rready,
    .s_axil_rdata, .s_axil_rresp, .cfg_compress_o(compress), .cfg_expand_o(expand), .cfg_codec_o,
    .cfg_max_o(most), .cfg_ports_o(ports), .cfg_header_o(frame_header), .event_i(events)
  );
  wpr_nic_tx #(.FrameHeader(FrameHeader), .Unit(Unit), .CodeBlockRam(CodeBlockRam)) tx (
    .clk_i, .rst_ni, .cfg_enable_i(compress), .cfg_ports_i(ports), .cfg_max_i(most),
    .cfg_header_i(frame_header), .s_axis_tvalid(s_axis_h2c_tvalid),
    .s_axis_tready(s_axis_h2c_tready), .s_axis_tdata(s_axis_h2c_tdata),
    .s_axis_tkeep(s_axis_h2c_tkeep), .s_axis_tlast(s_axis_h2c_tlast),
    .s_axis_tuser_size(s_axis_h2c_tuser_size), .s_axis_tuser_src(s_axis_h2c_tuser_src),
    .m_axis_tvalid(m_axis_adap_tx_tvalid), .m_axis_tready(m_axis_adap_tx_tready),
    .m_axis_tdata(m_axis_adap_tx_tdata), .m_axis_tkeep(m_axis_adap_tx_tkeep),
    .m_axis_tlast(m_axis_adap_tx_tlast), .m_axis_tuser_size(m_axis_adap_tx_tuser_size),
    .m_axis_tuser_src(m_axis_adap_tx_tuser_src), .raw_tvalid(enc_raw_tvalid),
    .raw_tready(enc_raw_tready), .raw_tdata(enc_raw_tdata), .raw_tkeep(enc_raw_tkeep),
    .raw_tlast(enc_raw_tlast), .code_tvalid(enc_code_tvalid), .code_tready(enc_code_tready),
    .code_tdata(enc_code_tdata), .code_tkeep(enc_code_tkeep), .code_tlast(enc_code_tlast),
    .code_tuser(enc_code_tuser), .event_o(events[3:0])
  );
  wpr_nic_rx #(.FrameHeader(FrameHeader), .Unit(Unit)) rx (
    .clk_i, .rst_ni, .cfg_enable_i(expand), .cfg_ports_i(ports), .cfg_max_i(most),
    .cfg_header_i(frame_header), .s_axis_tvalid(s_axis_adap_rx_tvalid),
    .s_axis_tready(s_axis_adap_rx_tready), .s_axis_tdata(s_axis_adap_rx_tdata),
    .s_axis_tkeep(s_axis_adap_rx_tkeep), .s_axis_tlast(s_axis_adap_rx_tlast),
    .s_axis_tuser_size(s_axis_adap_rx_tuser_size), .s_axis_tuser_src(s_axis_adap_rx_tuser_src),
    .m_axis_tvalid(m_axis_c2h_tvalid), .m_axis_tready(m_axis_c2h_tready),
    .m_axis_tdata(m_axis_c2h_tdata), .m_axis_tkeep(m_axis_c2h_tkeep),
    .m_axis_tlast(m_axis_c2h_tlast), .m_axis_tuser_size(m_axis_c2h_tuser_size),
    .m_axis_tuser_src(m_axis_c2h_tuser_src), .code_tvalid(dec_code_tvalid),
    .code_tready(dec_code_tready), .code_tdata(dec_code_tdata), .code_tkeep(dec_code_tkeep),
    .code_tlast(dec_code_tlast), .code_tuser(dec_code_tuser), .raw_tvalid(dec_raw_tvalid),
    .raw_tready(dec_raw_tready), .raw_tdata(dec_raw_tdata), .raw_tkeep(dec_raw_tkeep),
    .raw_tlast(dec_raw_tlast), .raw_tuser(dec_raw_tuser), .event_o(events[6:4])
  );

endmodule
