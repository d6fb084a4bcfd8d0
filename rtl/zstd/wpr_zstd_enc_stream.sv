// SPDX-License-Identifier: Apache-2.0
// One Huffman-coded stream of an encoder: literals `from` to `to`, the last one first. It asks for
// rows of 8 literals, has two at a time, and codes a literal a clock while they are there.
module wpr_zstd_enc_stream
  import wpr_zstd_enc_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,        // synchronous
  input  logic        code_valid_i,  // wpr_zstd_enc_tree
  input  logic [ 7:0] code_byte_i,
  input  code_t       code_i,
  input  logic        start_i,
  input  logic [16:0] from_i,
  input  logic [16:0] to_i,          // one more than the last one; above from_i
  output logic        busy_o,
  output logic        over_o,        // it has no room
  output logic [14:0] size_o,        // bytes

  output logic        ask_o,         // for a row
  output logic [12:0] row_o,
  input  logic        given_i,       // it will come
  input  logic        come_i,        // here it is
  input  logic [63:0] literals_i,

  input  logic [10:0] read_i,        // row of the code
  output logic [63:0] code_o         // two clocks later
);

  (* ram_style = "block" *) code_t codes_q[256];
  (* ram_style = "block" *) logic [63:0] rows_q[2048];

  // ---- literals ---------------------------------------------------------------------------------

  logic [16:0] at_q, from_q, behind_from_q;
  logic going_q, now_valid_q, next_valid_q, awaits_q, more_q;
  logic [63:0] now_q, next_q;
  logic [12:0] row_q;
  logic last_q, row_ends, take;  // at_q is from_q; no literal is there until that is known
  assign take     = going_q && now_valid_q;
  assign row_ends = take && (at_q[2:0] == '0 || last_q);
  assign ask_o    = going_q && more_q && !next_valid_q && !awaits_q;
  assign row_o    = row_q;

  logic v1_q, v2_q, v3_q, last1_q, last2_q, last3_q;
  logic [7:0] byte1_q;
  code_t code2_q;
  logic [3:0] n3_q;      // of the code, and behind the last one of the bit that ends the stream
  logic [11:0] bits3_q;
  always_ff @(posedge clk_i) begin
    if (ask_o && given_i) begin
      awaits_q <= 1'b1;
      row_q    <= row_q - 13'd1;
      more_q   <= row_q != from_q[15:3];
    end
    if (row_ends || !now_valid_q) begin
      now_valid_q  <= next_valid_q;
      next_valid_q <= 1'b0;
      now_q        <= next_q;
    end
    if (come_i) begin
      next_q       <= literals_i;
      next_valid_q <= 1'b1;
      awaits_q     <= 1'b0;
    end
    if (take) begin
      at_q <= at_q - 17'd1;
      if (last_q) going_q <= 1'b0;
    end
    behind_from_q <= from_q + 17'd1;
    last_q        <= at_q == (take ? behind_from_q : from_q);
    v1_q    <= take;
    last1_q <= last_q;
    byte1_q <= now_q[8*at_q[2:0]+:8];
    v2_q    <= v1_q;
    last2_q <= last1_q;
    v3_q    <= v2_q;
    last3_q <= last2_q;
    n3_q    <= code2_q.n + 4'(last2_q);
    bits3_q <= {1'b0, code2_q.bits} | (last2_q ? 12'd1 << code2_q.n : 12'd0);
    if (start_i) begin
      from_q       <= from_i;
      at_q         <= to_i - 17'd1;
      row_q        <= 13'((to_i - 17'd1) >> 3);
      going_q      <= 1'b1;
      more_q       <= 1'b1;
      now_valid_q  <= 1'b0;
      next_valid_q <= 1'b0;
    end
    if (!rst_ni) begin
      {going_q, awaits_q, v1_q, v2_q, v3_q} <= '0;
    end
  end
  always_ff @(posedge clk_i) begin
    code2_q <= codes_q[byte1_q];
    if (code_valid_i) codes_q[code_byte_i] <= code_i;
  end

  // ---- their codes ------------------------------------------------------------------------------

  logic row_valid, flush;
  logic [63:0] row;
  logic [19:0] n_bits;
  logic [11:0] write_q;
  logic [3:0] wait_q;
  wpr_zstd_enc_bits #(.Most(12)) pack (
    .clk_i,
    .start_i,
    .s_valid_i(v3_q),
    .s_n_i    (n3_q),
    .s_bits_i (bits3_q),
    .flush_i  (flush),
    .m_valid_o(row_valid),
    .m_row_o  (row),
    .n_o      (n_bits)
  );
  logic [10:0] read1_q;
  assign flush  = wait_q == 4'd3;
  assign busy_o = going_q || v1_q || v2_q || v3_q || wait_q != '0;
  assign over_o = write_q[11];
  assign size_o = 15'((n_bits + 20'd7) >> 3);
  always_ff @(posedge clk_i) begin
    if (row_valid && !over_o) write_q <= write_q + 12'd1;
    if (v3_q && last3_q) wait_q <= 4'd1;
    else if (wait_q != '0) wait_q <= wait_q == 4'd5 ? 4'd0 : wait_q + 4'd1;
    if (start_i) write_q <= '0;
    if (!rst_ni) wait_q <= '0;
  end
  always_ff @(posedge clk_i) begin
    read1_q <= read_i;
    code_o  <= rows_q[read1_q];
    if (row_valid) rows_q[write_q[10:0]] <= row;
  end

endmodule
