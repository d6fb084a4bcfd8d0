// SPDX-License-Identifier: Apache-2.0
// Exchanges between the nodes of a lane.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "collectives/operation.hpp"

namespace wirepress {

struct Segment {
  size_t offset, size;
};
// Where the first byte of the segments lies; `data` itself may be no address of theirs.
bool on_device(const Byte* data, const std::vector<Segment>& segments);
// `count` elements in as equal parts as can be.
std::vector<Segment> split(size_t count, size_t element, size_t n);

// Where chunks land that are reduced elsewhere, and where one is expanded.
class Landing {
 public:
  // For n chunks. False: there is no memory.
  bool reserve(const Operation& op, size_t n);
  size_t n() const { return slots_.size(); }
  Byte* slot(size_t i) const { return slots_[i % slots_.size()]; }
  Byte* expanded() const { return expanded_; }

 private:
  std::vector<Buffer> own_;
  std::vector<Byte*> slots_;
  Byte* expanded_ = nullptr;
};

// The chunks of all steps of an exchange, in the order in which they travel. Every segment is cut
// into the same number of chunks; the last ones of a short segment are empty and do not travel.
class Exchange {
 public:
  // Segment i of `data` is node i's. Data on a device are coded and expanded there, and the cores
  // have what travels.
  Exchange(Operation& op, Byte* data, std::vector<Segment> segments);

  // Afterwards this node's segment is the reduction over all nodes, the others are as they were.
  // In step s a node sends to the s-th after it the segment that one owns. So each value is coded
  // once on its way, whatever the number of nodes, and sparse data are sent before sums fill them
  // up; a ring would send the same number of bytes. The order of the operands is fixed: the node's
  // own, then those of the nodes before it, one by one. `input`: the operands, which may stand
  // elsewhere; of `data` only this node's segment is written then.
  void reduce_scatter(MPI_Datatype type, MPI_Op reduction, const Byte* input);

  // Of two nodes, both of which own all of `data`, in memory of the cores: afterwards it is the
  // reduction of their operands, in one order on both. Only operands are sent, which are sparser
  // than sums; every value is reduced twice.
  void reduce_both(MPI_Datatype type, MPI_Op reduction, const Byte* input);

  // Every node has its own segment; afterwards all of them. By a ring: a chunk is compressed once,
  // by its owner, and forwarded as it came. Where coding changes values the owner takes the changed
  // ones too, so that all have the same.
  void all_gather();

  // Every node has its own segment; afterwards node `root` has all of them.
  void gather(int root);

 private:
  size_t step(size_t i) const { return i / n_chunks_; }
  int next() const { return static_cast<int>((me_ + 1) % n_nodes_); }
  int previous() const { return static_cast<int>((me_ + n_nodes_ - 1) % n_nodes_); }
  int after(size_t i) const { return static_cast<int>((me_ + 1 + step(i)) % n_nodes_); }
  int before(size_t i) const { return static_cast<int>((me_ + n_nodes_ - 1 - step(i)) % n_nodes_); }

  Segment chunk_of(size_t segment, size_t i) const;
  template <typename Post, typename Finish, typename Send>
  void run(size_t window, Post post, Finish finish, Send send);
  void settle(size_t i);
  Byte* arrived(size_t i, const Segment& chunk, Byte* expanded);
  void expand_there(const Segment& chunk, size_t size, Byte* aside);
  Byte* landing(size_t i, const Segment& chunk);

  Operation& op_;
  Byte* data_;
  const bool on_device_;
  std::vector<Segment> segments_;
  size_t n_nodes_, me_, n_chunks_, n_items_, lag_;
  std::vector<MPI_Request> received_, sent_;
  std::vector<Buffer> frames_, came_;  // came_: of data on a device, what was received
  std::vector<size_t> wire_sizes_;
  std::vector<bool> late_;  // of an all_gather: expanded once it was forwarded
  Landing landing_;
};

}  // namespace wirepress
