// SPDX-License-Identifier: Apache-2.0
// Where packets come in: a short queue, then each beat beside what its packet's header says, with zeros
// behind the packet's last byte. A packet of more than MostBeats beats is cut there, with tuser bad on
// its last beat, and the rest swallowed.
module wpr_nic_in
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16  // bytes
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic [ 3:0][15:0]        cfg_ports_i,
  input  logic [8*FrameHeader-1:0] cfg_header_i,
  input  logic                     s_axis_tvalid,
  output logic                     s_axis_tready,
  input  logic [511:0]             s_axis_tdata,
  input  logic [ 63:0]             s_axis_tkeep,
  input  logic                     s_axis_tlast,
  input  logic [ 15:0]             s_axis_tuser_size,
  input  logic [ 15:0]             s_axis_tuser_src,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output logic [511:0]             m_data_o,
  output logic [ 63:0]             m_keep_o,
  output logic                     m_first_o,
  output logic                     m_last_o,
  output logic                     m_cut_o,
  output logic [ 15:0]             m_size_o,           // as promised
  output logic [ 15:0]             m_src_o,
  output logic                     m_udp_o,            // one UDP datagram for one of our ports
  output logic                     m_marked_o,         // its payload begins with the frame header
  output logic                     next_valid_o,       // the beat behind it
  output logic [ 31:0]             next_data_o,        // its first bytes
  output logic [  3:0]             next_keep_o
);

  logic a_valid, a_ready, a_last;
  logic [511:0] a_data;
  logic [63:0] a_keep;
  logic [15:0] a_size, a_src;
  wpr_fifo #(.Width(609), .LogDepth(2)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i ({s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_tuser_size, s_axis_tuser_src}),
    .m_valid_o(a_valid),
    .m_ready_i(a_ready),
    .m_data_o ({a_data, a_keep, a_last, a_size, a_src}),
    .level_o  ()
  );

  logic first_q, swallow_q;
  logic [8:0] beat_q;
  logic take, cut;
  assign a_ready      = swallow_q || !m_valid_o || m_ready_i;
  assign take         = a_valid && a_ready && !swallow_q;
  assign cut          = beat_q == 9'(MostBeats - 1) && !a_last;
  assign next_valid_o = a_valid;
  assign next_data_o  = a_data[31:0];
  assign next_keep_o  = a_keep[3:0];
  always_ff @(posedge clk_i) begin
    if (take) begin
      first_q   <= a_last;
      beat_q    <= a_last || cut ? '0 : beat_q + 1'b1;
      swallow_q <= cut;
      if (cut) first_q <= 1'b1;
      for (int i = 0; i < 64; i++) m_data_o[8*i+:8] <= a_keep[i] ? a_data[8*i+:8] : '0;
      m_keep_o  <= a_keep;
      m_first_o <= first_q;
      m_last_o  <= a_last || cut;
      m_cut_o   <= cut;
      if (first_q) begin
        m_size_o   <= a_size;
        m_src_o    <= a_src;
        m_udp_o    <= a_keep[HeaderBytes] && is_udp(a_data[8*HeaderBytes-1:0], a_size) &&
                      is_ours(a_data[8*HeaderBytes-1:0], cfg_ports_i);
        m_marked_o <= a_data[8*HeaderBytes+:8*FrameHeader] == cfg_header_i;
      end
    end
    if (a_valid && swallow_q && a_last) swallow_q <= 1'b0;
    m_valid_o <= take || (m_valid_o && !m_ready_i);
    if (!rst_ni) begin
      m_valid_o <= 1'b0;
      first_q   <= 1'b1;
      swallow_q <= 1'b0;
      beat_q    <= '0;
    end
  end

endmodule
