// SPDX-License-Identifier: Apache-2.0
// The OpenNIC user box with two interfaces, for bench_opennic.py. Packets go through the second
// interface. Parts of this folder stand in for the shell's. The ports are those of wpr_nic_tb, but
// tuser holds dst in bits 32-47, too.
module wpr_nic_250mhz_tb (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         s_axil_awvalid,
  output logic         s_axil_awready,
  input  logic [ 31:0] s_axil_awaddr,
  input  logic         s_axil_wvalid,
  output logic         s_axil_wready,
  input  logic [ 31:0] s_axil_wdata,
  input  logic [  3:0] s_axil_wstrb,
  output logic         s_axil_bvalid,
  input  logic         s_axil_bready,
  output logic [  1:0] s_axil_bresp,
  input  logic         s_axil_arvalid,
  output logic         s_axil_arready,
  input  logic [ 31:0] s_axil_araddr,
  output logic         s_axil_rvalid,
  input  logic         s_axil_rready,
  output logic [ 31:0] s_axil_rdata,
  output logic [  1:0] s_axil_rresp,
  output logic         done_o,  // with reset
  output logic         other_o,  // the first interface sends something
  input  logic         h2c_tvalid,
  output logic         h2c_tready,
  input  logic [511:0] h2c_tdata,
  input  logic [ 63:0] h2c_tkeep,
  input  logic         h2c_tlast,
  input  logic [ 47:0] h2c_tuser,
  output logic         adap_tx_tvalid,
  input  logic         adap_tx_tready,
  output logic [511:0] adap_tx_tdata,
  output logic [ 63:0] adap_tx_tkeep,
  output logic         adap_tx_tlast,
  output logic [ 47:0] adap_tx_tuser,
  input  logic         adap_rx_tvalid,
  output logic         adap_rx_tready,
  input  logic [511:0] adap_rx_tdata,
  input  logic [ 63:0] adap_rx_tkeep,
  input  logic         adap_rx_tlast,
  input  logic [ 47:0] adap_rx_tuser,
  output logic         c2h_tvalid,
  input  logic         c2h_tready,
  output logic [511:0] c2h_tdata,
  output logic [ 63:0] c2h_tkeep,
  output logic         c2h_tlast,
  output logic [ 47:0] c2h_tuser
);
  logic [1:0] tx_valid, rx_ready, c2h_valid, h2c_ready, tx_last, c2h_last;
  logic [1:0][511:0] tx_data, c2h_data;
  logic [1:0][63:0] tx_keep, c2h_keep;
  logic [1:0][15:0] tx_size, tx_src, tx_dst, c2h_size, c2h_src, c2h_dst;
  assign {adap_tx_tvalid, adap_tx_tdata, adap_tx_tkeep, adap_tx_tlast, adap_tx_tuser} =
      {tx_valid[1], tx_data[1], tx_keep[1], tx_last[1], tx_dst[1], tx_src[1], tx_size[1]};
  assign {c2h_tvalid, c2h_tdata, c2h_tkeep, c2h_tlast, c2h_tuser} =
      {c2h_valid[1], c2h_data[1], c2h_keep[1], c2h_last[1], c2h_dst[1], c2h_src[1], c2h_size[1]};
  assign {h2c_tready, adap_rx_tready} = {h2c_ready[1], rx_ready[1]};
  assign other_o = tx_valid[0] || c2h_valid[0];
  wpr_nic_250mhz #(.NUM_INTF(2), .ENGINES(1)) box (
    .axil_aclk(clk_i), .axis_aclk(clk_i), .mod_rstn(rst_ni), .mod_rst_done(done_o),
    .s_axil_awvalid, .s_axil_awready, .s_axil_awaddr, .s_axil_wvalid, .s_axil_wready,
    .s_axil_wdata, .s_axil_bvalid, .s_axil_bready, .s_axil_bresp, .s_axil_arvalid,
    .s_axil_arready, .s_axil_araddr, .s_axil_rvalid, .s_axil_rready, .s_axil_rdata, .s_axil_rresp,
    .s_axis_qdma_h2c_tvalid({h2c_tvalid, 1'b0}), .s_axis_qdma_h2c_tready(h2c_ready),
    .s_axis_qdma_h2c_tdata({h2c_tdata, 512'b0}), .s_axis_qdma_h2c_tkeep({h2c_tkeep, 64'b0}),
    .s_axis_qdma_h2c_tlast({h2c_tlast, 1'b0}),
    .s_axis_qdma_h2c_tuser_size({h2c_tuser[15:0], 16'b0}),
    .s_axis_qdma_h2c_tuser_src({h2c_tuser[31:16], 16'b0}),
    .s_axis_qdma_h2c_tuser_dst({h2c_tuser[47:32], 16'b0}),
    .m_axis_qdma_c2h_tvalid(c2h_valid), .m_axis_qdma_c2h_tready({c2h_tready, 1'b1}),
    .m_axis_qdma_c2h_tdata(c2h_data), .m_axis_qdma_c2h_tkeep(c2h_keep),
    .m_axis_qdma_c2h_tlast(c2h_last), .m_axis_qdma_c2h_tuser_size(c2h_size),
    .m_axis_qdma_c2h_tuser_src(c2h_src), .m_axis_qdma_c2h_tuser_dst(c2h_dst),
    .m_axis_adap_tx_250mhz_tvalid(tx_valid), .m_axis_adap_tx_250mhz_tready({adap_tx_tready, 1'b1}),
    .m_axis_adap_tx_250mhz_tdata(tx_data), .m_axis_adap_tx_250mhz_tkeep(tx_keep),
    .m_axis_adap_tx_250mhz_tlast(tx_last), .m_axis_adap_tx_250mhz_tuser_size(tx_size),
    .m_axis_adap_tx_250mhz_tuser_src(tx_src), .m_axis_adap_tx_250mhz_tuser_dst(tx_dst),
    .s_axis_adap_rx_250mhz_tvalid({adap_rx_tvalid, 1'b0}),
    .s_axis_adap_rx_250mhz_tready(rx_ready),
    .s_axis_adap_rx_250mhz_tdata({adap_rx_tdata, 512'b0}),
    .s_axis_adap_rx_250mhz_tkeep({adap_rx_tkeep, 64'b0}),
    .s_axis_adap_rx_250mhz_tlast({adap_rx_tlast, 1'b0}),
    .s_axis_adap_rx_250mhz_tuser_size({adap_rx_tuser[15:0], 16'b0}),
    .s_axis_adap_rx_250mhz_tuser_src({adap_rx_tuser[31:16], 16'b0}),
    .s_axis_adap_rx_250mhz_tuser_dst({adap_rx_tuser[47:32], 16'b0})
  );
endmodule
