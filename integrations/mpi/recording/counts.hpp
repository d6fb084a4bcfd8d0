// SPDX-License-Identifier: Apache-2.0
// What a thread counts for the report (spec/report.md).
#pragma once

#include <array>
#include <cstdint>

#include "recording/calls.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// Bytes are those to and from other nodes: what stays on a host is counted as a message only.
struct CallStats {
  uint64_t messages = 0, raw_size = 0, wire_size = 0, framed = 0;
  uint64_t modelled_size = 0;  // of wire_size: of calls that MPI ran (across.hpp)
  uint64_t received = 0, received_raw_size = 0, received_wire_size = 0, received_framed = 0;
  uint64_t device_size = 0, cores_size = 0;  // raw, where a device was asked: wpr_device_work
  double compress_seconds = 0, wait_seconds = 0, expand_seconds = 0;
  std::array<uint64_t, kBypassCount> bypass{};
};

struct Events {
  uint64_t stashed = 0, truncated = 0, corrupt = 0, no_memory = 0, orphans = 0;
  uint64_t in_pieces = 0, left = 0;  // messages sent in pieces; those whose receiver was elsewhere
};

struct Counts {
  std::array<CallStats, kCallCount> calls{};
  // Messages among ranks of a node that MPI was left by one look; add() counts them in `calls`.
  std::array<uint64_t, kCallCount> inside{};
  Events events{};

  void add(const Counts& other);
};

double now();  // seconds, monotonic

// Adds what a device, and the cores for it, do in this thread while it lives.
class DeviceShare {
 public:
  explicit DeviceShare(CallStats* call) : call_(call) { wpr_get_device_work(&before_); }
  DeviceShare(const DeviceShare&) = delete;
  DeviceShare& operator=(const DeviceShare&) = delete;
  ~DeviceShare() {
    wpr_device_work work;
    wpr_get_device_work(&work);
    call_->device_size += work.device_bytes - before_.device_bytes;
    call_->cores_size += work.cores_bytes - before_.cores_bytes;
  }

 private:
  CallStats* call_;
  wpr_device_work before_;
};

// One line on stderr, the first time only.
void complain(const char* sentence);

}  // namespace wirepress
