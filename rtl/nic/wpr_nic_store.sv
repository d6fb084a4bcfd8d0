// SPDX-License-Identifier: Apache-2.0
// A store of whole packets with facts of each: how many bytes, the sum of its 16-bit words, and
// whether it is kept. A packet that is bad or does not fit leaves no beats, but its facts. Facts
// may come a few clocks after the packet could leave: take them first.
//
// The module in front lets at most 60 packets in.
module wpr_nic_store
  import wpr_nic_pkg::*;
#(
  parameter int unsigned LogDepth = 9,  // beats
  parameter int unsigned Skip     = 0,  // bytes at a packet's beginning that the sum leaves out
  parameter string       RamStyle = "auto",
  parameter int unsigned Ample    = 0,
  parameter bit Queue             = 1'b0  // a late m_ready_i reaches no further than a queue
) (
  input  logic         clk_i,
  input  logic         rst_ni,     // synchronous
  input  logic         s_valid_i,
  output logic         s_ready_o,
  output logic         s_ample_o,  // of Ample beats, as of wpr_packet_fifo
  input  beat_t        s_beat_i,
  input  logic         s_bad_i,    // with last
  output logic         m_valid_o,
  input  logic         m_ready_i,
  output beat_t        m_beat_o,
  output logic         f_valid_o,
  input  logic         f_ready_i,
  output logic         f_kept_o,
  output logic         f_bad_o,    // the packet's s_bad_i
  output logic [ 15:0] f_size_o,
  output logic [ 15:0] f_sum_o
);

  logic v_q, last_q, bad_q, go, move, dropped, p_valid, p_ready, p_last;
  logic [511:0] p_data;
  logic [5:0] p_size;
  beat_t p_beat;
  assign p_beat = '{last: p_last, data: p_data, keep: keep_of(p_last ? p_size : '0)};
  logic [511:0] data_q;
  logic [63:0] keep_q;
  logic [6:0] size;
  logic [8:0] beat_q;
  assign s_ready_o = go;  // a register, since it enables many
  assign move      = v_q && go;
  assign size      = size_of(keep_q);
  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      v_q    <= s_valid_i;
      for (int i = 0; i < 64; i++) begin
        data_q[8*i+:8] <= s_beat_i.keep[i] ? s_beat_i.data[8*i+:8] : '0;
      end
      last_q <= s_beat_i.last;
      bad_q  <= s_bad_i;
      keep_q <= s_beat_i.keep;
    end
    if (move) beat_q <= last_q ? '0 : beat_q + 1'b1;
    if (!rst_ni) begin
      v_q    <= 1'b0;
      beat_q <= '0;
    end
  end

  wpr_packet_fifo #(
    .Width(512), .Meta(6), .LogDepth(LogDepth), .LogPackets(6), .RamStyle(RamStyle),
    .Ample(Ample)
  ) packets (
    .clk_i,
    .rst_ni,
    .s_valid_i(v_q),
    .s_ready_o(go),
    .s_data_i (data_q),
    .s_last_i (last_q),
    .s_drop_i (bad_q),
    .s_meta_i (size[5:0]),
    .m_valid_o(p_valid),
    .m_ready_i(p_ready),
    .m_data_o (p_data),
    .m_first_o(),
    .m_last_o (p_last),
    .m_meta_o (p_size),
    .dropped_o(dropped),
    .s_ample_o
  );
  if (Queue) begin : g_queue
    wpr_fifo #(.Width($bits(beat_t)), .LogDepth(2)) queue (
      .clk_i,
      .rst_ni,
      .s_valid_i(p_valid),
      .s_ready_o(p_ready),
      .s_data_i (p_beat),
      .m_valid_o,
      .m_ready_i,
      .m_data_o (m_beat_o),
      .level_o  ()
    );
  end else begin : g_register
    assign p_ready = m_ready_i || !m_valid_o;
    always_ff @(posedge clk_i) begin
      if (p_ready) begin
        m_valid_o <= p_valid;
        m_beat_o  <= p_beat;
      end
      if (!rst_ni) m_valid_o <= 1'b0;
    end
  end

  logic known, kept, bad;
  logic [15:0] sum, n_bytes;
  wpr_sum16 #(.Skip(Skip), .Tag(18)) adder (
    .clk_i,
    .rst_ni,
    .valid_i(move),
    .last_i (last_q),
    .data_i (data_q),
    .tag_i  ({!dropped, bad_q, 16'({beat_q, 6'b0}) + 16'(size)}),
    .valid_o(known),
    .sum_o  (sum),
    .tag_o  ({kept, bad, n_bytes})
  );
  wpr_fifo #(.Width(34), .LogDepth(6)) facts (
    .clk_i,
    .rst_ni,
    .s_valid_i(known),
    .s_ready_o(),  // always
    .s_data_i ({kept, bad, n_bytes, sum}),
    .m_valid_o(f_valid_o),
    .m_ready_i(f_ready_i),
    .m_data_o ({f_kept_o, f_bad_o, f_size_o, f_sum_o}),
    .level_o  ()
  );

endmodule
