// SPDX-License-Identifier: Apache-2.0
// One Huffman-coded stream of literals in the zstd decoder: a symbol a clock to rows of 8 bytes.
//
// Only the length of a code is needed before the next one can be seen: wpr_zstd_backward compares
// it with the least code of each length. Which symbol it is, is looked up behind. While the stream
// is idle, the reader may be used from outside (wpr_zstd_tree): what is taken so is taken a clock
// later.
module wpr_zstd_stream
  import wpr_zstd_pkg::*;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic     start_i,
  input  address_t ends_i,   // the byte behind the stream
  input  logic [17:0] size_i,  // bytes, 1 or more
  input  logic [17:0] n_i,     // symbols
  output logic     busy_o,
  output logic     bad_o,    // behind it: the stream is not valid

  input logic [11:1][11:0] least_i,  // the code (wpr_zstd_tree)
  input logic [11:1][ 7:0] first_i,
  input logic              symbol_valid_i,
  input logic [       7:0] symbol_number_i,
  input logic [       7:0] symbol_i,

  output logic        row_valid_o,  // rows in order; the last one may have fewer bytes
  output logic [63:0] row_o,

  input  logic        other_start_i,  // the reader's other user
  input  address_t    other_ends_i,
  input  logic [17:0] other_size_i,
  output logic        other_ready_o,
  output logic        other_bad_o,
  output logic [ 5:0] other_bits_o,
  output logic signed [21:0] other_left_o,
  input  logic        other_take_i,
  input  logic [ 3:0] other_n_i,

  output logic        request_o,
  output row_t        row_number_o,
  input  logic        grant_i,
  input  logic        response_i,
  input  logic [63:0] data_i
);

  logic ready, bad, take, more, early, busy_q, ends_q;
  logic [10:0] bits;
  logic [11:0] reached;
  logic [17:0] n_q;
  logic more_q;  // it is not 0, and the stream is busy
  logic signed [21:0] left;
  wpr_zstd_backward reader (
    .clk_i,
    .rst_ni,
    .start_i   (start_i || other_start_i),
    .ends_i    (start_i ? ends_i : other_ends_i),
    .size_i    (start_i ? size_i : other_size_i),
    .ready_o   (ready),
    .bad_o     (bad),
    .bits_o    (bits),
    .take_i    (other_take_i),
    .n_i       (other_n_i),
    .codes_i   (more),
    .least_i,
    .reached_o (reached),
    .left_o    (left),
    .request_o,
    .row_o     (row_number_o),
    .grant_i,
    .response_i,
    .data_i
  );
  assign other_ready_o = ready;
  assign other_bad_o   = bad;
  assign other_bits_o  = bits[10:5];
  assign other_left_o  = left;
  assign early         = busy_q && ready && (bad || left < 0);

  assign take = !reached[0];
  always_comb begin
    more = take ? n_q != 18'd1 : more_q;
    if (start_i) more = n_i != '0;
    // Nothing good comes of a stream that has ended too early.
    if (!start_i && early) more = 1'b0;
  end

  // ---- which symbol -----------------------------------------------------------------------------

  logic v1_q, v2_q, v3_q;
  logic [10:0] bits1_q;
  logic [11:0] hot1_q;
  logic [7:0] number2_q, symbol3_q;
  (* ram_style = "distributed" *) logic [7:0] symbols_q[256];
  logic [7:0] first1, code1;
  always_comb begin
    first1 = '0;
    code1  = '0;
    for (int i = 1; i < 12; i++) begin
      if (hot1_q[i]) first1 |= first_i[i];
      if (hot1_q[i]) code1 |= 8'(bits1_q >> (11 - i));
    end
  end
  always_ff @(posedge clk_i) if (symbol_valid_i) symbols_q[symbol_number_i] <= symbol_i;

  // ---- rows -------------------------------------------------------------------------------------

  logic last1_q, last2_q, last3_q;
  logic [2:0] lane_q;
  assign busy_o = busy_q;
  always_ff @(posedge clk_i) begin
    v1_q      <= take;
    last1_q   <= n_q == 18'd1;
    bits1_q   <= bits;
    hot1_q    <= reached & ~(reached << 1);
    v2_q      <= v1_q;
    last2_q   <= last1_q;
    number2_q <= code1 + first1;

    v3_q      <= v2_q;
    last3_q   <= last2_q;
    symbol3_q <= symbols_q[number2_q];

    row_valid_o <= v3_q && (last3_q || lane_q == '1);
    if (v3_q) begin
      row_o[8*lane_q+:8] <= symbol3_q;
      lane_q             <= lane_q + 1'b1;
    end

    if (take) n_q <= n_q - 1'b1;
    more_q <= more;
    ends_q <= busy_q && !more_q && !v1_q && !v2_q && !v3_q && ready;
    if (busy_q && ends_q) begin
      busy_q <= 1'b0;
      if (left != '0) bad_o <= 1'b1;
    end
    if (early) begin
      busy_q <= 1'b0;
      bad_o  <= 1'b1;
    end
    if (start_i) begin
      busy_q <= 1'b1;
      bad_o  <= 1'b0;
      n_q    <= n_i;
      ends_q <= 1'b0;
      lane_q <= '0;
    end
    if (!rst_ni) begin
      busy_q      <= 1'b0;
      more_q      <= 1'b0;
      bad_o       <= 1'b0;
      v1_q        <= 1'b0;
      v2_q        <= 1'b0;
      v3_q        <= 1'b0;
      row_valid_o <= 1'b0;
    end
  end

endmodule
