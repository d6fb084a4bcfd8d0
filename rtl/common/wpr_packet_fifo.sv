// SPDX-License-Identifier: Apache-2.0
// A queue of whole packets in block RAM. A packet is offered when its last beat is in; s_meta_i of
// that beat, such as the packet's size, leaves beside each of its beats. One beat a clock both
// ways; latency 4 clocks from the last beat in to the first one out.
//
// A packet is dropped if s_drop_i is set with its last beat, or if it alone is larger than the
// memory, which it never blocks. dropped_o is high for a clock in both cases. The queue does not
// cross clock domains and does not cut through.
module wpr_packet_fifo #(
  parameter int unsigned Width      = 512,
  parameter int unsigned Meta       = 16,
  parameter int unsigned LogDepth   = 9,   // beats
  parameter int unsigned LogPackets = 5,   // packets inside
  parameter string       RamStyle   = "auto",  // "distributed": LUT RAM, if shallow and wide
  parameter int unsigned Ample      = 0   // beats, of as many packets: see s_ample_o
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,    // synchronous
  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [     Width-1:0] s_data_i,
  input  logic                  s_last_i,
  input  logic                  s_drop_i,  // read with s_last_i, as s_meta_i
  input  logic [      Meta-1:0] s_meta_i,
  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [     Width-1:0] m_data_o,
  output logic                  m_first_o,
  output logic                  m_last_o,
  output logic [      Meta-1:0] m_meta_o,  // with every beat of the packet
  output logic                  dropped_o,
  // Two clocks ago there was room for Ample beats; always 1 if Ample is 0. For a source that cannot
  // stop at once and sends no packet that fills the memory alone.
  output logic                  s_ample_o
);

  (* ram_style = RamStyle *) logic [Width-1:0] words_q[1 << LogDepth];

  // ---- in ---------------------------------------------------------------------------------------

  logic [LogDepth:0] begin_q, write_q, read_q;  // with a bit that says which time round
  logic [LogDepth:0] begin_d, write_d;
  logic [LogPackets:0] held;  // packets
  logic own_full_d, own_full_q, swallow_d, swallow_q, ready_q, push, store, ends, keep, room_q;
  assign s_ready_o = ready_q;
  assign push      = s_valid_i && s_ready_o;
  assign store     = push && !swallow_q && !own_full_q;
  assign ends      = push && s_last_i;
  assign keep      = store && s_last_i && !s_drop_i;
  assign dropped_o = ends && !keep;
  assign write_d   = ends && !keep ? begin_q : store ? write_q + 1'b1 : write_q;
  assign begin_d    = keep ? write_q + 1'b1 : begin_q;
  assign own_full_d = write_d == {!begin_d[LogDepth], begin_d[LogDepth-1:0]};
  assign swallow_d  = push ? !s_last_i && (swallow_q || own_full_q) : swallow_q;
  always_ff @(posedge clk_i) begin
    begin_q    <= begin_d;
    write_q    <= write_d;
    own_full_q <= own_full_d;
    swallow_q  <= swallow_d;
    ready_q    <= swallow_d || own_full_d ||
                  (room_q && write_d != {!read_q[LogDepth], read_q[LogDepth-1:0]});
    room_q     <= held < (LogPackets + 1)'((1 << LogPackets) - 2);  // two more may be coming
    if (!rst_ni) begin
      begin_q    <= '0;
      write_q    <= '0;
      own_full_q <= 1'b0;
      swallow_q  <= 1'b0;
      ready_q    <= 1'b0;
    end
  end
  // LUT RAM is written whenever a beat could come, since store would have to reach many write
  // enables. A beat that was not stored is written over, or belongs to a packet that fills the
  // memory and is dropped. Block RAM has few write enables, and power to save.
  logic write;
  assign write = RamStyle == "distributed" ? ready_q : store;
  always_ff @(posedge clk_i) if (write) words_q[write_q[LogDepth-1:0]] <= s_data_i;

  if (Ample == 0) begin : g_always
    assign s_ample_o = 1'b1;
  end else begin : g_ample
    logic [LogDepth:0] used_q;
    always_ff @(posedge clk_i) begin
      used_q    <= write_q - read_q;
      s_ample_o <= rst_ni && used_q <= (LogDepth + 1)'((1 << LogDepth) - Ample) &&
                   held <= (LogPackets + 1)'((1 << LogPackets) - Ample);
    end
  end

  // ---- packets inside ---------------------------------------------------------------------------

  // The packet that is read has its facts in registers.
  logic have_q, next_have, next;
  logic [LogDepth-1:0] last_at_q, next_last_at;
  logic [Meta-1:0] next_meta, this_meta_q;
  wpr_fifo #(.Width(Meta + LogDepth), .LogDepth(LogPackets)) packets (
    .clk_i,
    .rst_ni,
    .s_valid_i(keep),
    .s_ready_o(),  // always: room_q keeps it from filling
    .s_data_i ({s_meta_i, write_q[LogDepth-1:0]}),
    .m_valid_o(next_have),
    .m_ready_i(next || !have_q),
    .m_data_o ({next_meta, next_last_at}),
    .level_o  (held)
  );
  always_ff @(posedge clk_i) begin
    if (next || !have_q) begin
      have_q                   <= next_have;
      {this_meta_q, last_at_q} <= {next_meta, next_last_at};
    end
    if (!rst_ni) have_q <= 1'b0;
  end

  // ---- out: the memory's register and one more --------------------------------------------------

  logic move, v_q, first_q, last_q, new_q;
  logic [Width-1:0] word_q;
  logic [Meta-1:0] meta_q;
  assign move = m_ready_i || !m_valid_o;
  assign next = move && have_q && read_q[LogDepth-1:0] == last_at_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v_q       <= have_q;
      first_q   <= new_q;
      last_q    <= read_q[LogDepth-1:0] == last_at_q;
      meta_q    <= this_meta_q;
      m_valid_o <= v_q;
      m_first_o <= first_q;
      m_last_o  <= last_q;
      m_meta_o  <= meta_q;
      m_data_o  <= word_q;
      if (have_q) begin
        read_q <= read_q + 1'b1;
        new_q  <= next;
      end
    end
    if (!rst_ni) begin
      read_q    <= '0;
      new_q     <= 1'b1;
      v_q       <= 1'b0;
      m_valid_o <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (move) word_q <= words_q[read_q[LogDepth-1:0]];

endmodule
