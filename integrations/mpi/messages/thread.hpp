// SPDX-License-Identifier: Apache-2.0
// One thread's own: codecs, buffers and counts, which no other thread waits for.
#pragma once

#include <array>

#include "messages/buffer.hpp"
#include "messages/devices.hpp"
#include "recording/counts.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

inline constexpr size_t kMaxCandidates = 64;

struct Thread : Counts {
  std::array<wpr_ctx*, kMaxCandidates> ctx{};  // by candidate, made when it is first used
  wpr_ctx* decoder = nullptr;
  Buffer frame;   // outgoing
  Buffer wire;    // incoming, moved out of the way of what it expands to
  Buffer packed;  // outgoing, without the gaps of its type
  Buffer sample;
  DeviceRoom sample_there;
};
extern constinit thread_local Thread* t_thread;
Thread* make_thread();
inline Thread& self_thread() { return *(t_thread ? t_thread : make_thread()); }
inline CallStats& stats(Call call) { return self_thread().calls[call]; }
// Runs an MPI call that waits for the network, and counts how long it took.
template <typename Body>
int timed(Call call, Body body) {
  const double start = now();
  const int error = body();
  stats(call).wait_seconds += now() - start;
  return error;
}
Counts count_all();  // of all threads, those that ended too

// nullptr: no memory.
wpr_ctx* context(Thread& thread, int candidate);
wpr_ctx* decoder(Thread& thread);

}  // namespace wirepress
