// SPDX-License-Identifier: Apache-2.0
// The end of a decoder of whole multiples: rows of 16 signed counts become float32 values, a
// packet's beats, 512 bits each, behind three registers. m_axis_tuser says with m_axis_tlast that a
// row of the packet was wrong.
//
// Stages in front stop while move_o is low: m_axis_tready stops all stages at once. The limits are
// those of wpr_multiple.
module wpr_multiples_out (
  input  logic             clk_i,
  input  logic             rst_ni,          // synchronous
  output logic             move_o,
  input  logic             row_valid_i,
  input  logic             row_last_i,      // of the packet
  input  logic [15:0]      row_keep_i,      // values that are there: the lowest ones
  input  logic             row_nan_i,       // counts above 0 are NaNs
  input  logic [15:0]      row_negative_i,
  input  logic [15:0][6:0] row_counts_i,
  // These two a clock behind their row.
  input  logic [23:0]      unit_i,          // bits 30 to 7 of the word of 1
  input  logic             wrong_i,
  output logic             m_axis_tvalid,
  input  logic             m_axis_tready,
  output logic [511:0]     m_axis_tdata,    // the value that comes first lowest
  output logic [ 63:0]     m_axis_tkeep,
  output logic             m_axis_tlast,
  output logic             m_axis_tuser
);

  for (genvar l = 0; l < 16; l++) begin : g_lane
    wpr_multiple value (
      .clk_i,
      .move_i    (move_o),
      .nan_i     (row_nan_i),
      .negative_i(row_negative_i[l]),
      .count_i   (row_counts_i[l]),
      .unit_i,
      .product_o (m_axis_tdata[32*l+:32])
    );
  end

  logic [2:1] v_q, last_q;
  logic wrong2_q, before_q;  // of the row; of the packet, before it
  logic [3:1][15:0] keep_q;
  assign move_o = m_axis_tready || !m_axis_tvalid;
  always_ff @(posedge clk_i) begin
    if (move_o) begin
      v_q           <= {v_q[1], row_valid_i};
      last_q        <= {last_q[1], row_last_i};
      keep_q        <= {keep_q[2:1], row_keep_i};
      wrong2_q      <= wrong_i;
      m_axis_tvalid <= v_q[2];
      m_axis_tlast  <= last_q[2];
      m_axis_tuser  <= last_q[2] && (before_q || wrong2_q);
      before_q      <= !(v_q[2] && last_q[2]) && (before_q || wrong2_q);
    end
    if (!rst_ni) {v_q, m_axis_tvalid, before_q} <= '0;
  end
  always_comb for (int l = 0; l < 16; l++) m_axis_tkeep[4*l+:4] = {4{keep_q[3][l]}};

endmodule
