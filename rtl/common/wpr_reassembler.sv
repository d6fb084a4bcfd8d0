// SPDX-License-Identifier: Apache-2.0
// The inverse of wpr_packetizer, over a way that loses, repeats and reorders blocks: takes headers
// off, puts blocks in the order of their numbers and gives messages back byte for byte.
//
// A block waits in slot number % 2^LogSlots until all blocks before it have left. A block ahead of
// all slots waits outside, which stops the input. A block is dropped, with dropped_o for a clock,
// if its size is not what its header says or does not fit a slot, or if it is repeated or too late.
//
// A missing block is given up when later blocks have waited for cfg_patience_i clocks, or when a
// block ahead of all slots comes and none waits. The message then ends with a beat without bytes
// (tkeep = 0, tuser = 1), and blocks are dropped up to the next one that begins a message. The loss
// of the last blocks before a pause is noticed after the pause.
module wpr_reassembler #(
  parameter int unsigned Bytes    = 64,  // a beat's; 16 or more
  parameter int unsigned LogSlots = 3,
  parameter int unsigned LogBeats = 6,   // of a slot
  localparam int unsigned Log = $clog2(Bytes)
) (
  input  logic               clk_i,
  input  logic               rst_ni,         // synchronous
  input  logic [       15:0] cfg_patience_i,
  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,
  input  logic               s_axis_tlast,
  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [8*Bytes-1:0] m_axis_tdata,
  output logic [  Bytes-1:0] m_axis_tkeep,
  output logic               m_axis_tlast,
  output logic               m_axis_tuser,   // with tlast: the message lacks something
  output logic               dropped_o
);

  localparam int unsigned Slots = 1 << LogSlots;
  localparam int unsigned LogSize = Log + LogBeats;  // of a slot's bytes

  // ---- headers off, sizes counted ---------------------------------------------------------------

  logic p_valid, p_ready, p_last, runt;
  logic [63:0] p_header;
  logic [8*Bytes-1:0] p_data;
  logic [Bytes-1:0] p_keep;
  wpr_behead #(.Bytes(Bytes), .Header(8)) behead (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .h_data_o     (p_header),
    .m_axis_tvalid(p_valid),
    .m_axis_tready(p_ready),
    .m_axis_tdata (p_data),
    .m_axis_tkeep (p_keep),
    .m_axis_tlast (p_last),
    .runt_o       (runt)
  );

  logic [Log:0] size;
  wpr_size #(.Bytes(Bytes)) count (.keep_i(p_keep), .size_o(size));

  logic v_q, last_q, take, bad_q;
  logic [63:0] header_q;
  logic [8*Bytes-1:0] data_q;
  logic [Log:0] size_q;
  logic [LogBeats-1:0] beat_q;
  assign p_ready = take || !v_q;
  always_ff @(posedge clk_i) begin
    if (p_ready) begin
      v_q      <= p_valid;
      last_q   <= p_last;
      header_q <= p_header;
      data_q   <= p_data;
      size_q   <= size;
    end
    if (!rst_ni) v_q <= 1'b0;
  end

  // ---- into its slot ----------------------------------------------------------------------------

  logic [15:0] next_q, number;  // next_q: the block that leaves next
  // The distance of this block ahead of next_q, but for a step of next_q in the clock before. It is
  // a register, since the input stops for it. So the block was guessed a clock earlier: the next
  // block or, where the input stood still, the present one. A wrong guess costs a clock.
  logic [15:0] ahead, not_ahead_q;
  logic stepped_q, guess, stopped_q, right_q;
  logic [Slots-1:0] filled_q;
  logic [LogSlots-1:0] slot, slot_next;
  typedef struct packed {
    logic                first;  // of its message
    logic                last;
    logic [LogBeats-1:0] at;     // the last beat
    logic [Log-1:0]      size;   // its bytes; 0: whole
  } block_t;
  block_t blocks_q[Slots];
  logic near, fits, late, plausible, beyond, whole, store, none, give_up, leave, jump, move;
  assign number    = header_q[47:32];
  assign slot      = number[LogSlots-1:0];
  assign slot_next = next_q[LogSlots-1:0];
  assign ahead     = ~not_ahead_q;
  // By bits, since comparisons would be carry chains. The distance is ahead - stepped_q.
  assign near      = right_q && ahead[15:LogSlots+1] == '0 &&
                     (!stepped_q ? !ahead[LogSlots]
                                 : ahead[LogSlots] == (ahead[LogSlots-1:0] == '0));
  assign late      = ahead[15:LogSlots+2] == '1 ? !(stepped_q && ahead[LogSlots+1:0] == '0)
                                                : stepped_q && ahead == '0;
  assign fits      = near && !filled_q[slot];
  assign plausible = header_q[29:0] != '0 && header_q[29:LogSize+1] == '0 &&
                     !(header_q[LogSize] && header_q[LogSize-1:0] != '0);
  assign beyond    = right_q && !near && !late && plausible;
  assign none      = filled_q == '0;
  assign whole     = !bad_q && header_q[29:0] == 30'({beat_q, {Log{1'b0}}}) + 30'(size_q);
  assign jump      = v_q && beyond && none && move;
  assign take      = right_q && !(v_q && (beyond || give_up));
  assign store     = v_q && take && last_q && fits && whole;
  assign guess     = right_q ? !stopped_q : !v_q;
  always_ff @(posedge clk_i) begin
    not_ahead_q <= next_q + ~(guess ? p_header[47:32] : number);
    stepped_q   <= leave || give_up;
    stopped_q   <= right_q && !p_ready;
    right_q     <= guess == p_ready && !jump;
  end
  always_ff @(posedge clk_i) dropped_o <= rst_ni && (runt || (v_q && take && last_q && !store));

  logic [8*Bytes-1:0] words_q[1 << (LogSlots + LogBeats)];
  always_ff @(posedge clk_i) begin
    if (v_q && fits && !bad_q) words_q[{slot, beat_q}] <= data_q;
  end
  always_ff @(posedge clk_i) begin
    if (v_q && take) begin
      beat_q  <= last_q ? '0 : beat_q + 1'b1;
      bad_q  <= !last_q && (bad_q || beat_q == '1 || !fits);
    end
    if (!rst_ni) begin
      beat_q  <= '0;
      bad_q  <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (store) blocks_q[slot] <= '{header_q[48], header_q[30], beat_q, header_q[Log-1:0]};
  end

  // ---- out of the next slot ---------------------------------------------------------------------

  logic ready_next_q, first_next_q;  // of slot_next, but for a store: filled_q, first and at
  logic [LogBeats-1:0] last_at_q;
  logic store_q;                     // in the clock before
  logic deaf_q;                      // until a message begins
  logic [LogSlots-1:0] slot_after;
  logic [15:0] waited_q;
  logic [LogBeats-1:0] at_q;
  logic expired_q;  // since the clock before
  logic skip, read, end_read, lost;
  block_t block_next;
  logic after_first;
  logic [LogBeats-1:0] after_at;
  assign block_next  = blocks_q[slot_next];
  assign after_first = blocks_q[slot_after].first;
  assign after_at    = blocks_q[slot_after].at;
  assign slot_after = slot_next + 1'b1;
  assign skip       = ready_next_q && deaf_q && !first_next_q;
  assign read       = ready_next_q && !skip && move;
  assign end_read   = read && at_q == last_at_q;
  assign leave      = end_read || skip;
  assign give_up    = !ready_next_q && !store_q && !none && expired_q && move;
  assign lost       = (give_up || jump) && !deaf_q;

  always_ff @(posedge clk_i) begin
    if (leave || give_up) next_q <= next_q + 1'b1;
    else if (jump) next_q <= number;
    if (none || ready_next_q) waited_q <= '0;
    else if (waited_q < cfg_patience_i) waited_q <= waited_q + 1'b1;
    // No slot is filled where a jump goes.
    {ready_next_q, first_next_q, last_at_q} <= leave || give_up
        ? {filled_q[slot_after], after_first, after_at}
        : {filled_q[slot_next], block_next.first, block_next.at};
    store_q   <= store;
    expired_q <= !none && !ready_next_q && waited_q >= cfg_patience_i;
    if (read) at_q <= end_read ? '0 : at_q + 1'b1;
    if (give_up || jump) deaf_q <= 1'b1;
    else if (read) deaf_q <= 1'b0;
    for (int i = 0; i < Slots; i++) begin
      if (store && slot == (LogSlots)'(i)) filled_q[i] <= 1'b1;
      if (leave && slot_next == (LogSlots)'(i)) filled_q[i] <= 1'b0;
    end
    if (!rst_ni) begin
      next_q   <= '0;
      waited_q <= '0;
      at_q     <= '0;
      deaf_q   <= 1'b0;
      filled_q <= '0;
      {expired_q, ready_next_q, store_q} <= '0;
    end
  end

  logic v1_q, lost1_q, message1_q;
  logic [8*Bytes-1:0] word_q;
  logic [Log-1:0] size1_q;  // of the beat; 0: whole
  logic [Bytes-1:0] keep1;
  wpr_keep #(.Bytes(Bytes)) keep_of_beat (.size_i(size1_q), .keep_o(keep1));
  assign move = m_axis_tready || !m_axis_tvalid;
  always_ff @(posedge clk_i) begin
    if (move) begin
      v1_q          <= read || lost;
      lost1_q       <= lost;
      message1_q    <= end_read && block_next.last;
      size1_q       <= end_read ? block_next.size : '0;
      m_axis_tvalid <= v1_q;
      m_axis_tdata  <= word_q;
      m_axis_tlast  <= message1_q || lost1_q;
      m_axis_tuser  <= lost1_q;
      m_axis_tkeep  <= lost1_q ? '0 : keep1;
    end
    if (!rst_ni) begin
      v1_q          <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end
  end
  always_ff @(posedge clk_i) if (move) word_q <= words_q[{slot_next, at_q}];

endmodule
