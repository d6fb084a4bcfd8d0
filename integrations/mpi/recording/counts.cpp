// SPDX-License-Identifier: Apache-2.0
#include "recording/counts.hpp"

#include <atomic>
#include <cstdio>
#include <ctime>

#include "job/job.hpp"

namespace wirepress {
namespace {

void add(CallStats* to, const CallStats& from) {
  to->messages += from.messages;
  to->raw_size += from.raw_size;
  to->wire_size += from.wire_size;
  to->modelled_size += from.modelled_size;
  to->framed += from.framed;
  to->received += from.received;
  to->received_raw_size += from.received_raw_size;
  to->received_wire_size += from.received_wire_size;
  to->received_framed += from.received_framed;
  to->compress_seconds += from.compress_seconds;
  to->wait_seconds += from.wait_seconds;
  to->expand_seconds += from.expand_seconds;
  for (size_t i = 0; i < kBypassCount; ++i) to->bypass[i] += from.bypass[i];
}

}  // namespace

void Counts::add(const Counts& other) {
  for (size_t i = 0; i < kCallCount; ++i) wirepress::add(&calls[i], other.calls[i]);
  events.stashed += other.events.stashed;
  events.truncated += other.events.truncated;
  events.corrupt += other.events.corrupt;
  events.no_memory += other.events.no_memory;
  events.orphans += other.events.orphans;
  events.in_pieces += other.events.in_pieces;
  events.left += other.events.left;
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void complain(const char* sentence) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(stderr, "wirepress: rank %d: %s (said once; the report counts)\n", job().rank,
               sentence);
}

}  // namespace wirepress
