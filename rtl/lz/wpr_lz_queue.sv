// SPDX-License-Identifier: Apache-2.0
// Elements that wait for wpr_lz_copy. What is on its way when room_o falls has
// room, up to 6 elements.
module wpr_lz_queue
  import wpr_lz_pkg::*;
#(
  parameter int unsigned Bytes       = 8,  // of a beat: 8, without second elements, or 16
  parameter int unsigned LogElements = 4   // that wait, 3 or more
) (
  input  logic     clk_i,
  input  logic     rst_ni,       // synchronous
  output logic     room_o,
  input  logic     s_valid_i,
  input  element_t s_element_i,
  input  second_t  s_second_i,
  output logic     m_valid_o,
  input  logic     m_ready_i,
  output element_t m_element_o,
  output second_t  m_second_o
);

  localparam int unsigned Most = $bits(element_t) + $bits(second_t);
  localparam int unsigned Width = Bytes == 8 ? $bits(element_t) : Most;
  logic [Most-1:0] out;
  logic [LogElements:0] level;
  assign {m_second_o, m_element_o} = out;
  wpr_fifo #(.Width(Width), .LogDepth(LogElements)) elements (
    .clk_i,
    .rst_ni,
    .s_valid_i,
    .s_ready_o(),  // there is room: room_o
    .s_data_i (Width'({s_second_i, s_element_i})),
    .m_valid_o,
    .m_ready_i,
    .m_data_o (out[Width-1:0]),
    .level_o  (level)
  );
  if (Bytes == 8) begin : g_no_second
    assign out[Most-1:Width] = '0;
  end
  always_ff @(posedge clk_i) begin
    room_o <= rst_ni && level < (LogElements + 1)'((1 << LogElements) - 6);
  end

endmodule
