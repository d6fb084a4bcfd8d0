// SPDX-License-Identifier: Apache-2.0
// A pool of fre decoders for wpr_nic_rx: packets of codes, 64 bytes a beat, to packets of float32
// words. Each engine makes 4 bytes a clock. code_size_i is the raw size of the packet, a multiple
// of 4 bytes. raw_bad_o with the last beat says that the code is not valid.
module wpr_nic_fre_dec
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Engines  = 4,
  parameter int unsigned LogQueue = 5
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

  logic [5:0] out_size;
  logic [Engines-1:0] e_valid, e_ready, e_last, f_valid, f_ready, f_last;
  logic [Engines-1:0][531:0] e_data;
  logic [Engines-1:0][518:0] f_data;
  logic [13:0] n_less_one;
  assign n_less_one = code_size_i[15:2] - 14'd1;
  wpr_pool #(.Engines(Engines), .In(532), .Out(519), .LogQueue(LogQueue), .LogInside(5)) pool (
    .clk_i, .rst_ni,
    .s_valid_i(code_valid_i), .s_ready_o(code_ready_o),
    .s_data_i({n_less_one, 6'(size_of(code_beat_i.keep)), code_beat_i.data}),
    .s_last_i(code_beat_i.last), .m_valid_o(raw_valid_o), .m_ready_i(raw_ready_i),
    .m_data_o({raw_bad_o, out_size, raw_beat_o.data}), .m_last_o(raw_beat_o.last),
    .e_valid_o(e_valid), .e_ready_i(e_ready), .e_data_o(e_data), .e_last_o(e_last),
    .f_valid_i(f_valid), .f_ready_o(f_ready), .f_data_i(f_data), .f_last_i(f_last)
  );
  assign raw_beat_o.keep = keep_of(out_size);

  for (genvar i = 0; i < Engines; i++) begin : g_engine
    logic v_valid, v_ready, cmd_valid, cmd_ready;
    logic [13:0] cmd_data;
    wpr_nic_count count (
      .clk_i, .rst_ni, .s_axis_tvalid(e_valid[i]), .s_axis_tready(e_ready[i]),
      .s_axis_tlast(e_last[i]), .s_axis_tuser(e_data[i][531:518]), .m_axis_tvalid(v_valid),
      .m_axis_tready(v_ready), .m_cmd_tvalid(cmd_valid), .m_cmd_tready(cmd_ready),
      .m_cmd_tdata(cmd_data)
    );
    logic n_valid, n_ready, n_last, r_valid, r_ready, r_last, r_bad;
    logic [31:0] n_data, r_data;
    logic [3:0] n_keep;
    logic [63:0] w_keep;
    wpr_narrow #(.Wide(64), .Narrow(4)) narrow (
      .clk_i, .rst_ni,
      .s_axis_tvalid(v_valid), .s_axis_tready(v_ready),
      .s_axis_tdata(e_data[i][511:0]), .s_axis_tkeep(keep_of(e_data[i][517:512])),
      .s_axis_tlast(e_last[i]),
      .m_axis_tvalid(n_valid), .m_axis_tready(n_ready), .m_axis_tdata(n_data),
      .m_axis_tkeep(n_keep), .m_axis_tlast(n_last)
    );
    wpr_fre_dec #(.CountWidth(14)) decoder (
      .clk_i, .rst_ni, .cfg_m_i, .cfg_midpoint_i, .cfg_bfloat16_i(1'b0),
      .s_cmd_tvalid(cmd_valid), .s_cmd_tready(cmd_ready), .s_cmd_tdata(cmd_data),
      .s_cmd_tuser(2'd0),
      .s_axis_tvalid(n_valid), .s_axis_tready(n_ready), .s_axis_tdata(n_data),
      .s_axis_tkeep(n_keep), .s_axis_tlast(n_last),
      .m_axis_tvalid(r_valid), .m_axis_tready(r_ready), .m_axis_tdata(r_data),
      .m_axis_tlast(r_last), .m_axis_tuser(r_bad)
    );
    wpr_widen #(.Wide(64), .Narrow(4)) widen (
      .clk_i, .rst_ni,
      .s_axis_tvalid(r_valid), .s_axis_tready(r_ready), .s_axis_tdata(r_data),
      .s_axis_tkeep(4'hF), .s_axis_tlast(r_last), .s_axis_tuser(r_bad),
      .m_axis_tvalid(f_valid[i]), .m_axis_tready(f_ready[i]), .m_axis_tdata(f_data[i][511:0]),
      .m_axis_tkeep(w_keep), .m_axis_tlast(f_last[i]), .m_axis_tuser(f_data[i][518])
    );
    assign f_data[i][517:512] = 6'(size_of(w_keep));
  end

endmodule
