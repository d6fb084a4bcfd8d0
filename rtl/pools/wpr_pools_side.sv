// SPDX-License-Identifier: Apache-2.0
// A pool of encoders, or of decoders, of lz4 or snappy: blocks with their headers, 64 bytes a beat,
// in and out in the same order. The queues of an engine, in block RAM, hold 2^LogQueue beats each
// way; blocks, and codes, should fit, so that no engine waits for another one.
module wpr_pools_side #(
  parameter int unsigned Codec    = 0,  // 0: lz4, 1: snappy
  parameter bit          Decode   = 0,
  parameter int unsigned Engines  = 8,
  parameter int unsigned LogQueue = 9
) (
  input  logic         clk_i,
  input  logic         rst_ni,         // synchronous
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

  logic [5:0] in_size, out_size;  // of the last beat, 0: 64; of others 0
  logic [6:0] in_count;
  wpr_size #(.Bytes(64)) count (.keep_i(s_axis_tkeep), .size_o(in_count));
  assign in_size = in_count[5:0];
  wpr_keep #(.Bytes(64)) keep (.size_i(out_size), .keep_o(m_axis_tkeep));

  logic [Engines-1:0] e_valid, e_ready, e_last, f_valid, f_ready, f_last;
  logic [Engines-1:0][517:0] e_data, f_data;
  wpr_pool #(
    .Engines(Engines), .In(518), .Out(518), .LogQueue(LogQueue), .LogInside(5)
  ) pool (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i ({in_size, s_axis_tdata}),
    .s_last_i (s_axis_tlast),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o ({out_size, m_axis_tdata}),
    .m_last_o (m_axis_tlast),
    .e_valid_o(e_valid),
    .e_ready_i(e_ready),
    .e_data_o (e_data),
    .e_last_o (e_last),
    .f_valid_i(f_valid),
    .f_ready_o(f_ready),
    .f_data_i (f_data),
    .f_last_i (f_last)
  );
  for (genvar i = 0; i < Engines; i++) begin : g_engine
    logic [63:0] e_keep, f_keep;
    logic [6:0] f_count;
    wpr_keep #(.Bytes(64)) keep_in (.size_i(e_data[i][517:512]), .keep_o(e_keep));
    wpr_size #(.Bytes(64)) count_out (.keep_i(f_keep), .size_o(f_count));
    assign f_data[i][517:512] = f_count[5:0];
    wpr_pools_engine #(.Codec(Codec), .Decode(Decode)) engine (
      .clk_i,
      .rst_ni,
      .s_axis_tvalid(e_valid[i]),
      .s_axis_tready(e_ready[i]),
      .s_axis_tdata (e_data[i][511:0]),
      .s_axis_tkeep (e_keep),
      .s_axis_tlast (e_last[i]),
      .m_axis_tvalid(f_valid[i]),
      .m_axis_tready(f_ready[i]),
      .m_axis_tdata (f_data[i][511:0]),
      .m_axis_tkeep (f_keep),
      .m_axis_tlast (f_last[i])
    );
  end

endmodule
