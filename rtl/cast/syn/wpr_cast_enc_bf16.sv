// SPDX-License-Identifier: Apache-2.0
// The encoder with its settings tied to bf16, saturate=0.
module wpr_cast_enc_bf16 (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,
  input  logic         s_axis_tlast,
  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,
  output logic [ 63:0] m_axis_tkeep,
  output logic         m_axis_tlast
);
  wpr_cast_enc encoder (
    .cfg_half_i(1'b0),
    .cfg_saturate_i(1'b0),
    .*
  );
endmodule
