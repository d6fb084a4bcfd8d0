// SPDX-License-Identifier: Apache-2.0
// The structs between rooms: what a codec and a kernel are, and the generated registry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.hpp"

namespace wirepress {

using ConstBytes = std::span<const std::byte>;
using Bytes = std::span<std::byte>;

// Element types. The values are frozen: they stand in frame headers (spec/frame.md, "dtype").
enum class DType : uint8_t {
  kBytes = 0,  // opaque
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kInt64 = 7,
  kUint64 = 8,
  kFloat16 = 9,
  kBfloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
  kFloat8E4M3 = 13,
  kFloat8E5M2 = 14,
  kBool = 15,
  kComplex64 = 16,
  kComplex128 = 17,
};
inline constexpr int kDTypeCount = 18;

size_t dtype_size(DType dtype);       // bytes per element; kBytes: 1
const char* dtype_name(DType dtype);  // "bytes", "float32" ...

// One parameter of a codec. It is an integer that fits a signed byte, since that is how it stands
// in the frame header; where `words` is set the text form is words[value] instead of the number.
struct Param {
  const char* name;
  int min;
  int max;
  int fallback;              // the value when the recipe does not name it
  const char* const* words;  // nullptr, or max + 1 names for the values 0..max
  const char* sentence;
};
inline constexpr size_t kMaxParams = 4;

// One stage's parameters, in the order of Codec::params, and the element type of the data.
struct Args {
  DType dtype = DType::kBytes;
  std::array<int, kMaxParams> value{};
};

// A byte format. Says what the bytes mean, never where they are made.
struct Codec {
  const char* name;
  const char* sentence;           // one line for `wirepress codecs`
  std::span<const Param> params;  // the first one may be given without its name: "zstd:3"
  bool lossless;
  bool exact_encode;  // every kernel writes the same bytes
  bool keeps_size;    // the encoded size is always the raw size
  bool needs_size;    // decode must be given a dst of exactly the raw size
  // Checks the parameters against each other and the dtype, and resolves those that depend on the
  // dtype. nullptr: nothing to check.
  Status (*check)(Args* args);
  // The largest encoded size of n raw bytes.
  size_t (*bound)(const Args& args, size_t n);
};

// One implementation of one codec on one engine. Reads and writes only the spans it is given.
struct Kernel {
  const char* engine;   // "cpu", "cuda", "compressdev", "rtl"
  const char* variant;  // "scalar", "avx2", "avx512", "neon", "liblz4" ...
  bool (*usable)() noexcept;
  // A context that one thread at a time uses, reused from block to block; nullptr: stateless.
  Status (*open)(const Args& args, void** state) noexcept;
  void (*close)(void* state) noexcept;
  // Writes at most dst.size() bytes; kDstTooSmall where the code does not fit (the caller then
  // stores the block raw), any dst of bound() bytes fits.
  Status (*encode)(void* state, const Args& args, ConstBytes src, Bytes dst,
                   size_t* written) noexcept;
  // src is untrusted. Writes at most dst.size() bytes, exactly the raw size.
  Status (*decode)(void* state, const Args& args, ConstBytes src, Bytes dst,
                   size_t* written) noexcept;
};

struct Entry {
  uint16_t id;  // 1..0xFFF, frozen
  const Codec* codec;
  std::span<const Kernel* const> kernels;  // best first, scalar last
};

// Every codec of this build, ordered by id. Written by cmake/registry.cmake from the codec folders.
std::span<const Entry> registry();

const Entry* find_codec(const char* name, size_t name_size);  // nullptr: unknown
const Entry* find_codec(uint16_t id);

// The first usable kernel that `choice` allows: "" or "auto", an engine ("cpu"), or engine and
// variant ("cpu:scalar"; a codec without that variant gives its best one on that engine, so that a
// recipe of several codecs can be forced). nullptr: none.
const Kernel* choose_kernel(const Entry& entry, const char* choice);

inline bool always_usable() noexcept { return true; }

// A place where kernels run.
struct Engine {
  const char* name;
  const char* sentence;
  const char* (*unavailable)();  // nullptr: it can be used here; else one sentence why not
};
std::span<const Engine* const> engines();  // generated, like registry()

}  // namespace wirepress
