// SPDX-License-Identifier: Apache-2.0
// Pieces of a bit stream into one, whose bits from Most on are cut off. Latency join_clocks of
// wpr_zfp_pkg, one set of pieces a clock. m pieces in a row have m * Step + Extra bits at most.
module wpr_zfp_join #(
  parameter int unsigned Pieces = 32,  // a power of two
  parameter int unsigned Step   = 16,
  parameter int unsigned Extra  = 15,
  parameter int unsigned Most   = 256,
  localparam int unsigned Levels = $clog2(Pieces),
  localparam int unsigned InBits = $clog2(Step + Extra + 1),
  localparam int unsigned OutBits = $clog2(Pieces * Step + Extra + 1)
) (
  input  logic                              clk_i,
  input  logic [Pieces-1:0][Step+Extra-1:0] codes_i,  // the first piece lowest
  input  logic [Pieces-1:0][    InBits-1:0] sizes_i,  // bits; a code's bits beyond are 0
  output logic [  Most-1:0]                 code_o,
  output logic [OutBits-1:0]                size_o    // of all pieces, also if that is beyond Most
);

  for (genvar l = 0; l <= int'(Levels); l++) begin : g_level
    localparam int unsigned Whole = (Step << l) + Extra;
    localparam int unsigned Width = Whole < Most ? Whole : Most;
    localparam int unsigned Bits = $clog2(Whole + 1);
    logic [(Pieces>>l)-1:0][Width-1:0] codes;
    logic [(Pieces>>l)-1:0][Bits-1:0] sizes;
    if (l == 0) begin : g_in
      always_comb for (int i = 0; i < int'(Pieces); i++) codes[i] = Width'(codes_i[i]);
      assign sizes = sizes_i;
    end else if (!wpr_zfp_pkg::shifts_twice(1 << (l - 1), Step, Extra)) begin : g_join
      always_ff @(posedge clk_i) begin
        for (int i = 0; i < int'(Pieces >> l); i++) begin
          codes[i] <= Width'(g_level[l-1].codes[2*i]) |
                      Width'(g_level[l-1].codes[2*i+1]) << g_level[l-1].sizes[2*i];
          sizes[i] <= Bits'(g_level[l-1].sizes[2*i]) + Bits'(g_level[l-1].sizes[2*i+1]);
        end
      end
    end else begin : g_join_twice  // shifted by less than 16, then by sixteens
      localparam int unsigned Near = (Step << (l - 1)) + Extra + 15;
      localparam int unsigned Sixteens = wpr_zfp_pkg::shift_bits(1 << (l - 1), Step, Extra) - 4;
      logic [(Pieces>>l)-1:0][Width-1:0] low_q;
      logic [(Pieces>>l)-1:0][Near-1:0] high_q;
      logic [(Pieces>>l)-1:0][Sixteens-1:0] far_q;
      logic [(Pieces>>l)-1:0][Bits-1:0] sizes_q;
      always_ff @(posedge clk_i) begin
        for (int i = 0; i < int'(Pieces >> l); i++) begin
          low_q[i]   <= Width'(g_level[l-1].codes[2*i]);
          high_q[i]  <= Near'(g_level[l-1].codes[2*i+1]) << g_level[l-1].sizes[2*i][3:0];
          far_q[i]   <= g_level[l-1].sizes[2*i][Sixteens+3:4];
          sizes_q[i] <= Bits'(g_level[l-1].sizes[2*i]) + Bits'(g_level[l-1].sizes[2*i+1]);
          codes[i]   <= low_q[i] | Width'(high_q[i]) << {far_q[i], 4'd0};
        end
        sizes <= sizes_q;
      end
    end
  end

  assign code_o = Most'(g_level[Levels].codes[0]);
  assign size_o = g_level[Levels].sizes[0];

endmodule
