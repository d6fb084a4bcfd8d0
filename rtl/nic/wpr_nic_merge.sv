// SPDX-License-Identifier: Apache-2.0
// Packets of several streams into one, each whole, in turns: a tree whose nodes take four. A beat a
// clock; a clock more a packet where only one stream has some. Latency 2 clocks a level.
module wpr_nic_merge #(
  parameter int unsigned Inputs = 4,  // 1 to 4, or 4 times what is allowed
  parameter int unsigned Width  = 608
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,     // synchronous
  input  logic [Inputs-1:0]            s_valid_i,
  output logic [Inputs-1:0]            s_ready_o,
  input  logic [Inputs-1:0][Width-1:0] s_data_i,
  input  logic [Inputs-1:0]            s_last_i,
  output logic                         m_valid_o,
  input  logic                         m_ready_i,
  output logic [Width-1:0]             m_data_o,
  output logic                         m_last_o
);

  localparam int unsigned Part = Inputs > 4 ? Inputs / 4 : 1;
  localparam int unsigned Here = Inputs / Part;

  logic [3:0] valid, last;
  logic [Here-1:0] ready;
  logic [3:0][Width-1:0] data;
  if (Inputs > 4) begin : g_tree
    for (genvar i = 0; i < Here; i++) begin : g_part
      wpr_nic_merge #(.Inputs(Part), .Width(Width)) part (
        .clk_i, .rst_ni, .s_valid_i(s_valid_i[Part*i+:Part]), .s_ready_o(s_ready_o[Part*i+:Part]),
        .s_data_i(s_data_i[Part*i+:Part]), .s_last_i(s_last_i[Part*i+:Part]),
        .m_valid_o(valid[i]), .m_ready_i(ready[i]), .m_data_o(data[i]), .m_last_o(last[i])
      );
    end
  end else begin : g_leaf
    assign valid     = 4'(s_valid_i);
    assign data      = (4 * Width)'(s_data_i);
    assign last      = 4'(s_last_i);
    assign s_ready_o = ready;
  end

  // Whose turn it is: the next one that has something. At the end of a packet its stream does not
  // count, since what it has then is not known.
  logic busy_q, found, o_valid, o_ready, done;
  logic [1:0] turn_q, turn;
  logic [3:0] may;
  always_comb begin
    may = valid;
    if (busy_q) may[turn_q] = 1'b0;
    turn  = turn_q;
    found = |may;
    for (int i = 4; i > 0; i--) if (may[2'(turn_q+2'(i))]) turn = turn_q + 2'(i);
  end
  assign o_valid = busy_q && valid[turn_q];
  assign done    = o_valid && o_ready && last[turn_q];
  always_comb for (int i = 0; i < Here; i++) ready[i] = busy_q && o_ready && turn_q == 2'(i);
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
    .s_data_i({data[turn_q], last[turn_q]}), .m_valid_o, .m_ready_i, .m_data_o({m_data_o, m_last_o})
  );

endmodule
