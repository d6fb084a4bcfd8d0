// SPDX-License-Identifier: Apache-2.0
// A node of wpr_nic_merge: merges packets of four streams into one, each whole, in turns. A beat a
// clock; one clock more a packet while only one stream has packets. Latency 2 clocks.
module wpr_nic_merge4 #(
  parameter int unsigned Width = 608
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,     // synchronous
  input  logic [3:0]            s_valid_i,
  output logic [3:0]            s_ready_o,
  input  logic [3:0][Width-1:0] s_data_i,
  input  logic [3:0]            s_last_i,
  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [Width-1:0]      m_data_o,
  output logic                  m_last_o
);

  // The turn goes to the next stream with a beat. At the end of a packet its own stream does not
  // count, since its next beat is not known yet.
  logic busy_q, found, o_valid, o_ready, done;
  logic [1:0] turn_q, turn;
  logic [3:0] may;
  always_comb begin
    may = s_valid_i;
    if (busy_q) may[turn_q] = 1'b0;
    turn  = turn_q;
    found = |may;
    for (int i = 4; i > 0; i--) if (may[2'(turn_q+2'(i))]) turn = turn_q + 2'(i);
  end
  assign o_valid = busy_q && s_valid_i[turn_q];
  assign done    = o_valid && o_ready && s_last_i[turn_q];
  always_comb for (int i = 0; i < 4; i++) s_ready_o[i] = busy_q && o_ready && turn_q == 2'(i);
  always_ff @(posedge clk_i) begin
    if (!busy_q || done) begin
      busy_q <= found;
      turn_q <= turn;
    end
    if (!rst_ni) begin
      busy_q <= 1'b0;
      turn_q <= '0;
    end
  end
  wpr_skid #(.Width(Width + 1)) slice (
    .clk_i, .rst_ni, .s_valid_i(o_valid), .s_ready_o(o_ready),
    .s_data_i({s_data_i[turn_q], s_last_i[turn_q]}), .m_valid_o, .m_ready_i,
    .m_data_o({m_data_o, m_last_o})
  );

endmodule
