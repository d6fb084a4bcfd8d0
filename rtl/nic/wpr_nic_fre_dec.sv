// SPDX-License-Identifier: Apache-2.0
// A pool of fre decoders for wpr_nic_rx: packets of codes, 64 bytes a beat, to packets of float32
// words. Each engine makes 4 bytes a clock. code_size_i is the raw size of the packet, a multiple
// of 4 bytes. raw_bad_o with the last beat says that the code is not valid.
module wpr_nic_fre_dec
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Engines  = 4,
  parameter int unsigned LogQueue = 5  // of wpr_nic_pool
) (
  input  logic         clk_i,
  input  logic         rst_ni,          // synchronous
  input  logic [  4:0] cfg_m_i,
  input  logic         cfg_midpoint_i,
  input  logic         code_valid_i,
  output logic         code_ready_o,
  input  beat_t        code_beat_i,
  input  logic [ 15:0] code_size_i,
  output logic         raw_valid_o,
  input  logic         raw_ready_i,
  output beat_t        raw_beat_o,
  output logic         raw_bad_o
);

  logic [Engines-1:0] cmd_valid, cmd_ready, n_valid, n_ready, n_last;
  logic [Engines-1:0] r_valid, r_ready, r_last, r_bad;
  logic [Engines-1:0][15:0] cmd_values;
  logic [Engines-1:0][31:0] n_data, r_data;
  logic [Engines-1:0][3:0] n_keep;
  wpr_nic_pool #(.Engines(Engines), .Bytes(4), .LogQueue(LogQueue), .Told(1'b1)) pool (
    .clk_i, .rst_ni,
    .s_valid_i(code_valid_i), .s_ready_o(code_ready_o), .s_beat_i(code_beat_i),
    .s_size_i(16'(code_size_i[15:2]) - 16'd1),  // in values, less one
    .m_valid_o(raw_valid_o), .m_ready_i(raw_ready_i), .m_beat_o(raw_beat_o), .m_bad_o(raw_bad_o),
    .cmd_valid_o(cmd_valid), .cmd_ready_i(cmd_ready), .cmd_size_o(cmd_values),
    .e_valid_o(n_valid), .e_ready_i(n_ready), .e_data_o(n_data), .e_keep_o(n_keep),
    .e_last_o(n_last), .f_valid_i(r_valid), .f_ready_o(r_ready), .f_data_i(r_data),
    .f_keep_i('1), .f_last_i(r_last), .f_bad_i(r_bad)
  );
  for (genvar i = 0; i < Engines; i++) begin : g_engine
    wpr_fre_dec #(.CountWidth(14)) decoder (
      .clk_i, .rst_ni, .cfg_m_i, .cfg_midpoint_i, .cfg_bfloat16_i(1'b0),
      .s_cmd_tvalid(cmd_valid[i]), .s_cmd_tready(cmd_ready[i]),
      .s_cmd_tdata(cmd_values[i][13:0]), .s_cmd_tuser(2'd0),
      .s_axis_tvalid(n_valid[i]), .s_axis_tready(n_ready[i]), .s_axis_tdata(n_data[i]),
      .s_axis_tkeep(n_keep[i]), .s_axis_tlast(n_last[i]),
      .m_axis_tvalid(r_valid[i]), .m_axis_tready(r_ready[i]), .m_axis_tdata(r_data[i]),
      .m_axis_tlast(r_last[i]), .m_axis_tuser(r_bad[i])
    );
  end

endmodule
