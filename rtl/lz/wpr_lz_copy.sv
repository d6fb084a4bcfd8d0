// SPDX-License-Identifier: Apache-2.0
// The copy engine of LZ77 decoders: elements in, each of literals and a match behind them; a packet
// of bytes out, `Bytes` a beat. The literals themselves come beside, before their element
// (wpr_lz_literals).
//
// With 8 bytes a clock makes the end of a match and the literals behind it, or literals, their match
// and the literals behind that; the history is read for one match. With two Matches a clock it makes
// as much of the next element, too, as fits; a second match reads history in two clocks of three.
// With 16 it makes two pieces of elements, of which one is cut where it would have more than 16 bytes;
// the history is stored twice. What a clock makes: wpr_lz_single, wpr_lz_double, wpr_lz_pairs. Where
// the bytes come from: wpr_lz_bytes.
//
// An offset of 0 or beyond the packet's first byte, and a byte more than the packet may have, end
// the packet with m_axis_tuser set beside m_axis_tlast. So does an element that says so. Its bytes
// are then not to be used, and never more than the packet may have. Elements up to the next end are
// thrown away.
//
// Rate: `Bytes` a clock at most; with 8 an element takes a clock or more, or less where its literals
// fit behind the match before; with two Matches none, where all of it does. Latency 11 clocks with 8,
// 16 with 16. Nothing behind the first stage stops; a queue takes what is on its way.
module wpr_lz_copy #(
  parameter int unsigned Bytes = 8,  // a clock: 8 or 16
  parameter int unsigned Matches = Bytes / 8,  // a clock: 1 or 2, with 16 bytes 2
  parameter int unsigned SizeWidth = 23,  // bits of a packet's size
  parameter int unsigned LogWindow = 16,  // offsets are up to 2^LogWindow,
  parameter int unsigned OffsetWidth = LogWindow,  // where so many bits can say that
  parameter bit Exact = 1'b0  // a packet that has fewer bytes than it may is not valid
) (
  input logic clk_i,
  input logic rst_ni,  // synchronous

  input  logic                 s_cmd_tvalid,
  output logic                 s_cmd_tready,
  input  logic [SizeWidth-1:0] s_cmd_tdata,   // bytes that the next packet may have

  input  logic        s_valid_i,
  output logic        s_ready_o,
  input  logic        s_end_i,         // of the packet: no literal and no match
  input  logic        s_bad_i,         // with s_end_i: the packet is not valid
  input  logic [ 4:0] s_n_literals_i,  // with 16 bytes a clock 16 at most
  input  logic [ 8:0] s_n_match_i,     // bytes, or 0
  input  logic [OffsetWidth-1:0] s_offset_i,
  // With two Matches: another element behind it; with 16 bytes a clock each of both has 16 bytes at
  // most, with 8 the second has no literals.
  input  logic        s_two_i,
  input  logic [ 4:0] s_n_literals2_i,
  input  logic [ 6:0] s_n_match2_i,
  input  logic [OffsetWidth-1:0] s_offset2_i,

  input logic [$clog2(Bytes):0] literals_n_i,      // 0 to Bytes come: bytes_i from begin_i on,
  input logic [$clog2(Bytes):0] literals_begin_i,  // 0 to Bytes
  input logic [      Bytes-1:0] literals_first_i,  // as in wpr_lz_literals
  input logic [$clog2(Bytes):0] literals_behind_i,
  input logic [   16*Bytes-1:0] literals_bytes_i,

  output logic               m_axis_tvalid,
  input  logic               m_axis_tready,
  output logic [8*Bytes-1:0] m_axis_tdata,
  output logic [  Bytes-1:0] m_axis_tkeep,   // all ones but with tlast; none with tuser or no byte
  output logic               m_axis_tlast,
  output logic               m_axis_tuser    // with tlast: the packet was not valid
);

  logic ready, reads, valid1, end1, bad1;
  logic [3:0][$clog2(Bytes):0] ends1;
  logic [Matches-1:0][OffsetWidth-1:0] offset1;
  logic [$clog2(Bytes):0] n_literals1;

  if (Bytes == 16) begin : g_two
    wpr_lz_pairs #(.OffsetWidth(OffsetWidth)) pairs (
      .clk_i,
      .rst_ni,
      .s_valid_i,
      .s_ready_o,
      .s_end_i,
      .s_bad_i,
      .s_two_i,
      .s_n_literals_i({s_n_literals2_i, s_n_literals_i}),
      .s_n_match_i,
      .s_n_match2_i  (s_n_match2_i[4:0]),
      .s_offset_i    ({s_offset2_i, s_offset_i}),
      .ready_i       (ready),
      .m_valid_o     (valid1),
      .m_end_o       (end1),
      .m_bad_o       (bad1),
      .m_ends_o      (ends1),
      .m_offset_o    (offset1),
      .m_n_literals_o(n_literals1)
    );
  end else if (Matches == 2) begin : g_double
    wpr_lz_double #(.OffsetWidth(OffsetWidth)) double (
      .clk_i,
      .rst_ni,
      .s_valid_i,
      .s_ready_o,
      .s_end_i,
      .s_bad_i,
      .s_two_i,
      .s_n_literals_i,
      .s_n_match_i,
      .s_n_match2_i,
      .s_offset_i    ({s_offset2_i, s_offset_i}),
      .ready_i       (ready),
      .reads_i       (reads),
      .m_valid_o     (valid1),
      .m_end_o       (end1),
      .m_bad_o       (bad1),
      .m_ends_o      (ends1),
      .m_offset_o    (offset1),
      .m_n_literals_o(n_literals1)
    );
  end else begin : g_one
    wpr_lz_single #(.OffsetWidth(OffsetWidth)) single (
      .clk_i,
      .rst_ni,
      .s_valid_i,
      .s_ready_o,
      .s_end_i,
      .s_bad_i,
      .s_n_literals_i,
      .s_n_match_i,
      .s_offset_i,
      .ready_i       (ready),
      .m_valid_o     (valid1),
      .m_end_o       (end1),
      .m_bad_o       (bad1),
      .m_ends_o      (ends1),
      .m_offset_o    (offset1),
      .m_n_literals_o(n_literals1)
    );
  end

  wpr_lz_bytes #(
    .Bytes      (Bytes),
    .Matches    (Matches),
    .Shared     (Bytes == 8 && Matches == 2),
    .SizeWidth  (SizeWidth),
    .LogWindow  (LogWindow),
    .OffsetWidth(OffsetWidth),
    .Exact      (Exact)
  ) bytes (
    .clk_i,
    .rst_ni,
    .s_cmd_tvalid,
    .s_cmd_tready,
    .s_cmd_tdata,
    .ready_o       (ready),
    .reads_o       (reads),
    .s_valid_i     (valid1),
    .s_end_i       (end1),
    .s_bad_i       (bad1),
    .s_ends_i      (ends1),
    .s_offset_i    (offset1),
    .s_n_literals_i(n_literals1),
    .literals_n_i,
    .literals_begin_i,
    .literals_first_i,
    .literals_behind_i,
    .literals_bytes_i,
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast,
    .m_axis_tuser
  );

endmodule
