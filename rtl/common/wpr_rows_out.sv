// SPDX-License-Identifier: Apache-2.0
// The end of a decoder: rows of 16 float32 values become a packet's beats, 512 bits each, behind
// one register. m_axis_tuser says with m_axis_tlast that a row of the packet was wrong.
//
// Stages in front stop while move_o is low: m_axis_tready stops all stages at once.
module wpr_rows_out (
  input  logic              clk_i,
  input  logic              rst_ni,         // synchronous
  output logic              move_o,
  input  logic              row_valid_i,
  input  logic              row_last_i,     // of the packet
  input  logic              row_wrong_i,
  input  logic [15:0]       row_keep_i,     // values that are there: the lowest ones
  input  logic [15:0][31:0] row_values_i,
  output logic              m_axis_tvalid,
  input  logic              m_axis_tready,
  output logic [511:0]      m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0]      m_axis_tkeep,
  output logic              m_axis_tlast,
  output logic              m_axis_tuser
);

  logic wrong, wrong_q;  // the packet, up to this row and before it
  logic [15:0] keep_q;
  assign move_o = m_axis_tready || !m_axis_tvalid;
  assign wrong  = wrong_q || row_wrong_i;
  always_ff @(posedge clk_i) begin
    if (move_o) begin
      m_axis_tvalid <= row_valid_i;
      m_axis_tdata  <= row_values_i;
      m_axis_tlast  <= row_last_i;
      m_axis_tuser  <= row_last_i && wrong;
      keep_q        <= row_keep_i;
      if (row_valid_i) wrong_q <= !row_last_i && wrong;
    end
    if (!rst_ni) begin
      m_axis_tvalid <= 1'b0;
      wrong_q       <= 1'b0;
    end
  end
  always_comb for (int l = 0; l < 16; l++) m_axis_tkeep[4*l+:4] = {4{keep_q[l]}};

endmodule
