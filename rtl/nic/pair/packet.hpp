// SPDX-License-Identifier: Apache-2.0
// Ethernet packets with a UDP datagram, as a host's stack makes and checks them. Sizes are without
// Ethernet's checksum (FCS), which a MAC adds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nic {

using Bytes = std::vector<uint8_t>;
using View = std::span<const uint8_t>;

constexpr size_t kHeaders = 42;       // Ethernet 14, IPv4 20, UDP 8
constexpr size_t kLeast = 60;         // Ethernet pads to it
constexpr size_t kWireOverhead = 24;  // preamble 8, FCS 4, gap 12: on the wire with each packet

// Which of a side's packets it is goes as IPv4's identification.
struct Datagram {
  uint16_t number = 0, port = 0;
  Bytes payload;
};

Bytes packet_of(const Datagram& datagram, bool from_b);

// What a host's stack gives its program. *why says what it refuses instead: lengths, protocol, a
// checksum.
bool datagram_of(View packet, Datagram* datagram, std::string* why);

// The same packet with another payload; lengths and checksums are made new.
Bytes with_payload(View packet, View payload);

// Bytes of the packet that a checksum covers: IPv4 and UDP headers, payload; not Ethernet's
// padding.
size_t covered_end(View packet);

}  // namespace nic
