// SPDX-License-Identifier: Apache-2.0
// wpr_lz_window: the first word shown is the one whose turn it is, whichever it is (n_i), as is the
// third; with the packet's end inside, as many bytes are shown as are left; and before that three
// words, and a fourth one comes, or it takes what comes. Whether the fourth is the last one is told.
// Words are a free byte, eight times.
module wpr_lz_window_props (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [ 2:0] n_i,            // a word, constant
  input logic        s_axis_tvalid,
  input logic [ 7:0] s_byte_i,
  input logic [ 2:0] s_size_i,       // bytes of a last word, less one
  input logic        s_axis_tlast,
  input logic        pop_i
);

  logic s_axis_tready, full, ended, more, shift, pop;
  logic [63:0] come, s_axis_tdata;
  assign s_axis_tdata = {8{s_byte_i}};
  logic [7:0] keep;
  logic [4:0] size;
  logic [191:0] bytes;
  assign keep = s_axis_tlast ? 8'((9'd2 << s_size_i) - 9'd1) : 8'hFF;
  assign pop  = pop_i && full && (!ended || size >= 5'd8);
  wpr_lz_window dut (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep (keep),
    .s_axis_tlast,
    .full_o       (full),
    .ended_o      (ended),
    .size_o       (size),
    .bytes_o      (bytes),
    .come_o       (come),
    .more_o       (more),
    .shift_o      (shift),
    .pop_i        (pop),
    .flush_i      (1'b0)
  );

  logic started_q = 1'b0, closed_q = 1'b0;
  logic [2:0] n_q;
  logic [4:0] in_q = '0, out_q = '0;
  logic [7:0] in_bytes_q = '0;
  logic [63:0] word_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    n_q       <= n_i;
    if (rst_ni) begin
      if (s_axis_tvalid && s_axis_tready) begin
        in_q       <= in_q + 5'd1;
        in_bytes_q <= in_bytes_q + (s_axis_tlast ? 8'(s_size_i) + 8'd1 : 8'd8);
        closed_q   <= closed_q || s_axis_tlast;
        if (in_q == 5'(n_i)) word_q <= s_axis_tdata;
      end
      if (pop) out_q <= out_q + 5'd1;
    end
    assume (rst_ni == started_q);
    assume (!(closed_q && s_axis_tvalid));  // of one packet
    if (started_q) assume (n_i == n_q);
    if (started_q && rst_ni) begin
      in_turn: assert (!(full && out_q == 5'(n_i) && (!ended || size != '0)) ||
                       bytes[63:0] == word_q);
      third: assert (!(full && out_q + 5'd2 == 5'(n_i) && (!ended || size > 5'd16)) ||
                     bytes[191:128] == word_q);
      comes: assert (!(full && !ended && out_q + 5'd3 == 5'(n_i)) || come == word_q);
      goes_on: assert (!(full && more) || in_q > out_q + 5'd4 || !closed_q);
      sized: assert (!ended || (closed_q && 8'(size) == in_bytes_q - {out_q, 3'b0}));
      filled: assert (!full || ended || in_q >= out_q + 5'd4);
      moves_all: assert (!pop || shift);
      moves: assert (full || s_axis_tready);
    end
    all: cover (ended && size == 5'd3 && out_q == 5'd4);
  end

endmodule
