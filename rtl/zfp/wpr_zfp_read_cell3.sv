// SPDX-License-Identifier: Apache-2.0
// Reads cells of 4 x 4 x 4 float32 values (codecs/zfp/spec.md, A cell) from a stream that stands in
// memory: a cell in four clocks, whose 16 values of z = 0 to 3 leave in four clocks in a row,
// Latency clocks later; nothing stops them. x runs fastest.
//
// Eight readers take four planes of a cell each, and each has the stream in a copy of its own, so
// that no cell's code goes from reader to reader. phase_i counts the clocks modulo 4: a cell comes
// where it is 0. Where the cell ends is known 292 clocks later.
//
// P, the number of planes, is min(cfg_planes_i, exponent + cfg_offset_i - 1), at least 0, the
// exponent as the cell has it, with its bias.
module wpr_zfp_read_cell3 #(
  parameter int unsigned Bytes   = 32,  // of a row, as in wpr_zfp_window
  parameter int unsigned LogRows = 9,
  localparam int unsigned PlaceBits = LogRows + 3 + $clog2(Bytes),
  localparam int unsigned LeftBits = 12
) (
  input logic clk_i,

  input logic        [5:0] cfg_planes_i,  // 0 to 32
  input logic signed [9:0] cfg_offset_i,  // 33: all of cfg_planes_i

  // The stream, as it comes. A row can be read in the clock behind the next one.
  input logic               write_i,
  input logic [LogRows-1:0] row_i,
  input logic [8*Bytes-1:0] data_i,

  input  logic [          6:0] slot_i,   // counts cells, also where there is none
  input  logic [          1:0] phase_i,
  input  logic [PlaceBits-1:0] place_i,  // where the cell begins, in phase 0
  input  logic [ LeftBits-1:0] left_i,   // the bits that it has; all ones: as many as it takes
  output logic [PlaceBits-1:0] end_o,    // 293 clocks later: where its code ends
  output logic [   15:0][31:0] values_o  // 318 clocks later
);

  localparam int unsigned HeadBits = 9;
  localparam int unsigned Turn = 9;               // clocks
  localparam int unsigned Begin = 4;              // of the first plane
  localparam int unsigned Written = Begin + 11;   // the first plane's bits
  localparam int unsigned Read = 296;             // all planes' bits
  localparam int unsigned Back = Read + 16;       // numbers, transformed back

  // What the clock was so many clocks ago.
  function automatic logic [8:0] ago(input logic [8:0] clocks);
    return {slot_i, phase_i} - clocks;
  endfunction

  // ---- 1 to 4: the cell's head, and how many planes it has --------------------------------------

  logic [HeadBits-1:0] head, head_q;
  wpr_zfp_window #(.Width(HeadBits), .Bytes(Bytes), .LogRows(LogRows)) heads (
    .clk_i,
    .write_i,
    .row_i,
    .data_i,
    .place_i,
    .next_i (LogRows'((place_i + PlaceBits'(128)) >> (PlaceBits - LogRows))),
    .bits_o (head)
  );

  logic [Begin-1:0][PlaceBits-1:0] place_q;
  logic [Begin-1:0][LeftBits-1:0] left_q;
  logic [6:0] head_size_q;
  logic [5:0] planes_q;
  logic signed [10:0] wanted;
  assign wanted = signed'({3'b0, head_q[HeadBits-1:1]}) + 11'(cfg_offset_i) - 11'sd1;
  always_ff @(posedge clk_i) begin
    place_q     <= {place_q[Begin-2:0], place_i};
    left_q      <= {left_q[Begin-2:0], left_i};
    head_q      <= head;
    head_size_q <= head_q[0] ? 7'(HeadBits) : 7'd1;
    planes_q    <= !head_q[0] || wanted < 0 ? '0
                 : wanted < signed'(11'(cfg_planes_i)) ? wanted[5:0] : cfg_planes_i;
  end

  (* ram_style = "distributed" *) logic [7:0] exponents_q[128];
  logic [7:0] exponent_q;
  logic [8:0] head_at;
  logic [6:0] exponent_slot;
  assign head_at       = ago(9'(Begin - 1));
  assign exponent_slot = 7'(ago(9'(Back - 1)) >> 2);
  always_ff @(posedge clk_i) begin
    if (head_at[1:0] == '0) exponents_q[head_at[8:2]] <= head_q[HeadBits-1:1];
    exponent_q <= exponents_q[exponent_slot];
  end

  // ---- from 4 on: planes, and memories where their bits wait for those of the last one ----------

  // Places of coefficients, x + 4 * y + 16 * z.
  localparam logic [63:0][7:0] Order = {
    64'h3F2F_3B3E_1F37_3D3A, 64'h2E2B_0F33_3C39_361E, 64'h2D27_1B2A_3832_0E2C,
    64'h230B_351D_171A_2629, 64'h3431_0D1C_1307_0A22, 64'h2825_1916_300C_0324,
    64'h2109_1812_0615_2008, 64'h0205_1114_1004_0100
  };

  logic [15:0][31:0] coefficients;  // of a y, as x + 4 * z
  for (genvar r = 0; r <= 8; r++) begin : g_reader
    logic [PlaceBits-1:0] place;
    logic [6:0] length;
    logic [1:0][4:0] more;
    logic [LeftBits-1:0] left;
    logic [5:0] planes;
    logic [6:0] n;
    if (r == 0) begin : g_head
      assign place  = place_q[Begin-1];
      assign length = head_size_q;
      assign more   = '0;
      assign left   = left_q[Begin-1];
      assign planes = planes_q;
      assign n      = '0;
    end else begin : g_read
      logic [63:0] bits;
      wpr_zfp_read_turn #(.Bytes(Bytes), .LogRows(LogRows)) reader (
        .clk_i,
        .write_i,
        .row_i,
        .data_i,
        .first_i (phase_i == '0),
        .place_i (g_reader[r-1].place),
        .length_i(g_reader[r-1].length),
        .more_i  (g_reader[r-1].more),
        .left_i  (g_reader[r-1].left),
        .planes_i(g_reader[r-1].planes),
        .n_i     (g_reader[r-1].n),
        .place_o (place),
        .length_o(length),
        .more_o  (more),
        .left_o  (left),
        .planes_o(planes),
        .n_o     (n),
        .bits_o  (bits)
      );

      // Each of the four planes has a memory of its own, which is as wide as the bits of a y: those
      // are written in four clocks, y clocks behind the plane, and read for all planes in one.
      logic [3:0][15:0] by_y, late;
      logic [2:0][2:0][15:0] late_q;  // by clocks less one, then by y less one
      logic [3:0][15:0] read_q;
      logic [8:0] wrote, from;
      assign wrote = ago(9'(Written));
      assign from  = ago(9'(Read));
      always_comb begin
        for (int i = 0; i < 64; i++) by_y[Order[i][3:2]][{Order[i][5:4], Order[i][1:0]}] = bits[i];
      end
      always_ff @(posedge clk_i) late_q <= {late_q[1:0], by_y[3:1]};
      assign late = {late_q[2][2], late_q[1][1], late_q[0][0], by_y[0]};
      for (genvar b = 0; b < 4; b++) begin : g_memory
        (* ram_style = "block" *) logic [15:0] bits_q[512];
        logic [1:0] y;
        logic [6:0] slot;
        assign y    = wrote[1:0] - 2'(b);
        assign slot = 7'((wrote - 9'(y)) >> 2) - 7'(Turn * (r - 1) + 2 * b);
        always_ff @(posedge clk_i) bits_q[{slot, y}] <= late[y];
        always_ff @(posedge clk_i) read_q[b] <= bits_q[from];
      end
      always_comb begin
        for (int p = 0; p < 4; p++) begin
          for (int i = 0; i < 16; i++) coefficients[i][31-4*(r-1)-p] = read_q[p][i];
        end
      end
    end
  end
  always_ff @(posedge clk_i) begin
    end_o <= g_reader[8].place + PlaceBits'(g_reader[8].length) +
             PlaceBits'(g_reader[8].more[0]) + PlaceBits'(g_reader[8].more[1]);
  end

  // ---- numbers; transformed back along z --------------------------------------------------------

  localparam logic [31:0] Odd = 32'hAAAA_AAAA;
  logic [15:0][31:0] numbers_q;           // as x + 4 * z
  logic [3:0][3:0][31:0] along_z;         // by z, x
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 16; i++) numbers_q[i] <= (coefficients[i] ^ Odd) - Odd;
  end
  for (genvar x = 0; x < 4; x++) begin : g_column
    wpr_zfp_unlift lift_z (
      .clk_i,
      .line_i({numbers_q[12+x], numbers_q[8+x], numbers_q[4+x], numbers_q[x]}),
      .line_o({along_z[3][x], along_z[2][x], along_z[1][x], along_z[0][x]})
    );
  end

  // ---- planes of z from planes of y; along y, then x --------------------------------------------

  logic [2:0][3:0][3:0][31:0] part_q;
  logic [3:0][3:0][3:0][31:0] cube_q;          // by y, z, x
  logic [15:0][31:0] turned_q, along_y, along_x;  // as x + 4 * y
  logic [1:0] y, z;
  assign y = phase_i - 2'(Read + 5);
  assign z = phase_i - 2'(Read + 9);
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 3; i++) if (y == 2'(i)) part_q[i] <= along_z;
    if (y == 2'd3) cube_q <= {along_z, part_q};
    for (int i = 0; i < 4; i++) turned_q[4*i+:4] <= cube_q[i][z];
  end
  for (genvar i = 0; i < 4; i++) begin : g_line
    wpr_zfp_unlift lift_y (
      .clk_i,
      .line_i({turned_q[12+i], turned_q[8+i], turned_q[4+i], turned_q[i]}),
      .line_o({along_y[12+i], along_y[8+i], along_y[4+i], along_y[i]})
    );
    wpr_zfp_unlift lift_x (
      .clk_i,
      .line_i(along_y[4*i+:4]),
      .line_o(along_x[4*i+:4])
    );
  end

  for (genvar i = 0; i < 16; i++) begin : g_value
    wpr_zfp_uncast uncast (
      .clk_i,
      .number_i  (along_x[i]),
      .exponent_i(exponent_q),
      .value_o   (values_o[i])
    );
  end

endmodule
