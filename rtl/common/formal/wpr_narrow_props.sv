// SPDX-License-Identifier: Apache-2.0
// wpr_narrow against what is left of a beat: its bytes leave in order, all of them, the last ones
// with tlast; the next beat is taken in the clock in which they leave.
module wpr_narrow_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        s_valid_i,
  input logic [63:0] s_data_i,
  input logic [ 3:0] s_size_i,
  input logic        s_last_i,
  input logic        m_ready_i
);

  logic s_ready, m_valid, m_last;
  logic [7:0] s_keep;
  logic [15:0] m_data;
  logic [1:0] m_keep;
  always_comb for (int i = 0; i < 8; i++) s_keep[i] = 4'(i) < s_size_i;
  wpr_narrow #(.Wide(8), .Narrow(2)) dut (
    .clk_i, .rst_ni, .s_axis_tvalid(s_valid_i), .s_axis_tready(s_ready), .s_axis_tdata(s_data_i),
    .s_axis_tkeep(s_keep), .s_axis_tlast(s_last_i), .m_axis_tvalid(m_valid),
    .m_axis_tready(m_ready_i), .m_axis_tdata(m_data), .m_axis_tkeep(m_keep), .m_axis_tlast(m_last)
  );

  logic started_q = 1'b0, last_q, ended_q = 1'b0;
  logic [63:0] data_q;
  logic [3:0] left_q = '0;  // bytes
  logic [2:0] parts;
  logic push, pop;
  assign push  = s_valid_i && s_ready;
  assign pop   = m_valid && m_ready_i;
  assign parts = 3'((left_q + 4'd1) >> 1);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni) begin
      left_q <= '0;
    end else if (push) begin
      {data_q, left_q, last_q} <= {s_data_i, s_size_i, s_last_i};
    end else if (pop) begin
      data_q <= data_q >> 16;
      left_q <= left_q < 4'd2 ? '0 : left_q - 4'd2;
    end
    ended_q <= rst_ni && (ended_q || (pop && m_last && m_keep == 2'b01));
    assume (rst_ni == started_q);
    assume (s_size_i <= 4'd8 && (s_last_i ? s_size_i != 0 : s_size_i == 4'd8));
    if (started_q && rst_ni) begin
      offered: assert (m_valid == (left_q != 0));
      room: assert (s_ready == (left_q == 0 || (left_q <= 4'd2 && m_ready_i)));
      stored: assert (left_q == 0 || (dut.data_q == data_q && dut.last_q == last_q &&
                                      dut.keep_q == ~(8'hFF << left_q)));
      place: assert (left_q <= 4'd8 && (left_q == 0 || 3'(dut.part_q) + parts <= 3'd4));
    end
    if (started_q && rst_ni && m_valid) begin
      bytes: assert (m_data == data_q[15:0] && m_keep == (left_q == 4'd1 ? 2'b01 : 2'b11));
      ends: assert (m_last == (last_q && left_q <= 4'd2));
    end
    used: cover (ended_q && left_q == 4'd6);
  end

endmodule
