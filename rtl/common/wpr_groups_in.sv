// SPDX-License-Identifier: Apache-2.0
// The beginning of a decoder of one or two bits a value. In comes a packet of code, 512 bits a
// beat: chunks of head words followed by groups of words for 32 values each. Out go the bits of 16
// values a clock, each row with its chunk's head words.
//
// The code does not hold the packet's number of values: s_cmd brings it. A packet that is too short
// ends with a row without values, wrong_o set. Of a packet that is too long the rest is thrown
// away, and the last group is wrong. The next packet begins afresh.
//
// Rate: a row a clock, less a chunk's head words, of which one is read beside the row before it.
module wpr_groups_in #(
  parameter int unsigned CountWidth = 24,  // bits of the number of values
  parameter int unsigned Heads      = 1,
  parameter int unsigned Words      = 1
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input logic [6:0] cfg_groups_i,  // of a chunk, less one; a power of two of them

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  input  logic                   move_i,    // the row shown is taken, and the next row follows
  output logic                   valid_o,
  output logic                   last_o,    // of the packet
  output logic                   wrong_o,
  output logic [           15:0] keep_o,    // values that are there
  output logic [Words-1:0][15:0] bits_o,
  output logic [Heads-1:0][31:0] heads_o,
  output logic                   group_o,   // a group begins with this row
  output logic [Words-1:0][31:0] words_o,   // with group: all its bits
  output logic [           31:0] beyond_o   // with group: values that are not there
);

  localparam int unsigned Places = Heads + Words;

  logic w_valid, w_ready, w_last;
  logic [31:0] word;
  logic [3:0] w_keep;
  wpr_narrow #(.Wide(64), .Narrow(4)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(w_valid),
    .m_axis_tready(w_ready),
    .m_axis_tdata (word),
    .m_axis_tkeep (w_keep),
    .m_axis_tlast (w_last)
  );

  // ---- words to their places: heads, and a group's words, again and again -----------------------
  // A group's lower row goes on with its last word, the upper one a clock later.

  typedef enum logic [1:0] {Idle, Take, Refuse, Drain} state_t;
  state_t state_q;
  logic [$clog2(Places)-1:0] place_q;
  logic [6:0] group_q;  // of the chunk
  logic [CountWidth-1:0] left_q;  // values in front of this group that have not left, less one
  logic [Heads-1:0][31:0] heads_q;
  logic [Words-1:0][31:0] words, words_q;
  logic final_group, one_row, completes, take, lower, refuse, upper_q, upper_last_q;
  logic [3:0] upper_rest_q;
  assign final_group  = left_q[CountWidth-1:5] == '0;
  assign one_row      = final_group && !left_q[4];
  assign completes    = place_q == ($clog2(Places))'(Places - 1);
  assign s_cmd_tready = state_q == Idle;
  assign w_ready      = state_q == Drain ||
                        (state_q == Take && move_i && !(completes && upper_q));
  assign take         = w_valid && w_ready && state_q == Take;
  assign lower        = take && completes;
  assign refuse       = move_i && state_q == Refuse && !upper_q;
  always_comb begin
    words          = words_q;
    words[Words-1] = word;
  end
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Idle: if (s_cmd_tvalid) state_q <= Take;
      Take:
        if (lower && final_group) state_q <= w_last ? Idle : Drain;
        else if (take && w_last) state_q <= Refuse;
      Refuse: if (refuse) state_q <= Idle;
      default: if (w_valid && w_last) state_q <= Idle;
    endcase
    if (state_q == Idle) begin
      place_q <= '0;
      group_q <= '0;
      left_q  <= s_cmd_tdata;
    end else if (lower) begin
      place_q <= group_q == cfg_groups_i ? '0 : ($clog2(Places))'(Heads);
      group_q <= group_q == cfg_groups_i ? '0 : group_q + 7'd1;
      left_q  <= left_q - CountWidth'(32);
    end else if (take) begin
      place_q <= place_q + 1'b1;
    end
    for (int i = 0; i < int'(Heads); i++) if (take && int'(place_q) == i) heads_q[i] <= word;
    for (int i = 0; i < int'(Words); i++) begin
      if (take && int'(place_q) == int'(Heads) + i) words_q[i] <= word;
    end
    if (move_i) begin
      upper_q      <= lower && !one_row;
      upper_last_q <= final_group;
      upper_rest_q <= left_q[3:0];
    end
    if (!rst_ni) begin
      state_q <= Idle;
      upper_q <= 1'b0;
    end
  end

  // ---- rows -------------------------------------------------------------------------------------

  logic [31:0] beyond;
  always_comb for (int i = 0; i < 32; i++) beyond[i] = final_group && 5'(i) > left_q[4:0];
  always_ff @(posedge clk_i) begin
    if (move_i) begin
      valid_o  <= lower || upper_q || refuse;
      last_o   <= upper_q ? upper_last_q : one_row || state_q == Refuse;
      wrong_o  <= refuse || (lower && final_group && (!w_last || w_keep != '1));
      heads_o  <= heads_q;
      group_o  <= lower;
      words_o  <= words;
      beyond_o <= beyond;
      for (int i = 0; i < int'(Words); i++) begin
        bits_o[i] <= upper_q ? words_q[i][31:16] : words[i][15:0];
      end
      for (int l = 0; l < 16; l++) begin
        keep_o[l] <= !refuse && (upper_q ? !upper_last_q || 4'(l) <= upper_rest_q : !beyond[l]);
      end
    end
    if (!rst_ni) valid_o <= 1'b0;
  end

endmodule
