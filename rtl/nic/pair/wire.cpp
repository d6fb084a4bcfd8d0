// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace nic {
namespace {

constexpr size_t kLargestPacket = 1 << 15;
constexpr int kSecondsToCome = 5;  // on loopback a datagram is there when it has been sent
constexpr int kFarthestBehind = 8;
constexpr size_t kIp = 14;  // Ethernet's header has no checksum but the FCS, which a MAC looks at

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string("UDP on 127.0.0.1: ") + what);
}

int bound_socket(sockaddr_in* address) {
  const int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0) fail("socket");
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  const timeval patience = {.tv_sec = kSecondsToCome, .tv_usec = 0};
  if (bind(made, reinterpret_cast<sockaddr*>(address), size) != 0 ||
      getsockname(made, reinterpret_cast<sockaddr*>(address), &size) != 0 ||
      setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0) {
    close(made);
    fail("bind");
  }
  return made;
}

}  // namespace

Wire::Wire(const Faults& faults) : faults_(faults) {
  sockaddr_in addresses[2];
  for (int i = 0; i < 2; ++i) {
    side(i).socket = bound_socket(&addresses[i]);
    side(i).random.seed(2 * faults.seed + static_cast<uint64_t>(i));
  }
  for (int i = 0; i < 2; ++i)
    if (connect(side(i).socket, reinterpret_cast<sockaddr*>(&addresses[1 - i]),
                sizeof(addresses[0])) != 0)
      fail("connect");
}

Wire::~Wire() {
  for (const Side& side : sides_)
    if (side.socket >= 0) close(side.socket);
}

bool Wire::draw(Side* side, double probability) {
  return probability > 0 && std::bernoulli_distribution(probability)(side->random);
}

void Wire::send(int from, Bytes packet) {
  Side& side = this->side(from);
  ++side.counts.packets;
  side.counts.bytes += packet.size();
  if (draw(&side, faults_.drop)) {
    ++side.counts.dropped;
    return;
  }
  if (draw(&side, faults_.corrupt)) {
    ++side.counts.corrupted;
    const size_t bit = side.random() % (8 * (covered_end(packet) - kIp));
    packet[kIp + bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
  if (draw(&side, faults_.reorder)) {
    ++side.counts.reordered;
    side.held.push_back({std::move(packet), 1 + static_cast<int>(side.random() % kFarthestBehind)});
    return;
  }
  write(from, packet);
  std::vector<Held> held = std::move(side.held);
  side.held.clear();
  for (Held& late : held) {
    if (--late.behind == 0) {
      write(from, late.packet);
    } else {
      side.held.push_back(std::move(late));
    }
  }
}

void Wire::flush(int from) {
  for (const Held& late : side(from).held) write(from, late.packet);
  side(from).held.clear();
}

void Wire::write(int from, const Bytes& packet) {
  if (::send(side(from).socket, packet.data(), packet.size(), 0) !=
      static_cast<ssize_t>(packet.size()))
    fail("send");
  ++side(1 - from).coming;
}

std::optional<Bytes> Wire::receive(int at) {
  Side& side = this->side(at);
  if (side.coming == 0) return std::nullopt;
  Bytes packet(kLargestPacket);
  const ssize_t size = recv(side.socket, packet.data(), packet.size(), 0);
  if (size < 0) fail("a datagram that was sent does not come");
  --side.coming;
  packet.resize(static_cast<size_t>(size));
  return packet;
}

}  // namespace nic
