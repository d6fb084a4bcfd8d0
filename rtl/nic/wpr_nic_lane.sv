// SPDX-License-Identifier: Apache-2.0
// One lane of wpr_nic_lanes: wpr_nic_tx with an encoder of tbq (of=one), 64 bytes a clock.
module wpr_nic_lane (
  input  logic              clk_i,
  input  logic              rst_ni,             // synchronous
  input  logic              cfg_enable_i,
  input  logic [ 3:0][15:0] cfg_ports_i,        // of destination; 0: none
  input  logic [ 15:0]      cfg_max_i,          // the largest packet with a frame
  input  logic [127:0]      cfg_header_i,       // as the library writes it
  input  logic [ 22:0]      cfg_tau_i,          // as of wpr_tbq_enc

  input  logic              s_axis_tvalid,
  output logic              s_axis_tready,
  input  logic [511:0]      s_axis_tdata,
  input  logic [ 63:0]      s_axis_tkeep,
  input  logic              s_axis_tlast,
  input  logic [ 15:0]      s_axis_tuser_size,
  input  logic [ 15:0]      s_axis_tuser_src,

  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic [511:0]      m_axis_tdata,
  output logic [ 63:0]      m_axis_tkeep,
  output logic              m_axis_tlast,
  output logic [ 15:0]      m_axis_tuser_size,
  output logic [ 15:0]      m_axis_tuser_src,

  output logic [3:0]        event_o  // as of wpr_nic_tx
);

  logic raw_tvalid, raw_tready, raw_tlast, code_tvalid, code_tready, code_tlast;
  logic [511:0] raw_tdata, code_tdata;
  logic [63:0] raw_tkeep, code_tkeep;
  wpr_nic_tx #(.FrameHeader(16), .Unit(4)) tx (.*, .code_tuser(1'b0));
  wpr_tbq_enc encoder (
    .clk_i, .rst_ni, .cfg_tau_i,
    .s_axis_tvalid(raw_tvalid), .s_axis_tready(raw_tready), .s_axis_tdata(raw_tdata),
    .s_axis_tkeep(raw_tkeep), .s_axis_tlast(raw_tlast),
    .m_axis_tvalid(code_tvalid), .m_axis_tready(code_tready), .m_axis_tdata(code_tdata),
    .m_axis_tkeep(code_tkeep), .m_axis_tlast(code_tlast)
  );

endmodule
