// SPDX-License-Identifier: Apache-2.0
// The beginning of an encoder that stores a chunk before it codes it. It cuts a packet of float32
// words, 16 a clock, into chunks of 256 rows, which fill two buffers in turns. It shows a row in
// the clock in which the row comes, and takes rows while the next chunk's buffer is free.
module wpr_chunks_in (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // read with tlast only: whole values
  input  logic         s_axis_tlast,

  output logic              row_o,     // a row is taken
  output logic [15:0][31:0] words_o,   // values that are not there are 0
  output logic              buffer_o,  // the row's buffer
  output logic [ 7:0]       number_o,  // the row's number in its chunk
  output logic              last_o,    // the row is its chunk's last

  input logic free_i,        // the buffer named beside it has been read
  input logic free_buffer_i
);

  logic [1:0] busy_q;  // from a chunk's last row in
  assign s_axis_tready = !busy_q[buffer_o];
  assign row_o         = s_axis_tvalid && s_axis_tready;
  assign last_o        = s_axis_tlast || &number_o;
  always_comb begin
    for (int l = 0; l < 16; l++) begin
      words_o[l] = !s_axis_tlast || s_axis_tkeep[4*l] ? s_axis_tdata[32*l+:32] : '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (row_o) begin
      number_o <= last_o ? '0 : number_o + 8'd1;
      if (last_o) begin
        buffer_o         <= !buffer_o;
        busy_q[buffer_o] <= 1'b1;
      end
    end
    if (free_i) busy_q[free_buffer_i] <= 1'b0;
    if (!rst_ni) begin
      busy_q   <= '0;
      buffer_o <= 1'b0;
      number_o <= '0;
    end
  end

endmodule
