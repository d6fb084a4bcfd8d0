// SPDX-License-Identifier: Apache-2.0
// A decoder of one or two bits a value (wpr_groups_in, wpr_rows_out), but for the meaning of the
// bits: its user gives the values of each row by values_i and wrong_i, in the clock that shows the
// row.
//
// The code does not hold the packet's number of values: s_cmd brings it. A packet that is too
// short, too long or wrong ends with m_axis_tuser set, and the next packet begins afresh.
//
// Rate: a row a clock, less a chunk's head words, of which one is read beside the row before it.
// Latency 5 clocks from a group's last word. m_axis_tready stops all stages at once.
module wpr_bits_dec #(
  parameter int unsigned CountWidth = 24,  // bits of the number of values
  parameter int unsigned Heads      = 1,
  parameter int unsigned Words      = 1
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input logic [6:0] cfg_groups_i,  // of a chunk, less one; a power of two of them

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic [Words-1:0][15:0] bits_o,
  output logic [Heads-1:0][31:0] heads_o,
  output logic                   group_o,   // a group begins with this row
  output logic [Words-1:0][31:0] words_o,   // with group: all its bits
  output logic [           31:0] beyond_o,  // with group: values that are not there
  input  logic [      15:0][31:0] values_i,
  input  logic                   wrong_i,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  logic move, valid, last, lost;
  logic [15:0] keep;
  wpr_groups_in #(.CountWidth(CountWidth), .Heads(Heads), .Words(Words)) groups (
    .clk_i,
    .rst_ni,
    .cfg_groups_i,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .move_i (move),
    .valid_o(valid),
    .last_o (last),
    .wrong_o(lost),
    .keep_o (keep),
    .bits_o,
    .heads_o,
    .group_o,
    .words_o,
    .beyond_o
  );
  wpr_rows_out out (
    .clk_i,
    .rst_ni,
    .move_o      (move),
    .row_valid_i (valid),
    .row_last_i  (last),
    .row_wrong_i (lost || wrong_i),
    .row_keep_i  (keep),
    .row_values_i(values_i),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
