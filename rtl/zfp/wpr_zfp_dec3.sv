// SPDX-License-Identifier: Apache-2.0
// zfp decoder for float32 in three dimensions (codecs/zfp/spec.md, Stream): a packet with libzfp's
// stream in; a packet of cells out, of the values that libzfp gives for any bits. A cell is four
// beats of 16 values, z = 0 to 3; x runs fastest. A cell at the edge comes whole.
//
// At a rate cells leave in their order. With a precision or an accuracy a cell begins where the one
// before it ends, which is known when that has been read. So then the decoder is told the bits of
// each group of 16 cells (the payload's index), reads 74 groups side by side, and gives each cell's
// number with it. It holds the packet's whole stream, which may have 2^LogRows - 6
// beats.
//
// Does not put cells in the rows of an array, and does not read the payload's head and index.
// Blocks that are coded reversibly are not for it.
//
// Rate: a cell in four clocks at a rate, if a row of Bytes holds a quarter of it; else with as many
// groups as a packet still has, up to 74, of 74 cells in 296 clocks. And up to 12 clocks a packet.
// Latency about 330 clocks. A queue in block RAM takes what is on its way, so that nothing stops a
// stage.
module wpr_zfp_dec3 #(
  parameter int unsigned Bytes      = 64,  // of a beat in, 32 or 64
  parameter int unsigned LogRows    = 12,  // beats in memory, 2^LogRows; 9 or more
  parameter int unsigned CountWidth = 24   // of a packet's number of cells
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  // Constant from four clocks before a packet until it has left. P, the planes of a cell, is the
  // lesser of cfg_planes_i and its exponent (biased) + cfg_offset_i - 1.
  input logic               cfg_rate_i,    // every cell has cfg_bits_i bits
  input logic        [11:0] cfg_bits_i,    // 9 to 2048
  input logic        [ 5:0] cfg_planes_i,  // 0 to 32; 32 at a rate
  input logic signed [ 9:0] cfg_offset_i,  // accuracy: -118 - floor(log2 accuracy); else 33

  input  logic                  s_cmd_tvalid,
  output logic                  s_cmd_tready,
  input  logic [CountWidth-1:0] s_cmd_tdata,   // the packet's cells, less one

  // Not at a rate: the bits of each group but the last one.
  input  logic        s_group_tvalid,
  output logic        s_group_tready,
  input  logic [16:0] s_group_tdata,

  input  logic               s_axis_tvalid,
  output logic               s_axis_tready,
  input  logic [8*Bytes-1:0] s_axis_tdata,
  input  logic [  Bytes-1:0] s_axis_tkeep,   // read with tlast only
  input  logic               s_axis_tlast,

  output logic                  m_axis_tvalid,
  input  logic                  m_axis_tready,
  output logic [         511:0] m_axis_tdata,
  output logic [          63:0] m_axis_tkeep,   // all ones
  output logic [CountWidth-1:0] m_axis_tdest,   // the cell's number in the packet
  output logic                  m_axis_tlast,
  output logic                  m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned RowBits = 8 * Bytes;
  localparam int unsigned PlaceBits = LogRows + 3 + $clog2(Bytes);
  localparam int unsigned LeftBits = 12;
  localparam int unsigned LogQueue = 9;
  localparam int unsigned Around = 74;     // slots of four clocks from a cell to the next one
  localparam int unsigned Latency = 318;   // clocks to its values
  localparam int unsigned GroupBits = 17;  // of a group's number of bits

  // ---- the stream, into memory; where packets end -----------------------------------------------

  typedef struct packed {
    logic                 bad;
    logic [PlaceBits-1:0] at;     // the first bit behind the stream
    logic [5:0]           slack;  // zeros at its end, 63 at most
  } end_t;

  logic [LogRows-1:0] written_q, free_q;  // rows
  logic [LogRows-1:0] rows_q;             // of the packet
  logic take, keep, room_q, drop_q, odd, ends_ready, ends_wait_q;
  logic [5:0] zeros;
  logic [3:0] words;  // of 64 bits, of the last beat
  logic [$clog2(Bytes/8)-1:0] last_word;
  assign s_axis_tready = (room_q || drop_q) && ends_ready && !ends_wait_q;
  assign take = s_axis_tvalid && s_axis_tready;
  assign keep = take && !drop_q;
  always_comb begin
    words     = '0;
    last_word = '0;
    odd       = 1'b0;
    for (int i = 0; i < int'(Bytes / 8); i++) begin
      if (s_axis_tkeep[8*i]) begin
        words     = 4'(i + 1);
        last_word = ($clog2(Bytes / 8))'(i);
      end
      odd = odd || (s_axis_tkeep[8*i] && !s_axis_tkeep[8*i+7]);
    end
  end

  logic write_q, last_q, bad_end_q;
  logic [LogRows-1:0] row_q;
  logic [RowBits-1:0] data_q;
  logic [3:0] words_q;
  logic [7:0][7:0] word_q;  // the last one
  always_ff @(posedge clk_i) begin
    write_q   <= keep;
    row_q     <= written_q;
    data_q    <= s_axis_tdata;
    word_q    <= s_axis_tdata[64*last_word+:64];
    last_q    <= take && s_axis_tlast;
    bad_end_q <= odd || words == '0 || drop_q;
    words_q   <= drop_q ? 4'd0 : words == '0 ? 4'd1 : words;  // so that the next packet is behind
    written_q <= written_q + LogRows'(keep);
    rows_q    <= take && s_axis_tlast ? '0 : rows_q + LogRows'(keep);
    room_q    <= written_q - free_q < LogRows'((1 << LogRows) - 5);
    drop_q    <= !(take && s_axis_tlast) &&
                 (drop_q || (!cfg_rate_i && rows_q >= LogRows'((1 << LogRows) - 6)));
    if (!rst_ni) {write_q, last_q, written_q, rows_q, room_q, drop_q} <= '0;
  end

  logic last2_q, e_push_q, e_valid, e_pop;
  logic [1:0] unused_ends;
  end_t e_in_q, e_out;
  logic bad_end2_q;
  logic [PlaceBits-1:0] at2_q;

  // Zeros above the uppermost 1 of eight bits, 7 if there is none above the lowest one.
  function automatic logic [2:0] zeros_above(input logic [7:1] bits);
    logic odd_number;
    odd_number = bits[2] || !bits[1];
    odd_number = bits[4] || (!bits[3] && odd_number);
    odd_number = !bits[7] && (bits[6] || (!bits[5] && odd_number));
    return {bits[7:4] == '0, bits[7:4] == '0 ? bits[3:2] == '0 : bits[7:6] == '0, odd_number};
  endfunction

  logic [7:1] set_q;        // the word's bytes that are not 0
  logic [7:0][2:0] tops_q;  // of its bytes
  assign zeros = {zeros_above(set_q), tops_q[~zeros_above(set_q)]};
  always_ff @(posedge clk_i) begin
    for (int b = 1; b < 8; b++) set_q[b] <= word_q[b] != '0;
    for (int b = 0; b < 8; b++) tops_q[b] <= zeros_above(word_q[b][7:1]);
    last2_q      <= last_q;
    e_push_q     <= last2_q;
    e_in_q.bad   <= bad_end2_q;
    e_in_q.at    <= at2_q;
    e_in_q.slack <= zeros;
    bad_end2_q   <= bad_end_q;
    at2_q        <= {row_q, (PlaceBits - LogRows)'(0)} + PlaceBits'({words_q, 6'd0});
    ends_wait_q  <= last2_q || last_q || (take && s_axis_tlast);
    if (!rst_ni) {last2_q, e_push_q, ends_wait_q} <= '0;
  end
  wpr_fifo #(.Width($bits(end_t)), .LogDepth(1)) ends (
    .clk_i,
    .rst_ni,
    .s_valid_i(e_push_q),
    .s_ready_o(ends_ready),
    .s_data_i (e_in_q),
    .m_valid_o(e_valid),
    .m_ready_i(e_pop),
    .m_data_o (e_out),
    .level_o  (unused_ends)
  );

  // ---- slots of four clocks: in each a cell may begin -------------------------------------------

  // What goes around with a cell until its group's next one begins.
  typedef struct packed {
    logic                  idle;    // it gives no values, since the queue had no room
    logic [3:0]            left;    // cells of the group behind it
    logic [PlaceBits-1:0]  place;   // where it begins
    logic [PlaceBits-1:0]  ends;    // where the group must end
    logic [5:0]            slack;   // or so many bits before that
    logic [CountWidth-1:0] number;
  } around_t;

  logic [1:0] phase_q;
  logic [6:0] slot_q;
  logic [7:0] warm_q;  // slots since the reset, up to 128
  logic [Around+5:0] valid_q, more_q;  // by slots ago: it gives values; its group goes on
  always_ff @(posedge clk_i) begin
    {slot_q, phase_q} <= {slot_q, phase_q} + 9'd1;
    if (phase_q == 2'd3 && !warm_q[7]) warm_q <= warm_q + 8'd1;
    if (!rst_ni) {phase_q, warm_q} <= '0;
  end

  (* ram_style = "block" *) around_t around_q[128];
  around_t back_q, next, next_q;
  logic [PlaceBits-1:0] ends_at;  // a cell's code, in phase 1
  logic goes_around;
  assign goes_around = more_q[Around-1];
  always_ff @(posedge clk_i) begin
    back_q <= around_q[slot_q-7'(Around-1)];
    if (phase_q == '0) around_q[slot_q] <= next_q;
  end

  // ---- phases 1 and 2: are the bits of the next unit there, a cell at a rate, or a group? -------

  logic busy_q, drain_q, none_q, bad_q;  // drain: all cells have begun; none: all units have
  logic [CountWidth-1:0] cells_q, units_q, number_q;  // that have not begun, less one
  logic [3:0] rest_q;  // cells of the last group, less one
  logic [PlaceBits-1:0] at_q, avail_q, surplus_q, ends_q;
  logic [GroupBits-1:0] bits_q;
  logic ended_q, enough_q, told_q, last_unit, room_out_q;
  logic [LogRows-1:0] base_q;  // the packet's first row
  assign last_unit = units_q == '0;
  always_ff @(posedge clk_i) begin
    if (phase_q == 2'd1) begin
      avail_q <= (e_valid ? e_out.at : {written_q, (PlaceBits - LogRows)'(0)}) - at_q;
      ended_q <= e_valid;
      told_q  <= s_group_tvalid;
      bits_q  <= cfg_rate_i ? GroupBits'(cfg_bits_i) : s_group_tdata;
    end
    if (phase_q == 2'd2) begin
      enough_q  <= (GroupBits + PlaceBits)'(avail_q) >= (GroupBits + PlaceBits)'(bits_q);
      surplus_q <= avail_q - PlaceBits'(bits_q);
      ends_q    <= at_q + PlaceBits'(bits_q);
    end
  end

  // ---- phase 3: the group's next cell, or the next unit -----------------------------------------

  logic start, start_q, goes_on_q, give, give_q, final_q, short_q, wrong_end_q;
  logic [PlaceBits-1:0] end_q;
  always_comb begin
    if (cfg_rate_i) begin
      start = ended_q || (enough_q && (!last_unit || surplus_q >= PlaceBits'(RowBits)));
    end else begin
      start = ended_q ? last_unit || told_q : !last_unit && told_q && enough_q;
    end
    start = start && busy_q && !none_q && !drain_q && room_out_q && !goes_around;
    give  = start || (goes_around && room_out_q);
    if (goes_around) begin
      next       = back_q;
      next.idle  = !room_out_q;
      if (!back_q.idle) begin
        next.place  = end_q;
        next.left   = back_q.left - 4'd1;
        next.number = back_q.number + CountWidth'(1);
      end
    end else begin
      next = '{idle: 1'b0, left: cfg_rate_i ? 4'd0 : last_unit ? rest_q : 4'd15, place: at_q,
               ends: last_unit ? e_out.at : ends_q, slack: last_unit ? e_out.slack : 6'd0,
               number: number_q};
    end
  end
  always_ff @(posedge clk_i) begin
    if (phase_q == 2'd1) end_q <= ends_at;
    if (phase_q == 2'd3) begin
      next_q  <= next;
      start_q <= start;
      goes_on_q <= goes_around;
      give_q  <= give;
      final_q <= give && cells_q == '0;
      short_q <= !enough_q && !(last_unit && !cfg_rate_i);
      wrong_end_q <= last_unit &&
                     (!ended_q || e_out.bad || (cfg_rate_i && surplus_q > PlaceBits'(e_out.slack)));
    end
    if (!rst_ni) {start_q, give_q} <= '0;
  end

  // ---- phase 0: it begins -----------------------------------------------------------------------

  logic begins, finish, bad_now;
  logic [LogRows-1:0] behind;  // the row
  assign begins  = phase_q == '0;
  assign bad_now = bad_q || (start_q && (short_q || wrong_end_q));
  assign finish  = begins && (drain_q || (give_q && final_q));
  assign e_pop   = finish && e_valid;
  assign behind  = e_out.at[PlaceBits-1-:LogRows] +
                   LogRows'(e_out.at[PlaceBits-LogRows-1:0] != '0);
  assign s_group_tready = begins && start_q && !cfg_rate_i && !last_unit;
  assign s_cmd_tready = !busy_q;
  always_ff @(posedge clk_i) begin
    if (!busy_q) begin
      busy_q   <= s_cmd_tvalid;
      cells_q  <= s_cmd_tdata;
      units_q  <= cfg_rate_i ? s_cmd_tdata : s_cmd_tdata >> 4;
      rest_q   <= s_cmd_tdata[3:0];
      number_q <= '0;
      base_q   <= at_q[PlaceBits-1-:LogRows];
      none_q   <= 1'b0;
      drain_q  <= 1'b0;
      bad_q    <= 1'b0;
    end else if (begins) begin
      bad_q <= bad_now;
      if (start_q) begin
        units_q  <= units_q - CountWidth'(1);
        none_q   <= last_unit;
        number_q <= number_q + (cfg_rate_i ? CountWidth'(1) : CountWidth'(16));
        if (!short_q) at_q <= ends_q;
      end
      if (give_q) cells_q <= cells_q - CountWidth'(1);
      if (finish) begin
        at_q    <= {e_valid ? behind : written_q, (PlaceBits - LogRows)'(0)};
        busy_q  <= !e_valid;
        drain_q <= !e_valid;
      end
    end
    if (begins) begin
      valid_q <= {valid_q[Around+4:0], give_q};
      more_q  <= {more_q[Around+4:0], (start_q && next_q.left != '0) ||
                                      (goes_on_q && (next_q.idle || next_q.left != '0))};
    end
    if (!rst_ni) {busy_q, drain_q, at_q, valid_q, more_q} <= '0;
  end
  // ---- rows that no cell on its way can read any more -------------------------------------------

  (* ram_style = "distributed" *) logic [LogRows-1:0] held_q[128];
  always_ff @(posedge clk_i) begin
    if (begins) held_q[slot_q] <= cfg_rate_i || !busy_q ? at_q[PlaceBits-1-:LogRows] : base_q;
    if (begins && warm_q[7]) free_q <= held_q[slot_q-7'(Around)];
    if (!rst_ni) free_q <= '0;
  end

  // ---- cells; the check of a group's end --------------------------------------------------------

  logic [15:0][31:0] values;
  wpr_zfp_read_cell3 #(.Bytes(Bytes), .LogRows(LogRows)) read_cell (
    .clk_i,
    .cfg_planes_i,
    .cfg_offset_i,
    .write_i (write_q),
    .row_i   (row_q),
    .data_i  (data_q),
    .slot_i  (slot_q),
    .phase_i (phase_q),
    .place_i (next_q.place),
    .left_i  (cfg_rate_i ? LeftBits'(cfg_bits_i) : '1),
    .end_o   (ends_at),
    .values_o(values)
  );

  typedef struct packed {
    logic                  last;
    logic                  bad;
    logic [CountWidth-1:0] number;
  } facts_t;
  (* ram_style = "distributed" *) facts_t facts_q[128];
  (* ram_style = "distributed" *) logic wrong_q[128];  // a group's end was, up to here
  logic [PlaceBits-1:0] between_q;
  logic checked_q, wrong_so_far_q, wrong_now, exit_last_q, wrong;
  logic [8:0] leaves;
  assign leaves    = {slot_q, phase_q} - 9'(Latency - 1);
  assign wrong_now = wrong_so_far_q || (checked_q && between_q > PlaceBits'(back_q.slack));
  always_ff @(posedge clk_i) begin
    if (begins) facts_q[slot_q] <= '{last: final_q, bad: bad_now, number: next_q.number};
    if (phase_q == 2'd1) begin
      between_q   <= back_q.ends - ends_at;
      checked_q   <= valid_q[Around-1] && !cfg_rate_i && back_q.left == '0;
      exit_last_q <= valid_q[Around-1] && facts_q[slot_q-7'(Around-1)].last;
    end
    if (phase_q == 2'd2) begin
      wrong_q[slot_q-7'(Around-1)] <= wrong_now;
      wrong_so_far_q               <= wrong_now && !exit_last_q;
    end
    if (!rst_ni) wrong_so_far_q <= 1'b0;
  end

  // ---- the queue, and the cells that may come: as many as it takes ------------------------------

  logic out_valid_q, pop, unused_ready;
  logic [1:0] z_q;
  logic [LogQueue:0] inside_q, unused_level;
  facts_t out_q, out;
  logic end_of_packet;
  assign pop = m_axis_tvalid && m_axis_tready;
  assign end_of_packet = out_q.last && z_q == 2'd3;
  always_ff @(posedge clk_i) begin
    out_valid_q <= valid_q[Around+5];
    out_q       <= facts_q[leaves[8:2]];
    wrong       <= wrong_q[leaves[8:2]];
    z_q         <= leaves[1:0];
    inside_q    <= inside_q + (begins && give_q ? (LogQueue + 1)'(4) : '0) - (LogQueue + 1)'(pop);
    room_out_q  <= inside_q < (LogQueue + 1)'((1 << LogQueue) - 8);
    if (!rst_ni) {out_valid_q, inside_q, room_out_q} <= '0;
  end

  wpr_ram_fifo #(.Width(512 + $bits(facts_t)), .LogDepth(LogQueue)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(out_valid_q),
    .s_ready_o(unused_ready),
    .s_data_i ({end_of_packet, end_of_packet && (out_q.bad || wrong), out_q.number, values}),
    .m_valid_o(m_axis_tvalid),
    .m_ready_i(m_axis_tready),
    .m_data_o ({out, m_axis_tdata}),
    .level_o  (unused_level)
  );

  assign m_axis_tdest = out.number;
  assign m_axis_tlast = out.last;
  assign m_axis_tuser = out.bad;
  assign m_axis_tkeep = '1;

endmodule
