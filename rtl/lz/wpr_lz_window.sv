// SPDX-License-Identifier: Apache-2.0
// The beginning of a decoder that parses bytes: a packet in, `Bytes` a beat; its next bytes shown as
// three words of as many, of which one leaves in a clock. Where the packet ends among them is told.
// The next packet comes in after flush_i.
//
// Words move together, and only as the next one comes: so what is known of a word, alone or with the
// word behind it, can be found step by step on its way to the first place (shift_o), and is there for
// every word.
module wpr_lz_window #(
  parameter int unsigned Bytes = 8  // of a word
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic               s_axis_tlast,

  output logic                       full_o,    // three words and one that comes, or the last ones
  output logic                       ended_o,   // all of the packet came in
  output logic [$clog2(3*Bytes)-1:0] size_o,    // with ended_o: how many bytes are shown
  output logic [     24*Bytes-1:0]   bytes_o,   // the next one lowest
  output logic [      8*Bytes-1:0]   come_o,    // the word that becomes the third one
  output logic                       more_o,    // that one is not the packet's last
  output logic                       shift_o,   // words move
  input  logic                       pop_i,     // takes a word, while full_o
  input  logic                       flush_i    // in and to the packet's end: throws away the rest
);

  localparam int unsigned Bits = 8 * Bytes;
  localparam int unsigned LogBytes = $clog2(Bytes);
  typedef logic [$clog2(3*Bytes)-1:0] size_t;
  logic [2:0] filled_q;  // places that words of the packet reached
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
    .m_data_o ({last, keep, come_o})
  );

  assign take    = !ended_o && (flush_i || pop_i || !filled_q[0]);
  assign full_o  = filled_q[0] && (valid || ended_o);
  assign shift_o = pop_i || (!filled_q[0] && (valid || ended_o));
  assign more_o  = valid && !last && !ended_o;
  always_comb begin
    n = '0;
    for (int i = 0; i < int'(Bytes); i++) n += (LogBytes + 1)'(keep[i]);
  end

  always_ff @(posedge clk_i) begin
    if (shift_o) begin
      bytes_o  <= {come_o, bytes_o[24*Bytes-1:Bits]};
      filled_q <= {1'b1, filled_q[2:1]};
      ended_o  <= ended_o || last;
      if (!ended_o) begin
        // n, and one or two words before it; n is at most a word.
        size_o <= filled_q[1] ? {1'b1, n} :
                  filled_q[2] ? {n[LogBytes], ~n[LogBytes], n[LogBytes-1:0]} : {1'b0, n};
      end else if (pop_i) begin
        size_o <= size_o - size_t'(Bytes);
      end
    end
    if (flush_i) begin
      filled_q <= '0;
      ended_o  <= !ended_o && valid && last;
    end
    if (!rst_ni) begin
      filled_q <= '0;
      ended_o  <= 1'b0;
    end
  end

endmodule
