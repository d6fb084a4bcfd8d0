// SPDX-License-Identifier: Apache-2.0
// One end of the wire: a simulated box, or the library in its place.
#pragma once

#include <deque>
#include <memory>

#include "library.hpp"

namespace nic {

struct Timed {
  Bytes packet;
  uint64_t first = 0, last = 0;  // clocks of its first and its last beat
};

// What a box's registers count; the library counts in their terms.
struct Counted {
  uint64_t coded = 0, stored = 0, passed = 0, dropped = 0;
  uint64_t expanded = 0, host_passed = 0, host_dropped = 0;
};

constexpr size_t kMostLanes = 64;

struct Settings {
  bool on = true;           // else packets pass
  uint8_t codec = 0;        // the box's bits 8 to 15 of its control register
  uint16_t port = 0;        // whose datagrams are compressed
  uint16_t largest = 9600;  // packet that may leave
  double pause = 0;         // in how many clocks each stream's source and sink pause
  double line = 0;          // Gb/s of the wire; 0: as fast as it goes
  size_t lanes = 0;         // from the host, with one wire; 0: a box
  uint64_t seed = 1;
};

class End {
 public:
  virtual ~End() = default;
  virtual void from_host(Bytes packet) = 0;
  virtual void from_wire(Bytes packet) = 0;
  // Clock `now`. True: something has moved.
  virtual bool clock(uint64_t now) = 0;
  virtual Counted counted() = 0;
  std::deque<Timed> to_wire, to_host;
  uint64_t begun = 0;  // the clock in which the first packet from the host came
};

// Models of rtl/nic/: "fre", "bx", "lz4", "tbq" or "zfp", with the library's frame header in their
// registers. Null: there is no such box.
std::unique_ptr<End> simulated(const std::string& codec, const Settings& settings,
                               Library* library);
// rtl/nic/wpr_nic_lanes.sv, of "lz4", "tbq" or "zfp": nothing may come from the wire.
std::unique_ptr<End> lanes(const std::string& codec, const Settings& settings, Library* library);
std::unique_ptr<End> software(const Settings& settings, Library* library);

}  // namespace nic
