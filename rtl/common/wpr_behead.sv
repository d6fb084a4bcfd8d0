// SPDX-License-Identifier: Apache-2.0
// Takes the first Header bytes off every packet of a byte stream and shows them beside each beat
// that leaves. A packet of no more bytes than that is thrown away, with runt_o for a clock.
//
// A packet's last bytes may need a beat of their own. With Overlap the next packet's first beat
// comes in meanwhile, so the stream never pauses. Without Overlap that first beat waits, so no two
// packets are inside at once.
//
// tkeep is all ones but in a last beat, where it has no gaps. Valid and ready pass through without
// a register: m_axis_tready must not wait for m_axis_tvalid.
module wpr_behead #(
  parameter int unsigned Bytes  = 64,
  parameter int unsigned Header = 8,    // 1 to Bytes - 1
  parameter bit          Overlap = 1'b1
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [ 8*Bytes-1:0] s_axis_tdata,
  input  logic [   Bytes-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  output logic [8*Header-1:0] h_data_o,       // of the packet whose beat is offered
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [ 8*Bytes-1:0] m_axis_tdata,
  output logic [   Bytes-1:0] m_axis_tkeep,
  output logic                m_axis_tlast,
  output logic                runt_o
);

  localparam int unsigned Rest = Bytes - Header;
  logic inside_q, tail_q;
  logic [8*Rest-1:0] carry_q;
  logic [Rest-1:0] carry_keep_q;
  logic [8*Header-1:0] header_q;

  // A packet's first beat only fills the carry; the tail leaves from it.
  logic spill;
  assign spill         = s_axis_tlast && s_axis_tkeep[Header];
  assign m_axis_tvalid = tail_q || (inside_q && s_axis_tvalid);
  assign m_axis_tdata  = {s_axis_tdata[8*Header-1:0], carry_q};
  assign m_axis_tkeep  = tail_q ? {{Header{1'b0}}, carry_keep_q}
                       : {s_axis_tkeep[Header-1:0], {Rest{1'b1}}};
  assign m_axis_tlast  = tail_q || (s_axis_tlast && !spill);
  assign s_axis_tready = m_axis_tready && (Overlap || !tail_q);
  assign h_data_o      = header_q;
  assign runt_o        = s_axis_tvalid && s_axis_tready && !inside_q && s_axis_tlast && !spill;

  always_ff @(posedge clk_i) begin
    if (s_axis_tvalid && s_axis_tready) begin
      if (!inside_q) header_q <= s_axis_tdata[8*Header-1:0];
      carry_q      <= s_axis_tdata[8*Bytes-1:8*Header];
      carry_keep_q <= s_axis_tkeep[Bytes-1:Header];
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
