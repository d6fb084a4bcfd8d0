// SPDX-License-Identifier: Apache-2.0
// A host side wider than the wire: lanes (wpr_nic_lane) of 64 bytes a clock, each with its own memories
// and encoder, and one stream to the wire, in which their packets take turns. Order is kept within a
// lane. Only this direction; settings are inputs, constant while packets are inside.
module wpr_nic_lanes #(
  parameter int unsigned Lanes = 4  // 1, or a power of two
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,             // synchronous
  input  logic                    cfg_enable_i,
  input  logic [ 3:0][ 15:0]      cfg_ports_i,        // of destination; 0: none
  input  logic [15:0]             cfg_max_i,          // the largest packet with a frame
  input  logic [127:0]            cfg_header_i,       // as the library writes it
  input  logic [22:0]             cfg_tau_i,          // as of wpr_tbq_enc

  input  logic [Lanes-1:0]        s_axis_tvalid,
  output logic [Lanes-1:0]        s_axis_tready,
  input  logic [Lanes-1:0][511:0] s_axis_tdata,
  input  logic [Lanes-1:0][ 63:0] s_axis_tkeep,
  input  logic [Lanes-1:0]        s_axis_tlast,
  input  logic [Lanes-1:0][ 15:0] s_axis_tuser_size,
  input  logic [Lanes-1:0][ 15:0] s_axis_tuser_src,

  output logic                    m_axis_tvalid,
  input  logic                    m_axis_tready,
  output logic [511:0]            m_axis_tdata,
  output logic [ 63:0]            m_axis_tkeep,
  output logic                    m_axis_tlast,
  output logic [ 15:0]            m_axis_tuser_size,
  output logic [ 15:0]            m_axis_tuser_src,

  output logic [Lanes-1:0][3:0]   event_o  // as of wpr_nic_tx
);

  logic [Lanes-1:0] valid, ready, last;
  logic [Lanes-1:0][607:0] data;
  for (genvar i = 0; i < Lanes; i++) begin : g_lane
    logic [511:0] tdata;
    logic [63:0] tkeep;
    logic [15:0] tuser_size, tuser_src;
    wpr_nic_lane lane (
      .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_max_i, .cfg_header_i, .cfg_tau_i,
      .s_axis_tvalid(s_axis_tvalid[i]), .s_axis_tready(s_axis_tready[i]),
      .s_axis_tdata(s_axis_tdata[i]), .s_axis_tkeep(s_axis_tkeep[i]),
      .s_axis_tlast(s_axis_tlast[i]), .s_axis_tuser_size(s_axis_tuser_size[i]),
      .s_axis_tuser_src(s_axis_tuser_src[i]),
      .m_axis_tvalid(valid[i]), .m_axis_tready(ready[i]), .m_axis_tdata(tdata),
      .m_axis_tkeep(tkeep), .m_axis_tlast(last[i]), .m_axis_tuser_size(tuser_size),
      .m_axis_tuser_src(tuser_src), .event_o(event_o[i])
    );
    assign data[i] = {tdata, tkeep, tuser_size, tuser_src};
  end
  wpr_nic_merge #(.Inputs(Lanes), .Width(608)) merge (
    .clk_i, .rst_ni, .s_valid_i(valid), .s_ready_o(ready), .s_data_i(data), .s_last_i(last),
    .m_valid_o(m_axis_tvalid), .m_ready_i(m_axis_tready),
    .m_data_o({m_axis_tdata, m_axis_tkeep, m_axis_tuser_size, m_axis_tuser_src}),
    .m_last_o(m_axis_tlast)
  );

endmodule
