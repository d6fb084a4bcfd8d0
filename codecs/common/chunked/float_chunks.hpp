// SPDX-License-Identifier: Apache-2.0
// What kernels share whose code of float32 values is a row of chunks that know nothing of each
// other, with code sizes that depend on nothing but the number of values: the walk over a block,
// its odd ends, and sums and error feedback a chunk at a time, in the first-level cache.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/kernel.hpp"
#include "codecs/common/random.hpp"

namespace wirepress {
namespace {

constexpr size_t kMostChunk = 4096;  // values
// Chunks are handed over with room for a multiple of this many values and codes. Values that
// encoders see beyond the last one are +0.
constexpr size_t kChunkStep = 128;

struct ChunkBuffer {
  alignas(64) std::array<std::byte, 4 * (kMostChunk + kChunkStep) + 64> bytes;
  std::byte* data() { return bytes.data(); }
};

constexpr uint32_t kFloatSign = 0x80000000;
constexpr uint32_t kFloatInfinity = 0x7F800000;

// Sums of float32 arrays of any alignment. FloatChunks takes them from the format, so that they are
// made with the kernel's instructions.
struct PlainSums {
  static float load(const std::byte* from, size_t i) {
    float x;
    std::memcpy(&x, from + 4 * i, sizeof(x));
    return x;
  }
  static void store(std::byte* to, size_t i, float x) { std::memcpy(to + 4 * i, &x, sizeof(x)); }
  static void add(const std::byte* a, const std::byte* b, size_t n, std::byte* sum) {
    for (size_t i = 0; i < n; ++i) store(sum, i, load(a, i) + load(b, i));
  }
  // What a code of t has lost; 0 where that is not finite.
  static float lost(float t, float decoded) {
    const float error = t - decoded;
    return (std::bit_cast<uint32_t>(error) & ~kFloatSign) < kFloatInfinity ? error : 0.0f;
  }
  static void keep_error(const std::byte* t, const std::byte* decoded, size_t n, std::byte* error) {
    for (size_t i = 0; i < n; ++i) store(error, i, lost(load(t, i), load(decoded, i)));
  }
};

// With one of codecs/common/simd.
template <typename V>
struct VectorSums {
  static void add(const std::byte* a, const std::byte* b, size_t n, std::byte* sum) {
    size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes)
      V::store_float(sum + 4 * i, V::add(V::load_float(a + 4 * i), V::load_float(b + 4 * i)));
    PlainSums::add(a + 4 * i, b + 4 * i, n - i, sum + 4 * i);
  }
  static void keep_error(const std::byte* t, const std::byte* decoded, size_t n, std::byte* error) {
    const auto infinity = V::set(kFloatInfinity);
    const auto sizes = V::set(~kFloatSign);
    size_t i = 0;
    for (; i + V::kLanes <= n; i += V::kLanes) {
      const auto lost =
          V::as_bits(V::subtract(V::load_float(t + 4 * i), V::load_float(decoded + 4 * i)));
      V::store(error + 4 * i, V::if_above(infinity, V::both(lost, sizes), lost, V::set(0)));
    }
    PlainSums::keep_error(t + 4 * i, decoded + 4 * i, n - i, error + 4 * i);
  }
};

// random_bits() of elements index .. index + kLanes - 1.
template <typename V>
typename V::U random_vector(uint64_t seed, uint64_t index) {
  if (index >> 32 != (index + V::kLanes - 1) >> 32) [[unlikely]] {
    std::array<uint32_t, V::kLanes> bits;
    for (size_t i = 0; i < V::kLanes; ++i) bits[i] = random_bits(seed, index + i);
    return V::load(reinterpret_cast<const std::byte*>(bits.data()));
  }
  const DrawStart start = draw_start(seed, index);
  typename V::U h = V::add(V::set(start.sum), V::multiply(V::lanes(), V::set(kDrawStep)));
  h = V::differ(h, V::set(start.mask));
  h = V::multiply(V::differ(h, V::template right<16>(h)), V::set(kDrawMix1));
  h = V::multiply(V::differ(h, V::template right<15>(h)), V::set(kDrawMix2));
  return V::differ(h, V::template right<16>(h));
}

// A format is a struct, in an unnamed namespace, of
//   static constexpr const char* kName
//   explicit Format(const Args&)
//   size_t chunk() const              values in a chunk: a multiple of kChunkStep, to kMostChunk
//   size_t code_size(size_t n) const  of a chunk of n values; at most 4 n + 64
//   void encode(const std::byte* x, size_t n, uint64_t index, std::byte* code) const
//   bool decode(const std::byte* code, size_t n, std::byte* x) const    false: no such code
//   add, keep_error                   of PlainSums or VectorSums
// where n may be smaller in the last chunk. Bytes after the last value are stored as they are.
template <typename Format>
class FloatChunks {
 public:
  static size_t code_size(const Format& format, size_t raw_size) {
    const size_t n = raw_size / 4;
    const size_t rest = n % format.chunk();
    return n / format.chunk() * format.code_size(format.chunk()) +
           (rest > 0 ? format.code_size(rest) : 0) + raw_size % 4;
  }

  static Status encode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    const Format format(args);
    const size_t size = code_size(format, src.size());
    WPR_TRY(check_room(dst, size));
    ChunkBuffer buffer;
    WPR_TRY(for_chunks(format, src.size(), [&](const Chunk& chunk) {
      const std::byte* x = src.data() + chunk.raw_at;
      if (!chunk.whole) x = padded(x, 4 * chunk.n, 4 * chunk.step_n, &buffer);
      put(format, args, chunk, x, dst.data());
      return true;
    }));
    copy_tail(src, src.size() % 4, dst.first(size));
    *written = size;
    return {};
  }

  static Status encode_feedback(void*, const Args& args, ConstBytes src, Bytes residual, Bytes dst,
                                size_t* written) noexcept {
    const Format format(args);
    const size_t size = code_size(format, src.size());
    WPR_TRY(check_room(dst, size));
    if (residual.size() != src.size())
      return fail(Code::kParameter, "%s: %zu bytes of residual for %zu", Format::kName,
                  residual.size(), src.size());
    ChunkBuffer sum, decoded, code;
    WPR_TRY(for_chunks(format, src.size(), [&](const Chunk& chunk) {
      std::byte* left = residual.data() + chunk.raw_at;
      Format::add(src.data() + chunk.raw_at, left, chunk.n, sum.data());
      pad(&sum, 4 * chunk.n, 4 * chunk.step_n);
      std::byte* out = put(format, args, chunk, sum.data(), dst.data());
      const std::byte* in = out;
      if (!chunk.whole) in = padded(out, chunk.size, chunk.size + kSlack, &code);
      if (!format.decode(in, chunk.n, decoded.data())) return false;
      Format::keep_error(sum.data(), decoded.data(), chunk.n, left);
      return true;
    }));
    copy_tail(src, src.size() % 4, dst.first(size));
    const size_t tail = src.size() % 4;
    if (tail > 0) std::memset(residual.data() + residual.size() - tail, 0, tail);
    *written = size;
    return {};
  }

  static Status decode(void*, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    const Format format(args);
    WPR_TRY(check_size(format, src, dst.size()));
    ChunkBuffer buffer, code;
    WPR_TRY(for_chunks(format, dst.size(), [&](const Chunk& chunk) {
      std::byte* x = dst.data() + chunk.raw_at;
      const std::byte* in = src.data() + chunk.code_at;
      if (chunk.whole) return format.decode(in, chunk.n, x);
      if (!format.decode(padded(in, chunk.size, chunk.size + kSlack, &code), chunk.n,
                         buffer.data()))
        return false;
      std::memcpy(x, buffer.data(), 4 * chunk.n);
      return true;
    }));
    copy_tail(src, dst.size() % 4, dst);
    *written = dst.size();
    return {};
  }

  // Last bytes that are no value are not added to.
  static Status decode_add(void*, const Args& args, ConstBytes src, Bytes dst) noexcept {
    const Format format(args);
    WPR_TRY(check_size(format, src, dst.size()));
    ChunkBuffer decoded, code;
    return for_chunks(format, dst.size(), [&](const Chunk& chunk) {
      const std::byte* in = src.data() + chunk.code_at;
      if (!chunk.whole) in = padded(in, chunk.size, chunk.size + kSlack, &code);
      if (!format.decode(in, chunk.n, decoded.data())) return false;
      Format::add(dst.data() + chunk.raw_at, decoded.data(), chunk.n, dst.data() + chunk.raw_at);
      return true;
    });
  }

  // The code that encode() makes of the decoded values' sums.
  static Status add(void*, const Args& args, ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst,
                    size_t* written) noexcept {
    const Format format(args);
    WPR_TRY(check_size(format, a, raw_size));
    WPR_TRY(check_size(format, b, raw_size));
    if (raw_size % 4 != 0)
      return fail(Code::kUnsupported, "%s: the last %zu of %zu bytes are no float32", Format::kName,
                  raw_size % 4, raw_size);
    const size_t size = code_size(format, raw_size);
    WPR_TRY(check_room(dst, size));
    ChunkBuffer left, right, code;
    WPR_TRY(for_chunks(format, raw_size, [&](const Chunk& chunk) {
      const auto read = [&](ConstBytes from, ChunkBuffer* to) {
        const std::byte* in = from.data() + chunk.code_at;
        if (!chunk.whole) in = padded(in, chunk.size, chunk.size + kSlack, &code);
        return format.decode(in, chunk.n, to->data());
      };
      if (!read(a, &left) || !read(b, &right)) return false;
      Format::add(left.data(), right.data(), chunk.n, left.data());
      pad(&left, 4 * chunk.n, 4 * chunk.step_n);
      put(format, args, chunk, left.data(), dst.data());
      return true;
    }));
    *written = size;
    return {};
  }

  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = nullptr,
            .close = nullptr,
            .encode = encode,
            .decode = decode,
            .encode_feedback = encode_feedback,
            .decode_add = decode_add,
            .add = add};
  }

 private:
  static constexpr size_t kSlack = 4 * kChunkStep;  // a code of kChunkStep values is not larger

  struct Chunk {
    size_t number;
    size_t n;        // values
    size_t step_n;   // the next multiple of kChunkStep
    size_t raw_at;   // where its values begin
    size_t code_at;  // where its code begins
    size_t size;     // of its code
    bool whole;      // n is step_n
  };

  template <typename Function>
  static Status for_chunks(const Format& format, size_t raw_size, Function function) {
    const size_t values = raw_size / 4;
    Chunk chunk = {};
    for (size_t first = 0; first < values; first += format.chunk()) {
      chunk.n = std::min(values - first, format.chunk());
      chunk.step_n = (chunk.n + kChunkStep - 1) / kChunkStep * kChunkStep;
      chunk.raw_at = 4 * first;
      chunk.size = format.code_size(chunk.n);
      chunk.whole = chunk.n == chunk.step_n;
      if (!function(static_cast<const Chunk&>(chunk)))
        return fail(Code::kCorrupt, "%s: chunk %zu, of %zu bytes at %zu, is no code", Format::kName,
                    chunk.number, chunk.size, chunk.code_at);
      ++chunk.number;
      chunk.code_at += chunk.size;
    }
    return {};
  }

  static Status check_room(Bytes dst, size_t size) {
    if (dst.size() >= size) return {};
    return fail(Code::kDstTooSmall, "%s: needs %zu bytes, has %zu", Format::kName, size,
                dst.size());
  }

  static Status check_size(const Format& format, ConstBytes code, size_t raw_size) {
    const size_t size = code_size(format, raw_size);
    if (code.size() == size) return {};
    return fail(Code::kCorrupt, "%s: %zu bytes of code for %zu raw bytes, not %zu", Format::kName,
                code.size(), raw_size, size);
  }

  static void pad(ChunkBuffer* buffer, size_t size, size_t room) {
    std::memset(buffer->data() + size, 0, room - size);
  }
  static const std::byte* padded(const std::byte* from, size_t size, size_t room,
                                 ChunkBuffer* buffer) {
    std::memcpy(buffer->data(), from, size);
    pad(buffer, size, room);
    return buffer->data();
  }

  // Encodes into `dst`, which ends with the code; returns where the chunk's code is.
  static std::byte* put(const Format& format, const Args& args, const Chunk& chunk,
                        const std::byte* x, std::byte* dst) {
    std::byte* out = dst + chunk.code_at;
    const uint64_t index = args.first + chunk.raw_at / 4;
    if (chunk.whole) return format.encode(x, chunk.n, index, out), out;
    ChunkBuffer code;
    format.encode(x, chunk.n, index, code.data());
    std::memcpy(out, code.data(), chunk.size);
    return out;
  }

  static void copy_tail(ConstBytes from, size_t tail, Bytes to) {
    if (tail > 0) std::memcpy(to.last(tail).data(), from.last(tail).data(), tail);
  }
};

}  // namespace
}  // namespace wirepress
