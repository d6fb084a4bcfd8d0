// SPDX-License-Identifier: Apache-2.0
// From the wire to the host, the inverse of wpr_nic_tx: a UDP datagram for one of cfg_ports_i whose
// payload is a frame of the form that wpr_nic_tx makes (cfg_header_i in front, one block) leaves with
// what it holds for payload. All others leave as they came, among them frames of other forms, which
// the library on the host reads. Order is kept.
//
// Dropped: what is longer than 16 KiB, a frame whose code is not valid or holds another number of
// bytes than it says, and one cut short on its way. A wrong UDP checksum is not looked at: it is as wrong
// behind as before, and the host's.
//
// The codec is told the raw size by code_tuser, beside every beat, and makes one packet of raw
// bytes of each packet of code, in order; raw_tuser with tlast: the code is not valid.
module wpr_nic_rx
  import wpr_nic_pkg::*;
#(
  parameter int unsigned FrameHeader = 16,  // bytes of a frame's header: 14 is none that it can be
  parameter int unsigned Unit        = 4,   // bytes of a value: 1, 2, 4
  parameter int unsigned LogRaw      = 9    // beats of memory for packets
) (
  input  logic                     clk_i,
  input  logic                     rst_ni,             // synchronous
  input  logic                     cfg_enable_i,
  input  logic [ 3:0][15:0]        cfg_ports_i,        // of destination; 0: none
  input  logic [ 15:0]             cfg_max_i,          // the largest packet that may leave
  input  logic [8*FrameHeader-1:0] cfg_header_i,

  input  logic                     s_axis_tvalid,
  output logic                     s_axis_tready,
  input  logic [511:0]             s_axis_tdata,
  input  logic [ 63:0]             s_axis_tkeep,
  input  logic                     s_axis_tlast,
  input  logic [ 15:0]             s_axis_tuser_size,
  input  logic [ 15:0]             s_axis_tuser_src,

  output logic                     m_axis_tvalid,
  input  logic                     m_axis_tready,
  output logic [511:0]             m_axis_tdata,
  output logic [ 63:0]             m_axis_tkeep,
  output logic                     m_axis_tlast,
  output logic [ 15:0]             m_axis_tuser_size,
  output logic [ 15:0]             m_axis_tuser_src,

  output logic                     code_tvalid,        // to the codec
  input  logic                     code_tready,
  output logic [511:0]             code_tdata,
  output logic [ 63:0]             code_tkeep,
  output logic                     code_tlast,
  output logic [ 15:0]             code_tuser,         // bytes that it holds

  input  logic                     raw_tvalid,         // from the codec
  output logic                     raw_tready,
  input  logic [511:0]             raw_tdata,
  input  logic [ 63:0]             raw_tkeep,
  input  logic                     raw_tlast,
  input  logic                     raw_tuser,

  output logic [2:0]               event_o  // a packet left expanded, as it came; was dropped
);

  localparam int unsigned Header = HeaderBytes + FrameHeader + 8;
  localparam int unsigned Whole = Header / 64;
  localparam int unsigned Rest = Header % 64;

  // ---- in: what it is, in a clock of its own -----------------------------------------------------

  logic a_valid, a_ready, a_first, a_last, a_cut, a_ours, a_marked, a_agree, next_valid;
  logic [511:0] a_data;
  logic [63:0] a_keep;
  logic [15:0] a_size, a_src;
  logic [31:0] next_data;
  logic [3:0] next_keep;
  logic [15:0] most_q;  // bytes that a packet may hold
  always_ff @(posedge clk_i) begin
    most_q <= cfg_max_i < 16'(HeaderBytes) ? '0 : cfg_max_i - 16'(HeaderBytes);
  end
  wpr_nic_in #(.FrameHeader(FrameHeader), .Unit(Unit)) in (
    .clk_i, .rst_ni, .cfg_enable_i, .cfg_ports_i, .cfg_header_i, .most_i(most_q),
    .s_axis_tvalid, .s_axis_tready, .s_axis_tdata, .s_axis_tkeep, .s_axis_tlast,
    .s_axis_tuser_size, .s_axis_tuser_src,
    .m_valid_o(a_valid), .m_ready_i(a_ready), .m_data_o(a_data), .m_keep_o(a_keep),
    .m_first_o(a_first), .m_last_o(a_last), .m_cut_o(a_cut), .m_size_o(a_size), .m_src_o(a_src),
    .m_ours_o(a_ours), .m_coded_o(), .m_marked_o(a_marked), .m_agree_o(a_agree),
    .next_valid_o(next_valid), .next_data_o(next_data), .next_keep_o(next_keep)
  );

  logic [31:0] raw_size;
  logic known_q, framed, framed_q, coded_q, is_raw, body_begins;  // coded_q: framed_q, too
  logic [15:0] raw_size_q;
  assign {raw_size, is_raw} = 33'({next_data, a_data[511:8*(HeaderBytes+FrameHeader)+31]});
  assign body_begins = Whole == 1 ? !a_last && next_keep[Rest%4] : a_keep[Rest];
  assign framed = a_ours && a_marked && a_agree && body_begins && a_size > 16'(Header) &&
                  raw_size[31:16] == '0;
  always_ff @(posedge clk_i) begin
    if (!known_q) begin
      known_q    <= a_valid && a_first && (a_last || next_valid);
      raw_size_q <= raw_size[15:0];
      framed_q   <= framed;
      coded_q    <= framed && !is_raw;
    end else if (a_valid && a_ready && a_last) begin
      known_q <= 1'b0;
    end
    if (!rst_ni) known_q <= 1'b0;
  end

  // Beats come while there is room in all queues for those that are on their way, and nothing stops these.
  // Of the queues of facts, that which is asked for them last is the first to be full.
  logic go_q, b_valid_q, b_first_q, b_last_q, b_cut_q, b_coded_q, b_framed_q, b_skip_q;
  logic [511:0] b_data_q;
  logic [63:0] b_keep_q;
  logic [15:0] b_size_q, b_src_q, b_raw_size_q;
  logic [4:0] p_level, y_level;
  logic [5:0] e_level;
  assign a_ready = known_q && go_q;
  always_ff @(posedge clk_i) begin
    go_q      <= rst_ni && p_level < 5'd10 && y_level < 5'd10 && e_level < 6'd28;
    b_valid_q <= rst_ni && a_valid && a_ready;
    {b_data_q, b_keep_q, b_first_q, b_last_q, b_cut_q} <= {a_data, a_keep, a_first, a_last, a_cut};
    {b_size_q, b_src_q, b_raw_size_q}  <= {a_size, a_src, raw_size_q};
    {b_coded_q, b_framed_q, b_skip_q} <= {coded_q, framed_q, framed_q && Whole == 1 && a_first};
  end

  // ---- to the codec, or past it ------------------------------------------------------------------

  logic to_code_now, past_now, p_valid, p_last, y_ready;
  logic [511:0] p_data;
  logic [63:0] p_keep;
  logic [15:0] p_size_q;
  assign to_code_now = b_valid_q && b_coded_q && !b_skip_q;
  assign past_now    = b_valid_q && !b_coded_q && !b_skip_q;
  wpr_behead #(.Bytes(64), .Header(Rest)) code (
    .clk_i, .rst_ni,
    .s_axis_tvalid(to_code_now), .s_axis_tready(),
    .s_axis_tdata(b_data_q), .s_axis_tkeep(b_keep_q), .s_axis_tlast(b_last_q), .h_data_o(),
    .m_axis_tvalid(p_valid), .m_axis_tready(1'b1), .m_axis_tdata(p_data),
    .m_axis_tkeep(p_keep), .m_axis_tlast(p_last), .runt_o()
  );
  logic p_begins_q;  // the next beat is the first of a packet that goes there
  always_ff @(posedge clk_i) begin
    if (to_code_now) begin
      p_begins_q <= b_last_q;
      if (p_begins_q) p_size_q <= b_raw_size_q;
    end
    if (!rst_ni) p_begins_q <= 1'b1;
  end
  wpr_fifo #(.Width(593), .LogDepth(4)) to_code (
    .clk_i, .rst_ni,
    .s_valid_i(p_valid), .s_ready_o(), .s_data_i({p_data, p_keep, p_last, p_size_q}),
    .m_valid_o(code_tvalid), .m_ready_i(code_tready),
    .m_data_o({code_tdata, code_tkeep, code_tlast, code_tuser}), .level_o(p_level)
  );
  logic y_valid, y_last;
  logic [511:0] y_data;
  logic [63:0] y_keep;
  wpr_fifo #(.Width(577), .LogDepth(4)) past (
    .clk_i, .rst_ni,
    .s_valid_i(past_now), .s_ready_o(), .s_data_i({b_data_q, b_keep_q, b_last_q}),
    .m_valid_o(y_valid), .m_ready_i(y_ready), .m_data_o({y_data, y_keep, y_last}),
    .level_o(y_level)
  );

  // What is known at the first beat, and at the last.
  logic d_valid, d_framed, take_q, load;
  logic [15:0] d_ip, d_udp, d_size, d_raw, e_src;
  header_t e_header;
  wpr_fifo #(.Width(65), .LogDepth(5)) first_facts (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(),
    .s_data_i({number_at(b_data_q[335:0], 24), number_at(b_data_q[335:0], 40), b_size_q,
               b_raw_size_q, b_framed_q}),
    .m_valid_o(d_valid), .m_ready_i(take_q), .m_data_o({d_ip, d_udp, d_size, d_raw, d_framed}),
    .level_o()
  );
  wpr_fifo #(.Width(8 * HeaderBytes + 16), .LogDepth(5)) headers (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(), .s_data_i({b_data_q[335:0], b_src_q}),
    .m_valid_o(), .m_ready_i(load), .m_data_o({e_header, e_src}), .level_o(e_level)
  );
  logic i_known, i_cut, if_valid, if_cut;
  logic [15:0] i_sum, i_size, if_sum, if_size;
  logic [8:0] beat_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) beat_q <= '0;
    else if (b_valid_q) beat_q <= b_last_q ? '0 : beat_q + 1'b1;
  end
  wpr_sum16 #(.Skip(HeaderBytes), .Tag(17)) adder (
    .clk_i, .rst_ni, .valid_i(b_valid_q), .last_i(b_last_q), .data_i(b_data_q),
    .tag_i({b_cut_q, 16'({beat_q, 6'b0}) + 16'(size_of(b_keep_q))}),
    .valid_o(i_known), .sum_o(i_sum), .tag_o({i_cut, i_size})
  );
  wpr_fifo #(.Width(33), .LogDepth(6)) in_facts (
    .clk_i, .rst_ni,
    .s_valid_i(i_known), .s_ready_o(), .s_data_i({i_cut, i_size, i_sum}),
    .m_valid_o(if_valid), .m_ready_i(take_q), .m_data_o({if_cut, if_size, if_sum}), .level_o()
  );

  // ---- one behind the other again ----------------------------------------------------------------

  logic n_valid, n_coded, n_framed, o_valid, o_coded, o_framed, next;  // n_: behind o_
  logic j_valid, j_ready, j_last, j_bad, q_valid, q_last;
  logic [511:0] j_data, q_data;
  logic [63:0] j_keep, q_keep;
  wpr_fifo #(.Width(2), .LogDepth(5)) order (
    .clk_i, .rst_ni,
    .s_valid_i(b_valid_q && b_first_q), .s_ready_o(), .s_data_i({b_framed_q, b_coded_q}),
    .m_valid_o(n_valid), .m_ready_i(next), .m_data_o({n_framed, n_coded}), .level_o()
  );
  assign next = !o_valid || (j_valid && j_ready && j_last);
  logic y_over_q;  // all of it has been read, and its last bytes leave
  always_ff @(posedge clk_i) begin
    if (next) {o_valid, o_framed, o_coded} <= {n_valid, n_framed, n_coded};
    y_over_q <= !next && (y_over_q || (y_valid && y_ready && y_last));
    if (!rst_ni) {o_valid, y_over_q} <= '0;
  end
  wpr_behead #(.Bytes(64), .Header(Rest)) stored (
    .clk_i, .rst_ni,
    .s_axis_tvalid(y_valid && o_valid && o_framed && !o_coded && !y_over_q), .s_axis_tready(),
    .s_axis_tdata(y_data), .s_axis_tkeep(y_keep), .s_axis_tlast(y_last), .h_data_o(),
    .m_axis_tvalid(q_valid), .m_axis_tready(j_ready),
    .m_axis_tdata(q_data), .m_axis_tkeep(q_keep), .m_axis_tlast(q_last), .runt_o()
  );
  assign j_valid    = o_valid && (o_coded ? raw_tvalid : o_framed ? q_valid : y_valid);
  assign raw_tready = o_valid && o_coded && j_ready;
  assign y_ready    = o_valid && !o_coded && !y_over_q && j_ready;
  assign j_bad      = o_coded && raw_tuser;
  assign {j_data, j_keep, j_last} = o_coded ? {raw_tdata, raw_tkeep, raw_tlast}
                                  : o_framed ? {q_data, q_keep, q_last}
                                             : {y_data, y_keep, y_last};

  logic r_valid, r_ready, r_last, rf_valid, rf_kept;
  logic [511:0] r_data;
  logic [63:0] r_keep;
  logic [15:0] rf_size, rf_sum;
  wpr_nic_store #(.LogDepth(LogRaw)) store (
    .clk_i, .rst_ni,
    .s_valid_i(j_valid), .s_ready_o(j_ready), .s_ample_o(), .s_data_i(j_data), .s_keep_i(j_keep),
    .s_last_i(j_last), .s_bad_i(j_bad),
    .m_valid_o(r_valid), .m_ready_i(r_ready), .m_data_o(r_data), .m_keep_o(r_keep),
    .m_last_o(r_last),
    .f_valid_o(rf_valid), .f_ready_i(take_q), .f_kept_o(rf_kept), .f_bad_o(),
    .f_size_o(rf_size), .f_sum_o(rf_sum)
  );

  // ---- what becomes of it: a pipeline of 7 clocks that never stops -------------------------------

  // A packet enters it every other clock at most, which is as fast as they leave.

  typedef enum logic [1:0] {Pass, Expanded, Drop} mode_t;
  typedef struct packed {
    mode_t mode;
    logic raw;  // its beats are in memory
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

  // ---- out: a packet's plan in registers, and a clock between packets ---------------------------

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
      if (r_valid && r_ready && r_last) r_open_q <= 1'b0;
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
    .s_valid_i(r_valid), .s_ready_o(s_ready), .s_data_i(r_data), .s_keep_i(r_keep),
    .s_last_i(r_last),
    .b_valid_i(r_valid), .b_ready_o(f_ready), .b_data_i(r_data), .b_keep_i(r_keep),
    .b_last_i(r_last),
    .m_axis_tvalid, .m_axis_tready, .m_axis_tdata, .m_axis_tkeep, .m_axis_tlast,
    .m_axis_tuser_size, .m_axis_tuser_src
  );

  assign event_o = {3{done}} & {mode_q == Drop, mode_q == Pass, mode_q == Expanded};

endmodule
