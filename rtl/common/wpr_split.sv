// SPDX-License-Identifier: Apache-2.0
// The inverse of wpr_pack: cuts pieces of 0 to Lanes lanes, as asked for, from words of Lanes
// lanes. One piece a clock; one clock more where a packet's last piece lies in two words. Latency
// ceil(log2(Lanes) / 2) + 3 clocks. Back-pressure stops all stages in the same clock.
//
// m_error_o: the piece lies in part or whole behind the packet's end; or it is the last piece, and
// the packet has more lanes. Its lanes mean nothing then. The packet's rest is dropped, and the
// next packet begins afresh.
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

  // All stages move in the same clocks. A decision of one clock acts on the data in the next,
  // through registers: decisions come late in a clock, and a word's many bits lie far apart.
  logic move;
  assign move = m_ready_i || !m_valid_o;

  // ---- what is known of two words, and the words a clock later ----------------------------------

  logic v0_q, v1_q, last0_q, last1_q, pop, take0, take1, take0_q, take1_q;
  logic [Log:0] size0_q, size1_q;
  logic [Width-1:0] in_q, w0_q, w1_q;
  assign take0     = v1_q && (!v0_q || pop);
  assign take1     = !v1_q || take0;
  assign s_ready_o = move && take1;
  always_ff @(posedge clk_i) begin
    if (move) begin
      if (take0) {size0_q, last0_q} <= {size1_q, last1_q};
      if (take1) {size1_q, last1_q} <= {s_size_i, s_last_i};
      v0_q    <= take0 || (v0_q && !pop);
      v1_q    <= take1 ? s_valid_i : v1_q;
      take0_q <= take0;
      take1_q <= take1;
      in_q    <= s_data_i;
      if (take1_q) w1_q <= in_q;
      if (take0_q) w0_q <= w1_q;
    end
    if (!rst_ni) {v0_q, v1_q} <= '0;
  end

  // ---- where pieces begin -----------------------------------------------------------------------

  logic may, issue, crosses, full, short_of, excess, drain_q;
  logic [Log:0] at_q;  // Lanes: the last word is used up
  logic [Log+1:0] ends;
  assign ends      = (Log + 2)'(at_q) + (Log + 2)'(c_size_i);
  assign crosses   = ends > (Log + 2)'(Lanes);
  assign full      = ends >= (Log + 2)'(Lanes);
  assign short_of  = last0_q ? ends > (Log + 2)'(size0_q)
                             : crosses && last1_q && ends[Log:0] - (Log + 1)'(Lanes) > size1_q;
  assign excess    = c_last_i && (last0_q ? ends < (Log + 2)'(size0_q)
                                          : !crosses || !last1_q ||
                                            ends[Log:0] - (Log + 1)'(Lanes) < size1_q);
  assign may       = !drain_q && v0_q && (last0_q || !crosses || v1_q);
  assign issue     = c_valid_i && may;
  assign c_ready_o = move && may;
  assign pop       = drain_q ? v0_q : issue && (c_last_i || (full && !last0_q));

  always_ff @(posedge clk_i) begin
    if (move) begin
      if (issue) begin
        drain_q <= c_last_i && !last0_q;
        if (c_last_i) at_q <= '0;
        else if (!full) at_q <= ends[Log:0];
        else at_q <= last0_q ? (Log + 1)'(Lanes) : ends[Log:0] - (Log + 1)'(Lanes);
      end else if (pop && last0_q) begin
        drain_q <= 1'b0;
      end
    end
    if (!rst_ni) begin
      drain_q <= 1'b0;
      at_q    <= '0;
    end
  end

  // ---- to the first lane ------------------------------------------------------------------------

  // Which lanes lie below a number, a register each; by groups of lanes, to save comparators.
  localparam int unsigned Fine = Log / 2;
  localparam int unsigned Groups = Lanes >> Fine;
  typedef struct packed {
    logic [Groups-1:0] groups;
    logic [Groups-1:0] partly;
    logic [(1<<Fine)-1:0] fine;  // in the group that is partly below
  } below_t;

  function automatic below_t below(input logic [Log:0] number);
    for (int i = 0; i < int'(Groups); i++) begin
      below.groups[i] = (Log - Fine + 1)'(i) < number[Log:Fine];
      below.partly[i] = (Log - Fine + 1)'(i) == number[Log:Fine];
    end
    for (int i = 0; i < 1 << Fine; i++) below.fine[i] = (Fine)'(i) < number[Fine-1:0];
  endfunction

  function automatic logic is_below(input below_t number, input int lane);
    return number.groups[lane>>Fine] ||
           (number.partly[lane>>Fine] && number.fine[lane%(1<<Fine)]);
  endfunction

  logic [Steps+1:0] valid_q, last_q, error_q;
  logic [Steps+1:0][Log-1:0] place_q;
  logic [Steps+1:0][Log:0] size_q;
  logic [Steps+1:1][Width-1:0] data_q;
  below_t begins_q, ends_q;
  always_ff @(posedge clk_i) begin
    if (move) begin
      valid_q  <= {valid_q[Steps:0], issue};
      last_q   <= {last_q[Steps:0], c_last_i};
      error_q  <= {error_q[Steps:0], short_of || excess};
      place_q  <= {place_q[Steps:0], at_q[Log-1:0]};
      size_q   <= {size_q[Steps:0], c_size_i};
      begins_q <= below({1'b0, at_q[Log-1:0]});
      for (int i = 0; i < int'(Lanes); i++) begin
        data_q[1][i*Unit+:Unit] <= is_below(begins_q, i) ? w1_q[i*Unit+:Unit] : w0_q[i*Unit+:Unit];
      end
      for (int k = 0; k < int'(Steps); k++) begin
        data_q[k+2] <= rotated(data_q[k+1], k, 2'(place_q[k+1] >> (2 * k)));
      end
      ends_q    <= below(size_q[Steps]);
      m_valid_o <= valid_q[Steps+1];
      m_last_o  <= last_q[Steps+1];
      m_error_o <= error_q[Steps+1];
      m_size_o  <= size_q[Steps+1];
      for (int i = 0; i < int'(Lanes); i++) begin
        m_data_o[i*Unit+:Unit] <= is_below(ends_q, i) ? data_q[Steps+1][i*Unit+:Unit] : '0;
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
