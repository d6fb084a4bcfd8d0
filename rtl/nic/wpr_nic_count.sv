// SPDX-License-Identifier: Apache-2.0
// Tells a core how many values, or bytes, a packet holds: s_axis_tuser of a packet's first beat
// goes to a short queue of commands.
module wpr_nic_count #(
  parameter int unsigned Width    = 14,
  parameter int unsigned LogDepth = 2    // commands
) (
  input  logic             clk_i,
  input  logic             rst_ni,         // synchronous
  input  logic             s_axis_tvalid,
  output logic             s_axis_tready,
  input  logic             s_axis_tlast,
  input  logic [Width-1:0] s_axis_tuser,   // the command
  output logic             m_axis_tvalid,  // the rest of a beat goes past this module
  input  logic             m_axis_tready,
  output logic             m_cmd_tvalid,
  input  logic             m_cmd_tready,
  output logic [Width-1:0] m_cmd_tdata
);

  logic told_q, room, may;
  assign may           = told_q || room;
  assign m_axis_tvalid = s_axis_tvalid && may;
  assign s_axis_tready = m_axis_tready && may;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (s_axis_tvalid && s_axis_tready && s_axis_tlast)) told_q <= 1'b0;
    else if (s_axis_tvalid && room) told_q <= 1'b1;
  end
  wpr_fifo #(.Width(Width), .LogDepth(LogDepth)) counts (
    .clk_i, .rst_ni, .s_valid_i(s_axis_tvalid && !told_q), .s_ready_o(room),
    .s_data_i(s_axis_tuser), .m_valid_o(m_cmd_tvalid), .m_ready_i(m_cmd_tready),
    .m_data_o(m_cmd_tdata), .level_o()
  );

endmodule
