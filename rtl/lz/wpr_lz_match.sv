// SPDX-License-Identifier: Apache-2.0
// Matches of a packet with its last 64 KiB, for the encoders of lz4, snappy and zstd: 8 bytes (a
// window) a clock, whatever they are. At most one match begins in a window.
//
// s_cmd says how many bytes the packet has (0 to 2^22); as many must come, and none for 0. A record
// a window comes out: how many of its bytes go on with the match that reached its first one; then
// literals; then a match, if one begins; then literals. Last bytes follow LZ4's end rules: the last
// 5 are literals, and no match begins in the last 11. The records of a packet are a function of its
// bytes alone. At least one clock without a record follows a packet.
//
// Rate: 8 bytes a clock while room_i; two clocks between packets, and 2^LogRows + 16 once in
// 11 MiB, in which the table is cleared. Up to two records follow after room_i falls. Latency 27
// windows, or 29 with More.
module wpr_lz_match #(
  parameter int unsigned HashBytes = 4,   // that are looked up, 4 to 6; matches have 4 and more
  parameter int unsigned LogRows = 10,  // of each of 16 banks, up to 12
  parameter bit More = 1'b0  // distances for a window: four of hashes and a recent one; else two
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,

  input  logic        room_i,    // for two records and those behind them
  output logic        m_valid_o,
  output logic        m_first_o,
  output logic        m_last_o,
  output logic [ 3:0] m_n_o,     // bytes of the window: 8 but in the last one
  output logic [22:0] m_left_o,  // bytes of the packet from this window on
  output logic [63:0] m_bytes_o,
  output logic [ 3:0] m_run_o,   // bytes that go on with a match
  output logic        m_start_o, // a match begins
  output logic [ 2:0] m_at_o,    // at this byte
  output logic [ 3:0] m_end_o,   // up to before this one; 8: it may go on
  output logic [15:0] m_offset_o
);

  localparam int unsigned Banks = 16;
  localparam int unsigned TagBits = 12;
  localparam int unsigned TimeBits = 24;  // bytes since the table was cleared
  // Numbers in names are stages, of which those from 12 on are so much later.
  localparam int unsigned Late = More ? 2 : 0;
  localparam int unsigned Stages = 27 + Late;
  localparam int unsigned Hashed = More ? 4 : 2;
  localparam int unsigned Candidates = Hashed + 32'(More);
  localparam int unsigned Followers = More ? 8 : 2;
  localparam int unsigned Follow = 7;  // windows until a follower's first result is known

  // ---- windows ----------------------------------------------------------------------------------

  typedef struct packed {
    logic first;
    logic last;
    logic [3:0] n;
    logic [22:0] left;
    logic [5:0] rest;  // left, at most 63
    logic [TimeBits-1:0] at;
    logic [15:0] since;  // bytes of the packet before it, at most 65528
    logic [63:0] bytes;
  } window_t;
  window_t w_q[Stages]  /*verilator split_var*/;
  logic [Stages-1:0] v_q;
  logic go, active_q, begin_packet, clearing, fresh_q;
  logic [22:0] left_q;
  logic [15:0] since_q;
  logic [TimeBits-1:0] time_q;
  logic [LogRows:0] clear_q;
  logic first_q;
  assign clearing      = clear_q != '0;
  assign go            = room_i && (!active_q || s_axis_tvalid || left_q == '0);
  assign s_axis_tready = room_i && active_q && left_q != '0;
  assign s_cmd_tready  = room_i && !active_q && !clearing && time_q < 24'hB00000;
  assign begin_packet  = s_cmd_tvalid && s_cmd_tready;

  always_ff @(posedge clk_i) begin
    if (go) begin
      w_q[0].first  <= first_q;
      w_q[0].last   <= left_q <= 23'd8;
      w_q[0].n      <= left_q[22:3] == '0 ? left_q[3:0] : 4'd8;
      w_q[0].left   <= left_q;
      w_q[0].rest   <= left_q[22:6] == '0 ? left_q[5:0] : '1;
      w_q[0].at     <= time_q;
      w_q[0].since <= since_q;
      w_q[0].bytes  <= s_axis_tdata;
      v_q <= {v_q[Stages-2:0], active_q};
      if (active_q) begin
        left_q  <= left_q - 23'd8;
        time_q  <= time_q + TimeBits'(8);
        first_q <= 1'b0;
        if (since_q != 16'hFFF8) since_q <= since_q + 16'd8;
        if (left_q <= 23'd8) active_q <= 1'b0;
      end
      // 16 clocks in which the pipeline runs empty, then a row a clock.
      if (clearing) clear_q <= clear_q + 1'b1;
      else if (!active_q && time_q >= 24'hB00000) begin
        clear_q <= (LogRows + 1)'((1 << LogRows) - 16);
        time_q  <= TimeBits'(65536);  // a cleared entry is too far away
      end
    end
    if (begin_packet) begin
      active_q <= 1'b1;
      left_q   <= s_cmd_tdata;
      first_q  <= 1'b1;
      since_q <= '0;
    end
    fresh_q <= go;
    if (!rst_ni) begin
      active_q <= 1'b0;
      v_q      <= '0;
      fresh_q  <= 1'b0;
      clear_q  <= (LogRows + 1)'((1 << LogRows) - 16);
      time_q   <= TimeBits'(65536);
    end
  end

  always_ff @(posedge clk_i) if (go) w_q[1:Stages-1] <= w_q[0:Stages-2];

  // Of so many bytes that are left, the last 5 are literals: a match may have byte i if there are
  // i + 6 and more. Bit by bit: as a table or a carry chain it would be larger and slower.
  function automatic logic [31:0] may(input logic [5:0] rest);
    logic [31:0] set;  // i + 6 has the bit
    may = '1;
    for (int b = 0; b < 6; b++) begin
      for (int i = 0; i < 32; i++) set[i] = 1'((i + 6) >> b);
      may = rest[b] ? may | ~set : may & ~set;
    end
  endfunction

  // 8 bytes of 16, from one on.
  function automatic logic [63:0] from_byte(input logic [127:0] bytes, input logic [2:0] first);
    logic [63:0] low, high;
    {high, low} = bytes;
    if (first[2]) {high, low} = {32'd0, high, low[63:32]};
    if (first[1]) {high, low} = {16'd0, high, low[63:16]};
    return first[0] ? {high[7:0], low[63:8]} : low;
  endfunction

  // Which bytes are zero.
  function automatic logic [7:0] zeros(input logic [63:0] bytes);
    logic [63:0] any;
    any = bytes | bytes >> 4;
    any = any | any >> 2;
    any = (any | any >> 1) & 64'h0101010101010101;
    any = any | any >> 7;
    any = any | any >> 14;
    any = any | any >> 28;
    return ~any[7:0];
  endfunction

  // The lowest bit that is set, alone; without a carry chain, because much follows.
  function automatic logic [7:0] lowest(input logic [7:0] bits);
    for (int i = 0; i < 8; i++) lowest[i] = bits[i] && bits << (8 - i) == '0;
  endfunction

  // The lowest but one.
  function automatic logic [7:0] second(input logic [7:0] bits);
    logic none, one;  // of the lower four
    none      = bits[3:0] == '0;
    one       = bits[3:0] inside {4'd1, 4'd2, 4'd4, 4'd8};
    second[0] = 1'b0;
    second[1] = bits[1] && bits[0];
    second[2] = bits[2] && (bits[1] ^ bits[0]);
    second[3] = bits[3] && bits[2:0] inside {3'd1, 3'd2, 3'd4};
    second[4] = bits[4] && one;
    second[5] = bits[5] && (bits[4] ? none : one);
    second[6] = bits[6] && (bits[5:4] == '0 ? one : bits[5:4] != '1 && none);
    second[7] = bits[7] && (bits[6:4] == '0 ? one : bits[6:4] inside {3'd1, 3'd2, 3'd4} && none);
  endfunction

  // ---- what leaves ------------------------------------------------------------------------------

  typedef struct packed {
    logic found;
    logic [2:0] at;
    logic [3:0] stop;   // 8: to the window's end at least
  } match_t;
  typedef struct packed {
    logic [3:0] run;
    match_t match;
  } record_t;
  record_t record26_q;
  logic [15:0] offset26_q;

  // ---- hashes, and the table: the last place of what had the same one ---------------------------

  // The product of two polynomials over GF(2) modulo x^32 + 1; bytes beyond four go into another
  // product. A word's product is the sum of its bytes', each turned to its place. Sums, not tables of
  // half bytes: synthesis would read those before the register of the bytes.
  function automatic logic [31:0] turned(input logic [31:0] word, input int n);
    return word << n | word >> (32 - n);
  endfunction
  function automatic logic [31:0] product(input logic [7:0] bits, input logic [31:0] factor);
    product = '0;
    for (int i = 0; i < 8; i++) product ^= turned(factor, i) & {32{bits[i]}};
  endfunction

  typedef struct packed {
    logic [TimeBits-1:0] at;
    logic [TagBits-1:0] tag;
  } entry_t;
  // What a bank may take of a lane; the place is that of the window and the lane.
  typedef struct packed {
    logic [LogRows-1:0] row;
    logic [2:0] lane;
    logic [TagBits-1:0] tag;
  } taken_t;
  localparam int unsigned Ahead = HashBytes - 1;  // bytes of the next window
  logic [31:0] low[8+Ahead], high[8+Ahead];  // products of a window's bytes and of those
  for (genvar i = 0; i < 8; i++) begin : g_product
    logic [31:0] low0, high0, low1_q, high1_q;
    assign low0  = product(w_q[0].bytes[8*i+:8], 32'h9E3779B1);
    assign high0 = HashBytes > 4 ? product(w_q[0].bytes[8*i+:8], 32'h85EBCA6B) : '0;
    always_ff @(posedge clk_i) if (go) {low1_q, high1_q} <= {low0, high0};
    assign {low[i], high[i]} = {low1_q, high1_q};
    if (i < Ahead) begin : g_ahead
      assign {low[8+i], high[8+i]} = {low0, high0};
    end
  end

  logic [7:0] may2_q, won2, won3_q, won7;
  logic [3:0] bank2[8], bank6[8];
  logic [TagBits-1:0] tag7[8];
  taken_t taken3[8];
  for (genvar j = 0; j < 8; j++) begin : g_hash
    logic [31:0] sum;
    logic [3:0] bank2_q;
    taken_t taken2_q, taken3_q;
    always_comb begin
      sum = '0;
      for (int i = 0; i < int'(HashBytes); i++) begin
        sum ^= i < 4 ? turned(low[j+i], 8 * i) : turned(high[j+i], 8 * i - 32);
      end
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        bank2_q  <= sum[31-:4];
        taken2_q <= {sum[27-:LogRows], 3'(j), sum[27-LogRows-:TagBits]};
        taken3_q <= taken2_q;
      end
    end
    assign bank2[j]  = bank2_q;
    assign taken3[j] = taken3_q;
    wpr_delay #(.Width(4), .Moves(4)) bank_delay (
      .clk_i,
      .move_i  (go),
      .s_data_i(bank2_q),
      .m_data_o(bank6[j])
    );
    wpr_delay #(.Width(TagBits), .Moves(4)) tag_delay (
      .clk_i,
      .move_i  (go),
      .s_data_i(taken3_q.tag),
      .m_data_o(tag7[j])
    );
  end

  // The first lane that wants a bank gets it. Its number is looked at only where one does.
  logic [Banks-1:0] taken2, taken3_q;
  // Whether it is one of the upper four; which one of the lower and of the upper four.
  logic [Banks-1:0] upper2, upper3_q;
  logic [Banks-1:0][1:0][1:0] lane2, lane3_q;
  always_comb begin
    for (int b = 0; b < int'(Banks); b++) begin
      automatic logic [7:0] wants;
      for (int j = 0; j < 8; j++) wants[j] = may2_q[j] && bank2[j] == 4'(b);
      taken2[b]   = wants != '0;
      upper2[b] = wants[3:0] == '0;
      for (int h = 0; h < 2; h++) begin
        lane2[b][h] = {wants[4*h+:2] == '0, !wants[4*h] && (wants[4*h+1] || !wants[4*h+2])};
      end
    end
    for (int j = 0; j < 8; j++) begin
      automatic logic lost = 1'b0;
      for (int i = 0; i < j; i++) lost |= may2_q[i] && bank2[i] == bank2[j];
      won2[j] = may2_q[j] && !lost;
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      may2_q <= 8'(may(w_q[1].rest) >> 6) & {8{v_q[1]}};
      won3_q <= won2;
      {taken3_q, upper3_q, lane3_q} <= {taken2, upper2, lane2};
    end
  end
  wpr_delay #(.Width(8), .Moves(4)) won_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(won3_q),
    .m_data_o(won7)
  );

  entry_t found5[Banks], found6_q[Banks];
  logic [TimeBits-4:0] at4_q;  // of the window
  for (genvar b = 0; b < int'(Banks); b++) begin : g_bank
    entry_t entries_q[1 << LogRows];
    entry_t found5_q;
    taken_t taken4_q;
    logic write4_q;
    always_ff @(posedge clk_i) begin
      if (go) begin
        taken4_q <= clear_q[LogRows] ? {clear_q[LogRows-1:0], 3'd0, TagBits'(0)}
                                     : taken3[{upper3_q[b], lane3_q[b][upper3_q[b]]}];
        write4_q <= clear_q[LogRows] || taken3_q[b];
      end
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        found5_q <= entries_q[taken4_q.row];
        if (write4_q) entries_q[taken4_q.row] <= {at4_q, taken4_q.lane, taken4_q.tag};
      end
    end
    assign found5[b] = found5_q;
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      at4_q    <= clear_q[LogRows] ? '0 : w_q[3].at[TimeBits-1:3];
      found6_q <= found5;
    end
  end

  // ---- offsets of a window: of the last lane that has one, and the last that has another --------

  logic [7:0][15:0] far9_q;
  logic [7:0] hit9_q;
  logic [Candidates-1:0][15:0] offset12_q, address13_q;
  logic [Candidates-1:0] has12_q;
  for (genvar j = 0; j < 8; j++) begin : g_far
    entry_t entry7_q;
    logic [TimeBits-1:0] far8_q;
    logic hit8_q;
    always_ff @(posedge clk_i) begin
      if (go) begin
        entry7_q  <= found6_q[bank6[j]];
        far8_q    <= w_q[7].at + TimeBits'(j) - entry7_q.at;
        hit8_q    <= won7[j] && entry7_q.tag == tag7[j];
        far9_q[j] <= far8_q[15:0];
        // History holds 64 KiB less what comes while a match waits to be looked at.
        hit9_q[j] <= hit8_q && far8_q[TimeBits-1:16] == '0 && far8_q[15:8] != '1 &&
                     far8_q[15:0] <= w_q[8].since;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int k = 0; k < int'(Candidates); k++) begin
        address13_q[k] <= w_q[Late+12].at[15:0] - offset12_q[k];
      end
    end
  end

  // Of lanes that have another offset than those before, the last one's. Which lanes have another one
  // than the second is seen from those that have the same: so it is known with the second itself.
  for (genvar k = 0; k < int'(Hashed); k++) begin : g_offset
    logic [7:0] hits;
    logic [7:0][15:0] fars;
    logic [15:0] offset_q;
    logic has_q;
    if (k == 0) begin : g_first
      assign {hits, fars} = {hit9_q, far9_q};
    end else if (k == 1) begin : g_second
      logic [7:0] hit_q, hits_q;
      logic [7:0][15:0] far_q, fars_q;
      always_ff @(posedge clk_i) begin
        if (go) begin
          {hit_q, far_q} <= {g_offset[0].hits, g_offset[0].fars};
          for (int j = 0; j < 8; j++) hits_q[j] <= hit_q[j] && far_q[j] != g_offset[0].offset_q;
          fars_q <= far_q;
        end
      end
      assign {hits, fars} = {hits_q, fars_q};
    end else begin : g_later
      logic [7:0] hits_q;
      logic [7:0][15:0] fars_q;
      always_ff @(posedge clk_i) begin
        if (go) {hits_q, fars_q} <= {g_offset[k-1].g_more.others, g_offset[k-1].fars};
      end
      assign {hits, fars} = {hits_q, fars_q};
    end
    if (k > 0 && k + 1 < int'(Hashed)) begin : g_more
      logic [7:0] last, others;  // the last lane of hits; those with another offset
      logic [7:0][7:0] same_q;   // lanes with the same one
      always_comb begin
        last = hits;
        for (int j = 0; j < 7; j++) if (hits >> (j + 1) != '0) last[j] = 1'b0;
        others = hits;
        for (int j = 0; j < 8; j++) if (last[j]) others &= ~same_q[j];
      end
      if (k == 1) begin : g_compare
        always_ff @(posedge clk_i) begin
          for (int i = 0; i < 8; i++) begin
            for (int j = 0; j < 8; j++) begin
              if (go) same_q[i][j] <= g_second.far_q[i] == g_second.far_q[j];
            end
          end
        end
      end else begin : g_keep
        always_ff @(posedge clk_i) if (go) same_q <= g_offset[k-1].g_more.same_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        has_q <= hits != '0;
        for (int j = 0; j < 8; j++) if (hits[j]) offset_q <= fars[j];
      end
    end
    // It is there in stage 10, or 11 + k; all are in 12 and later.
    localparam int unsigned Wait = k == 0 ? 2 + Late : 1 + Late - k;
    logic [Wait:0][16:0] late_q;
    assign late_q[0] = {has_q, offset_q};
    for (genvar i = 0; i < int'(Wait); i++) begin : g_late
      always_ff @(posedge clk_i) if (go) late_q[i+1] <= late_q[i];
    end
    assign {has12_q[k], offset12_q[k]} = late_q[Wait];
  end

  // The distance of the last match that began 15 windows ago or earlier, if it is another one.
  logic [Candidates-1:0] recent12;  // they have it
  if (More) begin : g_recent
    logic begins, known, known_q, has_q;
    logic [15:0] offset, offset_q, last_q;
    logic [Hashed-1:0] same;
    assign begins = v_q[Late+26] && record26_q.match.found;
    assign known  = begins || (known_q && !(v_q[Late+26] && w_q[Late+26].first));
    assign offset = begins ? offset26_q : last_q;
    always_ff @(posedge clk_i) begin
      if (go) begin
        {known_q, last_q} <= {known, offset};
        has_q    <= known && w_q[Late+11].since >= 16'd120 && offset <= w_q[Late+11].since;
        offset_q <= offset;
      end
      if (!rst_ni) known_q <= 1'b0;
    end
    always_comb begin
      for (int k = 0; k < int'(Hashed); k++) same[k] = has_q && offset12_q[k] == offset_q;
    end
    assign recent12             = {has_q, same};
    assign has12_q[Hashed]      = has_q;
    assign offset12_q[Hashed] = offset_q;
  end else begin : g_not_recent
    assign recent12 = '0;
  end

  // ---- where the next 32 bytes equal those at these offsets -------------------------------------

  // A recent one's match may be a byte shorter.
  logic [Candidates-1:0] recent13_q, recent22, has13_q, has13, has18;
  logic [Candidates-1:0][15:0] offset13_q, offset18, offset19_q, offset20_q, offset25;
  logic [Candidates-1:0][Candidates-1:0] twin20_q;  // [i][k]: offset20_q[i] == offset19_q[k]
  always_ff @(posedge clk_i) begin
    if (go) {recent13_q, has13_q, offset13_q} <= {recent12, has12_q, offset12_q};
  end
  // A recent one is left out where a hash has found it, too.
  always_comb begin
    has13 = has13_q;
    if (More) begin
      has13[Hashed] = has13_q[Hashed] && (recent13_q[Hashed-1:0] & has13_q[Hashed-1:0]) == '0;
    end
  end
  wpr_delay #(.Width(Candidates), .Moves(5)) has_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(has13),
    .m_data_o(has18)
  );
  wpr_delay #(.Width(Candidates), .Moves(9)) recent_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(recent13_q),
    .m_data_o(recent22)
  );
  wpr_delay #(.Width(16 * Candidates), .Moves(5)) offset_early_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(offset13_q),
    .m_data_o(offset18)
  );
  always_ff @(posedge clk_i) begin
    if (go) begin
      offset19_q <= offset18;
      offset20_q <= offset19_q;
      for (int i = 0; i < int'(Candidates); i++) begin
        for (int k = 0; k < int'(Candidates); k++) begin
          twin20_q[i][k] <= offset19_q[i] == offset18[k];
        end
      end
    end
  end
  wpr_delay #(.Width(16 * Candidates), .Moves(5)) offset_late_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(offset20_q),
    .m_data_o(offset25)
  );
  logic [31:0] equal19[Candidates], equal19_q[Candidates], equal20_q[Candidates];
  logic [Candidates-1:0] wants19;  // a follower: all up to the 32nd byte is equal
  logic [31:0] may18_q;  // a match may have the window's byte and those behind
  always_ff @(posedge clk_i) begin
    if (go) begin
      may18_q   <= may(w_q[Late+17].rest);
      equal19_q <= equal19;
      equal20_q <= equal19_q;
    end
  end
  for (genvar k = 0; k < int'(Candidates); k++) begin : g_candidate
    // Windows lie in 8 memories in turn; the bytes are those of five, from some byte on. The pair
    // that holds the first one is found first: so each step picks one of four, which a LUT does.
    logic [63:0] old15[8], old16_q[8];
    logic [5:0] turn14_q, turn15_q, turn16_q;
    logic [3:0] turn17_q;
    logic [63:0] old17_q[6], old17[6], from17[5];
    logic [31:0] same;
    for (genvar b = 0; b < 8; b++) begin : g_bank
      logic [63:0] history_q[1024];
      logic [9:0] row14_q;
      logic [63:0] old15_q;
      always_ff @(posedge clk_i) begin
        if (go) row14_q <= address13_q[k][15:6] + 10'(b < int'(address13_q[k][5:3]));
      end
      always_ff @(posedge clk_i) if (go) old15_q <= history_q[row14_q];
      always_ff @(posedge clk_i) begin
        if (go && v_q[0] && w_q[0].at[5:3] == 3'(b)) history_q[w_q[0].at[15:6]] <= w_q[0].bytes;
      end
      assign old15[b] = old15_q;
    end
    always_comb begin
      for (int i = 0; i < 6; i++) old17[i] = old16_q[{turn16_q[5:4]+2'(i/2), 1'(i%2)}];
      for (int i = 0; i < 5; i++) from17[i] = turn17_q[3] ? old17_q[i+1] : old17_q[i];
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        turn14_q <= address13_q[k][5:0];
        turn15_q <= turn14_q;
        turn16_q <= turn15_q;
        turn17_q <= turn16_q[3:0];
        old16_q  <= old15;
        old17_q  <= old17;
      end
    end
    assign equal19[k] = same & may18_q & {32{has18[k]}};
    assign wants19[k] = v_q[Late+19] && equal19_q[k][31:7] == '1;
    for (genvar i = 0; i < 4; i++) begin : g_word
      logic [63:0] old18_q;
      always_ff @(posedge clk_i) begin
        if (go) old18_q <= from_byte({from17[i+1], from17[i]}, turn17_q[2:0]);
      end
      assign same[8*i+:8] = zeros(old18_q ^ w_q[Late+18-i].bytes);
    end
  end

  // ---- followers: what equals up to the 32nd byte may go on -------------------------------------

  // A follower keeps an offset and compares each window four behind with it. It is free when a
  // result for its own offset was not whole.
  typedef logic [Followers-1:0] followers_t;
  followers_t busy20_q, busy19, whole27, free;
  followers_t legal22_q, legal26;
  followers_t [1:0] given;
  followers_t has_any, next, ends, stays;
  logic [Followers-1:0][15:0] follow21_q, follow21, address22_q;
  logic [Followers-1:0][2:0] age21_q, age21;  // windows since it was renewed; a clock late
  followers_t renewed21_q, old21_q;  // old: what whole27 says is of its own offset
  logic [Followers-1:0][3:0] run28_q;  // of the window at 24
  // By candidate that wants one: which busy follower has its offset. That is known a window before: a
  // follower keeps its offset, or gets that of the first or the second candidate that asks for a new
  // one.
  followers_t [Candidates-1:0] has20_q, has19, heir21, heir21_q, heir27;
  logic [Candidates-1:0] asks20_q, asks19;  // none has it: one asks for a new follower
  logic [1:0][Candidates-1:0] gets, twin;
  logic [1:0][15:0] fresh, fresh21_q;  // the offsets that they ask for
  // Followers with a candidate's offset: those that had it before, and which were given in the clock
  // before, if that is the offset that they were given.
  followers_t [Candidates-1:0] like19_q;
  followers_t [1:0] given21_q;
  logic [1:0] gives21_q;
  logic [1:0][Candidates-1:0] like_fresh;
  always_comb begin
    free     = ~busy20_q;
    given[0] = followers_t'(lowest(8'(free)));
    given[1] = followers_t'(second(8'(free)));
    has_any  = '0;
    for (int k = 0; k < int'(Candidates); k++) has_any |= has20_q[k];
    gets[0] = Candidates'(lowest(8'(asks20_q)));
    gets[1] = Candidates'(second(8'(asks20_q)));
    twin    = '0;
    fresh   = '0;
    for (int g = 0; g < 2; g++) begin
      given[g] &= {Followers{gets[g] != '0}};
      for (int k = 0; k < int'(Candidates); k++) begin
        if (gets[g][k]) twin[g] |= twin20_q[k];
        if (gets[g][k]) fresh[g] |= offset20_q[k];
      end
    end
    next = given[0] | given[1];
  end
  always_comb begin
    follow21 = follow21_q;
    for (int k = 0; k < int'(Candidates); k++) begin
      heir21[k] = has20_q[k] | (given[0] & {Followers{gets[0][k]}}) |
                             (given[1] & {Followers{gets[1][k]}});
    end
    for (int e = 0; e < int'(Followers); e++) begin
      for (int g = 0; g < 2; g++) if (given[g][e]) follow21[e] = fresh[g];
      // Of one with an heir, what it found before is no longer of interest.
      age21[e]  = renewed21_q[e] ? 3'd1 :
                  age21_q[e] == 3'(Follow) ? 3'(Follow) : age21_q[e] + 3'd1;
      ends[e]   = old21_q[e] && !whole27[e];
      stays[e]  = busy20_q[e] && (has_any[e] || !ends[e]);
      busy19[e] = !w_q[Late+19].first && (next[e] || stays[e]);
    end
    for (int k = 0; k < int'(Candidates); k++) begin
      has19[k]  = stays & like19_q[k];
      asks19[k] = wants19[k] && (w_q[Late+19].first || has19[k] == '0);
      for (int g = 0; g < 2; g++) begin
        like_fresh[g][k] = offset19_q[k] == fresh21_q[g];
        // One that was given stays, and one that is given was free.
        has19[k] |= (given21_q[g] & {Followers{like_fresh[g][k]}}) |
                    (given[g] & {Followers{twin[g][k]}});
        if (!w_q[Late+19].first && ((gives21_q[g] && like_fresh[g][k]) ||
                                    (given[g] != '0 && twin[g][k]))) asks19[k] = 1'b0;
      end
      has19[k] &= {Followers{wants19[k] && !w_q[Late+19].first}};
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      busy20_q   <= busy19;
      has20_q    <= has19;
      asks20_q   <= asks19;
      fresh21_q  <= fresh;
      for (int g = 0; g < 2; g++) begin
        given21_q[g] <= given[g] & {Followers{!w_q[Late+19].first}};
        gives21_q[g] <= given[g] != '0 && !w_q[Late+19].first;
      end
      for (int k = 0; k < int'(Candidates); k++) begin
        for (int e = 0; e < int'(Followers); e++) begin
          like19_q[k][e] <= offset18[k] == follow21_q[e] && !next[e];
        end
      end
      follow21_q <= follow21;
      age21_q    <= age21;
      renewed21_q <= has_any | next;
      for (int e = 0; e < int'(Followers); e++) begin
        old21_q[e] <= !renewed21_q[e] && age21_q[e] >= 3'(Follow - 2) && !has_any[e] && !next[e];
      end
      heir21_q   <= heir21;
      for (int e = 0; e < int'(Followers); e++) begin
        legal22_q[e]   <= busy20_q[e] && follow21_q[e] <= w_q[Late+17].since;
        address22_q[e] <= w_q[Late+17].at[15:0] - follow21_q[e];
      end
    end
    if (!rst_ni) {busy20_q, has20_q, asks20_q, given21_q, gives21_q} <= '0;
  end
  wpr_delay #(.Width(Followers), .Moves(4)) legal_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(legal22_q),
    .m_data_o(legal26)
  );
  wpr_delay #(.Width(Candidates * Followers), .Moves(6)) heir_delay (
    .clk_i,
    .move_i  (go),
    .s_data_i(heir21_q),
    .m_data_o(heir27)
  );
  for (genvar e = 0; e < int'(Followers); e++) begin : g_follower
    logic [63:0] old24[2], old25_q[2], old26_q;
    logic [3:0] turn23_q, turn24_q, turn25_q;
    logic [7:0] equal26, equal27_q;
    logic [1:0] half27_q;  // are whole
    assign equal26 = zeros(old26_q ^ w_q[Late+22].bytes) & 8'(may(w_q[Late+22].rest)) &
                     {8{legal26[e]}};
    assign whole27[e] = half27_q == '1;
    for (genvar b = 0; b < 2; b++) begin : g_bank
      logic [63:0] history_q[4096];
      logic [11:0] row23_q;
      logic [63:0] old24_q;
      always_ff @(posedge clk_i) begin
        if (go) row23_q <= address22_q[e][15:4] + 12'(b < int'(address22_q[e][3]));
      end
      always_ff @(posedge clk_i) if (go) old24_q <= history_q[row23_q];
      always_ff @(posedge clk_i) begin
        if (go && v_q[0] && w_q[0].at[3] == 1'(b)) history_q[w_q[0].at[15:4]] <= w_q[0].bytes;
      end
      assign old24[b] = old24_q;
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        turn23_q <= address22_q[e][3:0];
        turn24_q <= turn23_q;
        turn25_q <= turn24_q;
        old25_q  <= old24;
        old26_q  <= from_byte({old25_q[!turn25_q[3]], old25_q[turn25_q[3]]}, turn25_q[2:0]);
        equal27_q  <= equal26;
        half27_q   <= {equal26[7:4] == '1, equal26[3:0] == '1};
        run28_q[e] <= ones(equal27_q);
      end
    end
  end

  // How many ones there are before the first zero.
  function automatic logic [3:0] ones(input logic [7:0] bits);
    logic low_ones, two_ones;
    logic [2:0] some;  // of the half with the first zero
    low_ones = bits[3:0] == '1;
    some     = low_ones ? bits[6:4] : bits[2:0];
    two_ones = some[1:0] == '1;
    return bits == '1 ? 4'd8 : {1'b0, low_ones, two_ones, two_ones ? some[2] : some[0]};
  endfunction

  // ---- the longest match from each byte on ------------------------------------------------------

  localparam int unsigned WhichBits = $clog2(Candidates);
  logic [7:0] four[Candidates], four21_q[Candidates];  // from that byte on are equal, and may be
  logic [3:0] reach[Candidates][8], reach21_q[Candidates][8];  // up to before this one equals
  logic [3:0] run[Candidates][3], run21_q[Candidates][3];  // bytes 8 to 15, 16 to 23, 24 to 31
  logic [3:0] run_late[Candidates][3];  // those of windows at 24
  match_t first[Candidates][8], match22_q[Candidates][8], match23_q[Candidates][8];
  logic [4:0] beyond[Candidates], beyond22_q[Candidates];
  logic [5:0] size[Candidates][8], size23_q[Candidates][8];
  match_t best[8], best24_q[8];
  logic [WhichBits-1:0] which24[8], which24_q[8];
  for (genvar k = 0; k < int'(Candidates); k++) begin : g_run
    for (genvar r = 0; r < 3; r++) begin : g_window
      wpr_delay #(.Width(4), .Moves(4 + r)) run_delay (
        .clk_i,
        .move_i  (go),
        .s_data_i(run21_q[k][r]),
        .m_data_o(run_late[k][r])
      );
    end
  end
  always_comb begin
    for (int k = 0; k < int'(Candidates); k++) begin
      automatic logic [9:0] two = equal20_q[k][9:0] & equal20_q[k][10:1];
      automatic logic [3:0] stop = 4'd8;
      four[k] = two[7:0] & two[9:2] & 8'(may(w_q[Late+20].rest) >> 6);
      for (int r = 0; r < 3; r++) run[k][r] = ones(equal20_q[k][8*r+8+:8]);
      beyond[k] = !run21_q[k][0][3] ? 5'(run21_q[k][0]) :
                  !run21_q[k][1][3] ? 5'd8 + 5'(run21_q[k][1]) : 5'd16 + 5'(run21_q[k][2]);
      for (int c = 7; c >= 0; c--) begin
        if (!equal20_q[k][c]) stop = 4'(c);
        reach[k][c] = stop;
        first[k][c] = four21_q[k][c] ? {1'b1, 3'(c), reach21_q[k][c]} : '0;
        size[k][c]  = 6'(match22_q[k][c].stop) - 6'(match22_q[k][c].at) +
                      (match22_q[k][c].stop[3] ? 6'(beyond22_q[k]) : 6'd0) +
                      (More ? 6'(recent22[k]) : '0);
      end
      for (int span = 1; span < 8; span *= 2) begin  // the first one from each byte on
        for (int c = 0; c + span < 8; c++) if (!first[k][c].found) first[k][c] = first[k][c+span];
      end
    end
  end
  // The first of the longest: all pairs are compared at once.
  typedef logic [6:0] key_t;  // found, size
  always_comb begin
    for (int c = 0; c < 8; c++) begin
      automatic key_t keys[Candidates];
      best[c]    = '0;
      which24[c] = '0;
      for (int k = 0; k < int'(Candidates); k++) begin
        keys[k] = {match23_q[k][c].found, size23_q[k][c]};
      end
      for (int k = 0; k < int'(Candidates); k++) begin
        automatic logic wins = 1'b1;
        for (int i = 0; i < int'(Candidates); i++) begin
          if (i < k) wins &= keys[k] > keys[i];
          else if (i > k) wins &= keys[i] <= keys[k];
        end
        best[c] |= match23_q[k][c] & {$bits(match_t) {wins}};
        which24[c] |= WhichBits'(k) & {WhichBits{wins}};
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      run21_q    <= run;
      beyond22_q <= beyond;
      four21_q   <= four;
      reach21_q  <= reach;
      match22_q  <= first;
      match23_q  <= match22_q;
      size23_q   <= size;
      best24_q   <= best;
      which24_q  <= which24;
    end
  end

  // ---- which of them: all that can be, and the loop that picks ----------------------------------

  // What a window may begin inside: nothing; a candidate's match, one to three windows old; a
  // follower's.
  localparam int unsigned FirstFollower = 1 + 3 * Candidates;
  localparam int unsigned Ways = FirstFollower + Followers;
  typedef logic [Ways-1:0] way_t;  // one is set
  logic [3:0] run24[Ways];
  logic [WhichBits-1:0] which, which25[Ways], which25_q[Ways];
  way_t on24[Ways], next25[Ways], next25_q[Ways];  // where a whole window goes on
  record_t record25[Ways], record25_q[Ways];
  record_t record26;
  way_t way_q, way;
  always_comb begin
    run24[0] = '0;
    on24[0]  = way_t'(1);
    for (int k = 0; k < int'(Candidates); k++) begin
      for (int r = 0; r < 3; r++) begin
        run24[1+3*k+r] = run_late[k][r];
        on24[1+3*k+r]  = way_t'(1) << (2 + 3 * k + r);
      end
      on24[3+3*k] = way_t'(heir27[k]) << FirstFollower | way_t'(heir27[k] == '0);
    end
    for (int e = 0; e < int'(Followers); e++) begin
      run24[FirstFollower+e] = run28_q[e];
      on24[FirstFollower+e]  = way_t'(1) << (FirstFollower + e);
    end
  end
  always_comb begin
    way      = '0;
    record26 = '0;
    which    = '0;
    for (int i = 0; i < int'(Ways); i++) begin
      way |= next25_q[i] & {Ways{way_q[i]}};
      record26 |= record25_q[i] & {$bits(record_t) {way_q[i]}};
      which |= which25_q[i] & {WhichBits{way_q[i]}};
    end
  end
  always_comb begin
    for (int i = 0; i < int'(Ways); i++) begin
      automatic logic whole = run24[i][3];
      automatic logic [2:0] from = run24[i][2:0];
      automatic match_t m = whole ? '0 : best24_q[from];
      record25[i] = {run24[i], m};
      which25[i]  = which24_q[from];
      next25[i]   = way_t'(1);
      if (v_q[Late+24] && !w_q[Late+24].last) begin
        if (whole) next25[i] = on24[i];
        else if (m.found && m.stop == 4'd8) begin
          next25[i] = way_t'(1) << (1 + 3 * int'(which24_q[from]));
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      record25_q <= record25;
      which25_q  <= which25;
      next25_q   <= next25;
      way_q      <= way;
      record26_q <= record26;
      offset26_q <= offset25[which];
    end
    if (!rst_ni) begin  // both: of no way nothing would follow, ever
      way_q    <= way_t'(1);
      next25_q <= '{default: way_t'(1)};
    end
  end

  assign m_valid_o  = fresh_q && v_q[Late+26];
  assign m_first_o  = w_q[Late+26].first;
  assign m_last_o   = w_q[Late+26].last;
  assign m_n_o      = w_q[Late+26].n;
  assign m_left_o   = w_q[Late+26].left;
  assign m_bytes_o  = w_q[Late+26].bytes;
  assign m_run_o    = record26_q.run;
  assign m_start_o  = record26_q.match.found;
  assign m_at_o     = record26_q.match.at;
  assign m_end_o    = record26_q.match.stop;
  assign m_offset_o = offset26_q;

endmodule
