// SPDX-License-Identifier: Apache-2.0
// wpr_nic with flat ports and src and size in one tuser, as the models of bench_nic.py and pair/
// have them.
module wpr_nic_tb
  import wpr_axil_pkg::*, wpr_nic_pkg::*;
#(
  parameter int unsigned Codec    = 0,    // these: of wpr_nic
  parameter int unsigned Encoders = 2,
  parameter int unsigned Decoders = 2,
  parameter bit CodeBlockRam      = 1'b0
) (
  input  logic         clk_i,
  input  logic         rst_ni,
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
  input  logic         h2c_tvalid,
  output logic         h2c_tready,
  input  logic [511:0] h2c_tdata,
  input  logic [ 63:0] h2c_tkeep,
  input  logic         h2c_tlast,
  input  logic [ 31:0] h2c_tuser,
  output logic         adap_tx_tvalid,
  input  logic         adap_tx_tready,
  output logic [511:0] adap_tx_tdata,
  output logic [ 63:0] adap_tx_tkeep,
  output logic         adap_tx_tlast,
  output logic [ 31:0] adap_tx_tuser,
  input  logic         adap_rx_tvalid,
  output logic         adap_rx_tready,
  input  logic [511:0] adap_rx_tdata,
  input  logic [ 63:0] adap_rx_tkeep,
  input  logic         adap_rx_tlast,
  input  logic [ 31:0] adap_rx_tuser,
  output logic         c2h_tvalid,
  input  logic         c2h_tready,
  output logic [511:0] c2h_tdata,
  output logic [ 63:0] c2h_tkeep,
  output logic         c2h_tlast,
  output logic [ 31:0] c2h_tuser
);
  axil_request_t request;
  axil_response_t response;
  packet_beat_t h2c, adap_tx, adap_rx, c2h;
  assign request = '{
      awvalid: s_axil_awvalid, wvalid: s_axil_wvalid, bready: s_axil_bready,
      arvalid: s_axil_arvalid, rready: s_axil_rready, awaddr: s_axil_awaddr,
      araddr: s_axil_araddr, wdata: s_axil_wdata, wstrb: s_axil_wstrb
  };
  assign {s_axil_awready, s_axil_wready}               = {response.awready, response.wready};
  assign {s_axil_bvalid, s_axil_bresp, s_axil_arready} =
      {response.bvalid, response.bresp, response.arready};
  assign {s_axil_rvalid, s_axil_rdata, s_axil_rresp}   =
      {response.rvalid, response.rdata, response.rresp};
  assign h2c = {h2c_tlast, h2c_tdata, h2c_tkeep, h2c_tuser[15:0], h2c_tuser[31:16]};
  assign adap_rx = {
      adap_rx_tlast, adap_rx_tdata, adap_rx_tkeep, adap_rx_tuser[15:0], adap_rx_tuser[31:16]
  };
  assign {adap_tx_tlast, adap_tx_tdata, adap_tx_tkeep, adap_tx_tuser} =
      {adap_tx.beat, adap_tx.src, adap_tx.size};
  assign {c2h_tlast, c2h_tdata, c2h_tkeep, c2h_tuser} = {c2h.beat, c2h.src, c2h.size};
  wpr_nic #(
    .Codec(Codec), .Encoders(Encoders), .Decoders(Decoders), .CodeBlockRam(CodeBlockRam)
  ) box (
    .clk_i, .rst_ni, .axil_i(request), .axil_o(response),
    .h2c_valid_i(h2c_tvalid), .h2c_ready_o(h2c_tready), .h2c_beat_i(h2c),
    .adap_tx_valid_o(adap_tx_tvalid), .adap_tx_ready_i(adap_tx_tready), .adap_tx_beat_o(adap_tx),
    .adap_rx_valid_i(adap_rx_tvalid), .adap_rx_ready_o(adap_rx_tready), .adap_rx_beat_i(adap_rx),
    .c2h_valid_o(c2h_tvalid), .c2h_ready_i(c2h_tready), .c2h_beat_o(c2h)
  );
endmodule
