// SPDX-License-Identifier: Apache-2.0
// wpr_rows_out: rows leave as beats, a clock later; a packet's last one says whether any of its
// rows was wrong, and no other does.
module wpr_rows_out_props (
  input logic       clk_i,
  input logic       rst_ni,
  input logic       valid_i,
  input logic       last_i,
  input logic       wrong_i,
  input logic [3:0] count_i,  // values, less one
  input logic [1:0] data_i,
  input logic       m_ready_i
);

  logic move, m_valid, m_last, m_user;
  logic [511:0] m_data;
  logic [63:0] m_keep;
  logic [15:0] keep;
  always_comb for (int i = 0; i < 16; i++) keep[i] = 4'(i) <= count_i;
  wpr_rows_out dut (
    .clk_i, .rst_ni, .move_o(move), .row_valid_i(valid_i), .row_last_i(last_i),
    .row_wrong_i(wrong_i), .row_keep_i(keep), .row_values_i({256{data_i}}),
    .m_axis_tvalid(m_valid), .m_axis_tready(m_ready_i), .m_axis_tdata(m_data),
    .m_axis_tkeep(m_keep), .m_axis_tlast(m_last), .m_axis_tuser(m_user)
  );

  logic started_q = 1'b0, full_q = 1'b0, last_q, bad_q = 1'b0, user_q, whole_q = 1'b0;
  logic [1:0] data_q;
  logic [3:0] count_q;
  logic push;
  logic [63:0] wanted;
  always_comb for (int i = 0; i < 64; i++) wanted[i] = 4'(i / 4) <= count_q;
  assign push = valid_i && (!full_q || m_ready_i);
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!rst_ni) begin
      full_q <= 1'b0;
      bad_q  <= 1'b0;
    end else begin
      full_q <= push || (full_q && !m_ready_i);
      if (push) begin
        {data_q, count_q, last_q} <= {data_i, count_i, last_i};
        user_q <= last_i && (bad_q || wrong_i);
        bad_q  <= !last_i && (bad_q || wrong_i);
      end
      whole_q <= whole_q || (full_q && last_q && !user_q && m_ready_i);
    end
    assume (rst_ni == started_q);
    if (started_q && rst_ni) begin
      moves: assert (move == (!full_q || m_ready_i));
      offered: assert (m_valid == full_q);
      kept: assert (dut.wrong_q == bad_q);
    end
    if (started_q && rst_ni && m_valid) begin
      beat: assert (m_data == {256{data_q}} && m_last == last_q && m_user == user_q);
      values: assert (m_keep == wanted);
    end
    used: cover (whole_q && m_valid && m_user);
  end

endmodule
