// SPDX-License-Identifier: Apache-2.0
// The end of an encoder: words of 32 bits become a packet's beats, 512 bits each. A word a clock;
// latency 1 clock behind a beat's last word.
module wpr_words_out (
  input  logic         clk_i,
  input  logic         rst_ni,         // synchronous
  input  logic         s_valid_i,
  output logic         s_ready_o,
  input  logic [ 31:0] s_data_i,
  input  logic         s_last_i,       // of the packet
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast
);

  wpr_widen #(.Wide(64), .Narrow(4)) widen (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid(s_valid_i),
    .s_axis_tready(s_ready_o),
    .s_axis_tdata (s_data_i),
    .s_axis_tkeep (4'hF),
    .s_axis_tlast (s_last_i),
    .s_axis_tuser (1'b0),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser ()
  );

endmodule
