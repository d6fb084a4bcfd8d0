// SPDX-License-Identifier: Apache-2.0
// wpr_nic_regs: one answer for each write and read, held until it is taken; a setting reads as it
// was written, and counters count.
module wpr_nic_regs_props
  import wpr_axil_pkg::*;
(
  input logic          clk_i,
  input logic          rst_ni,
  input axil_request_t axil_i,
  input logic          count_i
);

  axil_response_t axil_o;
  logic compress, expand;
  logic [7:0] codec;
  logic [15:0] most;
  logic [3:0][15:0] ports;
  logic [127:0] header;
  wpr_nic_regs dut (
    .cfg_compress_o(compress), .cfg_expand_o(expand), .cfg_codec_o(codec),
    .cfg_max_o(most), .cfg_ports_o(ports), .cfg_header_o(header), .event_i({6'd0, count_i}), .*
  );

  logic started_q = 1'b0, seen_q = 1'b0, b_q, r_q, b_held_q, r_held_q, counted_q, port_read_q;
  logic [31:0] r_data_q, count_q, count_at_read_q;
  logic [15:0] port_q, port_at_read_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    b_held_q  <= rst_ni && axil_o.bvalid && !axil_i.bready;
    r_held_q  <= rst_ni && axil_o.rvalid && !axil_i.rready;
    r_data_q  <= axil_o.rdata;
    b_q       <= rst_ni && axil_i.awvalid && axil_o.awready;
    r_q       <= rst_ni && axil_i.arvalid && axil_o.arready;
    counted_q       <= rst_ni && axil_i.arvalid && axil_o.arready && axil_i.araddr == 8'h40;
    port_read_q     <= rst_ni && axil_i.arvalid && axil_o.arready && axil_i.araddr == 8'h18;
    count_at_read_q <= count_q;
    port_at_read_q  <= port_q;
    if (!rst_ni) begin
      count_q <= '0;
      port_q  <= '0;
    end else begin
      count_q <= count_q + 32'(count_i);
      if (axil_i.awvalid && axil_o.awready && axil_i.awaddr[7:2] == 6'h06) begin
        port_q <= axil_i.wdata[15:0];
      end
    end
    assume (rst_ni == started_q);
    assume (axil_i.wstrb == 4'hF);
    if (started_q && rst_ni) begin
      both: assert (axil_o.awready == axil_o.wready && (!axil_o.awready || axil_i.wvalid));
      b_answer: assert (axil_o.bvalid == (b_q || b_held_q) || !seen_q);
      r_answer: assert (axil_o.rvalid == (r_q || r_held_q) || !seen_q);
      once: assert (!(axil_o.bvalid && axil_o.awready) && !(axil_o.rvalid && axil_o.arready));
      port: assert (ports[2] == port_q);
    end
    if (started_q && rst_ni && seen_q) begin
      held: assert (!r_held_q || axil_o.rdata == r_data_q);
      counter: assert (!counted_q || axil_o.rdata == count_at_read_q);
      reads: assert (!port_read_q || axil_o.rdata[15:0] == port_at_read_q);
    end
    seen_q <= started_q && rst_ni;
    used: cover (seen_q && counted_q && axil_o.rdata == 32'd2);
  end

endmodule
