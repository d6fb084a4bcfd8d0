// SPDX-License-Identifier: Apache-2.0
// wpr_zfp_window: of two rows that were written, one behind the other, it gives the bits from any
// place of the first one on, also around the ring's end.
module wpr_zfp_window_props (
  input logic         clk_i,
  input logic         write_i,
  input logic [  1:0] row_i,
  input logic [255:0] data_i,
  input logic [  9:0] place_i
);

  logic [8:0] bits;
  wpr_zfp_window #(.Width(9), .Bytes(32), .LogRows(2)) dut (
    .clk_i,
    .write_i,
    .row_i,
    .data_i,
    .place_i,
    .next_i(2'((place_i + 10'd128) >> 8)),
    .bits_o(bits)
  );

  logic [3:0] started_q = '0;
  logic [3:0] write_q;
  logic [3:0][1:0] row_q;
  logic [3:0][255:0] data_q;
  logic [1:0][9:0] place_q;
  logic [511:0] both;
  assign both = {data_q[2], data_q[3]} >> place_q[1][7:0];
  always_ff @(posedge clk_i) begin
    started_q <= {started_q[2:0], 1'b1};
    write_q   <= {write_q[2:0], write_i};
    row_q     <= {row_q[2:0], row_i};
    data_q    <= {data_q[2:0], data_i};
    place_q   <= {place_q[0], place_i};
    if (started_q[3] && write_q[3] && write_q[2] && row_q[3] == place_q[1][9:8] &&
        row_q[2] == row_q[3] + 2'd1) begin
      same_bits: assert (bits == both[8:0]);
    end
    around: cover (started_q[3] && write_q[3] && write_q[2] && &row_q[3] && row_q[2] == '0 &&
                   &place_q[1][9:4]);
  end

endmodule
