// SPDX-License-Identifier: Apache-2.0
// The beginning of a decoder that needs two words of its code before it takes the first. In comes a
// packet, 512 bits a beat; out go words of Narrow bytes, the first two shown. A word a clock;
// latency 2 clocks. s_axis_tready comes from registers, whatever pop_i waits for.
//
// Beside bits, known when a word comes, are stored with the word.
module wpr_words_in #(
  parameter int unsigned Narrow = 4,  // bytes of a word, a power of two
  parameter int unsigned Beside = 1   // bits
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic                come_o,         // a word comes
  output logic [8*Narrow-1:0] come_data_o,
  output logic [  Narrow-1:0] come_keep_o,
  input  logic [  Beside-1:0] come_beside_i,

  output logic                first_valid_o,
  output logic                first_last_o,    // of the packet
  output logic [8*Narrow-1:0] first_data_o,
  output logic [  Beside-1:0] first_beside_o,
  output logic                second_valid_o,
  output logic                second_last_o,
  output logic [8*Narrow-1:0] second_data_o,
  output logic [  Beside-1:0] second_beside_o,
  input  logic                pop_i            // takes the first word, if there is one
);

  logic valid, ready, last;
  assign come_o = valid && ready;
  wpr_narrow #(.Wide(64), .Narrow(Narrow)) narrow (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .m_axis_tvalid(valid),
    .m_axis_tready(ready),
    .m_axis_tdata (come_data_o),
    .m_axis_tkeep (come_keep_o),
    .m_axis_tlast (last)
  );
  wpr_window #(.Width(1 + Beside + 8 * Narrow)) window (
    .clk_i,
    .rst_ni,
    .s_valid_i     (valid),
    .s_ready_o     (ready),
    .s_data_i      ({last, come_beside_i, come_data_o}),
    .first_valid_o,
    .first_o       ({first_last_o, first_beside_o, first_data_o}),
    .second_valid_o,
    .second_o      ({second_last_o, second_beside_o, second_data_o}),
    .pop_i
  );

endmodule
