// SPDX-License-Identifier: Apache-2.0
// A register slice of a stream: two words of storage, so that valid, data and ready all leave from
// registers and a word passes every clock. Latency 1 clock.
//
// Does not cross clock domains and does not know packets: put tlast and tkeep in the data.
module wpr_skid #(
  parameter int unsigned Width = 32
) (
  input  logic             clk_i,
  input  logic             rst_ni,  // synchronous
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [Width-1:0] s_data_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [Width-1:0] m_data_o
);

  logic out_valid_q, skid_valid_q;
  logic [Width-1:0] out_q, skid_q;

  // A word accepted in the clock in which the way ahead closed waits in skid_q.
  assign s_ready_o = !skid_valid_q;
  assign m_valid_o = out_valid_q;
  assign m_data_o  = out_q;

  logic move;
  assign move = m_ready_i || !out_valid_q;

  always_ff @(posedge clk_i) begin
    if (move) begin
      out_valid_q  <= skid_valid_q || s_valid_i;
      skid_valid_q <= 1'b0;
    end else if (s_valid_i) begin
      skid_valid_q <= 1'b1;
    end
    if (!rst_ni) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (move) out_q <= skid_valid_q ? skid_q : s_data_i;
    if (!skid_valid_q) skid_q <= s_data_i;
  end

endmodule
