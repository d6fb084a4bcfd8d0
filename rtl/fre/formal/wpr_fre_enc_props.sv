// SPDX-License-Identifier: Apache-2.0
// wpr_fre_enc: a beat offered is held until it is taken, as many packets leave as came in, and
// tkeep is 1, 3, 7 or 15, and 15 but in a last word. Words are zeros and NaNs of either sign here,
// which make codes of 2, 5 and 17 bits; with free words a solver needs hours.
module wpr_fre_enc_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [ 1:0] s_bits_i,
  input logic        s_axis_tlast,
  input logic        s_axis_tvalid,
  input logic        m_axis_tready
);

  logic s_axis_tready, m_axis_tvalid, m_axis_tlast;
  logic [3:0] m_axis_tkeep;
  logic [31:0] m_axis_tdata;
  logic [31:0] s_axis_tdata;
  assign s_axis_tdata = {s_bits_i[1], {31{s_bits_i[0]}}};
  wpr_fre_enc dut (
    .cfg_m_i(5'd5),
    .cfg_nearest_i(1'b1),
    .cfg_flush_i(1'b0),
    .*
  );

  logic started_q = 1'b0, offered_q;
  logic [36:0] beat_q;
  logic [4:0] inside_q = '0;  // packets
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_axis_tvalid && !m_axis_tready;
    beat_q    <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast};
    if (rst_ni) begin
      inside_q <= inside_q + 5'(s_axis_tvalid && s_axis_tready && s_axis_tlast)
                           - 5'(m_axis_tvalid && m_axis_tready && m_axis_tlast);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni && m_axis_tvalid) begin
      packets: assert (!m_axis_tlast || inside_q != 0);
      bytes: assert (m_axis_tkeep == 4'hF || (m_axis_tlast && (m_axis_tkeep == 4'h1 ||
                     m_axis_tkeep == 4'h3 || m_axis_tkeep == 4'h7)));
    end
    if (started_q && rst_ni && offered_q) begin
      held: assert (m_axis_tvalid && beat_q == {m_axis_tdata, m_axis_tkeep, m_axis_tlast});
    end
    two: cover (m_axis_tvalid && m_axis_tready && m_axis_tlast && inside_q == 2);
  end

endmodule
