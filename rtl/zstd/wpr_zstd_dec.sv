// SPDX-License-Identifier: Apache-2.0
// zstd decoder (codecs/zstd/spec.md): a packet of one Zstandard frame (RFC 8878) in, 8 bytes a
// beat; a packet of the bytes that it expands to out, 8 a beat.
//
// How many bytes a packet may have comes by s_cmd, at most 4 MiB. What the specification refuses,
// and what this core does not take (rtl/zstd/README.md), ends the packet with m_axis_tuser set
// beside m_axis_tlast; its bytes are then not to be used, there are never more than it may have,
// the rest of the input packet is thrown away and the next one begins afresh. A checksum behind the
// frame is passed over.
//
// Rate: a sequence in two clocks, four literals a clock, 8 bytes a clock out. One packet at a time.
module wpr_zstd_dec
  import wpr_zstd_pkg::*;
#(
  parameter int unsigned LogWindow = 17,  // frames with a larger window are refused
  parameter int unsigned LogBank   = 13   // rows of a fourth of literals; 12 hold a large block
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic        s_cmd_tvalid,
  output logic        s_cmd_tready,
  input  logic [22:0] s_cmd_tdata,   // bytes that the next packet may have: at most 2^22

  input  logic        s_axis_tvalid,
  output logic        s_axis_tready,
  input  logic [63:0] s_axis_tdata,
  input  logic [ 7:0] s_axis_tkeep,   // all ones but with tlast; a packet has a byte
  input  logic        s_axis_tlast,

  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic [63:0] m_axis_tdata,
  output logic [ 7:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or for no byte
  output logic        m_axis_tlast,
  output logic        m_axis_tuser    // with tlast: the packet was not valid
);

  localparam int unsigned LogStore = 14;  // rows of code
  localparam int unsigned LogElements = 4;

  // Packets: Quiet until nothing is on its way to the literals that wait, Drain until none does,
  // Clear until nothing is on its way from the store.
  typedef enum logic [3:0] {
    Command, Begin, Header, Run, Refuse, Quiet, Drain, End, Flush, Clear
  } state_e;
  state_e state_q;
  logic clear_n_q;  // resets all that knows of a packet
  logic wrong_q;
  logic [3:0] count_q;
  logic [22:0] most_q;

  // ---- code -------------------------------------------------------------------------------------

  localparam int unsigned Clients = 8;
  address_t have, free_q;
  logic ended;
  logic [Clients-1:0] request, grant, response;
  row_t [Clients-1:0] row;
  logic [63:0] data;
  wpr_zstd_store #(.LogRows(LogStore), .Clients(Clients)) store (
    .clk_i,
    .rst_ni,
    .s_axis_tvalid,
    .s_axis_tready,
    .s_axis_tdata,
    .s_axis_tkeep,
    .s_axis_tlast,
    .have_o    (have),
    .ended_o   (ended),
    .free_i    (free_q[AddressWidth-1:3]),
    .flush_i   (state_q == Flush),
    .request_i (request),
    .row_i     (row),
    .grant_o   (grant),
    .response_o(response),
    .data_o    (data)
  );

  // ---- the front half ---------------------------------------------------------------------------

  logic header, head_done, head_bad, block_valid, block_take, mine;
  logic [22:0] content;
  block_t block;
  // Of the back half's block: its end, its sequences, whether it is nothing but raw bytes, and
  // whether its literals are made from the code.
  address_t ends_q, begins_q;
  logic raw_block_q, huffman_q;
  logic back_q;  // the back half has a block
  logic start_q;  // which it begins
  logic [LogBank-1:0] base;
  logic [3:0][LogBank:0] rows;
  logic [3:0] write;
  logic [3:0][LogBank-1:0] write_row;
  logic [3:0][63:0] write_data;
  wpr_zstd_head #(.LogWindow(LogWindow), .LogRows(LogBank)) head (
    .clk_i,
    .rst_ni      (clear_n_q),
    .start_i     (state_q == Begin),
    .have_i      (have),
    .ended_i     (ended),
    .header_o    (header),
    .content_o   (content),
    .done_o      (head_done),
    .bad_o       (head_bad),
    .valid_o     (block_valid),
    .take_i      (block_take),
    .block_o     (block),
    .base_o      (base),
    .back_busy_i (back_q),
    .mine_o      (mine),
    .rows_o      (rows),
    .write_o     (write),
    .write_row_o (write_row),
    .write_data_o(write_data),
    .request_o   (request[6:2]),
    .row_o       (row[6:2]),
    .grant_i     (grant[6:2]),
    .response_i  (response[6:2]),
    .data_i      (data)
  );

  // ---- the back half ----------------------------------------------------------------------------

  logic sequences_busy, sequences_bad, sequence_valid, sequence_take;
  logic [16:0] sequence_literals;
  logic [17:0] sequence_match;
  logic [LogWindow:0] sequence_offset;
  wpr_zstd_sequences #(.LogWindow(LogWindow)) sequences (
    .clk_i,
    .rst_ni    (clear_n_q),
    .start_i   (start_q && block.sequences),
    .begins_i  (block.begins),
    .ends_i    (block.ends),
    .have_i    (have),
    .ended_i   (ended),
    .busy_o    (sequences_busy),
    .bad_o     (sequences_bad),
    .valid_o   (sequence_valid),
    .take_i    (sequence_take),
    .literals_o(sequence_literals),
    .match_o   (sequence_match),
    .offset_o  (sequence_offset),
    .request_o (request[1:0]),
    .row_o     (row[1:0]),
    .grant_i   (grant[1:0]),
    .response_i(response[1:0]),
    .data_i    (data)
  );

  logic literals_busy, stop;
  row_t literals_row;
  logic [4:0] used;
  logic [7:0] waiting;
  logic [3:0] literals_n, literals_begin;
  logic [127:0] literals_bytes;
  assign stop = state_q == Quiet || state_q == Drain;
  wpr_zstd_literals #(.LogRows(LogBank)) literals (
    .clk_i,
    .rst_ni       (clear_n_q),
    .stop_i       (stop),
    .start_i      (start_q),
    .block_i      (block),
    .base_i       (base),
    .busy_o       (literals_busy),
    .row_o        (literals_row),
    .mine_i       (mine),
    .rows_i       (rows),
    .write_i      (write),
    .write_row_i  (write_row),
    .write_data_i (write_data),
    .have_i       (have[AddressWidth-1:3]),
    .ended_i      (ended),
    .request_o    (request[7]),
    .request_row_o(row[7]),
    .grant_i      (grant[7]),
    .data_i       (data),
    .used_i       (used),
    .wait_o       (waiting),
    .n_o          (literals_n),
    .begin_o      (literals_begin),
    .bytes_o      (literals_bytes)
  );

  localparam int unsigned ElementWidth = 17 + LogWindow;
  logic execute_busy, execute_bad, end_take, room_q;
  logic element_valid, element_last, element_wrong;
  logic [4:0] element_literals;
  logic [8:0] element_match;
  logic [LogWindow:0] element_offset;
  wpr_zstd_execute #(.LogWindow(LogWindow)) execute (
    .clk_i,
    .rst_ni      (clear_n_q),
    .most_valid_i(state_q == Header && header),
    .most_i      (content),
    .start_i     (start_q),
    .n_i         (block.n),
    .busy_o      (execute_busy),
    .bad_o       (execute_bad),
    .come_i      (sequences_busy),
    .valid_i     (sequence_valid),
    .take_o      (sequence_take),
    .literals_i  (sequence_literals),
    .match_i     (sequence_match),
    .offset_i    (sequence_offset),
    .wait_i      (waiting),
    .used_o      (used),
    .drain_i     (state_q == Drain),
    .end_i       (state_q == End),
    .end_bad_i   (wrong_q),
    .end_take_o  (end_take),
    .valid_o     (element_valid),
    .room_i      (room_q),
    .last_o      (element_last),
    .wrong_o     (element_wrong),
    .n_literals_o(element_literals),
    .n_match_o   (element_match),
    .offset_o    (element_offset)
  );

  logic [LogElements:0] level;
  logic [ElementWidth-1:0] element;
  logic copy_valid, copy_ready;
  wpr_fifo #(.Width(ElementWidth), .LogDepth(LogElements)) elements (
    .clk_i,
    .rst_ni,
    .s_valid_i(element_valid),
    .s_ready_o(),
    .s_data_i ({element_wrong, element_last, element_literals, element_match, element_offset}),
    .m_valid_o(copy_valid),
    .m_ready_i(copy_ready),
    .m_data_o (element),
    .level_o  (level)
  );
  always_ff @(posedge clk_i) begin
    room_q <= rst_ni && level < (LogElements + 1)'((1 << LogElements) - 4);
  end

  logic command_ready;
  wpr_lz_copy #(.LogWindow(LogWindow), .OffsetWidth(LogWindow + 1), .Exact(1'b1)) copy (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid    ((state_q == Header && header && !head_bad) || state_q == Refuse),
    .s_cmd_tready    (command_ready),
    .s_cmd_tdata     (state_q == Refuse || content > most_q ? '0 : content),
    .s_valid_i       (copy_valid),
    .s_ready_o       (copy_ready),
    .s_end_i         (element[ElementWidth-2]),
    .s_bad_i         (element[ElementWidth-1]),
    .s_n_literals_i  (element[LogWindow+10+:5]),
    .s_n_match_i     (element[LogWindow+1+:9]),
    .s_offset_i      (element[LogWindow:0]),
    .s_two_i         (1'b0),
    .s_n_literals2_i ('0),
    .s_n_match2_i    ('0),
    .s_offset2_i     ('0),
    .literals_n_i    (literals_n),
    .literals_begin_i(literals_begin),
    .literals_first_i('1),
    .literals_behind_i('0),
    .literals_bytes_i(literals_bytes),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

  // ---- blocks and packets -----------------------------------------------------------------------

  logic bad, back_done;
  assign s_cmd_tready = state_q == Command;
  assign block_take   = block_valid && !back_q && state_q == Run && !literals_busy;
  assign bad          = head_bad || sequences_bad || execute_bad;
  assign back_done    = back_q && !start_q && !execute_busy && !sequences_busy;
  always_ff @(posedge clk_i) begin
    if (block_take) begin
      back_q      <= 1'b1;
      ends_q      <= block.ends;
      begins_q    <= block.begins;
      free_q      <= block.from;
      raw_block_q <= block.kind == Raw && !block.sequences;
      huffman_q   <= block.kind == Huffman;
    end else if (back_done) begin
      back_q <= 1'b0;
      free_q <= ends_q;
    end else if (back_q && raw_block_q && !start_q) begin
      free_q <= {literals_row, 3'b0};
    end else if (back_q && huffman_q && !mine) begin
      free_q <= begins_q;
    end
    start_q <= block_take && clear_n_q;
    count_q <= state_q == Quiet || state_q == Clear ? count_q + 1'b1 : '0;
    unique case (state_q)
      Command:
      if (s_cmd_tvalid) begin
        most_q  <= s_cmd_tdata;
        state_q <= Begin;
      end
      Begin: state_q <= Header;
      Header: begin
        if (header && command_ready) begin
          wrong_q <= content > most_q;
          state_q <= content > most_q ? Quiet : Run;
        end
        if (head_bad) state_q <= Refuse;
      end
      Run: begin
        if (bad) begin
          wrong_q <= 1'b1;
          state_q <= Quiet;
        end else if (head_done && !back_q) state_q <= End;
      end
      Refuse: begin
        wrong_q <= 1'b1;
        if (command_ready) state_q <= End;
      end
      Quiet: if (count_q == '1) state_q <= Drain;
      Drain: if (waiting == '0) state_q <= End;
      End:   if (end_take) state_q <= Flush;
      Flush: if (ended) state_q <= Clear;
      default: if (count_q == '1) state_q <= Command;
    endcase
    if (state_q == Command) wrong_q <= 1'b0;
    if (state_q == Flush || state_q == Clear) free_q <= '0;
    clear_n_q <= rst_ni && state_q != Clear;
    if (!rst_ni || state_q == Clear) back_q <= 1'b0;
    if (!rst_ni) begin
      state_q <= Clear;
      count_q <= '0;
      free_q  <= '0;
    end
  end

endmodule
