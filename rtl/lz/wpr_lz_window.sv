// SPDX-License-Identifier: Apache-2.0
// The beginning of a decoder that parses bytes: a packet in, `Bytes` a beat; its next bytes shown as
// three words of as many, of which one leaves in a clock. Where the packet ends among them is told.
// The next packet comes in after flush_i.
//
// What is known of a word when it comes is stored beside it.
module wpr_lz_window #(
  parameter int unsigned Bytes  = 8,  // of a word
  parameter int unsigned Beside = 1   // bits of what is known of one
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic               s_axis_tlast,

  output logic [8*Bytes-1:0] come_data_o,    // a word that comes
  input  logic [ Beside-1:0] come_beside_i,

  output logic                       full_o,    // three words, or the packet's last ones
  output logic                       ended_o,   // all of the packet came in
  output logic [$clog2(3*Bytes)-1:0] size_o,    // with ended_o: how many bytes are shown
  output logic [     24*Bytes-1:0]   bytes_o,   // the next one lowest
  output logic [2:0][Beside-1:0]     beside_o,  // of each word
  input  logic                       pop_i,     // takes a word, while full_o
  input  logic                       flush_i    // in and to the packet's end: throws away the rest
);

  localparam int unsigned Bits = 8 * Bytes;
  localparam int unsigned Width = Beside + Bits;
  localparam int unsigned LogBytes = $clog2(Bytes);
  typedef logic [$clog2(3*Bytes)-1:0] size_t;
  logic [2:0] valid_q;
  logic [2:0][Width-1:0] words_q;
  logic [Bytes-1:0] keep;
  logic [LogBytes:0] n;
  logic valid, last, take;
  wpr_skid #(.Width(Bits + Bytes + 1)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
    .m_valid_o(valid),
    .m_ready_i(take),
    .m_data_o ({last, keep, come_data_o})
  );

  assign take     = !ended_o && (flush_i || pop_i || !valid_q[2]);
  assign full_o   = valid_q[2] || ended_o;
  always_comb begin
    n = '0;
    for (int i = 0; i < int'(Bytes); i++) n += (LogBytes + 1)'(keep[i]);
    for (int i = 0; i < 3; i++) {beside_o[i], bytes_o[i*Bits+:Bits]} = words_q[i];
  end

  logic come;
  logic [2:0] stay;  // those that do
  assign come = take && valid;
  assign stay = pop_i ? {1'b0, valid_q[2:1]} : valid_q;
  always_ff @(posedge clk_i) begin
    if (pop_i) words_q[1:0] <= words_q[2:1];
    for (int i = 0; i < 3; i++) begin
      if (!stay[i] && (i == 0 || stay[i-1])) begin
        words_q[i] <= {come_beside_i, come_data_o};
        valid_q[i] <= come;
      end else begin
        valid_q[i] <= stay[i];
      end
    end
    if (ended_o) begin
      if (pop_i) size_o <= size_o - size_t'(Bytes);
    end else begin
      // n, and one or two words before it; n is at most a word.
      size_o <= stay[1] ? {1'b1, n} : stay[0] ? {n[LogBytes], ~n[LogBytes], n[LogBytes-1:0]} :
                {1'b0, n};
      ended_o <= come && last;
    end
    if (flush_i) begin
      valid_q <= '0;
      if (ended_o) ended_o <= 1'b0;
    end
    if (!rst_ni) begin
      valid_q <= '0;
      ended_o <= 1'b0;
    end
  end

endmodule
