// SPDX-License-Identifier: Apache-2.0
// Stands in for the OpenNIC shell's converter. Both clocks are one here, so it is wires.
module axi_lite_clock_converter (
  input  logic        s_axi_aclk,
  input  logic        s_axi_aresetn,
  input  logic [31:0] s_axi_awaddr,
  input  logic [ 2:0] s_axi_awprot,
  input  logic        s_axi_awvalid,
  output logic        s_axi_awready,
  input  logic [31:0] s_axi_wdata,
  input  logic [ 3:0] s_axi_wstrb,
  input  logic        s_axi_wvalid,
  output logic        s_axi_wready,
  output logic [ 1:0] s_axi_bresp,
  output logic        s_axi_bvalid,
  input  logic        s_axi_bready,
  input  logic [31:0] s_axi_araddr,
  input  logic [ 2:0] s_axi_arprot,
  input  logic        s_axi_arvalid,
  output logic        s_axi_arready,
  output logic [31:0] s_axi_rdata,
  output logic [ 1:0] s_axi_rresp,
  output logic        s_axi_rvalid,
  input  logic        s_axi_rready,
  input  logic        m_axi_aclk,
  input  logic        m_axi_aresetn,
  output logic [31:0] m_axi_awaddr,
  output logic [ 2:0] m_axi_awprot,
  output logic        m_axi_awvalid,
  input  logic        m_axi_awready,
  output logic [31:0] m_axi_wdata,
  output logic [ 3:0] m_axi_wstrb,
  output logic        m_axi_wvalid,
  input  logic        m_axi_wready,
  input  logic [ 1:0] m_axi_bresp,
  input  logic        m_axi_bvalid,
  output logic        m_axi_bready,
  output logic [31:0] m_axi_araddr,
  output logic [ 2:0] m_axi_arprot,
  output logic        m_axi_arvalid,
  input  logic        m_axi_arready,
  input  logic [31:0] m_axi_rdata,
  input  logic [ 1:0] m_axi_rresp,
  input  logic        m_axi_rvalid,
  output logic        m_axi_rready
);
  assign {m_axi_awaddr, m_axi_awprot, m_axi_awvalid} = {s_axi_awaddr, s_axi_awprot, s_axi_awvalid};
  assign {m_axi_wdata, m_axi_wstrb, m_axi_wvalid}    = {s_axi_wdata, s_axi_wstrb, s_axi_wvalid};
  assign {m_axi_araddr, m_axi_arprot, m_axi_arvalid} = {s_axi_araddr, s_axi_arprot, s_axi_arvalid};
  assign {m_axi_bready, m_axi_rready}                = {s_axi_bready, s_axi_rready};
  assign {s_axi_awready, s_axi_wready}               = {m_axi_awready, m_axi_wready};
  assign s_axi_arready                               = m_axi_arready;
  assign {s_axi_bresp, s_axi_bvalid}                 = {m_axi_bresp, m_axi_bvalid};
  assign {s_axi_rdata, s_axi_rresp, s_axi_rvalid}    = {m_axi_rdata, m_axi_rresp, m_axi_rvalid};
endmodule
