// SPDX-License-Identifier: Apache-2.0
// Reads one bit plane from the code that begins with it (codecs/zfp/spec.md, A cell, 3): the inverse
// of wpr_zfp_plane. One plane a clock. What the plane below waits for comes Clocks clocks later: 3
// with 4 values, 5 with 16 and 6 with 64; bits_o comes 2 clocks behind that.
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
  output logic [       Log:0] length_o,
  // The plane below, if it has a code: its coefficients below n, and n.
  output logic [  Values-1:0] known_o,
  output logic [       Log:0] n_o,
  // Bits that the cell has from the plane's first one on, when length_o comes; signed.
  input  logic [LeftBits-1:0] left_i,
  output logic [  Values-1:0] bits_o
);

  localparam int unsigned Levels = Log + 1;  // of halves that are joined
  localparam bit Wide = Values > 4;          // two registers more
  localparam bit Wider = Values > 16;        // a third one
  localparam int unsigned Clocks = Wider ? 6 : Wide ? 5 : 3;

  typedef struct packed {
    logic [Places-1:0]   code;
    logic [Values-1:0]   known;
    logic [Places/4-1:0] odd;    // in the group, an odd number
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

  // ---- 1: ones that count, in groups of four to have few levels of logic ------------------------

  always_comb begin
    window.code  = {1'b0, code_i};
    window.known = known_i;
    for (int g = 0; g < int'(Places / 4); g++) begin
      window.odd[g] = ^(window.code[4*g+:4] & ~4'(Places'(window.known) >> 4 * g));
    end
  end
  always_ff @(posedge clk_i) w_q <= window;

  // Of groups of four places, by fours again, so that few levels of logic are needed: whether an odd
  // number of those before a group are set; whether all are.
  localparam int unsigned Groups = Places / 4 > 4 ? Places / 4 : 4;
  function automatic logic [Groups-1:0] odd_before(input logic [Groups-1:0] set);
    logic [Groups/4-1:0] fours;
    for (int f = 0; f < int'(Groups / 4); f++) fours[f] = ^set[4*f+:4];
    for (int g = 0; g < int'(Groups); g++) begin
      odd_before[g] = ^(fours & ~({(Groups / 4) {1'b1}} << g / 4)) ^
                      ^(set[g/4*4+:4] & ~(4'hF << g % 4));
    end
  endfunction
  function automatic logic [Groups-1:0] all_before(input logic [Groups-1:0] set);
    logic [Groups/4-1:0] fours;
    for (int f = 0; f < int'(Groups / 4); f++) fours[f] = &set[4*f+:4];
    for (int g = 0; g < int'(Groups); g++) begin
      all_before[g] = &(fours | {(Groups / 4) {1'b1}} << g / 4) &&
                      &(set[g/4*4+:4] | 4'hF << g % 4);
    end
  endfunction

  // ---- 2: places of tests, if the plane goes on to there; where it does not end -----------------

  typedef struct packed {
    logic [Places-1:0]   code;
    logic [Places-1:0]   test;
    logic [Places-1:0]   goes;
    logic [Places/4-1:0] group_goes;
  } place_t;
  place_t places, spot;
  logic [Places-1:0] counted;
  logic [Groups-1:0] odd, all;
  assign odd = odd_before(Groups'(w_q.odd));
  assign all = all_before(Groups'(spot.group_goes));
  always_comb begin
    places.code = w_q.code;
    counted     = w_q.code & ~Places'(w_q.known);
    for (int i = 0; i < int'(Places); i++) begin  // an even number of ones stand before it
      places.test[i] = !(odd[i/4] ^ ^(counted[i/4*4+:4] & ~(4'hF << i % 4)));
    end
    places.test &= ~Places'(w_q.known);
    places.goes = ~places.test | w_q.code;
    for (int g = 0; g < int'(Places / 4); g++) places.group_goes[g] = &places.goes[4*g+:4];
  end
  if (Wide) begin : g_places
    always_ff @(posedge clk_i) spot <= places;
  end else begin : g_places_same_clock
    assign spot = places;
  end

  // ---- 3: tests and values up to the end --------------------------------------------------------

  logic [Places-1:0] test, value, alive;  // alive: not behind the end
  always_comb begin
    for (int i = 0; i < int'(Places); i++) begin
      alive[i] = all[i/4] && &(spot.goes[i/4*4+:4] | 4'hF << i % 4);
    end
    test  = alive & spot.test;
    value = alive & ~spot.test & spot.code;
  end

  // ---- 3, 4, 5: without its tests ---------------------------------------------------------------

  function automatic logic [Places-1:0] every(input int b);  // 2^b-th place
    for (int p = 0; p < int'(Places); p++) every[p] = (p + 1) % (1 << b) == 0;
  endfunction
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

  logic [Places-1:0] alive_q;
  logic [Levels:0] whole, whole_to;  // bits up to the end
  always_comb for (int b = 0; b <= int'(Levels); b++) whole[b] = ^(alive_q & every(b));

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
        end
      end
    end
    if (l == 2 || (Wide && l == int'(Levels)) || (Wider && l == 5)) begin : g_register
      always_ff @(posedge clk_i) {codes, tests} <= {joined, sums};
    end else begin : g_wires
      assign {codes, tests} = {joined, sums};
    end
  end
  always_ff @(posedge clk_i) alive_q <= alive;
  if (Wider) begin : g_whole_later
    logic [Levels:0] whole_q;
    always_ff @(posedge clk_i) {whole_to, whole_q} <= {whole_q, whole};
  end else if (Wide) begin : g_whole
    always_ff @(posedge clk_i) whole_to <= whole;
  end else begin : g_whole_same_clock
    assign whole_to = whole;
  end

  logic [Values-1:0] bits, ahead, bits_q;
  logic [Levels:0] reached;
  logic [Log:0] length;
  logic goes_on, goes_on_q;  // beyond the last coefficient's place
  logic [Values-2:0] ones;   // that were announced
  assign bits  = g_level[Levels].codes[0][Values-1:0];

  // ---- the last one: what comes out of it -------------------------------------------------------

  always_comb begin
    ones    = bits[Values-2:0] & ~known[Values-2:0];
    reached = whole_to - (Levels + 1)'(g_level[Levels].tests[0]);
    goes_on = use_q[Clocks-1] && reached >= (Levels + 1)'(Values) && !known[Values-1];
    length  = {1'b1, Log'($countones(ones))};
    if (!known[Values-1] && !goes_on) length = whole_to[Log:0];
    ahead = ~({Values{1'b1}} << reached);
  end
  always_ff @(posedge clk_i) begin
    length_o  <= use_q[Clocks-1] ? length : '0;
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
  assign missing = (LeftBits + 1)'(length_o) - {left_i[LeftBits-1], left_i};
  always_ff @(posedge clk_i) begin
    missing_q  <= missing[LeftBits] ? '0 : missing[Log-1:0];
    bits2_q    <= bits_q;
    goes_on2_q <= goes_on_q;
    bits_o     <= bits2_q | Values'(goes_on2_q) << ~missing_q;
  end

endmodule
