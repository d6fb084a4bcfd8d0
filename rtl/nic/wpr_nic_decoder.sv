// SPDX-License-Identifier: Apache-2.0
// The decoder of wpr_nic_rx, of a codec of wpr_nic_pkg: packets of codes to packets of raw bytes.
// code_size_i beside each beat is the raw size of the packet. raw_bad_o with the last beat: the
// code is not valid.
module wpr_nic_decoder
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Codec   = Fre,
  parameter int unsigned Engines = 4     // of fre and lz4
) (
  input  logic        clk_i,
  input  logic        rst_ni,        // synchronous
  input  logic [ 7:0] cfg_codec_i,   // bits 8 to 15 of the control register, as wpr_nic says
  input  logic        code_valid_i,
  output logic        code_ready_o,
  input  beat_t       code_beat_i,
  input  logic [15:0] code_size_i,
  output logic        raw_valid_o,
  input  logic        raw_ready_i,
  output beat_t       raw_beat_o,
  output logic        raw_bad_o
);

  if (Codec == Fre) begin : g_of
    wpr_nic_fre_dec #(.Engines(Engines)) decoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec_i[4:0]), .cfg_midpoint_i(cfg_codec_i[7]),
      .code_valid_i, .code_ready_o, .code_beat_i, .code_size_i, .raw_valid_o, .raw_ready_i,
      .raw_beat_o, .raw_bad_o
    );
  end else if (Codec == Lz4) begin : g_of
    wpr_nic_lz4 #(.Decode(1'b1), .Engines(Engines)) decoders (
      .clk_i, .rst_ni, .s_valid_i(code_valid_i), .s_ready_o(code_ready_o),
      .s_beat_i(code_beat_i), .s_size_i(code_size_i), .m_valid_o(raw_valid_o),
      .m_ready_i(raw_ready_i), .m_beat_o(raw_beat_o), .m_bad_o(raw_bad_o)
    );
  end else if (Codec == Zfp) begin : g_of
    wpr_nic_zfp_dec decoder (
      .clk_i, .rst_ni, .cfg_rate_i(cfg_codec_i[4:0]), .code_valid_i, .code_ready_o, .code_beat_i,
      .code_size_i, .raw_valid_o, .raw_ready_i, .raw_beat_o, .raw_bad_o
    );
  end else begin : g_of  // told how many values there are
    logic n_valid, n_ready, c_valid, c_ready;
    logic [13:0] n_less_one;
    wpr_nic_count count (
      .clk_i, .rst_ni, .s_axis_tvalid(code_valid_i), .s_axis_tready(code_ready_o),
      .s_axis_tlast(code_beat_i.last), .s_axis_tuser(code_size_i[15:2] - 14'd1),
      .m_axis_tvalid(c_valid), .m_axis_tready(c_ready), .m_cmd_tvalid(n_valid),
      .m_cmd_tready(n_ready), .m_cmd_tdata(n_less_one)
    );
    if (Codec == Tbq) begin : g_tbq
      wpr_tbq_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_tau_i({cfg_codec_i, 15'd0}),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready), .s_axis_tdata(code_beat_i.data),
        .s_axis_tkeep(code_beat_i.keep), .s_axis_tlast(code_beat_i.last),
        .m_axis_tvalid(raw_valid_o), .m_axis_tready(raw_ready_i),
        .m_axis_tdata(raw_beat_o.data), .m_axis_tkeep(raw_beat_o.keep),
        .m_axis_tlast(raw_beat_o.last), .m_axis_tuser(raw_bad_o)
      );
    end else begin : g_bx
      wpr_bx_dec #(.CountWidth(14)) decoder (
        .clk_i, .rst_ni, .cfg_m_i(cfg_codec_i[4:0]), .cfg_midpoint_i(cfg_codec_i[7]),
        .s_cmd_tvalid(n_valid), .s_cmd_tready(n_ready), .s_cmd_tdata(n_less_one),
        .s_axis_tvalid(c_valid), .s_axis_tready(c_ready), .s_axis_tdata(code_beat_i.data),
        .s_axis_tkeep(code_beat_i.keep), .s_axis_tlast(code_beat_i.last),
        .m_axis_tvalid(raw_valid_o), .m_axis_tready(raw_ready_i),
        .m_axis_tdata(raw_beat_o.data), .m_axis_tkeep(raw_beat_o.keep),
        .m_axis_tlast(raw_beat_o.last), .m_axis_tuser(raw_bad_o)
      );
    end
  end

endmodule
