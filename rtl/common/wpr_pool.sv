// SPDX-License-Identifier: Apache-2.0
// Engines side by side behind one stream: a packet goes to the next engine that has room, and the
// packets that the engines make leave in the order of those that came in, whichever is done first.
// An engine makes exactly one packet of each packet.
//
// Each engine has a queue of 2^LogQueue beats in front of it and one behind it, which lie in block
// RAM where they have more than 64. A packet longer than a queue holds the others up: engines then
// work one after the other in part. A beat a clock each way; latency 2 clocks and the engine's.
module wpr_pool #(
  parameter int unsigned Engines   = 4,
  parameter int unsigned In        = 577,  // bits of a beat in: data, tkeep ...
  parameter int unsigned Out       = 577,
  parameter int unsigned LogQueue  = 5,
  parameter int unsigned LogInside = 5     // packets inside, of all engines
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,     // synchronous
  input  logic                         s_valid_i,
  output logic                         s_ready_o,
  input  logic [   In-1:0]             s_data_i,
  input  logic                         s_last_i,
  output logic                         m_valid_o,
  input  logic                         m_ready_i,
  output logic [  Out-1:0]             m_data_o,
  output logic                         m_last_o,
  // to the engines
  output logic [Engines-1:0]           e_valid_o,
  input  logic [Engines-1:0]           e_ready_i,
  output logic [Engines-1:0][  In-1:0] e_data_o,
  output logic [Engines-1:0]           e_last_o,
  // from the engines
  input  logic [Engines-1:0]           f_valid_i,
  output logic [Engines-1:0]           f_ready_o,
  input  logic [Engines-1:0][ Out-1:0] f_data_i,
  input  logic [Engines-1:0]           f_last_i
);

  localparam int unsigned Log = Engines > 1 ? $clog2(Engines) : 1;

  function automatic logic [Log-1:0] after(input logic [Log-1:0] engine);
    return engine == (Log)'(Engines - 1) ? '0 : engine + 1'b1;
  endfunction

  // ---- which engine -----------------------------------------------------------------------------

  logic [Engines-1:0] room, f_valid, f_last, give;
  logic [Engines-1:0][Out-1:0] f_data;
  logic [Log-1:0] to_q, from, from_q;
  logic inside_q, begins, order_room, collecting_q, order_valid, order_next;
  assign begins    = s_valid_i && !inside_q && order_room && room[to_q];
  assign s_ready_o = room[to_q] && (inside_q || order_room);
  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o) begin
      inside_q <= !s_last_i;
      if (s_last_i) to_q <= after(to_q);
    end else if (s_valid_i && !inside_q && !room[to_q]) begin
      to_q <= after(to_q);
    end
    if (!rst_ni) begin
      inside_q <= 1'b0;
      to_q     <= '0;
    end
  end

  wpr_fifo #(.Width(Log), .LogDepth(LogInside)) order (
    .clk_i,
    .rst_ni,
    .s_valid_i(begins),
    .s_ready_o(order_room),
    .s_data_i (to_q),
    .m_valid_o(order_valid),
    .m_ready_i(order_next),
    .m_data_o (from),
    .level_o  ()
  );

  for (genvar i = 0; i < Engines; i++) begin : g_engine
    if (LogQueue <= 6) begin : g_queue
      wpr_fifo #(.Width(In + 1), .LogDepth(LogQueue)) in (
        .clk_i,
        .rst_ni,
        .s_valid_i(s_valid_i && to_q == (Log)'(i) && (inside_q || order_room)),
        .s_ready_o(room[i]),
        .s_data_i ({s_data_i, s_last_i}),
        .m_valid_o(e_valid_o[i]),
        .m_ready_i(e_ready_i[i]),
        .m_data_o ({e_data_o[i], e_last_o[i]}),
        .level_o  ()
      );
      wpr_fifo #(.Width(Out + 1), .LogDepth(LogQueue)) out (
        .clk_i,
        .rst_ni,
        .s_valid_i(f_valid_i[i]),
        .s_ready_o(f_ready_o[i]),
        .s_data_i ({f_data_i[i], f_last_i[i]}),
        .m_valid_o(f_valid[i]),
        .m_ready_i(give[i]),
        .m_data_o ({f_data[i], f_last[i]}),
        .level_o  ()
      );
    end else begin : g_queue
      wpr_ram_fifo #(.Width(In + 1), .LogDepth(LogQueue)) in (
        .clk_i,
        .rst_ni,
        .s_valid_i(s_valid_i && to_q == (Log)'(i) && (inside_q || order_room)),
        .s_ready_o(room[i]),
        .s_data_i ({s_data_i, s_last_i}),
        .m_valid_o(e_valid_o[i]),
        .m_ready_i(e_ready_i[i]),
        .m_data_o ({e_data_o[i], e_last_o[i]}),
        .level_o  ()
      );
      wpr_ram_fifo #(.Width(Out + 1), .LogDepth(LogQueue)) out (
        .clk_i,
        .rst_ni,
        .s_valid_i(f_valid_i[i]),
        .s_ready_o(f_ready_o[i]),
        .s_data_i ({f_data_i[i], f_last_i[i]}),
        .m_valid_o(f_valid[i]),
        .m_ready_i(give[i]),
        .m_data_o ({f_data[i], f_last[i]}),
        .level_o  ()
      );
    end
  end

  // ---- in order ---------------------------------------------------------------------------------

  logic move, taken;
  assign move       = m_ready_i || !m_valid_o;
  assign taken      = move && collecting_q && f_valid[from_q];
  assign order_next = order_valid && (!collecting_q || (taken && f_last[from_q]));
  always_comb begin
    for (int i = 0; i < Engines; i++) give[i] = move && collecting_q && from_q == (Log)'(i);
  end
  always_ff @(posedge clk_i) begin
    if (order_next) from_q <= from;
    collecting_q <= order_next || (collecting_q && !(taken && f_last[from_q]));
    if (move) begin
      m_valid_o <= collecting_q && f_valid[from_q];
      m_data_o  <= f_data[from_q];
      m_last_o  <= f_last[from_q];
    end
    if (!rst_ni) begin
      collecting_q <= 1'b0;
      m_valid_o    <= 1'b0;
    end
  end

endmodule
