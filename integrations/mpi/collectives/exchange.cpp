// SPDX-License-Identifier: Apache-2.0
#include "collectives/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "messages/devices.hpp"

namespace wirepress {
namespace {

constexpr size_t kLag = kInFlight - 1;  // chunks sent before the first is waited for

}  // namespace

std::vector<Segment> split(size_t count, size_t element, size_t n) {
  std::vector<Segment> segments;
  size_t begin = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t end = count / n * (i + 1) + std::min(i + 1, count % n);
    segments.push_back({begin * element, (end - begin) * element});
    begin = end;
  }
  return segments;
}

bool on_device(const Byte* data, const std::vector<Segment>& segments) {
  for (const Segment& s : segments) {
    if (s.size > 0) return on_device(data + s.offset);
  }
  return false;
}

bool Landing::reserve(const Operation& op, size_t n) {
  Byte* const room = op.wide_room();
  for (size_t i = 0; i <= n; ++i) {
    if (!room) own_.emplace_back();
    if (!room && !own_.back().reserve(op.chunk(), true)) return false;
    Byte* const place = room ? room + i * op.chunk() : own_.back().data();
    if (i == 0) {
      expanded_ = place;
    } else {
      slots_.push_back(place);
    }
  }
  return true;
}

Exchange::Exchange(Operation& op, Byte* data, std::vector<Segment> segments)
    : op_(op), data_(data), on_device_(on_device(data, segments)), segments_(std::move(segments)) {
  n_nodes_ = static_cast<size_t>(op.shadow().n_nodes);
  me_ = static_cast<size_t>(op.shadow().my_node);
  size_t most = 1;
  for (const Segment& s : segments_) most = std::max(most, (s.size + op.chunk() - 1) / op.chunk());
  n_chunks_ = most;
  n_items_ = (n_nodes_ - 1) * n_chunks_;
  lag_ = std::min(n_chunks_, kLag);
  received_.assign(n_items_, MPI_REQUEST_NULL);
  sent_.assign(n_items_, MPI_REQUEST_NULL);
  frames_.resize(n_items_);
  if (on_device_) came_.resize(n_items_);
}

Segment Exchange::chunk_of(size_t segment, size_t i) const {
  const Segment& whole = segments_[segment % n_nodes_];
  const size_t begin = std::min(whole.size, i % n_chunks_ * op_.chunk());
  return {whole.offset + begin, std::min(op_.chunk(), whole.size - begin)};
}

// Ring: chunk i is sent after chunk i - n_chunks_ came. kLag chunks fly before one is waited for.
template <typename Post, typename Finish, typename Send>
void Exchange::run(size_t window, Post post, Finish finish, Send send) {
  for (size_t i = 0; i < std::min(window, n_items_); ++i) post(i);
  for (size_t i = 0; i < n_items_ + lag_; ++i) {
    if (i >= lag_) {
      finish(i - lag_);
      if (window && i - lag_ + window < n_items_) post(i - lag_ + window);
    }
    if (i < n_items_) {
      if (i >= kInFlight) settle(i - kInFlight);
      send(i);
    }
  }
  for (size_t i = 0; i < n_items_; ++i) settle(i);
}

void Exchange::settle(size_t i) {
  op_.wait_sent(&sent_[i]);
  frames_[i].release();
  if (late_.empty() || !late_[i]) return;
  const Segment chunk = chunk_of(me_ + n_nodes_ - step(i), i);
  expand_there(chunk, wire_sizes_[i], landing_.expanded());
  late_[i] = false;
}

// A frame of an all_gather, by way of `aside`.
void Exchange::expand_there(const Segment& chunk, size_t size, Byte* aside) {
  if (!aside) return op_.check(MPI_ERR_NO_MEM);
  std::memcpy(aside, data_ + chunk.offset, size);
  op_.expand_chunk(aside, size, data_ + chunk.offset, chunk.size);
}

// Where MPI puts item i: where it belongs, or beside a device (room for every chunk on its way is
// set aside: buffer.hpp).
Byte* Exchange::landing(size_t i, const Segment& chunk) {
  if (!on_device_) return data_ + chunk.offset;
  if (!came_[i].reserve(chunk.size, true)) op_.check(MPI_ERR_NO_MEM);
  return came_[i].data();
}

// The sums of data on a device are made on the cores, where this node's segment is kept meanwhile,
// or without memory for that a chunk at a time.
void Exchange::reduce_scatter(MPI_Datatype type, MPI_Op reduction, const Byte* input) {
  Buffer sums;
  if (!landing_.reserve(op_, std::min(kInFlight, n_items_))) return op_.check(MPI_ERR_NO_MEM);
  const bool kept = on_device_ && sums.reserve(segments_[me_].size);
  if (on_device_ && !kept && !sums.reserve(op_.chunk(), true)) return op_.check(MPI_ERR_NO_MEM);
  const auto post = [&](size_t i) {
    const Segment chunk = chunk_of(me_, i);
    if (chunk.size) op_.receive(landing_.slot(i), chunk.size, before(i), &received_[i]);
  };
  const auto finish = [&](size_t i) {
    const Segment chunk = chunk_of(me_, i);
    if (!chunk.size) return;
    const Byte* const wire = arrived(i, chunk, landing_.expanded());
    if (op_.error()) return;
    const bool first = step(i) == 0, last = step(i) + 2 == n_nodes_;
    Byte* const result = data_ + chunk.offset;
    const Byte* const before = first ? input + chunk.offset : result;
    Byte* const sum = kept         ? sums.data() + (chunk.offset - segments_[me_].offset)
                      : on_device_ ? sums.data()
                                   : result;
    // Here, where the sum finds it in the cache.
    if (before != sum && (first || (on_device_ && !kept)))
      op_.check(copy_bytes(sum, before, chunk.size));
    const auto n = static_cast<int>(chunk.size / static_cast<size_t>(op_.type().size));
    op_.check(PMPI_Reduce_local(wire, sum, n, type, reduction));
    if (on_device_ && (last || !kept)) op_.check(copy_bytes(result, sum, chunk.size));
  };
  const auto send = [&](size_t i) {
    const Segment chunk = chunk_of(me_ + 1 + step(i), i);
    if (!chunk.size) return;
    const Byte* from = input + chunk.offset;
    size_t wire_size = op_.compress(from, chunk.size, &frames_[i]);
    const Byte* wire = op_.wire_of(from, chunk.size, &frames_[i], &wire_size);
    op_.send(wire, wire_size, chunk.size, after(i), &sent_[i]);
  };
  run(landing_.n(), post, finish, send);
}

// Chunk i of what is reduced as it was before it was sent: where it landed, or expanded.
Byte* Exchange::arrived(size_t i, const Segment& chunk, Byte* expanded) {
  const size_t size = op_.wait(&received_[i]);
  op_.count_received(size, chunk.size);
  if (size == chunk.size) return landing_.slot(i);
  op_.expand_chunk(landing_.slot(i), size, expanded, chunk.size);
  return expanded;
}

void Exchange::reduce_both(MPI_Datatype type, MPI_Op reduction, const Byte* input) {
  if (!landing_.reserve(op_, std::min(kInFlight, n_items_))) return op_.check(MPI_ERR_NO_MEM);
  const bool first = me_ == 0, in_place = input == data_;
  const auto post = [&](size_t i) {
    op_.receive(landing_.slot(i), chunk_of(0, i).size, before(i), &received_[i]);
  };
  const auto finish = [&](size_t i) {
    const Segment chunk = chunk_of(0, i);
    const Byte* const own = input + chunk.offset;
    Byte* const result = data_ + chunk.offset;
    Byte* const theirs = arrived(i, chunk, first || in_place ? landing_.expanded() : result);
    if (in_place) op_.wait_sent(&sent_[i]);  // it may go raw, from there
    if (op_.error()) return;
    // MPI puts the result where its second operand is: that of the first node, on both.
    Byte* const sum = first ? result : theirs;
    if (first && !in_place) std::memcpy(sum, own, chunk.size);
    const auto n = static_cast<int>(chunk.size / static_cast<size_t>(op_.type().size));
    op_.check(PMPI_Reduce_local(first ? theirs : own, sum, n, type, reduction));
    if (sum != result) std::memcpy(result, sum, chunk.size);
  };
  const auto send = [&](size_t i) {
    const Segment chunk = chunk_of(0, i);
    const Byte* const from = input + chunk.offset;
    const size_t wire_size = op_.compress(from, chunk.size, &frames_[i]);
    const Byte* const frame = frames_[i].data();
    op_.send(frame ? frame : from, wire_size, chunk.size, after(i), &sent_[i]);
  };
  run(landing_.n(), post, finish, send);
}

void Exchange::all_gather() {
  const auto post = [&](size_t i) {
    const Segment chunk = chunk_of(me_ + n_nodes_ - 1 - step(i), i);
    if (chunk.size) op_.receive(landing(i, chunk), chunk.size, previous(), &received_[i]);
  };
  wire_sizes_.assign(n_items_ + n_chunks_, 0);
  late_.assign(n_items_, false);
  // reduce_scatter() may have been here.
  if (!on_device_ && !landing_.expanded() && !landing_.reserve(op_, 0)) op_.check(MPI_ERR_NO_MEM);
  const auto finish = [&](size_t i) {
    const Segment chunk = chunk_of(me_ + n_nodes_ - 1 - step(i), i);
    if (!chunk.size) return;
    const size_t size = op_.wait(&received_[i]);
    op_.count_received(size, chunk.size);
    wire_sizes_[i + n_chunks_] = size;
    const bool travels_on = i + n_chunks_ < n_items_;
    if (on_device_) {
      op_.take_chunk(came_[i].data(), size, data_ + chunk.offset, chunk.size);
      if (travels_on && size != chunk.size) {
        if (frames_[i + n_chunks_].reserve(size)) {
          std::memcpy(frames_[i + n_chunks_].data(), came_[i].data(), size);
        } else {  // its values go on as they are
          wire_sizes_[i + n_chunks_] = op_.error() ? 0 : chunk.size;
        }
      }
      return came_[i].release();
    }
    if (size == chunk.size) return;
    // The frame moves out of the way of what it expands to; it is forwarded from there. Without
    // memory it is forwarded from where it is, and expanded then.
    if (travels_on && !frames_[i + n_chunks_].reserve(size)) {
      late_[i + n_chunks_] = true;
      return;
    }
    expand_there(chunk, size, travels_on ? frames_[i + n_chunks_].data() : landing_.expanded());
  };
  const auto send = [&](size_t i) {
    const Segment chunk = chunk_of(me_ + n_nodes_ - step(i), i);
    if (!chunk.size) return;
    Byte* from = data_ + chunk.offset;
    if (step(i) == 0) wire_sizes_[i] = op_.compress(from, chunk.size, &frames_[i]);
    const Byte* wire = op_.wire_of(from, chunk.size, &frames_[i], &wire_sizes_[i]);
    op_.send(wire, wire_sizes_[i], chunk.size, next(), &sent_[i]);
    if (step(i) == 0) op_.take_own(frames_[i].data(), wire_sizes_[i], from, chunk.size);
  };
  run(kInFlight, post, finish, send);
}

void Exchange::gather(int root) {
  const auto at = static_cast<size_t>(root);
  if (me_ == at) {
    const auto owner = [&](size_t i) { return (me_ + 1 + step(i)) % n_nodes_; };
    const auto post = [&](size_t i) {
      const Segment chunk = chunk_of(owner(i), i);
      if (!chunk.size) return;
      op_.receive(landing(i, chunk), chunk.size, static_cast<int>(owner(i)), &received_[i]);
    };
    const auto finish = [&](size_t i) {
      const Segment chunk = chunk_of(owner(i), i);
      if (!chunk.size) return;
      if (!on_device_) {
        return op_.finish_in_place(&received_[i], data_ + chunk.offset, chunk.size);
      }
      const size_t size = op_.wait(&received_[i]);
      op_.count_received(size, chunk.size);
      op_.take_chunk(came_[i].data(), size, data_ + chunk.offset, chunk.size);
      came_[i].release();
    };
    return run(kInFlight, post, finish, [](size_t) {});
  }
  n_items_ = n_chunks_;  // one step: what is mine
  const auto send = [&](size_t i) {
    const Segment chunk = chunk_of(me_, i);
    if (!chunk.size) return;
    const Byte* from = data_ + chunk.offset;
    size_t wire_size = op_.compress(from, chunk.size, &frames_[i]);
    const Byte* wire = op_.wire_of(from, chunk.size, &frames_[i], &wire_size);
    op_.send(wire, wire_size, chunk.size, root, &sent_[i]);
  };
  run(
      0, [](size_t) {}, [](size_t) {}, send);
}

}  // namespace wirepress
