// SPDX-License-Identifier: Apache-2.0
#include "packet.hpp"

#include <algorithm>

namespace nic {
namespace {

constexpr size_t kIp = 14, kUdp = 34;
constexpr uint16_t kSourcePort = 4000;
constexpr uint8_t kUdpProtocol = 17;

uint16_t load(View bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}
void store(Bytes* bytes, size_t at, size_t value) {
  (*bytes)[at] = static_cast<uint8_t>(value >> 8);
  (*bytes)[at + 1] = static_cast<uint8_t>(value);
}

// The ones' complement sum of RFC 1071, of 16-bit words.
uint32_t sum16(View bytes, uint32_t sum = 0) {
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load(bytes, i);
  if (bytes.size() % 2 == 1) sum += static_cast<uint32_t>(bytes.back()) << 8;
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum;
}

// Of UDP with its pseudo header.
uint32_t udp_sum(View packet, size_t end) {
  const size_t size = end - kUdp;
  const uint32_t addresses = sum16(packet.subspan(kIp + 12, 8));
  return sum16(packet.subspan(kUdp, size), addresses + kUdpProtocol + static_cast<uint32_t>(size));
}

// Lengths and checksums of a packet whose payload ends where the bytes do; then the padding.
void finish(Bytes* packet) {
  const size_t end = packet->size();
  store(packet, kIp + 2, end - kIp);
  store(packet, kUdp + 4, end - kUdp);
  store(packet, kIp + 10, 0);
  store(packet, kUdp + 6, 0);
  store(packet, kIp + 10, 0xFFFF - sum16(View(*packet).subspan(kIp, 20)));
  const uint32_t udp = 0xFFFF - udp_sum(*packet, end);
  store(packet, kUdp + 6, udp == 0 ? 0xFFFF : udp);
  packet->resize(std::max(end, kLeast));
}

bool refuse(std::string* why, const char* reason) {
  *why = reason;
  return false;
}

}  // namespace

Bytes packet_of(const Datagram& datagram, bool from_b) {
  const uint8_t from = from_b ? 2 : 1, to = from_b ? 1 : 2;
  Bytes packet = {2, 0, 0,    0, 0,  to,           2, 0, 0,  0, 0, from, 8,  0, 0x45, 0, 0, 0,
                  0, 0, 0x40, 0, 64, kUdpProtocol, 0, 0, 10, 0, 0, from, 10, 0, 0,    to};
  packet.resize(kHeaders);
  store(&packet, kIp + 4, datagram.number);
  store(&packet, kUdp, kSourcePort);
  store(&packet, kUdp + 2, datagram.port);
  packet.insert(packet.end(), datagram.payload.begin(), datagram.payload.end());
  finish(&packet);
  return packet;
}

bool datagram_of(View packet, Datagram* datagram, std::string* why) {
  if (packet.size() < kLeast) return refuse(why, "shorter than Ethernet's 60 bytes");
  if (load(packet, 12) != 0x0800 || packet[kIp] != 0x45) return refuse(why, "not IPv4");
  if (sum16(packet.subspan(kIp, 20)) != 0xFFFF) return refuse(why, "IPv4's checksum is wrong");
  const size_t end = kIp + load(packet, kIp + 2);
  if (end < kHeaders || end > packet.size() || std::max(end, kLeast) != packet.size())
    return refuse(why, "IPv4's length is not the packet's");
  if (packet[kIp + 9] != kUdpProtocol) return refuse(why, "not UDP");
  if (load(packet, kUdp + 4) != end - kUdp) return refuse(why, "UDP's length is not IPv4's");
  if (load(packet, kUdp + 6) != 0 && udp_sum(packet, end) != 0xFFFF)
    return refuse(why, "UDP's checksum is wrong");
  datagram->number = load(packet, kIp + 4);
  datagram->port = load(packet, kUdp + 2);
  datagram->payload.assign(packet.begin() + kHeaders, packet.begin() + static_cast<ptrdiff_t>(end));
  return true;
}

Bytes with_payload(View packet, View payload) {
  Bytes made(kHeaders + payload.size());
  std::copy_n(packet.begin(), kHeaders, made.begin());
  std::copy(payload.begin(), payload.end(), made.begin() + kHeaders);
  finish(&made);
  return made;
}

size_t covered_end(View packet) { return kIp + load(packet, kIp + 2); }

}  // namespace nic
