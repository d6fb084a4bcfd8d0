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

  input  logic [ 3:0] want_i,  // 0 to 8 literals
  output logic        have_o,  // they are there
  input  logic        take_i,  // with have_o
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
  logic [3:0] n_q, run_of_q, end_q, lead_q, behind_q;
  logic [2:0] begin_of_rest_q;
  logic [22:0] left_q;
  logic [63:0] record_q;
  logic [2:0] at_q;
  logic [15:0] offset_of_q;
  always_ff @(posedge clk_i) begin
    valid_q <= s_valid_i && rst_ni;
    {first_q, last_q, start_q} <= {s_first_i, s_last_i, s_start_i};
    {n_q, run_of_q, end_q, at_q} <= {s_n_i, s_run_i, s_end_i, s_at_i};
    {left_q, record_q, offset_of_q} <= {s_left_i, s_bytes_i, s_offset_i};
    lead_q          <= (s_start_i ? 4'(s_at_i) : s_n_i) - s_run_i;
    begin_of_rest_q <= s_start_i ? s_end_i[2:0] : s_n_i[2:0];
    behind_q        <= s_start_i ? s_n_i - s_end_i : 4'd0;
  end

  logic open_q, raw_q, close_q, push_q, full, starts, ends, raw;
  logic [22:0] literals_q, size_q, run_q, run;
  logic [15:0] offset_q;
  logic [3:0] lead, behind, cont;
  logic [2:0] begin_of_rest;  // in a window
  sequence_t sequence_q, shown;
  logic [LogQueue:0] level;
  // A match was 2^LogLiterals - 128 literals ago, or more.
  assign full   = run_q[LogLiterals-1:7] == '1 || run_q[22:LogLiterals] != '0;
  assign raw    = raw_q || (full && !Split);
  assign cont   = raw ? 4'd0 : run_of_q;
  assign starts = start_q && !raw;
  assign lead   = raw ? n_q : lead_q;
  assign behind = raw ? 4'd0 : behind_q;
  assign begin_of_rest = raw ? n_q[2:0] : begin_of_rest_q;
  assign ends   = open_q && cont != 4'd8;
  assign run    = full && Split ? '0 : run_q;
  always_ff @(posedge clk_i) begin
    push_q  <= 1'b0;
    close_q <= valid_q && last_q;
    if (valid_q) begin
      sequence_q <= '{1'b0, 1'b0, literals_q, size_q + 23'(cont), offset_q};
      push_q     <= ends;
      if (cont == 4'd8) size_q <= size_q + 23'd8;
      else open_q <= starts;
      run_q <= starts ? 23'(behind) : run + 23'(lead);
      if (starts) begin
        literals_q <= run + 23'(lead);
        size_q     <= 23'(end_q) - 23'(at_q);
        offset_q   <= offset_of_q;
      end
      if (full && (Split || !raw_q)) begin  // and no match waits to end
        sequence_q <= '{1'b0, !Split, Split ? run_q : run_q + left_q, 23'd0, 16'd0};
        push_q     <= 1'b1;
      end
      raw_q <= raw;
      if (first_q && Split) begin
        sequence_q <= '{1'b1, 1'b0, left_q, 23'd0, 16'd0};
        push_q     <= 1'b1;
      end
    end else if (close_q) begin
      sequence_q <= '{1'b0, 1'b1, run_q, 23'd0, 16'd0};
      push_q     <= !raw_q;
      run_q      <= '0;
      raw_q      <= 1'b0;
      open_q     <= 1'b0;
    end
    if (!rst_ni) begin
      {open_q, raw_q, close_q, push_q} <= '0;
      run_q <= '0;
    end
  end

  // A sequence waits until its literals are written.
  logic push1_q, push2_q;
  sequence_t sequence1_q, sequence2_q;
  always_ff @(posedge clk_i) begin
    {push2_q, push1_q} <= {push1_q, push_q} & {2{rst_ni}};
    {sequence2_q, sequence1_q} <= {sequence1_q, sequence_q};
  end
  wpr_ram_fifo #(.Width($bits(sequence_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(push2_q),
    .s_ready_o(),  // there is room: room_o
    .s_data_i (sequence2_q),
    .m_valid_o,
    .m_ready_i,
    .m_data_o (shown),
    .level_o  (level)
  );
  assign {m_first_o, m_last_o, m_n_literals_o, m_n_match_o, m_offset_o} = shown;

  // ---- literals: byte k of all lies in lane k mod 8 ---------------------------------------------

  localparam int unsigned LogLane = LogLiterals - 3;
  logic [LogLiterals-1:0] write_q, read_q;
  logic [LogLiterals:0] level1_q, level2_q;  // all that came; those that can be taken
  logic [3:0] n, n1_q, n2_q, take;
  assign take = take_i ? want_i : '0;
  assign n = valid_q ? lead + behind : 4'd0;
  logic [7:0][7:0] lane3_q;
  logic [2:0] first1_q, first2_q, first3_q;
  always_ff @(posedge clk_i) begin
    {n2_q, n1_q} <= {n1_q, n};
    write_q  <= write_q + LogLiterals'(n);
    read_q   <= read_q + LogLiterals'(take);
    level1_q <= level1_q + (LogLiterals + 1)'(n) - (LogLiterals + 1)'(take);
    level2_q <= level2_q + (LogLiterals + 1)'(n2_q) - (LogLiterals + 1)'(take);
    room_o   <= level < (LogQueue + 1)'((1 << LogQueue) - 12) &&
                level1_q < (LogLiterals + 1)'((1 << LogLiterals) - 64);
    {first3_q, first2_q, first1_q} <= {first2_q, first1_q, read_q[2:0]};
    for (int i = 0; i < 8; i++) bytes_o[8*i+:8] <= lane3_q[3'(i)+first3_q];
    if (!rst_ni) begin
      {n2_q, n1_q} <= '0;
      write_q  <= '0;
      read_q   <= '0;
      level1_q <= '0;
      level2_q <= '0;
      room_o   <= 1'b0;
    end
  end
  assign have_o = level2_q[LogLiterals:3] != '0 || want_i <= {1'b0, level2_q[2:0]};

  for (genvar j = 0; j < 8; j++) begin : g_lane
    logic [7:0] bytes_q[1 << LogLane];
    logic [LogLane-1:0] row1_q, read1_q;
    logic [7:0] byte1_q, byte2_q;
    logic [2:0] past;  // which of the literals that come is the lane's
    logic write1_q;
    assign past = 3'(j) - write_q[2:0];
    always_ff @(posedge clk_i) begin
      automatic logic [2:0] from = 4'(past) < lead ? past + cont[2:0] :
                                                       past - lead[2:0] + begin_of_rest;
      write1_q   <= 4'(past) < n;
      row1_q     <= write_q[LogLiterals-1:3] + LogLane'(j < int'(write_q[2:0]));
      byte1_q    <= record_q[8*from+:8];
      read1_q    <= read_q[LogLiterals-1:3] + LogLane'(j < int'(read_q[2:0]));
      lane3_q[j] <= byte2_q;
    end
    always_ff @(posedge clk_i) if (write1_q) bytes_q[row1_q] <= byte1_q;
    always_ff @(posedge clk_i) byte2_q <= bytes_q[read1_q];
  end

endmodule
