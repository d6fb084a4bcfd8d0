// SPDX-License-Identifier: Apache-2.0
// wpr_fre_enc never hangs, whatever its words and its state: while what is behind it takes all, it
// takes a value in one of three clocks, and then all its stages move.
module wpr_fre_enc_live_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [31:0] s_axis_tdata,
  input logic        s_axis_tlast,
  input logic        s_axis_tvalid,
  input logic        m_axis_tready
);

  logic s_axis_tready, m_axis_tvalid, m_axis_tlast;
  logic [3:0] m_axis_tkeep;
  logic [31:0] m_axis_tdata;
  wpr_fre_enc dut (
    .cfg_m_i(5'd23),
    .cfg_nearest_i(1'b1),
    .cfg_flush_i(1'b0),
    .*
  );

  logic started_q = 1'b0, seen_q = 1'b0;
  logic [1:0] stalled_q;  // clocks in which it took nothing though it could give
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    seen_q    <= seen_q || (rst_ni && stalled_q == 2'd2);
    if (!rst_ni || !m_axis_tready || s_axis_tready) stalled_q <= '0;
    else stalled_q <= stalled_q + 2'd1;
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      takes: assert (!m_axis_tready || s_axis_tready || stalled_q < 2'd2);
      few: assert (stalled_q <= 2'd2);
    end
    used: cover (seen_q && m_axis_tvalid && m_axis_tlast);
  end

endmodule
