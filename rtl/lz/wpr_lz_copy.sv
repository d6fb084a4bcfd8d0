// SPDX-License-Identifier: Apache-2.0
// The copy engine of LZ77 decoders: elements in, each of literals and a match behind them; a packet
// of bytes out, 8 a beat. The literals themselves come beside, three clocks before their element or
// earlier (wpr_lz_literals).
//
// A clock makes up to 8 bytes: the end of a match and the literals behind it, or literals and the
// beginning of their match. History is 2^LogWindow bytes in two banks of rows of 8, so that any 8
// bytes that stand in a row are read at once; the last 64 bytes are registers, which a match with an
// offset up to 64 reads: it needs no waiting for what is on its way to the banks.
//
// An offset of 0 or beyond the packet's first byte, and a byte more than the packet may have, end
// the packet with m_axis_tuser set beside m_axis_tlast. So does an element that says so. Its bytes
// are then not to be used, and never more than the packet may have. Elements up to the next end are
// thrown away.
//
// Rate: 8 bytes a clock at most; an element takes a clock or more, or less where its literals fit
// behind the match before. Latency 11 clocks. Nothing behind the first stage stops; a queue
// takes what is on its way.
module wpr_lz_copy #(
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

  input  logic        s_valid_i,
  output logic        s_ready_o,
  input  logic        s_end_i,         // of the packet: no literal and no match
  input  logic        s_bad_i,         // with s_end_i: the packet is not valid
  input  logic [ 4:0] s_n_literals_i,
  input  logic [ 8:0] s_n_match_i,     // bytes, or 0
  input  logic [OffsetWidth-1:0] s_offset_i,

  input logic [  3:0] literals_n_i,      // 0 to 8 come: bytes_i from begin_i on
  input logic [  3:0] literals_begin_i,  // 0 to 8
  input logic [127:0] literals_bytes_i,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or for no byte
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned LogQueue = 5;
  localparam int unsigned LogRows = LogWindow - 4;  // of a bank
  localparam int unsigned PositionWidth = LogWindow + 1;

  // ---- what is made in this clock ---------------------------------------------------------------

  // The next element; the one that is made, of which `waiting` literals are left, `all` bytes with
  // its match, and for literals of the next one, behind a match that ends in this clock, `space`.
  typedef struct packed {
    logic        last;
    logic        bad;
    logic        close;    // a match that would read literals of its own clock
    logic [OffsetWidth-1:0] offset;
    logic [8:0]  n_match;
    logic [8:0]  all;
    logic [4:0]  waiting;
  } element_t;
  element_t next, made_q;
  logic next_valid, made_valid_q, packet_q, ended_q, room_q, go, finish;
  logic ends_q;  // the element, in this clock
  logic [3:0] space_q;
  wpr_skid #(.Width($bits(element_t))) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o,
    .s_data_i ({s_end_i, s_bad_i, s_offset_i[OffsetWidth-1:3] == '0, s_offset_i, s_n_match_i,
                s_n_match_i + 9'(s_n_literals_i), s_n_literals_i}),
    .m_valid_o(next_valid),
    .m_ready_i(finish || !made_valid_q),
    .m_data_o (next)
  );

  logic fits, all_long, rest_long, rest_close;
  logic [3:0] space;
  logic [4:0] rest_waiting;
  logic [8:0] rest;
  assign go           = packet_q && !ended_q && room_q;
  assign finish       = go && made_valid_q && ends_q;
  assign space        = next_valid ? space_q : '0;  // 0 where no element is made
  assign fits         = next.waiting <= 5'(space);
  assign all_long     = next.all > 9'd16 || 5'(next.all) > 5'(space) + 5'd8;
  assign rest_waiting = made_q.waiting > 5'd8 ? made_q.waiting - 5'd8 : '0;
  assign rest_close   = made_q.close && made_q.waiting != '0 && rest_waiting == '0;
  assign rest         = rest_close ? made_q.n_match : made_q.all - 9'd8;
  assign rest_long    = rest_close ? made_q.n_match > 9'd8 : made_q.all > 9'd16;
  always_ff @(posedge clk_i) begin
    if (finish || !made_valid_q) begin
      made_valid_q   <= next_valid;
      made_q         <= next;
      made_q.waiting <= fits ? '0 : next.waiting - 5'(space);
      made_q.all     <= fits ? next.n_match : next.all - 9'(space);
      ends_q         <= fits ? next.n_match <= 9'd8 : !all_long && !next.close;
      space_q        <= next_valid && fits && next.n_match <= 9'd8 && !next.last ?
                        4'd8 - next.n_match[3:0] : '0;
    end else if (go) begin
      made_q.waiting <= rest_waiting;
      made_q.all     <= rest;
      ends_q         <= !rest_long && (rest_waiting == '0 || !made_q.close);
      space_q        <= !rest_long && rest_waiting == '0 ? 4'd8 - rest[3:0] : '0;
    end
    if (!rst_ni) begin
      made_valid_q <= 1'b0;
      space_q      <= '0;
    end
  end

  logic match_first;
  logic [3:0] n, n_literals, n_match;
  assign match_first = made_q.waiting == '0;
  assign n_literals  = match_first ? (fits ? next.waiting[3:0] : space) :
                       made_q.waiting > 5'd8 ? 4'd8 : made_q.waiting[3:0];
  assign n_match     = match_first ? n : made_q.close ? '0 : n - n_literals;
  assign n           = made_q.all > 9'd8 ? 4'd8 : made_q.all[3:0];

  logic v1_q, end1_q, bad1_q, match_first1_q;
  logic [3:0] n1, n_match1_q, n_literals1_q, n_first1;
  assign n1       = n_match1_q + n_literals1_q;
  logic [OffsetWidth-1:0] offset1_q;
  assign n_first1 = match_first1_q ? n_match1_q : n_literals1_q;
  always_ff @(posedge clk_i) begin
    v1_q           <= go && made_valid_q;
    end1_q         <= made_q.last;
    bad1_q         <= made_q.bad;
    match_first1_q <= match_first;
    n_match1_q     <= n_match;
    n_literals1_q  <= n_literals;
    offset1_q      <= made_q.offset;
    if (!rst_ni) v1_q <= 1'b0;
  end

  logic [63:0] literals1;
  logic [2:0] lane1;
  wpr_lz_literals literals (
    .clk_i,
    .rst_ni,
    .n_i    (literals_n_i),
    .begin_i(literals_begin_i),
    .bytes_i(literals_bytes_i),
    .take_i (v1_q ? n_literals1_q : '0),
    .lanes_o(literals1),
    .first_o(lane1)
  );

  // ---- where it lies: positions count from the packet's first byte ------------------------------

  logic [SizeWidth-1:0] left_size_q;
  logic [LogWindow:0] position_q;  // and from 2^LogWindow on that or more
  logic packet_ends;
  assign packet_ends  = v1_q && end1_q;
  assign s_cmd_tready = !packet_q;
  always_ff @(posedge clk_i) begin
    if (finish && made_q.last) ended_q <= 1'b1;
    if (v1_q) begin
      left_size_q <= left_size_q - SizeWidth'(n1);
      position_q  <= {position_q[LogWindow], LogWindow'(0)} |
                     (PositionWidth'(position_q[LogWindow-1:0]) + PositionWidth'(n1));
    end
    if (s_cmd_tready && s_cmd_tvalid) begin
      packet_q    <= 1'b1;
      left_size_q <= s_cmd_tdata;
    end
    if (packet_ends || !rst_ni) begin
      packet_q   <= 1'b0;
      ended_q    <= 1'b0;
      position_q <= '0;
    end
  end

  logic v2_q, end2_q, bad2_q, match_first2_q, over2_q, begun2_q;
  logic [3:0] n2_q, n_match2_q, n_first2_q;
  logic [2:0] lane2_q;
  logic [OffsetWidth-1:0] offset2_q;
  logic [LogWindow-1:0] at2_q;
  logic [LogWindow:0] match2_q;
  logic [63:0] literals2_q;
  always_ff @(posedge clk_i) begin
    v2_q           <= v1_q;
    end2_q         <= end1_q;
    bad2_q         <= bad1_q || (Exact && left_size_q != '0);
    match_first2_q <= match_first1_q;
    n2_q           <= n1;
    n_match2_q     <= n_match1_q;
    n_first2_q     <= n_first1;
    lane2_q       <= lane1;
    offset2_q      <= offset1_q;
    literals2_q    <= literals1;
    at2_q          <= position_q[LogWindow-1:0];
    begun2_q       <= position_q != '0;
    match2_q       <= {position_q[LogWindow], LogWindow'(0)} |
                      (PositionWidth'(position_q[LogWindow-1:0]) +
                       (match_first1_q ? '0 : PositionWidth'(n_first1)));
    over2_q        <= SizeWidth'(n1) > left_size_q;
    if (!rst_ni) v2_q <= 1'b0;
  end

  // A packet that is not valid makes nothing from there to its end.
  logic v3_q, end3_q, wrong3_q, beyond2, wrong2, match_first3_q, begun3_q;
  logic [3:0] n3_q, n_first3_q;
  logic [2:0] lane3_q;
  logic [OffsetWidth-1:0] offset3_q;
  logic [LogWindow-1:0] at3_q, from3_q;
  logic [63:0] literals3_q;
  logic [2:0] match3_q;
  assign beyond2 = n_match2_q != '0 && (offset2_q == '0 || PositionWidth'(offset2_q) > match2_q);
  assign wrong2  = over2_q || beyond2 || (end2_q && bad2_q);
  always_ff @(posedge clk_i) begin
    v3_q           <= v2_q;
    end3_q         <= end2_q;
    match_first3_q <= match_first2_q;
    n3_q           <= n2_q;
    n_first3_q     <= n_first2_q;
    lane3_q       <= lane2_q;
    offset3_q      <= offset2_q;
    literals3_q    <= literals2_q;
    at3_q          <= at2_q;
    begun3_q       <= begun2_q;
    match3_q       <= match2_q[2:0];
    from3_q        <= match2_q[LogWindow-1:0] - LogWindow'(offset2_q);
    if (v2_q) wrong3_q <= wrong2 || (wrong3_q && !(v3_q && end3_q));
    if (v3_q && end3_q && !v2_q) wrong3_q <= 1'b0;
    if (!rst_ni) begin
      v3_q     <= 1'b0;
      wrong3_q <= 1'b0;
    end
  end

  // ---- lanes: byte a of the packet is made in lane a mod 8 --------------------------------------

  // What a lane does with its byte, and from where it takes it.
  typedef struct packed {
    logic       write;
    logic       literal;
    logic       second;  // row of what is made
    logic       bank;    // of history
    logic [2:0] byte_of; // history
    logic [5:0] recent;  // byte of the last 64
  } lane_t;
  lane_t [7:0] lanes4, lanes4_q, lanes5_q, lanes6_q;
  logic [7:4] v_q, end_q, wrong_q, begun_q;
  logic [6:4] near_q;
  logic [7:4][LogWindow-1:0] at_q;
  logic [7:4][3:0] n_q;
  logic [6:4][63:0] literals_q;
  logic [LogRows-1:0] even4_q, odd4_q;

  // i mod offset, of offsets from 1 to 7: [offset][i].
  function automatic logic [7:0][7:0][2:0] modulo_table();
    for (int offset = 0; offset < 8; offset++) begin
      for (int i = 0; i < 8; i++) begin
        modulo_table[offset][i] = 3'(i);
        if (offset != 0) modulo_table[offset][i] = 3'(i % offset);
      end
    end
  endfunction
  localparam logic [7:0][7:0][2:0] Modulo = modulo_table();

  logic [2:0] literal3;  // how far literals are turned
  assign literal3 = at3_q[2:0] + (match_first3_q ? n_first3_q[2:0] : '0) - lane3_q;
  always_comb begin
    for (int j = 0; j < 8; j++) begin
      automatic logic [2:0] i = 3'(j) - at3_q[2:0];     // the byte's number in this clock
      automatic logic [2:0] k = 3'(j) - match3_q;       // and in the match
      automatic logic [2:0] from = 3'(j) - offset3_q[2:0];
      automatic logic [2:0] past = offset3_q[OffsetWidth-1:3] == '0 ? Modulo[offset3_q[2:0]][k] : k;
      lanes4[j].write   = {1'b0, i} < n3_q;
      lanes4[j].literal = ({1'b0, i} < n_first3_q) != match_first3_q;
      lanes4[j].second  = 3'(j) < at3_q[2:0];
      lanes4[j].bank    = from3_q[3] ^ (from < from3_q[2:0]);
      lanes4[j].byte_of = from;
      lanes4[j].recent  = from3_q[5:0] + 6'(past);
    end
  end
  always_ff @(posedge clk_i) begin
    lanes4_q   <= lanes4;
    lanes5_q   <= lanes4_q;
    lanes6_q   <= lanes5_q;
    v_q        <= {v_q[6:4], v3_q};
    end_q      <= {end_q[6:4], end3_q};
    wrong_q    <= {wrong_q[6:4], wrong3_q};
    begun_q    <= {begun_q[6:4], begun3_q};
    near_q     <= {near_q[5:4], offset3_q <= OffsetWidth'(64)};
    at_q       <= {at_q[6:4], at3_q};
    n_q        <= {n_q[6:4], n3_q};
    literals_q <= {literals_q[5:4], literals3_q};
    odd4_q     <= from3_q[LogWindow-1:4];
    even4_q    <= from3_q[LogWindow-1:4] + LogRows'(from3_q[3]);
    if (!rst_ni) v_q <= '0;
  end
  logic [2:0] literal4_q, literal5_q, literal6_q;
  always_ff @(posedge clk_i) begin
    {literal6_q, literal5_q, literal4_q} <= {literal5_q, literal4_q, literal3};
  end

  // ---- history ----------------------------------------------------------------------------------

  logic [63:0] even_q[1 << LogRows];
  logic [63:0] odd_q[1 << LogRows];
  logic [63:0] even5_q, odd5_q, even6_q, odd6_q, row9_q;
  logic write_even9, write_odd9;
  logic [LogRows-1:0] row_at9_q;
  always_ff @(posedge clk_i) if (write_even9) even_q[row_at9_q] <= row9_q;
  always_ff @(posedge clk_i) if (write_odd9) odd_q[row_at9_q] <= row9_q;
  always_ff @(posedge clk_i) even5_q <= even_q[even4_q];
  always_ff @(posedge clk_i) odd5_q <= odd_q[odd4_q];
  always_ff @(posedge clk_i) {even6_q, odd6_q} <= {even5_q, odd5_q};

  // What needs no recent byte.
  logic [7:0][7:0] known7_q;
  logic [7:0] use_recent7_q;
  logic [7:0][5:0] recent7_q;
  logic [7:0][7:0] write7_q;  // a lane's rows
  always_ff @(posedge clk_i) begin
    for (int j = 0; j < 8; j++) begin
      automatic logic [2:0] i = 3'(j) - literal6_q;
      automatic logic [2:0] row = at_q[6][5:3] + 3'(lanes6_q[j].second);
      known7_q[j] <= lanes6_q[j].literal ? literals_q[6][8*i+:8] :
                     lanes6_q[j].bank ? odd6_q[8*lanes6_q[j].byte_of+:8] :
                                        even6_q[8*lanes6_q[j].byte_of+:8];
      use_recent7_q[j] <= near_q[6] && !lanes6_q[j].literal;
      recent7_q[j]     <= lanes6_q[j].recent;
      for (int r = 0; r < 8; r++) begin
        write7_q[j][r] <= v_q[6] && !wrong_q[6] && lanes6_q[j].write && row == 3'(r);
      end
    end
  end

  // ---- the last 64 bytes, and rows of them that are whole ---------------------------------------

  logic [63:0][7:0] recent_q;
  always_ff @(posedge clk_i) begin
    for (int j = 0; j < 8; j++) begin
      for (int r = 0; r < 8; r++) begin
        if (write7_q[j][r]) begin
          recent_q[8*r+j] <= use_recent7_q[j] ? recent_q[recent7_q[j]] : known7_q[j];
        end
      end
    end
  end

  // A row leaves with the first byte of the next one, or with the packet's end.
  logic [LogWindow-1:0] row_at7;
  logic crosses7;
  logic leaves8_q, last8_q, bad8_q;
  logic [LogRows:0] row8_q;
  logic [3:0] n8_q;
  assign row_at7  = at_q[7] - LogWindow'(1);
  assign crosses7 = 5'(at_q[7][2:0]) + 5'(n_q[7]) > 5'd8 ||
                    (at_q[7][2:0] == '0 && n_q[7] != '0);
  always_ff @(posedge clk_i) begin
    leaves8_q <= v_q[7] && (end_q[7] || (!wrong_q[7] && begun_q[7] && crosses7));
    last8_q   <= end_q[7];
    bad8_q    <= wrong_q[7];
    row8_q    <= row_at7[LogWindow-1:3];
    n8_q      <= !end_q[7] ? 4'd8 : begun_q[7] && !wrong_q[7] ? {1'b0, row_at7[2:0]} + 4'd1 : '0;
    if (!rst_ni) leaves8_q <= 1'b0;
  end

  logic leaves9_q, last9_q, bad9_q, odd9_q;
  logic [3:0] n9_q;
  assign write_even9 = leaves9_q && !odd9_q;
  assign write_odd9  = leaves9_q && odd9_q;
  always_ff @(posedge clk_i) begin
    leaves9_q           <= leaves8_q;
    last9_q             <= last8_q;
    bad9_q              <= bad8_q;
    n9_q                <= n8_q;
    {row_at9_q, odd9_q} <= row8_q;
    row9_q              <= recent_q[8*row8_q[2:0]+:8];
    if (!rst_ni) leaves9_q <= 1'b0;
  end

  logic [LogQueue:0] level;
  logic [3:0] n_out;
  wpr_fifo #(.Width(70), .LogDepth(LogQueue)) queue (
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
  always_comb for (int i = 0; i < 8; i++) m_axis_tkeep[i] = 4'(i) < n_out;
  always_ff @(posedge clk_i) room_q <= rst_ni && level < (LogQueue + 1)'(18);

endmodule
