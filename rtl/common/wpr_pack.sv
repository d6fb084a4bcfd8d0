// SPDX-License-Identifier: Apache-2.0
// Packs pieces of 0 to Lanes lanes into words of Lanes lanes without gaps. With Lanes = 512 and
// Unit = 1 it packs bits; with Lanes = 64 and Unit = 8 it closes the gaps of a byte stream. One
// piece a clock, whatever the sizes; one clock more where a packet's last piece goes into two
// words. Latency ceil(log2(Lanes) / 2) + 2 clocks.
//
// Lanes of a piece beyond its size must be 0. A packet's last word says how many lanes it has; its
// other lanes are 0. A packet without lanes is one word of size 0.
module wpr_pack #(
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
  input  logic [    Log:0] s_size_i,   // lanes
  input  logic             s_last_i,
  output logic             m_valid_o,
  input  logic             m_ready_i,
  output logic [Width-1:0] m_data_o,
  output logic [    Log:0] m_size_o,   // Lanes but in a last word
  output logic             m_last_o
);

  localparam int unsigned Steps = (Log + 1) / 2;  // of the rotation, by 4^k lanes each

  logic move_out, move;

  // ---- where a piece begins: the only loop, one addition ----------------------------------------

  logic [Log-1:0] fill_q;
  logic [Log:0] sum;
  assign sum = (Log + 1)'(fill_q) + s_size_i;
  assign s_ready_o = move;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) fill_q <= '0;
    else if (move && s_valid_i) fill_q <= s_last_i ? '0 : sum[Log-1:0];
  end

  // ---- to its place: rotated by two bits of the place in each step -----------------------------

  logic [Steps:0] valid_q, last_q, cross_q, more_q;
  logic [Steps:0][Log-1:0] at_q, after_q;  // lanes before it in its word; after it, in the last one
  logic [Steps:0][Width-1:0] data_q;
  logic [Lanes-1:0] own_q;  // lanes of this word; the others go to the next
  // A lane is own from at_q on. That is told from the halves of its number, a clock ahead: else
  // synthesis would pass it on from lane to lane to save logic.
  localparam int unsigned Low = Log / 2;
  logic [Log-1:0] at_next;  // at_q[Steps-1], a clock ahead
  // Lanes with this upper half are all own; with this lower half, if the next upper half's are.
  logic [(1<<(Log-Low))-1:0] above_q;
  logic [(1<<(Log-Low)):0] above;
  logic [(1<<Low)-1:0] from_q;
  assign above = {1'b1, above_q};
  logic [Steps+1:0][Log-1:0] at_all;
  assign at_all  = {at_q, fill_q};
  assign at_next = at_all[Steps-1];
  always_ff @(posedge clk_i) begin
    if (move) begin
      valid_q[0] <= s_valid_i;
      last_q[0]  <= s_last_i;
      cross_q[0] <= sum[Log];
      more_q[0]  <= s_valid_i && s_last_i && sum[Log] && sum[Log-1:0] != '0;
      at_q[0]    <= fill_q;
      after_q[0] <= sum[Log-1:0];
      data_q[0]  <= s_data_i;
      for (int k = 0; k < Steps; k++) begin
        valid_q[k+1] <= valid_q[k];
        last_q[k+1]  <= last_q[k];
        cross_q[k+1] <= cross_q[k];
        more_q[k+1]  <= more_q[k];
        at_q[k+1]    <= at_q[k];
        after_q[k+1] <= after_q[k];
        data_q[k+1]  <= rotated(data_q[k], k, 2'(at_q[k] >> (2 * k)));
      end
      for (int h = 0; h < (1 << (Log - Low)); h++) begin
        above_q[h] <= (Log - Low)'(h) > at_next[Log-1:Low];
      end
      for (int l = 0; l < (1 << Low); l++) from_q[l] <= (Low)'(l) >= at_next[Low-1:0];
      for (int i = 0; i < Lanes; i++) begin
        own_q[i] <= above[i>>Low] || (above[(i>>Low)+1] && from_q[i%(1<<Low)]);
      end
    end else if (move_out) begin  // the last word of a packet still has to leave
      valid_q[Steps] <= 1'b0;
      more_q[Steps]  <= 1'b0;
      data_q[Steps]  <= '0;
    end
    if (!rst_ni) begin
      valid_q <= '0;
      more_q  <= '0;
    end
  end

  function automatic logic [Width-1:0] rotated(input logic [Width-1:0] data, input int k,
                                               input logic [1:0] digit);
    logic [Width-1:0] by1, by2, by3;
    by1 = (data << ((1 << (2 * k)) * Unit)) | (data >> (Width - (1 << (2 * k)) * Unit));
    by2 = (by1 << ((1 << (2 * k)) * Unit)) | (by1 >> (Width - (1 << (2 * k)) * Unit));
    by3 = (by2 << ((1 << (2 * k)) * Unit)) | (by2 >> (Width - (1 << (2 * k)) * Unit));
    case (digit)
      2'd0: return data;
      2'd1: return by1;
      2'd2: return by2;
      default: return by3;
    endcase
  endfunction

  // ---- full words leave -------------------------------------------------------------------------

  logic v, last, crosses, more, ends;
  logic rest_last_q;  // only the rest of a packet is left
  logic [Log-1:0] rest_size_q;
  logic [Width-1:0] data, own, rest_q;
  assign {v, last, crosses, more} = {valid_q[Steps], last_q[Steps], cross_q[Steps], more_q[Steps]};
  assign data = data_q[Steps];
  always_comb for (int i = 0; i < Lanes; i++) own[i*Unit+:Unit] = {Unit{own_q[i]}};
  assign ends     = rest_last_q || (v && last && !more);
  assign move_out = m_ready_i || !m_valid_o;
  assign move     = move_out && !more;

  always_ff @(posedge clk_i) begin
    if (move_out) begin
      m_valid_o   <= ends || (v && crosses);
      m_last_o    <= ends;
      m_data_o    <= rest_q | (data & own);
      m_size_o    <= rest_last_q ? (Log + 1)'(rest_size_q)
                   : crosses ? (Log + 1)'(Lanes) : (Log + 1)'(after_q[Steps]);
      rest_last_q <= more;
      rest_size_q <= after_q[Steps];
    end
    if (!rst_ni || (move_out && ends)) rest_q <= '0;
    else if (move_out && v) rest_q <= crosses ? data & ~own : rest_q | data;
    if (!rst_ni) begin
      m_valid_o   <= 1'b0;
      rest_last_q <= 1'b0;
    end
  end

endmodule
