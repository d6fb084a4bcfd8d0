// SPDX-License-Identifier: Apache-2.0
// Settings and counters of the NIC box by AXI-Lite, 32 bits; the map is in README.md. On the clock
// of the packets: a shell with another for AXI-Lite has a converter for it. Addresses that are
// not in the map read 0 and take nothing.
module wpr_nic_regs #(
  parameter int unsigned FrameHeader = 16  // bytes, 24 at most
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,         // synchronous
  input  logic                     s_axil_awvalid,
  output logic                     s_axil_awready,
  input  logic [ 7:0]              s_axil_awaddr,
  input  logic                     s_axil_wvalid,
  output logic                     s_axil_wready,
  input  logic [31:0]              s_axil_wdata,
  input  logic [ 3:0]              s_axil_wstrb,
  output logic                     s_axil_bvalid,
  input  logic                     s_axil_bready,
  output logic [ 1:0]              s_axil_bresp,
  input  logic                     s_axil_arvalid,
  output logic                     s_axil_arready,
  input  logic [ 7:0]              s_axil_araddr,
  output logic                     s_axil_rvalid,
  input  logic                     s_axil_rready,
  output logic [31:0]              s_axil_rdata,
  output logic [ 1:0]              s_axil_rresp,
  output logic                     cfg_compress_o,
  output logic                     cfg_expand_o,
  output logic [ 7:0]              cfg_codec_o,
  output logic [15:0]              cfg_max_o,
  output logic [ 3:0][15:0]        cfg_ports_o,
  output logic [8*FrameHeader-1:0] cfg_header_o,
  input  logic [ 6:0]              event_i         // one more for each counter
);

  localparam logic [31:0] Id = 32'h01525057;  // "WPR", 1
  logic [13:0][31:0] set_q;  // words 0 to 13 of the map
  logic [6:0][31:0] count_q;
  assign cfg_compress_o = set_q[1][0];
  assign cfg_expand_o   = set_q[1][1];
  assign cfg_codec_o    = set_q[1][15:8];
  assign cfg_max_o      = set_q[2][15:0];
  assign cfg_ports_o    = {set_q[7][15:0], set_q[6][15:0], set_q[5][15:0], set_q[4][15:0]};
  always_comb for (int i = 0; i < FrameHeader; i++) cfg_header_o[8*i+:8] = set_q[8+i/4][8*(i%4)+:8];

  assign s_axil_awready = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid;
  assign s_axil_wready  = s_axil_awready;
  assign s_axil_bresp   = 2'b00;
  assign s_axil_rresp   = 2'b00;
  assign s_axil_arready = !s_axil_rvalid;

  always_ff @(posedge clk_i) begin
    for (int i = 1; i < 14; i++) begin
      for (int j = 0; j < 4; j++) begin
        if (s_axil_awready && s_axil_awaddr[7:2] == 6'(i) && s_axil_wstrb[j]) begin
          set_q[i][8*j+:8] <= s_axil_wdata[8*j+:8];
        end
      end
    end
    s_axil_bvalid <= s_axil_awready || (s_axil_bvalid && !s_axil_bready);
    s_axil_rvalid <= (s_axil_arvalid && s_axil_arready) || (s_axil_rvalid && !s_axil_rready);
    if (s_axil_arready) begin
      s_axil_rdata <= '0;
      for (int i = 1; i < 14; i++) if (s_axil_araddr[7:2] == 6'(i)) s_axil_rdata <= set_q[i];
      for (int i = 0; i < 7; i++) if (s_axil_araddr[7:2] == 6'(16 + i)) s_axil_rdata <= count_q[i];
      if (s_axil_araddr[7:2] == 6'd0) s_axil_rdata <= Id;
    end
    for (int i = 0; i < 7; i++) if (event_i[i]) count_q[i] <= count_q[i] + 1'b1;
    if (!rst_ni) begin
      set_q         <= '0;
      count_q       <= '0;
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end
  end

endmodule
