// SPDX-License-Identifier: Apache-2.0
// How the sparse codecs lay out a block (codecs/common/sparse/spec.md, "Payload"): the width of low
// parts, the sizes of both bit fields, and whether all values are written instead. From start_i,
// LogValues + 5 clocks at most; what is shown stays until the next start.
//
// The width is the greatest one for which count * 2^width is not above the number of values: it
// is found one bit a clock.
module wpr_sparse_layout #(
  parameter int unsigned LogValues = 14,  // the largest block has 2^LogValues values
  localparam int unsigned WidthBits = $clog2(LogValues + 1)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,        // synchronous
  input  logic                 start_i,
  input  logic [LogValues-1:0] last_i,        // values of the block, less one
  input  logic [  LogValues:0] count_i,       // values sent, at most all
  output logic                 done_o,        // in one clock
  output logic [LogValues-1:0] last_o,
  output logic [  LogValues:0] count_o,
  output logic [  LogValues:0] n_o,           // values of the block
  output logic [WidthBits-1:0] width_o,
  output logic [LogValues-1:0] top_o,         // the last value's high part
  output logic [  LogValues:0] high_bits_o,
  output logic [          2:0] pad_o,         // bits behind the low parts, up to a byte
  output logic [LogValues-2:0] high_bytes_o,
  output logic [LogValues-3:0] low_bytes_o,
  output logic                 dense_o        // positions do not pay: all values are written
);

  typedef enum logic [2:0] {Idle, Begin, Widen, Bits, Bytes, Sum, Compare} state_t;
  state_t state_q;
  logic none_q, all_q;
  logic [LogValues:0] scaled_q, absent_q;  // count * 2^width; values that are not sent
  logic [LogValues-1:0] positions_q, low_bits_q;
  logic wider;
  assign pad_o = -low_bits_q[2:0];
  assign wider = !none_q && !all_q && {scaled_q, 1'b0} <= {1'b0, n_o};
  always_ff @(posedge clk_i) begin
    done_o <= state_q == Compare;
    unique case (state_q)
      Idle: begin
        if (start_i) begin
          last_o   <= last_i;
          count_o  <= count_i;
          n_o      <= (LogValues + 1)'(last_i) + 1'b1;
          state_q  <= Begin;
        end
      end
      Begin: begin
        scaled_q   <= count_o;
        top_o      <= last_o;
        width_o    <= '0;
        low_bits_q <= '0;
        none_q     <= count_o == '0;
        all_q      <= count_o == n_o;
        absent_q   <= n_o - count_o;
        state_q    <= Widen;
      end
      Widen: begin
        if (wider) begin
          scaled_q   <= scaled_q << 1;
          top_o      <= top_o >> 1;
          width_o    <= width_o + 1'b1;
          low_bits_q <= low_bits_q + count_o[LogValues-1:0];
        end else begin
          state_q <= Bits;
        end
      end
      Bits: begin
        high_bits_o <= none_q ? '0 : count_o + (LogValues + 1)'(top_o);
        low_bytes_o <= (LogValues - 2)'(low_bits_q[LogValues-1:3])
                       + (LogValues - 2)'(low_bits_q[2:0] != '0);
        state_q     <= Bytes;
      end
      Bytes: begin
        high_bytes_o <= (LogValues - 1)'(high_bits_o[LogValues:3])
                        + (LogValues - 1)'(high_bits_o[2:0] != '0);
        state_q      <= Sum;
      end
      Sum: begin
        positions_q <= LogValues'(high_bytes_o) + LogValues'(low_bytes_o);
        state_q     <= Compare;
      end
      default: begin
        dense_o <= all_q || (LogValues + 3)'(positions_q) >= {absent_q, 2'b00};
        state_q <= Idle;
      end
    endcase
    if (!rst_ni) state_q <= Idle;
  end

endmodule
