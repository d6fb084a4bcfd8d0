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
  window_t w_q[Stages];
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
      w_q[0].n      <= left_q < 23'd8 ? left_q[3:0] : 4'd8;
      w_q[0].left   <= left_q;
      w_q[0].rest   <= left_q < 23'd63 ? left_q[5:0] : '1;
      w_q[0].at     <= time_q;
      w_q[0].since <= since_q;
      w_q[0].bytes  <= s_axis_tdata;
      for (int i = 1; i < int'(Stages); i++) w_q[i] <= w_q[i-1];
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

  // Of so many bytes that are left, the last 5 are literals: a match may have byte i.
  function automatic logic [63:0][31:0] may_table();
    for (int rest = 0; rest < 64; rest++) begin
      for (int i = 0; i < 32; i++) may_table[rest][i] = rest >= i + 6;
    end
  endfunction
  localparam logic [63:0][31:0] May = may_table();

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

  typedef struct packed {
    logic [3:0] bank;
    logic [LogRows-1:0] row;
    logic [TagBits-1:0] tag;
  } hash_t;
  // The product of two polynomials over GF(2) modulo x^32 + 1: a sum of the word, turned by each
  // power that the other one has; bytes beyond four go into another product.
  localparam logic [31:0] FactorLow = 32'h9E3779B1, FactorHigh = 32'h85EBCA6B;
  function automatic hash_t hashed(input logic [8*HashBytes-1:0] word);
    logic [31:0] product, low, high;
    product = '0;
    low     = word[31:0];
    high    = 32'(word >> 32);
    for (int i = 0; i < 32; i++) begin
      if (FactorLow[i]) product ^= (low << i) | (low >> (32 - i));
      if (HashBytes > 4 && FactorHigh[i]) product ^= (high << i) | (high >> (32 - i));
    end
    return product[31-:$bits(hash_t)];
  endfunction

  typedef struct packed {
    logic [TimeBits-1:0] at;
    logic [TagBits-1:0] tag;
  } entry_t;
  hash_t [7:0] hash2_q, hash3_q, hash4_q, hash5_q, hash6_q, hash7_q;
  logic [7:0] won3_q, won4_q, won5_q, won6_q, won7_q;
  logic [7:0][Banks-1:0] take3_q;  // which bank takes a lane's hash
  logic [7:0] may2;
  always_comb begin
    may2 = May[w_q[2].rest][13:6] & {8{v_q[2]}};
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int j = 0; j < 8; j++) begin
        automatic logic [127:0] bytes = {w_q[0].bytes, w_q[1].bytes};
        automatic logic lost = 1'b0;
        hash2_q[j] <= hashed(bytes[8*j+:8*HashBytes]);
        for (int i = 0; i < j; i++) lost |= may2[i] && hash2_q[i].bank == hash2_q[j].bank;
        won3_q[j]  <= may2[j] && !lost;
        take3_q[j] <= may2[j] && !lost ? Banks'(1) << hash2_q[j].bank : '0;
      end
      {hash7_q, hash6_q, hash5_q} <= {hash6_q, hash5_q, hash4_q};
      {hash4_q, hash3_q} <= {hash3_q, hash2_q};
      {won7_q, won6_q, won5_q, won4_q} <= {won6_q, won5_q, won4_q, won3_q};
    end
  end

  // What a bank may take: of each lane; the place is that of the window and the lane.
  typedef struct packed {
    logic [LogRows-1:0] row;
    logic [TagBits-1:0] tag;
    logic [2:0] lane;
  } taken_t;
  taken_t taken3[8];
  logic [Banks-1:0] write4;
  always_comb begin
    write4 = '0;
    for (int j = 0; j < 8; j++) begin
      taken3[j] = {hash3_q[j].row, hash3_q[j].tag, 3'(j)};
      write4 |= take3_q[j];
    end
  end

  entry_t [Banks-1:0] found6_q;
  for (genvar b = 0; b < int'(Banks); b++) begin : g_bank
    entry_t entries_q[1 << LogRows];
    logic [LogRows-1:0] row4_q;
    logic write4_q;
    entry_t entry4_q, found5_q;
    taken_t gets;
    always_comb begin
      gets = '0;
      for (int j = 0; j < 8; j++) gets |= taken3[j] & {$bits(taken_t) {take3_q[j][b]}};
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        row4_q      <= clear_q[LogRows] ? clear_q[LogRows-1:0] : gets.row;
        entry4_q    <= clear_q[LogRows] ? '0 :
                       {w_q[3].at[TimeBits-1:3], gets.lane, gets.tag};
        write4_q    <= clear_q[LogRows] || write4[b];
        found6_q[b] <= found5_q;
      end
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        found5_q <= entries_q[row4_q];
        if (write4_q) entries_q[row4_q] <= entry4_q;
      end
    end
  end

  // ---- offsets of a window: of the last lane that has one, and the last that has another --------

  entry_t [7:0] entry7_q;
  logic [7:0][TimeBits-1:0] far8_q;
  logic [7:0][15:0] far9_q;
  logic [7:0] hit8_q, hit9_q;
  logic [Candidates-1:0][15:0] offset12_q, address13_q;
  logic [Candidates-1:0] has12_q;
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int j = 0; j < 8; j++) begin
        entry7_q[j]  <= found6_q[hash6_q[j].bank];
        far8_q[j]    <= w_q[7].at + TimeBits'(j) - entry7_q[j].at;
        hit8_q[j]    <= won7_q[j] && entry7_q[j].tag == hash7_q[j].tag;
        far9_q[j]    <= far8_q[j][15:0];
        // History holds 64 KiB less what comes while a match waits to be looked at.
        hit9_q[j]    <= hit8_q[j] && far8_q[j][TimeBits-1:16] == '0 && far8_q[j][15:8] != '1 &&
                        far8_q[j][15:0] <= w_q[8].since;
      end
      for (int k = 0; k < int'(Candidates); k++) begin
        address13_q[k] <= w_q[Late+12].at[15:0] - offset12_q[k];
      end
    end
  end

  // Of lanes that have another offset than those before, the last one's.
  for (genvar k = 0; k < int'(Hashed); k++) begin : g_offset
    logic [7:0] hits;
    logic [7:0][15:0] fars;
    logic [15:0] offset_q;
    logic has_q;
    if (k == 0) begin : g_first
      assign {hits, fars} = {hit9_q, far9_q};
    end else begin : g_other
      logic [7:0] hit_q, other;
      logic [7:0][15:0] far_q;
      always_ff @(posedge clk_i) if (go) {hit_q, far_q} <= {g_offset[k-1].hits, g_offset[k-1].fars};
      always_comb begin
        for (int j = 0; j < 8; j++) other[j] = hit_q[j] && far_q[j] != g_offset[k-1].offset_q;
      end
      if (k == 1) begin : g_later  // a clock for the comparison
        always_ff @(posedge clk_i) if (go) {hits, fars} <= {other, far_q};
      end else begin : g_now
        assign {hits, fars} = {other, far_q};
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
    assign has12_q[Hashed]    = has_q && (same & has12_q[Hashed-1:0]) == '0;
    assign offset12_q[Hashed] = offset_q;
  end else begin : g_not_recent
    assign recent12 = '0;
  end

  // ---- where the next 32 bytes equal those at these offsets -------------------------------------

  typedef struct packed {
    logic recent;  // that one, whose match may be a byte shorter
    logic has;
    logic [15:0] offset;
  } candidate_t;
  candidate_t [Candidates-1:0] candidate_q[13:25];
  logic [Candidates-1:0][31:0] equal19_q, equal20_q;
  logic [Candidates-1:0] full20_q;
  logic [31:0] may18_q;  // a match may have the window's byte and those behind
  logic [31:0][7:0] new18;
  assign new18 = {w_q[Late+15].bytes, w_q[Late+16].bytes, w_q[Late+17].bytes, w_q[Late+18].bytes};
  always_ff @(posedge clk_i) if (go) may18_q <= May[w_q[Late+17].rest];
  for (genvar k = 0; k < int'(Candidates); k++) begin : g_candidate
    logic [4:0] turn14_q, turn15_q, turn16_q;
    logic [2:0] turn17_q;
    logic [31:0][7:0] old15_q, old16_q, old17, old17_q, by4, by2, by1, old18_q, differ;
    logic [31:0] same;
    for (genvar l = 0; l < 32; l++) begin : g_lane
      logic [7:0] history_q[2048];
      logic [10:0] row14_q;
      always_ff @(posedge clk_i) begin
        if (go) row14_q <= address13_q[k][15:5] + 11'(l < int'(address13_q[k][4:0]));
      end
      always_ff @(posedge clk_i) if (go) old15_q[l] <= history_q[row14_q];
      always_ff @(posedge clk_i) begin
        if (go && v_q[0] && w_q[0].at[4:3] == 2'(l / 8)) begin
          history_q[w_q[0].at[15:5]] <= w_q[0].bytes[8*(l%8)+:8];
        end
      end
    end
    // Lane i gets what lies turn16 + i lanes on: whole windows first, then bytes.
    always_comb begin
      unique case (turn16_q[4:3])
        2'd0: old17 = old16_q;
        2'd1: old17 = {old16_q[7:0], old16_q[31:8]};
        2'd2: old17 = {old16_q[15:0], old16_q[31:16]};
        default: old17 = {old16_q[23:0], old16_q[31:24]};
      endcase
      by4    = turn17_q[2] ? {old17_q[3:0], old17_q[31:4]} : old17_q;
      by2    = turn17_q[1] ? {by4[1:0], by4[31:2]} : by4;
      by1    = turn17_q[0] ? {by2[0], by2[31:1]} : by2;
      differ = old18_q ^ new18;
      for (int i = 0; i < 32; i++) same[i] = differ[i] == '0;
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        candidate_q[13][k] <= {recent12[k], has12_q[k], offset12_q[k]};
        for (int s = 14; s <= 25; s++) candidate_q[s][k] <= candidate_q[s-1][k];
        turn14_q <= address13_q[k][4:0];
        turn15_q <= turn14_q;
        turn16_q <= turn15_q;
        turn17_q <= turn16_q[2:0];
        old16_q  <= old15_q;
        old17_q  <= old17;
        old18_q  <= by1;
        equal19_q[k] <= candidate_q[18][k].has ? may18_q & same : '0;
        equal20_q[k] <= equal19_q[k];
        full20_q[k]  <= equal19_q[k][31:7] == '1;
      end
    end
  end

  // ---- followers: what equals up to the 32nd byte may go on -------------------------------------

  // A follower keeps an offset and compares each window four behind with it. It is free when a
  // result for its own offset was not whole.
  typedef logic [Followers-1:0] followers_t;
  followers_t busy21_q, busy20, busy21, whole28_q, free;
  followers_t legal22_q, legal23_q, legal24_q, legal25_q, legal26_q;
  followers_t [1:0] given;
  logic [Followers-1:0][15:0] follow21_q, follow21, address22_q;
  logic [Followers-1:0][2:0] age21_q, age21;
  logic [Followers-1:0][3:0] run28_q;  // of the window at 24
  // By candidate: which follower has its offset. Two at most become new followers.
  followers_t [Candidates-1:0] has20, heir21, heir_q[21:27];
  logic [Candidates-1:0] wants;
  logic [1:0][Candidates-1:0] gets;
  always_comb begin
    for (int e = 0; e < int'(Followers); e++) begin
      busy20[e] = busy21_q[e] && !w_q[Late+20].first &&
                  !(age21_q[e] == 3'(Follow) && !whole28_q[e]);
    end
    free     = ~busy20;
    given[0] = free & (~free + 1'b1);
    given[1] = free & ~given[0] & (~(free & ~given[0]) + 1'b1);
    for (int k = 0; k < int'(Candidates); k++) begin
      for (int e = 0; e < int'(Followers); e++) begin
        has20[k][e] = busy20[e] && follow21_q[e] == candidate_q[20][k].offset;
      end
      wants[k] = v_q[Late+20] && full20_q[k] && has20[k] == '0;
    end
    gets[0] = wants & (~wants + 1'b1);
    gets[1] = wants & ~gets[0] & (~(wants & ~gets[0]) + 1'b1);
    busy21   = busy20;
    follow21 = follow21_q;
    for (int e = 0; e < int'(Followers); e++) begin
      age21[e] = age21_q[e] == 3'(Follow) ? 3'(Follow) : age21_q[e] + 3'd1;
    end
    for (int k = 0; k < int'(Candidates); k++) begin
      heir21[k] = (has20[k] & {Followers{v_q[Late+20] && full20_q[k]}}) |
                  (given[0] & {Followers{gets[0][k]}}) | (given[1] & {Followers{gets[1][k]}});
      for (int e = 0; e < int'(Followers); e++) begin
        if (heir21[k][e]) begin  // what it found before is no longer of interest
          busy21[e]   = 1'b1;
          follow21[e] = candidate_q[20][k].offset;
          age21[e]    = '0;
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      busy21_q   <= busy21;
      follow21_q <= follow21;
      age21_q    <= age21;
      heir_q[21] <= heir21;
      for (int s = 22; s <= 27; s++) heir_q[s] <= heir_q[s-1];
      {legal26_q, legal25_q, legal24_q, legal23_q} <= {legal25_q, legal24_q, legal23_q, legal22_q};
      for (int e = 0; e < int'(Followers); e++) begin
        legal22_q[e]   <= busy21_q[e] && follow21_q[e] <= w_q[Late+17].since;
        address22_q[e] <= w_q[Late+17].at[15:0] - follow21_q[e];
      end
    end
    if (!rst_ni) busy21_q <= '0;
  end
  for (genvar e = 0; e < int'(Followers); e++) begin : g_follower
    logic [7:0][7:0] old24_q, old25_q, by4, by2, by1, old26_q, differ;
    logic [2:0] turn23_q, turn24_q, turn25_q;
    logic [7:0] same, equal27_q;
    for (genvar l = 0; l < 8; l++) begin : g_lane
      logic [7:0] history_q[8192];
      logic [12:0] row23_q;
      always_ff @(posedge clk_i) begin
        if (go) row23_q <= address22_q[e][15:3] + 13'(l < int'(address22_q[e][2:0]));
      end
      always_ff @(posedge clk_i) if (go) old24_q[l] <= history_q[row23_q];
      always_ff @(posedge clk_i) begin
        if (go && v_q[0]) history_q[w_q[0].at[15:3]] <= w_q[0].bytes[8*l+:8];
      end
    end
    always_comb begin
      by4    = turn25_q[2] ? {old25_q[3:0], old25_q[7:4]} : old25_q;
      by2    = turn25_q[1] ? {by4[1:0], by4[7:2]} : by4;
      by1    = turn25_q[0] ? {by2[0], by2[7:1]} : by2;
      differ = old26_q ^ w_q[Late+22].bytes;
      for (int i = 0; i < 8; i++) same[i] = differ[i] == '0;
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        turn23_q <= address22_q[e][2:0];
        turn24_q <= turn23_q;
        turn25_q <= turn24_q;
        old25_q  <= old24_q;
        old26_q  <= by1;
        equal27_q <= legal26_q[e] ? May[w_q[Late+22].rest][7:0] & same : '0;
        run28_q[e]   <= ones(equal27_q);
        whole28_q[e] <= equal27_q == '1;
      end
    end
  end

  // How many ones there are before the first zero.
  function automatic logic [3:0] ones(input logic [7:0] bits);
    logic [3:0] n;
    n = 4'd8;
    for (int i = 7; i >= 0; i--) if (!bits[i]) n = 4'(i);
    return n;
  endfunction

  // ---- the longest match from each byte on ------------------------------------------------------

  localparam int unsigned WhichBits = $clog2(Candidates);
  logic [Candidates-1:0][7:0] four, four21_q;  // from that byte on are equal, and may be
  logic [Candidates-1:0][7:0][3:0] reach, reach21_q;  // up to before this one equals from there on
  logic [Candidates-1:0][3:0] run_q[21:27][3];  // bytes 8 to 15, 16 to 23, 24 to 31
  match_t [Candidates-1:0][7:0] first, match22_q, match23_q;  // from that byte on
  logic [Candidates-1:0][4:0] beyond22_q;
  logic [Candidates-1:0][7:0][5:0] size23_q;
  match_t [7:0] best, best24_q;
  logic [7:0][WhichBits-1:0] which24, which24_q;
  always_comb begin
    for (int k = 0; k < int'(Candidates); k++) begin
      automatic logic [9:0] two = equal20_q[k][9:0] & equal20_q[k][10:1];
      automatic logic [3:0] stop = 4'd8;
      four[k] = two[7:0] & two[9:2] & May[w_q[Late+20].rest][13:6];
      for (int c = 7; c >= 0; c--) begin
        if (!equal20_q[k][c]) stop = 4'(c);
        reach[k][c] = stop;
      end
    end
  end
  always_comb begin
    for (int k = 0; k < int'(Candidates); k++) begin
      automatic match_t m = '0;
      for (int c = 7; c >= 0; c--) begin
        if (four21_q[k][c]) m = {1'b1, 3'(c), reach21_q[k][c]};
        first[k][c] = m;
      end
    end
  end
  // The first of the longest: all pairs are compared at once.
  typedef logic [6:0] key_t;  // found, size
  key_t [7:0][Candidates-1:0] keys;
  always_comb begin
    best    = '0;
    which24 = '0;
    for (int c = 0; c < 8; c++) begin
      for (int k = 0; k < int'(Candidates); k++) begin
        keys[c][k] = {match23_q[k][c].found, size23_q[k][c]};
      end
      for (int k = 0; k < int'(Candidates); k++) begin
        automatic logic wins = 1'b1;
        for (int i = 0; i < int'(Candidates); i++) begin
          if (i < k) wins &= keys[c][k] > keys[c][i];
          else if (i > k) wins &= keys[c][i] <= keys[c][k];
        end
        best[c] |= match23_q[k][c] & {$bits(match_t) {wins}};
        which24[c] |= WhichBits'(k) & {WhichBits{wins}};
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int k = 0; k < int'(Candidates); k++) begin
        for (int r = 0; r < 3; r++) begin
          run_q[21][r][k] <= ones(equal20_q[k][8*r+8+:8]);
          for (int s = 22; s <= 27; s++) run_q[s][r][k] <= run_q[s-1][r][k];
        end
        beyond22_q[k] <= run_q[21][0][k] != 4'd8 ? 5'(run_q[21][0][k]) :
                         run_q[21][1][k] != 4'd8 ? 5'd8 + 5'(run_q[21][1][k]) :
                                                   5'd16 + 5'(run_q[21][2][k]);
        four21_q[k]  <= four[k];
        reach21_q[k] <= reach[k];
        for (int c = 0; c < 8; c++) begin
          match22_q[k][c] <= first[k][c];
          match23_q[k][c] <= match22_q[k][c];
          size23_q[k][c]  <= 6'(match22_q[k][c].stop) - 6'(match22_q[k][c].at) +
                             (match22_q[k][c].stop == 4'd8 ? 6'(beyond22_q[k]) : 6'd0) +
                             6'(candidate_q[22][k].recent);
        end
      end
      for (int c = 0; c < 8; c++) begin
        best24_q[c]  <= best[c];
        which24_q[c] <= which24[c];
      end
    end
  end

  // ---- which of them: all that can be, and the loop that picks ----------------------------------

  // What a window may begin inside: nothing; a candidate's match, one to three windows old; a
  // follower's.
  localparam int unsigned FirstFollower = 1 + 3 * Candidates;
  localparam int unsigned Ways = FirstFollower + Followers;
  typedef logic [Ways-1:0] way_t;  // one is set
  logic [Ways-1:0][3:0] run24;
  logic [Ways-1:0][WhichBits-1:0] which25_q;
  logic [WhichBits-1:0] which;
  way_t [Ways-1:0] on24, next25_q;  // where a whole window goes on
  record_t [Ways-1:0] record25_q;
  record_t record26;
  way_t way_q, way;
  always_comb begin
    run24 = '0;
    on24  = '0;
    on24[0] = way_t'(1);
    for (int k = 0; k < int'(Candidates); k++) begin
      for (int r = 0; r < 3; r++) begin
        run24[1+3*k+r] = run_q[25+r][r][k];
        if (r < 2) on24[1+3*k+r] = way_t'(1) << (2 + 3 * k + r);
      end
      on24[3+3*k] = way_t'(heir_q[27][k]) << FirstFollower | way_t'(heir_q[27][k] == '0);
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
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int i = 0; i < int'(Ways); i++) begin
        automatic logic whole = run24[i][3];
        automatic logic [2:0] from = run24[i][2:0];
        automatic match_t m = whole ? '0 : best24_q[from];
        record25_q[i] <= {run24[i], m};
        which25_q[i]  <= which24_q[from];
        next25_q[i]   <= way_t'(1);
        if (v_q[Late+24] && !w_q[Late+24].last) begin
          if (whole) next25_q[i] <= on24[i];
          else if (m.found && m.stop == 4'd8) begin
            next25_q[i] <= way_t'(1) << (1 + 3 * int'(which24_q[from]));
          end
        end
      end
      way_q      <= way;
      record26_q <= record26;
      offset26_q <= candidate_q[25][which].offset;
    end
    if (!rst_ni) begin  // both: of no way nothing would follow, ever
      way_q <= way_t'(1);
      for (int i = 0; i < int'(Ways); i++) next25_q[i] <= way_t'(1);
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
