// SPDX-License-Identifier: Apache-2.0
// Merges packets of several streams into one, each whole, in turns: a tree of wpr_nic_merge4.
module wpr_nic_merge #(
  parameter int unsigned Inputs = 4,
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

  // All streams: the inputs, then the nodes' outputs. Node i takes streams 4 i to 4 i + 3, as far
  // as they stand before its own output.
  localparam int unsigned Nodes = (Inputs + 1) / 3;
  localparam int unsigned Streams = Inputs + Nodes;
  logic [Streams-1:0] valid, ready, last;
  logic [Streams-1:0][Width-1:0] data;
  for (genvar i = 0; i < Inputs; i++) begin : g_in
    assign {valid[i], data[i], last[i]} = {s_valid_i[i], s_data_i[i], s_last_i[i]};
    assign s_ready_o[i] = ready[i];
  end
  for (genvar i = 0; i < Nodes; i++) begin : g_node
    logic [3:0] n_valid, n_ready, n_last;
    logic [3:0][Width-1:0] n_data;
    for (genvar j = 0; j < 4; j++) begin : g_of
      if (4 * i + j < Inputs + i) begin : g_one
        assign {n_valid[j], n_data[j], n_last[j]} = {valid[4*i+j], data[4*i+j], last[4*i+j]};
        assign ready[4*i+j] = n_ready[j];
      end else begin : g_none
        assign {n_valid[j], n_data[j], n_last[j]} = '0;
      end
    end
    wpr_nic_merge4 #(.Width(Width)) node (
      .clk_i, .rst_ni, .s_valid_i(n_valid), .s_ready_o(n_ready), .s_data_i(n_data),
      .s_last_i(n_last), .m_valid_o(valid[Inputs+i]), .m_ready_i(ready[Inputs+i]),
      .m_data_o(data[Inputs+i]), .m_last_o(last[Inputs+i])
    );
  end
  assign {m_valid_o, m_data_o, m_last_o} =
      {valid[Streams-1], data[Streams-1], last[Streams-1]};
  assign ready[Streams-1] = m_ready_i;

endmodule
