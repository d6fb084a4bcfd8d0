// SPDX-License-Identifier: Apache-2.0
// zfp for wpr_nic_rx, the inverse of wpr_nic_zfp_enc: payloads of at least 12 bytes to packets of
// float32 words. code_size_i is the raw size of the packet, a multiple of 4 bytes. raw_bad_o with
// the last beat: head or stream are not those of so many words at this rate. There are as many
// words then, too.
module wpr_nic_zfp_dec
  import wpr_nic_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,        // synchronous
  input  logic [ 4:0] cfg_rate_i,    // bits of a value: 3 to 16
  input  logic        code_valid_i,
  output logic        code_ready_o,
  input  beat_t       code_beat_i,
  input  logic [15:0] code_size_i,
  output logic        raw_valid_o,
  input  logic        raw_ready_i,
  output beat_t       raw_beat_o,
  output logic        raw_bad_o
);

  // ---- facts of a packet, to the decoder and past it --------------------------------------------

  logic [13:0] n_less_one;  // words
  logic head_bad, a_valid, a_ready, c_valid, c_ready, n_valid, n_ready, f_valid, f_ready, f_bad;
  logic unused;
  logic [3:0] f_at;  // place of the last word in its beat
  logic e_bad;       // the same in registers:
  logic [15:0] words, e_words;  // of the last beat, those that are there
  logic [11:0] n_cells;
  assign n_less_one = code_size_i[15:2] - 14'd1;
  assign head_bad   = code_beat_i.data[31:0] != zfp_head(cfg_rate_i, n_less_one >= 14'd1024);
  wpr_nic_count #(.Width(12)) cells (
    .clk_i, .rst_ni, .s_axis_tvalid(code_valid_i), .s_axis_tready(code_ready_o),
    .s_axis_tlast(code_beat_i.last), .s_axis_tuser(n_less_one[13:2]), .m_axis_tvalid(a_valid),
    .m_axis_tready(a_ready), .m_cmd_tvalid(c_valid), .m_cmd_tready(c_ready),
    .m_cmd_tdata(n_cells)
  );
  wpr_nic_count #(.Width(5), .LogDepth(6)) facts (  // of all packets that the decoder holds
    .clk_i, .rst_ni, .s_axis_tvalid(a_valid), .s_axis_tready(a_ready),
    .s_axis_tlast(code_beat_i.last), .s_axis_tuser({head_bad, n_less_one[3:0]}),
    .m_axis_tvalid(n_valid), .m_axis_tready(n_ready), .m_cmd_tvalid(f_valid),
    .m_cmd_tready(f_ready), .m_cmd_tdata({f_bad, f_at})
  );

  // ---- the stream -------------------------------------------------------------------------------

  beat_t b_beat;
  logic b_valid, b_ready, s_valid, s_ready, s_last, bad, last;
  logic [255:0] s_data;
  logic [31:0] s_keep;
  logic [63:0] keep;
  wpr_behead #(.Bytes(64), .Header(4)) behead (
    .clk_i, .rst_ni,
    .s_axis_tvalid(n_valid), .s_axis_tready(n_ready), .s_axis_tdata(code_beat_i.data),
    .s_axis_tkeep(code_beat_i.keep), .s_axis_tlast(code_beat_i.last), .h_data_o(),
    .m_axis_tvalid(b_valid), .m_axis_tready(b_ready), .m_axis_tdata(b_beat.data),
    .m_axis_tkeep(b_beat.keep), .m_axis_tlast(b_beat.last), .runt_o()
  );
  wpr_narrow #(.Wide(64), .Narrow(32)) narrow (
    .clk_i, .rst_ni,
    .s_axis_tvalid(b_valid), .s_axis_tready(b_ready), .s_axis_tdata(b_beat.data),
    .s_axis_tkeep(b_beat.keep), .s_axis_tlast(b_beat.last),
    .m_axis_tvalid(s_valid), .m_axis_tready(s_ready), .m_axis_tdata(s_data),
    .m_axis_tkeep(s_keep), .m_axis_tlast(s_last)
  );
  wpr_zfp_dec #(.Dims(1), .CellBits(64), .Unit(4), .Bytes(32), .CountWidth(12)) decoder (
    .clk_i, .rst_ni, .cfg_bits_i({cfg_rate_i, 2'b0}),
    .s_cmd_tvalid(c_valid), .s_cmd_tready(c_ready), .s_cmd_tdata(n_cells),
    .s_axis_tvalid(s_valid), .s_axis_tready(s_ready), .s_axis_tdata(s_data),
    .s_axis_tkeep(s_keep), .s_axis_tlast(s_last),
    .m_axis_tvalid(raw_valid_o), .m_axis_tready(raw_ready_i), .m_axis_tdata(raw_beat_o.data),
    .m_axis_tkeep(keep), .m_axis_tlast(last), .m_axis_tuser(bad)
  );

  // ---- its last beat ----------------------------------------------------------------------------

  always_comb for (int i = 0; i < 16; i++) words[i] = 4'(i) <= f_at;
  wpr_skid #(.Width(17)) ends (
    .clk_i, .rst_ni, .s_valid_i(f_valid), .s_ready_o(f_ready), .s_data_i({f_bad, words}),
    .m_valid_o(unused),  // long before the packet's end
    .m_ready_i(raw_valid_o && raw_ready_i && last), .m_data_o({e_bad, e_words})
  );
  assign raw_bad_o       = bad || (last && e_bad);
  assign raw_beat_o.last = last;
  for (genvar i = 0; i < 16; i++) begin : g_word
    assign raw_beat_o.keep[4*i+:4] = {4{!last || e_words[i]}};
  end

endmodule
