// SPDX-License-Identifier: Apache-2.0
// What bench_common.py drives, side by side: wpr_packetizer and a wpr_pool of three engines of
// unlike speed (a -> b), wpr_reassembler (c -> d), wpr_pack (e -> f), wpr_split (g, h -> i),
// wpr_packet_fifo (j -> k). Beats of 16 bytes.
module wpr_common_tb (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic [  4:0] cfg_beats_i,
  input  logic [ 15:0] cfg_patience_i,
  output logic         c_dropped,
  output logic         j_dropped,
  input  logic         a_tvalid,
  output logic         a_tready,
  input  logic [127:0] a_tdata,
  input  logic [ 15:0] a_tkeep,
  input  logic         a_tlast,
  output logic         b_tvalid,
  input  logic         b_tready,
  output logic [127:0] b_tdata,
  output logic [ 15:0] b_tkeep,
  output logic         b_tlast,
  input  logic         c_tvalid,
  output logic         c_tready,
  input  logic [127:0] c_tdata,
  input  logic [ 15:0] c_tkeep,
  input  logic         c_tlast,
  output logic         d_tvalid,
  input  logic         d_tready,
  output logic [127:0] d_tdata,
  output logic [ 15:0] d_tkeep,
  output logic         d_tlast,
  output logic         d_tuser,
  input  logic         e_tvalid,  // tuser: size
  output logic         e_tready,
  input  logic [ 63:0] e_tdata,
  input  logic [  6:0] e_tuser,
  input  logic         e_tlast,
  output logic         f_tvalid,
  input  logic         f_tready,
  output logic [ 63:0] f_tdata,
  output logic [  6:0] f_tuser,
  output logic         f_tlast,
  input  logic         g_tvalid,
  output logic         g_tready,
  input  logic [ 63:0] g_tdata,
  input  logic [  6:0] g_tuser,
  input  logic         g_tlast,
  input  logic         h_tvalid,  // sizes asked for
  output logic         h_tready,
  input  logic [  6:0] h_tdata,
  input  logic         h_tlast,
  output logic         i_tvalid,  // tuser: error and size
  input  logic         i_tready,
  output logic [ 63:0] i_tdata,
  output logic [  7:0] i_tuser,
  output logic         i_tlast,
  input  logic         j_tvalid,  // tuser: drop and what is known of the packet
  output logic         j_tready,
  input  logic [ 15:0] j_tdata,
  input  logic [  8:0] j_tuser,
  input  logic         j_tlast,
  output logic         k_tvalid,  // tuser: first and that
  input  logic         k_tready,
  output logic [ 15:0] k_tdata,
  output logic [  8:0] k_tuser,
  output logic         k_tlast
);

  logic p_valid, p_ready, p_last, q_valid, q_ready, q_last;
  logic [143:0] p_data, q_data;
  wpr_packetizer #(.Bytes(16), .LogDepth(5)) packetizer (
    .clk_i, .rst_ni, .cfg_beats_i,
    .s_axis_tvalid(a_tvalid), .s_axis_tready(a_tready), .s_axis_tdata(a_tdata),
    .s_axis_tkeep(a_tkeep), .s_axis_tlast(a_tlast),
    .m_axis_tvalid(p_valid), .m_axis_tready(p_ready), .m_axis_tdata(p_data[127:0]),
    .m_axis_tkeep(p_data[143:128]), .m_axis_tlast(p_last)
  );
  logic [2:0] e_valid, e_ready, e_last, f_valid, f_ready, f_last;
  logic [2:0][143:0] e_data, f_data;
  wpr_pool #(.Engines(3), .In(144), .Out(144), .LogQueue(3), .LogInside(2)) pool (
    .clk_i, .rst_ni,
    .s_valid_i(p_valid), .s_ready_o(p_ready), .s_data_i(p_data), .s_last_i(p_last),
    .m_valid_o(q_valid), .m_ready_i(q_ready), .m_data_o(q_data), .m_last_o(q_last),
    .e_valid_o(e_valid), .e_ready_i(e_ready), .e_data_o(e_data), .e_last_o(e_last),
    .f_valid_i(f_valid), .f_ready_o(f_ready), .f_data_i(f_data), .f_last_i(f_last)
  );
  assign {b_tvalid, b_tlast, b_tkeep, b_tdata} = {q_valid, q_last, q_data};
  assign q_ready = b_tready;
  for (genvar n = 0; n < 3; n++) begin : g_engine
    localparam int unsigned Bytes = n == 0 ? 2 : n == 1 ? 8 : 4;
    logic valid, ready, last;
    logic [9*Bytes-1:0] data;
    wpr_narrow #(.Wide(16), .Narrow(Bytes)) narrow (
      .clk_i, .rst_ni,
      .s_axis_tvalid(e_valid[n]), .s_axis_tready(e_ready[n]), .s_axis_tdata(e_data[n][127:0]),
      .s_axis_tkeep(e_data[n][143:128]), .s_axis_tlast(e_last[n]),
      .m_axis_tvalid(valid), .m_axis_tready(ready), .m_axis_tdata(data[8*Bytes-1:0]),
      .m_axis_tkeep(data[9*Bytes-1:8*Bytes]), .m_axis_tlast(last)
    );
    wpr_widen #(.Wide(16), .Narrow(Bytes)) widen (
      .clk_i, .rst_ni,
      .s_axis_tvalid(valid), .s_axis_tready(ready), .s_axis_tdata(data[8*Bytes-1:0]),
      .s_axis_tkeep(data[9*Bytes-1:8*Bytes]), .s_axis_tlast(last), .s_axis_tuser(1'b0),
      .m_axis_tvalid(f_valid[n]), .m_axis_tready(f_ready[n]), .m_axis_tdata(f_data[n][127:0]),
      .m_axis_tkeep(f_data[n][143:128]), .m_axis_tlast(f_last[n]), .m_axis_tuser()
    );
  end

  wpr_reassembler #(.Bytes(16), .LogSlots(2), .LogBeats(4)) reassembler (
    .clk_i, .rst_ni, .cfg_patience_i, .dropped_o(c_dropped),
    .s_axis_tvalid(c_tvalid), .s_axis_tready(c_tready), .s_axis_tdata(c_tdata),
    .s_axis_tkeep(c_tkeep), .s_axis_tlast(c_tlast),
    .m_axis_tvalid(d_tvalid), .m_axis_tready(d_tready), .m_axis_tdata(d_tdata),
    .m_axis_tkeep(d_tkeep), .m_axis_tlast(d_tlast), .m_axis_tuser(d_tuser)
  );

  wpr_pack #(.Lanes(64), .Unit(1)) pack (
    .clk_i, .rst_ni,
    .s_valid_i(e_tvalid), .s_ready_o(e_tready), .s_data_i(e_tdata), .s_size_i(e_tuser),
    .s_last_i(e_tlast),
    .m_valid_o(f_tvalid), .m_ready_i(f_tready), .m_data_o(f_tdata), .m_size_o(f_tuser),
    .m_last_o(f_tlast)
  );
  wpr_split #(.Lanes(64), .Unit(1)) split (
    .clk_i, .rst_ni,
    .s_valid_i(g_tvalid), .s_ready_o(g_tready), .s_data_i(g_tdata), .s_size_i(g_tuser),
    .s_last_i(g_tlast),
    .c_valid_i(h_tvalid), .c_ready_o(h_tready), .c_size_i(h_tdata), .c_last_i(h_tlast),
    .m_valid_o(i_tvalid), .m_ready_i(i_tready), .m_data_o(i_tdata), .m_size_o(i_tuser[6:0]),
    .m_last_o(i_tlast), .m_error_o(i_tuser[7])
  );

  wpr_packet_fifo #(.Width(16), .Meta(8), .LogDepth(4), .LogPackets(2)) packet_fifo (
    .clk_i, .rst_ni,
    .s_valid_i(j_tvalid), .s_ready_o(j_tready), .s_data_i(j_tdata), .s_last_i(j_tlast),
    .s_drop_i(j_tuser[8]), .s_meta_i(j_tuser[7:0]),
    .m_valid_o(k_tvalid), .m_ready_i(k_tready), .m_data_o(k_tdata), .m_first_o(k_tuser[8]),
    .m_last_o(k_tlast), .m_meta_o(k_tuser[7:0]), .dropped_o(j_dropped), .s_ample_o()
  );

endmodule
