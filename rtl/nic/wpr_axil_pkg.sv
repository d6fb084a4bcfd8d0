// SPDX-License-Identifier: Apache-2.0
// AXI-Lite (ARM IHI 0022, AXI4-Lite) with 32 bits of data and 8 of address, each direction a
// struct.
package wpr_axil_pkg;

  typedef struct packed {
    logic        awvalid, wvalid, bready, arvalid, rready;
    logic [7:0]  awaddr, araddr;
    logic [31:0] wdata;
    logic [3:0]  wstrb;
  } axil_request_t;

  typedef struct packed {
    logic        awready, wready, bvalid, arready, rvalid;
    logic [1:0]  bresp, rresp;
    logic [31:0] rdata;
  } axil_response_t;

endpackage
