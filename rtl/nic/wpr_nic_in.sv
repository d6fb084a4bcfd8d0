// SPDX-License-Identifier: Apache-2.0
// Where packets come in: each beat with what its packet's header says, with zeros behind the packet's
// last byte, in a short queue. What is found out is so before the queue, in a pipeline that never stops:
// who takes beats moves nothing but the queue. A packet of more than MostBeats beats is cut there, with
// cut on its last beat, and the rest swallowed.
module wpr_nic_in
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,  // bytes
  parameter int unsigned Unit        = 4    // bytes of a value
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic                     cfg_enable_i,
  input  logic [ 3:0][15:0]        cfg_ports_i,
  input  logic [8*FrameHeader-1:0] cfg_header_i,
  input  logic [ 15:0]             most_i,             // bytes that a frame may hold
  input  logic                     s_axis_tvalid,
  output logic                     s_axis_tready,
  input  logic [511:0]             s_axis_tdata,
  input  logic [ 63:0]             s_axis_tkeep,
  input  logic                     s_axis_tlast,
  input  logic [ 15:0]             s_axis_tuser_size,
  input  logic [ 15:0]             s_axis_tuser_src,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output logic [511:0]             m_data_o,
  output logic [ 63:0]             m_keep_o,
  output logic                     m_first_o,
  output logic                     m_last_o,
  output logic                     m_cut_o,
  output logic [ 15:0]             m_size_o,           // as promised
  output logic [ 15:0]             m_src_o,
  output logic                     m_ours_o,           // one UDP datagram for one of our ports,
  output logic                     m_coded_o,          // and its payload of whole values
  output logic                     m_marked_o,         // its payload begins with our header
  output logic                     m_agree_o,          // whose sizes agree, as far as we see
  output logic                     next_valid_o,       // beside a first beat, the one behind it
  output logic [ 31:0]             next_data_o,        // its first bytes
  output logic [  3:0]             next_keep_o
);

  // ---- as it comes -------------------------------------------------------------------------------

  logic room_q, a_valid_q, a_last_q;
  logic [511:0] a_data_q;
  logic [63:0] a_keep_q;
  logic [15:0] a_size_q, a_src_q;
  assign s_axis_tready = room_q;
  always_ff @(posedge clk_i) begin
    a_valid_q <= s_axis_tvalid && room_q;
    {a_data_q, a_keep_q, a_last_q} <= {s_axis_tdata, s_axis_tkeep, s_axis_tlast};
    {a_size_q, a_src_q} <= {s_axis_tuser_size, s_axis_tuser_src};
    if (!rst_ni) a_valid_q <= 1'b0;
  end

  // ---- what it is --------------------------------------------------------------------------------

  // What is asked for to decide where a beat goes lies in registers, in front of LUT RAM: as wide as the
  // data's is, it would be far from them.
  typedef struct packed {
    logic        first, last, cut;
    logic [15:0] size, src;
    logic        ours, even, marked, agree;
  } facts_t;
  facts_t facts_q, facts;
  logic [511:0] data_q;
  logic [63:0] keep_q;
  logic valid_q, first_q, swallow_q, cut;
  logic [8:0] number_q;
  logic [15:0] block, raw;  // of the frame: the code's bytes, and those that it stands for
  logic stored;
  assign cut = number_q == 9'(MostBeats - 1) && !a_last_q;
  assign {raw, stored, block} = {a_data_q[8*(HeaderBytes+FrameHeader+4)+:16],
                                 a_data_q[8*(HeaderBytes+FrameHeader)+31],
                                 a_data_q[8*(HeaderBytes+FrameHeader)+:16]};
  always_ff @(posedge clk_i) begin
    valid_q <= a_valid_q && !swallow_q;
    if (a_valid_q && !swallow_q) begin
      first_q   <= a_last_q || cut;
      number_q  <= a_last_q || cut ? '0 : number_q + 1'b1;
      swallow_q <= cut;
    end else if (a_valid_q && a_last_q) begin
      swallow_q <= 1'b0;
    end
    for (int i = 0; i < 64; i++) data_q[8*i+:8] <= a_keep_q[i] ? a_data_q[8*i+:8] : '0;
    keep_q        <= a_keep_q;
    facts_q.first <= first_q;
    facts_q.last  <= a_last_q || cut;
    facts_q.cut   <= cut;
    if (first_q) begin
      facts_q.size   <= a_size_q;
      facts_q.src    <= a_src_q;
      facts_q.ours   <= cfg_enable_i && a_keep_q[HeaderBytes] &&
                       is_udp(a_data_q[8*HeaderBytes-1:0], a_size_q) &&
                       is_ours(a_data_q[8*HeaderBytes-1:0], cfg_ports_i);
      facts_q.even   <= ((a_size_q - 16'(HeaderBytes)) & 16'(Unit - 1)) == '0;
      facts_q.marked <= a_data_q[8*HeaderBytes+:8*FrameHeader] == cfg_header_i;
      // Of a shorter packet there is no body behind it, which is asked for, too.
      facts_q.agree  <= a_data_q[8*(HeaderBytes+FrameHeader)+16+:15] == 15'h4000 &&
                       adds_up(block, 16'(HeaderBytes + FrameHeader + 8), a_size_q) &&
                       raw >= block && raw <= most_i &&
                       (stored ? raw == block : (raw & 16'(Unit - 1)) == '0);
    end
    if (!rst_ni) begin
      valid_q   <= 1'b0;
      first_q   <= 1'b1;
      swallow_q <= 1'b0;
      number_q  <= '0;
    end
  end

  // ---- the queue ---------------------------------------------------------------------------------

  logic [4:0] level;
  logic pop, facts_valid;
  assign pop = m_valid_o && m_ready_i;
  wpr_fifo #(.Width(576), .LogDepth(4)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q),
    .s_ready_o(),  // it is
    .s_data_i ({data_q, keep_q}),
    .m_valid_o(),  // with m_valid_o
    .m_ready_i(pop),
    .m_data_o ({m_data_o, m_keep_o}),
    .level_o  (level)
  );
  wpr_fifo #(.Width($bits(facts_t)), .LogDepth(4)) queue_of_facts (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q),
    .s_ready_o(),
    .s_data_i (facts_q),
    .m_valid_o(facts_valid),
    .m_ready_i(pop || !m_valid_o),
    .m_data_o (facts),
    .level_o  ()
  );
  always_ff @(posedge clk_i) begin
    if (pop || !m_valid_o) begin
      m_valid_o <= facts_valid;
      {m_first_o, m_last_o, m_cut_o, m_size_o, m_src_o} <=
          {facts.first, facts.last, facts.cut, facts.size, facts.src};
      {m_ours_o, m_coded_o} <= {facts.ours, facts.ours && facts.even};
      {m_marked_o, m_agree_o} <= {facts.marked, facts.agree};
    end
    if (!rst_ni) m_valid_o <= 1'b0;
  end
  // Packets' second beats are asked for beside their first ones.
  wpr_fifo #(.Width(36), .LogDepth(4)) behind (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q && !facts_q.first),
    .s_ready_o(),
    .s_data_i ({data_q[31:0], keep_q[3:0]}),
    .m_valid_o(next_valid_o),
    .m_ready_i(pop && !m_first_o),
    .m_data_o ({next_data_o, next_keep_o}),
    .level_o  ()
  );
  always_ff @(posedge clk_i) room_q <= rst_ni && level <= 5'd12;  // up to four are on their way

endmodule
