// SPDX-License-Identifier: Apache-2.0
// Chooses a candidate for each message by what was learnt from messages like it.
#pragma once

#include <cstddef>
#include <string>

#include "job/job.hpp"
#include "messages/types.hpp"
#include "recording/calls.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// In the place of a candidate.
inline constexpr int kRaw = -1;          // the message does not shrink
inline constexpr int kRawFaster = -2;    // it shrinks, but sending it raw takes less time
inline constexpr int kUntaken = -3;      // mpi_codec has no way to code this type without loss
inline constexpr int kUnknownLink = -4;  // the link could not be measured
inline constexpr int kUntried = -5;      // some candidates were not tried yet, the others lost
Bypass bypass_of(int choice);            // of one of the above

// Messages that are alike: caller, call, element type, size class, node they go to, and whether
// they lie in memory of a device (`there`), where codecs are as fast as they are there.
struct Site;
Site* find_site(Call call, wpr_dtype dtype, size_t size, int node, bool there = false);

// What works at the same time while a message is on its way.
enum class Overlap : uint8_t {
  kNone,    // it is coded, then sent, then expanded
  kStages,  // it goes in parts: one host codes, the wire moves and the other host expands them
  kOneCore  // the same, and this core also expands what the other one codes
};
struct Choice {
  int candidate = kRaw;         // negative: send the message raw
  double ratio = 1;             // that the candidate is expected to shrink it by
  double sampling_seconds = 0;  // spent on trying candidates
};
// `anew`: tries all candidates again.
Choice choose(Site* site, const Byte* data, size_t size, const Type& type, Overlap overlap,
              bool anew = false);
// What became of the message: `wire_size` 0: it did not shrink. `seconds` in the codec; 0: it was
// not asked.
void learn_outcome(Site* site, int candidate, size_t size, size_t wire_size, double seconds);
std::string sites_json();  // for the report: the sites that moved most, largest first

// Where the program called MPI; set by the exported functions.
extern constinit thread_local const void* t_caller;
#define WPR_NOTE_CALLER t_caller = __builtin_return_address(0)

}  // namespace wirepress
