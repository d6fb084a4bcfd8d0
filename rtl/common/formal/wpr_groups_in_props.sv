// SPDX-License-Identifier: Apache-2.0
// wpr_groups_in: of any one of the first packets, chosen by pick_i, rows are those of its words, however long it
// was promised to be and is: all of them, or those before what is missing and one without values;
// wrong is said of a packet that is not as long as it should be, and of no other. Never more packets leave than
// were asked for. It never hangs: while rows are taken, in every clock a row leaves or a word moves, but
// where no command is offered or no word is there. Words say which of their beat they are here,
// and packets that are good have one beat.
module wpr_groups_in_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       s_cmd_tvalid,
  input logic [6:0] s_cmd_tdata,
  input logic       s_axis_tvalid,
  input logic       s_axis_tlast,
  input logic [3:0] s_more_i,      // words of a last beat, less one
  input logic       s_part_i,      // its last one lacks a byte
  input logic       move_i,
  input logic       pick_i
);

  logic s_cmd_tready, s_axis_tready, valid, last, wrong, group;
  logic [511:0] s_axis_tdata;
  logic [63:0] s_axis_tkeep;
  logic [15:0] keep;
  logic [1:0][15:0] bits;
  logic [0:0][31:0] heads;
  logic [1:0][31:0] words;
  logic [31:0] beyond;
  logic [5:0] words_q = '0;  // of this packet, that have come in whole beats
  always_comb begin
    for (int i = 0; i < 16; i++) begin
      s_axis_tdata[32*i+:32] = {10'd1, 6'(i), 10'd0, 6'(i)};
      s_axis_tkeep[4*i+:4]   = !s_axis_tlast || 4'(i) < s_more_i ? 4'hF
                             : 4'(i) > s_more_i ? 4'h0 : s_part_i ? 4'h7 : 4'hF;
    end
  end
  wpr_groups_in #(.CountWidth(7), .Heads(1), .Words(2)) dut (
    .cfg_groups_i(7'd1), .valid_o(valid), .last_o(last), .wrong_o(wrong), .keep_o(keep),
    .bits_o(bits), .heads_o(heads), .group_o(group), .words_o(words), .beyond_o(beyond), .*
  );

  // What is known of the one picked: values asked for, less one; words; how it ends.
  logic started_q = 1'b0, pick_q, asked_q = 1'b0, ended_q = 1'b0, part_q, bad_q = 1'b0;
  logic [6:0] left_q;
  logic moves, waits;
  logic [5:0] total_q;
  logic [1:0] cmd_q = '0, in_q = '0, out_q = '0;  // packets
  logic [2:0] row_q = '0, final_row;
  logic [5:0] needed, at, head;
  logic [15:0] rest;
  logic push, ask, pop, ours, refused, good;
  assign push = s_axis_tvalid && s_axis_tready;
  assign ask  = s_cmd_tvalid && s_cmd_tready;
  assign pop  = valid && move_i;
  assign ours = out_q == {1'b0, pick_i};
  assign final_row = left_q[6:4];
  assign head    = row_q[2] ? 6'd5 : 6'd0;  // a chunk: 1 and 2 words, and 2 more
  assign at      = head + (row_q[1] ? 6'd3 : 6'd1);
  assign needed  = left_q[6] ? left_q[5] ? 6'd10 : 6'd8 : left_q[5] ? 6'd5 : 6'd3;
  assign refused = wrong && keep == '0;
  assign good    = ended_q && total_q == needed && !part_q;
  assign moves = push || ask || valid || dut.upper_q || dut.refuse || (dut.w_valid && dut.w_ready);
  assign waits = (!s_cmd_tvalid && dut.state_q == 2'd0) || (!s_axis_tvalid && !dut.w_valid);
  always_comb for (int i = 0; i < 16; i++) rest[i] = row_q != final_row || 4'(i) <= left_q[3:0];

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    pick_q    <= pick_i;
    if (rst_ni) begin
      if (push) begin
        words_q <= s_axis_tlast ? '0 : words_q + 6'd16;
        in_q    <= in_q + 2'(s_axis_tlast);
        if (s_axis_tlast && in_q == {1'b0, pick_i}) begin
          ended_q <= 1'b1;
          total_q <= words_q + 6'(s_more_i) + 6'd1;
          part_q  <= s_part_i;
        end
      end
      if (ask) begin
        cmd_q <= cmd_q + 2'd1;
        if (cmd_q == {1'b0, pick_i}) {asked_q, left_q} <= {1'b1, s_cmd_tdata};
      end
      if (pop) begin
        out_q <= out_q + 2'(last);
        if (ours) begin
          row_q <= row_q + 3'd1;
          bad_q <= bad_q || wrong;
        end
      end
    end
    assume (rst_ni == started_q);
    assume (!started_q || pick_i == pick_q);
    assume (cmd_q != 2'd3 && words_q < 6'd32);
    if (started_q && rst_ni) begin
      hangs: assert (!move_i || moves || waits);
      asked: assert (!valid || out_q != cmd_q);
    end
    if (started_q && rst_ni && valid && ours) begin
      known: assert (asked_q && (!last || !wrong || row_q == final_row || refused));
      ends: assert (refused || last == (row_q == final_row));
      short_of: assert (!refused || (last && ended_q && total_q < needed));
      right: assert (!last || (bad_q || wrong) == !good);
    end
    if (started_q && rst_ni && valid && ours && !refused) begin
      chunks: assert (heads[0] == {10'd1, head, 10'd0, head});
      values: assert (keep == rest && group == !row_q[0]);
      lower: assert (row_q[0] || (bits[0] == 16'(at) && bits[1] == 16'(at + 6'd1)));
      upper: assert (!row_q[0] || (bits[0] == (16'd64 | 16'(at)) && bits[1] == (16'd64 | 16'(at + 6'd1))));
      all: assert (!group || (words[0] == {10'd1, at, 10'd0, at} && beyond[15:0] == ~rest));
    end
    used: cover (pick_i && out_q == 2'd2 && good && row_q == 3'd3);
  end

endmodule
