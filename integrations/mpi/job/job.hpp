// SPDX-License-Identifier: Apache-2.0
// The job that this rank belongs to, and its options. Read README.md first.
//
// The library runs inside other people's programs: no function throws, prints or ends the process,
// and no lock is held across a blocking MPI call.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace wirepress {

using Byte = unsigned char;

// The one object of its type. Never destroyed: programs call MPI from their own exit handlers.
template <typename T>
T& the() {
  static auto* object = new T;
  return *object;
}

enum Mode : int {
  kInert,  // every call goes straight through
  kOn,
};
// Written by MPI_Init and MPI_Finalize only.
extern std::atomic<int> g_mode;

inline constexpr size_t kCookieSize = 16, kJobSize = 8;
inline constexpr size_t kUsualThreshold = 64 << 10, kUsualBlockThreshold = 16 << 10;

// Tags on Job::self by use; each use counts through kTagMask + 1 tags.
inline constexpr int kTagDeliver = 0, kTagMessage = 0x2000, kTagRequest = 0x4000;
inline constexpr int kTagMask = 0x1FFF;

// What mpi_error allows results to differ by.
struct Bound {
  wpr_error_kind kind = WPR_ERROR_NONE;
  double value = 0;
};

struct Job {
  int rank = 0, size = 1;
  // MPI_THREAD_MULTIPLE, of MPI_Init or of a session: a session may begin at any time, and its
  // threads call MPI beside those of MPI_COMM_WORLD, of which `world_multiple` speaks.
  std::atomic<bool> multiple{false};
  bool world_multiple = false;
  // The first kJobSize bytes are the job's own, all jobs of one `wirepress run` share the others.
  // So a frame with a foreign first half and our second half is another job's.
  Byte cookie[kCookieSize] = {};
  std::vector<int> node;  // of each world rank; with mpi_same_host each rank is a node of its own
  MPI_Comm self = MPI_COMM_NULL;    // private: messages of a rank to itself
  MPI_Comm pieces = MPI_COMM_NULL;  // private: all pieces of a message but the first
  std::string host, state = "off", reason;
  std::string rendezvous;  // the address that answered
  bool must_end = false;   // `engine` ends in "!", and its device cannot be set up

  // options
  std::string codec = "auto", engine, report_file, link, error;
  double fixed_link = 0;  // bytes a second of every link, by `link`; 0: links are measured
  bool compress = true;   // false: only traces
  std::string trace;      // the folder of traces, "": none
  uint64_t trace_sample = 0;
  Bound bound;
  size_t pieces_from = 1 << 20;
  // Least sizes of messages, and of blocks of Alltoall, Gather and Scatter. `by_link` lowers that
  // of point-to-point messages where the link is slow.
  size_t threshold = kUsualThreshold, block_threshold = kUsualBlockThreshold;
  bool by_link = true;
  size_t chunk = 60 << 10, partitions = 4;
  bool deterministic = false;
  bool nonblocking = false;
  bool collectives = true, same_host = false, checksum = false, trust = false, contest = true;
};
inline Job& job() { return the<Job>(); }

// A number that only threads which call MPI at the same time have to change in one piece.
template <typename N>
void bump(std::atomic<N>* number, N n) {
  if (job().multiple) {
    number->fetch_add(n, std::memory_order_relaxed);
  } else {
    number->store(number->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
}

inline int own_node() { return job().node[static_cast<size_t>(job().rank)]; }

}  // namespace wirepress
