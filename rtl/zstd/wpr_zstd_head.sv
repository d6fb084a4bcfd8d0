// SPDX-License-Identifier: Apache-2.0
// The front half of the zstd decoder: reads the headers of a frame, of its blocks and of their
// literals, and decodes Huffman-coded literals into banks of rows. It says what there is of a block
// before its literals are made, and goes on to the next block while the back half is busy.
module wpr_zstd_head
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogWindow = 17,
  parameter int unsigned LogRows   = 13,  // of a bank
  localparam int unsigned Clients = 5
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic     start_i,  // a packet
  input  address_t have_i,   // bytes of the packet that have come
  input  logic     ended_i,  // and all of them
  output logic     header_o,  // the frame's header has been read:
  output logic [22:0] content_o,  // bytes that the frame says it has; more than 2^22 are not valid
  output logic     done_o,    // all has been read, and nothing is left
  output logic     bad_o,     // or the packet is not valid

  output logic   valid_o,     // a block for the back half
  input  logic   take_i,
  output block_t block_o,
  output logic [LogRows-1:0] base_o,  // Huffman: its literals' first row in each bank
  input  logic   back_busy_i, // it has a block
  output logic   mine_o,      // which is this half's, too
  output logic [3:0][LogRows:0] rows_o,  // of that block, those that have been made
  output logic [3:0]              write_o,
  output logic [3:0][LogRows-1:0] write_row_o,
  output logic [3:0][       63:0] write_data_o,

  output logic [Clients-1:0] request_o,
  output row_t [Clients-1:0] row_o,
  input  logic [Clients-1:0] grant_i,
  input  logic [Clients-1:0] response_i,
  input  logic [       63:0] data_i
);

  localparam int unsigned MostCode = MostBlock - 128;  // that the ring holds as a whole

  // Numbers tell at a few bits in which states the reader takes bits, and in which it seeks.
  typedef enum logic [4:0] {
    Magic = 5'd0, SizeHigh, Descriptor, Window, Dictionary, Size, Block, Jump,
    Idle = 5'd8, Content, Kind, Literals, Fit, Room, Come, Tree, JumpLast, Single, Streams, Made,
    Hand, Tail, Done,
    Section = 5'd28, Seek, Next
  } state_e;
  state_e state_q;

  // ---- reader -----------------------------------------------------------------------------------

  logic ready, take, seek, tree_take;
  logic [39:0] bits;
  address_t at, seek_to;
  logic [2:0] bit_place;
  logic [5:0] n, tree_n;
  wpr_zstd_forward forward (
    .clk_i,
    .rst_ni,
    .have_i    (have_i[AddressWidth-1:3]),
    .ended_i,
    .seek_i    (seek),
    .byte_i    (seek_to),
    .ready_o   (ready),
    .bits_o    (bits),
    .at_o      (at),
    .bit_o     (bit_place),
    .take_i    (take),
    .n_i       (n),
    .request_o (request_o[0]),
    .row_o     (row_o[0]),
    .grant_i   (grant_i[0]),
    .response_i(response_i[0]),
    .data_i
  );

  // ---- the frame's header -----------------------------------------------------------------------

  logic [1:0] size_kind_q, dictionary_q;
  logic single_q, checksum_q, last_q;
  logic [31:0] content_q;
  logic [5:0] size_bits, dictionary_bits;
  assign size_bits       = size_kind_q == 2'd0 ? 6'd8 : size_kind_q == 2'd1 ? 6'd16 : 6'd32;
  assign dictionary_bits = dictionary_q == 2'd1 ? 6'd8 : dictionary_q == 2'd2 ? 6'd16 : 6'd32;
  assign content_o       = content_q[22:0];

  // ---- a block's header, and that of its literals -----------------------------------------------

  address_t ends_q, section_q, literals_end_q;
  logic [1:0] block_kind_q;
  logic [20:0] block_size_q;
  logic treeless_q, known_q, large_q;  // large: more literals than a block may have
  logic [1:0] kind, format;
  logic [2:0] header;  // bytes
  logic [19:0] regenerated, compressed;
  assign kind   = bits[1:0];
  assign format = bits[3:2];
  always_comb begin
    compressed = '0;
    if (!kind[1]) begin
      header      = !format[0] ? 3'd1 : !format[1] ? 3'd2 : 3'd3;
      regenerated = !format[0] ? 20'(bits[7:3]) : !format[1] ? 20'(bits[15:4]) : bits[23:4];
      compressed  = kind[0] ? 20'd1 : regenerated;
    end else begin
      header      = !format[1] ? 3'd3 : !format[0] ? 3'd4 : 3'd5;
      regenerated = !format[1] ? 20'(bits[13:4]) : !format[0] ? 20'(bits[17:4]) : 20'(bits[21:4]);
      compressed  = !format[1] ? 20'(bits[23:14]) : !format[0] ? 20'(bits[31:18]) :
                    20'(bits[39:22]);
    end
  end

  // ---- the Huffman code -------------------------------------------------------------------------

  logic tree_busy, tree_bad, symbol_valid;
  logic in_tree_q;  // the reader is the tree's
  logic [11:1][11:0] least;
  logic [11:1][7:0] first;
  logic [7:0] symbol_number, symbol;
  address_t tree_end;
  logic back_start, back_take;  // the first stream's reader
  address_t back_ends;
  logic [17:0] back_size;
  logic [3:0] back_n;
  logic [3:0] back_ready, back_bad;
  logic [3:0][5:0] back_bits;
  logic [3:0][21:0] back_left;
  wpr_zstd_tree tree (
    .clk_i,
    .rst_ni,
    .start_i        (state_q == Come && !treeless_q && ready),
    .ends_i         (literals_end_q),
    .have_i,
    .busy_o         (tree_busy),
    .bad_o          (tree_bad),
    .streams_o      (tree_end),
    .ready_i        (ready && in_tree_q),
    .bits_i         (bits[10:0]),
    .at_i           (at),
    .bit_i          (bit_place),
    .take_o         (tree_take),
    .n_o            (tree_n),
    .back_start_o   (back_start),
    .back_ends_o    (back_ends),
    .back_size_o    (back_size),
    .back_ready_i   (back_ready[0]),
    .back_bad_i     (back_bad[0]),
    .back_bits_i    (back_bits[0]),
    .back_left_i    (back_left[0]),
    .back_take_o    (back_take),
    .back_n_o       (back_n),
    .least_o        (least),
    .first_o        (first),
    .symbol_valid_o (symbol_valid),
    .symbol_number_o(symbol_number),
    .symbol_o       (symbol)
  );

  // ---- streams ----------------------------------------------------------------------------------

  logic [3:0] start, start_q, started_q, come_q, busy, bad;
  logic ordered_q, empty_q;  // the last stream has bytes; another one has none
  address_t [3:0] stream_ends_q;
  logic [3:0][17:0] stream_size_q, stream_n_q;
  logic [3:0] row_valid;
  logic [3:0][63:0] rows;
  for (genvar k = 0; k < 4; k++) begin : g_stream
    wpr_zstd_stream stream (
      .clk_i,
      .rst_ni,
      .start_i        (start_q[k]),
      .ends_i         (stream_ends_q[k]),
      .size_i         (stream_size_q[k]),
      .n_i            (stream_n_q[k]),
      .busy_o         (busy[k]),
      .bad_o          (bad[k]),
      .least_i        (least),
      .first_i        (first),
      .symbol_valid_i (symbol_valid),
      .symbol_number_i(symbol_number),
      .symbol_i       (symbol),
      .row_valid_o    (row_valid[k]),
      .row_o          (rows[k]),
      .other_start_i  (k == 0 && back_start),
      .other_ends_i   (back_ends),
      .other_size_i   (back_size),
      .other_ready_o  (back_ready[k]),
      .other_bad_o    (back_bad[k]),
      .other_bits_o   (back_bits[k]),
      .other_left_o   (back_left[k]),
      .other_take_i   (k == 0 && back_take),
      .other_n_i      (back_n),
      .request_o      (request_o[k+1]),
      .row_number_o   (row_o[k+1]),
      .grant_i        (grant_i[k+1]),
      .response_i     (response_i[k+1]),
      .data_i
    );
  end

  // ---- rows of the banks ------------------------------------------------------------------------

  logic [LogRows-1:0] base_q;
  logic [LogRows:0] n_rows_q, back_rows_q;  // of this block's literals; and those of the back half
  logic fits_q;
  assign write_o      = row_valid;
  assign write_data_o = rows;
  always_comb begin
    for (int k = 0; k < 4; k++) write_row_o[k] = base_q + rows_o[k][LogRows-1:0];
  end
  always_ff @(posedge clk_i) begin
    for (int k = 0; k < 4; k++) if (row_valid[k]) rows_o[k] <= rows_o[k] + 1'b1;
    if (!back_busy_i) back_rows_q <= '0;
    if (take_i) begin
      back_rows_q <= block_o.kind == Huffman ? n_rows_q : '0;
      mine_o      <= 1'b1;
    end
    if (state_q == Next) begin
      mine_o <= 1'b0;
      if (block_o.kind == Huffman) base_q <= base_q + LogRows'(n_rows_q);
    end
    if (state_q == Literals) rows_o <= '0;
    fits_q <= (LogRows + 2)'(n_rows_q) + (LogRows + 2)'(back_rows_q) <=
              (LogRows + 2)'(1 << LogRows);
    if (!rst_ni) begin
      mine_o      <= 1'b0;
      base_q      <= '0;
      back_rows_q <= '0;
    end
  end

  // ---- steps ------------------------------------------------------------------------------------

  logic [17:0] quarter;
  logic [17:0] per_bank;
  assign quarter  = (block_o.n + 18'd3) >> 2;
  assign per_bank = block_o.four ? quarter : block_o.n;
  // A stream starts when its last byte has come.
  always_comb begin
    for (int k = 0; k < 4; k++) begin
      start[k] = state_q == Streams && !started_q[k] && come_q[k];
    end
  end
  always_comb begin
    take = state_q[4:3] == '0 || (in_tree_q && tree_take);
    seek = start_i || state_q[4:2] == '1;
    n    = 6'd8;
    unique case (state_q)
      Magic, SizeHigh, Jump: n = 6'd32;
      Dictionary: n = dictionary_bits;
      Size:       n = size_bits;
      Block:      n = 6'd24;
      Tree:       n = tree_n;
      default:    n = 6'd8;
    endcase
    seek_to = '0;
    if (state_q == Next) seek_to = ends_q;
    // The tree's description, or the streams, or nothing, comes next.
    if (state_q == Section || state_q == Seek) seek_to = section_q;
  end

  // What is found in a step, or beyond the packet's end, ends the packet a clock later.
  logic wrong, wrong_bits;  // wrong_bits: what the frame's header shows
  logic [4:0] wrong_q;
  logic sent_q;
  logic tree_made_q, made_q;  // in Tree, in Made: a clock ago the tree, all streams had been made
  always_ff @(posedge clk_i) begin
    in_tree_q   <= state_q == Tree;
    tree_made_q <= state_q == Tree && !tree_busy;
    made_q      <= state_q == Made && busy == '0;
    for (int k = 0; k < 4; k++) come_q[k] <= have_i >= stream_ends_q[k];
    start_q   <= rst_ni ? start : '0;
    ordered_q <= stream_ends_q[3] > stream_ends_q[2];
    empty_q   <= stream_size_q[0] == '0 || stream_size_q[1] == '0 || stream_size_q[2] == '0;
  end
  logic offer;  // valid_o a clock later
  assign offer = !sent_q && !(valid_o && take_i) &&
                 (state_q == Room ? fits_q && block_o.kind == Huffman :
                  state_q == Come || state_q == Tree || state_q == Seek || state_q == Jump ||
                  state_q == JumpLast || state_q == Single || state_q == Streams ||
                  state_q == Made || state_q == Hand);
  always_comb begin
    wrong_bits = {
      state_q == Magic && bits[31:0] != 32'hFD2FB528,
      // A reserved bit, or no size.
      state_q == Descriptor && (bits[3] || (bits[7:6] == '0 && !bits[5])),
      state_q == Window && (bits[7:3] > 5'(LogWindow - 10) ||
                            (bits[7:3] == 5'(LogWindow - 10) && bits[2:0] != '0)),
      state_q == Dictionary && (bits[7:0] != '0 || (dictionary_q[1] && bits[15:8] != '0) ||
                                (dictionary_q == 2'd3 && bits[31:16] != '0)),
      state_q == SizeHigh && bits[31:0] != '0
    } != '0;
  end
  always_comb begin
    wrong = 1'b0;
    unique case (state_q)
      Content:    wrong = content_q > 32'd4194304 || (single_q && content_q > 32'(1 << LogWindow));
      Kind: begin
        wrong = block_kind_q == 2'd3 || block_size_q > 21'(MostBlock) ||
                (block_kind_q == 2'd2 && block_size_q > 21'(MostCode));
      end
      Section: begin
        wrong = large_q || literals_end_q >= ends_q || (treeless_q && !known_q) ||
                (block_o.four && block_o.n < 18'd6);
      end
      Tree:       wrong = tree_made_q && tree_bad;
      Seek:       wrong = section_q >= literals_end_q;
      Streams:    wrong = block_o.four && (!ordered_q || empty_q);
      Made:       wrong = bad != '0;
      Tail:       wrong = (ended_i && have_i != section_q) || have_i > section_q;
      default:    wrong = 1'b0;
    endcase
  end

  // Apart from what each state does, so that the way to the next one is short.
  logic move;
  state_e next;
  always_comb begin
    move = ready;
    next = Idle;
    unique case (state_q)
      Magic:      next = Descriptor;
      Descriptor: next = !bits[5] ? Window : bits[1:0] != '0 ? Dictionary : Size;
      Window:     next = dictionary_q != '0 ? Dictionary : Size;
      Dictionary: next = Size;
      Size:       next = size_kind_q == 2'd3 ? SizeHigh : Content;
      SizeHigh:   next = Content;
      Content: begin
        move = 1'b1;
        next = Block;
      end
      Block:    next = Kind;
      Kind:     next = Literals;
      Literals: next = block_kind_q[1] ? Section : Hand;
      Section: begin
        move = 1'b1;
        next = block_o.kind == Huffman ? Fit : Hand;
      end
      Fit: begin
        move = 1'b1;
        next = Room;
      end
      Room: begin
        move = fits_q;
        next = Come;
      end
      Come: next = treeless_q ? Seek : Tree;
      Tree: begin
        move = tree_made_q;
        next = Seek;
      end
      Seek: begin
        move = 1'b1;
        next = block_o.four ? Jump : Single;
      end
      Jump:     next = JumpLast;
      JumpLast: next = Single;
      Single: begin
        move = 1'b1;
        next = Streams;
      end
      Streams: begin
        move = started_q == '1;
        next = Made;
      end
      Made: begin
        move = made_q;
        next = Hand;
      end
      Hand: begin
        move = sent_q;
        next = Next;
      end
      Next: begin
        move = 1'b1;
        next = last_q ? Tail : Block;
      end
      Tail: begin
        move = ended_i;
        next = Done;
      end
      default: move = 1'b0;
    endcase
  end

  assign done_o = state_q == Done && wrong_q == '0;
  always_ff @(posedge clk_i) begin
    unique case (state_q)
      Descriptor:
      if (ready) begin
        size_kind_q  <= bits[7:6];
        single_q     <= bits[5];
        checksum_q   <= bits[2];
        dictionary_q <= bits[1:0];
      end
      Size:
      if (ready) begin
        content_q <= size_kind_q == 2'd0 ? 32'(bits[7:0]) :
                     size_kind_q == 2'd1 ? 32'(bits[15:0]) + 32'd256 : bits[31:0];
      end
      Content: header_o <= 1'b1;
      Block: begin
        sent_q <= 1'b0;
        if (ready) begin
          last_q       <= bits[0];
          block_kind_q <= bits[2:1];
          block_size_q <= bits[23:3];
        end
      end
      Kind: begin
        ends_q           <= at + (block_kind_q == 2'd1 ? address_t'(1) : address_t'(block_size_q));
        block_o.from     <= at;
        block_o.literals <= at;
        block_o.n        <= block_size_q[17:0];
        block_o.kind     <= block_kind_q[0] ? Rle : Raw;
        block_o.last     <= last_q;
        block_o.four     <= 1'b0;
        block_o.sequences <= block_kind_q[1];
      end
      Literals: begin
        block_o.ends  <= ends_q;
        block_o.value <= bits[7:0];
        base_o        <= base_q;
        large_q       <= regenerated[19:18] != '0 || (regenerated[17] && regenerated[16:0] != '0);
        if (ready) begin
          if (block_kind_q[1]) begin
            block_o.kind     <= kind[1] ? Huffman : kind[0] ? Rle : Raw;
            block_o.four     <= kind[1] && format != '0;
            block_o.n        <= regenerated[17:0];
            block_o.literals <= at + address_t'(header);
            block_o.value    <= 8'(bits >> {header, 3'b0});
            block_o.begins   <= at + address_t'(header) + address_t'(compressed);
            literals_end_q   <= at + address_t'(header) + address_t'(compressed);
            section_q        <= at + address_t'(header);
            treeless_q       <= kind[1] && kind[0];
          end
        end
      end
      Section: n_rows_q <= (LogRows + 1)'((per_bank + 18'd7) >> 3);
      Tree: begin
        section_q <= tree_end;
        if (tree_made_q) known_q <= 1'b1;
      end
      Seek: begin
        stream_n_q       <= {block_o.n - (quarter + {quarter[16:0], 1'b0}), {3{quarter}}};
        stream_ends_q[3] <= literals_end_q;
        if (!block_o.four) begin
          stream_ends_q[0] <= literals_end_q;
          stream_size_q[0] <= 18'(literals_end_q - section_q);
          stream_n_q[0]    <= block_o.n;
        end
      end
      Jump:
      if (ready) begin
        stream_size_q[0] <= 18'(bits[15:0]);
        stream_size_q[1] <= 18'(bits[31:16]);
        stream_ends_q[0] <= section_q + address_t'(bits[15:0]) + address_t'(6);
      end
      JumpLast: begin
        stream_ends_q[1] <= stream_ends_q[0] + address_t'(stream_size_q[1]);
        stream_ends_q[2] <= stream_ends_q[0] + address_t'(stream_size_q[1]) +
                            address_t'(bits[15:0]);
        stream_size_q[2] <= 18'(bits[15:0]);
      end
      Single: begin
        stream_size_q[3] <= 18'(stream_ends_q[3] - stream_ends_q[2]);
        started_q        <= block_o.four ? '0 : 4'b1110;
      end
      Streams: started_q <= started_q | start;
      Next:    section_q <= ends_q + (checksum_q ? address_t'(4) : '0);
      default: ;
    endcase
    if (move) state_q <= next;
    valid_o <= offer && wrong_q == '0;
    if (valid_o && take_i) sent_q <= 1'b1;
    wrong_q <= {have_i[AddressWidth-1], ended_i && ends_q > have_i,
                ready && ended_i && at > have_i && state_q != Idle && state_q != Done, wrong,
                ready && wrong_bits};
    if (wrong_q != '0) begin
      bad_o   <= 1'b1;
      state_q <= Idle;
    end
    if (start_i) state_q <= Magic;
    if (!rst_ni) begin
      state_q  <= Idle;
      valid_o  <= 1'b0;
      wrong_q  <= '0;
      bad_o    <= 1'b0;
      header_o <= 1'b0;
      known_q  <= 1'b0;
      ends_q   <= '0;
      sent_q   <= 1'b0;
    end
  end

endmodule
