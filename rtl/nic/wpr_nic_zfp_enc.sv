// SPDX-License-Identifier: Apache-2.0
// zfp for wpr_nic_tx: packets of float32 words, 64 bytes a beat, to payloads of zfp at a fixed rate
// in one dimension (codecs/zfp/spec.md): the head, and the stream. A beat a clock.
//
// code_bad_o with the last beat: the block has values for which the specification wants, or may
// want, another code: NaN, infinities, and magnitudes of 2^112 or more; or a cell of magnitudes
// below 2^-98 in a block without one of 2^-74 or more.
module wpr_nic_zfp_enc
  import wpr_nic_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,        // synchronous
  input  logic [4:0] cfg_rate_i,    // bits of a value: 3 to 16
  input  logic       raw_valid_i,
  output logic       raw_ready_o,
  input  beat_t      raw_beat_i,    // whole words
  output logic       code_valid_o,
  input  logic       code_ready_i,
  output beat_t      code_beat_o,
  output logic       code_bad_o
);

  // The head waits for a group's last beat, and the code waits for the head. So the encoder must take
  // the beats before that one while none of its code leaves.
  localparam int unsigned GroupBeats = 64;
  localparam int unsigned LogQueue = 6;  // of the encoder
  if ((1 << LogQueue) < GroupBeats) begin : g_starves
    $error("the encoder holds less than a group's beats, whose head waits for them all");
  end

  // ---- packets that may come: as many as the queues of facts take -------------------------------

  logic take, leaves, e_ready, room_q;
  logic [5:0] inside_q;
  assign raw_ready_o = e_ready && room_q;
  assign take        = raw_valid_i && raw_ready_o;
  assign leaves      = code_valid_o && code_ready_i && code_beat_o.last;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + 6'(take && raw_beat_i.last) - 6'(leaves);
    room_q   <= inside_q < 6'd30;
    if (!rst_ni) {inside_q, room_q} <= '0;
  end

  // ---- the head: bits of a group of 64 beats, if there are more ---------------------------------

  logic told_q, h_valid, h_ready, h_long;
  logic [5:0] beat_q;
  always_ff @(posedge clk_i) begin
    if (take) begin
      beat_q <= raw_beat_i.last ? '0 : beat_q + 1'b1;
      told_q <= !raw_beat_i.last && (told_q || beat_q == '1);
    end
    if (!rst_ni) {beat_q, told_q} <= '0;
  end
  wpr_fifo #(.Width(1), .LogDepth(5)) heads (
    .clk_i, .rst_ni,
    .s_valid_i(take && !told_q && (raw_beat_i.last || beat_q == '1)), .s_ready_o(),
    .s_data_i(!raw_beat_i.last), .m_valid_o(h_valid), .m_ready_i(h_ready), .m_data_o(h_long),
    .level_o()
  );

  // ---- what has no such code --------------------------------------------------------------------

  // Exponents of a beat in three registers, of the packet in two.
  logic [15:0] huge_q, large_q, tiny_q, there_q;
  logic [1:0] valid_q, last_q;
  logic huge_beat_q, large_beat_q, tiny_beat_q, huge_all_q, large_all_q, tiny_all_q, unused;
  logic [3:0] tiny_cells;
  always_comb begin
    for (int i = 0; i < 4; i++) begin  // cells of some words, all tiny, and not all 0
      tiny_cells[i] = there_q[4*i+:4] != '0 && tiny_q[4*i+:4] == '1;
    end
  end
  logic [15:0] here;
  logic [15:0][7:0] exponents;
  always_comb begin
    for (int i = 0; i < 16; i++) begin
      here[i]      = raw_beat_i.keep[4*i];
      exponents[i] = raw_beat_i.data[32*i+23+:8];
    end
  end
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 16; i++) begin
      huge_q[i]  <= here[i] && exponents[i] >= 8'(127 + 112);
      large_q[i] <= here[i] && exponents[i] >= 8'(127 - 74);
      tiny_q[i]  <= !here[i] || exponents[i] < 8'(127 - 98);
      there_q[i] <= here[i] && raw_beat_i.data[32*i+:31] != '0;
    end
    valid_q      <= {valid_q[0], take};
    last_q       <= {last_q[0], raw_beat_i.last};
    huge_beat_q  <= |huge_q;
    large_beat_q <= |large_q;
    tiny_beat_q  <= |tiny_cells;
    if (valid_q[1]) begin
      huge_all_q  <= !last_q[1] && (huge_all_q || huge_beat_q);
      large_all_q <= !last_q[1] && (large_all_q || large_beat_q);
      tiny_all_q  <= !last_q[1] && (tiny_all_q || tiny_beat_q);
    end
    if (!rst_ni) {valid_q, huge_all_q, large_all_q, tiny_all_q} <= '0;
  end
  wpr_fifo #(.Width(1), .LogDepth(5)) refused (
    .clk_i, .rst_ni, .s_valid_i(valid_q[1] && last_q[1]), .s_ready_o(),
    .s_data_i(huge_all_q || huge_beat_q ||
              ((tiny_all_q || tiny_beat_q) && !(large_all_q || large_beat_q))),
    .m_valid_o(unused),  // long before the code's end
    .m_ready_i(leaves), .m_data_o(code_bad_o), .level_o()
  );

  // ---- the stream -------------------------------------------------------------------------------

  logic e_valid, n_ready, e_last, w_valid, w_ready, w_last;
  logic [255:0] e_data;
  logic [31:0] e_keep;
  logic [511:0] w_data;
  logic [63:0] w_keep;
  wpr_zfp_enc #(.Dims(1), .CellBits(64), .Unit(4), .Bytes(32), .LogQueue(LogQueue)) encoder (
    .clk_i, .rst_ni, .cfg_rate_i(1'b1), .cfg_bits_i({cfg_rate_i, 2'b0}), .cfg_planes_i(6'd32),
    .cfg_offset_i(10'd32),
    .s_axis_tvalid(raw_valid_i && room_q), .s_axis_tready(e_ready),
    .s_axis_tdata(raw_beat_i.data), .s_axis_tuser(4'(7'(size_of(raw_beat_i.keep) - 7'd4) >> 2)),
    .s_axis_tlast(raw_beat_i.last),
    .m_axis_tvalid(e_valid), .m_axis_tready(n_ready), .m_axis_tdata(e_data),
    .m_axis_tkeep(e_keep), .m_axis_tlast(e_last),
    .m_group_tvalid(), .m_group_tready(1'b1), .m_group_tdata(), .m_group_tlast()
  );
  wpr_widen #(.Wide(64), .Narrow(32)) widen (
    .clk_i, .rst_ni,
    .s_axis_tvalid(e_valid), .s_axis_tready(n_ready), .s_axis_tdata(e_data),
    .s_axis_tkeep(e_keep), .s_axis_tlast(e_last), .s_axis_tuser(1'b0),
    .m_axis_tvalid(w_valid), .m_axis_tready(w_ready), .m_axis_tdata(w_data),
    .m_axis_tkeep(w_keep), .m_axis_tlast(w_last), .m_axis_tuser()
  );
  wpr_prepend #(.Bytes(64), .Header(4)) prepend (
    .clk_i, .rst_ni,
    .h_valid_i(h_valid), .h_ready_o(h_ready), .h_data_i(zfp_head(cfg_rate_i, h_long)),
    .s_axis_tvalid(w_valid), .s_axis_tready(w_ready), .s_axis_tdata(w_data),
    .s_axis_tkeep(w_keep), .s_axis_tlast(w_last),
    .m_axis_tvalid(code_valid_o), .m_axis_tready(code_ready_i), .m_axis_tdata(code_beat_o.data),
    .m_axis_tkeep(code_beat_o.keep), .m_axis_tlast(code_beat_o.last)
  );

endmodule
