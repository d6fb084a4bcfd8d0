// SPDX-License-Identifier: Apache-2.0
// A pool of lz4 encoders, 8 bytes a clock each, for wpr_nic_tx, or of decoders, up to 8 bytes a
// clock each, for wpr_nic_rx. Packets are up to 16 KiB. s_size_i is the raw size of the packet; a
// decoder's packet may have fewer bytes than that, never more. m_bad_o with the last beat says that
// the code is not valid.
module wpr_nic_lz4
  import wpr_nic_pkg::*;
#(
  parameter bit          Decode   = 0,
  parameter int unsigned Engines  = 8,
  parameter int unsigned LogQueue = 8  // of wpr_nic_pool: the longest packet
) (
  input  logic        clk_i,
  input  logic        rst_ni,     // synchronous
  input  logic        s_valid_i,
  output logic        s_ready_o,
  input  beat_t       s_beat_i,
  input  logic [15:0] s_size_i,   // with each beat
  output logic        m_valid_o,
  input  logic        m_ready_i,
  output beat_t       m_beat_o,
  output logic        m_bad_o
);

  logic [Engines-1:0] cmd_valid, cmd_ready, n_valid, n_ready, n_last, f_valid, f_ready, f_last;
  logic [Engines-1:0] f_bad;
  logic [Engines-1:0][15:0] cmd_size;
  logic [Engines-1:0][63:0] n_data, f_data;
  logic [Engines-1:0][7:0] n_keep, f_keep;
  wpr_nic_pool #(.Engines(Engines), .Bytes(8), .LogQueue(LogQueue), .Told(1'b1)) pool (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o, .s_beat_i, .s_size_i, .m_valid_o, .m_ready_i,
    .m_beat_o, .m_bad_o,
    .cmd_valid_o(cmd_valid), .cmd_ready_i(cmd_ready), .cmd_size_o(cmd_size),
    .e_valid_o(n_valid), .e_ready_i(n_ready), .e_data_o(n_data), .e_keep_o(n_keep),
    .e_last_o(n_last), .f_valid_i(f_valid), .f_ready_o(f_ready), .f_data_i(f_data),
    .f_keep_i(f_keep), .f_last_i(f_last), .f_bad_i(f_bad)
  );
  for (genvar i = 0; i < Engines; i++) begin : g_engine
    logic [7:0] keep;
    logic bad, none;
    // 16 KiB of literals: more than a packet has.
    wpr_lz_core #(.Codec(0), .Decode(Decode), .LogLiterals(14)) core (
      .clk_i, .rst_ni,
      .s_cmd_tvalid(cmd_valid[i]), .s_cmd_tready(cmd_ready[i]), .s_cmd_tdata(23'(cmd_size[i])),
      .s_axis_tvalid(n_valid[i]), .s_axis_tready(n_ready[i]), .s_axis_tdata(n_data[i]),
      .s_axis_tkeep(n_keep[i]), .s_axis_tlast(n_last[i]),
      .m_axis_tvalid(f_valid[i]), .m_axis_tready(f_ready[i]), .m_axis_tdata(f_data[i]),
      .m_axis_tkeep(keep), .m_axis_tlast(f_last[i]), .m_axis_tuser(bad)
    );
    // A code for no byte at all, and one that is not valid, end with a beat without bytes. No
    // packet of the box has none.
    assign none      = f_last[i] && !keep[0];
    assign f_bad[i]  = bad || none;
    assign f_keep[i] = none ? 8'd1 : keep;
  end

endmodule
