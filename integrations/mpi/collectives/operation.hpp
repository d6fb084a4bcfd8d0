// SPDX-License-Identifier: Apache-2.0
// One collective on this rank: its chunks, and what they cost.
//
// Inside a node MPI's own collectives are used; between nodes the first rank of each (the leader)
// moves chunks, compressing chunk c+1 while chunk c is on its way. An Allreduce over nodes of equal
// size is cut in lanes: every rank of a node moves a part of its own. On these private
// communicators both ends know a chunk's raw size: a chunk that arrives shorter is a frame, one
// that arrives whole is raw. Whether a collective goes this way follows from values that are equal
// on every member alone, or that members agreed on, and the order of a reduction from the number of
// nodes alone (of two nodes' numbers either order gives the same): two runs give the same bits.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>

#include "choosing/links.hpp"
#include "choosing/sites.hpp"
#include "collectives/shadow.hpp"
#include "messages/thread.hpp"
#include "messages/types.hpp"

namespace wirepress {

inline constexpr size_t kLeastSegment = 16 << 10;  // smaller ones wait for latency, not the link
inline constexpr size_t kMostAtOnce = size_t{1} << 30;  // bytes: counts of MPI calls are int
inline constexpr int kTag = 1;

// choose() for a collective on the communicator.
Choice choose_in(Shadow* shadow, Site* site, Call call, const Byte* data, size_t size,
                 const Type& type);

class Operation {
 public:
  Operation(Call call, Comm* comm, Shadow* shadow, const Type& type);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  Shadow& shadow() const { return *shadow_; }
  const Type& type() const { return type_; }
  size_t chunk() const { return chunk_; }
  int error() const { return error_; }
  bool leads() const { return shadow_->node_rank == 0; }

  // Looks at a sample of what this rank has to send over kLeadersLink or kCollectiveLink.
  void look(const Byte* data, size_t size, int link = kLeadersLink);
  // How much what look() saw is expected to shrink, on the rank of the lane where it shrinks least.
  // `here`: this rank's data are in memory of the cores; else 1, as what is on a device needs
  // memory beside it for each chunk. Collective over the lane.
  double agreed_ratio(bool here);
  // Makes chunks larger where they shrink so much, so that MPI moves fewer of them: they need no
  // more room on their way than those that do not shrink. Equal on all ranks of the lane.
  void widen(double ratio);
  // Room for kInFlight + 1 chunks, if they were made larger, else nullptr. Not for calls that have
  // a Room.
  Byte* wide_room() const { return chunk_ > job().chunk ? shadow_->room.data() : nullptr; }

  void check(int error) {
    if (error && !error_) error_ = error;
  }
  template <typename Body>
  void timed(Body body) {
    check(wirepress::timed(call_, body));
  }

  // The chunk as it travels: a frame in `frame`, or the data itself.
  size_t compress(const Byte* data, size_t size, Buffer* frame);
  // Where MPI finds it: the frame, or the data, of those on a device a copy in `frame`. Without
  // that nothing is sent, which is an error for who receives it.
  const Byte* wire_of(const Byte* data, size_t size, Buffer* frame, size_t* wire_size);
  void send(const Byte* wire, size_t wire_size, size_t raw_size, int to, MPI_Request* request);
  void receive(Byte* buffer, size_t size, int from, MPI_Request* request);
  // Waits, and returns how many bytes came.
  size_t wait(MPI_Request* request);
  void wait_sent(MPI_Request* request);
  // A frame of `size` raw bytes to `to`.
  void expand_chunk(const Byte* wire, size_t wire_size, Byte* to, size_t size);
  // The same of a frame or of raw bytes that came beside `to`.
  void take_chunk(const Byte* wire, size_t wire_size, Byte* to, size_t size);
  // Waits for a chunk that was received where its raw bytes belong, and expands it there.
  void finish_in_place(MPI_Request* request, Byte* data, size_t size);
  // After a chunk of one's own was compressed: the values that the others will have of it.
  void take_own(const Byte* frame, size_t wire_size, Byte* data, size_t size);
  void count_received(size_t wire_size, size_t raw_size);

  // Tells the site how it went, and the user's error handler about a failure.
  int end();

 private:
  Call call_;
  Comm* comm_;
  Shadow* shadow_;
  Type type_;
  size_t chunk_;  // a multiple of 64: of every element size
  Site* site_ = nullptr;
  int candidate_ = kRaw;
  double ratio_ = 1;  // that the candidate is expected to shrink by
  int error_ = MPI_SUCCESS;
  bool framed_ = false;
  bool lossy_ = false;
  size_t tried_ = 0, saved_ = 0;
  double codec_seconds_ = 0;
};

// Where a call puts whole messages aside. All members name the same `most` that any of them may
// need; beyond the room that they have for certain they ask each other whether they all have it.
class Room {
 public:
  // `mine`: bytes that this rank needs. False: not all have it, and MPI is to run the call.
  bool get(Shadow* shadow, size_t most, size_t mine);
  Byte* data() const { return data_; }

 private:
  Buffer extra_;
  Byte* data_ = nullptr;
};

// What a rank hands on inside its node where it has nothing right to hand on: it looks like the
// head of a frame, which raw data do only with probability 2^-128.
void spoil(Byte* data, size_t size);
bool is_spoiled(const Byte* data, size_t size);

// Calls body(offset, size) for parts that MPI's int counts can hold.
template <typename Body>
void in_parts(size_t size, size_t element, Body body) {
  const size_t most = kMostAtOnce / element * element;
  for (size_t at = 0; at < size; at += most) body(at, std::min(most, size - at));
}

// `own`: where this rank is the root its data are not the user's to read, and say whether they are
// right.
void node_bcast(Operation& op, Byte* data, size_t size, int root, bool own = true);

}  // namespace wirepress
