// SPDX-License-Identifier: Apache-2.0
#include "collectives/pairwise.hpp"

#include <sched.h>

#include <array>
#include <cstring>
#include <utility>

#include "collectives/operation.hpp"
#include "collectives/run.hpp"
#include "job/job.hpp"
#include "job/library.hpp"
#include "messages/devices.hpp"
#include "messages/frames.hpp"
#include "messages/incoming.hpp"
#include "messages/thread.hpp"

namespace wirepress {
namespace {

constexpr size_t kLeastInFlight = 4;  // chunks to or from a peer: the link is shared by all peers
// Tags by call: what a wrong program sends too much must not be taken by the next call.
constexpr int kFirstTag = 0x100;
constexpr unsigned kTags = 0x3FFF;
// Further messages between two ranks have tags behind those: some calls' turns, then, of more than
// anybody has, every call's. All but the last are below 32767, which every MPI has.
constexpr int kFirstTurnTag = kFirstTag + static_cast<int>(kTags) + 1;
constexpr int kTurns = 240, kCallsOfTurns = 64;

int tag_of(unsigned n_call, int turn) {
  if (turn == 0) return kFirstTag + static_cast<int>(n_call & kTags);
  if (turn > kTurns) return kFirstTurnTag + kTurns * kCallsOfTurns + turn - kTurns - 1;
  return kFirstTurnTag + static_cast<int>(n_call % kCallsOfTurns) * kTurns + turn - 1;
}

}  // namespace

PairwiseExchange::PairwiseExchange(Call call, Comm* comm, Shadow* shadow)
    : call_(call),
      comm_(comm),
      shadow_(shadow),
      n_call_(shadow->n_calls++),
      small_(std::min(least_size(call), job().chunk)) {
  ++stats(call).messages;
}

int PairwiseExchange::run() {
  if (all_small_) {
    run_small();
  } else {
    run_chunks();
  }
  give_back_staged();
  finish_counting();
  return error_ ? raise(comm_, error_) : MPI_SUCCESS;
}

void PairwiseExchange::add(int peer, const Block& block, bool sends, bool kept, int turn) {
  Type type;
  MPI_Count size;
  if (block.count == 0 || !look_up(block.type, &type) || !product(block.count, type.size, &size)) {
    return;
  }
  if (messages_.empty()) messages_.reserve(2 * static_cast<size_t>(comm_->size));
  messages_.push_back(
      {peer, tag_of(n_call_, turn), sends, kept, false, block, type, static_cast<size_t>(size)});
  if (on_device(block.buffer)) {
    Message& message = messages_.back();
    message.there = comm_->takes_frames(peer) && type.contiguous && !kept && message.size >= small_;
    if (!message.there) stage(&message);
    kept = false;
  }
  all_small_ = all_small_ && !kept && static_cast<size_t>(size) < small_ &&
               messages_.size() <= 2 * kMostPeers;
}

// A block on a device that is not coded there goes by a copy.
void PairwiseExchange::stage(Message* message) {
  const Block block = message->block;
  Buffer copy;
  if (!copy.reserve(message->size, true)) {
    ++self_thread().events.no_memory;
    check(MPI_ERR_NO_MEM);
    message->lost = true;
    all_small_ = false;
    message->block = {nullptr, 0, MPI_BYTE};
    if (!message->sends) nowhere_.reserve(job().chunk, true);
    return;
  }
  stats(call_).cores_size += message->size;
  message->kept = false;
  message->type.contiguous = true;
  message->block = {copy.data(), static_cast<MPI_Count>(message->size), MPI_BYTE};
  // Of a receive, too: less may come.
  check(collect(block.buffer, block.count, block.type, copy.data(), message->size));
  staged_.push_back({block, message->sends ? 0 : message->size, std::move(copy)});
}

void PairwiseExchange::give_back_staged() {
  for (const Staged& staged : staged_) {
    if (staged.size == 0 || error_) continue;
    check(deliver(staged.copy.data(), staged.size, staged.block.buffer, staged.block.count,
                  staged.block.type));
  }
}

// Nothing that could be a frame: as MPI itself would do it.
void PairwiseExchange::run_small() {
  std::array<MPI_Request, 2 * kMostPeers> requests;
  int n = 0;
  const double start = now();
  for (const bool sends : {false, true}) {
    for (const Message& message : messages_) {
      if (message.sends != sends) continue;
      const Block& block = message.block;
      const int count = static_cast<int>(block.count);  // of elements of a byte or more
      check(sends ? PMPI_Isend(block.buffer, count, block.type, message.peer, message.tag,
                               shadow_->all, &requests[static_cast<size_t>(n)])
                  : PMPI_Irecv(block.buffer, count, block.type, message.peer, message.tag,
                               shadow_->all, &requests[static_cast<size_t>(n)]));
      if (error_) break;
      ++n;
      if (!comm_->takes_frames(message.peer)) continue;
      CallStats& counts = stats(call_);
      if (sends) {
        counts.raw_size += message.size;
        counts.wire_size += message.size;
        if (bypass_ == kSameHost) bypass_ = kSmall;
      } else {
        ++counts.received;
        counts.received_raw_size += message.size;
        counts.received_wire_size += message.size;
        receives_remote_ = true;
      }
    }
  }
  wait_small(requests.data(), n);
  stats(call_).wait_seconds += now() - start;
}

void PairwiseExchange::wait_small(MPI_Request* requests, int n) {
  std::array<MPI_Status, 2 * kMostPeers> statuses;
  const int error = PMPI_Waitall(n, requests, statuses.data());
  if (!error) return;
  for (int i = 0; i < n && in_status(error); ++i) {
    check(statuses[static_cast<size_t>(i)].MPI_ERROR);
  }
  check(error);
}

void PairwiseExchange::run_chunks() {
  for (const Message& message : messages_) make_parcel(message);
  for (;;) {
    start_receives();
    const int sent = send_chunk();
    if (sent == kCheap) continue;
    if (sent == kNothing && n_flying_ == 0) break;
    harvest(sent == kNothing);
  }
}

void PairwiseExchange::make_parcel(const Message& message) {
  Parcel& parcel = (message.sends ? out_ : in_).parcels.emplace_back();
  parcel.peer = message.peer;
  parcel.tag = message.tag;
  parcel.remote = comm_->takes_frames(message.peer);
  parcel.block = message.block;
  parcel.type = message.type;
  parcel.size = message.size;
  parcel.chunk_size = job().chunk;
  if (!message.sends) receives_remote_ = receives_remote_ || parcel.remote;
  parcel.there = message.there;
  parcel.lost = message.lost;
  if (message.lost) parcel.unpacked = true, parcel.empty = message.sends;
  if (!message.kept || message.lost) return;
  if (!pack(&parcel, true)) {
    // Others would wait for it: they get an empty message, which they take for an error.
    check(MPI_ERR_NO_MEM);
    parcel.empty = parcel.unpacked = true;
    return;
  }
  parcel.type.contiguous = true;
  parcel.block = {parcel.data, static_cast<MPI_Count>(parcel.size), MPI_BYTE};
}

// Room for the packed bytes, and `fill`: the bytes.
bool PairwiseExchange::pack(Parcel* parcel, bool fill) {
  if (!parcel->packed.reserve(parcel->size)) {
    ++self_thread().events.no_memory;
    return false;
  }
  parcel->data = parcel->packed.data();
  if (!fill) return true;
  if (parcel->type.contiguous && parcel->block.buffer) {
    const int error = copy_bytes(parcel->data, parcel->block.buffer, parcel->size);
    check(error);
    return !error;
  } else {
    check(collect(parcel->block.buffer, parcel->block.count, parcel->block.type, parcel->data,
                  parcel->size));
  }
  return true;
}

size_t PairwiseExchange::window(const Side& side) {
  return std::max(kLeastInFlight, kInFlight / std::max<size_t>(side.active.size(), 1));
}

// The next peers' turn.
void PairwiseExchange::activate(Side* side, bool sends) {
  while (side->active.size() < side->most_active && side->next < side->parcels.size()) {
    Parcel* parcel = &side->parcels[side->next++];
    parcel->data = parcel->block.buffer;
    if (parcel->there && !sends) {
      parcel->home = parcel->data;
      if (!pack(parcel, false)) {
        check(MPI_ERR_NO_MEM);
        parcel->lost = parcel->unpacked = true;
        nowhere_.reserve(parcel->chunk_size, true);
      }
    } else if (!parcel->type.contiguous && !parcel->plain() && !pack(parcel, sends)) {
      parcel->unpacked = true;
    }
    if (sends) choose_codec(parcel);
    side->active.push_back(parcel);
  }
}

void PairwiseExchange::choose_codec(Parcel* parcel) {
  if (parcel->plain()) return;
  CallStats& counts = stats(call_);
  counts.raw_size += parcel->size;
  if (parcel->size < least_size(call_) || !parcel->data) {
    if (bypass_ == kSameHost) bypass_ = kSmall;
    return;
  }
  parcel->site = find_site(call_, parcel->type.dtype, parcel->size, kCollectiveLink, parcel->there);
  parcel->candidate =
      choose_in(shadow_, parcel->site, call_, parcel->data, parcel->size, parcel->type).candidate;
  bypass_ = parcel->candidate < 0 ? bypass_of(parcel->candidate) : kNotSmaller;
}

void PairwiseExchange::start_receives() {
  activate(&in_, false);
  for (Parcel* parcel : in_.active) {
    while (parcel->next < parcel->n_chunks && parcel->n_flying < window(in_)) {
      const size_t chunk = parcel->next;
      const size_t slot = take_slot(parcel, true, chunk);
      if (chunk == 0) {
        receive_first(parcel, &requests_[slot]);
      } else {
        Byte* to = parcel->unpacked ? nowhere_.data() : parcel->data + parcel->begin(chunk);
        check(PMPI_Irecv(to, static_cast<int>(parcel->size_of(chunk)), MPI_BYTE, parcel->peer,
                         parcel->tag, shadow_->all, &requests_[slot]));
      }
    }
  }
}

// All of it, or the first chunk.
void PairwiseExchange::receive_first(Parcel* parcel, MPI_Request* request) {
  const Block& block = parcel->block;
  if (parcel->lost) {
    const size_t room = nowhere_.data() ? std::min(parcel->size, parcel->chunk_size) : 0;
    return check(PMPI_Irecv(nowhere_.data(), static_cast<int>(room), MPI_BYTE, parcel->peer,
                            parcel->tag, shadow_->all, request));
  }
  if (parcel->plain()) {
    return check(WPR_LARGEST(PMPI_Irecv)(block.buffer, static_cast<LargestCount>(block.count),
                                         block.type, parcel->peer, parcel->tag, shadow_->all,
                                         request));
  }
  const ByteRoom room(parcel->size);
  check(PMPI_Irecv(parcel->data, room.count, room.type, parcel->peer, parcel->tag, shadow_->all,
                   request));
}

void PairwiseExchange::send_whole(Parcel* parcel, MPI_Request* request) {
  const Block& block = parcel->block;
  if (parcel->empty) {
    return check(
        PMPI_Isend(nullptr, 0, MPI_BYTE, parcel->peer, parcel->tag, shadow_->all, request));
  }
  if (parcel->plain() && !parcel->packed.data()) {
    return check(WPR_LARGEST(PMPI_Isend)(block.buffer, static_cast<LargestCount>(block.count),
                                         block.type, parcel->peer, parcel->tag, shadow_->all,
                                         request));
  }
  const ByteRoom room(parcel->size);
  check(PMPI_Isend(parcel->data, room.count, room.type, parcel->peer, parcel->tag, shadow_->all,
                   request));
}

// The next chunk of the first peer that has not enough on its way to it.
PairwiseExchange::Sent PairwiseExchange::send_chunk() {
  activate(&out_, true);
  for (Parcel* parcel : out_.active) {
    if (parcel->next == parcel->n_chunks || parcel->n_flying >= window(out_)) continue;
    const size_t chunk = parcel->next;
    const size_t slot = take_slot(parcel, false, chunk);
    const bool tries = parcel->candidate >= 0;
    Buffer& frame = flights_[slot].frame;
    size_t wire_size = parcel->size_of(chunk);
    const Byte* wire = parcel->data + parcel->begin(chunk);
    const Byte* const raw = wire;
    if (tries && wire_size >= kMinWire) wire_size = compress(parcel, &wire, wire_size, &frame);
    const bool whole = chunk == 0 && wire == raw;
    if (parcel->there && wire == raw) wire = bring(parcel, chunk, &wire_size, &frame);
    if (whole) {
      wire_size = parcel->empty ? 0 : parcel->size;
      send_whole(parcel, &requests_[slot]);
    } else {
      parcel->n_chunks = parcel->n_all_chunks();
      check(PMPI_Isend(wire, static_cast<int>(wire_size), MPI_BYTE, parcel->peer, parcel->tag,
                       shadow_->all, &requests_[slot]));
    }
    if (parcel->remote) stats(call_).wire_size += wire_size;
    return tries ? kCompressed : kCheap;
  }
  return kNothing;
}

// What goes raw of a block on a device: all of it, or a chunk behind frames. Where that cannot be
// had its receiver gets what it takes for an error.
const Byte* PairwiseExchange::bring(Parcel* parcel, size_t chunk, size_t* wire_size,
                                    Buffer* frame) {
  const Byte* from = parcel->data + parcel->begin(chunk);
  if (chunk == 0) {
    if (!pack(parcel, true)) {
      check(MPI_ERR_NO_MEM);
      parcel->empty = parcel->unpacked = true;
    }
    return parcel->data;
  }
  const int error = frame->reserve(*wire_size, true) ? copy_bytes(frame->data(), from, *wire_size)
                                                     : MPI_ERR_NO_MEM;
  if (!error) return frame->data();
  check(error);
  // A shorter message would be taken for the end of this one.
  static const auto spoiled = [] {
    std::array<Byte, kMinWire> wire{};
    spoil(wire.data(), wire.size());
    return wire;
  }();
  *wire_size = spoiled.size();
  return spoiled.data();
}

size_t PairwiseExchange::compress(Parcel* parcel, const Byte** wire, size_t size, Buffer* frame) {
  parcel->tried += size;
  if (!frame->reserve(size)) return size;
  const Made made =
      make_frame(call_, parcel->candidate, *wire, size, parcel->type, frame->data(), size);
  parcel->codec_seconds += made.seconds;
  if (!made.size) return size;
  parcel->saved += size - made.size;
  framed_ = true;
  *wire = frame->data();
  return made.size;
}

size_t PairwiseExchange::take_slot(Parcel* parcel, bool receives, size_t chunk) {
  size_t slot = requests_.size();
  if (free_.empty()) {
    requests_.push_back(MPI_REQUEST_NULL);
    flights_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  flights_[slot].parcel = parcel;
  flights_[slot].receives = receives;
  flights_[slot].chunk = chunk;
  ++parcel->next;
  ++parcel->n_flying;
  ++n_flying_;
  return slot;
}

// Looks after what arrived or left.
void PairwiseExchange::harvest(bool wait) {
  const auto n = static_cast<int>(requests_.size());
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int n_done = 0;
  const double start = now();
  const bool spins = wait && !is_open_mpi();  // see wait_apart()
  int error = wait && !spins
                  ? PMPI_Waitsome(n, requests_.data(), &n_done, done_.data(), statuses_.data())
                  : PMPI_Testsome(n, requests_.data(), &n_done, done_.data(), statuses_.data());
  while (spins && !error && n_done == 0) {
    sched_yield();
    error = PMPI_Testsome(n, requests_.data(), &n_done, done_.data(), statuses_.data());
  }
  stats(call_).wait_seconds += now() - start;
  if (n_done == MPI_UNDEFINED || (error && !in_status(error))) return give_up(error);
  for (int i = 0; i < n_done; ++i) {
    const MPI_Status& status = statuses_[static_cast<size_t>(i)];
    land(static_cast<size_t>(done_[static_cast<size_t>(i)]), status,
         error ? status.MPI_ERROR : MPI_SUCCESS);
  }
}

bool PairwiseExchange::in_status(int error) {
  int kind = error;
  PMPI_Error_class(error, &kind);
  return kind == MPI_ERR_IN_STATUS;
}

// MPI does not want any of it: nothing is on its way.
void PairwiseExchange::give_up(int error) {
  check(error ? error : MPI_ERR_OTHER);
  for (Side* side : {&in_, &out_}) {
    side->active.clear();
    side->next = side->parcels.size();
  }
  n_flying_ = 0;
}

void PairwiseExchange::land(size_t slot, const MPI_Status& status, int error) {
  Flight& flight = flights_[slot];
  Parcel* parcel = flight.parcel;
  flight.frame.release();
  free_.push_back(slot);
  --n_flying_;
  --parcel->n_flying;
  if (error && flight.receives && flight.chunk == 0 && parcel->unpacked && parcel->remote &&
      !parcel->lost) {
    pass_by(parcel, 0, 1);  // a frame does not end with an element of the user's type
  } else if (error) {
    check(error);
    if (flight.receives) cut_short(parcel);
  } else if (flight.receives) {
    int cancelled = 0;
    PMPI_Test_cancelled(&status, &cancelled);
    const size_t size = received_size(status);
    if (size == 0 && flight.chunk == 0) check(MPI_ERR_OTHER);  // its sender has no memory
    if (!cancelled) take(parcel, flight.chunk, size);
  }
  if (!parcel->ended()) return;
  if (flight.receives) {
    finish_receive(parcel);
  } else if (parcel->tried) {
    const bool good = parcel->saved * 32 > parcel->tried;
    learn_outcome(parcel->site, parcel->candidate, parcel->tried,
                  good ? parcel->tried - parcel->saved : 0, parcel->codec_seconds);
  }
  parcel->packed.release();
  std::erase(flight.receives ? in_.active : out_.active, parcel);
}

void PairwiseExchange::take(Parcel* parcel, size_t chunk, size_t wire_size) {
  if (parcel->unpacked) return pass_by(parcel, chunk, wire_size);
  if (parcel->plain()) return;
  Byte* data = parcel->data + parcel->begin(chunk);
  size_t written = wire_size;
  CallStats& counts = stats(call_);
  ++counts.received;
  counts.received_wire_size += wire_size;
  const bool framed = is_framed(data, wire_size);
  if (framed) {
    ++counts.received_framed;
    const int error = expand_there(parcel, chunk, wire_size, &written);
    check(error);
    // Without its first chunk the others must be taken all the same.
    if (error) written = parcel->size_of(chunk);
    if (chunk == 0 && written == parcel->chunk_size) parcel->n_chunks = parcel->n_all_chunks();
  } else if (parcel->home) {
    check(copy_bytes(parcel->home + parcel->begin(chunk), data, wire_size));
  }
  counts.received_raw_size += written;
  parcel->received += written;
  if (written < parcel->chunk_size && chunk + 1 < parcel->n_chunks) cut_short(parcel);
}

int PairwiseExchange::expand_there(Parcel* parcel, size_t chunk, size_t wire_size,
                                   size_t* written) {
  Byte* data = parcel->data + parcel->begin(chunk);
  if (parcel->home) {
    return expand(call_, data, wire_size, parcel->home + parcel->begin(chunk),
                  parcel->size_of(chunk), written);
  }
  Buffer& aside = self_thread().wire;
  if (!aside.reserve(wire_size, true)) return MPI_ERR_NO_MEM;
  std::memcpy(aside.data(), data, wire_size);
  return expand(call_, aside.data(), wire_size, data, parcel->size_of(chunk), written);
}

// What came where there is no memory to expand it: a message that is not whole is a frame, and
// others follow.
void PairwiseExchange::pass_by(Parcel* parcel, size_t chunk, size_t wire_size) {
  if (!parcel->remote || wire_size == 0 || (chunk == 0 && wire_size == parcel->size)) return;
  check(MPI_ERR_NO_MEM);
  if (chunk == 0 && nowhere_.reserve(parcel->chunk_size, true)) {
    parcel->n_chunks = parcel->n_all_chunks();
  }
}

// Nothing more will come.
void PairwiseExchange::cut_short(Parcel* parcel) {
  parcel->next = parcel->n_chunks;
  for (size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].parcel == parcel && requests_[i] != MPI_REQUEST_NULL) {
      PMPI_Cancel(&requests_[i]);
    }
  }
}

void PairwiseExchange::finish_receive(Parcel* parcel) {
  if (parcel->plain() || parcel->type.contiguous || parcel->received == 0 || error_) return;
  check(deliver(parcel->data, parcel->received, parcel->block.buffer, parcel->block.count,
                parcel->block.type));
}

void PairwiseExchange::finish_counting() {
  CallStats& counts = stats(call_);
  if (framed_) {
    ++counts.framed;
  } else if (bypass_ != kSameHost || !receives_remote_) {
    ++counts.bypass[bypass_];
  }
}

}  // namespace wirepress
