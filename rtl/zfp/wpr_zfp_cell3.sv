// SPDX-License-Identifier: Apache-2.0
// The code of cells of 4 x 4 x 4 float32 values (codecs/zfp/spec.md, A cell), each in four pieces
// of eight bit planes. A cell comes in as four beats, z = 0 to 3, of 4 x 4 values, x runs fastest;
// beats may come in any clocks. Its pieces leave in four clocks in a row, about 50 clocks later;
// nothing stops them.
//
// P, the number of planes, is min(cfg_planes_i, exponent + cfg_offset_i), at least 0; a cell
// without planes is coded as one of zeros. At a rate the last piece's size holds what fills up the
// cell: more than it has bits.
module wpr_zfp_cell3 #(
  parameter int unsigned Most = 2120,  // bits of a cell
  localparam int unsigned SizeBits = $clog2(Most + 1),
  localparam int unsigned PieceBits = 9 + 8 * 64 + 63
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input logic                cfg_rate_i,    // every cell has cfg_bits_i bits
  input logic [SizeBits-1:0] cfg_bits_i,    // 9 to Most
  input logic [         5:0] cfg_planes_i,  // 0 to 32
  input logic signed [  9:0] cfg_offset_i,  // accuracy: -118 - floor(log2 accuracy)

  input  logic                 valid_i,
  input  logic           [1:0] z_i,
  input  logic                 last_i,    // the packet's last cell
  input  logic [   15:0][31:0] values_i,
  output logic                 valid_o,
  output logic                 last_o,    // the packet's last piece
  output logic [PieceBits-1:0] code_o,    // bits beyond the size are 0
  output logic [ SizeBits-1:0] size_o
);

  localparam int unsigned HeadBits = 9;
  localparam int unsigned Clocks = 42;  // from the first read of a cell to its first piece

  // ---- cells are stored until their exponent is known -------------------------------------------

  logic [15:0][31:0] most_values;
  logic [7:0] most, row_most, most_q, exponent_q, exponent1_q;
  logic [1:0] valid_q, last_q;
  logic [1:0][1:0] z_q;
  wpr_zfp_most #(.Values(16)) most_of_row (
    .clk_i,
    .values_i,
    .values_o  (most_values),
    .exponent_o(row_most)
  );
  assign most = z_q[1] == '0 || row_most > most_q ? row_most : most_q;
  always_ff @(posedge clk_i) begin
    valid_q <= {valid_q[0], valid_i};
    z_q     <= {z_q[0], z_i};
    last_q  <= {last_q[0], last_i};
    if (valid_q[1]) most_q <= most;
    if (!rst_ni) valid_q <= '0;
  end

  (* ram_style = "distributed" *) logic [511:0] rows_q[8];
  logic write_half_q, read_half_q, whole, cell_last_q;
  logic [15:0][31:0] row_q;
  // Of the clocks that the beat of a row, or a piece, has taken from run_q[0] on.
  logic [Clocks:0] run_q;
  logic [Clocks-1:1] end_q;  // it is of the packet's last cell
  logic [Clocks-1:0][1:0] phase_q;
  assign whole = valid_q[1] && z_q[1] == 2'd3;
  always_ff @(posedge clk_i) begin
    if (valid_q[1]) rows_q[{write_half_q, z_q[1]}] <= most_values;
    row_q <= rows_q[{read_half_q, phase_q[0]}];
  end
  always_ff @(posedge clk_i) begin
    if (whole) begin
      write_half_q <= !write_half_q;
      read_half_q  <= write_half_q;
      exponent_q   <= most;
      cell_last_q  <= last_q[1];
    end
    exponent1_q <= exponent_q;
    run_q       <= {run_q[Clocks-1:0], whole || (run_q[0] && phase_q[0] != 2'd3)};
    phase_q     <= {phase_q[Clocks-2:0], whole ? 2'd0 : phase_q[0] + 2'd1};
    end_q       <= {end_q[Clocks-2:1], cell_last_q};
    if (!rst_ni) begin
      run_q        <= '0;
      write_half_q <= 1'b0;
    end
  end

  // ---- 1 to 4: numbers; 5: the cell's head, and how many planes it has --------------------------

  logic [15:0][30:0] numbers;
  logic [7:0] exponent;
  logic tiny;
  wpr_zfp_cast #(.Values(16)) cast_values (
    .clk_i,
    .values_i  (row_q),
    .exponent_i(exponent1_q),
    .numbers_o (numbers),
    .exponent_o(exponent),
    .tiny_o    (tiny)
  );

  logic coded;
  logic [8:0] head_q, head;
  logic [5:0] planes_q, planes;
  logic signed [10:0] wanted;
  assign wanted = signed'({3'b0, exponent}) + 11'(cfg_offset_i);
  assign coded  = !tiny && cfg_planes_i != '0 && wanted > 0;
  always_ff @(posedge clk_i) begin
    head_q   <= coded ? {exponent + 8'd1, 1'b1} : '0;
    planes_q <= !coded ? '0 : wanted < signed'(11'(cfg_planes_i)) ? wanted[5:0] : cfg_planes_i;
  end
  wpr_zfp_delay #(.Width(6), .Clocks(22)) keep_planes (
    .clk_i,
    .data_i(planes_q),
    .data_o(planes)
  );
  wpr_zfp_delay #(.Width(9), .Clocks(34)) keep_head (
    .clk_i,
    .data_i(head_q),
    .data_o(head)
  );

  // ---- 5 to 10: transformed along x and y, a plane of 4 x 4 in each phase -----------------------

  logic [15:0][30:0] along_x, along_y;
  for (genvar i = 0; i < 4; i++) begin : g_line
    wpr_zfp_lift lift_x (
      .clk_i,
      .line_i(numbers[4*i+:4]),
      .line_o(along_x[4*i+:4])
    );
    wpr_zfp_lift lift_y (
      .clk_i,
      .line_i({along_x[12+i], along_x[8+i], along_x[4+i], along_x[i]}),
      .line_o({along_y[12+i], along_y[8+i], along_y[4+i], along_y[i]})
    );
  end

  // ---- 14: planes of y from planes of z; 15 to 18: along z; 19: coefficients --------------------

  localparam logic [31:0] Odd = 32'hAAAA_AAAA;
  logic [2:0][15:0][30:0] part_q;
  logic [3:0][15:0][30:0] cube_q;  // by z
  logic [3:0][3:0][30:0] turned_q, along_z;  // by z, x
  always_ff @(posedge clk_i) begin
    for (int z = 0; z < 3; z++) if (phase_q[10] == 2'(z)) part_q[z] <= along_y;
    if (phase_q[10] == 2'd3) cube_q <= {along_y, part_q};
    for (int z = 0; z < 4; z++) turned_q[z] <= cube_q[z][4*phase_q[14]+:4];
  end
  for (genvar x = 0; x < 4; x++) begin : g_column
    wpr_zfp_lift lift_z (
      .clk_i,
      .line_i({turned_q[3][x], turned_q[2][x], turned_q[1][x], turned_q[0][x]}),
      .line_o({along_z[3][x], along_z[2][x], along_z[1][x], along_z[0][x]})
    );
  end
  logic [15:0][31:0] coefficients_q;  // as x + 4 * z
  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 16; i++) begin
      coefficients_q[i] <= (32'(signed'(along_z[i/4][i%4])) + Odd) ^ Odd;
    end
  end

  // ---- 23: all coefficients, in their order; 24: bits of eight planes in each phase -------------

  localparam logic [63:0][7:0] Order = {  // places, x + 4 * y + 16 * z
    64'h3F2F_3B3E_1F37_3D3A, 64'h2E2B_0F33_3C39_361E, 64'h2D27_1B2A_3832_0E2C,
    64'h230B_351D_171A_2629, 64'h3431_0D1C_1307_0A22, 64'h2825_1916_300C_0324,
    64'h2109_1812_0615_2008, 64'h0205_1114_1004_0100
  };
  logic [2:0][15:0][31:0] rest_q;
  logic [3:0][15:0][31:0] all;  // by y
  logic [63:0][31:0] ordered_q;
  logic [7:0][63:0] bits_q;     // the uppermost plane first
  assign all = {coefficients_q, rest_q};
  always_ff @(posedge clk_i) begin
    for (int y = 0; y < 3; y++) if (phase_q[19] == 2'(y)) rest_q[y] <= coefficients_q;
    if (phase_q[19] == 2'd3) begin
      for (int i = 0; i < 64; i++) begin
        ordered_q[i] <= all[Order[i][3:2]][{Order[i][5:4], Order[i][1:0]}];
      end
    end
    for (int p = 0; p < 8; p++) begin
      for (int i = 0; i < 64; i++) bits_q[p][i] <= ordered_q[i][31-8*phase_q[23]-p];
    end
  end

  // ---- 25, 26: whether a coefficient, or one behind it, has a 1 in a plane ----------------------

  // Of eight coefficients, then of those behind the eight. In one clock, ones would be passed on
  // from one to the next to save logic; so also from plane to plane.
  logic [7:0][63:0] near, near_q, from, from_q;
  logic [2:0][7:0][63:0] later_q;  // bits
  always_comb begin
    near = bits_q;
    from = near_q;
    for (int p = 0; p < 8; p++) begin
      for (int i = 62; i >= 0; i--) if (i % 8 != 7) near[p][i] |= near[p][i+1];
      for (int i = 55; i >= 0; i--) from[p][i] |= from[p][(i/8+1)*8];
    end
  end
  always_ff @(posedge clk_i) begin
    later_q <= {later_q[1:0], bits_q};
    near_q  <= near;
    from_q  <= from;
  end

  // ---- 27, 28: whether it has one in the planes above: of the phase, and of those before it -----

  logic [8:1][63:0] above, above_q;  // in the planes of the phase above plane p
  logic [8:0][63:0] known, known_q;
  logic [63:0] before_q;
  logic [7:0] use_q;
  always_comb begin
    above = from_q;
    for (int p = 2; p <= 8; p++) above[p] |= above[p-1];
    for (int p = 0; p <= 8; p++) begin
      known[p] = (p == 0 ? '0 : above_q[p]) | (phase_q[27] == '0 ? '0 : before_q);
    end
  end
  logic [7:0][63:0] plane_bits_q;
  always_ff @(posedge clk_i) begin
    above_q  <= above;
    known_q  <= known;
    before_q <= known[8];
    for (int p = 0; p < 8; p++) begin
      use_q[p]        <= {1'b0, phase_q[27], 3'(p)} < planes;
      plane_bits_q[p] <= {1'b0, phase_q[27], 3'(p)} < planes ? later_q[2][p] : '0;
    end
  end

  // ---- 33, 39: the planes' codes; joined --------------------------------------------------------

  logic [7:0][126:0] codes;
  logic [7:0][6:0] sizes;
  for (genvar p = 0; p < 8; p++) begin : g_plane
    wpr_zfp_plane #(.Values(64)) plane (
      .clk_i,
      .use_i    (use_q[p]),
      .bits_i   (plane_bits_q[p]),
      .known_i  (known_q[p]),
      .reached_i(known_q[p+1]),
      .code_o   (codes[p]),
      .size_o   (sizes[p])
    );
  end
  logic [PieceBits-HeadBits-1:0] joined;
  logic [9:0] joined_size;
  wpr_zfp_join #(.Pieces(8), .Step(64), .Extra(63), .Most(PieceBits - HeadBits)) join_planes (
    .clk_i,
    .codes_i(codes),
    .sizes_i(sizes),
    .code_o (joined),
    .size_o (joined_size)
  );

  // ---- 40: behind the head ----------------------------------------------------------------------

  logic first;
  logic [PieceBits-1:0] piece_q;
  logic [SizeBits-1:0] piece_size_q;
  assign first = phase_q[39] == '0;
  always_ff @(posedge clk_i) begin
    piece_q      <= first ? {joined, head} : PieceBits'(joined);
    piece_size_q <= SizeBits'(joined_size) +
                    (!first ? '0 : head[0] ? SizeBits'(HeadBits) : SizeBits'(1));
  end

  // ---- 41: how much the rate leaves; 42: cut there ----------------------------------------------

  localparam int unsigned Parts = (PieceBits + 7) / 8;
  logic begins_q, final_q;
  logic [SizeBits-1:0] left, left_q;  // of the cell
  logic [SizeBits-1:0] size_q;
  logic [PieceBits-1:0] whole_piece_q, mask;
  logic [Parts-1:0] inside_q;  // all of eight bits are
  logic [7:0] edge_q;          // of eight bits that the rate cuts, those before that
  logic [Parts-1:0] partly;    // their first one is inside
  assign left   = begins_q ? cfg_bits_i : left_q;
  assign partly = {inside_q[Parts-2:0], 1'b1};
  always_comb begin
    for (int i = 0; i < int'(PieceBits); i++) begin
      mask[i] = inside_q[i/8] || (partly[i/8] && edge_q[i%8]);
    end
  end
  always_ff @(posedge clk_i) begin
    begins_q      <= first;
    final_q       <= phase_q[39] == 2'd3;
    left_q        <= piece_size_q < left ? left - piece_size_q : '0;
    size_q        <= cfg_rate_i && (final_q || left < piece_size_q) ? left : piece_size_q;
    whole_piece_q <= piece_q;
    edge_q        <= ~(8'hFF << left[2:0]);
    for (int i = 0; i < int'(Parts); i++) inside_q[i] <= !cfg_rate_i || 32'(left >> 3) > i;
    code_o        <= whole_piece_q & mask;
    size_o        <= size_q;
    last_o        <= phase_q[41] == 2'd3 && end_q[41];
  end
  assign valid_o = run_q[42];

endmodule
