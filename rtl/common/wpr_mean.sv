// SPDX-License-Identifier: Apache-2.0
// A float32 number that is not negative, divided by a whole number: the quotient rounded to nearest
// even, denormals included. Magnitudes; the mean of 0 values is +0. A sum that is not finite
// (exponent 255) stays so.
//
// One division at a time, one bit a clock: about 35 clocks, up to 90 with denormals.
module wpr_mean #(
  parameter int unsigned Bits = 13  // of the divisor
) (
  input  logic            clk_i,
  input  logic            rst_ni,  // synchronous
  input  logic            s_valid_i,
  output logic            s_ready_o,
  input  logic [    30:0] sum_i,
  input  logic [Bits-1:0] n_i,
  output logic            m_valid_o,  // for a clock
  output logic [    30:0] m_data_o
);

  typedef enum logic [2:0] {Idle, Begin, Normal, Divide, Denormal, Round} state_t;
  state_t state_q;
  logic signed [9:0] exponent_q;
  logic [24:0] rest_q;     // of the dividend, and where it is still whole
  logic [Bits-1:0] n_q;
  logic [25:0] quotient_q;  // 24 bits and two behind, or 25 and one
  logic sticky_q;
  logic [4:0] count_q;

  logic [24:0] n_there;  // the divisor below the dividend's first bit
  logic [25:0] difference;
  logic fits;
  assign n_there    = {1'b0, n_q, {(24 - Bits) {1'b0}}};
  assign difference = {1'b0, rest_q} - {1'b0, n_there};
  assign fits       = !difference[25];

  logic up;
  assign up = quotient_q[1] && (quotient_q[0] || sticky_q || quotient_q[2]);

  assign s_ready_o = state_q == Idle;
  always_ff @(posedge clk_i) begin
    m_valid_o <= 1'b0;
    unique case (state_q)
      Idle: begin
        m_data_o <= sum_i;  // as it is
        n_q      <= n_i;
        if (s_valid_i) state_q <= Begin;
      end
      Begin: begin
        exponent_q <= signed'({2'b0, m_data_o[30:24], m_data_o[23] || m_data_o[30:23] == '0}) -
                      10'(Bits - 1);
        rest_q     <= {1'b0, m_data_o[30:23] != '0, m_data_o[22:0]};
        sticky_q   <= 1'b0;
        count_q    <= '0;
        if (n_q == '0 || m_data_o == '0 || m_data_o[30:23] == '1) begin
          m_valid_o <= 1'b1;
          if (m_data_o[30:23] != '1) m_data_o <= '0;
          state_q <= Idle;
        end else begin
          state_q <= Normal;
        end
      end
      // Both with their first bit uppermost. The divisor's is worth 2^(Bits - 1).
      Normal: begin
        if (!rest_q[23]) rest_q <= rest_q << 1;
        if (!n_q[Bits-1]) n_q <= n_q << 1;
        exponent_q <= exponent_q - 10'(!rest_q[23]) + 10'(!n_q[Bits-1]);
        if (rest_q[23] && n_q[Bits-1]) state_q <= Divide;
      end
      Divide: begin
        quotient_q <= {quotient_q[24:0], fits};
        rest_q     <= fits ? {difference[23:0], 1'b0} : {rest_q[23:0], 1'b0};
        count_q    <= count_q + 5'd1;
        if (count_q == 5'd25) state_q <= Denormal;
      end
      // The quotient is from above 1/2 to below 2; then bits go until the exponent is one.
      Denormal: begin
        if (count_q == 5'd26) begin
          sticky_q <= rest_q != '0;
          count_q  <= '0;
          if (!quotient_q[25]) begin
            quotient_q <= quotient_q << 1;
            exponent_q <= exponent_q - 10'sd1;
          end
        end else if (exponent_q < 10'sd1) begin
          quotient_q <= quotient_q >> 1;
          sticky_q   <= sticky_q || quotient_q[0];
          exponent_q <= exponent_q + 10'sd1;
        end else begin
          state_q <= Round;
        end
      end
      default: begin
        m_valid_o <= 1'b1;
        m_data_o  <= {quotient_q[25] ? exponent_q[7:0] : 8'd0, quotient_q[24:2]} + 31'(up);
        state_q   <= Idle;
      end
    endcase
    if (!rst_ni) begin
      state_q   <= Idle;
      m_valid_o <= 1'b0;
    end
  end

endmodule
