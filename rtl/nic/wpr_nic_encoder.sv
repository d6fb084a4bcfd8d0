// SPDX-License-Identifier: Apache-2.0
// The encoder of wpr_nic_tx, of a codec of wpr_nic_pkg: packets of raw bytes to packets of codes.
// code_bad_o with the last beat: the code is not to be used.
module wpr_nic_encoder
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Codec   = Fre,
  parameter int unsigned Engines = 4     // of fre and lz4
) (
  input  logic       clk_i,
  input  logic       rst_ni,        // synchronous
  input  logic [7:0] cfg_codec_i,   // bits 8 to 15 of the control register, as wpr_nic says
  input  logic       raw_valid_i,
  output logic       raw_ready_o,
  input  beat_t      raw_beat_i,
  output logic       code_valid_o,
  input  logic       code_ready_i,
  output beat_t      code_beat_o,
  output logic       code_bad_o
);

  if (Codec != Zfp) begin : g_any_values
    assign code_bad_o = 1'b0;
  end
  if (Codec == Fre) begin : g_of
    wpr_nic_fre_enc #(.Engines(Engines)) encoders (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec_i[4:0]), .cfg_nearest_i(cfg_codec_i[5]),
      .cfg_flush_i(cfg_codec_i[6]), .raw_valid_i, .raw_ready_o, .raw_beat_i, .code_valid_o,
      .code_ready_i, .code_beat_o
    );
  end else if (Codec == Tbq) begin : g_of
    wpr_tbq_enc encoder (
      .clk_i, .rst_ni, .cfg_tau_i({cfg_codec_i, 15'd0}),
      .s_axis_tvalid(raw_valid_i), .s_axis_tready(raw_ready_o), .s_axis_tdata(raw_beat_i.data),
      .s_axis_tkeep(raw_beat_i.keep), .s_axis_tlast(raw_beat_i.last),
      .m_axis_tvalid(code_valid_o), .m_axis_tready(code_ready_i),
      .m_axis_tdata(code_beat_o.data), .m_axis_tkeep(code_beat_o.keep),
      .m_axis_tlast(code_beat_o.last)
    );
  end else if (Codec == Bx) begin : g_of
    wpr_bx_enc encoder (
      .clk_i, .rst_ni, .cfg_m_i(cfg_codec_i[4:0]), .cfg_nearest_i(cfg_codec_i[5]),
      .cfg_midpoint_i(cfg_codec_i[7]), .cfg_flush_i(cfg_codec_i[6]),
      .s_axis_tvalid(raw_valid_i), .s_axis_tready(raw_ready_o), .s_axis_tdata(raw_beat_i.data),
      .s_axis_tkeep(raw_beat_i.keep), .s_axis_tlast(raw_beat_i.last),
      .m_axis_tvalid(code_valid_o), .m_axis_tready(code_ready_i),
      .m_axis_tdata(code_beat_o.data), .m_axis_tkeep(code_beat_o.keep),
      .m_axis_tlast(code_beat_o.last)
    );
  end else if (Codec == Lz4) begin : g_of
    logic s_valid, s_ready;
    beat_t s_beat;
    logic [15:0] s_size;
    wpr_nic_sized sized (
      .clk_i, .rst_ni, .s_valid_i(raw_valid_i), .s_ready_o(raw_ready_o), .s_beat_i(raw_beat_i),
      .m_valid_o(s_valid), .m_ready_i(s_ready), .m_beat_o(s_beat), .m_size_o(s_size)
    );
    wpr_nic_lz4 #(.Decode(1'b0), .Engines(Engines)) encoders (
      .clk_i, .rst_ni, .s_valid_i(s_valid), .s_ready_o(s_ready), .s_beat_i(s_beat),
      .s_size_i(s_size), .m_valid_o(code_valid_o), .m_ready_i(code_ready_i),
      .m_beat_o(code_beat_o), .m_bad_o()
    );
  end else begin : g_of
    wpr_nic_zfp_enc encoder (
      .clk_i, .rst_ni, .cfg_rate_i(cfg_codec_i[4:0]), .raw_valid_i, .raw_ready_o, .raw_beat_i,
      .code_valid_o, .code_ready_i, .code_beat_o, .code_bad_o
    );
  end

endmodule
