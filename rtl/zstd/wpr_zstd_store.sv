// SPDX-License-Identifier: Apache-2.0
// The code of a packet on its way into the zstd decoder: a ring of rows of 8 bytes that many read,
// each by its row's number in the packet.
//
// A client holds its request until it is granted; of several the first one is. Its row comes three
// clocks later. A row may be asked for when all of it has come, or the packet has ended. The ring
// holds what lies from free_i on; it takes no more while it is full.
module wpr_zstd_store
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogRows = 14,
  parameter int unsigned Clients = 4
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic        s_axis_tlast,

  output address_t have_o,   // so many bytes of the packet have come
  output logic     ended_o,  // and all of them
  input  row_t     free_i,   // rows before this one are not needed any more
  input  logic     flush_i,  // to the packet's end and in it: throws away what is left of it

  input  logic [Clients-1:0] request_i,
  input  row_t [Clients-1:0] row_i,
  output logic [Clients-1:0] grant_o,
  output logic [Clients-1:0] response_o,
  output logic [       63:0] data_o
);

  logic [63:0] rows_q[1 << LogRows];

  // ---- in ---------------------------------------------------------------------------------------

  logic valid, last, take, full_q;
  logic [7:0] keep;
  logic [63:0] data;
  logic [3:0] n;
  row_t write_row;
  wpr_skid #(.Width(73)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .m_valid_o(valid),
    .m_ready_i(take),
    .m_data_o ({last, keep, data})
  );
  assign take      = !ended_o && (!full_q || flush_i);
  assign write_row = have_o[AddressWidth-1:3];
  always_comb begin
    n = '0;
    for (int i = 0; i < 8; i++) n += 4'(keep[i]);
  end
  always_ff @(posedge clk_i) begin
    if (take && valid) begin
      have_o  <= {have_o[AddressWidth-1], (AddressWidth-1)'(0)} |
                 (AddressWidth'(have_o[AddressWidth-2:0]) + AddressWidth'(n));
      ended_o <= last;
    end
    // A row may come in the clock in which this is found out, so two are left.
    full_q <= write_row - free_i >= row_t'((1 << LogRows) - 3);
    if (!rst_ni || (flush_i && ended_o)) begin
      have_o  <= '0;
      ended_o <= 1'b0;
      full_q  <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (take) rows_q[write_row[LogRows-1:0]] <= data;

  // ---- out --------------------------------------------------------------------------------------

  logic [LogRows-1:0] row, row1_q;
  logic [63:0] data2_q;
  logic [Clients-1:0] granted1_q, granted2_q;
  always_comb begin
    row = '0;
    for (int i = 0; i < Clients; i++) begin
      grant_o[i] = request_i[i] && request_i << (Clients - i) == '0;  // the lowest
      if (grant_o[i]) row |= row_i[i][LogRows-1:0];
    end
  end
  always_ff @(posedge clk_i) begin
    row1_q     <= row;
    data2_q    <= rows_q[row1_q];
    data_o     <= data2_q;
    granted1_q <= rst_ni ? grant_o : '0;
    granted2_q <= rst_ni ? granted1_q : '0;
    response_o <= rst_ni ? granted2_q : '0;
  end

endmodule
