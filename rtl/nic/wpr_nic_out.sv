// SPDX-License-Identifier: Apache-2.0
// Where packets go out, from one of three sources: 0, as they are in memory; 1, with Header bytes
// in place of their own header, which is Insert bytes shorter; 2, such a header with another stream
// behind it. A packet takes one clock more only where its last bytes need a beat of their own.
//
// Each bit passes one LUT, which chooses among four inputs, on its way to a queue. The queue's
// ready is a register, so no decision made here reaches further than the queue. s_ready_o and
// b_ready_o do not know the source: they only say that a beat fits. The module in front takes beats
// from the stream of source h_from_i alone, from h_valid_i to the stream's last beat.
module wpr_nic_out
  import wpr_nic_pkg::*;
#(
  parameter int unsigned Header = 66,  // 1 to 127, but not 64
  parameter int unsigned Insert = 24   // up to Header, and 63
) (
  input  logic                clk_i,
  input  logic                rst_ni,             // synchronous
  input  logic                h_load_i,           // in the clock before h_valid_i
  input  logic [ 1:0]         h_next_i,           // with h_load_i: the coming h_from_i
  input  logic                h_valid_i,          // what to do with the next packet
  output logic                h_done_o,           // the packet's last beat leaves
  input  logic [ 1:0]         h_from_i,           // source
  input  logic [8*Header-1:0] h_data_i,
  input  logic [ 15:0]        h_size_i,           // of the whole packet
  input  logic [ 15:0]        h_src_i,
  input  logic                s_valid_i,
  output logic                s_ready_o,          // for sources 0 and 1
  input  beat_t               s_beat_i,           // for source 1: more bytes than its header has
  input  logic                b_valid_i,
  output logic                b_ready_o,          // for source 2
  input  beat_t               b_beat_i,
  output logic                m_valid_o,
  input  logic                m_ready_i,
  output packet_beat_t        m_beat_o
);

  localparam int unsigned Whole = Header / 64;  // beats of nothing but header: 0 or 1
  localparam int unsigned Rest = Header % 64;

  // The carry: bytes of a beat with which the next beat begins. Of a beat of nothing but header
  // they are the header's last bytes.
  logic tail_q, lead_q, room, push, last, s_spills, b_spills;
  logic [1:0] from_q;  // source of the bytes where a header lies; 3: the header
  logic [8*Insert-1:0] s_carry, s_carry_q;
  logic [Insert-1:0] s_carry_keep_q;
  logic [8*Rest-1:0] b_carry_q;
  logic [Rest-1:0] b_carry_keep_q;
  assign s_ready_o = room;
  assign b_ready_o = room && !lead_q;
  assign s_spills  = s_beat_i.last && s_beat_i.keep[64-Insert];
  assign b_spills  = b_beat_i.last && b_beat_i.keep[64-Rest] && !lead_q;
  assign push      = h_valid_i && room &&
                     (tail_q || (h_from_i == 2'd2 ? lead_q || b_valid_i : s_valid_i));
  assign h_done_o  = push && last;
  always_comb begin
    s_carry = s_beat_i.data[511-:8*Insert];
    for (int j = 0; j < Insert && j < Rest; j++) begin
      if (lead_q) s_carry[8*j+:8] = h_data_i[8*(int'(Header-Rest)+j)+:8];
    end
  end
  always_ff @(posedge clk_i) begin
    // lead: a beat of nothing but header
    if (h_load_i) {from_q, lead_q} <= {{2{h_next_i != 2'd0}}, Whole == 1 && h_next_i != 2'd0};
    else if (push) {from_q, lead_q} <= {h_from_i, 1'b0};
    if (push) begin
      tail_q <= !tail_q && (h_from_i == 2'd1 ? s_spills : h_from_i == 2'd2 && b_spills);
      s_carry_q      <= s_carry;
      s_carry_keep_q <= s_beat_i.keep[63-:Insert];
      b_carry_q      <= lead_q ? h_data_i[8*Header-1-:8*Rest] : b_beat_i.data[511-:8*Rest];
      b_carry_keep_q <= b_beat_i.keep[63-:Rest];
    end
    if (!rst_ni) tail_q <= 1'b0;
  end

  logic [511:0] data, with_s, with_b;
  logic [63:0] keep, keep_s, keep_b;
  assign with_s = {s_beat_i.data[511-8*Insert:0], s_carry_q};
  assign with_b = {b_beat_i.data[511-8*Rest:0], b_carry_q};
  assign keep_s = tail_q ? 64'(s_carry_keep_q) : {s_beat_i.keep[63-Insert:0], {Insert{1'b1}}};
  assign keep_b = tail_q ? 64'(b_carry_keep_q) : {b_beat_i.keep[63-Rest:0], {Rest{1'b1}}};
  assign keep   = lead_q ? '1 : h_from_i[1] ? keep_b : h_from_i[0] ? keep_s : s_beat_i.keep;
  assign last   = tail_q || (h_from_i[1] ? !lead_q && b_beat_i.last && !b_spills
                                         : s_beat_i.last && !(h_from_i[0] && s_spills));
  always_comb begin
    for (int j = 0; j < 64; j++) begin
      logic [1:0] from;
      from = j < int'(Header) ? from_q : h_from_i;
      data[8*j+:8] = from[1] ? (from[0] ? h_data_i[8*(j%int'(Header))+:8] : with_b[8*j+:8])
                             : (from[0] ? with_s[8*j+:8] : s_beat_i.data[8*j+:8]);
    end
  end

  wpr_fifo #(.Width($bits(packet_beat_t)), .LogDepth(2)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(push),
    .s_ready_o(room),
    .s_data_i ({last, data, keep, h_size_i, h_src_i}),
    .m_valid_o,
    .m_ready_i,
    .m_data_o (m_beat_o),
    .level_o  ()
  );

endmodule
