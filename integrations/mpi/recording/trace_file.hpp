// SPDX-License-Identifier: Apache-2.0
// The file of a trace (spec/trace.md).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "job/comms.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// A call, as the file has it.
struct TraceRecord {
  uint64_t begin = 0, end = 0;  // ns since the file's origin
  uint64_t count = 0, sent = 0, received = 0;
  uint64_t request = 0;
  int32_t peer = MPI_PROC_NULL, tag = 0;
  uint32_t comm = 0;
  uint8_t call = 0, flags = 0, dtype = 0, op = 0;
};
static_assert(sizeof(TraceRecord) == 64);

enum TraceFlag : uint8_t {
  kTraceReceiveHalf = 1,  // of an exchange whose other half is the record before
  kTraceStarted = 2,      // a persistent request was started
  kTraceFailed = 4,
  kTraceInPlace = 8,
  kTracePerNeighbor = 16,  // bytes are those of one neighbour
  kTraceUnknown = 32,      // bytes are not known
  kTraceCancelled = 64,
};

// Collective over the world, if the options want a trace. Before g_mode is set.
void start_trace();
// The same, before PMPI_Finalize.
void end_trace();
// Of this rank's trace, for the report; "" without one.
std::string trace_json();
uint64_t trace_stamp();
void write_record(const TraceRecord& record);
// Its number in this file; the first use describes it there.
uint32_t trace_comm(Comm* comm);
bool samples_wanted();
// A payload that is about to be sent may be one of the samples.
void take_sample(Call call, const void* buffer, uint64_t count, MPI_Datatype type);

}  // namespace wirepress
