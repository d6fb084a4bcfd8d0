// SPDX-License-Identifier: Apache-2.0
// A byte stream from beats of Wide bytes to beats of Narrow bytes; Wide / Narrow is a power of two.
// tkeep is all ones but in a last beat, where it has no gaps. No beat without bytes leaves.
// Latency 1 clock, a narrow beat a clock.
module wpr_narrow #(
  parameter int unsigned Wide   = 64,
  parameter int unsigned Narrow = 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [  8*Wide-1:0] s_axis_tdata,
  input  logic [    Wide-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [8*Narrow-1:0] m_axis_tdata,
  output logic [  Narrow-1:0] m_axis_tkeep,
  output logic                m_axis_tlast
);

  localparam int unsigned Parts = Wide / Narrow;
  logic [8*Wide-1:0] data_q;
  logic [Wide-1:0] keep_q;
  logic [$clog2(Parts)-1:0] part_q;
  logic last_q, final_part;
  assign final_part    = part_q == '1 || !keep_q[Narrow];
  assign m_axis_tdata  = data_q[8*Narrow-1:0];
  assign m_axis_tkeep  = keep_q[Narrow-1:0];
  assign m_axis_tlast  = last_q && final_part;
  assign s_axis_tready = !m_axis_tvalid || (m_axis_tready && final_part);

  always_ff @(posedge clk_i) begin
    if (s_axis_tready) begin
      m_axis_tvalid <= s_axis_tvalid;
      data_q        <= s_axis_tdata;
      keep_q        <= s_axis_tkeep;
      last_q        <= s_axis_tlast;
      part_q        <= '0;
    end else if (m_axis_tready) begin
      data_q <= data_q >> (8 * Narrow);
      keep_q <= keep_q >> Narrow;
      part_q <= part_q + 1'b1;
    end
    if (!rst_ni) m_axis_tvalid <= 1'b0;
  end

endmodule
