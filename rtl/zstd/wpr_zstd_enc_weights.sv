// SPDX-License-Identifier: Apache-2.0
// The description of a Huffman code: weights coded by FSE, always with the same distribution, or in
// four bits where there is only one. A weight a clock, 13 clocks more.
module wpr_zstd_enc_weights
  import wpr_zstd_enc_pkg::*;
(
  input  logic        clk_i,
  input  logic        rst_ni,        // synchronous
  input  logic        code_valid_i,  // wpr_zstd_enc_tree
  input  logic [ 7:0] code_byte_i,
  input  logic [ 3:0] length_i,      // of its code
  input  logic        start_i,
  input  logic [ 7:0] most_i,        // the largest byte, and the longest code
  input  logic [ 3:0] longest_i,
  output logic        busy_o,
  output logic [ 8:0] size_o,        // bytes of weights; more than 120 have no description
  input  logic [ 3:0] row_i,
  output logic [63:0] row_o          // of the weights, two clocks later
);

  (* ram_style = "distributed" *) logic [3:0] lengths_q[256];
  always_ff @(posedge clk_i) if (code_valid_i) lengths_q[code_byte_i] <= length_i;

  logic going_q, last_q;
  logic [8:0] at_q;
  logic [3:0] wait_q;
  logic [1:0] touched_q;  // a state has been chosen
  logic v1_q, odd1_q, first1_q, v2_q, v3_q, odd2_q, odd3_q;
  logic [3:0] weight1_q;
  logic [1:0][2:0] n;
  logic [1:0][5:0] bits, state;
  for (genvar k = 0; k < 2; k++) begin : g_state
    wpr_zstd_enc_fse #(.Kind(Weight), .Log(6)) fse (
      .clk_i,
      .s_valid_i(v1_q && odd1_q == 1'(k)),
      .s_first_i(first1_q),
      .s_code_i ({2'b0, weight1_q}),
      .m_n_o    (n[k]),
      .m_bits_o (bits[k]),
      .state_o  (state[k])
    );
  end

  logic put, put_q;
  logic [3:0] put_n, put_n_q;
  logic [12:0] put_bits, put_bits_q;
  logic [19:0] n_bits;
  logic row_valid, flush;
  logic [63:0] row;
  assign flush = wait_q == 4'd10;
  always_comb begin
    put      = v3_q;
    put_n    = 4'(n[odd3_q]);
    put_bits = 13'(bits[odd3_q]);
    if (wait_q == 4'd5) begin
      put      = 1'b1;
      put_n    = 4'd13;
      put_bits = {1'b1, state[0], state[1]};
    end
  end
  wpr_zstd_enc_bits #(.Most(13)) pack (
    .clk_i,
    .start_i,
    .s_valid_i(put_q),
    .s_n_i    (put_n_q),
    .s_bits_i (put_bits_q),
    .flush_i  (flush),
    .m_valid_o(row_valid),
    .m_row_o  (row),
    .n_o      (n_bits)
  );
  assign size_o = n_bits > 20'd2040 ? 9'd256 : 9'((n_bits + 20'd7) >> 3);

  (* ram_style = "distributed" *) logic [63:0] rows_q[16];
  logic [4:0] write_q;
  logic [3:0] row1_q;
  logic [3:0] length;
  assign length = lengths_q[at_q[7:0]];
  assign busy_o = going_q || wait_q != '0;
  assign last_q = at_q == '0;
  always_ff @(posedge clk_i) begin
    put_q      <= put && rst_ni;
    put_n_q    <= put_n;
    put_bits_q <= put_bits;
    row1_q <= row_i;
    row_o  <= rows_q[row1_q];
    if (row_valid && !write_q[4]) rows_q[write_q[3:0]] <= row;
    if (row_valid && !write_q[4]) write_q <= write_q + 5'd1;
    v1_q      <= going_q;
    odd1_q    <= at_q[0];
    first1_q  <= !touched_q[at_q[0]];
    weight1_q <= length == '0 ? 4'd0 : longest_i + 4'd1 - length;
    {v3_q, v2_q, odd3_q, odd2_q} <= {v2_q, v1_q, odd2_q, odd1_q};
    if (going_q) begin
      at_q <= at_q - 9'd1;
      touched_q[at_q[0]] <= 1'b1;
      if (last_q) begin
        going_q <= 1'b0;
        wait_q  <= 4'd1;
      end
    end
    if (wait_q != '0) wait_q <= wait_q == 4'd12 ? 4'd0 : wait_q + 4'd1;
    if (start_i) begin
      going_q   <= 1'b1;
      at_q      <= 9'(most_i) - 9'd1;
      touched_q <= '0;
      write_q   <= '0;
    end
    if (!rst_ni) begin
      going_q <= 1'b0;
      wait_q  <= '0;
      v1_q    <= 1'b0;
      v2_q    <= 1'b0;
      v3_q    <= 1'b0;
    end
  end

endmodule
