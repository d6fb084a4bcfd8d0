// SPDX-License-Identifier: Apache-2.0
// A 32-bit number times a constant of wpr_hash, the lower 32 bits. One a clock, latency 4 clocks,
// nothing stops it. Two multipliers of 27x18 bits, or adders.
module wpr_times #(
  parameter logic [31:0] Factor = 32'h7FEB352D,  // or 846CA68B
  // For devices whose multipliers are of 18x18 bits, and would be three: seven or eight adders,
  // each with a clock for itself.
  parameter bit Mult18 = 1'b0
) (
  input  logic        clk_i,
  input  logic [31:0] x_i,
  output logic [31:0] y_o
);

  if (!Mult18) begin : g_27
    // Of the constant the upper six bits, less what makes the others a signed number, are 2^31 or
    // that and 2^26.
    localparam logic signed [25:0] Low = Factor[25:0];
    localparam logic [5:0] High = Factor[31:26] + 6'(Factor[25]);
    if (High[5:1] != 5'd16) begin : g_other
      $error("wpr_times: another kind of factor");
    end

    // Registers on both sides of the multipliers, and in them.
    logic [31:0] x1_q, low2_q, low3_q;
    logic signed [17:0] x_low;
    logic [14:0] high2_q, high3_q;
    logic [5:0] top, top2_q;
    assign x_low = {1'b0, x1_q[16:0]};
    assign top   = {x1_q[0], 5'b0} ^ (High[0] ? x1_q[5:0] : '0);
    always_ff @(posedge clk_i) begin
      x1_q    <= x_i;
      low2_q  <= 32'(x_low * Low);
      high2_q <= 15'(x1_q[31:17] * Factor[14:0]);
      top2_q  <= top;
      low3_q  <= low2_q;
      high3_q <= high2_q + {top2_q, 9'b0};
      y_o     <= {low3_q[31:17] + high3_q, low3_q[16:0]};
    end
  end else if (Factor == 32'h7FEB352D) begin : g_first
    // 2^31 - 2^16 * 21 + 2^12 * 3 + 2^8 * 5 + 45
    logic [31:0] five1_q, times45_2_q, low3_q;
    logic [19:0] three1_q, three2_q, high3_q;  // from 2^12
    logic [15:0] times21_2_q;
    logic [23:0] five2_q;
    logic [11:0] x1_q;
    always_ff @(posedge clk_i) begin
      five1_q     <= x_i + {x_i[29:0], 2'b0};
      three1_q    <= {x_i[17:0], 2'b0} - x_i[19:0];
      x1_q        <= x_i[11:0];
      times45_2_q <= five1_q + {five1_q[28:0], 3'b0};
      times21_2_q <= five1_q[15:0] + {x1_q, 4'b0};
      five2_q     <= five1_q[23:0];
      three2_q    <= {three1_q[19] ^ x1_q[0], three1_q[18:0]};
      low3_q      <= times45_2_q + {five2_q, 8'b0};
      high3_q     <= three2_q - {times21_2_q, 4'b0};
      y_o         <= low3_q + {high3_q, 12'b0};
    end
  end else if (Factor == 32'h846CA68B) begin : g_second
    // 2^31 + 2^23 * 9 - 2^18 * 5 + 2^13 * 5 + 2^9 * 3 + 2^4 * 9 - 5
    logic [31:0] five1_q, low2_q, low3_q;
    logic [27:0] nine1_q;
    logic [22:0] three1_q, middle2_q;  // from 2^9
    logic [13:0] high2_q, high3_q;     // from 2^18
    logic odd1_q, odd2_q;
    always_ff @(posedge clk_i) begin
      five1_q   <= x_i + {x_i[29:0], 2'b0};
      nine1_q   <= x_i[27:0] + {x_i[24:0], 3'b0};
      three1_q  <= {x_i[21:0], 1'b0} + x_i[22:0];
      odd1_q    <= x_i[0];
      low2_q    <= {nine1_q, 4'b0} - five1_q;
      middle2_q <= three1_q + {five1_q[18:0], 4'b0};
      high2_q   <= {nine1_q[8:0], 5'b0} - five1_q[13:0];
      odd2_q    <= odd1_q;
      low3_q    <= low2_q + {middle2_q, 9'b0};
      high3_q   <= {high2_q[13] ^ odd2_q, high2_q[12:0]};
      y_o       <= low3_q + {high3_q, 18'b0};
    end
  end else begin : g_other
    $error("wpr_times: another factor");
  end

endmodule
