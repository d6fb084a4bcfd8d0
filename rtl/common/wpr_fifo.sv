// SPDX-License-Identifier: Apache-2.0
// A queue of 2^LogDepth words; the first word is shown without a request. Latency 1 clock; a word
// in and a word out every clock while the queue is neither full nor empty.
//
// The storage is LUT RAM, since a word is read in the clock that shows it: for depths up to 64 or
// so. The queue does not cross clock domains.
module wpr_fifo #(
  parameter int unsigned Width    = 32,
  parameter int unsigned LogDepth = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,  // synchronous
  input  logic              s_valid_i,
  output logic              s_ready_o,
  input  logic [ Width-1:0] s_data_i,
  output logic              m_valid_o,
  input  logic              m_ready_i,
  output logic [ Width-1:0] m_data_o,
  output logic [LogDepth:0] level_o  // words inside
);

  (* ram_style = "distributed" *) logic [Width-1:0] words_q[1 << LogDepth];
  logic [LogDepth-1:0] write_q, read_q;
  logic [LogDepth:0] level_q;

  logic push, pop;
  assign s_ready_o = !level_q[LogDepth];
  assign m_valid_o = level_q != '0;
  assign m_data_o  = words_q[read_q];
  assign level_o   = level_q;
  assign push      = s_valid_i && s_ready_o;
  assign pop       = m_valid_o && m_ready_i;

  always_ff @(posedge clk_i) begin
    if (push) write_q <= write_q + 1'b1;
    if (pop) read_q <= read_q + 1'b1;
    if (push != pop) level_q <= push ? level_q + 1'b1 : level_q - 1'b1;
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
      level_q <= '0;
    end
  end

  // Written whenever there is room, since s_valid_i would have to reach many write enables. A word
  // that was not pushed is written over.
  always_ff @(posedge clk_i) if (s_ready_o) words_q[write_q] <= s_data_i;

endmodule
