// SPDX-License-Identifier: Apache-2.0
// Sequences of the zstd decoder to elements of the copy engine: up to 16 literals and a match of up
// to 256 bytes each, as soon as the literals have come. Behind a block's last sequence stand the
// rest of its literals.
module wpr_zstd_execute
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogWindow = 17
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        most_valid_i,  // of a packet:
  input  logic [22:0] most_i,        // bytes that it may have

  input  logic        start_i,  // of a block:
  input  logic [17:0] n_i,      // literals
  output logic        busy_o,
  output logic        bad_o,    // more literals are taken than there are, or bytes made than may be

  input  logic               come_i,      // sequences are still made
  input  logic               valid_i,
  output logic               take_o,
  input  logic [       16:0] literals_i,
  input  logic [       17:0] match_i,
  input  logic [LogWindow:0] offset_i,

  input  logic [7:0] wait_i,  // literals that have come and are not used
  output logic [4:0] used_o,

  input  logic drain_i,     // instead: takes the literals that wait
  input  logic end_i,       // the packet ends
  input  logic end_bad_i,
  output logic end_take_o,

  output logic               valid_o,
  input  logic               room_i,  // for this one and one more
  output logic               last_o,
  output logic               wrong_o,
  output logic [        4:0] n_literals_o,
  output logic [        8:0] n_match_o,
  output logic [LogWindow:0] offset_o
);

  function automatic logic [4:0] capped(logic [17:0] n);  // 16 at most
    return n > 18'd16 ? 5'd16 : n[4:0];
  endfunction

  typedef enum logic [1:0] {Idle, Sequences, Rest} state_e;
  state_e state_q;
  logic some_q;  // a sequence, of which is left:
  logic [17:0] literals_q;  // read where there are many
  logic [17:0] match_q;
  logic [LogWindow:0] offset_q;
  logic [17:0] left_q;  // literals behind it
  logic [22:0] most_q;  // bytes behind it
  logic many_q, long_match_q, step, ends, next, take;  // many, long: more than an element holds
  logic enough_q;  // a clock ago as many literals had come as the next element takes
  logic room, next_valid;  // the sequence that is next:
  logic [16:0] next_literals;
  logic next_many;
  logic [4:0] next_n_literals;  // of its first element
  logic [17:0] next_match;
  logic [18:0] next_all;  // bytes
  logic [LogWindow:0] next_offset;
  logic [4:0] n_literals_q;  // of the next element
  logic turn_q;  // drains, every other clock:
  logic [4:0] drained_q;
  logic [8:0] n_match;
  assign n_match    = many_q ? '0 : long_match_q ? 9'd256 : match_q[8:0];
  assign step       = some_q && room_i && enough_q;
  assign ends       = step && !many_q && !long_match_q;
  assign next       = ends || !some_q;
  assign take       = state_q == Sequences && next;  // where there is one
  assign take_o     = valid_i && room;
  assign used_o     = step ? n_literals_q : turn_q ? drained_q : '0;
  assign end_take_o = end_i && room_i;
  assign busy_o     = state_q != Idle;
  wpr_skid #(.Width(61 + LogWindow)) ahead (
    .clk_i,
    .rst_ni   (rst_ni && !drain_i),
    .s_valid_i(valid_i),
    .s_ready_o(room),
    .s_data_i ({literals_i, literals_i > 17'd16, capped(18'(literals_i)), match_i,
                19'(literals_i) + 19'(match_i), offset_i}),
    .m_valid_o(next_valid),
    .m_ready_i(take),
    .m_data_o ({next_literals, next_many, next_n_literals, next_match, next_all, next_offset})
  );

  // Of the literals that wait in this clock those that the next clock's element takes, for each
  // element that it may be. One that begins the rest of a block's literals waits a clock.
  logic fits, fits_behind, fits_next, fits_next_behind;
  logic [4:0] behind;  // of the element behind this one, where both have literals of one sequence
  assign behind           = capped(literals_q - 18'd16);
  assign fits             = at_least(12'(wait_i), 12'(n_literals_q));
  assign fits_behind      = wait_i[7:5] != '0 || (literals_q[17:5] == '0 &&
                            at_least(12'(wait_i), 12'(literals_q[4:0])));  // this one takes 16
  assign fits_next        = at_least(12'(wait_i), 12'(next_n_literals));
  assign fits_next_behind = at_least(12'(wait_i), 12'(n_literals_q) + 12'(next_n_literals));
  always_ff @(posedge clk_i) begin
    if (next) enough_q <= next_valid && (step ? fits_next_behind : fits_next);
    else enough_q <= step ? !many_q || fits_behind : fits;
  end

  always_ff @(posedge clk_i) begin
    valid_o      <= (step && (n_literals_q != '0 || n_match != '0)) ||
                    (turn_q && drained_q != '0) || end_take_o;
    turn_q       <= drain_i && room_i && !turn_q && !step && rst_ni;
    drained_q    <= wait_i[7:4] != '0 ? 5'd16 : wait_i[4:0];
    last_o       <= end_i;
    wrong_o      <= end_bad_i;
    n_literals_o <= end_i ? '0 : used_o;
    n_match_o    <= end_i || drain_i ? '0 : n_match;
    offset_o     <= offset_q;

    if (step) begin
      literals_q <= literals_q - 18'd16;
      many_q     <= many_q && literals_q > 18'd32;
      n_literals_q <= many_q ? behind : '0;
      if (!many_q) match_q <= match_q - 18'd256;  // or it ends
      if (!many_q) long_match_q <= match_q > 18'd512;
    end
    if (next) begin
      some_q     <= 1'b0;
      literals_q <= next_valid ? 18'(next_literals) : left_q;
      if (take && next_valid) begin
        some_q       <= 1'b1;
        match_q      <= next_match;
        many_q       <= next_many;
        n_literals_q <= next_n_literals;
        long_match_q <= next_match > 18'd256;
        offset_q     <= next_offset;
        left_q       <= left_q - 18'(next_literals);
        most_q       <= most_q - 23'(next_all);
        if (18'(next_literals) > left_q || 23'(next_all) > most_q) begin
          bad_o  <= 1'b1;
          some_q <= 1'b0;
        end
      end else if (state_q == Sequences && !come_i && !next_valid) begin
        state_q      <= Rest;
        some_q       <= 1'b1;
        match_q      <= '0;
        many_q       <= left_q > 18'd16;
        n_literals_q <= capped(left_q);
        long_match_q <= 1'b0;
        most_q       <= most_q - 23'(left_q);
        if (23'(left_q) > most_q) begin
          bad_o  <= 1'b1;
          some_q <= 1'b0;
        end
      end else if (state_q == Rest) begin
        state_q <= Idle;
      end
    end
    if (most_valid_i) most_q <= most_i;
    if (start_i) begin
      state_q <= Sequences;
      left_q  <= n_i;
    end
    if (drain_i || !rst_ni) begin
      state_q <= Idle;
      some_q  <= 1'b0;
    end
    if (!rst_ni) begin
      bad_o   <= 1'b0;
      valid_o <= 1'b0;
    end
  end

endmodule
