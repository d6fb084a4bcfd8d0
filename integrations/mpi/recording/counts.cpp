// SPDX-License-Identifier: Apache-2.0
#include "recording/counts.hpp"

#include <atomic>
#include <cstdio>
#include <ctime>

#include "job/job.hpp"

namespace wirepress {
namespace {

void add(CallStats* to, const CallStats& from) {
  using C = CallStats;
  for (auto count : {&C::messages, &C::raw_size, &C::wire_size, &C::modelled_size, &C::framed,
                     &C::received, &C::received_raw_size, &C::received_wire_size,
                     &C::received_framed, &C::device_size, &C::cores_size}) {
    to->*count += from.*count;
  }
  for (auto seconds : {&C::compress_seconds, &C::wait_seconds, &C::expand_seconds}) {
    to->*seconds += from.*seconds;
  }
  for (size_t i = 0; i < kBypassCount; ++i) to->bypass[i] += from.bypass[i];
}

}  // namespace

void Counts::add(const Counts& other) {
  using E = Events;
  for (size_t i = 0; i < kCallCount; ++i) {
    wirepress::add(&calls[i], other.calls[i]);
    calls[i].messages += other.inside[i];
    calls[i].bypass[kSameHost] += other.inside[i];
  }
  for (auto count : {&E::stashed, &E::truncated, &E::corrupt, &E::no_memory, &E::orphans,
                     &E::in_pieces, &E::left}) {
    events.*count += other.events.*count;
  }
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
