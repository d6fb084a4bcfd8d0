// SPDX-License-Identifier: Apache-2.0
// wpr_nic in the 250 MHz user box of an OpenNIC shell (1.0: one QDMA): a box for each pair
// of physical function and port, with the ports that the shell's plugin p2p_250mhz has. Registers
// of interface i begin at 0x100 * i. generic_reset and axi_lite_clock_converter are parts of the
// shell; tests have replacements (tb/).
//
// Packets to the wire leave for port i (tuser_dst bit 6 + i), those to the host for function i (bit
// i).
module wpr_nic_250mhz
  import wpr_axil_pkg::*, wpr_nic_pkg::*;
#(
  parameter int NUM_INTF = 1,  // 1 or 2
  parameter int CODEC    = 0,  // of wpr_nic
  parameter int ENGINES  = 16  // of each direction and interface, with fre and lz4
) (
  input  logic       [NUM_INTF-1:0] s_axis_qdma_h2c_tvalid,
  input  logic   [512*NUM_INTF-1:0] s_axis_qdma_h2c_tdata,
  input  logic    [64*NUM_INTF-1:0] s_axis_qdma_h2c_tkeep,
  input  logic       [NUM_INTF-1:0] s_axis_qdma_h2c_tlast,
  input  logic    [16*NUM_INTF-1:0] s_axis_qdma_h2c_tuser_size,
  input  logic    [16*NUM_INTF-1:0] s_axis_qdma_h2c_tuser_src,
  input  logic    [16*NUM_INTF-1:0] s_axis_qdma_h2c_tuser_dst,
  output logic       [NUM_INTF-1:0] s_axis_qdma_h2c_tready,
  output logic       [NUM_INTF-1:0] m_axis_qdma_c2h_tvalid,
  output logic   [512*NUM_INTF-1:0] m_axis_qdma_c2h_tdata,
  output logic    [64*NUM_INTF-1:0] m_axis_qdma_c2h_tkeep,
  output logic       [NUM_INTF-1:0] m_axis_qdma_c2h_tlast,
  output logic    [16*NUM_INTF-1:0] m_axis_qdma_c2h_tuser_size,
  output logic    [16*NUM_INTF-1:0] m_axis_qdma_c2h_tuser_src,
  output logic    [16*NUM_INTF-1:0] m_axis_qdma_c2h_tuser_dst,
  input  logic       [NUM_INTF-1:0] m_axis_qdma_c2h_tready,
  output logic       [NUM_INTF-1:0] m_axis_adap_tx_250mhz_tvalid,
  output logic   [512*NUM_INTF-1:0] m_axis_adap_tx_250mhz_tdata,
  output logic    [64*NUM_INTF-1:0] m_axis_adap_tx_250mhz_tkeep,
  output logic       [NUM_INTF-1:0] m_axis_adap_tx_250mhz_tlast,
  output logic    [16*NUM_INTF-1:0] m_axis_adap_tx_250mhz_tuser_size,
  output logic    [16*NUM_INTF-1:0] m_axis_adap_tx_250mhz_tuser_src,
  output logic    [16*NUM_INTF-1:0] m_axis_adap_tx_250mhz_tuser_dst,
  input  logic       [NUM_INTF-1:0] m_axis_adap_tx_250mhz_tready,
  input  logic       [NUM_INTF-1:0] s_axis_adap_rx_250mhz_tvalid,
  input  logic   [512*NUM_INTF-1:0] s_axis_adap_rx_250mhz_tdata,
  input  logic    [64*NUM_INTF-1:0] s_axis_adap_rx_250mhz_tkeep,
  input  logic       [NUM_INTF-1:0] s_axis_adap_rx_250mhz_tlast,
  input  logic    [16*NUM_INTF-1:0] s_axis_adap_rx_250mhz_tuser_size,
  input  logic    [16*NUM_INTF-1:0] s_axis_adap_rx_250mhz_tuser_src,
  input  logic    [16*NUM_INTF-1:0] s_axis_adap_rx_250mhz_tuser_dst,
  output logic       [NUM_INTF-1:0] s_axis_adap_rx_250mhz_tready,
  input  logic                      s_axil_awvalid,
  input  logic               [31:0] s_axil_awaddr,
  output logic                      s_axil_awready,
  input  logic                      s_axil_wvalid,
  input  logic               [31:0] s_axil_wdata,
  output logic                      s_axil_wready,
  output logic                      s_axil_bvalid,
  output logic                [1:0] s_axil_bresp,
  input  logic                      s_axil_bready,
  input  logic                      s_axil_arvalid,
  input  logic               [31:0] s_axil_araddr,
  output logic                      s_axil_arready,
  output logic                      s_axil_rvalid,
  output logic               [31:0] s_axil_rdata,
  output logic                [1:0] s_axil_rresp,
  input  logic                      s_axil_rready,
  input  logic                      mod_rstn,
  output logic                      mod_rst_done,
  input  logic                      axil_aclk,
  input  logic                      axis_aclk
);

  logic axil_aresetn;
  logic [1:0] rst_n_q;
  generic_reset #(
    .NUM_INPUT_CLK (1),
    .RESET_DURATION(100)
  ) reset_inst (
    .mod_rstn    (mod_rstn),
    .mod_rst_done(mod_rst_done),
    .clk         (axil_aclk),
    .rstn        (axil_aresetn)
  );
  always_ff @(posedge axis_aclk) rst_n_q <= {rst_n_q[0], axil_aresetn};

  // Registers on the packets' clock, one access at a time.
  logic r_awvalid, r_awready, r_wvalid, r_wready, r_bvalid, r_bready;
  logic r_arvalid, r_arready, r_rvalid, r_rready;
  logic [31:0] r_awaddr, r_wdata, r_araddr, r_rdata;
  axi_lite_clock_converter converter (
    .s_axi_aclk(axil_aclk), .s_axi_aresetn(axil_aresetn),
    .s_axi_awaddr(s_axil_awaddr), .s_axi_awprot(3'd0), .s_axi_awvalid(s_axil_awvalid),
    .s_axi_awready(s_axil_awready), .s_axi_wdata(s_axil_wdata), .s_axi_wstrb(4'hF),
    .s_axi_wvalid(s_axil_wvalid), .s_axi_wready(s_axil_wready), .s_axi_bvalid(s_axil_bvalid),
    .s_axi_bresp(s_axil_bresp), .s_axi_bready(s_axil_bready), .s_axi_araddr(s_axil_araddr),
    .s_axi_arprot(3'd0), .s_axi_arvalid(s_axil_arvalid), .s_axi_arready(s_axil_arready),
    .s_axi_rdata(s_axil_rdata), .s_axi_rresp(s_axil_rresp), .s_axi_rvalid(s_axil_rvalid),
    .s_axi_rready(s_axil_rready),
    .m_axi_aclk(axis_aclk), .m_axi_aresetn(rst_n_q[1]),
    .m_axi_awaddr(r_awaddr), .m_axi_awprot(), .m_axi_awvalid(r_awvalid),
    .m_axi_awready(r_awready), .m_axi_wdata(r_wdata), .m_axi_wstrb(), .m_axi_wvalid(r_wvalid),
    .m_axi_wready(r_wready), .m_axi_bvalid(r_bvalid), .m_axi_bresp(2'b00), .m_axi_bready(r_bready),
    .m_axi_araddr(r_araddr), .m_axi_arprot(), .m_axi_arvalid(r_arvalid),
    .m_axi_arready(r_arready), .m_axi_rdata(r_rdata), .m_axi_rresp(2'b00),
    .m_axi_rvalid(r_rvalid), .m_axi_rready(r_rready)
  );
  logic [NUM_INTF-1:0] aw_here, ar_here;
  logic [NUM_INTF-1:0] p_awready, p_wready, p_bvalid, p_arready, p_rvalid;
  logic [NUM_INTF-1:0][31:0] p_rdata;
  assign {r_awready, r_wready, r_bvalid} = {|p_awready, |p_wready, |p_bvalid};
  assign {r_arready, r_rvalid}           = {|(p_arready & ar_here), |p_rvalid};
  always_comb begin
    r_rdata = '0;
    for (int i = 0; i < NUM_INTF; i++) if (p_rvalid[i]) r_rdata = p_rdata[i];
  end

  for (genvar i = 0; i < NUM_INTF; i++) begin : g_intf
    assign aw_here[i] = int'(r_awaddr[11:8]) % NUM_INTF == i && !(|p_bvalid);
    assign ar_here[i] = int'(r_araddr[11:8]) % NUM_INTF == i && !(|p_rvalid);
    axil_request_t request;
    axil_response_t response;
    packet_beat_t h2c, adap_tx, adap_rx, c2h;
    assign request = '{
        awvalid: r_awvalid && aw_here[i], wvalid: r_wvalid && aw_here[i], bready: r_bready,
        arvalid: r_arvalid && ar_here[i], rready: r_rready, awaddr: r_awaddr[7:0],
        araddr: r_araddr[7:0], wdata: r_wdata, wstrb: 4'hF
    };
    assign {p_awready[i], p_wready[i]} = {response.awready, response.wready};
    assign {p_bvalid[i], p_arready[i]} = {response.bvalid, response.arready};
    assign {p_rvalid[i], p_rdata[i]}   = {response.rvalid, response.rdata};
    assign h2c = {
        s_axis_qdma_h2c_tlast[i], s_axis_qdma_h2c_tdata[512*i+:512],
        s_axis_qdma_h2c_tkeep[64*i+:64], s_axis_qdma_h2c_tuser_size[16*i+:16],
        s_axis_qdma_h2c_tuser_src[16*i+:16]
    };
    assign adap_rx = {
        s_axis_adap_rx_250mhz_tlast[i], s_axis_adap_rx_250mhz_tdata[512*i+:512],
        s_axis_adap_rx_250mhz_tkeep[64*i+:64], s_axis_adap_rx_250mhz_tuser_size[16*i+:16],
        s_axis_adap_rx_250mhz_tuser_src[16*i+:16]
    };
    assign {
        m_axis_adap_tx_250mhz_tlast[i], m_axis_adap_tx_250mhz_tdata[512*i+:512],
        m_axis_adap_tx_250mhz_tkeep[64*i+:64], m_axis_adap_tx_250mhz_tuser_size[16*i+:16],
        m_axis_adap_tx_250mhz_tuser_src[16*i+:16]
    } = adap_tx;
    assign {
        m_axis_qdma_c2h_tlast[i], m_axis_qdma_c2h_tdata[512*i+:512],
        m_axis_qdma_c2h_tkeep[64*i+:64], m_axis_qdma_c2h_tuser_size[16*i+:16],
        m_axis_qdma_c2h_tuser_src[16*i+:16]
    } = c2h;
    assign m_axis_adap_tx_250mhz_tuser_dst[16*i+:16] = 16'h1 << (6 + i);
    assign m_axis_qdma_c2h_tuser_dst[16*i+:16]       = 16'h1 << i;
    wpr_nic #(.Codec(CODEC), .Encoders(ENGINES), .Decoders(ENGINES)) box (
      .clk_i(axis_aclk), .rst_ni(rst_n_q[1]), .axil_i(request), .axil_o(response),
      .h2c_valid_i(s_axis_qdma_h2c_tvalid[i]), .h2c_ready_o(s_axis_qdma_h2c_tready[i]),
      .h2c_beat_i(h2c), .adap_tx_valid_o(m_axis_adap_tx_250mhz_tvalid[i]),
      .adap_tx_ready_i(m_axis_adap_tx_250mhz_tready[i]), .adap_tx_beat_o(adap_tx),
      .adap_rx_valid_i(s_axis_adap_rx_250mhz_tvalid[i]),
      .adap_rx_ready_o(s_axis_adap_rx_250mhz_tready[i]), .adap_rx_beat_i(adap_rx),
      .c2h_valid_o(m_axis_qdma_c2h_tvalid[i]), .c2h_ready_i(m_axis_qdma_c2h_tready[i]),
      .c2h_beat_o(c2h)
    );
  end

endmodule
