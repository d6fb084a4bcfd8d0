// SPDX-License-Identifier: Apache-2.0
// Reads one bit plane from the code that begins with it (codecs/zfp/spec.md, A cell, 3): the inverse
// of wpr_zfp_plane. One plane a clock. What the plane below waits for comes Clocks clocks later: 3
// with 4 values, 6 with 16 and 7 with 64; bits_o comes 2 clocks behind that.
//
// A bit of the code is a coefficient's, or a test: whether there is another 1. A test stands behind
// the bits of the coefficients below n, and behind each 1 from there on. So from n on a bit is a
// test where an even number of ones stand before it, and a test that is 0 ends the plane. Without
// its tests the code is the plane. Two tests never stand side by side, so two halves are joined by
// a shift that is the number of tests in the lower one.
//
// If all coefficients but the last one have been reached and the plane goes on, the last one is 1,
// without a bit of its own. Where a cell's code ends before a 1 that a test has announced, the
// first coefficient that has no bit is that 1. Zeros behind the code's end make the second case
// look like the first one; the 1 is then as many coefficients lower as bits are missing.
module wpr_zfp_read_bits #(
  parameter int unsigned Values   = 16,  // 4, 16 or 64
  parameter int unsigned LeftBits = 8,   // of left_i; more than length_o has
  localparam int unsigned Log = $clog2(Values),
  localparam int unsigned Places = 2 * Values  // of a plane's code, and one more
) (
  input  logic                clk_i,
  input  logic                use_i,     // 0: the plane has no code
  input  logic [  Places-2:0] code_i,    // bits that the cell does not have are 0
  input  logic [  Values-1:0] known_i,   // of the coefficients below n
  // The plane's length is the sum of all three, of the first one alone with up to 16 values: a
  // count of many bits, whose last additions are left to who adds the length to a place.
  output logic [       Log:0] length_o,
  output logic [    1:0][4:0] more_o,
  // The plane below, if it has a code: its coefficients below n, and n.
  output logic [  Values-1:0] known_o,
  output logic [       Log:0] n_o,
  // Bits that the cell has from the plane's first one on, when length_o comes; signed.
  input  logic [LeftBits-1:0] left_i,
  output logic [  Values-1:0] bits_o
);

  localparam int unsigned Levels = Log + 1;  // of halves that are joined
  localparam bit Wide = Values > 4;          // three registers more
  localparam bit Wider = Values > 16;        // a fourth one
  localparam int unsigned Clocks = Wider ? 7 : Wide ? 6 : 3;
  // So many levels have been joined when they come to a register, as also at the end.
  localparam int unsigned First = Wider ? 3 : 2;
  localparam int unsigned Second = Wider ? 5 : 4;
  localparam int unsigned Third = 6;

  // What is told of all places before one goes by groups of four places and sets of four groups,
  // with registers between: else it would be passed on from place to place to save logic.
  localparam int unsigned Groups = Places / 4;
  localparam int unsigned Sets = (Groups + 3) / 4;
  localparam int unsigned Set = Places < 16 ? Places : 16;  // places of one

  typedef struct packed {
    logic [  Places-1:0] code;
    logic [  Values-1:0] known;
    // An odd number of ones, but of the coefficients below n, in
    logic [Values/4-1:0] pair_odd;  // the group's lower two places
    logic [  Groups-1:0] odd;       // the group
    logic [    Sets-1:0] set_odd;   // the set
  } window_t;
  window_t window, w_q;
  logic [Clocks-1:1] use_q;
  logic [Values-1:0] known;  // in the last clock
  always_ff @(posedge clk_i) use_q <= (Clocks - 1)'({use_q, use_i});
  wpr_zfp_delay #(.Width(Values), .Clocks(Clocks - 2)) keep_known (
    .clk_i,
    .data_i(w_q.known),
    .data_o(known)
  );

  // ---- 1: ones that count -----------------------------------------------------------------------

  logic [Places-1:0] ones_in;
  assign ones_in = {1'b0, code_i & ~(Places - 1)'(known_i)};
  always_comb begin
    window.code    = {1'b0, code_i};
    window.known   = known_i;
    for (int g = 0; g < int'(Groups); g++) window.odd[g] = ^(ones_in[4*g+:4]);
    for (int s = 0; s < int'(Sets); s++) window.set_odd[s] = ^(ones_in[16*s+:Set]);
    for (int g = 0; g < int'(Values) / 4; g++) window.pair_odd[g] = ^(ones_in[4*g+:2]);
  end
  always_ff @(posedge clk_i) w_q <= window;

  // ---- 2: places of tests, if the plane goes on to there; where it does not end -----------------

  typedef struct packed {
    logic [Places-1:0] code;
    logic [Places-1:0] test;
    logic [Groups-1:0] pair_goes;   // in its group's lower two places
    logic [Groups-1:0] group_goes;
  } place_t;
  place_t places, spot;
  logic [Places-1:0] counted, goes, odd_here;  // odd_here: before the place, in its group
  logic [Groups-1:0] pair_odd;
  logic [Groups-1:0] odd, all;  // before the group; all: in its set
  logic [Sets-1:0] set_near, set_near_q, set_all;  // before the set: of four sets, of all
  logic low_goes, low_goes_q;                      // of the lower four sets
  always_comb begin
    places.code = w_q.code;
    odd         = '0;
    for (int g = 0; g < int'(Groups); g++) begin
      for (int s = 0; s < g / 4; s++) odd[g] ^= w_q.set_odd[s];
      for (int k = g / 4 * 4; k < g; k++) odd[g] ^= w_q.odd[k];
    end
    for (int g = 0; g < int'(Groups); g++) begin  // ones from Values on all count
      pair_odd[g] = g < int'(Values) / 4 ? w_q.pair_odd[g%(int'(Values)/4)] : ^(counted[4*g+:2]);
      odd_here[4*g+:4] = {pair_odd[g] ^ counted[4*g+2], pair_odd[g], counted[4*g], 1'b0};
    end
    for (int i = 0; i < int'(Places); i++) places.test[i] = odd[i/4] == odd_here[i];
    places.test &= ~Places'(w_q.known);
    goes = ~places.test | w_q.code;
    for (int g = 0; g < int'(Groups); g++) begin
      places.pair_goes[g]  = &goes[4*g+:2];
      places.group_goes[g] = &goes[4*g+:4];
    end
  end
  assign counted = w_q.code & ~Places'(w_q.known);
  if (Wide) begin : g_places
    always_ff @(posedge clk_i) spot <= places;
  end else begin : g_places_same_clock
    assign spot = places;
  end

  // ---- 3: tests and values up to the end, if that is not in a group before theirs ---------------

  // A test that is 0 leaves the place behind it a test. If the two are a pair, that is one test, as
  // without the second one: so only pairs are left out.
  logic [Places-1:0] test, value, alive;
  always_comb begin
    for (int g = 0; g < int'(Groups); g++) alive[4*g+:4] = {{2{spot.pair_goes[g]}}, 2'b11};
    test  = alive & spot.test;
    value = alive & ~spot.test & spot.code;
  end

  // Groups are left out by others of their set, and sets by others a clock later, as they have been
  // joined.
  always_comb begin
    all      = '1;
    set_near = '1;
    low_goes = 1'b1;
    for (int g = 0; g < int'(Groups); g++) begin
      for (int k = g / 4 * 4; k < g; k++) all[g] &= spot.group_goes[k];
      for (int s = g / 4 + 1; s < int'(Sets) && s % 4 != 0; s++) set_near[s] &= spot.group_goes[g];
      if (g < 16) low_goes &= spot.group_goes[g];
    end
    for (int s = 0; s < int'(Sets); s++) set_all[s] = set_near_q[s] && (s < 4 || low_goes_q);
  end

  // Where the plane ends in a set, if it ends there: the group, the pair, the place. The last set
  // has it if no test is 0.
  logic [Places-1:0] stops;
  logic [Groups-1:0] group_ends;
  logic [Sets-1:0] set_ends;
  logic [Sets-1:0][3:0] end_in, end_in_q;
  logic [6:0] end_at;
  logic [Levels:0] whole, whole_to;  // places up to the end
  assign stops = spot.test & ~spot.code;
  always_comb begin
    end_in = '0;
    for (int g = 0; g < int'(Groups); g++) begin
      group_ends[g] = all[g] && (g % 4 == 3 || g == int'(Groups) - 1 || !spot.group_goes[g]);
      if (group_ends[g]) begin
        end_in[g/4] |= {2'(g), spot.pair_goes[g],
                        spot.pair_goes[g] ? !stops[4*g+2] : !stops[4*g]};
      end
    end
    end_at = '0;
    for (int s = 0; s < int'(Sets); s++) begin
      set_ends[s] = set_all[s] && (s == int'(Sets) - 1 || !set_all[(s+1)%int'(Sets)]);
      if (set_ends[s]) end_at |= {3'(s), end_in_q[s]};
    end
    whole = (Levels + 1)'(end_at) + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    set_near_q <= set_near;
    low_goes_q <= low_goes;
    end_in_q   <= end_in;
  end

  // ---- from 3 on: without its tests -------------------------------------------------------------

  // Of few bits, without a carry chain, which would be longer.
  function automatic logic [6:0] sum(input logic [5:0] a, input logic [5:0] b);
    logic carry;
    carry = 1'b0;
    for (int n = 0; n < 6; n++) begin
      sum[n] = a[n] ^ b[n] ^ carry;
      carry  = (a[n] && b[n]) || (carry && (a[n] || b[n]));
    end
    sum[6] = carry;
  endfunction

  // How many are set: of three, of seven, and of 21.
  function automatic logic [1:0] three(input logic [2:0] set);
    return {(set[0] && set[1]) || (set[2] && (set[0] || set[1])), ^set};
  endfunction
  function automatic logic [2:0] seven(input logic [6:0] set);
    logic [1:0] low, high, one, two;
    low  = three(set[2:0]);
    high = three(set[5:3]);
    one  = three({set[6], high[0], low[0]});
    two  = three({one[1], high[1], low[1]});
    return {two, one[0]};
  endfunction
  function automatic logic [4:0] count(input logic [20:0] set);
    logic [6:0] ones, twos;
    for (int t = 0; t < 7; t++) {twos[t], ones[t]} = three(set[3*t+:3]);
    return 5'(sum(6'(seven(ones)), 6'({seven(twos), 1'b0})));
  endfunction

  for (genvar l = 0; l <= int'(Levels); l++) begin : g_level
    localparam int unsigned Bits = l == 0 ? 1 : l;  // of a number of tests
    logic [(Places>>l)-1:0][(1<<l)-1:0] codes, joined;
    logic [(Places>>l)-1:0][Bits-1:0] tests, sums;
    if (l == 0) begin : g_bits
      assign {joined, sums} = {value, test};
    end else if (l == 1) begin : g_pairs
      always_comb begin
        for (int i = 0; i < int'(Places) / 2; i++) begin
          joined[i] = g_level[0].tests[2*i] ? {1'b0, g_level[0].codes[2*i+1]}
                                            : {g_level[0].codes[2*i+1], g_level[0].codes[2*i]};
          sums[i] = g_level[0].tests[2*i] || g_level[0].tests[2*i+1];
        end
      end
    end else begin : g_halves
      localparam int unsigned Half = 1 << (l - 1);
      always_comb begin
        for (int i = 0; i < int'(Places >> l); i++) begin
          // So many tests at most have halves that they have the upper bit alone.
          joined[i] = {g_level[l-1].codes[2*i+1], Half'(0)};
          if (g_level[l-1].tests[2*i][l-2]) joined[i] >>= Half / 2;
          else if (l > 2) joined[i] >>= g_level[l-1].tests[2*i] & (l - 1)'(Half / 2 - 1);
          joined[i] |= (1 << l)'(g_level[l-1].codes[2*i]);
          sums[i] = Bits'(sum(6'(g_level[l-1].tests[2*i]), 6'(g_level[l-1].tests[2*i+1])));
          if (l == 2 && !all[i%int'(Groups)]) {joined[i], sums[i]} = '0;
          if (l == 4 && !set_all[i%int'(Sets)]) {joined[i], sums[i]} = '0;
        end
      end
    end
    if (l inside {First, Second, Third} || (Wide && l == int'(Levels))) begin : g_register
      always_ff @(posedge clk_i) {codes, tests} <= {joined, sums};
    end else begin : g_wires
      assign {codes, tests} = {joined, sums};
    end
  end
  if (Wide) begin : g_whole_later
    logic [Clocks-4:1][Levels:0] whole_q;
    always_ff @(posedge clk_i) whole_q <= {whole_q[Clocks-5:1], whole};
    assign whole_to = whole_q[Clocks-4];
  end else begin : g_whole_same_clock
    assign whole_to = whole;
  end

  logic [Values-1:0] bits, ahead, bits_q;
  logic [Levels:0] reached;
  logic [Log:0] length;
  logic [1:0][4:0] more;
  logic goes_on, goes_on_q;  // beyond the last coefficient's place
  logic [Values-2:0] ones;   // that were announced
  assign bits  = g_level[Levels].codes[0][Values-1:0];

  // ---- the last one: what comes out of it -------------------------------------------------------

  logic [Log-1:0] n_ones;
  logic [1:0][4:0] n_more;
  assign ones = bits[Values-2:0] & ~known[Values-2:0];
  if (Wider) begin : g_count_by_thirds
    assign {n_more, n_ones} = {count(ones[62:42]), count(ones[41:21]), Log'(count(ones[20:0]))};
  end else if (Wide) begin : g_count
    assign {n_more, n_ones} = {10'd0, Log'(count(21'(ones)))};
  end else begin : g_count_three
    assign {n_more, n_ones} = {10'd0, three(ones)};
  end
  always_comb begin
    reached = whole_to - (Levels + 1)'(g_level[Levels].tests[0]);
    goes_on = use_q[Clocks-1] && reached >= (Levels + 1)'(Values) && !known[Values-1];
    {length, more} = {1'b1, n_ones, n_more};
    if (!known[Values-1] && !goes_on) {length, more} = {whole_to[Log:0], 10'd0};
    ahead = ~({Values{1'b1}} << reached);
  end
  always_ff @(posedge clk_i) begin
    length_o  <= use_q[Clocks-1] ? length : '0;
    more_o    <= use_q[Clocks-1] ? more : '0;
    known_o   <= ahead;
    n_o       <= reached[Levels:Log] == '0 ? reached[Log:0] : {1'b1, Log'(0)};
    bits_q    <= use_q[Clocks-1] ? bits : '0;
    goes_on_q <= goes_on;
  end

  // ---- two more: the 1 that has no bit ----------------------------------------------------------

  logic [LeftBits:0] missing;
  logic [Log-1:0] missing_q;
  logic [Values-1:0] bits2_q;
  logic goes_on2_q;
  assign missing = (LeftBits + 1)'(length_o) + (LeftBits + 1)'(more_o[0]) +
                   (LeftBits + 1)'(more_o[1]) - {left_i[LeftBits-1], left_i};
  always_ff @(posedge clk_i) begin
    missing_q  <= missing[LeftBits] ? '0 : missing[Log-1:0];
    bits2_q    <= bits_q;
    goes_on2_q <= goes_on_q;
    bits_o     <= bits2_q | Values'(goes_on2_q) << ~missing_q;
  end

endmodule
