// SPDX-License-Identifier: Apache-2.0
// Records of windows (wpr_lz_match) to sequences, so many literals and a match, in a queue; and the
// literals. Both lie in block RAM, so that a packet can come in while the literals of one before it
// leave.
//
// Literals without a match fill the memory in the end. With Split a sequence without a match then
// takes them away. Otherwise the rest of the packet becomes literals, and its last sequence, which
// says how many, leaves at once. With Split a packet begins with a record of its size.
module wpr_lz_sequences #(
  parameter int unsigned LogLiterals = 16,  // bytes, 10 or more
  parameter bit          Split       = 0
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  output logic        room_o,     // for two records and those behind them
  input  logic        s_valid_i,  // wpr_lz_match
  input  logic        s_first_i,
  input  logic        s_last_i,
  input  logic [ 3:0] s_n_i,
  input  logic [22:0] s_left_i,
  input  logic [63:0] s_bytes_i,
  input  logic [ 3:0] s_run_i,
  input  logic        s_start_i,
  input  logic [ 2:0] s_at_i,
  input  logic [ 3:0] s_end_i,
  input  logic [15:0] s_offset_i,

  output logic        m_valid_o,
  input  logic        m_ready_i,
  output logic        m_first_o,       // with Split: n_literals is the packet's size
  output logic        m_last_o,        // the packet's last one, without a match
  output logic [22:0] m_n_literals_o,
  output logic [22:0] m_n_match_o,     // bytes, 0 or 4 and more
  output logic [15:0] m_offset_o,

  output logic        have_o,  // the next 8 literals are there, or all of the sequence
  input  logic        take_i,  // with have_o
  input  logic [ 3:0] n_i,     // so many literals, 0 to 8
  output logic [63:0] bytes_o  // those that were taken, four clocks later
);

  localparam int unsigned LogQueue = 11;
  typedef struct packed {
    logic first;
    logic last;
    logic [22:0] n_literals;
    logic [22:0] n_match;
    logic [15:0] offset;
  } sequence_t;

  // ---- sequences --------------------------------------------------------------------------------

  // A record, and what follows from it alone.
  logic valid_q, first_q, last_q, start_q;
  logic [3:0] n_q, run_of_q, size_of_q, lead_q, behind_q, all_q;
  logic [2:0] skip_q;  // from literals before its match to those behind
  logic [22:0] left_q;
  logic [63:0] record_q;
  logic [15:0] offset_of_q;
  logic [3:0] lead, behind;
  assign lead   = (s_start_i ? 4'(s_at_i) : s_n_i) - s_run_i;
  assign behind = s_start_i ? s_n_i - s_end_i : 4'd0;
  always_ff @(posedge clk_i) begin
    valid_q <= s_valid_i && rst_ni;
    {first_q, last_q, start_q} <= {s_first_i, s_last_i, s_start_i};
    {n_q, run_of_q} <= {s_n_i, s_run_i};
    {left_q, record_q, offset_of_q} <= {s_left_i, s_bytes_i, s_offset_i};
    {lead_q, behind_q} <= {lead, behind};
    all_q     <= lead + behind;
    size_of_q <= s_end_i - 4'(s_at_i);
    skip_q    <= s_end_i[2:0] - lead[2:0];
  end

  // A match was 2^LogLiterals - 128 literals ago, or more.
  localparam int unsigned Full = (1 << LogLiterals) - 128;
  logic full_q, becomes_full;
  logic open_q, raw_q, close_q, push_q, starts, ends, raw;
  logic [LogLiterals:0] literals_q, run_q, run, all_before;  // raw: run_q may be anything
  logic [22:0] size_q;
  logic [15:0] offset_q;
  logic [3:0] leads, n;
  logic [2:0] cont;  // in lanes
  sequence_t sequence_q, shown;
  logic [LogQueue:0] level;
  assign raw    = raw_q || (full_q && !Split);
  assign cont   = raw ? 3'd0 : run_of_q[2:0];
  assign leads = raw ? n_q : lead_q;
  assign n      = !valid_q ? 4'd0 : raw ? n_q : all_q;
  assign starts = start_q && !raw;
  assign ends   = open_q && !run_of_q[3];  // a match is open: so not raw
  assign run    = full_q && Split ? '0 : run_q;
  assign all_before   = run + (LogLiterals + 1)'(leads);
  assign becomes_full = run_q[LogLiterals:3] == (LogLiterals - 2)'(Full / 8 - 1) &&
                        4'(run_q[2:0]) + leads >= 4'd8;
  always_ff @(posedge clk_i) begin
    push_q  <= 1'b0;
    close_q <= valid_q && last_q;
    if (valid_q) begin
      sequence_q <= '{1'b0, 1'b0, 23'(literals_q), size_q + 23'(run_of_q), offset_q};
      push_q     <= ends;
      if (run_of_q[3]) size_q <= size_q + 23'd8;
      else open_q <= starts;
      run_q  <= starts ? (LogLiterals + 1)'(behind_q) : all_before;
      full_q <= becomes_full && !starts;
      if (starts) begin
        literals_q <= all_before;
        size_q     <= 23'(size_of_q);
        offset_q   <= offset_of_q;
      end
      if (full_q && (Split || !raw_q)) begin  // and no match waits to end
        sequence_q <= '{1'b0, !Split, Split ? 23'(run_q) : 23'(run_q) + left_q, 23'd0, 16'd0};
        push_q     <= 1'b1;
      end
      raw_q <= raw;
      if (first_q && Split) begin
        sequence_q <= '{1'b1, 1'b0, left_q, 23'd0, 16'd0};
        push_q     <= 1'b1;
      end
    end else if (close_q) begin
      sequence_q <= '{1'b0, 1'b1, 23'(run_q), 23'd0, 16'd0};
      push_q     <= !raw_q;
      run_q      <= '0;
      {raw_q, full_q, open_q} <= '0;
    end
    if (!rst_ni) begin
      {open_q, raw_q, full_q, close_q, push_q} <= '0;
      run_q <= '0;
    end
  end

  wpr_ram_fifo #(.Width($bits(sequence_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(push_q),
    .s_ready_o(),  // there is room: room_o
    .s_data_i (sequence_q),
    .m_valid_o,
    .m_ready_i,
    .m_data_o (shown),
    .level_o  (level)
  );
  assign {m_first_o, m_last_o, m_n_literals_o, m_n_match_o, m_offset_o} = shown;

  // ---- literals: byte k of all lies in lane k mod 8 ---------------------------------------------

  // A sequence leaves the queue when its literals are written, but for those of a packet that goes
  // on raw. 8 of those are there when the level, which is of two clocks ago, has what three clocks
  // take.
  localparam int unsigned LogLane = LogLiterals - 3;
  logic [LogLiterals-1:0] write_q, read_q;
  logic [LogLiterals:0] level_q;
  logic signed [4:0] change_q;
  logic [3:0] take;
  logic [7:0][7:0] lane4_q;
  logic [63:0] record1_q;
  logic [2:0] first1_q, first2_q, first3_q;
  assign take = take_i ? n_i : '0;
  always_ff @(posedge clk_i) begin
    write_q  <= write_q + LogLiterals'(n);
    read_q   <= read_q + LogLiterals'(take);
    change_q <= 5'(n) - 5'(take);
    level_q  <= level_q + (LogLiterals + 1)'(change_q);
    have_o   <= !raw_q || level_q >= (LogLiterals + 1)'(24);
    room_o   <= level < (LogQueue + 1)'((1 << LogQueue) - 12) &&
                level_q < (LogLiterals + 1)'((1 << LogLiterals) - 64);
    record1_q <= record_q;
    {first3_q, first2_q, first1_q} <= {first2_q, first1_q, read_q[2:0]};
    for (int i = 0; i < 8; i++) bytes_o[8*i+:8] <= lane4_q[3'(i)+first3_q];
    if (!rst_ni) begin
      {write_q, read_q, change_q, level_q} <= '0;
      room_o <= 1'b0;
    end
  end

  for (genvar j = 0; j < 8; j++) begin : g_lane
    logic [7:0] bytes_q[1 << LogLane];
    logic [LogLane-1:0] row1_q, row2_q, read1_q;
    logic [7:0] byte2_q, byte3_q;
    logic [2:0] past, from1_q;  // which of the literals that come is the lane's; which byte
    logic write1_q, write2_q;
    assign past = 3'(j) - write_q[2:0];
    always_ff @(posedge clk_i) begin
      write1_q   <= 4'(past) < n;
      row1_q     <= write_q[LogLiterals-1:3] + LogLane'(j < int'(write_q[2:0]));
      from1_q    <= past + (4'(past) < leads ? cont : skip_q);
      write2_q   <= write1_q;
      row2_q     <= row1_q;
      byte2_q    <= record1_q[8*from1_q+:8];
      read1_q    <= read_q[LogLiterals-1:3] + LogLane'(j < int'(read_q[2:0]));
      lane4_q[j] <= byte3_q;
    end
    always_ff @(posedge clk_i) if (write2_q) bytes_q[row2_q] <= byte2_q;
    always_ff @(posedge clk_i) byte3_q <= bytes_q[read1_q];
  end

endmodule
