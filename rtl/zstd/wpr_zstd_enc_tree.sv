// SPDX-License-Identifier: Apache-2.0
// How often each byte comes to a Huffman code of at most 11 bits. A code for a byte that comes n
// times has the least length at which n 2^length reaches a level. The lowest level whose codes fit
// is found by bisection, in seven passes over the bytes; passes behind it shorten codes until
// nothing is left.
//
// It takes 266 clocks to read the numbers, and 10 passes of as many clocks as the largest byte for
// most codes, 20 for a few with very rare bytes. Then kind, value, most and longest are valid, and
// for Huffman codes all have been written.
module wpr_zstd_enc_tree
  import wpr_zstd_enc_pkg::*;
  import wpr_zstd_pkg::Raw, wpr_zstd_pkg::Rle, wpr_zstd_pkg::Huffman;
(
  input  logic        clk_i,
  input  logic        rst_ni,      // synchronous
  input  logic        start_i,
  input  logic [16:0] literals_i,  // of the block
  output logic        busy_o,
  output literals_t   m_literals_o,

  output logic        count_o,     // wpr_zstd_enc_blocks
  output logic [ 7:0] byte_o,
  input  logic [16:0] n_i,

  output logic        code_valid_o,
  output logic [ 7:0] code_byte_o,
  output code_t       code_o
);

  localparam int unsigned Least = 64;  // literals that are worth a code

  typedef enum logic [2:0] {Idle, Load, Search, Fill, Count, Ranks, Codes} state_e;
  state_e state_q;
  logic [8:0] at_q;       // byte, and beyond it the clocks until results are there
  logic [8:0] ends_q;     // when a pass has its results
  logic [7:0] most_q;
  logic [8:0] distinct_q;
  logic [7:0] value_q;

  // A number as its highest bit and the eight bits below it.
  typedef struct packed {
    logic [4:0] high;
    logic [7:0] low;
  } level_t;
  function automatic level_t level_of(logic [16:0] n, logic [4:0] high);
    return '{high, 8'(n << (5'd16 - high) >> 8)};
  endfunction

  // ---- memories of 256: how often, its level, and the length of its code ------------------------

  logic [16:0] numbers_q[256];
  level_t levels_q[256];
  logic [3:0] lengths_q[256];
  logic [8:0] load_q[6];   // bytes whose numbers are on their way; 256: none
  logic [16:0] number4_q;
  logic [4:0] high5_q, literals_high_q;
  level_t level6_q;
  logic [16:0] number5_q, number6_q;
  logic write_length;
  logic [7:0] length_at;
  logic [3:0] length;
  logic [8:0] at1_q, at2_q;
  level_t level1_q;
  logic [16:0] number1_q, number2_q;
  logic [3:0] length1_q, length2_q;
  always_ff @(posedge clk_i) begin
    if (!load_q[5][8]) begin
      numbers_q[load_q[5][7:0]] <= number6_q;
      levels_q[load_q[5][7:0]]  <= level6_q;
    end
    if (write_length) lengths_q[length_at] <= length;
    level1_q  <= levels_q[at_q[7:0]];
    number1_q <= numbers_q[at_q[7:0]];
    length1_q <= lengths_q[at_q[7:0]];
    number4_q <= n_i;
    high5_q   <= highest(number4_q);
    number5_q <= number4_q;
    level6_q  <= level_of(number5_q, high5_q);
    number6_q <= number5_q;
    number2_q <= number1_q;
    length2_q <= length1_q;
    at1_q <= state_q inside {Idle, Ranks} || at_q > {1'b0, most_q} ? 9'h100 : at_q;
    at2_q <= at1_q;
    load_q[0] <= count_o ? {1'b0, byte_o} : 9'h100;
    for (int i = 1; i < 6; i++) load_q[i] <= load_q[i-1];
  end
  assign count_o = state_q == Load && !at_q[8];
  assign byte_o  = at_q[7:0];

  // ---- lengths at a level -----------------------------------------------------------------------

  level_t bottom_q, level_q;    // of all numbers; the one that is tried
  logic [6:0] step_q, tried_q;  // up from the bottom by fours
  logic [3:0] length_at_q;      // of at2_q
  logic [11:0] weight3_q;       // a clock later
  logic none2_q, none3_q;
  logic [18:0] sum_q;           // of 2^(11 - length)
  logic signed [6:0] length_free;
  logic [3:0] length_now;
  assign length_free = 7'(level_q.high) - 7'(level1_q.high) + 7'(level1_q.low < level_q.low);
  assign length_now  = length_free < 7'sd1 ? 4'd1 : length_free > 7'sd11 ? 4'd11 : length_free[3:0];
  logic none1;
  assign none1 = at1_q[8] || number1_q == '0;

  // ---- what is left shortens codes --------------------------------------------------------------

  logic [18:0] left_q;
  logic [11:0] gain2_q;
  logic may2_q, shorter;
  assign shorter = state_q == Fill && may2_q && left_q >= 19'(gain2_q);

  // ---- how many codes of each length, and their first bits --------------------------------------

  logic [11:1][8:0] of_length_q;
  logic [11:1][11:0] next_q;
  logic [3:0] longest_q, rank_q;
  logic [11:0] first_q;
  logic [20:0] bits_q;  // of all literals

  logic feasible;
  assign feasible = sum_q <= 19'd2048;
  assign busy_o = state_q != Idle;
  literals_t literals_q;
  assign m_literals_o = literals_q;
  always_comb begin
    write_length = 1'b0;
    length_at    = at2_q[7:0];
    length       = '0;
    if (state_q == Search) begin
      write_length = !at2_q[8];
      length       = none2_q ? 4'd0 : length_at_q;
    end else if (shorter) begin
      write_length = 1'b1;
      length       = length2_q - 4'd1;
    end
  end
  logic [6:0] trial;
  logic final_q;
  assign trial = tried_q - step_q;
  always_ff @(posedge clk_i) begin
    length_at_q  <= length_now;
    none2_q      <= none1;
    weight3_q    <= 12'd2048 >> length_at_q;
    none3_q      <= at2_q[8] || none2_q;
    gain2_q      <= 12'd2048 >> length1_q;
    may2_q       <= !none1 && length1_q > 4'd1;
    ends_q       <= 9'(most_q) + 9'd5;
    literals_high_q <= highest(literals_i);
    // Half of all; constant when it is used.
    bottom_q     <= level_of(literals_i, literals_high_q) - 13'd256;
    code_valid_o <= 1'b0;
    at_q         <= at_q + 1'b1;
    if (!none3_q && state_q == Search) sum_q <= sum_q + 19'(weight3_q);
    unique case (state_q)
      Load: begin
        if (!load_q[5][8] && number6_q != '0) begin
          most_q     <= load_q[5][7:0];
          value_q    <= load_q[5][7:0];
          distinct_q <= distinct_q + 9'd1;
        end
        if (at_q == 9'd265) begin
          literals_q <= '{distinct_q == 9'd1 ? Rle : Raw, value_q, most_q, 4'd0};
          state_q <= literals_i < 17'(Least) || distinct_q == 9'd1 ? Idle : Search;
          at_q    <= '0;
          sum_q   <= '0;
          // 63 fours up is the level of all numbers, at which all codes of up to 11 bits fit.
          tried_q <= 7'd127;
          step_q  <= 7'd64;
          final_q <= 1'b0;
          level_q <= bottom_q + 13'(4 * 63);
        end
      end
      Search:
      if (at_q == ends_q) begin
        at_q  <= '0;
        sum_q <= '0;
        if (final_q) begin
          state_q <= Fill;
          left_q  <= 19'd2048 - sum_q;
        end else begin
          if (feasible) tried_q <= trial;
          step_q  <= step_q >> 1;
          final_q <= step_q == 7'd1;
          level_q <= bottom_q + 13'({(feasible ? trial : tried_q) - (step_q >> 1), 2'b0});
        end
      end
      Fill: begin
        if (shorter) left_q <= left_q - 19'(gain2_q);
        if (at_q == ends_q) begin
          at_q <= '0;
          if (left_q == '0) state_q <= Count;
        end
        of_length_q <= '0;
        longest_q   <= '0;
        bits_q      <= '0;
      end
      Count: begin
        if (!at2_q[8] && number2_q != '0) begin
          of_length_q[length2_q] <= of_length_q[length2_q] + 9'd1;
          if (length2_q > longest_q) longest_q <= length2_q;
          bits_q <= bits_q + 21'(number2_q * 21'(length2_q));
        end
        if (at_q == ends_q) begin
          at_q    <= '0;
          rank_q  <= 4'd11;
          first_q <= '0;
          state_q <= Ranks;
        end
      end
      Ranks: begin  // the first code of each length, from the longest on
        at_q <= '0;
        next_q[rank_q] <= first_q;
        first_q <= (first_q + 12'(of_length_q[rank_q])) >> 1;
        rank_q  <= rank_q - 4'd1;
        if (rank_q == 4'd1) begin
          state_q <= Codes;
          if (bits_q[20:3] + 18'd64 < 18'(literals_i)) literals_q.kind <= Huffman;
          else state_q <= Idle;
          literals_q.longest <= longest_q;
        end
      end
      Codes: begin
        if (!at2_q[8] && number2_q != '0) next_q[length2_q] <= next_q[length2_q] + 12'd1;
        code_valid_o <= !at2_q[8];
        if (at_q == ends_q) state_q <= Idle;
      end
      default: begin
        at_q       <= '0;
        most_q     <= '0;
        distinct_q <= '0;
        if (start_i) state_q <= Load;
      end
    endcase
    code_byte_o <= at2_q[7:0];
    code_o      <= number2_q == '0 ? '0 : '{length2_q, next_q[length2_q][10:0]};
    if (!rst_ni) state_q <= Idle;
  end

endmodule
