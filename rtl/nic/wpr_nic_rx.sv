// SPDX-License-Identifier: Apache-2.0
// From the wire to the host, the inverse of wpr_nic_tx: a UDP datagram for one of cfg_ports_i whose
// payload is a frame of the form that wpr_nic_tx makes (cfg_header_i in front, one block) leaves
// with the frame's content as its payload. All other packets leave as they came, among them frames
// of other forms, which the library on the host reads. Order is kept.
//
// Dropped: a packet longer than 16 KiB; a frame whose code is not valid or holds another number of
// bytes than the frame says; a frame that was cut short on its way. UDP checksums are not checked:
// one that was wrong stays wrong by as much, and the host finds it.
//
// code_size_o beside each beat tells the codec the raw size. The codec makes one packet of raw
// bytes from each packet of code, in order. raw_bad_i with the last beat says that the code is not
// valid.
module wpr_nic_rx
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,  // bytes of a frame's header, up to 19, but not 14
  parameter int unsigned Unit        = 4,   // bytes of a value: 1, 2, 4
  parameter int unsigned LeastBlock  = 1,   // of wpr_nic_in
  parameter logic [31:0] Foreign     = '0,
  parameter int unsigned LogRaw      = 9    // beats of memory for packets
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic                     cfg_enable_i,
  input  logic [ 3:0][15:0]        cfg_ports_i,        // of destination; 0: none
  input  logic [ 15:0]             cfg_max_i,          // bytes of the largest packet that may leave
  input  logic [8*FrameHeader-1:0] cfg_header_i,

  input  logic                     s_valid_i,
  output logic                     s_ready_o,
  input  packet_beat_t             s_beat_i,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output packet_beat_t             m_beat_o,

  output logic                     code_valid_o,       // to the codec
  input  logic                     code_ready_i,
  output beat_t                    code_beat_o,
  output logic [ 15:0]             code_size_o,        // raw bytes of the packet
  input  logic                     raw_valid_i,        // from the codec
  output logic                     raw_ready_o,
  input  beat_t                    raw_beat_i,
  input  logic                     raw_bad_i,

  output logic [2:0]               event_o  // a packet: left expanded, as it came; was dropped
);

  localparam int unsigned Header = HeaderBytes + FrameHeader + 8;
  localparam int unsigned Whole = Header / 64;
  localparam int unsigned Rest = Header % 64;

  // ---- in: what a packet is, decided in a clock of its own --------------------------------------

  logic a_valid, a_ready, frame_valid;
  packet_beat_t a_beat;
  facts_t a_facts;
  frame_t frame;
  logic [15:0] most_q;  // bytes that a packet may hold
  always_ff @(posedge clk_i) begin
    most_q <= cfg_max_i < 16'(HeaderBytes) ? '0 : cfg_max_i - 16'(HeaderBytes);
  end
  wpr_nic_in #(
    .FrameHeader(FrameHeader), .Unit(Unit), .LeastBlock(LeastBlock), .Foreign(Foreign)
  ) in (
    .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_header_i, .most_i(most_q), .s_valid_i,
    .s_ready_o, .s_beat_i, .m_valid_o(a_valid), .m_ready_i(a_ready), .m_beat_o(a_beat),
    .m_facts_o(a_facts), .frame_valid_o(frame_valid), .frame_o(frame)
  );

  logic known_q, framed, framed_q, coded_q;  // coded_q: framed_q, too
  logic [15:0] raw_size_q;
  assign framed = a_facts.ours && a_facts.marked && frame.agree;
  always_ff @(posedge clk_i) begin
    if (!known_q) begin
      known_q    <= a_valid && a_facts.first && frame_valid;
      raw_size_q <= frame.raw;
      framed_q   <= framed;
      coded_q    <= framed && !frame.stored;
    end else if (a_valid && a_ready && a_beat.beat.last) begin
      known_q <= 1'b0;
    end
    if (!rst_ni) known_q <= 1'b0;
  end

  // Beats come only while each queue has room for all beats on their way, and nothing stops these.
  // Of the queues of facts, that one fills first which is read last.
  logic go_q, b_valid_q, b_first_q, b_cut_q, b_coded_q, b_framed_q, b_skip_q;
  packet_beat_t b_q;
  logic [15:0] b_raw_size_q;
  logic [4:0] p_level, y_level;
  logic [5:0] e_level;
  assign a_ready = known_q && go_q;
  always_ff @(posedge clk_i) begin
    go_q         <= rst_ni && p_level < 5'd10 && y_level < 5'd10 && e_level < 6'd28;
    b_valid_q    <= rst_ni && a_valid && a_ready;
    b_q          <= a_beat;
    {b_first_q, b_cut_q} <= {a_facts.first, a_facts.cut};
    b_raw_size_q <= raw_size_q;
    {b_coded_q, b_framed_q} <= {coded_q, framed_q};
    b_skip_q     <= framed_q && Whole == 1 && a_facts.first;
  end

  // ---- to the codec, or past it -----------------------------------------------------------------

  logic to_code_now, past_now, p_valid, y_ready;
  beat_t p_beat;
  logic [15:0] p_size_q;
  assign to_code_now = b_valid_q && b_coded_q && !b_skip_q;
  assign past_now    = b_valid_q && !b_coded_q && !b_skip_q;
  wpr_behead #(.Bytes(64), .Header(Rest)) code (
    .clk_i, .rst_ni,
    .s_axis_tvalid(to_code_now), .s_axis_tready(), .s_axis_tdata(b_q.beat.data),
    .s_axis_tkeep(b_q.beat.keep), .s_axis_tlast(b_q.beat.last), .h_data_o(),
    .m_axis_tvalid(p_valid), .m_axis_tready(1'b1), .m_axis_tdata(p_beat.data),
    .m_axis_tkeep(p_beat.keep), .m_axis_tlast(p_beat.last), .runt_o()
  );
  logic p_begins_q;  // the next beat to the codec is a packet's first
  always_ff @(posedge clk_i) begin
    if (to_code_now) begin
      p_begins_q <= b_q.beat.last;
      if (p_begins_q) p_size_q <= b_raw_size_q;
    end
    if (!rst_ni) p_begins_q <= 1'b1;
  end
  wpr_fifo #(.Width($bits(beat_t) + 16), .LogDepth(4)) to_code (
    .clk_i, .rst_ni,
    .s_valid_i(p_valid), .s_ready_o(), .s_data_i({p_beat, p_size_q}), .m_valid_o(code_valid_o),
    .m_ready_i(code_ready_i), .m_data_o({code_beat_o, code_size_o}), .level_o(p_level)
  );
  logic y_valid;
  beat_t y_beat;
  wpr_fifo #(.Width($bits(beat_t)), .LogDepth(4)) past (
    .clk_i, .rst_ni,
    .s_valid_i(past_now), .s_ready_o(), .s_data_i(b_q.beat), .m_valid_o(y_valid),
    .m_ready_i(y_ready), .m_data_o(y_beat), .level_o(y_level)
  );

  // Known at the first beat; known at the last.
  logic d_valid, d_framed, take_q, load;
  logic [15:0] d_ip, d_udp, d_size, d_raw, e_src;
  header_t e_header;
  wpr_fifo #(.Width(65), .LogDepth(5)) first_facts (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(),
    .s_data_i({number_at(b_q.beat.data[335:0], 24), number_at(b_q.beat.data[335:0], 40), b_q.size,
               b_raw_size_q, b_framed_q}),
    .m_valid_o(d_valid), .m_ready_i(take_q), .m_data_o({d_ip, d_udp, d_size, d_raw, d_framed}),
    .level_o()
  );
  wpr_fifo #(.Width(8 * HeaderBytes + 16), .LogDepth(5)) headers (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(), .s_data_i({b_q.beat.data[335:0], b_q.src}),
    .m_valid_o(), .m_ready_i(load), .m_data_o({e_header, e_src}), .level_o(e_level)
  );
  logic i_known, i_cut, if_valid, if_cut;
  logic [15:0] i_sum, i_size, if_sum, if_size;
  logic [8:0] beat_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (b_valid_q) beat_q <= b_q.beat.last ? '0 : beat_q + 1'b1;
  end
  wpr_sum16 #(.Skip(HeaderBytes), .Tag(17)) adder (
    .clk_i, .rst_ni, .valid_i(b_valid_q), .last_i(b_q.beat.last), .data_i(b_q.beat.data),
    .tag_i({b_cut_q, 16'({beat_q, 6'b0}) + 16'(size_of(b_q.beat.keep))}),
    .valid_o(i_known), .sum_o(i_sum), .tag_o({i_cut, i_size})
  );
  wpr_fifo #(.Width(33), .LogDepth(6)) in_facts (
    .clk_i, .rst_ni,
    .s_valid_i(i_known), .s_ready_o(), .s_data_i({i_cut, i_size, i_sum}),
    .m_valid_o(if_valid), .m_ready_i(take_q), .m_data_o({if_cut, if_size, if_sum}), .level_o()
  );

  // ---- both ways join, in the packets' order ----------------------------------------------------

  logic n_valid, n_coded, n_framed, o_valid, o_coded, o_framed, next;  // n_: behind o_
  logic j_valid, j_ready, j_bad, q_valid, q_ready;
  beat_t j_beat, q_beat;
  wpr_fifo #(.Width(2), .LogDepth(5)) order (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(), .s_data_i({b_framed_q, b_coded_q}),
    .m_valid_o(n_valid), .m_ready_i(next), .m_data_o({n_framed, n_coded}), .level_o()
  );
  assign next = !o_valid || (j_valid && j_ready && j_beat.last);
  always_ff @(posedge clk_i) begin
    if (next) {o_valid, o_framed, o_coded} <= {n_valid, n_framed, n_coded};
    if (!rst_ni) o_valid <= 1'b0;
  end
  // Without overlap, since the packet behind may have another way.
  wpr_behead #(.Bytes(64), .Header(Rest), .Overlap(0)) stored (
    .clk_i, .rst_ni,
    .s_axis_tvalid(y_valid && o_valid && o_framed && !o_coded), .s_axis_tready(q_ready),
    .s_axis_tdata(y_beat.data), .s_axis_tkeep(y_beat.keep), .s_axis_tlast(y_beat.last), .h_data_o(),
    .m_axis_tvalid(q_valid), .m_axis_tready(j_ready),
    .m_axis_tdata(q_beat.data), .m_axis_tkeep(q_beat.keep), .m_axis_tlast(q_beat.last), .runt_o()
  );
  assign j_valid    = o_valid && (o_coded ? raw_valid_i : o_framed ? q_valid : y_valid);
  assign raw_ready_o = o_valid && o_coded && j_ready;
  assign y_ready    = o_valid && !o_coded && q_ready;
  assign j_bad      = o_coded && raw_bad_i;
  assign j_beat     = o_coded ? raw_beat_i : o_framed ? q_beat : y_beat;

  logic r_valid, r_ready, rf_valid, rf_kept;
  beat_t r_beat;
  logic [15:0] rf_size, rf_sum;
  wpr_nic_store #(.LogDepth(LogRaw)) store (
    .clk_i, .rst_ni,
    .s_valid_i(j_valid), .s_ready_o(j_ready), .s_ample_o(), .s_beat_i(j_beat), .s_bad_i(j_bad),
    .m_valid_o(r_valid), .m_ready_i(r_ready), .m_beat_o(r_beat),
    .f_valid_o(rf_valid), .f_ready_i(take_q), .f_kept_o(rf_kept), .f_bad_o(),
    .f_size_o(rf_size), .f_sum_o(rf_sum)
  );

  // ---- how a packet leaves: decided in a pipeline of 7 clocks that never stalls -----------------

  // A packet enters it every other clock at most, which is as fast as packets leave.
  typedef enum logic [1:0] {Pass, Expanded, Drop} mode_t;
  typedef struct packed {
    mode_t mode;
    logic raw;  // the packet's beats are in memory
    logic [15:0] size;
  } plan_t;

  logic [4:0] level;
  logic [5:0] valid_q;
  plan_t plan2_q, plan_h;
  plan_t [3:0] late_q;
  logic fact_framed_q, kept_q, cut_q, framed1_q, kept1_q, cut1_q, whole1_q;
  logic [15:0] ip_q, udp_q, old_q, promised_q, size_in_q, in_sum_q, size_raw_q, sum_q;
  logic [15:0] ip1_q, ip2_q, udp1_q, udp2_q, old1_q, old2_q, size1_q, sum1_q, sum2_q;
  logic [15:0] in_sum1_q, in_sum2_q, ip_new, udp_new;
  always_ff @(posedge clk_i) begin
    take_q <= rst_ni && d_valid && if_valid && rf_valid && level < 5'd8 && !take_q;
    {fact_framed_q, ip_q, udp_q, old_q, promised_q} <= {d_framed, d_ip, d_udp, d_size, d_raw};
    {cut_q, size_in_q, in_sum_q}  <= {if_cut, if_size, if_sum};
    {kept_q, size_raw_q, sum_q}   <= {rf_kept, rf_size, rf_sum};
    framed1_q <= fact_framed_q;
    kept1_q   <= kept_q;
    cut1_q    <= cut_q;
    whole1_q  <= size_in_q == old_q && size_raw_q == promised_q;
    size1_q   <= size_raw_q;
    old1_q    <= old_q;
    sum1_q    <= sum_q;
    in_sum1_q <= in_sum_q;
    {ip1_q, udp1_q} <= {ip_q, udp_q};
    plan2_q.mode <= cut1_q || !kept1_q || (framed1_q && !whole1_q) ? Drop
                  : framed1_q ? Expanded : Pass;
    plan2_q.raw  <= kept1_q;
    plan2_q.size <= size1_q;
    old2_q    <= old1_q;
    sum2_q    <= sum1_q;
    in_sum2_q <= in_sum1_q;
    {ip2_q, udp2_q} <= {ip1_q, udp1_q};
    late_q    <= {late_q[2:0], plan2_q};
    valid_q   <= {valid_q[4:0], take_q};
    if (!rst_ni) valid_q <= '0;
  end
  wpr_nic_rewrite rewrite (
    .clk_i, .ip_i(ip2_q), .udp_i(udp2_q), .size_i(old2_q),
    .new_size_i(plan2_q.size + 16'(HeaderBytes)), .sum_i(in_sum2_q), .new_sum_i(20'(sum2_q)),
    .ip_o(ip_new), .udp_o(udp_new)
  );
  logic h_valid;
  logic [15:0] h_ip, h_udp;
  wpr_fifo #(.Width($bits(plan_t) + 32), .LogDepth(4)) plans (
    .clk_i, .rst_ni,
    .s_valid_i(valid_q[5]), .s_ready_o(), .s_data_i({late_q[3], ip_new, udp_new}),
    .m_valid_o(h_valid), .m_ready_i(load), .m_data_o({plan_h, h_ip, h_udp}), .level_o(level)
  );

  // ---- out: one packet's plan in registers, and a clock between packets -------------------------

  logic busy_q, done, r_open_q, o_open_q, drop_q, out_done, s_ready, f_ready;
  logic [15:0] n_new, size_q, src_q;
  header_t header, header_q;
  mode_t mode_q;
  assign n_new   = plan_h.size + 16'(HeaderBytes);
  assign done    = busy_q && !r_open_q && !o_open_q;
  assign load    = h_valid && (!busy_q || done);
  assign r_ready = r_open_q && (drop_q || s_ready || f_ready);
  always_comb begin
    header           = e_header;
    header[8*16+:16] = swapped(plan_h.size + 16'(HeaderBytes - 14));
    header[8*24+:16] = swapped(h_ip);
    header[8*38+:16] = swapped(plan_h.size + 16'(HeaderBytes - 34));
    header[8*40+:16] = swapped(h_udp);
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      mode_q   <= plan_h.mode;
      src_q    <= e_src;
      size_q   <= plan_h.mode == Pass ? plan_h.size : n_new;
      header_q <= header;
      r_open_q <= plan_h.raw;
      o_open_q <= plan_h.mode != Drop;
      drop_q   <= plan_h.mode == Drop;
    end else begin
      if (r_valid && r_ready && r_beat.last) r_open_q <= 1'b0;
      if (out_done) o_open_q <= 1'b0;
    end
    busy_q <= load || (busy_q && !done);
    if (!rst_ni) {busy_q, r_open_q, o_open_q} <= '0;
  end
  wpr_nic_out #(.Header(HeaderBytes), .Insert(HeaderBytes)) out (
    .clk_i, .rst_ni,
    .h_load_i(load), .h_next_i({plan_h.mode == Expanded, 1'b0}),
    .h_valid_i(o_open_q), .h_done_o(out_done), .h_from_i({mode_q == Expanded, 1'b0}),
    .h_data_i(header_q), .h_size_i(size_q), .h_src_i(src_q),
    .s_valid_i(r_valid), .s_ready_o(s_ready), .s_beat_i(r_beat),
    .b_valid_i(r_valid), .b_ready_o(f_ready), .b_beat_i(r_beat),
    .m_valid_o, .m_ready_i, .m_beat_o
  );

  assign event_o = {3{done}} & {mode_q == Drop, mode_q == Pass, mode_q == Expanded};

endmodule
