// SPDX-License-Identifier: Apache-2.0
// The code of one bit plane (codecs/zfp/spec.md, A cell, 3). Every value but the last ones has its
// bit in it; with a 1 in front where "there is another 1" is asked: of a value from n on that is
// the first one or stands behind a 1. Behind the last 1 stands a 0, unless all values have been
// reached. Latency log2(Values) - 1 clocks, one plane a clock.
//
// A plane whose use_i is 0 has no code; its bits_i must be 0.
module wpr_zfp_plane #(
  parameter int unsigned Values = 16,  // a power of two, 4 or more
  localparam int unsigned Log = $clog2(Values)
) (
  input  logic                clk_i,
  input  logic                use_i,
  input  logic [  Values-1:0] bits_i,
  input  logic [  Values-1:0] known_i,    // of the values below n of this plane
  input  logic [  Values-1:0] reached_i,  // of the next plane
  output logic [2*Values-2:0] code_o,     // the first bit lowest; bits beyond the size are 0
  output logic [       Log:0] size_o
);

  // ---- the fields of values, and what stands in front of them -----------------------------------

  logic [Values-1:0] asked;  // the value's bit comes behind a 1
  logic implied;             // the last value's bit: no bit at all, then
  logic [Log-1:0] height;    // values reached, without the last one
  always_comb begin
    for (int i = 0; i < int'(Values); i++) begin
      asked[i] = use_i && reached_i[i] && !known_i[i] &&
                 (i == 0 || known_i[(i+Values-1)%Values] || bits_i[(i+Values-1)%Values]);
    end
    implied = bits_i[Values-1] && !known_i[Values-1] && !asked[Values-1];
    height  = '0;
    for (int b = 0; b < int'(Log); b++) begin
      for (int i = (1 << b) - 1; i < int'(Values) - 1; i += 1 << b) height[b] ^= reached_i[i];
    end
  end

  // ---- joined, two and two ----------------------------------------------------------------------

  for (genvar l = 0; l <= int'(Log); l++) begin : g_level
    logic [(Values>>l)-1:0][(2<<l)-1:0] code;
    logic [(Values>>l)-1:0][l:0] more;  // bits, beyond one a value
    logic [Log:0] rest;                 // of the size
    if (l == 0) begin : g_fields
      always_comb begin
        for (int i = 0; i < int'(Values) - 1; i++) begin
          code[i] = {asked[i] && bits_i[i], asked[i] || bits_i[i]};
          more[i] = asked[i];
        end
        code[Values-1] = {1'b0, bits_i[Values-1] && !implied};
        more[Values-1] = 1'b0;
        rest = use_i ? (Log + 1)'(height) + (Log + 1)'(!implied) : '0;
      end
    end else begin : g_join
      logic [(Values>>l)-1:0][(2<<l)-1:0] joined;
      logic [(Values>>l)-1:0][l:0] sum;
      always_comb begin
        for (int i = 0; i < int'(Values >> l); i++) begin
          joined[i] = (2 << l)'(g_level[l-1].code[2*i]) |
                      ((2 << l)'(g_level[l-1].code[2*i+1]) << g_level[l-1].more[2*i])
                          << (1 << (l - 1));
          sum[i] = (l + 1)'(g_level[l-1].more[2*i]) + (l + 1)'(g_level[l-1].more[2*i+1]);
        end
      end
      if (l == 1) begin : g_same_clock
        assign code = joined;
        assign more = sum;
        assign rest = g_level[l-1].rest;
      end else begin : g_register
        always_ff @(posedge clk_i) begin
          code <= joined;
          more <= sum;
          rest <= g_level[l-1].rest + (l == int'(Log) ? (Log + 1)'(sum[0]) : '0);
        end
      end
    end
  end

  assign code_o = g_level[Log].code[0][2*Values-2:0];
  assign size_o = g_level[Log].rest;

endmodule
