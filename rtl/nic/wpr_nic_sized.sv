// SPDX-License-Identifier: Apache-2.0
// Tells how many bytes a packet has, beside each of its beats: for codecs that must know before the
// first one. So a packet is stored whole. Packets are up to 32 KiB.
module wpr_nic_sized
  import wpr_nic_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,     // synchronous
  input  logic        s_valid_i,
  output logic        s_ready_o,
  input  beat_t       s_beat_i,
  output logic        m_valid_o,
  input  logic        m_ready_i,
  output beat_t       m_beat_o,
  output logic [15:0] m_size_o
);

  logic last;
  logic [9:0] beat_q;
  logic [511:0] data;
  logic [15:0] size;
  assign size = {beat_q, 6'b0} + 16'(size_of(s_beat_i.keep));
  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o) beat_q <= s_beat_i.last ? '0 : beat_q + 1'b1;
    if (!rst_ni) beat_q <= '0;
  end
  wpr_packet_fifo #(.Width(512), .Meta(16), .LogDepth(9), .LogPackets(6)) packets (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o, .s_data_i(s_beat_i.data), .s_last_i(s_beat_i.last),
    .s_drop_i(1'b0), .s_meta_i(size), .m_valid_o, .m_ready_i, .m_data_o(data), .m_first_o(),
    .m_last_o(last), .m_meta_o(m_size_o), .dropped_o(), .s_ample_o()
  );
  assign m_beat_o = '{last: last, data: data, keep: keep_of(last ? m_size_o[5:0] : '0)};

endmodule
