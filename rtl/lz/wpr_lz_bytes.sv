// SPDX-License-Identifier: Apache-2.0
// The end of the copy engine of LZ77 decoders (wpr_lz_copy): what one clock makes in, which are
// literals and matches of up to `Bytes` bytes together; a packet of bytes out, `Bytes` a beat.
//
// A clock makes literals, a match, literals and, with two Matches, a match, in this order; any of
// them may be nothing. The byte at position a is made in lane a mod Bytes. History is 2^LogWindow
// bytes in two banks of rows, so that any bytes of one match are read at once, and once for each of
// the Matches; the last 8 rows are registers, which a match with an offset up to theirs reads: it
// needs no waiting for what is on its way to the banks.
//
// Where history is Shared, it is there once, in four banks. A second match reads it by the port by
// which rows are written, in two clocks of three; in the third up to three rows are written, each to
// a bank of its own. Until then they are among the last 8.
//
// A match must not read bytes that are made in its own clock, but those of its own beginning: with
// an offset below Bytes it stands first.
//
// An offset of 0 or beyond the packet's first byte, and a byte more than the packet may have, end
// the packet with m_axis_tuser set beside m_axis_tlast. So does s_bad_i. Nothing stops behind
// s_valid_i: ready_o says when it may be set. Latency 10 clocks; a queue takes what is on its way.
module wpr_lz_bytes #(
  parameter int unsigned Bytes = 8,  // 8 or 16
  parameter int unsigned Matches = 1,  // 1 or 2
  parameter bit Shared = 1'b0,  // history is there once, for two matches
  parameter int unsigned SizeWidth = 23,  // bits of a packet's size
  parameter int unsigned LogWindow = 16,  // offsets are up to 2^LogWindow,
  parameter int unsigned OffsetWidth = LogWindow,  // where so many bits can say that
  parameter bit Exact = 1'b0  // a packet that has fewer bytes than it may is not valid
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                 s_cmd_tvalid,
  output logic                 s_cmd_tready,
  input  logic [SizeWidth-1:0] s_cmd_tdata,   // bytes that the next packet may have

  output logic                               ready_o,         // in the next clock it may be valid
  output logic                               reads_o,         // and have a second match of history
  input  logic                               s_valid_i,
  input  logic                               s_end_i,         // of the packet: no bytes
  input  logic                               s_bad_i,         // with s_end_i: it is not valid
  input  logic [3:0][$clog2(Bytes):0]        s_ends_i,        // of literals, match, literals, match
  input  logic [Matches-1:0][OffsetWidth-1:0] s_offset_i,
  input  logic [$clog2(Bytes):0]             s_n_literals_i,  // of both

  input logic [$clog2(Bytes):0]   literals_n_i,      // 0 to Bytes come: bytes_i from begin_i on,
  input logic [$clog2(Bytes):0]   literals_begin_i,
  input logic [Bytes-1:0]         literals_first_i,  // as in wpr_lz_literals
  input logic [$clog2(Bytes):0]   literals_behind_i,
  input logic [16*Bytes-1:0]      literals_bytes_i,

  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [8*Bytes-1:0] m_axis_tdata,
  output logic [  Bytes-1:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or no byte
  output logic               m_axis_tlast,
  output logic               m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned LogBytes = $clog2(Bytes);
  localparam int unsigned LogQueue = 5;
  localparam int unsigned LogBanks = Shared ? 2 : 1;
  localparam int unsigned Banks = 1 << LogBanks;
  localparam int unsigned LogRows = LogWindow - LogBytes - LogBanks;  // of a bank
  localparam int unsigned LogRecent = LogBytes + 3;
  localparam int unsigned PositionWidth = LogWindow + 1;
  typedef logic [LogBytes:0] count_t;
  typedef logic [LogBytes-1:0] lane_t;
  typedef logic [OffsetWidth-1:0] offset_t;
  typedef logic [8*Bytes-1:0] row_t;

  // Lane j of the result is lane j - n of the row.
  function automatic row_t turned(row_t row, lane_t n);
    turned = row_t'({row, row} >> {(LogBytes + 1)'(Bytes) - (LogBytes + 1)'(n), 3'b0});
  endfunction

  // ---- literals, and where bytes lie: positions count from the packet's first byte --------------

  row_t literals1;
  lane_t lane1;
  wpr_lz_literals #(.Bytes(Bytes)) literals (
    .clk_i,
    .rst_ni,
    .n_i    (literals_n_i),
    .begin_i(literals_begin_i),
    .first_i(literals_first_i),
    .behind_i(literals_behind_i),
    .bytes_i(literals_bytes_i),
    .take_i (s_valid_i ? s_n_literals_i : '0),
    .lanes_o(literals1),
    .first_o(lane1)
  );

  logic packet_q, room_q;
  logic [LogWindow:0] position_q;  // and from 2^LogWindow on that or more
  logic packet_ends;
  count_t n1;
  assign n1           = s_ends_i[3];
  assign packet_ends  = s_valid_i && s_end_i;
  assign ready_o      = packet_q && room_q && !packet_ends;
  assign s_cmd_tready = !packet_q;
  always_ff @(posedge clk_i) begin
    if (s_valid_i) begin
      position_q <= {position_q[LogWindow], LogWindow'(0)} |
                    (PositionWidth'(position_q[LogWindow-1:0]) + PositionWidth'(n1));
    end
    if (s_cmd_tready && s_cmd_tvalid) packet_q <= 1'b1;
    if (packet_ends || !rst_ni) begin
      packet_q   <= 1'b0;
      position_q <= '0;
    end
  end

  logic [SizeWidth-1:0] left_size_q;  // before what is in stage 2
  logic v2_q, end2_q, bad2_q, begun2_q;
  count_t [3:0] ends2_q;
  lane_t lane2_q;
  offset_t [Matches-1:0] offset2_q;
  logic [LogWindow-1:0] at2_q;
  logic [Matches-1:0][LogWindow:0] match2_q;  // where it begins
  row_t literals2_q;
  always_ff @(posedge clk_i) begin
    v2_q        <= s_valid_i && rst_ni;
    end2_q      <= s_end_i;
    bad2_q      <= s_bad_i;
    ends2_q     <= s_ends_i;
    lane2_q     <= lane1;
    offset2_q   <= s_offset_i;
    literals2_q <= literals1;
    at2_q       <= position_q[LogWindow-1:0];
    begun2_q    <= position_q != '0;
    for (int m = 0; m < int'(Matches); m++) begin
      match2_q[m] <= {position_q[LogWindow], LogWindow'(0)} |
                     (PositionWidth'(position_q[LogWindow-1:0]) + PositionWidth'(s_ends_i[2*m]));
    end
  end

  // A packet that is not valid makes nothing from there to its end.
  logic v3_q, end3_q, wrong3_q, wrong2, begun3_q;
  count_t [3:0] ends3_q;
  lane_t turn3_q, turn_behind3_q;  // of literals, before and behind the first match
  offset_t [Matches-1:0] offset3_q;
  logic [LogWindow-1:0] at3_q;
  logic [Matches-1:0][LogWindow-1:0] from3_q;
  row_t literals3_q;
  always_ff @(posedge clk_i) begin
    if (v2_q) left_size_q <= left_size_q - SizeWidth'(ends2_q[3]);
    if (s_cmd_tready && s_cmd_tvalid) left_size_q <= s_cmd_tdata;  // behind the end's turn
  end
  always_comb begin
    wrong2 = SizeWidth'(ends2_q[3]) > left_size_q ||
             (end2_q && (bad2_q || (Exact && left_size_q != '0)));
    for (int m = 0; m < int'(Matches); m++) begin
      if (ends2_q[2*m+1] != ends2_q[2*m] &&
          (offset2_q[m] == '0 || PositionWidth'(offset2_q[m]) > match2_q[m])) wrong2 = 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    v3_q           <= v2_q;
    end3_q         <= end2_q;
    ends3_q        <= ends2_q;
    turn3_q        <= at2_q[LogBytes-1:0] - lane2_q;
    turn_behind3_q <= at2_q[LogBytes-1:0] - lane2_q + lane_t'(ends2_q[1]) - lane_t'(ends2_q[0]);
    offset3_q      <= offset2_q;
    literals3_q    <= literals2_q;
    at3_q          <= at2_q;
    begun3_q       <= begun2_q;
    for (int m = 0; m < int'(Matches); m++) begin
      from3_q[m] <= match2_q[m][LogWindow-1:0] - LogWindow'(offset2_q[m]);
    end
    if (v2_q) wrong3_q <= wrong2 || (wrong3_q && !(v3_q && end3_q));
    if (v3_q && end3_q && !v2_q) wrong3_q <= 1'b0;
    if (!rst_ni) begin
      v3_q     <= 1'b0;
      wrong3_q <= 1'b0;
    end
  end

  // ---- from where: rows of history are read, and meanwhile lanes get their orders ---------------

  // Of one clock's bytes, what is the same in all lanes.
  typedef struct packed {
    count_t [3:0] ends;
    lane_t turn;
    lane_t turn_behind;
    lane_t [Matches-1:0] offset;
    logic close;  // the first match's offset is below Bytes
    logic [Matches-1:0] nearby;  // a match reads the last rows
    logic [Matches-1:0][LogRecent-1:0] recent;  // byte of those that stands `offset` before
    logic [Matches-1:0][LogBanks+LogBytes-1:0] from;  // where history is read: bank, lane
  } orders_t;
  orders_t orders3, orders4_q, orders5_q, orders6_q;
  always_comb begin
    orders3.ends        = ends3_q;
    orders3.turn        = turn3_q;
    orders3.turn_behind = turn_behind3_q;
    orders3.close       = offset3_q[0][OffsetWidth-1:LogBytes] == '0;
    for (int m = 0; m < int'(Matches); m++) begin
      orders3.offset[m] = offset3_q[m][LogBytes-1:0];
      orders3.nearby[m]   = offset3_q[m] <= OffsetWidth'(8 * Bytes);
      orders3.recent[m] = at3_q[LogRecent-1:0] - offset3_q[m][LogRecent-1:0];
      orders3.from[m]   = from3_q[m][LogBanks+LogBytes-1:0];
    end
  end

  logic [7:4] v_q, end_q, wrong_q, begun_q;
  logic [7:4][LogWindow-1:0] at_q;
  logic [7:4][LogBytes:0] n_q;
  row_t literals4_q, literals5_q, literals6_q;
  always_ff @(posedge clk_i) begin
    {orders6_q, orders5_q, orders4_q}       <= {orders5_q, orders4_q, orders3};
    {literals6_q, literals5_q, literals4_q} <= {literals5_q, literals4_q, literals3_q};
    v_q     <= {v_q[6:4], v3_q} & {4{rst_ni}};
    end_q   <= {end_q[6:4], end3_q};
    wrong_q <= {wrong_q[6:4], wrong3_q};
    begun_q <= {begun_q[6:4], begun3_q};
    at_q    <= {at_q[6:4], at3_q};
    n_q     <= {n_q[6:4], ends3_q[3]};
  end

  // Rows to write by bank, and what is read of each bank for each match.
  logic [Banks-1:0] write;
  logic [Banks-1:0][LogRows-1:0] write_at;
  row_t [Banks-1:0] write_row;
  logic [Banks-1:0][Matches-1:0][LogRows-1:0] from4_q;
  row_t [Banks-1:0][Matches-1:0] read5_q, read6_q;
  // What is Shared has in stage 4 the turn of rows, 0, or of second matches, 1 and 2; what is valid
  // in the next clock comes there four clocks from now.
  logic [1:0] turn_q;
  logic reads_q;
  assign reads_o = !Shared || reads_q;
  always_ff @(posedge clk_i) begin
    for (int b = 0; b < int'(Banks); b++) begin
      for (int m = 0; m < int'(Matches); m++) begin
        from4_q[b][m] <= from3_q[m][LogWindow-1:LogBytes+LogBanks] +
                         LogRows'(b == 0 && from3_q[m][LogBytes+:LogBanks] == '1);
      end
    end
    read6_q <= read5_q;
    turn_q  <= !rst_ni || turn_q == 2'd2 ? '0 : turn_q + 2'd1;
    reads_q <= turn_q != 2'd1;
  end
  for (genvar b = 0; b < int'(Banks); b++) begin : g_bank
    if (Shared) begin : g_shared
      row_t rows_q[1 << LogRows];
      logic [LogRows-1:0] at;
      assign at = turn_q == '0 ? write_at[b] : from4_q[b][Matches-1];
      always_ff @(posedge clk_i) read5_q[b][0] <= rows_q[from4_q[b][0]];
      always_ff @(posedge clk_i) begin
        if (write[b]) rows_q[at] <= write_row[b];
        else read5_q[b][Matches-1] <= rows_q[at];
      end
    end else begin : g_own
      for (genvar m = 0; m < int'(Matches); m++) begin : g_match
        row_t rows_q[1 << LogRows];
        always_ff @(posedge clk_i) if (write[b]) rows_q[write_at[b]] <= write_row[b];
        always_ff @(posedge clk_i) read5_q[b][m] <= rows_q[from4_q[b][m]];
      end
    end
  end

  // i mod offset, of offsets from 1 to Bytes - 1: [offset][i].
  function automatic logic [Bytes-1:0][Bytes-1:0][LogBytes-1:0] modulo_table();
    for (int offset = 0; offset < int'(Bytes); offset++) begin
      for (int i = 0; i < int'(Bytes); i++) begin
        modulo_table[offset][i] = lane_t'(offset == 0 ? i : i % offset);
      end
    end
  endfunction
  localparam logic [Bytes-1:0][Bytes-1:0][LogBytes-1:0] Modulo = modulo_table();

  // What a lane does with its byte, and from where it takes it.
  typedef struct packed {
    logic write;
    logic second;  // row of what is made
    logic literal;
    logic behind;  // a literal behind the first match, or the second match
    logic nearby;
    logic [LogRecent-1:0] recent;
    logic [Matches-1:0][LogBanks-1:0] bank;  // that has the lane's byte of history
  } order_t;
  order_t [Bytes-1:0] lanes5, lanes6_q;
  always_comb begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic lane_t i = lane_t'(j) - at_q[5][LogBytes-1:0];  // the byte's number in this clock
      automatic logic [3:0] under;  // these ends
      automatic logic second_match;
      automatic lane_t past = orders5_q.close ? Modulo[orders5_q.offset[0]][i] : i;
      for (int e = 0; e < 4; e++) under[e] = {1'b0, i} < orders5_q.ends[e];
      second_match      = Matches == 2 && !under[2];
      lanes5[j].write   = under[3];
      lanes5[j].second  = lane_t'(j) < at_q[5][LogBytes-1:0];
      lanes5[j].literal = under[0] || (under[2] && !under[1]);
      lanes5[j].behind  = !under[0] && (lanes5[j].literal || second_match);
      lanes5[j].nearby    = !lanes5[j].literal && orders5_q.nearby[second_match?Matches-1 : 0];
      lanes5[j].recent  = second_match ? orders5_q.recent[Matches-1] + LogRecent'(i) :
                                         orders5_q.recent[0] + LogRecent'(past);
      for (int m = 0; m < int'(Matches); m++) begin
        lanes5[j].bank[m] = orders5_q.from[m][LogBytes+:LogBanks] +
                            LogBanks'(lane_t'(j) < orders5_q.from[m][LogBytes-1:0]);
      end
    end
  end
  always_ff @(posedge clk_i) lanes6_q <= lanes5;

  // What needs no recent byte.
  row_t [1:0] turned_literals;
  row_t [Matches-1:0] matched;
  always_comb begin
    turned_literals[0] = turned(literals6_q, orders6_q.turn);
    turned_literals[1] = turned(literals6_q, orders6_q.turn_behind);
    for (int m = 0; m < int'(Matches); m++) begin
      automatic row_t matched_row;
      for (int j = 0; j < int'(Bytes); j++) begin
        matched_row[8*j+:8] = read6_q[lanes6_q[j].bank[m]][m][8*j+:8];
      end
      matched[m] = turned(matched_row, orders6_q.offset[m]);
    end
  end
  row_t known7_q;
  logic [Bytes-1:0] use_recent7_q;
  logic [Bytes-1:0][LogRecent-1:0] recent7_q;
  logic [Bytes-1:0][7:0] write7_q;  // a lane's rows
  always_ff @(posedge clk_i) begin
    for (int j = 0; j < int'(Bytes); j++) begin
      automatic logic [2:0] row = at_q[6][LogBytes+:3] + 3'(lanes6_q[j].second);
      known7_q[8*j+:8] <= lanes6_q[j].literal ? turned_literals[lanes6_q[j].behind][8*j+:8] :
                          matched[lanes6_q[j].behind?Matches-1 : 0][8*j+:8];
      use_recent7_q[j] <= lanes6_q[j].nearby;
      recent7_q[j]     <= lanes6_q[j].recent;
      for (int r = 0; r < 8; r++) begin
        write7_q[j][r] <= v_q[6] && !wrong_q[6] && lanes6_q[j].write && row == 3'(r);
      end
    end
  end

  // ---- the last 8 rows, and those of them that are whole ----------------------------------------

  logic [8*Bytes-1:0][7:0] recent_q;
  always_ff @(posedge clk_i) begin
    for (int j = 0; j < int'(Bytes); j++) begin
      for (int r = 0; r < 8; r++) begin
        if (write7_q[j][r]) begin
          recent_q[int'(Bytes)*r+j] <= use_recent7_q[j] ? recent_q[recent7_q[j]] :
                                                          known7_q[8*j+:8];
        end
      end
    end
  end

  // A row leaves with the first byte of the next one, or with the packet's end.
  logic [LogWindow-1:0] row_at7;
  logic crosses7;
  logic leaves8_q, last8_q, bad8_q;
  logic [LogWindow-LogBytes-1:0] row8_q;
  count_t n8_q;
  assign row_at7  = at_q[7] - LogWindow'(1);
  assign crosses7 = (LogBytes + 2)'(at_q[7][LogBytes-1:0]) + (LogBytes + 2)'(n_q[7]) >
                    (LogBytes + 2)'(Bytes) || (at_q[7][LogBytes-1:0] == '0 && n_q[7] != '0);
  always_ff @(posedge clk_i) begin
    leaves8_q <= v_q[7] && (end_q[7] || (!wrong_q[7] && begun_q[7] && crosses7));
    last8_q   <= end_q[7];
    bad8_q    <= wrong_q[7];
    row8_q    <= row_at7[LogWindow-1:LogBytes];
    n8_q      <= !end_q[7] ? count_t'(Bytes) :
                 begun_q[7] && !wrong_q[7] ? {1'b0, row_at7[LogBytes-1:0]} + count_t'(1) : '0;
    if (!rst_ni) leaves8_q <= 1'b0;
  end

  logic leaves9_q, last9_q, bad9_q;
  count_t n9_q;
  row_t row9_q;
  always_ff @(posedge clk_i) begin
    leaves9_q <= leaves8_q;
    last9_q   <= last8_q;
    bad9_q    <= bad8_q;
    n9_q      <= n8_q;
    row9_q    <= recent_q[int'(Bytes)*row8_q[2:0]+:Bytes];
    if (!rst_ni) leaves9_q <= 1'b0;
  end

  // A packet's last row is never read. A row that waits is one of two, since it is its bank's.
  if (Shared) begin : g_waits
    logic [Banks-1:0] waits_q;
    logic [Banks-1:0][LogRows-1:0] write_at_q;
    always_comb begin
      for (int b = 0; b < int'(Banks); b++) begin
        automatic logic leaves = leaves8_q && !last8_q && row8_q[LogBanks-1:0] == LogBanks'(b);
        write[b]     = turn_q == '0 && (waits_q[b] || leaves);
        write_at[b]  = waits_q[b] ? write_at_q[b] : row8_q[LogBanks+:LogRows];
        write_row[b] = recent_q[int'(Bytes)*{write_at[b][0], LogBanks'(b)}+:Bytes];
      end
    end
    always_ff @(posedge clk_i) begin
      for (int b = 0; b < int'(Banks); b++) begin
        if (leaves8_q && !last8_q && row8_q[LogBanks-1:0] == LogBanks'(b)) waits_q[b] <= 1'b1;
        if (turn_q == '0 || !rst_ni) waits_q[b] <= 1'b0;
      end
      write_at_q <= write_at;
    end
  end else begin : g_writes
    logic [LogRows-1:0] row_at9_q;
    logic odd9_q;
    always_ff @(posedge clk_i) {row_at9_q, odd9_q} <= row8_q;
    assign write     = {leaves9_q && odd9_q, leaves9_q && !odd9_q};
    assign write_at  = {2{row_at9_q}};
    assign write_row = {2{row9_q}};
  end

  logic [LogQueue:0] level;
  count_t n_out;
  wpr_fifo #(.Width(8 * Bytes + LogBytes + 3), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(leaves9_q),
    .s_ready_o(),
    .s_data_i ({bad9_q, last9_q, n9_q, row9_q}),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o ({m_axis_tuser, m_axis_tlast, n_out, m_axis_tdata}),
    .level_o  (level)
  );
  always_comb for (int i = 0; i < int'(Bytes); i++) m_axis_tkeep[i] = count_t'(i) < n_out;
  always_ff @(posedge clk_i) room_q <= rst_ni && level < (LogQueue + 1)'(18);

endmodule
