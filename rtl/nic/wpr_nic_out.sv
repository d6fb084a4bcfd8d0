// SPDX-License-Identifier: Apache-2.0
// Where packets go out: a stream as it is, or behind a header of Header bytes. One clock more a packet
// only where its last bytes need a beat of their own.
module wpr_nic_out #(
  parameter int unsigned Header = 66  // 1 to 127, but not 64
) (
  input  logic                clk_i,
  input  logic                rst_ni,             // synchronous
  input  logic                h_valid_i,          // what to do with the next packet
  output logic                h_done_o,           // its last beat leaves
  input  logic                h_framed_i,
  input  logic [8*Header-1:0] h_data_i,
  input  logic [ 15:0]        h_size_i,           // of the whole packet
  input  logic [ 15:0]        h_src_i,
  input  logic                s_valid_i,
  output logic                s_ready_o,
  input  logic [511:0]        s_data_i,
  input  logic [ 63:0]        s_keep_i,
  input  logic                s_last_i,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [511:0]        m_axis_tdata,
  output logic [ 63:0]        m_axis_tkeep,
  output logic                m_axis_tlast,
  output logic [ 15:0]        m_axis_tuser_size,
  output logic [ 15:0]        m_axis_tuser_src
);

  localparam int unsigned Whole = Header / 64;  // beats of nothing but header: 0 or 1
  localparam int unsigned Rest = Header % 64;

  logic p_valid, p_ready, p_last, p_in_ready;
  logic [511:0] p_data;
  logic [63:0] p_keep;
  logic led_q, lead;  // the whole beat of the header has left
  wpr_prepend #(.Bytes(64), .Header(Rest)) prepend (
    .clk_i,
    .rst_ni,
    .h_valid_i    (1'b1),
    .h_ready_o    (),
    .h_data_i     (h_data_i[8*Header-1:8*(Header-Rest)]),
    .s_axis_tvalid(s_valid_i && h_valid_i && h_framed_i && !lead),
    .s_axis_tready(p_in_ready),
    .s_axis_tdata (s_data_i),
    .s_axis_tkeep (s_keep_i),
    .s_axis_tlast (s_last_i),
    .m_axis_tvalid(p_valid),
    .m_axis_tready(p_ready),
    .m_axis_tdata (p_data),
    .m_axis_tkeep (p_keep),
    .m_axis_tlast (p_last)
  );

  logic o_valid, o_ready, o_last;
  logic [511:0] o_data;
  logic [63:0] o_keep;
  assign lead      = h_valid_i && h_framed_i && Whole == 1 && !led_q;
  assign p_ready   = o_ready && !lead;
  assign s_ready_o = h_valid_i && (h_framed_i ? p_in_ready : o_ready);
  assign o_valid   = lead || p_valid || (h_valid_i && !h_framed_i && s_valid_i);
  assign o_last    = !lead && (h_framed_i ? p_last : s_last_i);
  assign o_keep    = lead ? '1 : h_framed_i ? p_keep : s_keep_i;
  assign o_data    = lead ? 512'(h_data_i) : h_framed_i ? p_data : s_data_i;
  assign h_done_o  = o_valid && o_ready && o_last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || h_done_o) led_q <= 1'b0;
    else if (lead && o_ready) led_q <= 1'b1;
  end

  wpr_skid #(.Width(609)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i(o_valid),
    .s_ready_o(o_ready),
    .s_data_i ({o_data, o_keep, o_last, h_size_i, h_src_i}),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o ({m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser_size, m_axis_tuser_src})
  );

endmodule
