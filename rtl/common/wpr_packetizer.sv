// SPDX-License-Identifier: Apache-2.0
// Cuts a byte stream, whose tlast ends a message, into blocks: packets of at most cfg_beats_i + 1
// beats behind a header of 8 bytes; a message's last block holds the rest. A block leaves when it
// is whole, since its size stands in front of it.
//
// Header, little endian: 32 bits as a block word of spec/frame.md (size in bits 0-28; bit 30, last
// of the message; bit 31, raw), 16 bits of block number, which runs on over messages, and 16 of
// which bit 0 says first of the message.
//
// tkeep is all ones but with tlast, where it is without gaps.
module wpr_packetizer #(
  parameter int unsigned Bytes    = 64,  // a beat's; 16 or more
  parameter int unsigned LogDepth = 9,   // beats that are kept, a block's at least
  localparam int unsigned Log = $clog2(Bytes)
) (
  input  logic                clk_i,
  input  logic                rst_ni,         // synchronous
  input  logic [LogDepth-1:0] cfg_beats_i,    // of a block, less one; changes between messages
  input  logic                s_axis_tvalid,
  output logic                s_axis_tready,
  input  logic [ 8*Bytes-1:0] s_axis_tdata,
  input  logic [   Bytes-1:0] s_axis_tkeep,
  input  logic                s_axis_tlast,
  output logic                m_axis_tvalid,
  input  logic                m_axis_tready,
  output logic [ 8*Bytes-1:0] m_axis_tdata,
  output logic [   Bytes-1:0] m_axis_tkeep,
  output logic                m_axis_tlast
);

  // ---- cut, and the bytes of a block counted ----------------------------------------------------

  logic v_q, last_q, ends_q, go;
  logic [8*Bytes-1:0] data_q;
  logic [Log:0] size_q, size;
  logic [LogDepth-1:0] beat_q, next_q;  // its place in its block, and that of the one behind it
  logic ends, first_q;
  wpr_size #(.Bytes(Bytes)) count (.keep_i(s_axis_tkeep), .size_o(size));
  assign ends          = s_axis_tlast || next_q == cfg_beats_i;
  assign s_axis_tready = go || !v_q;
  always_ff @(posedge clk_i) begin
    if (s_axis_tready) begin
      v_q    <= s_axis_tvalid;
      data_q <= s_axis_tdata;
      last_q <= s_axis_tlast;
      size_q <= s_axis_tlast ? size : (Log + 1)'(Bytes);
      ends_q <= ends;
      beat_q <= next_q;
      if (s_axis_tvalid) next_q <= ends ? '0 : next_q + 1'b1;
    end
    if (!rst_ni) begin
      v_q    <= 1'b0;
      next_q <= '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) first_q <= 1'b1;
    else if (v_q && go && ends_q) first_q <= last_q;
  end

  localparam int unsigned SizeBits = LogDepth + Log + 1;
  logic b_valid, b_ready, b_first, b_last, first, last;
  logic [8*Bytes-1:0] b_data;
  logic [SizeBits-1:0] b_size;
  wpr_packet_fifo #(.Width(8 * Bytes), .Meta(SizeBits + 2), .LogDepth(LogDepth)) blocks (
    .clk_i,
    .rst_ni,
    .s_valid_i(v_q),
    .s_ready_o(go),
    .s_data_i (data_q),
    .s_last_i (ends_q),
    .s_drop_i (1'b0),
    .s_meta_i ({first_q, last_q, SizeBits'({beat_q, {Log{1'b0}}}) + SizeBits'(size_q)}),
    .m_valid_o(b_valid),
    .m_ready_i(b_ready),
    .m_data_o (b_data),
    .m_first_o(b_first),
    .m_last_o (b_last),
    .m_meta_o ({first, last, b_size}),
    .dropped_o(),
    .s_ample_o()
  );

  // ---- header, and tkeep again ------------------------------------------------------------------

  logic [15:0] number_q;
  logic [Bytes-1:0] keep;
  logic h_ready;
  wpr_keep #(.Bytes(Bytes)) last_keep (
    .size_i(b_last ? b_size[Log-1:0] : '0),
    .keep_o(keep)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) number_q <= '0;
    else if (h_ready) number_q <= number_q + 1'b1;
  end
  wpr_prepend #(.Bytes(Bytes), .Header(8)) prepend (
    .clk_i,
    .rst_ni,
    .h_valid_i    (b_first),
    .h_ready_o    (h_ready),
    .h_data_i     ({15'b0, first, number_q, 1'b1, last, 30'(b_size)}),
    .s_axis_tvalid(b_valid),
    .s_axis_tready(b_ready),
    .s_axis_tdata (b_data),
    .s_axis_tkeep (keep),
    .s_axis_tlast (b_last),
    .m_axis_tvalid,
    .m_axis_tready,
    .m_axis_tdata,
    .m_axis_tkeep,
    .m_axis_tlast
  );

endmodule
