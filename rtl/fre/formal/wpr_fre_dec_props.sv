// SPDX-License-Identifier: Apache-2.0
// wpr_fre_dec, however packets, pauses and lengths are: a beat offered is held until it is taken;
// as many packets leave as were asked for, and of each no more values; and while it is fed and
// drained there is no state in which it stands. By induction over what is in it, for all words;
// long traces from a reset (Deep) have words of zeros or ones only, which are its shortest and a
// long code: with free ones a solver needs hours.
module wpr_fre_dec_props #(
  parameter bit Deep = 1'b0
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [ 3:0] s_cmd_tdata,
  input logic [ 1:0] s_cmd_tuser,
  input logic        s_cmd_tvalid,
  input logic [31:0] s_word_i,
  input logic [ 3:0] s_axis_tkeep,
  input logic        s_axis_tlast,
  input logic        s_axis_tvalid,
  input logic        m_axis_tready
);

  logic s_cmd_tready, s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser;
  logic [31:0] m_axis_tdata;
  logic [31:0] s_axis_tdata;
  assign s_axis_tdata = Deep ? {32{s_word_i[0]}} : s_word_i;
  wpr_fre_dec #(.CountWidth(4)) dut (
    .cfg_m_i(5'd5),
    .cfg_midpoint_i(1'b0),
    .cfg_bfloat16_i(1'b0),
    .*
  );

  // What is on its way: values, and ends of packets.
  logic [7:1] valid, ends;
  logic run, check, busy;
  logic [3:0] values, packets;
  assign valid = {dut.v7t_q, dut.v6t_q, dut.v5t_q, dut.v4t_q, dut.v3t_q, dut.v2t_q, dut.v1t_q};
  assign ends  = {dut.end7_q, dut.end6_q, dut.end5_q, dut.end4_q, dut.end3_q, dut.end2_q,
                  dut.end1_q};
  assign run   = 2'(dut.state_q) == 2'd1;
  assign check = 2'(dut.state_q) == 2'd2;
  assign busy  = run || check;
  // Every value has its packet's end behind it, or that is still to come; every end has a value
  // before it.
  logic have, ordered, end_behind;
  always_comb begin
    values     = 4'(dut.v8t_q) + 4'(m_axis_tvalid);
    packets    = 4'(busy) + 4'(m_axis_tvalid && m_axis_tlast);
    ordered    = 1'b1;
    end_behind = busy;
    for (int k = 1; k < 8; k++) begin
      values  += 4'(valid[k] && !ends[k]);
      packets += 4'(valid[k] && ends[k]);
      if (valid[k] && !ends[k] && !end_behind) ordered = 1'b0;
      if (valid[k] && ends[k]) end_behind = 1'b1;
    end
    if ((dut.v8t_q || (m_axis_tvalid && !m_axis_tlast)) && !end_behind) ordered = 1'b0;
    have = dut.v8t_q;
    for (int k = 7; k > 0; k--) begin
      if (valid[k] && ends[k] && !have) ordered = 1'b0;
      if (valid[k]) have = !ends[k];
    end
  end

  logic started_q = 1'b0, offered_q;
  logic [33:0] beat_q;
  logic [3:0] inside_q = '0;  // packets asked for
  logic [3:0] flying_q = '0;  // values begun that have not left
  logic [4:0] made_q = '0;  // values begun of this packet
  logic [3:0] asked_q = '0;  // its values, less one
  logic give, command, moves;
  assign command = s_cmd_tvalid && s_cmd_tready;
  assign give    = m_axis_tvalid && m_axis_tready;
  assign moves   = command || dut.emit || dut.finish || dut.pop || dut.take0 || dut.take1 ||
                   dut.take2 || s_axis_tready;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    offered_q <= rst_ni && m_axis_tvalid && !m_axis_tready;
    beat_q    <= {m_axis_tdata, m_axis_tlast, m_axis_tuser};
    if (rst_ni) begin
      inside_q <= inside_q + 4'(command) - 4'(give && m_axis_tlast);
      flying_q <= flying_q + 4'(dut.emit) - 4'(give);
      if (command) asked_q <= s_cmd_tdata;
      if (command) made_q <= '0;
      else made_q <= made_q + 5'(dut.emit);
    end
    assume (rst_ni == started_q);
    // A packet has a byte, and one behind those that are not of the stream.
    assume (!(rst_ni && dut.finish && made_q == '0));
    if (started_q && rst_ni) begin
      packets_kept: assert (inside_q == packets);
      values_kept: assert (flying_q == values);
      in_order: assert (ordered && have == (busy && made_q != '0));
      as_asked: assert (!run || (made_q <= 5'(asked_q) && dut.left_q == asked_q - made_q[3:0]));
      all_made: assert (!check || made_q == 5'(asked_q) + 5'd1);
      // A clock moves something, and a value its place: no packet without end in words that have
      // one.
      lives: assert (!(s_cmd_tvalid && s_axis_tvalid && m_axis_tready) || moves);
      forward: assert (!dut.emit || dut.size >= 6'd2);
      if (offered_q) begin
        held: assert (m_axis_tvalid && beat_q == {m_axis_tdata, m_axis_tlast, m_axis_tuser});
      end
    end
    ended: cover (m_axis_tvalid && m_axis_tready && m_axis_tlast && !m_axis_tuser);
    refused: cover (m_axis_tvalid && m_axis_tready && m_axis_tlast && m_axis_tuser);
  end

endmodule
