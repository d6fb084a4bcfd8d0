// SPDX-License-Identifier: Apache-2.0
// tbq decoder with of=one (codecs/tbq/spec.md), sums included: a packet of code in, 512 bits a
// beat; a packet of float32 words out, up to 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know levels that stand in the code (of=mean), nor bytes behind the last value.
//
// Rate: a word of code a clock, and at most 16 values. That is 16 values a clock and one clock a
// chunk of 4096, but for a list's rows of 16 with more than two entries, which take a clock for
// every two, and for sums in P planes, which take P + 1 clocks for 32 values. Latency about 10
// clocks. m_axis_tready stops all stages at once.
module wpr_tbq_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // tau with 16 significant bits: bits 30 to 8 of its float32 word. Constant from two clocks before
  // a packet until its last value has left.
  input logic [22:0] cfg_tau_i,

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned Lanes = 16;
  localparam int unsigned Planes = 7;

  typedef struct packed {
    logic       negative;
    logic [2:0] less;  // its count, less one
    logic [3:0] lane;
  } mark_t;

  // ---- a word, and the one behind it ------------------------------------------------------------
  // Beside a word: whether it is whole, and whether its two entries are of the row of the entry
  // before.

  logic come, v0, v1, last0, whole0, lower_goes_on1, upper_goes_on0, upper_goes_on1, pop;
  logic [31:0] word0;
  logic [15:0] word1;       // its lower half
  logic [7:0] word1_row;    // of the entry in its upper half
  logic [3:0] come_keep;
  logic [1:0][7:0] come_rows;  // of its entries
  logic [7:0] row_before_q;    // of the upper entry of the word before
  logic [15:0] unused_come;
  logic [7:0] unused_data1;
  logic unused_last1, unused_whole1, unused_goes_on0;
  wpr_words_in #(.Narrow(4), .Beside(3)) words (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .come_o         (come),
    .come_data_o    ({unused_come[15:12], come_rows[1], unused_come[11:4], come_rows[0],
                      unused_come[3:0]}),
    .come_keep_o    (come_keep),
    .come_beside_i  ({come_keep[3], come_rows[1] == come_rows[0], come_rows[0] == row_before_q}),
    .first_valid_o  (v0),
    .first_last_o   (last0),
    .first_data_o   (word0),
    .first_beside_o ({whole0, upper_goes_on0, unused_goes_on0}),
    .second_valid_o (v1),
    .second_last_o  (unused_last1),
    .second_data_o  ({unused_data1[7:4], word1_row, unused_data1[3:0], word1}),
    .second_beside_o({unused_whole1, upper_goes_on1, lower_goes_on1}),
    .pop_i          (pop)
  );
  always_ff @(posedge clk_i) if (come) row_before_q <= come_rows[1];

  // ---- where the packet is ----------------------------------------------------------------------

  typedef enum logic [2:0] {Idle, Head, List, Group, Refuse, Drain} state_t;
  state_t state_q;
  logic move, ended_q, ended;  // the packet's last word has been taken
  logic [CountWidth-1:0] left_q;  // values that have not left, less one
  logic final_row_q, final_group_q, chunk_row_end, chunk_group_end;
  logic [7:0] row_q;  // of the chunk
  logic [7:0] next_row_q;   // the one after it
  logic row_255_q;          // of a list
  logic nan_q, upper_q;
  assign chunk_row_end   = row_255_q || final_row_q;
  assign chunk_group_end = row_q[7:1] == '1 || final_group_q;

  // ---- a list: up to two entries a clock --------------------------------------------------------
  // A row is done where the next entry is of another one; a chunk's last row when the list's last
  // word has gone, too.

  logic used_q, used;      // the first word's lower half is
  logic [11:0] entries_q;  // that have not been taken
  logic [10:0] words_q;    // of the list
  logic [15:0] entry0, entry1;
  logic [7:0] row2;  // of the entry after these
  mark_t mark0, mark1;
  logic here_q;              // the first entry is of this row
  logic [7:0] come_first;    // row of the first entry of a list
  logic [2:0] next_row;      // entries that are of the next row
  logic some_q, two_q, more_q, four, five;  // there are so many entries, or more
  logic one_word, in0, in1, in2, step, lacking, clean, list_row, uses_up;
  logic wait1, wait2;  // the list ends here, in the lower half of a word
  logic same1, same2;  // an entry is of the row of the one before it
  logic [1:0] taken;
  assign entry0   = used_q ? word0[31:16] : word0[15:0];
  assign entry1   = used_q ? word1 : word0[31:16];
  assign row2     = used_q ? word1_row : word1[11:4];
  assign mark0    = {entry0[15:12], entry0[3:0]};
  assign mark1    = {entry1[15:12], entry1[3:0]};
  assign same1    = used_q ? lower_goes_on1 : upper_goes_on0;
  assign same2    = used_q ? upper_goes_on1 : lower_goes_on1;
  assign four     = entries_q[11:2] != '0;
  assign five     = entries_q[11:3] != '0 || (entries_q[2] && entries_q[1:0] != '0);
  assign one_word = used_q ? !two_q : !more_q;  // all are in the first word
  assign in0      = some_q && here_q;
  assign in1      = two_q && here_q && same1;
  assign in2      = more_q && here_q && same1 && same2;
  assign taken    = {in1, in0 && !in1};
  assign lacking  = some_q && (ended_q || (v0 && last0 && !one_word));
  assign clean    = used_q && !some_q;  // the half of a word behind the list goes
  assign step     = state_q == List && (!some_q || (v0 && (v1 || one_word))) && !lacking;
  assign used     = clean ? 1'b0 : used_q ^ taken[0];
  assign uses_up  = in1 ? two_q && !more_q : in0 ? some_q && !two_q : !some_q;
  assign wait1    = chunk_row_end && !two_q && !used_q;
  assign wait2    = chunk_row_end && !more_q && used_q;
  assign list_row = step && !in2 && !(in1 ? wait2 : in0 && wait1);

  // Whether the next clock's first entry is of its row: what was taken decides which one that is,
  // late. A list's first one is compared until it has come; any other one is there.
  assign come_first = v1 ? word1[11:4] : come_rows[0];
  assign next_row   = {row2 == next_row_q, entry1[11:4] == next_row_q,
                       entry0[11:4] == next_row_q};
  always_ff @(posedge clk_i) begin
    if (state_q != List || !v0) here_q <= come_first == '0;
    else if (move && step) begin
      here_q <= !list_row || (in1 ? next_row[2] : in0 ? next_row[1] : next_row[0]);
    end
  end

  // ---- planes: two rows at once, of which the upper one leaves a clock later --------------------

  logic [Planes-1:0][31:0] planes_q;
  logic [31:0] any_q, beyond;  // values that are not 0; that are not there
  logic top_q;
  logic [2:0] last_plane_q, plane_q;
  logic lower;
  assign lower = state_q == Group && v0 && !ended_q && plane_q == last_plane_q;
  always_comb for (int i = 0; i < 32; i++) beyond[i] = final_group_q && 5'(i) > left_q[4:0];

  // ---- states -----------------------------------------------------------------------------------

  logic head_nan, head_list, head_planes, refuse, rows_end;
  assign head_nan    = word0 == '1;
  assign head_list   = word0[31:12] == '0;
  assign head_planes = word0[31:19] == '0 && word0[15:0] == '0;
  assign refuse      = state_q == Refuse && !upper_q;
  assign rows_end    = (list_row && final_row_q) || (lower && final_group_q);
  assign s_cmd_tready = state_q == Idle;
  always_comb begin
    unique case (state_q)
      Head, Group: pop = move && v0 && !ended_q;
      List: pop = move && step && (used_q ? in0 || clean : in1);
      Drain: pop = 1'b1;
      default: pop = 1'b0;
    endcase
  end
  assign ended      = ended_q || (pop && last0);
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Head;
      Head:
        if (move) begin
          if (ended_q) state_q <= Refuse;
          else if (v0) state_q <= head_nan || head_list ? List : head_planes ? Group : Refuse;
        end
      List:
        if (move) begin
          if (lacking) state_q <= Refuse;
          else if (list_row && chunk_row_end) state_q <= !final_row_q ? Head : ended ? Idle : Drain;
        end
      Group:
        if (move) begin
          if (ended_q) state_q <= Refuse;
          else if (lower && chunk_group_end) begin
            state_q <= !final_group_q ? Head : ended ? Idle : Drain;
          end
        end
      Refuse: if (move && refuse) state_q <= ended_q ? Idle : Drain;
      default: if (v0 && last0) state_q <= Idle;
    endcase
    ended_q <= state_q != Idle && ended;
    if (!rst_ni) state_q <= Idle;
  end

  always_ff @(posedge clk_i) begin
    if (state_q == Idle) begin
      left_q        <= s_cmd_tdata;
      final_row_q   <= s_cmd_tdata[CountWidth-1:4] == '0;
      final_group_q <= s_cmd_tdata[CountWidth-1:5] == '0;
    end else if (move && (list_row || lower)) begin
      left_q        <= left_q - CountWidth'(state_q == List ? Lanes : 2 * Lanes);
      final_row_q   <= left_q[CountWidth-1:6] == '0 &&
                       (!left_q[5] || (state_q != List && !left_q[4]));
      final_group_q <= left_q[CountWidth-1:6] == '0 && (state_q != List || left_q[5:4] != '1);
    end
    if (move) begin
      if (state_q == Head) begin
        row_q        <= '0;
        next_row_q   <= 8'd1;
        row_255_q    <= 1'b0;
        nan_q        <= head_nan;
        entries_q    <= head_nan ? '0 : word0[11:0];
        words_q      <= head_nan ? '0 : 11'(word0[11:1]) + 11'(word0[0]);
        used_q       <= 1'b0;
        some_q       <= !head_nan && word0[11:0] != '0;
        two_q        <= !head_nan && word0[11:1] != '0;
        more_q       <= !head_nan && (word0[11:2] != '0 || word0[1:0] == '1);
        last_plane_q <= word0[18:16];
        plane_q      <= '0;
        planes_q     <= '0;
        top_q        <= 1'b0;
      end
      if (step) begin
        entries_q <= entries_q - 12'(taken);
        used_q    <= used;
        some_q    <= in1 ? more_q : in0 ? two_q : some_q;
        two_q     <= in1 ? four : in0 ? more_q : two_q;
        more_q    <= in1 ? five : in0 ? four : more_q;
      end
      if (list_row) begin
        row_q      <= next_row_q;
        next_row_q <= next_row_q + 8'd1;
        row_255_q  <= next_row_q == '1;
      end
      if (lower) row_q <= row_q + 8'd2;
      if (state_q == Group && v0 && !ended_q) begin
        plane_q <= lower ? '0 : plane_q + 3'd1;
        if (!lower) begin
          for (int p = 0; p < int'(Planes); p++) if (plane_q == 3'(p)) planes_q[p] <= word0;
          any_q <= word0 | (any_q & {32{plane_q != '0}});
          if (plane_q + 3'd1 == last_plane_q) top_q <= top_q || word0 != '0;
        end
      end
    end
  end

  // ---- 1: a row of planes, or entries for a row -------------------------------------------------

  logic [2:1] v_q, last_q;
  logic [2:1][Lanes-1:0] keep_q;
  logic list_q;
  logic [2:1] nans_q, ends_q;  // ends: of a chunk's list
  logic upper_last_q, wrong1_q, wrong_sign1_q, wrong_beyond1_q, wrong_list1_q;
  logic rows_end1_q, ended1_q;
  logic [3:0] upper_rest_q;
  logic [Planes-1:0][Lanes-1:0] upper_planes_q, planes1_q;
  logic [Lanes-1:0] upper_negative_q, negative1_q;
  logic [1:0] in1_q;
  mark_t mark0_q, mark1_q;
  logic [2:1][10:0] words_of_q;
  logic [2:1][7:0] groups_of_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      upper_q          <= lower && !final_row_q;
      upper_last_q     <= final_group_q;
      upper_rest_q     <= left_q[3:0];
      upper_negative_q <= word0[31:16];
      for (int p = 0; p < int'(Planes); p++) begin
        upper_planes_q[p] <= planes_q[p][31:16];
        planes1_q[p]      <= upper_q ? upper_planes_q[p] : planes_q[p][15:0];
      end
      negative1_q <= upper_q ? upper_negative_q : word0[15:0];
      v_q    <= {v_q[1], list_row || lower || upper_q || refuse};
      last_q <= {last_q[1], upper_q ? upper_last_q : final_row_q || refuse};
      for (int l = 0; l < int'(Lanes); l++) begin
        keep_q[1][l] <= !refuse && (upper_q ? !upper_last_q || 4'(l) <= upper_rest_q
                                            : !final_row_q || 4'(l) <= left_q[3:0]);
      end
      keep_q[2]   <= keep_q[1];
      list_q      <= state_q == List;
      nans_q      <= {nans_q[1], nan_q && state_q == List};
      ends_q      <= {ends_q[1], list_row && chunk_row_end};
      in1_q       <= {in1, in0} & {2{step}};
      mark0_q     <= mark0;
      mark1_q     <= mark1;
      words_of_q  <= {words_of_q[1], words_q};
      groups_of_q <= {groups_of_q[1], 8'(row_q[7:1]) + 8'd1};
      wrong_sign1_q   <= lower && (word0 & ~any_q) != '0;
      wrong_beyond1_q <= lower && (any_q & beyond) != '0;
      rows_end1_q     <= rows_end;
      ended1_q        <= ended;
      wrong_list1_q   <= list_row && chunk_row_end && !uses_up;
      wrong1_q    <= refuse || (step && clean && word0[31:16] != '0) ||
                     (lower && chunk_group_end && !top_q) ||
                     (pop && last0 && !whole0 && state_q != Drain);
    end
    if (!rst_ni) {v_q, upper_q} <= '0;
  end

  // ---- 2: a row's counts ------------------------------------------------------------------------

  logic [Lanes-1:0][6:0] counts2_q;
  logic [Lanes-1:0] negative2_q, some2;
  logic [Lanes-1:0][4:0] listed, listed_q;  // sign and count
  logic [3:0] count0, count1, last_lane_q;
  logic any_lane_q, wrong2_q, wrong3_q, too_long;
  logic [2:0] most, most2_q;  // a count of the list is above 1, 3, 7
  assign count0 = {1'b0, mark0_q.less} + 4'd1;
  assign count1 = {1'b0, mark1_q.less} + 4'd1;
  always_comb begin
    for (int l = 0; l < int'(Lanes); l++) begin
      listed[l] = listed_q[l] |
                  ({mark0_q.negative, count0} & {5{in1_q[0] && mark0_q.lane == 4'(l)}}) |
                  ({mark1_q.negative, count1} & {5{in1_q[1] && mark1_q.lane == 4'(l)}});
      some2[l]  = counts2_q[l] != '0;
    end
    most = ends_q[2] ? '0 : most2_q;
    most |= {&mark0_q.less, mark0_q.less > 3'd2, |mark0_q.less} & {3{in1_q[0]}};
    most |= {&mark1_q.less, mark1_q.less > 3'd2, |mark1_q.less} & {3{in1_q[1]}};
  end
  logic [9:0] groups, limit;  // words of planes for the largest count
  assign groups = 10'(groups_of_q[2]);
  assign limit  = most2_q[2] ? (groups << 2) + groups
                : most2_q[1] ? groups << 2
                : most2_q[0] ? (groups << 1) + groups : groups << 1;
  assign too_long  = ends_q[2] && words_of_q[2] >= 11'(limit);
  always_ff @(posedge clk_i) begin
    if (move) begin
      for (int l = 0; l < int'(Lanes); l++) begin
        listed_q[l]    <= listed[l] & {5{list_q && !v_q[1]}};
        negative2_q[l] <= list_q ? listed[l][4] : negative1_q[l];
        for (int p = 0; p < int'(Planes); p++) begin
          counts2_q[l][p] <= list_q ? p < 4 && listed[l][p%4] : planes1_q[p][l];
        end
      end
      most2_q     <= most;
      any_lane_q  <= (any_lane_q || in1_q[0]) && !v_q[1];
      if (in1_q[0]) last_lane_q <= in1_q[1] ? mark1_q.lane : mark0_q.lane;
      wrong2_q    <= wrong1_q || wrong_sign1_q || wrong_beyond1_q || wrong_list1_q ||
                     (rows_end1_q && !ended1_q) ||
                     (in1_q[0] && any_lane_q && mark0_q.lane <= last_lane_q) ||
                     (in1_q[1] && mark1_q.lane <= mark0_q.lane);
      wrong3_q    <= wrong2_q || too_long || (v_q[2] && (some2 & ~keep_q[2]) != '0);
    end
    // A list that a reset has cut leaves nothing to the next one.
    if (!rst_ni) begin
      most2_q    <= '0;
      any_lane_q <= 1'b0;
    end
  end

  // ---- 3, 4, 5: values --------------------------------------------------------------------------

  wpr_multiples_out out (
    .clk_i,
    .rst_ni,
    .move_o        (move),
    .row_valid_i   (v_q[2]),
    .row_last_i    (last_q[2]),
    .row_keep_i    (keep_q[2]),
    .row_nan_i     (nans_q[2]),
    .row_negative_i(negative2_q),
    .row_counts_i  (counts2_q),
    .unit_i        ({cfg_tau_i, 1'b0}),
    .wrong_i       (wrong3_q),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
