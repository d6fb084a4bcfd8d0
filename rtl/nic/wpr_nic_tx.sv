// SPDX-License-Identifier: Apache-2.0
// From the host to the wire: a UDP datagram for one of cfg_ports_i leaves with a frame
// (spec/nic-wire.md) as its payload. The frame holds the code of the payload; or the payload
// itself, where the code is not smaller, the payload is no whole number of Unit bytes, or the codec
// gave up. All other packets leave as they came, among them datagrams that would become larger than
// cfg_max_i. Order is kept.
//
// Dropped: a packet longer than 16 KiB; and a datagram that would leave as it came but begins with
// the frame header, so that the other side would take it for a frame of ours.
//
// The codec makes one packet of code from each packet of raw bytes, in order. code_bad_i with the
// last beat says that the codec gave up. The codec may hold any number of packets.
module wpr_nic_tx
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,  // bytes of a frame's header, up to 19, but not 14
  parameter int unsigned Unit        = 4,   // bytes of a value: 1, 2, 4
  parameter int unsigned LogRaw      = 9,   // beats of memory for packets
  parameter int unsigned LogCode     = 7,   // beats of memory for codes; a longer code is given up
  // The memory for codes is block RAM with a queue behind it, so it may lie far from the way out:
  // for devices whose block RAM, as wide as a beat, has fewer than 512 beats.
  parameter bit CodeBlockRam         = 1'b0
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic                     cfg_enable_i,
  input  logic [ 3:0][15:0]        cfg_ports_i,        // of destination; 0: none
  input  logic [ 15:0]             cfg_max_i,          // bytes of the largest packet with a frame
  input  logic [8*FrameHeader-1:0] cfg_header_i,       // as the library writes it

  input  logic                     s_valid_i,
  output logic                     s_ready_o,
  input  packet_beat_t             s_beat_i,
  output logic                     m_valid_o,
  input  logic                     m_ready_i,
  output packet_beat_t             m_beat_o,

  output logic                     raw_valid_o,        // to the codec
  input  logic                     raw_ready_i,
  output beat_t                    raw_beat_o,
  input  logic                     code_valid_i,       // from the codec
  output logic                     code_ready_o,
  input  beat_t                    code_beat_i,
  input  logic                     code_bad_i,

  output logic [3:0]               event_o  // a packet: left coded, stored, as it came; was dropped
);

  localparam int unsigned Prefix = FrameHeader + 8;
  localparam int unsigned Header = HeaderBytes + Prefix;

  // ---- in: to memory, and the payload to the codec ---------------------------------------------

  logic a_valid, go_q;
  packet_beat_t a_beat;
  facts_t a_facts;
  wpr_nic_in #(.FrameHeader(FrameHeader), .Unit(Unit)) in (
    .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_header_i, .most_i('0), .s_valid_i,
    .s_ready_o, .s_beat_i, .m_valid_o(a_valid), .m_ready_i(go_q), .m_beat_o(a_beat),
    .m_facts_o(a_facts), .frame_valid_o(), .frame_o()
  );

  // Memory, codec and the queues of facts are far from each other. So beats come only while each of
  // them has room for all beats on their way, and nothing stops these.
  if (1 << LogRaw < MostBeats + 16) begin : g_too_small
    $error("memory for packets has to hold the longest one, and what is on its way");
  end
  logic ample, to_store_q, to_codec_q, b_first_q, b_cut_q, b_ours_q, b_marked_q, b_coded_q;
  packet_beat_t b_q;
  logic [4:0] p_level;
  logic [5:0] d_level;
  always_ff @(posedge clk_i) begin
    go_q       <= rst_ni && ample && p_level < 5'd10 && d_level < 6'd28;
    to_store_q <= rst_ni && a_valid && go_q;
    to_codec_q <= rst_ni && a_valid && go_q && a_facts.ours && a_facts.even;
    b_q        <= a_beat;
    {b_first_q, b_cut_q, b_marked_q} <= {a_facts.first, a_facts.cut, a_facts.marked};
    {b_ours_q, b_coded_q} <= {a_facts.ours, a_facts.ours && a_facts.even};
  end

  // Known at the first beat, but for the header, which the memory has.
  logic d_valid, d_ours, d_coded, d_marked, take_q, coded_q;
  logic [15:0] d_ip, d_udp, d_size, d_src;
  wpr_fifo #(.Width(67), .LogDepth(5)) first_facts (
    .clk_i, .rst_ni,
    .s_valid_i(to_store_q && b_first_q), .s_ready_o(),
    .s_data_i({number_at(b_q.beat.data[335:0], 24), number_at(b_q.beat.data[335:0], 40), b_q.size,
               b_q.src, b_ours_q, b_coded_q, b_marked_q}),
    .m_valid_o(d_valid), .m_ready_i(take_q),
    .m_data_o({d_ip, d_udp, d_size, d_src, d_ours, d_coded, d_marked}), .level_o(d_level)
  );

  logic r_valid, r_ready, rf_valid, rf_cut;
  beat_t r_beat;
  logic [15:0] rf_size, rf_sum;
  wpr_nic_store #(.LogDepth(LogRaw), .Skip(HeaderBytes), .Ample(8)) raw (
    .clk_i, .rst_ni,
    .s_valid_i(to_store_q), .s_ready_o(), .s_ample_o(ample), .s_beat_i(b_q.beat),
    .s_bad_i(b_cut_q), .m_valid_o(r_valid), .m_ready_i(r_ready), .m_beat_o(r_beat),
    .f_valid_o(rf_valid), .f_ready_i(take_q), .f_kept_o(), .f_bad_o(rf_cut), .f_size_o(rf_size),
    .f_sum_o(rf_sum)
  );

  logic p_valid;
  beat_t p_beat;
  wpr_behead #(.Bytes(64), .Header(HeaderBytes)) payload (
    .clk_i, .rst_ni,
    .s_axis_tvalid(to_codec_q), .s_axis_tready(), .s_axis_tdata(b_q.beat.data),
    .s_axis_tkeep(b_q.beat.keep), .s_axis_tlast(b_q.beat.last), .h_data_o(),
    .m_axis_tvalid(p_valid), .m_axis_tready(1'b1), .m_axis_tdata(p_beat.data),
    .m_axis_tkeep(p_beat.keep), .m_axis_tlast(p_beat.last), .runt_o()
  );
  wpr_fifo #(.Width($bits(beat_t)), .LogDepth(4)) to_raw (
    .clk_i, .rst_ni,
    .s_valid_i(p_valid), .s_ready_o(), .s_data_i(p_beat), .m_valid_o(raw_valid_o),
    .m_ready_i(raw_ready_i), .m_data_o(raw_beat_o), .level_o(p_level)
  );

  logic c_valid, c_ready, cf_valid, cf_kept;
  beat_t c_beat;
  logic [15:0] cf_size, cf_sum;
  wpr_nic_store #(
    .LogDepth(LogCode), .RamStyle(CodeBlockRam ? "block" : "distributed"), .Queue(CodeBlockRam)
  ) codes (
    .clk_i, .rst_ni,
    .s_valid_i(code_valid_i), .s_ready_o(code_ready_o), .s_ample_o(), .s_beat_i(code_beat_i),
    .s_bad_i(code_bad_i), .m_valid_o(c_valid), .m_ready_i(c_ready), .m_beat_o(c_beat),
    .f_valid_o(cf_valid), .f_ready_i(take_q && coded_q), .f_kept_o(cf_kept), .f_bad_o(),
    .f_size_o(cf_size), .f_sum_o(cf_sum)
  );

  // ---- how a packet leaves: decided in a pipeline of 10 clocks that never stalls ----------------

  // A packet enters it every other clock at most, which is as fast as packets leave.
  // The first three are sources of wpr_nic_out.
  typedef enum logic [1:0] {Pass, Stored, Coded, Drop} mode_t;
  logic [4:0] level;
  logic kept_q, ours_q, cut_q, marked_q;
  logic [15:0] ip_q, udp_q, promised_q, src_q, size_raw_q, sum_raw_q, size_code_q, sum_code_q;
  always_ff @(posedge clk_i) begin
    take_q <= rst_ni && d_valid && rf_valid && (!d_coded || cf_valid) && level < 5'd8 && !take_q;
    {coded_q, ours_q, marked_q, cut_q, kept_q} <= {d_coded, d_ours, d_marked, rf_cut, cf_kept};
    {ip_q, udp_q, promised_q, src_q} <= {d_ip, d_udp, d_size, d_src};
    {size_raw_q, sum_raw_q, size_code_q, sum_code_q} <= {rf_size, rf_sum, cf_size, cf_sum};
  end

  logic [15:0] header_sum_q;  // of the frame header, which is constant while packets are inside
  logic [20:0] header_all, header_all_q;
  always_comb begin
    header_all = '0;
    for (int i = 0; i < FrameHeader; i++) begin
      header_all += i % 2 == 0 ? 21'({cfg_header_i[8*i+:8], 8'd0}) : 21'(cfg_header_i[8*i+:8]);
    end
  end
  always_ff @(posedge clk_i) begin
    header_all_q <= header_all;
    header_sum_q <= folded(21'(folded(header_all_q)));
  end
  function automatic logic [15:0] folded(input logic [20:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[20:16]);
    return once[15:0] + 16'(once[16]);
  endfunction

  typedef struct packed {
    mode_t mode;
    logic raw;   // the packet's beats are in memory
    logic kept;  // its code is in memory
    logic [15:0] size, n_stored, src;
  } plan_t;

  logic [8:0] valid_q;
  plan_t plan2_q, plan_h;
  plan_t [3:0] late_q;
  logic coded0_q, same0_q, ours0_q, cut0_q, marked0_q;
  logic coded1_q, fits1_q, ours1_q, cut1_q, marked1_q, kept1_q;
  logic [15:0] src0_q, src1_q;
  logic [15:0] ip0_q, udp0_q, size0_q, n_raw0_q, n_code0_q, sum0_q, code_sum0_q, n_raw1_q;
  logic [16:0] with_code0_q, with_raw0_q;  // sizes with a frame
  logic [15:0] ip1_q, ip2_q, ip3_q, ip4_q, udp1_q, udp2_q, udp3_q, udp4_q;
  logic [15:0] size1_q, n_code1_q, sum1_q, sum2_q, sum3_q, sum4_q;
  logic [15:0] code_sum1_q, pay_sum2_q, pay_sum3_q;
  logic [15:0] ip_new, udp_new;
  logic [17:0] tail3_q;
  logic [19:0] new_sum4_q;
  plan_t plan3_q, plan4_q;

  // A word at an odd place of the packet has its bytes swapped in the sum.
  function automatic logic [15:0] placed(input logic [15:0] sum);
    return FrameHeader % 2 == 1 ? swapped(sum) : sum;
  endfunction

  always_ff @(posedge clk_i) begin
    // 0: sizes
    coded0_q     <= coded_q && kept_q;
    same0_q      <= size_raw_q == promised_q;
    n_raw0_q     <= size_raw_q - 16'(HeaderBytes);
    with_code0_q <= 17'(size_code_q) + 17'(Header);
    with_raw0_q  <= 17'(size_raw_q) + 17'(Prefix);
    {size0_q, sum0_q, n_code0_q, code_sum0_q} <= {size_raw_q, sum_raw_q, size_code_q, sum_code_q};
    {ip0_q, udp0_q, ours0_q, cut0_q, marked0_q} <= {ip_q, udp_q, ours_q, cut_q, marked_q};
    // 1: comparisons
    coded1_q <= coded0_q && n_code0_q < n_raw0_q && with_code0_q <= 17'(cfg_max_i);
    fits1_q  <= with_raw0_q <= 17'(cfg_max_i);
    ours1_q  <= ours0_q && same0_q;
    kept1_q  <= coded0_q;
    n_raw1_q <= n_raw0_q;
    {size1_q, sum1_q, n_code1_q, code_sum1_q} <= {size0_q, sum0_q, n_code0_q, code_sum0_q};
    {ip1_q, udp1_q, cut1_q, marked1_q} <= {ip0_q, udp0_q, cut0_q, marked0_q};
    // 2: the mode
    plan2_q.mode     <= cut1_q ? Drop : !ours1_q ? Pass : coded1_q ? Coded : fits1_q ? Stored
                      : marked1_q ? Drop : Pass;
    plan2_q.raw      <= !cut1_q;
    plan2_q.kept     <= kept1_q;
    {plan2_q.src, src1_q, src0_q} <= {src1_q, src0_q, src_q};
    plan2_q.size     <= size1_q;
    plan2_q.n_stored <= coded1_q ? n_code1_q : n_raw1_q;
    pay_sum2_q       <= coded1_q ? code_sum1_q : sum1_q;
    sum2_q           <= sum1_q;
    {ip2_q, udp2_q}  <= {ip1_q, udp1_q};
    // 3: the sum of block word and raw size, which are little endian
    tail3_q    <= 18'(placed(swapped(plan2_q.n_stored))) +
                  18'(placed(plan2_q.mode == Coded ? 16'h0040 : 16'h00C0)) +
                  18'(placed(swapped(plan2_q.size - 16'(HeaderBytes))));
    plan3_q    <= plan2_q;
    pay_sum3_q <= pay_sum2_q;
    sum3_q     <= sum2_q;
    {ip3_q, udp3_q} <= {ip2_q, udp2_q};
    // 4: the sum of the whole new payload
    new_sum4_q <= 20'(header_sum_q) + 20'(tail3_q) + 20'(placed(pay_sum3_q));
    plan4_q    <= plan3_q;
    sum4_q     <= sum3_q;
    {ip4_q, udp4_q} <= {ip3_q, udp3_q};
    late_q     <= {late_q[2:0], plan4_q};
    valid_q    <= {valid_q[7:0], take_q};
    if (!rst_ni) valid_q <= '0;
  end
  wpr_nic_rewrite rewrite (
    .clk_i, .ip_i(ip4_q), .udp_i(udp4_q), .size_i(plan4_q.size),
    .new_size_i(plan4_q.n_stored + 16'(Header)), .sum_i(sum4_q), .new_sum_i(new_sum4_q),
    .ip_o(ip_new), .udp_o(udp_new)
  );

  logic h_valid, load;
  logic [15:0] h_ip, h_udp;
  wpr_fifo #(.Width($bits(plan_t) + 32), .LogDepth(4)) plans (
    .clk_i, .rst_ni,
    .s_valid_i(valid_q[8]), .s_ready_o(), .s_data_i({late_q[3], ip_new, udp_new}),
    .m_valid_o(h_valid), .m_ready_i(load), .m_data_o({plan_h, h_ip, h_udp}), .level_o(level)
  );

  // ---- out: one packet's plan in registers, and a clock between packets -------------------------

  logic busy_q, done, r_open_q, o_open_q, skip_r_q, out_done;
  logic c_feed_q, c_skip_q;  // the code's beats leave; they are thrown away
  logic s_ready, f_ready;
  logic [15:0] n_new, size_q, out_src_q;
  header_t header;
  mode_t mode_q;
  logic [8*Header-1:0] header_q;
  assign n_new   = plan_h.n_stored + 16'(Header);
  assign done    = busy_q && !r_open_q && !c_feed_q && !c_skip_q && !o_open_q;
  assign load    = h_valid && (r_valid || !plan_h.raw) && (!busy_q || done);
  assign r_ready = r_open_q && (skip_r_q || s_ready);
  assign c_ready = c_skip_q || (c_feed_q && f_ready);
  always_comb begin
    header           = r_beat.data[8*HeaderBytes-1:0];
    header[8*16+:16] = swapped(plan_h.n_stored + 16'(Header - 14));
    header[8*24+:16] = swapped(h_ip);
    header[8*38+:16] = swapped(plan_h.n_stored + 16'(Header - 34));
    header[8*40+:16] = swapped(h_udp);
  end
  always_ff @(posedge clk_i) begin
    if (load) begin
      mode_q   <= plan_h.mode;
      out_src_q <= plan_h.src;
      size_q   <= plan_h.mode == Pass ? plan_h.size : n_new;
      header_q <= {16'd0, plan_h.size - 16'(HeaderBytes), plan_h.mode == Stored, 15'h4000,
                   plan_h.n_stored, cfg_header_i, header};
      r_open_q <= plan_h.raw;
      c_feed_q <= plan_h.mode == Coded;
      c_skip_q <= plan_h.mode != Coded && plan_h.kept;
      o_open_q <= plan_h.mode != Drop;
      skip_r_q <= plan_h.mode == Coded || plan_h.mode == Drop;
    end else begin
      if (r_valid && r_ready && r_beat.last) r_open_q <= 1'b0;
      if (c_valid && c_ready && c_beat.last) {c_feed_q, c_skip_q} <= '0;
      if (out_done) o_open_q <= 1'b0;
    end
    busy_q <= load || (busy_q && !done);
    if (!rst_ni) {busy_q, r_open_q, c_feed_q, c_skip_q, o_open_q} <= '0;
  end
  wpr_nic_out #(.Header(Header), .Insert(Prefix)) out (
    .clk_i, .rst_ni,
    .h_load_i(load), .h_next_i(plan_h.mode), .h_valid_i(o_open_q), .h_done_o(out_done),
    .h_from_i(mode_q), .h_data_i(header_q),
    .h_size_i(size_q), .h_src_i(out_src_q),
    .s_valid_i(r_valid), .s_ready_o(s_ready), .s_beat_i(r_beat),
    .b_valid_i(c_valid), .b_ready_o(f_ready), .b_beat_i(c_beat),
    .m_valid_o, .m_ready_i, .m_beat_o
  );

  always_comb for (int i = 0; i < 4; i++) event_o[i] = done && mode_q ==
      mode_t'(i == 0 ? Coded : i == 1 ? Stored : i == 2 ? Pass : Drop);

endmodule
