// SPDX-License-Identifier: Apache-2.0
// lz4 encoder (codecs/lz4/spec.md): a packet of bytes in, 8 a beat; a packet of one LZ4 block out,
// 8 bytes a beat, no larger than LZ4_compressBound says. Which block it is follows from the bytes
// alone.
//
// s_cmd says how many bytes a packet has, 0 (then no beat comes) to 4 MiB; a packet that has others
// gives a block without use, and what follows it, too. Offsets are below 65,280. Behind
// 2^LogLiterals - 128 bytes without a match the rest of the packet is not compressed, since LZ4
// says how many literals there are before the first one.
//
// Rate: 8 bytes a clock, less what a code is larger than its bytes; a sequence, or 8 of its
// literals, a clock. The first byte leaves when the first match has ended, or the packet.
module wpr_lz4_enc #(
  parameter int unsigned LogLiterals = 16,  // bytes of memory for literals
  parameter bit More = 1'b0  // the matcher compares five distances a window, not two
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,   // bytes of the next packet: at most 2^22

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // as s_cmd says; not looked at
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast
  output logic        m_axis_tlast
);

  logic in_valid, in_ready;
  logic [63:0] in_data;
  wpr_skid #(.Width(64)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i (s_axis_tdata),
    .m_valid_o(in_valid),
    .m_ready_i(in_ready),
    .m_data_o (in_data)
  );

  // ---- sequences and their literals -------------------------------------------------------------

  logic room, w_valid, w_first, w_last, w_start;
  logic [3:0] w_n, w_run, w_end;
  logic [22:0] w_left;
  logic [63:0] w_bytes;
  logic [2:0] w_at;
  logic [15:0] w_offset;
  wpr_lz_match #(.More(More)) match (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_axis_tvalid(in_valid),
    .s_axis_tready(in_ready),
    .s_axis_tdata (in_data),
    .room_i       (room),
    .m_valid_o    (w_valid),
    .m_first_o    (w_first),
    .m_last_o     (w_last),
    .m_n_o        (w_n),
    .m_left_o     (w_left),
    .m_bytes_o    (w_bytes),
    .m_run_o      (w_run),
    .m_start_o    (w_start),
    .m_at_o       (w_at),
    .m_end_o      (w_end),
    .m_offset_o   (w_offset)
  );

  logic q_valid, q_ready, q_last, have, take;
  logic [22:0] q_n, q_match;
  logic [15:0] q_offset;
  logic [3:0] n;
  logic [63:0] bytes;
  wpr_lz_sequences #(.LogLiterals(LogLiterals), .Split(0)) sequences (
    .clk_i,
    .rst_ni,
    .room_o        (room),
    .s_valid_i     (w_valid),
    .s_first_i     (w_first),
    .s_last_i      (w_last),
    .s_n_i         (w_n),
    .s_left_i      (w_left),
    .s_bytes_i     (w_bytes),
    .s_run_i       (w_run),
    .s_start_i     (w_start),
    .s_at_i        (w_at),
    .s_end_i       (w_end),
    .s_offset_i    (w_offset),
    .m_valid_o     (q_valid),
    .m_ready_i     (q_ready),
    .m_first_o     (),
    .m_last_o      (q_last),
    .m_n_literals_o(q_n),
    .m_n_match_o   (q_match),
    .m_offset_o    (q_offset),
    .have_o        (have),
    .take_i        (take),
    .n_i           (n),
    .bytes_o       (bytes)
  );

  // What follows from the numbers of a sequence, a clock ahead.
  typedef struct packed {
    logic last;
    logic [22:0] n;
    logic [22:0] more;        // n - 15
    logic [22:0] match_more;  // match - 19
    logic [15:0] offset;
    logic is_long;            // n >= 15
    logic more_big;           // more >= 255, if there is more
    logic up_to8;             // n <= 8
    logic up_to16;            // n <= 16
    logic match_long;         // match >= 19
    logic match_big;          // match_more >= 255: pieces of its length follow the literals
    logic [3:0] match_code;
  } plan_t;
  plan_t plan_q;
  logic plan_valid_q, done;
  assign q_ready = !plan_valid_q || done;
  always_ff @(posedge clk_i) begin
    if (q_ready) begin
      plan_valid_q <= q_valid;
      plan_q <= '{
          q_last,
          q_n,
          q_n - 23'd15,
          q_match - 23'd19,
          q_offset,
          q_n >= 23'd15,
          q_n >= 23'd15 + 23'd255,
          q_n <= 23'd8,
          q_n <= 23'd16,
          q_match >= 23'd19,
          q_match >= 23'd19 + 23'd255,
          q_last ? 4'd0 : q_match >= 23'd19 ? 4'd15 : 4'(q_match - 23'd4)
      };
    end
    if (!rst_ni) plan_valid_q <= 1'b0;
  end

  // ---- pieces of a block: a token with what follows, or more of a length, or more literals ------

  typedef enum logic [1:0] {Token, Length, Literals, Match} state_e;
  state_e state_q;
  logic piece_room, last, ends, eight;
  logic up_to8, up_to16;
  logic [22:0] left, n_q;   // literals
  logic [22:0] more, more_q, length;  // of a length: what is left; and what will be
  logic more_big_q, up_to8_q;  // more_q >= 255; n_q <= 8
  logic [2:0] n_head;
  logic [31:0] head;
  logic [1:0] n_tail;
  logic [23:0] tail;
  always_comb begin
    more = state_q == Token ? plan_q.more : more_q;
    {left, up_to8, up_to16} = state_q == Token ? {plan_q.n, plan_q.up_to8, plan_q.up_to16}
                                               : {n_q, up_to8_q, n_q <= 23'd16};
    ends    = (state_q == Token || state_q == Literals) && up_to8;  // the literals are all
    eight   = !up_to8 && (state_q == Token ? !plan_q.more_big : state_q == Literals);
    n       = ends ? left[3:0] : {eight, 3'd0};
    head    = '0;
    unique case (state_q)
      Token: begin
        n_head     = plan_q.is_long ? 3'd2 : 3'd1;
        head[7:0]  = {plan_q.is_long ? 4'd15 : plan_q.n[3:0], plan_q.match_code};
        head[15:8] = plan_q.more_big ? 8'd255 : plan_q.more[7:0];
      end
      Literals: n_head = '0;
      default: begin
        n_head    = 3'd1;
        head[7:0] = more_big_q ? 8'd255 : more_q[7:0];
      end
    endcase
    n_tail = !ends || plan_q.last ? 2'd0 : plan_q.match_long ? 2'd3 : 2'd2;
    tail   = '0;
    if (n_tail != '0) tail[15:0] = plan_q.offset;
    if (n_tail == 2'd3) tail[23:16] = plan_q.match_big ? 8'd255 : plan_q.match_more[7:0];
    take   = plan_valid_q && piece_room && have;
    done   = take && (state_q == Match ? !more_big_q : ends && !plan_q.match_big);
    last   = ends && plan_q.last;
    length = ends ? plan_q.match_more : more;
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      more_q     <= length - 23'd255;
      more_big_q <= length >= 23'd510;
      n_q        <= {left[22:3] - 20'(eight), left[2:0]};
      up_to8_q   <= eight ? up_to16 : up_to8;
      unique case (state_q)
        Token:   if (!ends) state_q <= plan_q.more_big ? Length : Literals;
        Length:  if (!more_big_q) state_q <= Literals;
        default: ;
      endcase
      if (ends) state_q <= Match;
      if (done) state_q <= Token;
    end
    if (!rst_ni) state_q <= Token;
  end

  wpr_lz_pieces pieces (
    .clk_i,
    .rst_ni,
    .room_o    (piece_room),
    .s_valid_i (take),
    .s_n_head_i(n_head),
    .s_head_i  (head),
    .s_n_i     (n),
    .s_n_tail_i(n_tail),
    .s_tail_i  (tail),
    .s_last_i  (last),
    .bytes_i   (bytes),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
