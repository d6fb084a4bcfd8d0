// SPDX-License-Identifier: Apache-2.0
// Beats of packets, and the Ethernet, IPv4 and UDP headers as the NIC box reads and writes them:
// byte i of a beat or a header in bits 8 * i and up, numbers of more than one byte in network
// order.
package wpr_nic_pkg;

  // The codecs of a box: the parameter Codec of wpr_nic.
  localparam int unsigned Fre = 0;
  localparam int unsigned Tbq = 1;
  localparam int unsigned Bx = 2;
  localparam int unsigned Lz4 = 3;
  localparam int unsigned Zfp = 4;

  // Bytes of the frame header that the library writes with a codec.
  function automatic int unsigned frame_header_of(input int unsigned codec);
    return codec == Lz4 ? 13 : codec == Bx ? 15 : codec == Zfp ? 19 : 16;
  endfunction

  // Bytes of a value: a payload of others is not coded.
  function automatic int unsigned unit_of(input int unsigned codec);
    return codec == Lz4 ? 1 : 4;
  endfunction

  // 64 bytes of an AXI4-Stream. keep has no gaps; it is all ones but with last.
  typedef struct packed {
    logic         last;
    logic [511:0] data;
    logic [63:0]  keep;
  } beat_t;

  // A beat of an Ethernet packet. size and src stay the same over a packet, as in OpenNIC's tuser.
  typedef struct packed {
    beat_t       beat;
    logic [15:0] size;  // bytes of the packet, as its sender promises
    logic [15:0] src;
  } packet_beat_t;

  // What wpr_nic_in finds out about a packet, with each of the packet's beats.
  typedef struct packed {
    logic first;   // the packet's first beat
    logic cut;     // the packet was cut at this beat
    logic ours;    // one UDP datagram for one of our ports
    logic even;    // its payload is of whole values
    logic marked;  // its payload begins with our frame header
  } facts_t;

  // What a frame in the packet says, if it has one.
  typedef struct packed {
    logic        agree;   // its sizes agree, and the codec takes its block
    logic        stored;  // the block is the payload itself
    logic [15:0] raw;     // bytes of the payload
  } frame_t;

  // The head of a payload of zfp in one dimension: the bits of a group of 256 cells, if there is
  // more than one.
  function automatic logic [31:0] zfp_head(input logic [4:0] bits_a_value, input logic groups);
    return groups ? {17'd0, bits_a_value, 10'd0} : '0;
  endfunction

  localparam int unsigned HeaderBytes = 42;  // Ethernet 14, IPv4 20, UDP 8
  localparam int unsigned MostBeats = 256;   // of a packet; longer ones are cut and dropped

  typedef logic [8*HeaderBytes-1:0] header_t;

  function automatic logic [15:0] number_at(input header_t header, input int byte_at);
    return {header[8*byte_at+:8], header[8*byte_at+8+:8]};
  endfunction

  function automatic logic [15:0] swapped(input logic [15:0] number);
    return {number[7:0], number[15:8]};
  endfunction

  // a + b == sum, without a carry through all bits: the carry that a bit of sum needs must come
  // from the bit below.
  function automatic logic adds_up(input logic [15:0] a, input logic [15:0] b,
                                   input logic [15:0] sum);
    logic [14:0] given;
    given = (a[14:0] & b[14:0]) | ((a[14:0] | b[14:0]) & ~sum[14:0]);
    return (a ^ b ^ sum) == {given, 1'b0};
  endfunction

  // An IPv4 packet without options that holds one whole UDP datagram and nothing else.
  function automatic logic is_udp(input header_t header, input logic [15:0] size);
    return number_at(header, 12) == 16'h0800 && header[8*14+:8] == 8'h45 &&
           header[8*23+:8] == 8'd17 && (number_at(header, 20) & 16'hBFFF) == 16'd0 &&
           adds_up(number_at(header, 16), 16'd14, size) &&
           adds_up(number_at(header, 38), 16'd34, size) && size > 16'(HeaderBytes);
  endfunction

  // The datagram's destination port is one of four that are set; 0 is none.
  function automatic logic is_ours(input header_t header, input logic [3:0][15:0] ports);
    logic found;
    found = 1'b0;
    for (int i = 0; i < 4; i++) found |= ports[i] != 16'd0 && ports[i] == number_at(header, 36);
    return found;
  endfunction

  // Bytes of a beat by its keep: 1 to 64. Bit j of the size is set where keep ends within a span of
  // numbers that have bit j.
  function automatic logic [6:0] size_of(input logic [63:0] keep);
    logic [6:0] size;
    logic [64:0] until_byte;
    until_byte = {1'b0, keep};
    for (int j = 0; j < 7; j++) begin
      size[j] = 1'b0;
      for (int i = 1 << j; i <= 64; i += 2 << j) begin
        size[j] |= until_byte[i-1] && !until_byte[i+(1<<j)-1 > 64 ? 64 : i+(1<<j)-1];
      end
    end
    return size;
  endfunction

  // The keep of so many bytes; 0 stands for 64.
  function automatic logic [63:0] keep_of(input logic [5:0] size);
    logic [63:0] keep;
    for (int i = 0; i < 64; i++) keep[i] = size == '0 || 6'(i) < size;
    return keep;
  endfunction

endpackage
