// SPDX-License-Identifier: Apache-2.0
// A queue of whole packets in block RAM: a packet is offered when its last beat is in, with what is
// known of it by then (s_meta_i, such as its size) beside its first. One beat a clock both ways;
// latency 3 clocks from the last beat in to the first one out.
//
// A packet is forgotten if s_drop_i is set with its last beat, and if it alone is larger than the
// memory: it is swallowed then, never blocks, and dropped_o is high for a clock in both cases.
// Does not cross clock domains and does not cut through.
module wpr_packet_fifo #(
  parameter int unsigned Width      = 512,
  parameter int unsigned Meta       = 16,
  parameter int unsigned LogDepth   = 9,   // beats
  parameter int unsigned LogPackets = 5,   // packets inside
  parameter string       RamStyle   = "auto"  // "distributed": LUT RAM, if shallow and wide
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
  output logic [    LogDepth:0] level_o,   // beats inside, a clock ago: for who cannot stop at once
  output logic [  LogPackets:0] packets_o
);

  (* ram_style = RamStyle *) logic [Width-1:0] words_q[1 << LogDepth];

  // ---- in ----------------------------------------------------------------------------------------

  logic [LogDepth:0] begin_q, write_q, read_q;  // with a bit that says which time round
  logic [LogDepth:0] begin_d, write_d;
  logic [LogPackets:0] held;
  logic own_full_d, own_full_q, swallow_d, swallow_q, ready_q, push, store, ends, keep, room;
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
  // One more may come in this clock.
  assign room       = !held[LogPackets] && !(&held[LogPackets-1:0]);
  always_ff @(posedge clk_i) begin
    begin_q    <= begin_d;
    write_q    <= write_d;
    own_full_q <= own_full_d;
    swallow_q  <= swallow_d;
    ready_q    <= swallow_d || own_full_d ||
                  (room && write_d != {!read_q[LogDepth], read_q[LogDepth-1:0]});
    if (!rst_ni) begin
      begin_q    <= '0;
      write_q    <= '0;
      own_full_q <= 1'b0;
      swallow_q  <= 1'b0;
      ready_q    <= 1'b0;
    end
  end
  // LUT RAM is written whenever a beat could come, so that no decision reaches as many write enables: what
  // was not stored is written over, or belongs to a packet that fills the memory and is swallowed.
  // Block RAM has few of them, and power to save.
  logic write;
  assign write = RamStyle == "distributed" ? ready_q : store;
  always_ff @(posedge clk_i) if (write) words_q[write_q[LogDepth-1:0]] <= s_data_i;

  assign packets_o = held;
  always_ff @(posedge clk_i) level_o <= write_q - read_q;

  // ---- packets inside ----------------------------------------------------------------------------

  logic have, next;
  logic [LogDepth-1:0] last_at;
  logic [Meta-1:0] meta;
  wpr_fifo #(.Width(Meta + LogDepth), .LogDepth(LogPackets)) packets (
    .clk_i,
    .rst_ni,
    .s_valid_i(keep),
    .s_ready_o(),  // it is
    .s_data_i ({s_meta_i, write_q[LogDepth-1:0]}),
    .m_valid_o(have),
    .m_ready_i(next),
    .m_data_o ({meta, last_at}),
    .level_o  (held)
  );

  // ---- out: the memory's register and one more ---------------------------------------------------

  logic move, v_q, first_q, last_q, new_q;
  logic [Width-1:0] word_q;
  logic [Meta-1:0] meta_q;
  assign move = m_ready_i || !m_valid_o;
  assign next = move && have && read_q[LogDepth-1:0] == last_at;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v_q       <= have;
      first_q   <= new_q;
      last_q    <= read_q[LogDepth-1:0] == last_at;
      meta_q    <= meta;
      m_valid_o <= v_q;
      m_first_o <= first_q;
      m_last_o  <= last_q;
      m_meta_o  <= meta_q;
      m_data_o  <= word_q;
      if (have) begin
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
