// SPDX-License-Identifier: Apache-2.0
// What kernels of the engine cuda are written in. A kernel is a struct of plain values with
//
//   static constexpr unsigned kWarps;                   // of a block
//   static constexpr size_t kShared;                    // if any: bytes that a block's warps share
//                                                       // (of several warps they may call sync())
//   template <class W> WPR_ON_DEVICE void operator()(W& w) const;   // what one warp does
//
// W is HostWarp (host_warp.hpp: arrays of 32 in lockstep) or DeviceWarp (device_warp.cuh: one
// thread of 32), and the text is the same for both. All control flow is uniform: the 32 lanes of a
// warp take the same way. A value of each lane is a W::Of<T>; what is done with it is a scalar
// function, given to map(), which the scalar kernels of the codec share.
//
//   w.block(), w.blocks(), w.warp()        where this warp is
//   w.lane()                               Of<uint32_t>: 0 to 31
//   w.all(x)                               Of<T>: x in every lane
//   w.map(f, a, b, ...)                    f of each lane's values
//   w.each(f, a, b, ...)                   the same, where f gives nothing
//   w.ballot(a)                            uint32_t: bit i is lane i's bool
//   w.down(a, n)                           lane i gets that of lane i + n; above 31 - n anything
//   w.up(a, n)                             lane i gets that of lane i - n; below n anything
//   w.from(a, i)                           lane i's, in all lanes
//   w.most(a), w.either(a), w.sum(a)       the largest uint32_t, all bits together, the sum
//   w.rows(p, n)                           four Of<uint32_t>: row k has words 32 k + lane
//   w.quads(p, n)                          four Of<uint32_t>: word k is number 4 lane + k
//                                          of at most 128 words at p, 0 from n on
//   w.put_rows(p, n, rows), w.put_quads    the other way
//   w.groups<T>(p, n), w.put_groups        sixteen Of<T>: word k is number 16 lane + k
//   w.of_groups(f, q, a, ...)              f of each lane's sixteen words and values
//   w.make_groups<T>(f, a, ...)            the words that f(T* q, ...) writes
//   w.shared()                             the block's kShared bytes
//   w.settle()                             each lane sees what the others of its warp have written
//   w.sync()                               all warps of the block have come here
//   w.take_number(p)                       *p++ for one warp after the other, in any order
//   w.publish(p, x), w.published(p)        a 64-bit word that other blocks wait for, and what was
//                                          written before is seen by them that have seen it
//   W::set_bits(p, bits)                   in functions of a lane: a word gets bits, whoever else
//                                          does so meanwhile
//   W::peek(p)                             the same: a word, of which others may set bits meanwhile
//   W::add_to(p, n)                        the same: a uint32_t grows by n
//   w.wait()                               what a warp does while it waits for another block
//
// Addresses given to rows, quads and groups are multiples of 16, others of the size of what is
// read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/device.hpp"
#include "base/streams.hpp"

namespace wirepress::cuda {

constexpr unsigned kLanes = 32;

// One value in memory, aligned to its size.
template <typename T>
WPR_ON_DEVICE T get(const std::byte* from) {
#ifdef __CUDACC__
  return *reinterpret_cast<const T*>(from);
#else
  T value;
  std::memcpy(&value, std::assume_aligned<sizeof(T)>(from), sizeof(value));
  return value;
#endif
}

template <typename T>
WPR_ON_DEVICE void put(std::byte* to, T value) {
#ifdef __CUDACC__
  *reinterpret_cast<T*>(to) = value;
#else
  std::memcpy(std::assume_aligned<sizeof(T)>(to), &value, sizeof(value));
#endif
}

using wirepress::Report;

template <class K>
constexpr size_t shared_by() {
  if constexpr (requires { K::kShared; })
    return K::kShared;
  else
    return 0;
}

template <class K>
constexpr bool may_sync() {
  return K::kWarps > 1 && shared_by<K>() > 0;
}

}  // namespace wirepress::cuda
