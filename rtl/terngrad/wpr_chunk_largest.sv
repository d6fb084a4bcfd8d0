// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of a chunk of rows, each of 16 float32 words: that of a NaN above
// infinity's. A row a clock. Each lane keeps its own largest; when the chunk has ended, one
// comparator goes through them, which takes less logic than a tree. Latency 19 clocks from a
// chunk's last row, or 16 behind the chunk before it. The next chunk may follow at once; the one
// after it nine clocks behind soon_o: it comes into the buffer of the chunk that is done then,
// which has been read.
module wpr_chunk_largest (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic              row_i,
  input  logic              first_i,  // with row: of its chunk
  input  logic              last_i,   // with row: of its chunk
  input  logic [15:0][31:0] words_i,

  output logic        soon_o,  // done in eleven clocks
  output logic        done_o,  // most is of the next chunk
  output logic [30:0] most_o
);

  logic copy;
  logic [15:0][30:0] most_q, copies_q;
  always_ff @(posedge clk_i) begin
    for (int l = 0; l < 16; l++) begin
      if (row_i && (first_i || words_i[l][30:0] > most_q[l])) most_q[l] <= words_i[l][30:0];
    end
    if (copy) copies_q <= most_q;
  end

  logic full_q, run_q, run1_q, first1_q, last1_q;
  logic [3:0] lane_q;
  logic [30:0] word1_q;
  assign soon_o = run_q && lane_q == 4'd6;
  assign copy = full_q && (!run_q || &lane_q);
  always_ff @(posedge clk_i) begin
    full_q   <= (row_i && last_i) || (full_q && !copy);
    run_q    <= copy || (run_q && !(&lane_q));
    lane_q   <= copy ? '0 : lane_q + 4'd1;
    word1_q  <= copies_q[lane_q];
    run1_q   <= run_q;
    first1_q <= lane_q == '0;
    last1_q  <= run_q && &lane_q;
    done_o   <= last1_q;
    if (run1_q && (first1_q || word1_q > most_o)) most_o <= word1_q;
    if (!rst_ni) begin
      full_q  <= 1'b0;
      run_q   <= 1'b0;
      last1_q <= 1'b0;
      done_o  <= 1'b0;
    end
  end

endmodule
