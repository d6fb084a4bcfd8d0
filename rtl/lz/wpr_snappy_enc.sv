// SPDX-License-Identifier: Apache-2.0
// snappy encoder (codecs/snappy/spec.md): a packet of bytes in, 8 a beat; a packet of its code out,
// 8 bytes a beat, no larger than snappy::MaxCompressedLength says. Which code it is follows from
// the bytes alone.
//
// s_cmd says how many bytes a packet has, 0 (then no beat comes) to 4 MiB; a packet that has others
// gives a code without use, and what follows it, too. Offsets are below 65,280. Literals of a tag
// are at most 2^LogLiterals - 120.
//
// Rate: 8 bytes a clock, less what a code is larger than its bytes; a literal and a copy, or 8 of
// the literal's bytes, or 64 of a long copy, a clock. The first byte leaves with the packet's first
// window.
module wpr_snappy_enc #(
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

  logic q_valid, q_ready, q_first, q_last, have, take;
  logic [22:0] q_n, q_match;
  logic [15:0] q_offset;
  logic [3:0] n;
  logic [63:0] bytes;
  wpr_lz_sequences #(.LogLiterals(LogLiterals), .Split(1)) sequences (
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
    .m_first_o     (q_first),
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
    logic [22:0] match;
    logic [15:0] offset;
    logic [2:0] n_head;  // bytes of the tag, or of the packet's size
    logic [31:0] head;
    logic up_to8;        // n <= 8
    logic up_to16;       // n <= 16
    logic one_copy;      // match <= 64
    logic any_copy;
  } plan_t;
  plan_t plan_q;
  logic plan_valid_q, done;
  logic tag1, tag2;    // bytes of a tag
  logic [15:0] less;  // literals less one
  logic [2:0] n_tag, n_size;
  logic [31:0] tag, size;
  always_comb begin
    tag1   = q_n <= 23'd60;
    tag2   = q_n <= 23'd256;
    less   = q_n[15:0] - 16'd1;
    n_tag  = q_n == '0 ? 3'd0 : tag1 ? 3'd1 : tag2 ? 3'd2 : 3'd3;
    tag    = {8'd0, less, tag1 ? {less[5:0], 2'b00} : tag2 ? 8'd240 : 8'd244};
    n_size = q_n[22:21] != '0 ? 3'd4 : q_n[20:14] != '0 ? 3'd3 : q_n[13:7] != '0 ? 3'd2 : 3'd1;
    size   = {6'd0, q_n[22:21], n_size > 3'd3, q_n[20:14], n_size > 3'd2, q_n[13:7],
              n_size > 3'd1, q_n[6:0]};
  end
  assign q_ready = !plan_valid_q || done;
  always_ff @(posedge clk_i) begin
    if (q_ready) begin
      plan_valid_q <= q_valid;
      plan_q <= '{
          q_last,
          q_first ? 23'd0 : q_n,
          q_match,
          q_offset,
          q_first ? n_size : n_tag,
          q_first ? size : tag,
          q_first || q_n <= 23'd8,
          q_first || q_n <= 23'd16,
          q_match <= 23'd64,
          q_match != '0
      };
    end
    if (!rst_ni) plan_valid_q <= 1'b0;
  end

  // ---- pieces of a code: a tag with what follows, or more literals, or more of a copy -----------

  typedef enum logic [1:0] {Tag, Literals, Copy} state_e;
  state_e state_q;
  logic piece_room, last, ends, one_copy, near;
  logic up_to8, up_to16;
  logic [22:0] left, n_q;  // literals
  logic up_to8_q;          // n_q <= 8
  logic [22:0] copy, copy_q;
  logic one_copy_q;        // copy_q <= 64
  logic [2:0] n_head;
  logic [31:0] head;
  logic [1:0] n_tail;
  logic [23:0] tail;
  logic [5:0] copied;  // less one
  always_comb begin
    {left, up_to8, up_to16} = state_q == Tag ? {plan_q.n, plan_q.up_to8, plan_q.up_to16}
                                             : {n_q, up_to8_q, n_q <= 23'd16};
    {copy, one_copy} = state_q == Copy ? {copy_q, one_copy_q} : {plan_q.match, plan_q.one_copy};
    ends   = state_q == Copy || up_to8;  // the literals are all
    n      = state_q == Copy ? 4'd0 : up_to8 ? left[3:0] : 4'd8;
    n_head = state_q == Tag ? plan_q.n_head : 3'd0;
    head   = plan_q.head;
    copied = one_copy ? copy[5:0] - 6'd1 : 6'd63;
    near   = copy >= 23'd4 && copy < 23'd12 && plan_q.offset < 16'd2048;
    n_tail = '0;
    tail   = '0;
    if (ends && plan_q.any_copy) begin
      n_tail = near ? 2'd2 : 2'd3;
      tail   = near ? {8'd0, plan_q.offset[7:0], plan_q.offset[10:8], 3'(copy - 23'd4), 2'b01}
                    : {plan_q.offset, copied, 2'b10};
    end
    take = plan_valid_q && piece_room && have;
    done = take && ends && (one_copy || !plan_q.any_copy);
    last = ends && plan_q.last;
  end
  always_ff @(posedge clk_i) begin
    if (take) begin
      n_q        <= {left[22:3] - 20'd1, left[2:0]};
      up_to8_q   <= up_to16;
      copy_q     <= {copy[22:6] - 17'd1, copy[5:0]};
      one_copy_q <= copy <= 23'd128;
      state_q    <= done ? Tag : ends ? Copy : Literals;
    end
    if (!rst_ni) state_q <= Tag;
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
