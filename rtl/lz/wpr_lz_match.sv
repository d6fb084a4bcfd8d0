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
// 11 MiB, in which the table is cleared. Up to two records follow after room_i falls. Latency 27 windows.
module wpr_lz_match #(
  parameter int unsigned HashBytes = 4,   // that are looked up, 4 to 6; matches have 4 and more
  parameter int unsigned LogRows = 10   // of each of 16 banks, up to 12
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
  localparam int unsigned Stages = 27;
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
    for (int j = 0; j < 8; j++) may2[j] = v_q[2] && w_q[2].rest >= 6'(j + 12);
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

  // ---- two offsets a window: of the last lane that has one, and the last that has another -------

  entry_t [7:0] entry7_q;
  logic [7:0][TimeBits-1:0] far8_q;
  logic [7:0][15:0] far9_q, far10_q, far11_q;
  logic [7:0] hit8_q, hit9_q, hit10_q, other11_q;
  logic [1:0][15:0] offset12_q, address13_q;
  logic [15:0] offset10_q, offset11_q;
  logic has10_q, has11_q;
  logic [1:0] has12_q;
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
        other11_q[j] <= hit10_q[j] && far10_q[j] != offset10_q;
      end
      {far11_q, far10_q} <= {far10_q, far9_q};
      hit10_q <= hit9_q;
      {offset11_q, has11_q} <= {offset10_q, has10_q};
      has10_q <= hit9_q != '0;
      for (int j = 0; j < 8; j++) if (hit9_q[j]) offset10_q <= far9_q[j];
      has12_q       <= {other11_q != '0, has11_q};
      offset12_q[0] <= offset11_q;
      for (int j = 0; j < 8; j++) if (other11_q[j]) offset12_q[1] <= far11_q[j];
      for (int k = 0; k < 2; k++) address13_q[k] <= w_q[12].at[15:0] - offset12_q[k];
    end
  end

  // ---- where the next 32 bytes equal those at these offsets -------------------------------------

  typedef struct packed {
    logic has;
    logic [15:0] offset;
  } candidate_t;
  candidate_t [1:0] candidate_q[13:25];
  logic [1:0][31:0] equal19_q, equal20_q;
  logic [1:0] full20_q;
  logic [31:0] may18_q;  // a match may have the window's byte and those behind
  logic [31:0][7:0] new18;
  assign new18 = {w_q[15].bytes, w_q[16].bytes, w_q[17].bytes, w_q[18].bytes};
  // Of so many bytes that are left, the last 5 are literals.
  function automatic logic [63:0][31:0] may_table();
    for (int rest = 0; rest < 64; rest++) begin
      for (int i = 0; i < 32; i++) may_table[rest][i] = rest >= i + 6;
    end
  endfunction
  localparam logic [63:0][31:0] May = may_table();
  always_ff @(posedge clk_i) if (go) may18_q <= May[w_q[17].rest];
  for (genvar k = 0; k < 2; k++) begin : g_candidate
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
        candidate_q[13][k] <= {has12_q[k], offset12_q[k]};
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
  logic [1:0] busy21_q, busy20, busy21, whole28_q;
  logic [1:0] legal22_q, legal23_q, legal24_q, legal25_q, legal26_q;
  logic [1:0][15:0] follow21_q, follow21, address22_q;
  logic [1:0][2:0] age21_q, age21;
  logic [1:0][3:0] run28_q;  // of the window at 24
  logic [1:0][1:0] heir21, heir_q[21:27];  // by candidate: which follower has its offset
  logic [1:0] taken;
  always_comb begin
    for (int e = 0; e < 2; e++) begin
      busy20[e] = busy21_q[e] && !w_q[20].first &&
                  !(age21_q[e] == 3'(Follow) && !whole28_q[e]);
      age21[e]  = age21_q[e] == 3'(Follow) ? 3'(Follow) : age21_q[e] + 3'd1;
    end
    busy21   = busy20;
    follow21 = follow21_q;
    heir21   = '0;
    for (int k = 0; k < 2; k++) begin
      for (int e = 0; e < 2; e++) begin
        taken[e] = busy20[e] && follow21_q[e] == candidate_q[20][k].offset;
      end
      if (v_q[20] && full20_q[k]) begin
        if (taken != '0) heir21[k] = taken;
        else if (!busy21[0]) heir21[k] = 2'b01;
        else if (!busy21[1]) heir21[k] = 2'b10;
        for (int e = 0; e < 2; e++) begin
          if (heir21[k][e]) begin  // what it found before is no longer of interest
            busy21[e]   = 1'b1;
            follow21[e] = candidate_q[20][k].offset;
            age21[e]    = '0;
          end
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
      for (int e = 0; e < 2; e++) begin
        legal22_q[e]   <= busy21_q[e] && follow21_q[e] <= w_q[17].since;
        address22_q[e] <= w_q[17].at[15:0] - follow21_q[e];
      end
    end
    if (!rst_ni) busy21_q <= '0;
  end
  for (genvar e = 0; e < 2; e++) begin : g_follower
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
      differ = old26_q ^ w_q[22].bytes;
      for (int i = 0; i < 8; i++) same[i] = differ[i] == '0;
    end
    always_ff @(posedge clk_i) begin
      if (go) begin
        turn23_q <= address22_q[e][2:0];
        turn24_q <= turn23_q;
        turn25_q <= turn24_q;
        old25_q  <= old24_q;
        old26_q  <= by1;
        equal27_q <= legal26_q[e] ? May[w_q[22].rest][7:0] & same : '0;
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

  typedef struct packed {
    logic found;
    logic [2:0] at;
    logic [3:0] stop;   // 8: to the window's end at least
  } match_t;
  logic [1:0][7:0] four21_q;
  logic [1:0][7:0][3:0] until21_q;
  logic [1:0][3:0] run_q[21:27][3];  // bytes 8 to 15, 16 to 23, 24 to 31
  match_t [1:0][7:0] match22_q, match23_q;
  logic [1:0][4:0] beyond22_q;
  logic [1:0][7:0][5:0] size23_q;
  match_t [7:0] best24_q;
  logic [7:0] which24_q;
  always_ff @(posedge clk_i) begin
    if (go) begin
      for (int k = 0; k < 2; k++) begin
        for (int r = 0; r < 3; r++) begin
          run_q[21][r][k] <= ones(equal20_q[k][8*r+8+:8]);
          for (int s = 22; s <= 27; s++) run_q[s][r][k] <= run_q[s-1][r][k];
        end
        beyond22_q[k] <= run_q[21][0][k] != 4'd8 ? 5'(run_q[21][0][k]) :
                         run_q[21][1][k] != 4'd8 ? 5'd8 + 5'(run_q[21][1][k]) :
                                                   5'd16 + 5'(run_q[21][2][k]);
        for (int c = 0; c < 8; c++) begin
          four21_q[k][c]  <= equal20_q[k][c+:4] == '1 && w_q[20].rest >= 6'(c + 12);
          until21_q[k][c] <= ones(equal20_q[k][7:0] | ~(8'hFF << c));
          match22_q[k][c] <= first_from(c, four21_q[k], until21_q[k]);
          match23_q[k][c] <= match22_q[k][c];
          size23_q[k][c]  <= 6'(match22_q[k][c].stop) - 6'(match22_q[k][c].at) +
                             (match22_q[k][c].stop == 4'd8 ? 6'(beyond22_q[k]) : 6'd0);
        end
      end
      for (int c = 0; c < 8; c++) begin
        automatic logic k = match23_q[1][c].found &&
                            (!match23_q[0][c].found || size23_q[1][c] > size23_q[0][c]);
        best24_q[c]  <= match23_q[k][c];
        which24_q[c] <= k;
      end
    end
  end

  function automatic match_t first_from(input int c, input logic [7:0] four,
                                        input logic [7:0][3:0] stop);
    match_t m;
    m = '0;
    for (int s = 7; s >= c; s--) if (four[s]) m = {1'b1, 3'(s), stop[s]};
    return m;
  endfunction

  // ---- which of them: all that can be, and the loop that picks ----------------------------------

  // What a window may begin inside: nothing; a candidate's match, one to three windows old; a
  // follower's.
  localparam int unsigned Ways = 9;
  typedef logic [Ways-1:0] way_t;  // one is set
  typedef struct packed {
    logic [3:0] run;
    match_t match;
  } record_t;
  logic [Ways-1:0][3:0] run24;
  logic [Ways-1:0] which25_q;
  way_t [Ways-1:0] on24, next25_q;  // where a whole window goes on
  record_t [Ways-1:0] record25_q;
  record_t record26, record26_q;
  way_t way_q, way;
  logic [15:0] offset26_q;
  always_comb begin
    run24 = '0;
    on24  = '0;
    on24[0] = way_t'(1);
    for (int k = 0; k < 2; k++) begin
      for (int r = 0; r < 3; r++) begin
        run24[1+3*k+r] = run_q[25+r][r][k];
        if (r < 2) on24[1+3*k+r] = way_t'(1) << (2 + 3 * k + r);
      end
      on24[3+3*k] = {heir_q[27][k], 6'b0, heir_q[27][k] == '0};
    end
    for (int e = 0; e < 2; e++) begin
      run24[7+e] = run28_q[e];
      on24[7+e]  = way_t'(1) << (7 + e);
    end
  end
  always_comb begin
    way      = '0;
    record26 = '0;
    for (int i = 0; i < int'(Ways); i++) begin
      way |= next25_q[i] & {Ways{way_q[i]}};
      record26 |= record25_q[i] & {$bits(record_t) {way_q[i]}};
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
        if (v_q[24] && !w_q[24].last) begin
          if (whole) next25_q[i] <= on24[i];
          else if (m.found && m.stop == 4'd8) begin
            next25_q[i] <= way_t'(1) << (which24_q[from] ? 4 : 1);
          end
        end
      end
      way_q      <= way;
      record26_q <= record26;
      offset26_q <= candidate_q[25][(which25_q&way_q)!='0].offset;
    end
    if (!rst_ni) begin  // both: of no way nothing would follow, ever
      way_q <= way_t'(1);
      for (int i = 0; i < int'(Ways); i++) next25_q[i] <= way_t'(1);
    end
  end

  assign m_valid_o  = fresh_q && v_q[26];
  assign m_first_o  = w_q[26].first;
  assign m_last_o   = w_q[26].last;
  assign m_n_o      = w_q[26].n;
  assign m_left_o   = w_q[26].left;
  assign m_bytes_o  = w_q[26].bytes;
  assign m_run_o    = record26_q.run;
  assign m_start_o  = record26_q.match.found;
  assign m_at_o     = record26_q.match.at;
  assign m_end_o    = record26_q.match.stop;
  assign m_offset_o = offset26_q;

endmodule
