// SPDX-License-Identifier: Apache-2.0
// The Huffman code of literals in the zstd decoder: reads the weights of a block, four bits each or
// FSE-coded, and makes of them what wpr_zstd_stream needs: of each length the least code, and the
// symbols in the order of their codes.
//
// The description begins at the forward reader's next byte. The backward reader is that of a
// literals stream, which is idle meanwhile. A weight of four bits takes two clocks, one in an FSE
// code three; a symbol one more to find its place.
module wpr_zstd_tree
  import wpr_zstd_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic     start_i,
  input  address_t ends_i,   // the literals section's end
  input  address_t have_i,   // bytes of the packet that have come
  output logic     busy_o,
  output logic     bad_o,    // behind it: the description is not valid
  output address_t streams_o,  // behind it: the byte behind the description

  // forward reader
  input  logic        ready_i,
  input  logic [10:0] bits_i,
  input  address_t    at_i,
  input  logic [ 2:0] bit_i,
  output logic        take_o,  // has no effect without ready_i
  output logic [ 5:0] n_o,

  // backward reader
  output logic        back_start_o,
  output address_t    back_ends_o,
  output logic [17:0] back_size_o,
  input  logic        back_ready_i,
  input  logic        back_bad_i,
  input  logic [ 5:0] back_bits_i,
  input  logic signed [21:0] back_left_i,
  output logic        back_take_o,
  output logic [ 3:0] back_n_o,

  // the code
  output logic [11:1][11:0] least_o,  // of a length, as the highest of 11 bits
  output logic [11:1][ 7:0] first_o,  // what is added to a code of that length: its symbol's number
  output logic              symbol_valid_o,  // one of the symbols in order, to a clock behind
  output logic [       7:0] symbol_number_o,
  output logic [       7:0] symbol_o
);

  typedef enum logic [3:0] {
    Idle, Head, Nibbles, Wait, Describe, Build, Open, FirstState, SecondState, Read, Show, Emit,
    Sum, Lengths, Places
  } state_e;
  state_e state_q;
  address_t ends_q;
  logic [7:0] left_q;  // weights of four bits that are to come
  logic nibble_q;  // the second weight of a byte is next
  logic other_q;  // of the two states the second one is next; its last weight
  logic final_q;
  logic long_q;  // the description ends behind the section
  logic come_q;  // all of it has come
  logic [3:0] step_q;  // a weight from 1 on

  // ---- weights ----------------------------------------------------------------------------------

  logic put, last_put, put1_q;
  logic [3:0] weight, weight1_q;  // a clock behind it is counted
  logic [8:0] n_q;  // weights
  (* ram_style = "distributed" *) logic [3:0] weights_q[256];
  logic [11:1][8:0] counts_q;  // of symbols with a weight
  logic [17:0] sum_q;  // of 2^(weight - 1)

  logic counts_busy, counts_bad, count_valid, less, counts_take;
  logic [3:0] log;
  logic [9:0] count;
  logic [5:0] counts_n;
  wpr_zstd_counts counts (
    .clk_i,
    .rst_ni,
    .start_i      (state_q == Head && ready_i && !bits_i[7]),
    .most_log_i   (4'd6),
    .most_symbol_i(6'd15),
    .busy_o       (counts_busy),
    .bad_o        (counts_bad),
    .log_o        (log),
    .count_valid_o(count_valid),
    .count_o      (count),
    .less_o       (less),
    .ready_i      (ready_i && state_q == Describe),
    .bits_i,
    .bit_i,
    .take_o       (counts_take),
    .n_o          (counts_n)
  );

  logic table_busy, table_end_q, described, read;
  logic [5:0] table_state, base;
  logic [3:0] table_symbol, table_n;
  logic [1:0][5:0] states_q;
  wpr_zstd_fse #(.MostLog(6), .SymbolWidth(4)) table_of_weights (
    .clk_i,
    .rst_ni,
    .begin_i      (state_q == Head),
    .count_valid_i(count_valid),
    .count_i      (count[6:0]),
    .less_i       (less),
    .end_i        (table_end_q),
    .log_i        (log),
    .rle_i        (1'b0),
    .symbol_i     ('0),
    .busy_o       (table_busy),
    .log_o        (),
    .made_o       (),
    .extra_i      ('0),
    .read_i       (read),
    .state_i      (table_state),
    .symbol_o     (table_symbol),
    .extra_o      (),
    .all_o        (),
    .n_o          (table_n),
    .state_o      (base)
  );
  assign read        = state_q == Read;
  assign table_state = states_q[other_q];
  assign described   = state_q == Describe && !counts_busy && (ready_i || counts_bad);
  always_ff @(posedge clk_i) table_end_q <= described && !counts_bad && rst_ni;

  always_comb begin
    take_o = state_q == Head || nibble_q || (state_q == Describe && counts_take);
    n_o    = state_q == Head || nibble_q ? 6'd8 : counts_n;
  end

  // A state is read in its clock, the bits of the next one are shown behind it, its weight is put
  // and they are taken in the third. The reader takes them a clock later, and has counted them when
  // the next ones are. A weight whose bits are not there is the last but one.
  logic over, taken_q;
  logic [3:0] back_n;
  logic [5:0] back_value, next_state_q;
  assign back_n      = state_q == FirstState || state_q == SecondState ? log : table_n;
  assign back_value  = 6'(back_bits_i >> (4'd6 - back_n));
  assign over        = back_left_i < $signed(22'(table_n));
  assign back_take_o = (back_ready_i && !taken_q && (state_q == FirstState ||
                        state_q == SecondState)) || (state_q == Emit && !final_q);
  assign back_n_o    = back_n;

  assign put      = last_put || (state_q == Nibbles && ready_i) || state_q == Emit;
  logic [3:0] last_weight_q;
  assign last_put = state_q == Sum && step_q == 4'd5;
  assign weight   = last_put ? last_weight_q : state_q == Emit ? table_symbol :
                    nibble_q ? bits_i[3:0] : bits_i[7:4];

  // ---- from weights to codes --------------------------------------------------------------------

  logic [3:0] log_q;   // most bits of a code
  logic [3:0] length_q;  // of the codes of symbols with that weight
  logic [11:0] code_q;  // their first one
  logic [7:0] number_q;  // and its symbol's number
  logic [11:0] code;  // behind the last one
  logic [11:1][7:0] next_q;
  logic [7:0] place_q, before_last_q;
  logic last_place_q;  // place_q is the last one
  logic [3:0] high, placed;
  logic [11:0] rest_q;
  logic uneven_q;  // it is no power of two
  logic off_q;  // no weights, or too many, or too large
  logic sum_bad_q;  // a clock ago Sum found one of these, or a description that is too long
  always_comb begin
    high = '0;
    for (int i = 0; i < 11; i++) if (sum_q[i]) high = 4'(i);
  end
  logic [8:0] of_weight;
  always_comb begin
    of_weight = '0;
    for (int w = 1; w < 12; w++) if (step_q == 4'(w)) of_weight = counts_q[w];
  end
  assign code   = code_q + 12'(of_weight);
  assign placed = weights_q[place_q];
  logic [7:0] number;
  always_comb begin
    number = '0;
    for (int w = 1; w < 12; w++) if (placed == 4'(w)) number = next_q[w];
  end
  always_ff @(posedge clk_i) begin
    symbol_valid_o  <= state_q == Places && placed != '0;
    symbol_o        <= place_q;
    symbol_number_o <= number;
  end

  assign busy_o = state_q != Idle;
  always_ff @(posedge clk_i) begin
    put1_q    <= put;
    weight1_q <= weight;
    taken_q   <= back_take_o;
    come_q    <= have_i >= back_ends_o;
    before_last_q <= 8'(n_q - 9'd2);
    last_place_q  <= state_q == Places && place_q == before_last_q;
    long_q    <= streams_o > ends_q;
    off_q     <= sum_q[17:11] != '0 || sum_q == '0 || n_q > 9'd255;
    uneven_q  <= (rest_q & (rest_q - 1'b1)) != '0;
    rest_q    <= (12'd1 << log_q) - sum_q[11:0];
    sum_bad_q <= state_q == Sum && ((step_q == 4'd3 && off_q) || (step_q == 4'd4 && long_q) ||
                                    (step_q == 4'd6 && uneven_q) ||
                                    (step_q == 4'd7 && counts_q[1] < 9'd2));
    if (sum_bad_q) bad_o <= 1'b1;
    if (put1_q) begin
      n_q <= n_q + 1'b1;
      for (int w = 1; w < 12; w++) if (weight1_q == 4'(w)) counts_q[w] <= counts_q[w] + 1'b1;
      if (weight1_q != '0) sum_q <= sum_q + (18'd1 << (weight1_q - 4'd1));
      if (weight1_q > 4'd11) bad_o <= 1'b1;
    end
    unique case (state_q)
      Head:
      if (ready_i) begin
        left_q      <= bits_i[7:0] - 8'd127;
        nibble_q    <= 1'b0;
        state_q     <= bits_i[7] ? Wait : Describe;
        back_ends_o <= at_i + address_t'(bits_i[6:0]) + 1'b1;
        streams_o   <= at_i + (bits_i[7] ? address_t'(bits_i[6:1]) + address_t'(2) :
                               address_t'(bits_i[6:0]) + 1'b1);
      end
      Wait: if (ready_i) state_q <= long_q ? Sum : Nibbles;
      Nibbles:
      if (ready_i) begin
        nibble_q <= !nibble_q && left_q != 8'd1;
        left_q   <= left_q - 1'b1;
        if (left_q == 8'd1) state_q <= Sum;
      end
      Describe:
      if (described) begin
        state_q     <= counts_bad ? Sum : Build;
        back_size_o <= 18'(back_ends_o - at_i);
        if (counts_bad) bad_o <= 1'b1;
      end
      Build: begin
        if (long_q || back_size_o == '0 || back_size_o[17]) begin
          state_q <= Sum;
          bad_o   <= 1'b1;
        end else if (!table_busy && come_q) state_q <= Open;
      end
      Open: state_q <= FirstState;
      FirstState:
      if (back_ready_i && !taken_q) begin
        states_q[0] <= back_value;
        state_q     <= SecondState;
      end
      SecondState:
      if (back_ready_i && !taken_q) begin
        states_q[1] <= back_value;
        state_q     <= Read;
        if (back_bad_i) begin
          state_q <= Sum;
          bad_o   <= 1'b1;
        end
      end
      Read: state_q <= Show;
      Show: begin
        next_state_q <= base | back_value;
        if (back_ready_i || final_q) state_q <= Emit;
      end
      Emit: begin
        states_q[other_q] <= next_state_q;
        other_q           <= !other_q;
        final_q           <= over;
        state_q           <= final_q || n_q[8] ? Sum : Read;
        if (n_q[8] || (back_left_i < 0 && !final_q)) begin
          bad_o   <= 1'b1;
          state_q <= Sum;
        end
      end
      Sum: begin
        step_q <= step_q + 1'b1;
        // The last weight is counted when the step is 2.
        if (step_q == 4'd2) log_q <= high + 4'd1;
        if (step_q == 4'd4) begin
          last_weight_q <= '0;
          for (int i = 0; i < 11; i++) if (rest_q[i]) last_weight_q <= 4'(i + 1);
        end
        if (step_q == 4'd7) begin
          step_q   <= 4'd1;
          code_q   <= '0;
          length_q <= log_q;
          number_q <= '0;
          place_q  <= '0;
          least_o  <= '0;
          state_q  <= Lengths;
        end
        if (bad_o || sum_bad_q) state_q <= Idle;
      end
      Lengths: begin
        step_q   <= step_q + 1'b1;
        length_q <= length_q - 1'b1;
        code_q   <= code >> 1;
        number_q <= number_q + of_weight[7:0];
        for (int w = 1; w < 12; w++) if (step_q == 4'(w)) next_q[w] <= number_q;
        for (int length = 1; length < 12; length++) begin
          if (length_q == 4'(length)) begin
            least_o[length] <= code_q << (11 - length);
            first_o[length] <= number_q - code_q[7:0];
          end
        end
        if (step_q == log_q) state_q <= Places;
      end
      Places: begin
        for (int w = 1; w < 12; w++) if (placed == 4'(w)) next_q[w] <= next_q[w] + 1'b1;
        place_q <= place_q + 1'b1;
        if (last_place_q) state_q <= Idle;
      end
      default: ;
    endcase
    if (start_i) begin
      state_q  <= Head;
      ends_q   <= ends_i;
      bad_o    <= 1'b0;
      n_q      <= '0;
      counts_q <= '0;
      sum_q    <= '0;
      step_q   <= '0;
      other_q  <= 1'b0;
      final_q  <= 1'b0;
    end
    if (!rst_ni) begin
      state_q <= Idle;
      bad_o   <= 1'b0;
    end
  end
  assign back_start_o = state_q == Open;
  always_ff @(posedge clk_i) if (put1_q) weights_q[n_q[7:0]] <= weight1_q;

endmodule
