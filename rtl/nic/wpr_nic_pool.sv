// SPDX-License-Identifier: Apache-2.0
// wpr_pool for engines of Bytes a clock each: packets of 64 bytes a beat to the engines' beats, and
// back. An engine makes one packet of each packet; f_bad_i with the last beat stays with the
// packet. A packet longer than 2^LogQueue beats occupies its engine while it comes in, and those
// behind it wait.
module wpr_nic_pool
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Engines  = 4,
  parameter int unsigned Bytes    = 4,
  parameter int unsigned LogQueue = 5,
  parameter bit          Told     = 1'b0  // engines take s_size_i of each packet by cmd_*
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,       // synchronous
  input  logic                            s_valid_i,
  output logic                            s_ready_o,
  input  beat_t                           s_beat_i,
  input  logic  [ 15:0]                   s_size_i,     // raw bytes of the packet, with each beat
  output logic                            m_valid_o,
  input  logic                            m_ready_i,
  output beat_t                           m_beat_o,
  output logic                            m_bad_o,      // with last
  // to the engines
  output logic  [Engines-1:0]             cmd_valid_o,
  input  logic  [Engines-1:0]             cmd_ready_i,
  output logic  [Engines-1:0][      15:0] cmd_size_o,
  output logic  [Engines-1:0]             e_valid_o,
  input  logic  [Engines-1:0]             e_ready_i,
  output logic  [Engines-1:0][8*Bytes-1:0] e_data_o,
  output logic  [Engines-1:0][ Bytes-1:0] e_keep_o,
  output logic  [Engines-1:0]             e_last_o,
  // from the engines
  input  logic  [Engines-1:0]             f_valid_i,
  output logic  [Engines-1:0]             f_ready_o,
  input  logic  [Engines-1:0][8*Bytes-1:0] f_data_i,
  input  logic  [Engines-1:0][ Bytes-1:0] f_keep_i,
  input  logic  [Engines-1:0]             f_last_i,
  input  logic  [Engines-1:0]             f_bad_i
);

  typedef struct packed {
    logic [15:0]  size;    // raw bytes of the packet
    logic [5:0]   n_bytes; // of the beat; 0: 64
    logic [511:0] data;
  } in_t;
  typedef struct packed {
    logic         bad;
    logic [5:0]   n_bytes;
    logic [511:0] data;
  } out_t;
  localparam int unsigned In = $bits(in_t) - (Told ? 0 : 16);

  in_t s_word;
  out_t m_word;
  logic [Engines-1:0] p_valid, p_ready, p_last, w_valid, w_ready, w_last;
  logic [Engines-1:0][In-1:0] p_word;
  out_t [Engines-1:0] w_word;
  assign s_word = '{size: s_size_i, n_bytes: 6'(size_of(s_beat_i.keep)), data: s_beat_i.data};
  wpr_pool #(
    .Engines(Engines), .In(In), .Out($bits(out_t)), .LogQueue(LogQueue), .LogInside(5)
  ) pool (
    .clk_i, .rst_ni,
    .s_valid_i, .s_ready_o, .s_data_i(s_word[In-1:0]), .s_last_i(s_beat_i.last),
    .m_valid_o, .m_ready_i, .m_data_o(m_word), .m_last_o(m_beat_o.last),
    .e_valid_o(p_valid), .e_ready_i(p_ready), .e_data_o(p_word), .e_last_o(p_last),
    .f_valid_i(w_valid), .f_ready_o(w_ready), .f_data_i(w_word), .f_last_i(w_last)
  );
  assign m_beat_o.data = m_word.data;
  assign m_beat_o.keep = keep_of(m_word.n_bytes);
  assign m_bad_o       = m_word.bad;

  for (genvar i = 0; i < Engines; i++) begin : g_engine
    in_t word;
    logic v_valid, v_ready;
    logic [63:0] w_keep;
    assign word = in_t'(p_word[i]);
    if (Told) begin : g_told
      wpr_nic_count #(.Width(16)) count (
        .clk_i, .rst_ni, .s_axis_tvalid(p_valid[i]), .s_axis_tready(p_ready[i]),
        .s_axis_tlast(p_last[i]), .s_axis_tuser(word.size), .m_axis_tvalid(v_valid),
        .m_axis_tready(v_ready), .m_cmd_tvalid(cmd_valid_o[i]), .m_cmd_tready(cmd_ready_i[i]),
        .m_cmd_tdata(cmd_size_o[i])
      );
    end else begin : g_not_told
      assign v_valid        = p_valid[i];
      assign p_ready[i]     = v_ready;
      assign cmd_valid_o[i] = 1'b0;
      assign cmd_size_o[i]  = '0;
    end
    wpr_narrow #(.Wide(64), .Narrow(Bytes)) narrow (
      .clk_i, .rst_ni,
      .s_axis_tvalid(v_valid), .s_axis_tready(v_ready), .s_axis_tdata(word.data),
      .s_axis_tkeep(keep_of(word.n_bytes)), .s_axis_tlast(p_last[i]),
      .m_axis_tvalid(e_valid_o[i]), .m_axis_tready(e_ready_i[i]), .m_axis_tdata(e_data_o[i]),
      .m_axis_tkeep(e_keep_o[i]), .m_axis_tlast(e_last_o[i])
    );
    wpr_widen #(.Wide(64), .Narrow(Bytes)) widen (
      .clk_i, .rst_ni,
      .s_axis_tvalid(f_valid_i[i]), .s_axis_tready(f_ready_o[i]), .s_axis_tdata(f_data_i[i]),
      .s_axis_tkeep(f_keep_i[i]), .s_axis_tlast(f_last_i[i]), .s_axis_tuser(f_bad_i[i]),
      .m_axis_tvalid(w_valid[i]), .m_axis_tready(w_ready[i]), .m_axis_tdata(w_word[i].data),
      .m_axis_tkeep(w_keep), .m_axis_tlast(w_last[i]), .m_axis_tuser(w_word[i].bad)
    );
    assign w_word[i].n_bytes = 6'(size_of(w_keep));
  end

endmodule
