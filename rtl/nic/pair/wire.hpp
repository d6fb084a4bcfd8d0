// SPDX-License-Identifier: Apache-2.0
// A wire between two ends: UDP sockets on loopback, whose datagrams are whole Ethernet packets.
// Each direction may lose, reorder and damage some, as a network does.
#pragma once

#include <array>
#include <optional>
#include <random>

#include "packet.hpp"

namespace nic {

struct Faults {
  double drop = 0, reorder = 0, corrupt = 0;
  uint64_t seed = 1;
};

class Wire {
 public:
  explicit Wire(const Faults& faults);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Into end `from` (0 or 1), by a socket, to the other one.
  void send(int from, Bytes packet);
  // The next packet at end `at`. Throws where one that was sent does not come.
  std::optional<Bytes> receive(int at);
  // Those that are held back to be overtaken go now.
  void flush(int from);

  // Of one direction.
  struct Counts {
    uint64_t packets = 0, bytes = 0;  // that were sent into it
    uint64_t dropped = 0, reordered = 0, corrupted = 0;
  };
  const Counts& counts(int from) const { return sides_[static_cast<size_t>(from)].counts; }

 private:
  struct Held {
    Bytes packet;
    int behind;  // so many others
  };
  struct Side {
    int socket = -1;
    size_t coming = 0;  // datagrams sent to it and not yet received
    std::vector<Held> held;
    Counts counts;
    std::mt19937_64 random;
  };
  Side& side(int end) { return sides_[static_cast<size_t>(end)]; }
  bool draw(Side* side, double probability);
  void write(int from, const Bytes& packet);

  const Faults faults_;
  std::array<Side, 2> sides_;
};

}  // namespace nic
