// SPDX-License-Identifier: Apache-2.0
// A pool of fre encoders for wpr_nic_tx: packets of float32 words, 64 bytes a beat, to packets of
// codes. Each engine takes 4 bytes a clock.
module wpr_nic_fre_enc
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Engines  = 4,
  parameter int unsigned LogQueue = 5  // of wpr_nic_pool
) (
  input  logic         clk_i,
  input  logic         rst_ni,         // synchronous
  input  logic [  4:0] cfg_m_i,
  input  logic         cfg_nearest_i,
  input  logic         cfg_flush_i,
  input  logic         raw_valid_i,
  output logic         raw_ready_o,
  input  beat_t        raw_beat_i,
  output logic         code_valid_o,
  input  logic         code_ready_i,
  output beat_t        code_beat_o
);

  logic [Engines-1:0] n_valid, n_ready, n_last, c_valid, c_ready, c_last;
  logic [Engines-1:0][31:0] n_data, c_data;
  logic [Engines-1:0][3:0] c_keep;
  wpr_nic_pool #(.Engines(Engines), .Bytes(4), .LogQueue(LogQueue)) pool (
    .clk_i, .rst_ni,
    .s_valid_i(raw_valid_i), .s_ready_o(raw_ready_o), .s_beat_i(raw_beat_i), .s_size_i('0),
    .m_valid_o(code_valid_o), .m_ready_i(code_ready_i), .m_beat_o(code_beat_o), .m_bad_o(),
    .cmd_valid_o(), .cmd_ready_i('0), .cmd_size_o(),
    .e_valid_o(n_valid), .e_ready_i(n_ready), .e_data_o(n_data), .e_keep_o(), .e_last_o(n_last),
    .f_valid_i(c_valid), .f_ready_o(c_ready), .f_data_i(c_data), .f_keep_i(c_keep),
    .f_last_i(c_last), .f_bad_i('0)
  );
  for (genvar i = 0; i < Engines; i++) begin : g_engine
    wpr_fre_enc encoder (
      .clk_i, .rst_ni, .cfg_m_i, .cfg_nearest_i, .cfg_flush_i,
      .s_axis_tvalid(n_valid[i]), .s_axis_tready(n_ready[i]), .s_axis_tdata(n_data[i]),
      .s_axis_tlast(n_last[i]),
      .m_axis_tvalid(c_valid[i]), .m_axis_tready(c_ready[i]), .m_axis_tdata(c_data[i]),
      .m_axis_tkeep(c_keep[i]), .m_axis_tlast(c_last[i])
    );
  end

endmodule
