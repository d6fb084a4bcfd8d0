// SPDX-License-Identifier: Apache-2.0
// A queue in block RAM: 2^LogDepth words, and one more, which is offered from the memory's own
// register. A word in and a word out every clock while the queue is neither full nor empty; latency
// 2 clocks. The queue does not cross clock domains and does not know packets.
module wpr_ram_fifo #(
  parameter int unsigned Width    = 32,
  parameter int unsigned LogDepth = 9
) (
  input  logic             clk_i,
  input  logic             rst_ni,     // synchronous
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [Width-1:0] s_data_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [Width-1:0] m_data_o,
  output logic [LogDepth:0] level_o    // words in the memory
);

  logic [Width-1:0] words_q[1 << LogDepth];
  logic [LogDepth-1:0] write_q, read_q;
  logic [LogDepth:0] level_q;
  logic push, move, read;
  assign s_ready_o = !level_q[LogDepth];
  assign level_o   = level_q;
  assign push      = s_valid_i && s_ready_o;
  assign move      = m_ready_i || !m_valid_o;
  assign read      = move && level_q != '0;

  always_ff @(posedge clk_i) begin
    if (push) write_q <= write_q + 1'b1;
    if (read) read_q <= read_q + 1'b1;
    if (push != read) level_q <= push ? level_q + 1'b1 : level_q - 1'b1;
    if (move) m_valid_o <= level_q != '0;
    if (!rst_ni) begin
      write_q   <= '0;
      read_q    <= '0;
      level_q   <= '0;
      m_valid_o <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) if (push) words_q[write_q] <= s_data_i;
  always_ff @(posedge clk_i) if (move) m_data_o <= words_q[read_q];

endmodule
