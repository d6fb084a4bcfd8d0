// SPDX-License-Identifier: Apache-2.0
// wpr_zfp_plane: the code of a plane of four coefficients is what codecs/zfp/spec.md (A cell, 3)
// says, read off one bit after the other.
module wpr_zfp_plane_props (
  input logic       clk_i,
  input logic       use_i,
  input logic [3:0] bits_i,
  input logic [2:0] n_i  // of coefficients whose bits stand in the code as they are: 0 to 4
);

  // ---- as the specification has it --------------------------------------------------------------

  logic [6:0] code, code_q;
  logic [2:0] size, size_q;
  logic [3:0] known, reached;
  logic ended, another, implied;
  int n;
  always_comb begin
    code    = '0;
    size    = '0;
    n       = int'(n_i);
    ended   = 1'b0;
    another = 1'b0;
    implied = 1'b0;
    for (int i = 0; i < 4; i++) begin
      if (i < int'(n_i)) begin
        code |= 7'(bits_i[i]) << size;
        size += 3'd1;
      end else if (!ended) begin
        if (!another) begin
          another = (bits_i >> i) != '0;
          code |= 7'(another) << size;
          size += 3'd1;
          ended = !another;
        end
        if (another) begin
          implied = i == 3;
          if (!implied) begin
            code |= 7'(bits_i[i]) << size;
            size += 3'd1;
          end
          n       = i + 1;
          another = !bits_i[i];
        end
      end
    end
    for (int i = 0; i < 4; i++) begin
      known[i]   = 3'(i) < n_i;
      reached[i] = i < n;
    end
  end

  logic [6:0] dut_code;
  logic [2:0] dut_size;
  wpr_zfp_plane #(.Values(4)) dut (
    .clk_i,
    .use_i,
    .bits_i   (use_i ? bits_i : 4'd0),
    .known_i  (known),
    .reached_i(reached),
    .code_o   (dut_code),
    .size_o   (dut_size)
  );

  logic started_q = 1'b0, implied_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    code_q    <= use_i ? code : '0;
    size_q    <= use_i ? size : '0;
    implied_q <= use_i && implied;
    assume (n_i <= 3'd4);
    if (started_q) begin
      same_code: assert (dut_code == code_q);
      same_size: assert (dut_size == size_q);
    end
    longest: cover (started_q && size_q == 3'd7);
    no_bit: cover (started_q && implied_q);
  end

endmodule
