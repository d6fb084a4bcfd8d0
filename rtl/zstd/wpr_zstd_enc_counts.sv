// SPDX-License-Identifier: Apache-2.0
// How often each byte came in one of eight lanes: up to a byte a clock and lane, in block RAM, and
// the sums over the lanes. Reading a byte's number sets it to 0; not while bytes come.
module wpr_zstd_enc_counts (
  input  logic            clk_i,
  input  logic [7:0]      s_valid_i,
  input  logic [7:0][7:0] s_bytes_i,
  input  logic            read_i,
  input  logic [7:0]      byte_i,
  output logic [16:0]     n_o        // of the byte three clocks ago
);

  logic [7:0][13:0] found2_q;
  logic [14:0] sum3_q[4];
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 4; i++) sum3_q[i] <= 15'(found2_q[2*i]) + 15'(found2_q[2*i+1]);
  end
  assign n_o = 17'(sum3_q[0]) + 17'(sum3_q[1]) + 17'(sum3_q[2]) + 17'(sum3_q[3]);

  for (genvar j = 0; j < 8; j++) begin : g_lane
    (* ram_style = "block" *) logic [13:0] counts_q[256];
    logic [7:0] at1_q, at2_q, at3_q, at4_q;
    logic v1_q, v2_q, v3_q, v4_q, clear1_q, clear2_q;
    logic [13:0] n3_q, n4_q, now;
    assign now = v3_q && at3_q == at2_q ? n3_q : v4_q && at4_q == at2_q ? n4_q : found2_q[j];
    always_ff @(posedge clk_i) begin
      {at4_q, at3_q, at2_q} <= {at3_q, at2_q, at1_q};
      at1_q <= read_i ? byte_i : s_bytes_i[j];
      v1_q  <= s_valid_i[j] || read_i;
      {v4_q, v3_q, v2_q} <= {v3_q, v2_q, v1_q};
      clear1_q <= read_i;
      clear2_q <= clear1_q;
      n3_q  <= clear2_q ? '0 : now + 14'd1;
      n4_q  <= n3_q;
    end
    always_ff @(posedge clk_i) begin
      found2_q[j] <= counts_q[at1_q];
      if (v3_q) counts_q[at3_q] <= n3_q;
    end
  end

endmodule
