// SPDX-License-Identifier: Apache-2.0
// wpr_nic_regs: one answer for each write and read, held until it is taken; a setting reads as it
// was written, and counters count.
module wpr_nic_regs_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        s_axil_awvalid,
  input logic [ 7:0] s_axil_awaddr,
  input logic        s_axil_wvalid,
  input logic [31:0] s_axil_wdata,
  input logic        s_axil_bready,
  input logic        s_axil_arvalid,
  input logic [ 7:0] s_axil_araddr,
  input logic        s_axil_rready,
  input logic        count_i
);

  logic s_axil_awready, s_axil_wready, s_axil_bvalid, s_axil_arready, s_axil_rvalid;
  logic [31:0] s_axil_rdata;
  logic [1:0] s_axil_bresp, s_axil_rresp;
  logic compress, expand;
  logic [7:0] codec;
  logic [15:0] most;
  logic [3:0][15:0] ports;
  logic [127:0] header;
  wpr_nic_regs dut (
    .s_axil_wstrb(4'hF), .cfg_compress_o(compress), .cfg_expand_o(expand), .cfg_codec_o(codec),
    .cfg_max_o(most), .cfg_ports_o(ports), .cfg_header_o(header), .event_i({6'd0, count_i}), .*
  );

  logic started_q = 1'b0, seen_q = 1'b0, b_q, r_q, b_held_q, r_held_q, counted_q, port_read_q;
  logic [31:0] r_data_q, count_q, count_at_read_q;
  logic [15:0] port_q, port_at_read_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    b_held_q  <= rst_ni && s_axil_bvalid && !s_axil_bready;
    r_held_q  <= rst_ni && s_axil_rvalid && !s_axil_rready;
    r_data_q  <= s_axil_rdata;
    b_q       <= rst_ni && s_axil_awvalid && s_axil_awready;
    r_q       <= rst_ni && s_axil_arvalid && s_axil_arready;
    counted_q       <= rst_ni && s_axil_arvalid && s_axil_arready && s_axil_araddr == 8'h40;
    port_read_q     <= rst_ni && s_axil_arvalid && s_axil_arready && s_axil_araddr == 8'h18;
    count_at_read_q <= count_q;
    port_at_read_q  <= port_q;
    if (!rst_ni) begin
      count_q <= '0;
      port_q  <= '0;
    end else begin
      count_q <= count_q + 32'(count_i);
      if (s_axil_awvalid && s_axil_awready && s_axil_awaddr[7:2] == 6'h06) begin
        port_q <= s_axil_wdata[15:0];
      end
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      both: assert (s_axil_awready == s_axil_wready && (!s_axil_awready || s_axil_wvalid));
      b_answer: assert (s_axil_bvalid == (b_q || b_held_q) || !seen_q);
      r_answer: assert (s_axil_rvalid == (r_q || r_held_q) || !seen_q);
      once: assert (!(s_axil_bvalid && s_axil_awready) && !(s_axil_rvalid && s_axil_arready));
      port: assert (ports[2] == port_q);
    end
    if (started_q && rst_ni && seen_q) begin
      held: assert (!r_held_q || s_axil_rdata == r_data_q);
      counter: assert (!counted_q || s_axil_rdata == count_at_read_q);
      reads: assert (!port_read_q || s_axil_rdata[15:0] == port_at_read_q);
    end
    seen_q <= started_q && rst_ni;
    used: cover (seen_q && counted_q && s_axil_rdata == 32'd2);
  end

endmodule
