// SPDX-License-Identifier: Apache-2.0
// Who runs a collective: this library, or MPI and why.
//
// Every member of the communicator must come to the same answer, or the call never ends. So a test
// may refuse only what is refused on all members alike (sizes, types of reductions, operations,
// nodes), or what is wrong and would fail in MPI. A test that depends on a member's own arguments
// would hang the others.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "choosing/contests.hpp"
#include "collectives/shadow.hpp"
#include "job/job.hpp"
#include "recording/calls.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {

// nullptr: MPI is to run the call.
Comm* collective_comm(MPI_Comm handle);

// The least size of what a call names: a block of those of equal blocks, which every member has as
// many of as there are members, or of neighbours, and all data of others.
size_t least_size(Call call);

struct Way {
  Shadow* shadow = nullptr;   // nullptr: MPI is to run the call, ...
  Bypass why = kUnsupported;  // ... and why
};
// `total` is equal on all members. `always`: whatever the size, and even on one node.
Way way_of(Call call, Comm* comm, size_t total, bool always);
// The same for calls of which no member knows all sizes: messages cost the same either way.
Way way_of_pairs(Comm* comm);

// Runs a collective in which all members name the same `total` and, of a reduction, the same type
// (`reduced`): by `own(shadow)` where that is allowed and was faster (or `always`), else by MPI
// (`plain(why)`).
template <typename Plain, typename Own>
int run_collective(Call call, Comm* comm, size_t total, Plain plain, Own own, bool always = false,
                   wpr_dtype reduced = WPR_BYTES) {
  const Way way = way_of(call, comm, total, always);
  if (!way.shadow) return plain(way.why);
  if (always || !job().contest) return own(way.shadow);
  Contest* contest = find_contest(comm, call, reduced, total);
  const Turn turn = begin_turn(contest, way.shadow);
  const int error = turn.own ? own(way.shadow) : plain(turn.trial ? kLearning : kNotFaster);
  end_turn(contest, way.shadow, turn);
  return error;
}

inline bool product(MPI_Count a, MPI_Count b, MPI_Count* result) {
  return a >= 0 && !__builtin_mul_overflow(a, b, result) && *result > 0;
}

}  // namespace wirepress
