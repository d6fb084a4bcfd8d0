// SPDX-License-Identifier: Apache-2.0
// wpr_fre_dec never hangs, whatever its words are and whatever its state: while what is behind it takes
// all, in every clock a word or a command is taken, a word goes a place ahead, or a code or a
// packet's end is found, of which each word and each code has few; but where no command is offered or
// no word is there. Words of a packet come without pauses here, packets do not. With Few, words are all zeros
// or all ones, for what a mutant needs many clocks to show.
module wpr_fre_dec_live_props #(
  parameter bit Few = 1'b0
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        s_cmd_tvalid,
  input logic [ 7:0] s_cmd_tdata,
  input logic [ 1:0] s_cmd_tuser,
  input logic        s_axis_tvalid,
  input logic [31:0] s_axis_tdata,
  input logic [ 3:0] s_axis_tkeep,
  input logic        s_axis_tlast
);

  logic s_cmd_tready, s_axis_tready, m_axis_tvalid, m_axis_tlast, m_axis_tuser;
  logic [31:0] m_axis_tdata;
  wpr_fre_dec #(.CountWidth(8)) dut (
    .cfg_m_i(5'd23),
    .cfg_midpoint_i(1'b0),
    .cfg_bfloat16_i(1'b0),
    .m_axis_tready(1'b1),
    .s_axis_tdata(Few ? {32{s_axis_tdata[0]}} : s_axis_tdata),
    .*
  );

  logic started_q = 1'b0, begins_q = 1'b1, push, moves, waits;
  assign push  = s_axis_tvalid && s_axis_tready;
  assign moves = push || (s_cmd_tvalid && s_cmd_tready) || dut.take2 || dut.take1 || dut.take0 ||
                 dut.emit || dut.finish || dut.pop;
  assign waits = (!s_cmd_tvalid && dut.state_q == 2'd0) ||
                 (!s_axis_tvalid && {dut.v0_q, dut.v1_q, dut.v2_q, dut.v3_q} == '0);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (rst_ni && push) begins_q <= s_axis_tlast;
    assume (rst_ni == started_q);
    assume (s_axis_tvalid || begins_q);
    if (started_q && rst_ni) begin
      hangs: assert (moves || waits);
      whole: assert (!begins_q || (dut.v3_q ? dut.last3_q : dut.v2_q ? dut.last2_q
                                 : dut.v1_q ? dut.last1_q : !dut.v0_q || dut.last0_q));
    end
    used: cover (m_axis_tvalid && m_axis_tlast && dut.state_q == 2'd3);
  end

endmodule
