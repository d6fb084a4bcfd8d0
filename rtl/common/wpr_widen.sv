// SPDX-License-Identifier: Apache-2.0
// A byte stream from beats of Narrow bytes to beats of Wide bytes; Wide / Narrow is a power of two.
// tkeep is all ones but in a last beat, where it has no gaps. A wide beat has the tuser of its last
// narrow beat. Latency 1 clock behind the last narrow beat, a narrow beat a clock.
module wpr_widen #(
  parameter int unsigned Wide   = 64,
  parameter int unsigned Narrow = 4,
  parameter int unsigned User   = 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [8*Narrow-1:0] s_axis_tdata,
  input  logic [  Narrow-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  input  logic [    User-1:0] s_axis_tuser,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [  8*Wide-1:0] m_axis_tdata,
  output logic [    Wide-1:0] m_axis_tkeep,
  output logic                m_axis_tlast,
  output logic [    User-1:0] m_axis_tuser
);

  localparam int unsigned Parts = Wide / Narrow;
  logic [$clog2(Parts)-1:0] part_q;
  assign s_axis_tready = m_axis_tready || !m_axis_tvalid;

  always_ff @(posedge clk_i) begin
    if (s_axis_tready) begin
      m_axis_tvalid <= s_axis_tvalid && (s_axis_tlast || part_q == '1);
      m_axis_tlast  <= s_axis_tlast;
      m_axis_tuser  <= s_axis_tuser;
      if (s_axis_tvalid) begin
        part_q <= s_axis_tlast ? '0 : part_q + 1'b1;
        if (part_q == '0) m_axis_tkeep <= '0;
        for (int i = 0; i < Parts; i++) begin
          if (part_q == ($clog2(Parts))'(i)) begin
            m_axis_tdata[8*Narrow*i+:8*Narrow] <= s_axis_tdata;
            m_axis_tkeep[Narrow*i+:Narrow]     <= s_axis_tkeep;
          end
        end
      end
    end
    if (!rst_ni) begin
      m_axis_tvalid <= 1'b0;
      part_q        <= '0;
    end
  end

endmodule
