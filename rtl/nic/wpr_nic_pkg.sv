// SPDX-License-Identifier: Apache-2.0
// Ethernet, IPv4 and UDP headers as the NIC box reads and writes them: byte i of a packet in bits
// 8 * i and up, numbers of more than one byte in network order.
package wpr_nic_pkg;

  localparam int unsigned HeaderBytes = 42;  // Ethernet 14, IPv4 20, UDP 8
  localparam int unsigned MostBeats = 256;   // of a packet; longer ones are cut and dropped

  typedef logic [8*HeaderBytes-1:0] header_t;

  function automatic logic [15:0] number_at(input header_t header, input int byte_at);
    return {header[8*byte_at+:8], header[8*byte_at+8+:8]};
  endfunction

  function automatic logic [15:0] swapped(input logic [15:0] number);
    return {number[7:0], number[15:8]};
  endfunction

  // a + b == sum, without a carry through all bits: what a bit needs from the one below, that must give.
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

  // Of the settings: one of four destination ports; 0 is none.
  function automatic logic is_ours(input header_t header, input logic [3:0][15:0] ports);
    logic found;
    found = 1'b0;
    for (int i = 0; i < 4; i++) found |= ports[i] != 16'd0 && ports[i] == number_at(header, 36);
    return found;
  endfunction

  // Bytes of a beat by its tkeep, which has no gaps: 1 to 64. A bit of it is set where the keep ends
  // within one of the spans in which numbers have that bit.
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

  // tkeep of so many bytes; 0 stands for 64.
  function automatic logic [63:0] keep_of(input logic [5:0] size);
    logic [63:0] keep;
    for (int i = 0; i < 64; i++) keep[i] = size == '0 || 6'(i) < size;
    return keep;
  endfunction

endpackage
