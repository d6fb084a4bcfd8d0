// SPDX-License-Identifier: Apache-2.0
// The numbers of the ones in words, lowest first: one a clock, the next word's first one right
// behind a word's last. A word without ones takes a clock. Latency 3 clocks.
module wpr_ones #(
  parameter int unsigned Bits = 16,  // of a word, a power of two
  parameter int unsigned Tag  = 8,   // bits that go along with a word
  localparam int unsigned Log = $clog2(Bits)
) (
  input  logic            clk_i,
  input  logic            rst_ni,     // synchronous
  input  logic            s_valid_i,
  output logic            s_ready_o,
  input  logic [Bits-1:0] s_bits_i,
  input  logic [ Tag-1:0] s_tag_i,
  output logic            m_valid_o,
  input  logic            m_ready_i,
  output logic [ Log-1:0] m_one_o,
  output logic [ Tag-1:0] m_tag_o,
  output logic            none_o      // no word is inside
);

  logic in_valid_q, have_q, some_q, move, load;
  logic [Bits-1:0] in_bits_q, bits_q, rest, lowest_q;
  logic [Tag-1:0] in_tag_q, tag_q;
  logic [Bits/4-1:0][2:0] in_ones_q;  // of four bits
  logic [Log:0] in_ones, left_q;      // ones in in_bits_q, bits_q
  assign rest      = bits_q & (bits_q - 1'b1);
  assign move      = m_ready_i || !m_valid_o;
  assign load      = !have_q || (move && left_q[Log:1] == '0);
  assign s_ready_o = !in_valid_q || load;
  assign none_o    = !in_valid_q && !have_q && !m_valid_o;
  assign m_valid_o = some_q;

  function automatic logic [2:0] ones(input logic [3:0] bits);
    return 3'(bits[0]) + 3'(bits[1]) + 3'(bits[2]) + 3'(bits[3]);
  endfunction
  always_comb begin
    in_ones = '0;
    for (int i = 0; i < int'(Bits / 4); i++) in_ones += (Log + 1)'(in_ones_q[i]);
  end

  always_ff @(posedge clk_i) begin
    if (s_ready_o) begin
      in_valid_q <= s_valid_i;
      in_bits_q  <= s_bits_i;
      in_tag_q   <= s_tag_i;
      for (int i = 0; i < int'(Bits / 4); i++) in_ones_q[i] <= ones(s_bits_i[4*i+:4]);
    end
    if (load) begin
      have_q <= in_valid_q;
      bits_q <= in_bits_q;
      tag_q  <= in_tag_q;
      left_q <= in_ones;
    end else if (move) begin
      bits_q <= rest;
      left_q <= left_q - 1'b1;
    end
    if (move) begin
      some_q   <= have_q && left_q != '0;
      lowest_q <= bits_q & ~rest;
      m_tag_o  <= tag_q;
    end
    if (!rst_ni) {in_valid_q, have_q, some_q} <= '0;
  end

  for (genvar k = 0; k < int'(Log); k++) begin : g_one
    logic [Bits-1:0] having;  // those with bit k in their number
    always_comb for (int i = 0; i < int'(Bits); i++) having[i] = lowest_q[i] && i[k];
    assign m_one_o[k] = having != '0;
  end

endmodule
