// SPDX-License-Identifier: Apache-2.0
// Collectives made of messages between pairs of ranks. Each message is compressed or not as its
// sender alone decides, so that no rank needs to know the sizes of others.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "choosing/sites.hpp"
#include "collectives/blocks.hpp"
#include "collectives/shadow.hpp"
#include "job/comms.hpp"
#include "messages/buffer.hpp"
#include "messages/types.hpp"
#include "recording/calls.hpp"

namespace wirepress {

// The message to or from one rank: one raw message, or chunks of which the first is a frame.
// The last chunk is shorter than the others, if need be empty: the receiver of less than it
// expected knows where it ends.
struct Parcel {
  int peer = 0, tag = 0;
  bool remote = false;
  Block block;
  Type type;
  size_t size = 0;

  Byte* data = nullptr;  // the bytes: the user's own, or packed
  Buffer packed;
  // Of a block on a device, which is coded and expanded there: `data` of what is sent are the
  // user's until they are packed; what is received is packed first, and belongs here.
  bool there = false;
  Byte* home = nullptr;
  size_t chunk_size = 0, n_chunks = 1;
  size_t next = 0;      // chunk to be sent, or asked for
  size_t n_flying = 0;  // of those before it
  size_t received = 0;  // bytes
  Site* site = nullptr;
  int candidate = kRaw;
  size_t tried = 0, saved = 0;
  double codec_seconds = 0;

  size_t begin(size_t chunk) const { return chunk * chunk_size; }
  size_t size_of(size_t chunk) const { return std::min(chunk_size, size - begin(chunk)); }
  size_t n_all_chunks() const { return size / chunk_size + 1; }
  // Without memory for the packed bytes a parcel that is sent is described to MPI as the user did,
  // or left out (`empty`); one that is received must come whole, or is dropped.
  // `lost`: not even that, as a device has it; a first chunk is dropped as it comes, and one that
  // is larger is all.
  bool unpacked = false, empty = false, lost = false;
  // It goes as the user described it.
  bool plain() const { return !remote || unpacked; }
  bool ended() const { return next == n_chunks && n_flying == 0; }
};

// The messages of one call on this rank.
class PairwiseExchange {
  static constexpr size_t kMostPeers = 32;  // looked after at a time, each way

 public:
  PairwiseExchange(Call call, Comm* comm, Shadow* shadow);

  // `kept`: the buffer will be overwritten by what comes. `turn`: of several messages from the one
  // rank to the other.
  void send(int peer, const Block& block, bool kept = false, int turn = 0) {
    add(peer, block, true, kept, turn);
  }
  void receive(int peer, const Block& block, int turn = 0) { add(peer, block, false, false, turn); }
  // Where members do not serve each other in an order that ends: every message finds its receive.
  void receive_all_at_once() { in_.most_active = SIZE_MAX; }
  void check(int error) {
    if (error && !error_) error_ = error;
  }

  // Moves everything; afterwards the user's error handler knows of a failure.
  int run();

 private:
  struct Side {
    std::deque<Parcel> parcels;  // in the order in which their peers are served
    size_t next = 0, most_active = kMostPeers;
    std::vector<Parcel*> active;
  };
  // A message that MPI has.
  struct Flight {
    Parcel* parcel = nullptr;
    bool receives = false;
    size_t chunk = 0;
    Buffer frame;
  };
  enum Sent { kNothing, kCheap, kCompressed };

  struct Message {
    int peer, tag;
    bool sends, kept, lost;  // lost: a device has it, and there is no memory for a copy
    Block block;
    Type type;
    size_t size;
    bool there = false;
  };

  // The copy of a block on a device, of which so many bytes are to be written back.
  struct Staged {
    Block block;
    size_t size;
    Buffer copy;
  };

  void add(int peer, const Block& block, bool sends, bool kept, int turn);
  void stage(Message* message);
  void give_back_staged();
  void run_small();
  void wait_small(MPI_Request* requests, int n);
  void run_chunks();
  void make_parcel(const Message& message);
  bool pack(Parcel* parcel, bool fill);
  const Byte* bring(Parcel* parcel, size_t chunk, size_t* wire_size, Buffer* frame);
  static size_t window(const Side& side);
  void activate(Side* side, bool sends);
  void choose_codec(Parcel* parcel);
  void start_receives();
  void receive_first(Parcel* parcel, MPI_Request* request);
  void send_whole(Parcel* parcel, MPI_Request* request);
  Sent send_chunk();
  size_t compress(Parcel* parcel, const Byte** wire, size_t size, Buffer* frame);
  size_t take_slot(Parcel* parcel, bool receives, size_t chunk);
  void harvest(bool wait);
  static bool in_status(int error);
  void give_up(int error);
  void land(size_t slot, const MPI_Status& status, int error);
  void take(Parcel* parcel, size_t chunk, size_t wire_size);
  int expand_there(Parcel* parcel, size_t chunk, size_t wire_size, size_t* written);
  void pass_by(Parcel* parcel, size_t chunk, size_t wire_size);
  void cut_short(Parcel* parcel);
  void finish_receive(Parcel* parcel);
  void finish_counting();

  Call call_;
  Comm* comm_;
  Shadow* shadow_;
  unsigned n_call_;
  std::vector<Message> messages_;
  std::vector<Staged> staged_;
  const size_t small_;  // least bytes of a message that may become a frame
  bool all_small_ = true, receives_remote_ = false;
  Side in_, out_;
  std::vector<MPI_Request> requests_;
  std::deque<Flight> flights_;
  std::vector<size_t> free_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  Buffer nowhere_;
  size_t n_flying_ = 0;
  bool framed_ = false;
  Bypass bypass_ = kSameHost;
  int error_ = MPI_SUCCESS;
};

}  // namespace wirepress
