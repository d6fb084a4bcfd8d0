// SPDX-License-Identifier: Apache-2.0
// Settings and counters of the NIC box by AXI-Lite; README.md has the map. Addresses that are not
// in the map read 0 and ignore writes. The clock is that of the packets: a shell whose AXI-Lite has
// another clock brings a converter.
module wpr_nic_regs
  import wpr_axil_pkg::*;
#(
  parameter int unsigned FrameHeader = 16  // bytes, 24 at most
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,         // synchronous
  input  axil_request_t            axil_i,
  output axil_response_t           axil_o,
  output logic                     cfg_compress_o,
  output logic                     cfg_expand_o,
  output logic [ 7:0]              cfg_codec_o,
  output logic [15:0]              cfg_max_o,
  output logic [ 3:0][15:0]        cfg_ports_o,
  output logic [8*FrameHeader-1:0] cfg_header_o,
  input  logic [ 6:0]              event_i         // which counters count one more
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

  logic write, bvalid_q, rvalid_q;
  logic [31:0] rdata_q;
  assign write  = axil_i.awvalid && axil_i.wvalid && !bvalid_q;
  assign axil_o = '{
      awready: write, wready: write, bvalid: bvalid_q, bresp: 2'b00,
      arready: !rvalid_q, rvalid: rvalid_q, rdata: rdata_q, rresp: 2'b00
  };

  always_ff @(posedge clk_i) begin
    for (int i = 1; i < 14; i++) begin
      for (int j = 0; j < 4; j++) begin
        if (write && axil_i.awaddr[7:2] == 6'(i) && axil_i.wstrb[j]) begin
          set_q[i][8*j+:8] <= axil_i.wdata[8*j+:8];
        end
      end
    end
    bvalid_q <= write || (bvalid_q && !axil_i.bready);
    rvalid_q <= (axil_i.arvalid && !rvalid_q) || (rvalid_q && !axil_i.rready);
    if (!rvalid_q) begin
      rdata_q <= '0;
      for (int i = 1; i < 14; i++) if (axil_i.araddr[7:2] == 6'(i)) rdata_q <= set_q[i];
      for (int i = 0; i < 7; i++) if (axil_i.araddr[7:2] == 6'(16 + i)) rdata_q <= count_q[i];
      if (axil_i.araddr[7:2] == 6'd0) rdata_q <= Id;
    end
    for (int i = 0; i < 7; i++) if (event_i[i]) count_q[i] <= count_q[i] + 1'b1;
    if (!rst_ni) begin
      set_q    <= '0;
      count_q  <= '0;
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
    end
  end

endmodule
