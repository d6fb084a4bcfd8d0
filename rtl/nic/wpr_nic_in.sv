// SPDX-License-Identifier: Apache-2.0
// Where packets come in: each beat leaves a short queue with what its packet's header says, and
// with zeros behind the packet's last byte. Headers are classified before the queue, in a pipeline
// that never stalls: taking a beat moves the queue alone. A packet of more than MostBeats beats is
// cut there, with cut on its last beat, and the rest is swallowed.
//
// What a frame says is known with the beat in which its block begins: the first, or the second.
module wpr_nic_in
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,  // bytes
  parameter int unsigned Unit        = 4,   // bytes of a value
  parameter int unsigned LeastBlock  = 1,   // bytes of a code, at least
  // Of a code's first 4 bytes: a bit that is set in a code that is not for the codec.
  parameter logic [31:0] Foreign     = '0
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic                     cfg_enable_i,
  input  logic [ 3:0][15:0]        cfg_ports_i,
  input  logic [8*FrameHeader-1:0] cfg_header_i,
  input  logic [ 15:0]             most_i,             // bytes that a frame may hold at most
  input  logic                     s_valid_i,
  output logic                     s_ready_o,
  input  packet_beat_t             s_beat_i,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output packet_beat_t             m_beat_o,
  output facts_t                   m_facts_o,
  output logic                     frame_valid_o,      // beside a first beat: it is known
  output frame_t                   frame_o             // what a frame says
);

  // ---- as it comes ------------------------------------------------------------------------------

  logic room_q, a_valid_q;
  packet_beat_t a_q;
  assign s_ready_o = room_q;
  always_ff @(posedge clk_i) begin
    a_valid_q <= s_valid_i && room_q;
    a_q       <= s_beat_i;
    if (!rst_ni) a_valid_q <= 1'b0;
  end

  // ---- what it is -------------------------------------------------------------------------------

  // What decides where a beat goes lies in registers behind a queue of its own: LUT RAM as wide as
  // the data's would be far from them.
  typedef struct packed {
    logic        last;
    logic [15:0] size, src;
    facts_t      facts;
  } known_t;
  known_t known_q, queued, m_q;
  logic [511:0] data_q;
  logic [63:0] keep_q;
  logic valid_q, first_q, swallow_q, cut;
  logic [511:0] data;
  logic [8:0] number_q;
  assign data = a_q.beat.data;
  assign cut = number_q == 9'(MostBeats - 1) && !a_q.beat.last;
  always_ff @(posedge clk_i) begin
    valid_q <= a_valid_q && !swallow_q;
    if (a_valid_q && !swallow_q) begin
      first_q   <= a_q.beat.last || cut;
      number_q  <= a_q.beat.last || cut ? '0 : number_q + 1'b1;
      swallow_q <= cut;
    end else if (a_valid_q && a_q.beat.last) begin
      swallow_q <= 1'b0;
    end
    for (int i = 0; i < 64; i++) data_q[8*i+:8] <= a_q.beat.keep[i] ? data[8*i+:8] : '0;
    keep_q              <= a_q.beat.keep;
    known_q.last        <= a_q.beat.last || cut;
    known_q.facts.first <= first_q;
    known_q.facts.cut   <= cut;
    if (first_q) begin
      {known_q.size, known_q.src} <= {a_q.size, a_q.src};
      known_q.facts.ours   <= cfg_enable_i && a_q.beat.keep[HeaderBytes] &&
                              is_udp(data[8*HeaderBytes-1:0], a_q.size) &&
                              is_ours(data[8*HeaderBytes-1:0], cfg_ports_i);
      known_q.facts.even   <= ((a_q.size - 16'(HeaderBytes)) & 16'(Unit - 1)) == '0;
      known_q.facts.marked <= data[8*HeaderBytes+:8*FrameHeader] == cfg_header_i;
    end
    if (!rst_ni) begin
      valid_q   <= 1'b0;
      first_q   <= 1'b1;
      swallow_q <= 1'b0;
      number_q  <= '0;
    end
  end

  // ---- what a frame says ------------------------------------------------------------------------

  localparam int unsigned Begin = HeaderBytes + FrameHeader;  // of the block word
  localparam int unsigned Body = Begin + 8;                   // of the block
  localparam int unsigned Rest = Body % 64;
  frame_t frame_q;
  logic frame_known_q, here, stored, there;
  logic [31:0] word, raw;    // block word, bytes of the payload
  logic [15:0] block, size;  // bytes of the block, of the packet
  logic [31:0] code;         // the block's first bytes
  if (Body < 64) begin : g_first
    assign {raw, word} = data[8*Begin+:64];
    assign code        = 32'(data[511:8*Body]);
    assign size        = a_q.size;
    assign here        = first_q;
  end else begin : g_second
    logic [8*(64-Begin)-1:0] tail_q;  // of the first beat
    logic [511:0] unused;
    assign {unused[8*(64-Rest)-33:0], code, raw, word} = {data, tail_q};
    assign unused[511-:8*Rest+32] = '0;
    assign size                   = known_q.size;
    assign here                   = number_q == 9'd1;
    always_ff @(posedge clk_i) if (first_q) tail_q <= data[511:8*Begin];
  end
  assign stored = word[31];
  assign block  = word[15:0];
  assign there  = a_q.beat.keep[Rest] && (stored || a_q.beat.keep[Rest+LeastBlock-1]);
  always_ff @(posedge clk_i) begin
    frame_known_q <= a_valid_q && !swallow_q && (here || (first_q && (a_q.beat.last || cut)));
    frame_q       <= '{
        agree: here && there && word[30:16] == 15'h4000 && adds_up(block, 16'(Body), size) &&
               block != '0 && raw[31:16] == '0 && raw[15:0] >= block && raw[15:0] <= most_i &&
               (stored ? raw[15:0] == block
                       : (raw[15:0] & 16'(Unit - 1)) == '0 && (code & Foreign) == '0 &&
                         block >= 16'(LeastBlock)),
        stored: stored,
        raw: raw[15:0]
    };
    if (!rst_ni) frame_known_q <= 1'b0;
  end

  // ---- the queue --------------------------------------------------------------------------------

  logic [4:0] level;
  logic pop, queued_valid;
  logic [511:0] m_data;
  logic [63:0] m_keep;
  assign pop      = m_valid_o && m_ready_i;
  assign m_beat_o = '{
      beat: '{last: m_q.last, data: m_data, keep: m_keep}, size: m_q.size, src: m_q.src
  };
  assign m_facts_o = m_q.facts;
  wpr_fifo #(.Width(576), .LogDepth(4)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q),
    .s_ready_o(),  // unused: room_q keeps the queue from filling
    .s_data_i ({data_q, keep_q}),
    .m_valid_o(),  // unused: m_valid_o says so
    .m_ready_i(pop),
    .m_data_o ({m_data, m_keep}),
    .level_o  (level)
  );
  wpr_fifo #(.Width($bits(known_t)), .LogDepth(4)) queue_of_facts (
    .clk_i,
    .rst_ni,
    .s_valid_i(valid_q),
    .s_ready_o(),
    .s_data_i (known_q),
    .m_valid_o(queued_valid),
    .m_ready_i(pop || !m_valid_o),
    .m_data_o (queued),
    .level_o  ()
  );
  always_ff @(posedge clk_i) begin
    if (pop || !m_valid_o) begin
      m_valid_o <= queued_valid;
      m_q       <= queued;
    end
    if (!rst_ni) m_valid_o <= 1'b0;
  end
  wpr_fifo #(.Width($bits(frame_t)), .LogDepth(4)) frames (
    .clk_i,
    .rst_ni,
    .s_valid_i(frame_known_q),
    .s_ready_o(),
    .s_data_i (frame_q),
    .m_valid_o(frame_valid_o),
    .m_ready_i(pop && m_q.facts.first),
    .m_data_o (frame_o),
    .level_o  ()
  );
  always_ff @(posedge clk_i) room_q <= rst_ni && level <= 5'd12;  // up to four are on their way

endmodule
