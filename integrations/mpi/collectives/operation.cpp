// SPDX-License-Identifier: Apache-2.0
#include "collectives/operation.hpp"

#include <cstring>
#include <utility>

#include "choosing/candidates.hpp"
#include "job/job.hpp"
#include "messages/devices.hpp"
#include "messages/frames.hpp"
#include "messages/incoming.hpp"
#include "messages/requests.hpp"
#include "recording/across.hpp"

namespace wirepress {

namespace {

// Who has only to send codes, and who only to expand them; else every rank does both.
Overlap overlap_of(Call call) {
  const bool one_way = call == kBcast || call == kGather || call == kGatherv || call == kScatter ||
                       call == kScatterv;
  return one_way ? Overlap::kStages : Overlap::kOneCore;
}

}  // namespace

Choice choose_in(Shadow* shadow, Site* site, Call call, const Byte* data, size_t size,
                 const Type& type) {
  const bool anew = std::exchange(shadow->look_anew, false);
  const Choice choice = choose(site, data, size, type, overlap_of(call), anew);
  shadow->sampling_seconds += choice.sampling_seconds;
  return choice;
}

Operation::Operation(Call call, Comm* comm, Shadow* shadow, const Type& type)
    : call_(call), comm_(comm), shadow_(shadow), type_(type), chunk_(job().chunk) {
  ++stats(call).messages;
}

void Operation::look(const Byte* data, size_t size, int link) {
  site_ = find_site(call_, type_.dtype, size, link, on_device(data));
  const Choice choice = choose_in(shadow_, site_, call_, data, size, type_);
  candidate_ = choice.candidate;
  ratio_ = choice.ratio;
  lossy_ = candidate_ >= 0 && is_lossy(candidate_);
  if (candidate_ < 0) ++stats(call_).bypass[bypass_of(candidate_)];
}

double Operation::agreed_ratio(bool here) {
  const double mine = here ? ratio_ : 1;
  double least = 1;
  count_exchange(*shadow_, sizeof least);
  timed([&] { return PMPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, shadow_->lane); });
  return least;
}

void Operation::widen(double ratio) {
  constexpr double kSafely = 1.5;  // chunks differ
  constexpr size_t kMost = 4;      // what is summed stays in the cache
  chunk_ = job().chunk;
  const size_t most = std::min(kMost, kRoom / ((kInFlight + 1) * chunk_));
  const double times = std::min(ratio / kSafely, static_cast<double>(most));
  if (times >= 2) chunk_ *= static_cast<size_t>(times);
}

size_t Operation::compress(const Byte* data, size_t size, Buffer* frame) {
  if (candidate_ < 0 || size < kMinWire || !frame->reserve(size)) return size;
  const Made made = make_frame(call_, candidate_, data, size, type_, frame->data(), size);
  tried_ += size;
  codec_seconds_ += made.seconds;
  if (!made.size) return frame->release(), size;
  saved_ += size - made.size;
  return made.size;
}

const Byte* Operation::wire_of(const Byte* data, size_t size, Buffer* frame, size_t* wire_size) {
  if (frame->data()) return frame->data();
  if (*wire_size == 0 || !on_device(data)) return data;  // 0: there is nothing right to send
  const int error =
      frame->reserve(size, true) ? copy_bytes(frame->data(), data, size) : MPI_ERR_NO_MEM;
  check(error);
  *wire_size = error ? 0 : size;
  return frame->data();
}

void Operation::send(const Byte* wire, size_t wire_size, size_t raw_size, int to,
                     MPI_Request* request) {
  CallStats& counts = stats(call_);
  counts.raw_size += raw_size;
  counts.wire_size += wire_size;
  if (wire_size < raw_size) framed_ = true;
  check(PMPI_Isend(wire, static_cast<int>(wire_size), MPI_BYTE, to, kTag, shadow_->lane, request));
}

void Operation::receive(Byte* buffer, size_t size, int from, MPI_Request* request) {
  check(PMPI_Irecv(buffer, static_cast<int>(size), MPI_BYTE, from, kTag, shadow_->lane, request));
}

size_t Operation::wait(MPI_Request* request) {
  MPI_Status status{};
  timed([&] { return wait_apart(request, &status); });
  return received_size(status);
}

void Operation::wait_sent(MPI_Request* request) {
  if (*request == MPI_REQUEST_NULL) return;
  timed([&] { return wait_apart(request, MPI_STATUS_IGNORE); });
}

void Operation::expand_chunk(const Byte* wire, size_t wire_size, Byte* to, size_t size) {
  size_t written = 0;
  check(is_framed(wire, wire_size) ? expand(call_, wire, wire_size, to, size, &written)
                                   : MPI_ERR_OTHER);
  if (!error_ && written != size) check(MPI_ERR_OTHER);
  ++stats(call_).received_framed;
}

void Operation::take_chunk(const Byte* wire, size_t wire_size, Byte* to, size_t size) {
  if (wire_size == size) return check(copy_bytes(to, wire, size));
  expand_chunk(wire, wire_size, to, size);
}

void Operation::finish_in_place(MPI_Request* request, Byte* data, size_t size) {
  const size_t wire_size = wait(request);
  count_received(wire_size, size);
  if (wire_size == size) return;
  Buffer& aside = self_thread().wire;
  if (!aside.reserve(wire_size, true)) return check(MPI_ERR_NO_MEM);
  std::memcpy(aside.data(), data, wire_size);
  expand_chunk(aside.data(), wire_size, data, size);
}

void Operation::take_own(const Byte* frame, size_t wire_size, Byte* data, size_t size) {
  if (!lossy_ || !frame || wire_size >= size || error_) return;
  size_t written = 0;
  check(expand(call_, frame, wire_size, data, size, &written));
}

void Operation::count_received(size_t wire_size, size_t raw_size) {
  CallStats& counts = stats(call_);
  ++counts.received;
  counts.received_wire_size += wire_size;
  counts.received_raw_size += raw_size;
}

int Operation::end() {
  CallStats& counts = stats(call_);
  if (framed_) ++counts.framed;
  if (site_ && tried_ > 0) {
    const bool good = saved_ * 32 > tried_;
    learn_outcome(site_, candidate_, tried_, good ? tried_ - saved_ : 0, codec_seconds_);
    if (!good) ++counts.bypass[kNotSmaller];
  }
  return error_ ? raise(comm_, error_) : MPI_SUCCESS;
}

bool Room::get(Shadow* shadow, size_t most, size_t mine) {
  if (most <= kRoom) {
    data_ = shadow->room.data();
    return true;
  }
  int ready = mine == 0 || extra_.reserve(mine);
  if (!ready) ++self_thread().events.no_memory;
  data_ = extra_.data();
  count_exchange(*shadow, sizeof ready);
  const int error = PMPI_Allreduce(MPI_IN_PLACE, &ready, 1, MPI_INT, MPI_MIN, shadow->all);
  return error == MPI_SUCCESS && ready;
}

void spoil(Byte* data, size_t size) {
  if (size >= kCookieSize) std::memcpy(data, job().cookie, kCookieSize);
}

bool is_spoiled(const Byte* data, size_t size) {
  return size >= kCookieSize && std::memcmp(data, job().cookie, kCookieSize) == 0;
}

void node_bcast(Operation& op, Byte* data, size_t size, int root, bool own) {
  if (op.shadow().node_size == 1) return;
  const bool sends = op.shadow().node_rank == root;
  if (sends && own && op.error()) spoil(data, size);
  in_parts(size, 1, [&](size_t at, size_t n) {
    op.timed([&] {
      return PMPI_Bcast(data + at, static_cast<int>(n), MPI_BYTE, root, op.shadow().node);
    });
  });
  if (!sends && is_spoiled(data, size)) op.check(MPI_ERR_OTHER);
}

}  // namespace wirepress
