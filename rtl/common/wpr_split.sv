// SPDX-License-Identifier: Apache-2.0
// The inverse of wpr_pack: cuts pieces of 0 to Lanes lanes, as asked for, from words of Lanes lanes.
// One piece a clock; one clock more where a packet's last piece lies in two words. Latency
// ceil(log2(Lanes) / 2) + 2 clocks.
//
// m_error_o: the piece lies (in part) behind the packet's end, or it was the last one asked for and
// the packet has more words; its lanes mean nothing then. What a packet has more is dropped, and
// the next one begins afresh.
module wpr_split #(
  parameter int unsigned Lanes = 64,  // a power of two, 4 or more
  parameter int unsigned Unit  = 8,   // bits of a lane
  localparam int unsigned Log = $clog2(Lanes),
  localparam int unsigned Width = Lanes * Unit
) (
  input  logic             clk_i,
  input  logic             rst_ni,     // synchronous
  input  logic             s_valid_i,
  output logic             s_ready_o,
  input  logic [Width-1:0] s_data_i,
  input  logic [    Log:0] s_size_i,   // read with s_last_i only
  input  logic             s_last_i,
  input  logic             c_valid_i,  // what to cut
  output logic             c_ready_o,
  input  logic [    Log:0] c_size_i,   // lanes
  input  logic             c_last_i,   // the packet's last piece
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [Width-1:0] m_data_o,   // lanes beyond m_size_o are 0
  output logic [    Log:0] m_size_o,
  output logic             m_last_o,
  output logic             m_error_o
);

  localparam int unsigned Steps = (Log + 1) / 2;

  // ---- two words ---------------------------------------------------------------------------------

  logic v0_q, v1_q, last0_q, last1_q, pop, take0;
  logic [Width-1:0] w0_q, w1_q;
  logic [Log:0] size0_q, size1_q;
  assign take0     = v1_q && (!v0_q || pop);
  assign s_ready_o = !v1_q || take0;
  always_ff @(posedge clk_i) begin
    if (take0) {w0_q, size0_q, last0_q} <= {w1_q, size1_q, last1_q};
    if (s_ready_o) {w1_q, size1_q, last1_q} <= {s_data_i, s_size_i, s_last_i};
    v0_q <= take0 || (v0_q && !pop);
    v1_q <= s_ready_o ? s_valid_i : v1_q;
    if (!rst_ni) {v0_q, v1_q} <= '0;
  end

  // ---- where pieces begin ------------------------------------------------------------------------

  logic move, issue, crosses, full, short_of, excess, drain_q;
  logic [Log:0] at_q;  // Lanes: the last word is used up
  logic [Log+1:0] ends;
  assign ends     = (Log + 2)'(at_q) + (Log + 2)'(c_size_i);
  assign crosses    = ends > (Log + 2)'(Lanes);
  assign full     = ends >= (Log + 2)'(Lanes);
  assign short_of = last0_q ? ends > (Log + 2)'(size0_q)
                            : crosses && last1_q && ends[Log:0] - (Log + 1)'(Lanes) > size1_q;
  assign excess   = c_last_i && !last0_q && !(crosses && last1_q);
  assign issue    = c_valid_i && !drain_q && move && v0_q && (last0_q || !crosses || v1_q);
  assign c_ready_o = issue;
  assign pop      = drain_q ? v0_q : issue && (c_last_i || (full && !last0_q));

  always_ff @(posedge clk_i) begin
    if (issue) begin
      drain_q <= c_last_i && !last0_q;
      if (c_last_i) at_q <= '0;
      else if (!full) at_q <= ends[Log:0];
      else at_q <= last0_q ? (Log + 1)'(Lanes) : ends[Log:0] - (Log + 1)'(Lanes);
    end else if (pop && last0_q) begin
      drain_q <= 1'b0;
    end
    if (!rst_ni) begin
      drain_q <= 1'b0;
      at_q    <= '0;
    end
  end

  // ---- to the first lane -------------------------------------------------------------------------

  logic [Steps:0] valid_q, last_q, error_q;
  logic [Steps:0][Log-1:0] place_q;
  logic [Steps:0][Log:0] size_q;
  logic [Steps:0][Width-1:0] data_q;
  assign move = m_ready_i || !m_valid_o;
  always_ff @(posedge clk_i) begin
    if (move) begin
      valid_q[0] <= issue;
      last_q[0]  <= c_last_i;
      error_q[0] <= short_of || excess;
      place_q[0] <= at_q[Log-1:0];
      size_q[0]  <= c_size_i;
      for (int i = 0; i < Lanes; i++) begin
        data_q[0][i*Unit+:Unit] <= (Log)'(i) >= at_q[Log-1:0] ? w0_q[i*Unit+:Unit]
                                                               : w1_q[i*Unit+:Unit];
      end
      for (int k = 0; k < Steps; k++) begin
        valid_q[k+1] <= valid_q[k];
        last_q[k+1]  <= last_q[k];
        error_q[k+1] <= error_q[k];
        place_q[k+1] <= place_q[k];
        size_q[k+1]  <= size_q[k];
        data_q[k+1]  <= rotated(data_q[k], k, 2'(place_q[k] >> (2 * k)));
      end
      m_valid_o <= valid_q[Steps];
      m_last_o  <= last_q[Steps];
      m_error_o <= error_q[Steps];
      m_size_o  <= size_q[Steps];
      for (int i = 0; i < Lanes; i++) begin
        m_data_o[i*Unit+:Unit] <= (Log + 1)'(i) < size_q[Steps] ? data_q[Steps][i*Unit+:Unit] : '0;
      end
    end
    if (!rst_ni) begin
      valid_q   <= '0;
      m_valid_o <= 1'b0;
    end
  end

  function automatic logic [Width-1:0] rotated(input logic [Width-1:0] data, input int k,
                                               input logic [1:0] digit);
    logic [Width-1:0] by1, by2, by3;
    by1 = (data >> ((1 << (2 * k)) * Unit)) | (data << (Width - (1 << (2 * k)) * Unit));
    by2 = (by1 >> ((1 << (2 * k)) * Unit)) | (by1 << (Width - (1 << (2 * k)) * Unit));
    by3 = (by2 >> ((1 << (2 * k)) * Unit)) | (by2 << (Width - (1 << (2 * k)) * Unit));
    case (digit)
      2'd0: return data;
      2'd1: return by1;
      2'd2: return by2;
      default: return by3;
    endcase
  endfunction

endmodule
