// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a collective: MPI's own or ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "recording/calls.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

struct Comm;
struct Contest;
struct Shadow;

struct Turn {
  bool own = false, trial = false;
  double start = 0, sampling_before = 0;
};
// All members name the same call, type (of a reduction, else WPR_BYTES) and size.
Contest* find_contest(Comm* comm, Call call, wpr_dtype dtype, size_t size);
Turn begin_turn(Contest* contest, Shadow* shadow);
void end_turn(Contest* contest, Shadow* shadow, const Turn& turn);
void free_contests(Comm* comm);
std::string contests_json();  // for the report

}  // namespace wirepress
