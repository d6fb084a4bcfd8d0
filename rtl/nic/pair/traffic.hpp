// SPDX-License-Identifier: Apache-2.0
// What two hosts send each other, and whether it arrives as it must.
#pragma once

#include "options.hpp"

namespace nic {

// What became of the packets of one direction.
struct Flow {
  uint64_t sent = 0, delivered = 0, refused = 0, dropped = 0, corrupted = 0, reordered = 0;
  uint64_t host_bytes = 0, wire_bytes = 0;  // of packets, before anything was lost
  uint64_t raw_bytes = 0, code_bytes = 0;   // of payloads that were coded, and of their codes
  // From the first packet's beginning in to the last one's end out, and to the first one's
  // beginning.
  uint64_t clocks = 0, latency = 0;
  double gbps = 0;   // of host packets that were delivered, at 250 MHz
  Counted from, to;  // by the ends
};

struct Row {
  std::string size, data;
  Flow flows[2];
};

// Packets of these sizes and kinds, drawn at random, in both directions at once. `box` makes what a
// box makes, `host` is a host's without a box. Throws where a packet is not as it must be, or
// nothing moves any more.
Row exchanged(const Options& options, const std::vector<size_t>& sizes,
              const std::vector<Data>& data, Library* box, Library* host);

}  // namespace nic
