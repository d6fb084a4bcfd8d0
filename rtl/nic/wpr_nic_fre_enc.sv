// SPDX-License-Identifier: Apache-2.0
// A pool of fre encoders for wpr_nic_tx: packets of float32 words, 64 bytes a beat, to packets of
// codes. Each engine takes 4 bytes a clock. A packet longer than 64 * 2^LogQueue bytes occupies its
// engine while it comes in, and the packets behind it wait.
module wpr_nic_fre_enc
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Engines  = 4,
  parameter int unsigned LogQueue = 5
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

  logic [5:0] out_size;
  logic [Engines-1:0] e_valid, e_ready, e_last, f_valid, f_ready, f_last;
  logic [Engines-1:0][517:0] e_data, f_data;
  wpr_pool #(.Engines(Engines), .In(518), .Out(518), .LogQueue(LogQueue), .LogInside(5)) pool (
    .clk_i, .rst_ni,
    .s_valid_i(raw_valid_i), .s_ready_o(raw_ready_o),
    .s_data_i({6'(size_of(raw_beat_i.keep)), raw_beat_i.data}), .s_last_i(raw_beat_i.last),
    .m_valid_o(code_valid_o), .m_ready_i(code_ready_i),
    .m_data_o({out_size, code_beat_o.data}), .m_last_o(code_beat_o.last),
    .e_valid_o(e_valid), .e_ready_i(e_ready), .e_data_o(e_data), .e_last_o(e_last),
    .f_valid_i(f_valid), .f_ready_o(f_ready), .f_data_i(f_data), .f_last_i(f_last)
  );
  assign code_beat_o.keep = keep_of(out_size);

  for (genvar i = 0; i < Engines; i++) begin : g_engine
    logic n_valid, n_ready, n_last, c_valid, c_ready, c_last;
    logic [31:0] n_data, c_data;
    logic [3:0] c_keep;
    logic [63:0] w_keep;
    wpr_narrow #(.Wide(64), .Narrow(4)) narrow (
      .clk_i, .rst_ni,
      .s_axis_tvalid(e_valid[i]), .s_axis_tready(e_ready[i]), .s_axis_tdata(e_data[i][511:0]),
      .s_axis_tkeep(keep_of(e_data[i][517:512])), .s_axis_tlast(e_last[i]),
      .m_axis_tvalid(n_valid), .m_axis_tready(n_ready), .m_axis_tdata(n_data), .m_axis_tkeep(),
      .m_axis_tlast(n_last)
    );
    wpr_fre_enc encoder (
      .clk_i, .rst_ni, .cfg_m_i, .cfg_nearest_i, .cfg_flush_i,
      .s_axis_tvalid(n_valid), .s_axis_tready(n_ready), .s_axis_tdata(n_data),
      .s_axis_tlast(n_last),
      .m_axis_tvalid(c_valid), .m_axis_tready(c_ready), .m_axis_tdata(c_data),
      .m_axis_tkeep(c_keep), .m_axis_tlast(c_last)
    );
    wpr_widen #(.Wide(64), .Narrow(4)) widen (
      .clk_i, .rst_ni,
      .s_axis_tvalid(c_valid), .s_axis_tready(c_ready), .s_axis_tdata(c_data),
      .s_axis_tkeep(c_keep), .s_axis_tlast(c_last), .s_axis_tuser(1'b0),
      .m_axis_tvalid(f_valid[i]), .m_axis_tready(f_ready[i]), .m_axis_tdata(f_data[i][511:0]),
      .m_axis_tkeep(w_keep), .m_axis_tlast(f_last[i]), .m_axis_tuser()
    );
    assign f_data[i][517:512] = 6'(size_of(w_keep));
  end

endmodule
