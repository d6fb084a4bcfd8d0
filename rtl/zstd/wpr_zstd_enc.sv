// SPDX-License-Identifier: Apache-2.0
// zstd encoder (codecs/zstd/spec.md, RFC 8878): a packet of bytes in, 8 a beat; a packet of one
// frame out, 8 bytes a beat. The frame says its size and a window of 128 KiB, and has no checksum.
// Which frame it is follows from the bytes alone.
//
// s_cmd says how many bytes a packet has, 0 (then no beat comes) to 4 MiB; a packet that has others
// gives a frame without use, and what follows it, too. Blocks are of 64 KiB. One that would not
// become smaller goes as it is, so a frame has at most 10 bytes, and 3 for each block, more than
// its bytes. Offsets are below 65,280.
//
// Rate: 8 bytes a clock come while there is memory for a block. A block takes as many clocks as it
// has sequences, or a quarter of its literals if these are more and get a Huffman code; and then an
// eighth of its code's bytes, while the next block's tree and tables are built. The first byte
// leaves when a block has come and is coded.
module wpr_zstd_enc
  import wpr_zstd_enc_pkg::*;
  import wpr_zstd_pkg::literals_e, wpr_zstd_pkg::Raw, wpr_zstd_pkg::Rle, wpr_zstd_pkg::Huffman;
(
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,   // bytes of the next packet: at most 2^22

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // as s_cmd says; not looked at
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast
  output logic        m_axis_tlast
);

  logic in_valid, in_ready;
  logic [63:0] in_data;
  wpr_skid #(.Width(64)) slice (
    .clk_i,
    .rst_ni,
    .s_valid_i(s_axis_tvalid),
    .s_ready_o(s_axis_tready),
    .s_data_i (s_axis_tdata),
    .m_valid_o(in_valid),
    .m_ready_i(in_ready),
    .m_data_o (in_data)
  );

  // ---- blocks -----------------------------------------------------------------------------------

  logic room, w_valid, w_first, w_last, w_start;
  logic [3:0] w_n, w_run, w_end;
  logic [22:0] w_left;
  logic [63:0] w_bytes;
  logic [2:0] w_at;
  logic [15:0] w_offset;
  wpr_lz_match #(.HashBytes(6), .LogRows(11), .More(1'b1)) match (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .s_axis_tvalid(in_valid),
    .s_axis_tready(in_ready),
    .s_axis_tdata (in_data),
    .room_i       (room),
    .m_valid_o    (w_valid),
    .m_first_o    (w_first),
    .m_last_o     (w_last),
    .m_n_o        (w_n),
    .m_left_o     (w_left),
    .m_bytes_o    (w_bytes),
    .m_run_o      (w_run),
    .m_start_o    (w_start),
    .m_at_o       (w_at),
    .m_end_o      (w_end),
    .m_offset_o   (w_offset)
  );

  logic come_valid, come_ready, free, tree_bank_q, bank_q, count;
  block_t come;
  logic [7:0] count_byte;
  logic count_codes;
  logic [5:0] count_code;
  logic [2:0][13:0] counted_codes;
  logic [16:0] counted;
  logic [12:0] sequence_at, literals_row, row_q;
  sequence_t one;
  logic [63:0] literals_word, raw_word;
  wpr_zstd_enc_blocks blocks (
    .clk_i,
    .rst_ni,
    .room_o      (room),
    .s_valid_i   (w_valid),
    .s_first_i   (w_first),
    .s_last_i    (w_last),
    .s_n_i       (w_n),
    .s_left_i    (w_left),
    .s_bytes_i   (w_bytes),
    .s_run_i     (w_run),
    .s_start_i   (w_start),
    .s_at_i      (w_at),
    .s_end_i     (w_end),
    .s_offset_i  (w_offset),
    .m_valid_o   (come_valid),
    .m_ready_i   (come_ready),
    .m_block_o   (come),
    .free_i      (free),
    .bank_count_i(tree_bank_q),
    .count_i     (count),
    .byte_i      (count_byte),
    .n_o         (counted),
    .codes_i     (count_codes),
    .code_i      (count_code),
    .n_codes_o   (counted_codes),
    .bank_i      (bank_q),
    .sequence_i  (sequence_at),
    .sequence_o  (one),
    .literals_i  (literals_row),
    .literals_o  (literals_word),
    .raw_i       (row_q),
    .raw_o       (raw_word)
  );

  // ---- a block's tree, then its code, then its bytes --------------------------------------------

  typedef enum logic [1:0] {Wait, Build, Built} tree_e;
  typedef enum logic [2:0] {Idle, Start, Code, Size, Choose, Part, Some, Rows} state_e;
  tree_e tree_q;
  state_e state_q;
  logic tree_start_q, tree_busy, tables_busy, tree_own, own_q, code_valid;
  logic code_start_q, huffman_start_q, sequences_start_q;
  logic coding;
  block_t tree_block_q, block_q;
  literals_t tree, literals_q;
  logic [7:0] code_byte;
  code_t code;
  assign coding     = state_q inside {Start, Code};
  assign tree_own   = tree_block_q.sequences[13:8] != '0;  // enough for tables of their own
  assign come_ready = tree_q == Wait && !coding;
  always_ff @(posedge clk_i) begin
    tree_start_q <= 1'b0;
    unique case (tree_q)
      Wait:
      if (come_valid && come_ready) begin
        tree_block_q <= come;
        tree_start_q <= 1'b1;
        tree_q       <= Build;
      end
      Build:   if (!tree_start_q && !tree_busy && !tables_busy) tree_q <= Built;
      default: if (state_q == Idle) tree_q <= Wait;
    endcase
    if (tree_q == Built && state_q == Idle) tree_bank_q <= !tree_bank_q;
    if (!rst_ni) begin
      tree_q      <= Wait;
      tree_bank_q <= 1'b0;
    end
  end
  wpr_zstd_enc_tree tree_of (
    .clk_i,
    .rst_ni,
    .start_i     (tree_start_q),
    .literals_i  (tree_block_q.literals),
    .busy_o      (tree_busy),
    .m_literals_o(tree),
    .count_o     (count),
    .byte_o      (count_byte),
    .n_i         (counted),
    .code_valid_o(code_valid),
    .code_byte_o (code_byte),
    .code_o      (code)
  );

  // ---- sequences, the description of the tree, and four streams of literals ---------------------

  logic sequences_busy, sequences_over, weights_busy;
  logic [17:0] sequences_size;
  logic [8:0] weights_size;
  logic [2:0][6:0] table_size;
  logic [2:0][63:0] table_word;
  logic [63:0] sequences_word, weights_word;
  wpr_zstd_enc_sequences sequences (
    .clk_i,
    .rst_ni,
    .tables_i  (tree_start_q),
    .own_i     (tree_own),
    .tables_bank_i(tree_bank_q),
    .tables_n_i(tree_block_q.sequences),
    .tables_busy_o(tables_busy),
    .count_o   (count_codes),
    .code_o    (count_code),
    .n_codes_i (counted_codes),
    .bank_i    (bank_q),
    .start_i   (sequences_start_q),
    .n_i       (block_q.sequences),
    .busy_o    (sequences_busy),
    .over_o    (sequences_over),
    .size_o    (sequences_size),
    .at_o      (sequence_at),
    .sequence_i(one),
    .table_size_o(table_size),
    .table_row_o(table_word),
    .row_i     (row_q),
    .row_o     (sequences_word)
  );
  wpr_zstd_enc_weights weights (
    .clk_i,
    .rst_ni,
    .code_valid_i(code_valid),
    .code_byte_i (code_byte),
    .length_i    (code.n),
    .start_i     (huffman_start_q),
    .most_i      (literals_q.most),
    .longest_i   (literals_q.longest),
    .busy_o      (weights_busy),
    .size_o      (weights_size),
    .row_i       (row_q[3:0]),
    .row_o       (weights_word)
  );

  logic [16:0] quarter;
  logic [3:0] stream_busy, stream_over, ask, given, given1_q, given2_q;
  logic [3:0][14:0] stream_size;
  logic [3:0][12:0] ask_row;
  logic [3:0][63:0] stream_word;
  assign quarter = (block_q.literals + 17'd3) >> 2;
  assign given   = ask & (~ask + 4'd1);
  always_comb begin
    literals_row = row_q;
    for (int k = 0; k < 4; k++) if (given[k]) literals_row = ask_row[k];
  end
  always_ff @(posedge clk_i) {given2_q, given1_q} <= {given1_q, given} & {8{rst_ni}};
  for (genvar k = 0; k < 4; k++) begin : g_stream
    wpr_zstd_enc_stream stream (
      .clk_i,
      .rst_ni,
      .code_valid_i(code_valid),
      .code_byte_i (code_byte),
      .code_i      (code),
      .start_i     (huffman_start_q),
      .from_i      (17'(k * quarter)),
      .to_i        (k == 3 ? block_q.literals : 17'((k + 1) * quarter)),
      .busy_o      (stream_busy[k]),
      .over_o      (stream_over[k]),
      .size_o      (stream_size[k]),
      .ask_o       (ask[k]),
      .row_o       (ask_row[k]),
      .given_i     (given[k]),
      .come_i      (given2_q[k]),
      .literals_i  (literals_word),
      .read_i      (row_q[10:0]),
      .code_o      (stream_word[k])
    );
  end

  // ---- which form is smaller --------------------------------------------------------------------

  logic [17:0] huffman_q, streams_q, literals_size_q, sequences_size_q, size_q;
  logic [9:0] tree_size_q;
  logic [8:0] tables_size_q;
  logic may_huffman_q, raw_q, same_q;
  literals_e kind_q;
  logic larger_q;        // than the block's bytes
  logic [2:0] n_head_q;  // bytes of the header of literals, and of sequences
  logic [39:0] head, literals_head_q, literals_words_q;  // words: with the only byte's value
  logic [1:0] n_sequences_head_q;
  logic [23:0] sequences_head_q;
  logic [17:0] n_code;
  logic [16:0] n_literals;
  assign n_code     = huffman_q;
  assign n_literals = block_q.literals;
  always_comb begin
    if (kind_q == Huffman) begin
      head = n_literals < 17'd1024 ? {16'd0, n_code[9:0], n_literals[9:0], 4'b0110} :
             n_literals < 17'd16384 ? {8'd0, n_code[13:0], n_literals[13:0], 4'b1010} :
                                      {n_code, 1'b0, n_literals, 4'b1110};
    end else begin
      head = n_literals < 17'd32 ? {32'd0, n_literals[4:0], 3'b000} :
             n_literals < 17'd4096 ? {24'd0, n_literals[11:0], 4'b0100} :
                                     {19'd0, n_literals, 4'b1100};
      if (kind_q == Rle) head[0] = 1'b1;
    end
  end
  // What follows from a coded block step by step, in eight clocks.
  always_ff @(posedge clk_i) begin
    streams_q     <= 18'(stream_size[0]) + 18'(stream_size[1]) + 18'(stream_size[2]) +
                     18'(stream_size[3]) + 18'd6;
    tree_size_q   <= literals_q.most == 8'd1 ? 10'd2 : 10'(weights_size) + 10'd8;
    huffman_q     <= streams_q + 18'(tree_size_q);
    may_huffman_q <= huffman_q < 18'(n_literals) && stream_over == '0 &&
                     (literals_q.most == 8'd1 || weights_size <= 9'd120);
    kind_q        <= literals_q.kind == Huffman && !may_huffman_q ? Raw : literals_q.kind;
    if (kind_q == Huffman) begin
      n_head_q <= n_literals < 17'd1024 ? 3'd3 : n_literals < 17'd16384 ? 3'd4 : 3'd5;
    end else begin
      n_head_q <= n_literals < 17'd32 ? 3'd1 : n_literals < 17'd4096 ? 3'd2 : 3'd3;
    end
    literals_head_q    <= head;
    literals_words_q   <= literals_head_q |
                          (kind_q == Rle ? 40'(literals_q.value) << (8 * n_head_q) : '0);
    n_sequences_head_q <= block_q.sequences == '0 ? 2'd1 :
                          block_q.sequences < 14'd128 ? 2'd2 : 2'd3;
    sequences_head_q   <= {own_q ? 8'hA8 : 8'd0, block_q.sequences[7:0], 2'b10,
                           block_q.sequences[13:8]};
    if (block_q.sequences < 14'd128) sequences_head_q <= {16'd0, block_q.sequences[7:0]};
    literals_size_q    <= 18'(n_head_q) + (kind_q == Huffman ? huffman_q :
                                           kind_q == Rle ? 18'd1 : 18'(n_literals));
    tables_size_q      <= own_q ? 9'(table_size[0]) + 9'(table_size[1]) + 9'(table_size[2]) : '0;
    sequences_size_q   <= 18'(n_sequences_head_q) + 18'(tables_size_q) +
                          (block_q.sequences == '0 ? 18'd0 : sequences_size);
    size_q             <= literals_size_q + sequences_size_q;
    larger_q           <= size_q >= 18'(block_q.n) || (sequences_over && block_q.sequences != '0);
  end

  // ---- parts of a block -------------------------------------------------------------------------

  typedef enum logic [4:0] {
    Magic,
    FrameSize,
    Header,      // of the block, and of its literals
    Bytes,       // raw ones
    Literals,    // raw ones
    TreeHeader,
    Tree,
    Sizes,       // of streams
    Stream0,
    Stream1,
    Stream2,
    Stream3,
    SequencesHeader,
    Table0,  // of literal lengths, offsets, match lengths
    Table1,
    Table2,
    Sequences
  } part_e;
  part_e part_q, last_part_q;
  logic [17:0] n, left_q;
  logic is_head, is_head_q, ends;
  logic [63:0] words, head_q;
  always_comb begin
    n       = '0;
    is_head = 1'b1;
    words   = '0;
    unique case (part_q)
      Magic:
      if (block_q.first) begin
        n     = 18'd6;
        words = 64'h3880FD2FB528;
      end
      FrameSize: begin
        n     = block_q.first ? 18'd4 : 18'd0;
        words = 64'(block_q.frame);
      end
      Header: begin
        n = 18'd3;
        words[23:0] = {raw_q || same_q ? 21'(block_q.n) : 21'(size_q),
                       same_q ? 2'd1 : raw_q ? 2'd0 : 2'd2, block_q.last};
        if (same_q) begin
          n = 18'd4;
          words[31:24] = block_q.value;
        end else if (!raw_q) begin
          n = 18'd3 + 18'(n_head_q) + 18'(kind_q == Rle);
          words[63:24] = literals_words_q;
        end
      end
      Bytes: begin
        n       = raw_q ? 18'(block_q.n) : 18'd0;
        is_head = 1'b0;
      end
      Literals: begin
        n       = kind_q == Raw && !raw_q ? 18'(block_q.literals) : 18'd0;
        is_head = 1'b0;
      end
      TreeHeader:
      if (kind_q == Huffman) begin
        n     = literals_q.most == 8'd1 ? 18'd2 : 18'd8;
        words = literals_q.most == 8'd1 ? 64'h1080 : {WeightHeader, 8'(weights_size + 9'd7)};
      end
      Tree: begin
        n       = kind_q == Huffman && literals_q.most != 8'd1 ? 18'(weights_size) : 18'd0;
        is_head = 1'b0;
      end
      Sizes: begin
        n     = kind_q == Huffman ? 18'd6 : 18'd0;
        words = {16'd0, 1'b0, stream_size[2], 1'b0, stream_size[1], 1'b0, stream_size[0]};
      end
      Stream0, Stream1, Stream2, Stream3: begin
        n       = kind_q == Huffman ? 18'(stream_size[2'(part_q-Stream0)]) : 18'd0;
        is_head = 1'b0;
      end
      SequencesHeader: begin
        n     = 18'(n_sequences_head_q);
        words = 64'(sequences_head_q);
      end
      Table0, Table1, Table2: begin
        n       = own_q ? 18'(table_size[2'(part_q-Table0)]) : 18'd0;
        is_head = 1'b0;
      end
      default: begin
        n       = sequences_size;
        is_head = 1'b0;
      end
    endcase
  end

  logic room_q, issue;
  assign issue = state_q == Rows && room_q;
  assign ends  = left_q <= 18'd8;
  always_ff @(posedge clk_i) begin
    code_start_q      <= 1'b0;
    huffman_start_q   <= 1'b0;
    sequences_start_q <= 1'b0;
    unique case (state_q)
      Idle:
      if (tree_q == Built) begin
        block_q    <= tree_block_q;
        own_q      <= tree_own;
        literals_q <= tree;
        bank_q     <= tree_bank_q;
        state_q    <= Start;
        code_start_q <= 1'b1;
      end
      Start: begin
        huffman_start_q   <= code_start_q && literals_q.kind == Huffman;
        sequences_start_q <= code_start_q && block_q.sequences != '0;
        if (!code_start_q && !huffman_start_q && !sequences_start_q) state_q <= Code;
        left_q <= '0;
      end
      Code:
      if (!sequences_busy && !weights_busy && stream_busy == '0) state_q <= Size;
      Size: begin
        left_q <= left_q + 18'd1;
        if (left_q[3:0] == 4'd11) state_q <= Choose;
      end
      Choose: begin
        raw_q   <= larger_q;
        same_q  <= block_q.same && !block_q.first;
        part_q  <= Magic;
        state_q <= Part;
        last_part_q <= block_q.sequences == '0 ? SequencesHeader : Sequences;
        if (larger_q) last_part_q <= block_q.n == '0 ? Header : Bytes;
        if (block_q.same && !block_q.first) begin
          raw_q       <= 1'b0;
          last_part_q <= Header;
        end
      end
      Part: begin
        left_q    <= n;
        is_head_q <= is_head;
        head_q    <= words;
        row_q     <= '0;
        state_q   <= Some;
      end
      Some: begin
        state_q <= left_q != '0 ? Rows : Part;
        if (left_q == '0) part_q <= part_e'(part_q + 5'd1);
      end
      default:
      if (issue) begin
        row_q  <= row_q + 13'd1;
        left_q <= left_q - 18'd8;
        if (ends) begin
          part_q  <= part_e'(part_q + 5'd1);
          state_q <= part_q == last_part_q ? Idle : Part;
        end
      end
    endcase
    if (!rst_ni) state_q <= Idle;
  end

  // A block is free when its last row has been read.
  logic [3:0] free_q;
  always_ff @(posedge clk_i) begin
    free_q <= {free_q[2:0], issue && ends && part_q == last_part_q} & {4{rst_ni}};
  end
  assign free = free_q[3];

  // ---- rows to beats ----------------------------------------------------------------------------

  typedef struct packed {
    part_e part;
    logic is_head;
    logic [63:0] head;
    logic [3:0] n;
    logic last;
  } read_t;
  read_t read1_q, read2_q;
  logic [3:1] v_q;
  logic [63:0] word, word3_q;
  logic [3:0] n3_q;
  logic last3_q;
  always_comb begin
    unique case (read2_q.part)
      Bytes:    word = raw_word;
      Literals: word = literals_word;
      Tree:     word = weights_word;
      Stream0:  word = stream_word[0];
      Stream1:  word = stream_word[1];
      Stream2:  word = stream_word[2];
      Stream3:  word = stream_word[3];
      Table0:   word = table_word[0];
      Table1:   word = table_word[1];
      Table2:   word = table_word[2];
      default:  word = sequences_word;
    endcase
    if (read2_q.is_head) word = read2_q.head;
  end
  always_ff @(posedge clk_i) begin
    v_q     <= {v_q[2:1], issue} & {3{rst_ni}};
    read1_q <= '{part_q, is_head_q, head_q, ends ? left_q[3:0] : 4'd8,
                 ends && part_q == last_part_q && block_q.last};
    read2_q <= read1_q;
    for (int i = 0; i < 8; i++) begin
      word3_q[8*i+:8] <= i < int'(read2_q.n) ? word[8*i+:8] : 8'd0;
    end
    n3_q    <= read2_q.n;
    last3_q <= read2_q.last;
  end

  logic [4:0] level;
  logic piece_valid, piece_ready, piece_last, packed_valid;
  logic [63:0] piece;
  logic [3:0] piece_n, packed_n;
  wpr_fifo #(.Width(69), .LogDepth(4)) queue (
    .clk_i,
    .rst_ni,
    .s_valid_i(v_q[3]),
    .s_ready_o(),  // there is room: room_q
    .s_data_i ({last3_q, n3_q, word3_q}),
    .m_valid_o(piece_valid),
    .m_ready_i(piece_ready),
    .m_data_o ({piece_last, piece_n, piece}),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) room_q <= rst_ni && level < 5'd8;
  wpr_pack #(.Lanes(8), .Unit(8)) pack (
    .clk_i,
    .rst_ni,
    .s_valid_i(piece_valid),
    .s_ready_o(piece_ready),
    .s_data_i (piece),
    .s_size_i (piece_n),
    .s_last_i (piece_last),
    .m_valid_o(packed_valid),
    .m_ready_i(m_axis_tready),
    .m_data_o (m_axis_tdata),
    .m_size_o (packed_n),
    .m_last_o (m_axis_tlast)
  );
  assign m_axis_tvalid = packed_valid;
  always_comb for (int i = 0; i < 8; i++) m_axis_tkeep[i] = 4'(i) < packed_n;

endmodule
