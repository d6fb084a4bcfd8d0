// SPDX-License-Identifier: Apache-2.0
// Reads a bit stream of a packet in the zstd decoder, which goes backward from its last byte's
// highest bit that is set: shows the next Peek bits and takes up to as many a clock.
//
// The stream must have come as a whole. Bits before its first one may be anything: left_o, how many
// bits are left, is then negative. A last byte of 0 is not valid.
module wpr_zstd_backward
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned Peek   = 11,
  parameter int unsigned Chunk  = 16,  // bits that come at once: 16 or 64
  // A Huffman code is taken every clock; or, a clock later, as many bits as n_i says. Without it as
  // many as n_i says are taken, in every other clock at most.
  parameter bit EveryClock = 1'b1,
  localparam int unsigned CountWidth = $clog2(Peek + 1)
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic     start_i,
  input  address_t ends_i,   // the byte behind the last one
  input  logic [17:0] size_i,  // bytes, 1 or more
  output logic     ready_o,  // Peek bits are shown
  output logic     bad_o,    // the last byte is 0
  output logic [Peek-1:0] bits_o,  // the next one highest
  input  logic     take_i,  // with ready_o: so many bits are taken
  input  logic [CountWidth-1:0] n_i,  // 0 to Peek
  input  logic       codes_i,  // where ready_o is true in the next clock, a code is taken there
  input  logic [11:1][11:0] least_i,  // the codes (wpr_zstd_tree), known well before the first one
  output logic [11:0] reached_o,  // a code is taken: of so many bits, or of fewer; or else all ones
  output logic signed [21:0] left_o,  // but for those taken in the last clock

  output logic        request_o,
  output row_t        row_o,
  input  logic        grant_i,
  input  logic        response_i,
  input  logic [63:0] data_i
);

  localparam int unsigned Parts = 64 / Chunk;
  localparam int unsigned PartWidth = Parts == 1 ? 1 : $clog2(Parts);

  // ---- words: two in a queue, of which the first is taken by parts ------------------------------

  row_t row_q;
  logic running_q, want_q;
  logic [1:0][63:0] words_q;
  logic [1:0] valid_q;
  logic [2:0] coming_q, drop_q;  // asked for; and for a stream before
  logic [PartWidth-1:0] part_q;
  logic insert, move, pop, come;
  logic [Chunk-1:0] chunk_q;  // the next part
  logic chunk_valid_q;
  logic [2:0] held;
  assign come      = response_i && drop_q == '0;
  assign held      = 3'(valid_q[0]) + 3'(valid_q[1]) + coming_q;
  assign row_o     = row_q;
  assign request_o = want_q;
  assign move      = valid_q[0] && (!chunk_valid_q || insert);
  assign pop       = move && (Parts == 1 || part_q == PartWidth'(Parts - 1));
  always_ff @(posedge clk_i) begin
    coming_q <= coming_q + 3'(grant_i) - 3'(come);
    want_q   <= running_q && !grant_i && held < 3'd2;  // with what is granted now not known
    if (response_i && !come) drop_q <= drop_q - 1'b1;
    if (grant_i) row_q <= row_q - 1'b1;
    if (insert) chunk_valid_q <= 1'b0;
    if (move) begin
      chunk_q       <= words_q[0][64 - Chunk * (int'(part_q) + 1)+:Chunk];
      chunk_valid_q <= 1'b1;
      part_q        <= Parts == 1 ? '0 : part_q + 1'b1;
    end
    if (pop) begin
      words_q[0] <= words_q[1];
      valid_q    <= {1'b0, valid_q[1]};
    end
    if (come) begin
      if (pop ? valid_q[1] : valid_q[0]) begin
        words_q[1] <= data_i;
        valid_q[1] <= 1'b1;
      end else begin
        words_q[0] <= data_i;
        valid_q[0] <= 1'b1;
      end
    end
    if (start_i) begin
      row_q         <= row_t'((ends_i - 1'b1) >> 3);
      part_q        <= Parts == 1 ? '0 : PartWidth'((3'd0 - ends_i[2:0]) >> 1);
      chunk_valid_q <= 1'b0;
      valid_q       <= '0;
      coming_q      <= '0;
      drop_q        <= drop_q + coming_q + 3'(grant_i) - 3'(response_i);
    end
    if (!rst_ni) begin
      want_q        <= 1'b0;
      chunk_valid_q <= 1'b0;
      valid_q       <= '0;
      coming_q      <= '0;
      drop_q        <= '0;
    end
  end

  // ---- the window -------------------------------------------------------------------------------

  // What stands behind the stream in its last row is skipped, but for whole parts, which never come;
  // and then the zeros before its first bit. Both are found in a clock and taken in the next one.
  typedef enum logic [2:0] {Idle, Skip, Skipped, Mark, Marked, Shown} state_e;
  state_e state_q;
  logic [5:0] skip_q;  // bits
  logic [CountWidth-1:0] n, n1_q;
  logic enough_q;  // Peek bits are there
  logic [3:0] zeros;  // and the one behind them
  always_comb begin
    zeros = 4'd8;
    for (int i = 0; i < 8; i++) if (bits_o[Peek-8+i]) zeros = 4'(8 - i);
  end
  if (EveryClock) begin : g_hot
    // A part is put to its place a clock before the window takes it, and turned as the window. A
    // code's length is known when it is shown: the clock before compares the bits at four places,
    // one for each remainder by four of its own code's length, with the least codes, and then
    // chooses one place. It compares the window without the part on its way. So there are enough
    // bits when a clock's most remain beside them and beside that part.
    localparam int unsigned Most = 11;
    localparam int unsigned Window = Peek + 3 * Most + Chunk - 1;
    localparam int unsigned HeldWidth = $clog2(Window + 1);
    logic [Window-1:0] window_q;
    logic [3:0] own_q, own;
    logic [Window-1:0] put_q;  // 0 where no part came
    logic put_valid_q;
    logic [1:0] late_q;  // by so much it is yet to be turned
    logic [Window+6:0] placed;
    logic [Chunk+6:0] fine;
    logic [HeldWidth-1:0] count_q;  // bits of the window and of the part on its way
    logic enough, ready, ready_q;
    logic [11:0] reached_q;
    logic [3:0][11:0] reached;
    logic [Peek+1:0] follows;
    assign ready_o   = ready_q;
    assign reached_o = reached_q;
    assign bits_o    = window_q[Window-1-:Peek];
    assign insert    = chunk_valid_q && count_q <= HeldWidth'(Window - Chunk);
    assign enough    = put_valid_q ? count_q >= HeldWidth'(Peek + Most + Chunk) :
                       count_q >= HeldWidth'(Peek + Most);
    assign ready     = enough && state_q == Shown && !start_i && rst_ni;
    // Parts leave no more than a byte to be skipped.
    always_comb begin
      own = take_i ? n_i : '0;
      if (enough_q && state_q == Skip) own = skip_q != '0 ? 4'd8 : '0;
      if (enough_q && state_q == Mark) own = zeros;
    end
    always_comb begin
      n    = own_q;
      n[3] = n[3] || !reached_q[7];
      n[2] = n[2] || (!reached_q[3] && reached_q[7]);
      n[1] = n[1] || (!reached_q[1] && reached_q[3]) || (!reached_q[5] && reached_q[7]) ||
             !reached_q[9];
      for (int i = 1; i < 12; i += 2) if (!reached_q[i-1] && reached_q[i]) n[0] = 1'b1;
    end
    // By four or eight; what remains is turned next: of a part, in the next clock.
    function automatic logic [Window-1:0] near(logic [Window-1:0] from, logic [1:0] by);
      return by[1] ? from << 8 : by[0] ? from << 4 : from;
    endfunction
    assign follows = reached_q[3] ? window_q[Window-1-:Peek+2] :
                     reached_q[7] ? window_q[Window-5-:Peek+2] : window_q[Window-9-:Peek+2];
    for (genvar k = 0; k < 4; k++) begin : g_follows
      assign reached[k][0]  = 1'b0;
      assign reached[k][11] = 1'b1;  // the longest codes begin with 0
      for (genvar i = 1; i < 10; i++) begin : g_reached  // a code of i bits has no others
        assign reached[k][i] = at_least(12'(follows[Peek+1-k-:i]), least_i[i] >> (11 - i));
      end
      // Of so many bits a carry chain is no slower.
      assign reached[k][10] = {1'b0, follows[Peek+1-k-:10]} >= least_i[10][11:1];
    end
    // By less than 8 bits first, then by bytes: of a byte's three places one at most is not 0.
    assign fine = {chunk_q, 7'b0} >> count_q[2:0];
    always_comb begin
      placed = '0;
      for (int i = 0; i <= (Window - Chunk) / 8; i++) begin
        if (count_q[HeldWidth-1:3] == (HeldWidth - 3)'(i)) begin
          placed |= {fine, {(Window - Chunk) {1'b0}}} >> (8 * i);
        end
      end
    end
    always_ff @(posedge clk_i) begin
      own_q       <= own;
      put_q       <= insert ? near(placed[Window+6:7], n[3:2]) : '0;
      late_q      <= n[1:0];
      put_valid_q <= insert;
      window_q    <= near(window_q | (put_q << late_q), n[3:2]) << n[1:0];
      count_q     <= count_q + (insert ? HeldWidth'(Chunk) : '0) - HeldWidth'(n);
      enough_q    <= enough;
      ready_q     <= ready;
      reached_q   <= ready && codes_i ? reached[n[1:0]] : '1;
      if (start_i) window_q <= '0;
      if (start_i || !rst_ni) begin
        count_q     <= '0;
        enough_q    <= 1'b0;
        own_q       <= '0;
        put_q       <= '0;
        put_valid_q <= 1'b0;
      end
    end
  end else begin : g_number
    // Three words, and where in them the next bit is. Words that are taken leave a clock later.
    logic go;
    logic shown_q;  // the state is Shown
    logic [5:0] own_q;  // bits that Skipped or Marked takes
    logic [CountWidth-1:0] all;
    logic [2:0][63:0] words3_q, kept;  // the first one highest
    logic [1:0] n_words_q, n_kept;
    logic [7:0] place_q;
    // The words behind the place, by two of its bits at a time. Bits that are not there are never
    // looked at.
    logic [Peek+126:0] padded;
    logic [Peek+30:0] by_32;
    logic [Peek+6:0] by_8;
    logic [Peek:0] by_two;
    assign padded = {words3_q, {(Peek - 65) {1'b0}}};
    assign by_32  = place_q[6] ? (place_q[5] ? padded[0+:Peek+31] : padded[32+:Peek+31]) :
                    (place_q[5] ? padded[64+:Peek+31] : padded[96+:Peek+31]);
    assign by_8   = place_q[4] ? (place_q[3] ? by_32[0+:Peek+7] : by_32[8+:Peek+7]) :
                    (place_q[3] ? by_32[16+:Peek+7] : by_32[24+:Peek+7]);
    assign by_two = place_q[2] ? (place_q[1] ? by_8[0+:Peek+1] : by_8[2+:Peek+1]) :
                    (place_q[1] ? by_8[4+:Peek+1] : by_8[6+:Peek+1]);
    assign ready_o   = enough_q && shown_q;
    assign reached_o = '1;
    assign go        = shown_q ? take_i : state_q inside {Skipped, Marked};
    assign all       = shown_q ? n_i : CountWidth'(own_q);
    assign n         = go ? all : '0;
    assign n_kept    = n_words_q - place_q[7:6];
    assign insert    = chunk_valid_q && n_kept != 2'd3;
    always_comb begin
      unique case (place_q[7:6])
        2'd0:    kept = words3_q;
        2'd1:    kept = {words3_q[1], {2{words3_q[0]}}};
        default: kept = {3{words3_q[0]}};
      endcase
      for (int i = 0; i < 3; i++) if (i + int'(n_kept) < 3) kept[i] = chunk_q;
    end
    always_ff @(posedge clk_i) begin
      own_q     <= state_q == Skip ? skip_q : 6'(zeros);
      shown_q   <= state_q == Shown || state_q == Marked;
      words3_q  <= kept;
      n_words_q <= n_kept + 2'(insert);
      place_q   <= go ? 8'(place_q[5:0]) + 8'(all) : 8'(place_q[5:0]);
      bits_o    <= place_q[0] ? by_two[Peek-1:0] : by_two[Peek:1];
      // In the clock behind one that takes some, the bits are not the next ones.
      enough_q <= !go && ((n_words_q == 2'd3 && place_q <= 8'(192 - Peek)) ||
                          (n_words_q == 2'd2 && place_q <= 8'(128 - Peek)));
      if (start_i || !rst_ni) begin
        n_words_q <= '0;
        place_q   <= '0;
        enough_q  <= 1'b0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    n1_q    <= state_q == Skipped ? '0 : n;
    left_o <= left_o - 22'(n1_q);
    unique case (state_q)
      Skip:    if (enough_q) state_q <= Skipped;
      Skipped: state_q <= Mark;
      Mark:
      if (enough_q) begin
        bad_o   <= bits_o[Peek-1-:8] == '0;
        state_q <= Marked;
      end
      Marked: state_q <= Shown;
      default: ;
    endcase
    if (start_i) begin
      state_q   <= Skip;
      skip_q    <= Parts == 1 ? {3'd0 - ends_i[2:0], 3'b0} : {2'b0, ends_i[0], 3'b0};
      n1_q      <= '0;
      left_o    <= 22'({size_i, 3'b0});
      bad_o     <= 1'b0;
      running_q <= 1'b1;
    end
    if (!rst_ni) begin
      state_q   <= Idle;
      running_q <= 1'b0;
      bad_o     <= 1'b0;
    end
  end

endmodule
