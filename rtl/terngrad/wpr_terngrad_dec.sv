// SPDX-License-Identifier: Apache-2.0
// terngrad decoder (codecs/terngrad/spec.md): a packet of code in, 512 bits a beat; a packet of
// float32 words out, 16 a clock.
//
// How many values a packet has is not in its code and comes by s_cmd. A code that the specification
// refuses ends the packet with m_axis_tuser set beside m_axis_tlast: its values are then not to be
// used, there may be fewer of them, the rest of the input packet is thrown away and the next one
// begins afresh.
//
// Does not know bytes behind the last value.
//
// Rate: 16 values a clock, and one clock more a chunk of 4096. Latency 5 clocks from a chunk's
// third word. m_axis_tready stops all stages at once.
module wpr_terngrad_dec #(
  parameter int unsigned CountWidth = 24  // bits of the number of values
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // values of the next packet, less one

  input  logic         s_axis_tvalid,
  output logic         s_axis_tready,
  input  logic [511:0] s_axis_tdata,
  input  logic [ 63:0] s_axis_tkeep,   // all ones but with tlast
  input  logic         s_axis_tlast,

  output logic         m_axis_tvalid,
  input  logic         m_axis_tready,
  output logic [511:0] m_axis_tdata,   // the value that comes first lowest
  output logic [ 63:0] m_axis_tkeep,   // all ones but with tlast
  output logic         m_axis_tlast,
  output logic         m_axis_tuser    // with tlast: the packet was not valid
);

  localparam logic [31:0] Nan = 32'h7FC00000;

  // A chunk: its scale; a group: which values are not 0, and which of those are negative.
  logic group, nan, finite, wrong;
  logic [15:0][31:0] values;
  logic [15:0] taken, negative;
  logic [31:0] scale, all_taken, all_negative, beyond;
  wpr_bits_dec #(.CountWidth(CountWidth), .Heads(1), .Words(2)) decoder (
    .clk_i,
    .rst_ni,
    .cfg_groups_i(7'd127),
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .bits_o  ({negative, taken}),
    .heads_o (scale),
    .group_o (group),
    .words_o ({all_negative, all_taken}),
    .beyond_o(beyond),
    .values_i(values),
    .wrong_i (wrong),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

  // Whether an encoder writes this.
  assign nan    = scale == Nan;
  assign finite = !scale[31] && scale[30:23] != '1;
  assign wrong  = !(nan || finite) ||
                  (group && ((all_negative & ~all_taken) != '0 || (all_taken & beyond) != '0 ||
                             (nan && all_taken != '0)));
  always_comb begin
    for (int l = 0; l < 16; l++) begin
      values[l] = nan ? Nan : {negative[l], scale[30:0]} & {32{taken[l]}};
    end
  end

endmodule
