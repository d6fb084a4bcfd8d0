// SPDX-License-Identifier: Apache-2.0
// wpr_fre_dec, however packets, pauses and lengths are: a beat offered is held until it is taken,
// and a packet does not end before it was asked for. Words are all zeros or all ones here, which
// are its shortest and a long code, valid and not; with free words a solver needs hours.
module wpr_fre_dec_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [ 3:0] s_cmd_tdata,
  input logic [ 1:0] s_cmd_tuser,
  input logic        s_cmd_tvalid,
  input logic        s_bit_i,
  input logic [ 3:0] s_axis_tkeep,
  input logic        s_axis_tlast,
  input logic        s_axis_tvalid,
  input logic        m_axis_tready
);

  logic s_cmd_tready, s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser;
  logic [31:0] m_axis_tdata;
  logic [31:0] s_axis_tdata;
  assign s_axis_tdata = {32{s_bit_i}};
  wpr_fre_dec #(.CountWidth(4)) dut (
    .cfg_m_i(5'd5),
    .cfg_midpoint_i(1'b0),
    .cfg_bfloat16_i(1'b0),
    .*
  );

  logic started_q = 1'b0, offered_q;
  logic [33:0] beat_q;
  logic [4:0] inside_q = '0;  // packets asked for
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_axis_tvalid && !m_axis_tready;
    beat_q    <= {m_axis_tdata, m_axis_tlast, m_axis_tuser};
    if (rst_ni) begin
      inside_q <= inside_q + 5'(s_cmd_tvalid && s_cmd_tready)
                           - 5'(m_axis_tvalid && m_axis_tready && m_axis_tlast);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni && m_axis_tvalid) begin
      packets: assert (inside_q != 0);
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_axis_tvalid && beat_q == {m_axis_tdata, m_axis_tlast, m_axis_tuser});
    end
    ended: cover (m_axis_tvalid && m_axis_tready && m_axis_tlast && !m_axis_tuser);
    refused: cover (m_axis_tvalid && m_axis_tready && m_axis_tlast && m_axis_tuser);
  end

endmodule
