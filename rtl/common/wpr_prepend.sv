// SPDX-License-Identifier: Apache-2.0
// Puts Header bytes in front of every packet of a byte stream. No registers on the way: a
// packet takes one clock more only where its last bytes need a beat of their own.
//
// tkeep is all ones but in a last beat, where it is without gaps. A packet has at least one byte.
module wpr_prepend #(
  parameter int unsigned Bytes  = 64,
  parameter int unsigned Header = 8    // 1 to Bytes - 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic                h_valid_i,      // one header a packet
  output logic                h_ready_o,
  input  logic [8*Header-1:0] h_data_i,
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [ 8*Bytes-1:0] s_axis_tdata,
  input  logic [   Bytes-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [ 8*Bytes-1:0] m_axis_tdata,
  output logic [   Bytes-1:0] m_axis_tkeep,
  output logic                m_axis_tlast
);

  localparam int unsigned Rest = Bytes - Header;
  logic inside_q, tail_q;  // within a packet; its last bytes are left
  logic [8*Header-1:0] carry_q;
  logic [Header-1:0] carry_keep_q;
  logic go, spill;

  assign go            = (inside_q || h_valid_i) && !tail_q;
  assign spill         = s_axis_tlast && s_axis_tkeep[Rest];
  assign m_axis_tvalid = (go && s_axis_tvalid) || tail_q;
  assign m_axis_tdata  = {s_axis_tdata[8*Rest-1:0], inside_q || tail_q ? carry_q : h_data_i};
  assign m_axis_tkeep  = tail_q ? {{Rest{1'b0}}, carry_keep_q}
                       : {s_axis_tkeep[Rest-1:0], {Header{1'b1}}};
  assign m_axis_tlast  = tail_q || (s_axis_tlast && !spill);
  assign s_axis_tready = m_axis_tready && go;
  assign h_ready_o     = s_axis_tvalid && m_axis_tready && go && !inside_q;

  always_ff @(posedge clk_i) begin
    if (s_axis_tvalid && s_axis_tready) begin
      carry_q      <= s_axis_tdata[8*Bytes-1:8*Rest];
      carry_keep_q <= s_axis_tkeep[Bytes-1:Rest];
      inside_q     <= !s_axis_tlast;
      tail_q       <= spill;
    end else if (m_axis_tready) begin
      tail_q <= 1'b0;
    end
    if (!rst_ni) begin
      inside_q <= 1'b0;
      tail_q   <= 1'b0;
    end
  end

endmodule
