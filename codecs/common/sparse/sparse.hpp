// SPDX-License-Identifier: Apache-2.0
// What the sparse gradient codecs (graddrop, topk, dgc) share: a sample, a threshold, a scan for
// the values that reach it, the choice of the largest, and a payload of positions and values. Only
// the scan is written once per instruction set (avx2.hpp and others); the rest touches few values.
//
// A value's magnitude is its float32 word without the sign, compared as an integer: the order of
// the absolute values, with infinities and then NaNs on top.
#pragma once

#include <algorithm>
#include <memory>

#include "base/kernel.hpp"

namespace wirepress::sparse {

inline constexpr uint32_t kSign = 0x80000000;
inline constexpr uint32_t kInfinity = 0x7F800000;  // and above: not finite
inline constexpr uint32_t kNan = 0x7FC00000;       // the only one that is sent

// Which NaN a sum is depends on the processor and on the order of its operands.
static constexpr uint32_t canonical(uint32_t word) {
  return (word & ~kSign) > kInfinity ? kNan : word;
}

// A canonical word and its index in one number that orders by magnitude, then by lower index.
static constexpr uint64_t make_key(uint32_t word, uint32_t index) {
  return static_cast<uint64_t>(word) << 33 | static_cast<uint64_t>(~index) << 1 | word >> 31;
}
static constexpr uint32_t key_magnitude(uint64_t key) { return static_cast<uint32_t>(key >> 33); }
static constexpr uint32_t key_index(uint64_t key) { return ~static_cast<uint32_t>(key >> 1); }
static constexpr uint32_t key_word(uint64_t key) {
  return key_magnitude(key) | static_cast<uint32_t>(key) << 31;
}

inline constexpr size_t kGroup = 64;  // values that a scan takes at a time
inline constexpr size_t kSlack = 16;  // keys that it may spoil beyond the last one

// Keys in the order of their indices.
struct Keys {
  uint64_t* key = nullptr;
  size_t count = 0;
  size_t room = 0;  // without the slack
};

// Appends the keys of src's values from `begin` up to n whose magnitude is at least `threshold`,
// which is 1 to kInfinity. Returns n, or before it the first value not looked at: where less than
// kGroup keys have room. With a residual the values are t = src + residual; t is stored there, 0
// where it is not finite.
using Scan = size_t (*)(const std::byte* src, std::byte* residual, size_t begin, size_t n,
                        uint32_t threshold, Keys* keys);

// One instruction set's scans without and with a residual.
struct Scans {
  Scan plain;
  Scan feedback;
};

// What is sent of a block of n values.
struct Rule {
  size_t k;       // at most so many, the largest; n: all that reach the threshold
  bool exact;     // exactly the k largest (fewer only where the rest is 0): the sample is a guess
  size_t sample;  // values to look at; n: all of them
  size_t rank;    // the threshold is the magnitude of this rank in the sample, the largest is 1
};

// ceil(n * share) of a real parameter from kShareMin to 1.
size_t share_of(size_t n, int share);
Status check_share(const char* codec, const char* name, int share);
Status check_dtype(const char* codec, DType dtype);

// At most 4 bytes more than the block.
size_t bound(size_t raw_size);

// How many values a sample has that was asked for `sample` of n: whole runs of 16, or n.
size_t sample_size(size_t n, size_t sample);
// The same for a share of n, and not so few that less than 8 of the `ratio` largest are expected.
size_t sample_of(size_t n, int ratio, int share);

// Memory that is kept from block to block.
class Room {
 public:
  uint32_t guess = 0;  // a threshold that may suit the next block; 0: none. Changes no byte

  uint64_t* keys(size_t count) { return grow(&keys_, &n_keys_, count); }
  uint64_t* sorted(size_t count) { return grow(&sorted_, &n_sorted_, count); }
  std::byte* sample(size_t values) {
    return reinterpret_cast<std::byte*>(grow(&sample_, &n_sample_, values / 2 + 1));
  }

 private:
  using Array = std::unique_ptr<uint64_t[]>;
  static uint64_t* grow(Array* array, size_t* have, size_t count);  // nullptr: no memory
  Array keys_, sorted_, sample_;
  size_t n_keys_ = 0, n_sorted_ = 0, n_sample_ = 0;
};

Status open(const Args& args, void** room) noexcept;
void close(void* room) noexcept;

// The functions of a Kernel; `codec` is for their sentences. `residual` may be empty: none.
Status encode(const char* codec, Scans scans, const Rule& rule, const Args& args, Room* room,
              ConstBytes src, Bytes residual, Bytes dst, size_t* written);
// Finds a threshold that all values of src reach which are to be sent. *all: no other value reaches
// it, so that a core that compares with the threshold alone sends the right ones.
Status find_threshold(const char* codec, Scans scans, const Rule& rule, const Args& args,
                      Room* room, ConstBytes src, uint32_t* threshold, bool* all);
Status decode(const char* codec, ConstBytes src, Bytes dst, size_t* written);
Status decode_add(const char* codec, ConstBytes src, Bytes dst);
Status add(const char* codec, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
           size_t* written);

// The kernel of a codec that scans as Isa does. Isa is a type of the file's own, so that all of
// this is too, and no linker takes code for one processor as that for another.
template <typename CodecRule, typename Isa>
struct Functions {
  static constexpr Scans kScans = {Isa::template run<false>, Isa::template run<true>};

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    return sparse::encode(CodecRule::kName, kScans, CodecRule::rule(args, src.size() / 4), args,
                          static_cast<Room*>(state), src, {}, dst, written);
  }
  static Status decode(void*, const Args&, ConstBytes src, Bytes dst, size_t* written) noexcept {
    return sparse::decode(CodecRule::kName, src, dst, written);
  }
  static Status encode_feedback(void* state, const Args& args, ConstBytes src, Bytes residual,
                                Bytes dst, size_t* written) noexcept {
    if (residual.size() != src.size())
      return fail(Code::kParameter, "%s: a residual of %zu bytes for %zu", CodecRule::kName,
                  residual.size(), src.size());
    if (dst.size() < sparse::bound(src.size()))
      return fail(Code::kDstTooSmall, "%s: the code of %zu bytes may not fit %zu", CodecRule::kName,
                  src.size(), dst.size());
    return sparse::encode(CodecRule::kName, kScans, CodecRule::rule(args, src.size() / 4), args,
                          static_cast<Room*>(state), src, residual, dst, written);
  }
  static Status decode_add(void*, const Args&, ConstBytes src, Bytes dst) noexcept {
    return sparse::decode_add(CodecRule::kName, src, dst);
  }
  static Status add(void*, const Args&, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
                    size_t* written) noexcept {
    return sparse::add(CodecRule::kName, a, b, raw_size, dst, written);
  }
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {
        .engine = "cpu",
        .variant = variant,
        .usable = usable,
        .open = sparse::open,
        .close = sparse::close,
        .encode = encode,
        .decode = decode,
        .encode_feedback = encode_feedback,
        .decode_add = decode_add,
        .add = add,
    };
  }
};

}  // namespace wirepress::sparse
