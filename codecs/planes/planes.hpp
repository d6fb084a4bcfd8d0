// SPDX-License-Identifier: Apache-2.0
// planes in one pass of steps over a block (spec.md): lines, planes, prefix codes. Kernels differ
// in Ops, which finds zero lines and takes elements apart. Long because both directions share their
// tables and are compiled once for each kernel.
#pragma once

#include <bit>
#include <memory>
#include <new>

#include "codecs/planes/huffman.hpp"

namespace wirepress {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kMostPlanes = 8;

// Elements as they are, and turned left by one bit and cut in bytes: byte p of element i stands at
// planes[p] + i. Ops of the scalar kernel, and the rest of the others.
struct PlainOps {
  static bool line_is_zero(const std::byte* line) {
    std::array<uint64_t, kLine / 8> words;
    std::memcpy(words.data(), line, kLine);
    uint64_t any = 0;
    for (const uint64_t word : words) any |= word;
    return any == 0;
  }
  template <typename Word>
  static void split(const std::byte* src, size_t begin, size_t n, std::byte* const* planes) {
    for (size_t i = begin; i < n; ++i) {
      Word word;
      std::memcpy(&word, src + i * sizeof(Word), sizeof(Word));
      word = std::rotl(word, 1);
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p)
        planes[p][i] = static_cast<std::byte>(word >> 8 * p);
    }
  }
  template <typename Word>
  static void join(const std::byte* const* planes, size_t begin, size_t n, std::byte* dst) {
    for (size_t i = begin; i < n; ++i) {
      Word word = 0;
#pragma GCC unroll 8
      for (size_t p = 0; p < sizeof(Word); ++p)
        word = static_cast<Word>(word | static_cast<Word>(planes[p][i]) << 8 * p);
      word = std::rotr(word, 1);
      std::memcpy(dst + i * sizeof(Word), &word, sizeof(Word));
    }
  }
};

template <typename Ops>
class Planes {
 public:
  static constexpr Kernel kernel(const char* variant, bool (*usable)() noexcept) {
    return {.engine = "cpu",
            .variant = variant,
            .usable = usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode};
  }

 private:
  enum Mode : uint8_t { kRaw = 0, kCoded = 1, kConstant = 2 };
  static constexpr std::byte kNoBitmap{0};
  static constexpr std::byte kBitmap{1};
  static constexpr size_t kSizes = 4 * huffman::kStreams;

  // Room that grows and stays, for a block's lines and for its planes.
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes;
    size_t size = 0;
    bool reserve(size_t wanted) {
      if (wanted <= size) return true;
      bytes.reset(new (std::nothrow) std::byte[wanted]);
      size = bytes ? wanted : 0;
      return bytes != nullptr;
    }
  };
  struct State {
    Buffer lines;   // those that are not zero
    Buffer planes;  // and one more, for a prefix code
  };

  static Status open(const Args&, void** state) noexcept {
    *state = new (std::nothrow) State;
    return *state == nullptr ? no_memory() : Status();
  }
  static void close(void* state) noexcept { delete static_cast<State*>(state); }
  static Status no_memory() { return fail(Code::kNoMemory, "planes: no memory for its buffers"); }
  static Status corrupt(const char* what, size_t a, size_t b) {
    return fail(Code::kCorrupt, "planes: %s: %zu, of %zu", what, a, b);
  }

  static size_t element(const Args& args) {
    return args.dtype == DType::kBytes ? 4 : dtype_size(args.dtype);
  }

  // ---- lines --------------------------------------------------------------------------------

  static size_t line_size(size_t line, size_t total) {
    return std::min(kLine, total - line * kLine);
  }
  static bool is_zero(const std::byte* line, size_t size) {
    if (size == kLine) return Ops::line_is_zero(line);
    return std::all_of(line, line + size, [](std::byte b) { return b == std::byte{0}; });
  }
  static bool bit(ConstBytes bitmap, size_t i) {
    return ((bitmap[i / 8] >> i % 8) & std::byte{1}) != std::byte{0};
  }

  // Fills the bitmap of lines that are not zero, and says how many bytes the others have.
  static size_t find_lines(ConstBytes src, size_t n_lines, std::byte* bitmap) {
    std::memset(bitmap, 0, (n_lines + 7) / 8);
    size_t zeros = 0;
    for (size_t i = 0; i < n_lines; ++i) {
      const size_t size = line_size(i, src.size());
      const bool zero = is_zero(src.data() + i * kLine, size);
      zeros += zero ? size : 0;
      bitmap[i / 8] |= static_cast<std::byte>(!zero << i % 8);
    }
    return zeros;
  }

  // ---- one plane ----------------------------------------------------------------------------

  // Whether bytes of a plane are so evenly spread that a code would not pay: by the squares of the
  // counts of a sample. Noise has 18432 on average; from the limit on a code saves about a 16th.
  static bool is_noise(const std::byte* plane, size_t n) {
    constexpr size_t kRuns = 32;
    constexpr size_t kRun = 64;
    constexpr uint64_t kNoise = 25600;
    if (n < kRuns * kRun) return false;
    huffman::Counts counts{};
    for (size_t run = 0; run < kRuns; ++run) {
      const std::byte* const from = plane + n / kRuns * run;
      for (size_t i = 0; i < kRun; ++i) ++counts[static_cast<uint8_t>(from[i])];
    }
    uint64_t squares = 0;
    for (const uint64_t count : counts) squares += count * count;
    return squares < kNoise;
  }

  static size_t stream_begin(size_t n, size_t stream) {
    const size_t each = (n + huffman::kStreams - 1) / huffman::kStreams;
    return std::min(n, stream * each);
  }

  // The plane's code into `out`, which has room for 2 n + 512 bytes. 0: it would not be smaller.
  static size_t encode_plane(const std::byte* plane, size_t n, std::byte* out) {
    if (is_noise(plane, n)) return 0;
    const huffman::Counts counts = huffman::count(plane, n);
    size_t first = 0, last = huffman::kSymbols - 1;
    while (counts[first] == 0) ++first;
    while (counts[last] == 0) --last;
    out[1] = static_cast<std::byte>(first);
    if (first == last) return out[0] = std::byte{kConstant}, 2;
    const huffman::Lengths lengths = huffman::make_lengths(counts);
    uint64_t bits = 0;
    for (size_t s = first; s <= last; ++s) bits += uint64_t{counts[s]} * lengths[s];
    const size_t head = 3 + (last - first + 2) / 2 + kSizes;
    if (head + bits / 8 >= n) return 0;
    out[0] = std::byte{kCoded};
    out[2] = static_cast<std::byte>(last);
    std::memset(out + 3, 0, (last - first + 2) / 2);
    for (size_t s = first; s <= last; ++s)
      out[3 + (s - first) / 2] |= static_cast<std::byte>(lengths[s] << (s - first) % 2 * 4);
    const huffman::Encoder encoder(lengths);
    size_t at = head;
    for (size_t stream = 0; stream < huffman::kStreams; ++stream) {
      const size_t begin = stream_begin(n, stream);
      const size_t size = encoder(plane + begin, stream_begin(n, stream + 1) - begin, out + at);
      const uint32_t stored = static_cast<uint32_t>(size);
      std::memcpy(out + head - kSizes + 4 * stream, &stored, sizeof(stored));
      at += size;
    }
    return at < n + 1 ? at : 0;
  }

  static bool read_lengths(ConstBytes* src, huffman::Lengths* lengths) {
    if (src->size() < 2) return false;
    const size_t first = static_cast<size_t>((*src)[0]);
    const size_t last = static_cast<size_t>((*src)[1]);
    const size_t size = last > first ? (last - first + 2) / 2 : 0;
    if (size == 0 || src->size() < 2 + size + kSizes) return false;
    *lengths = {};
    for (size_t i = 0; i < 2 * size; ++i) {
      const auto length = static_cast<uint8_t>((*src)[2 + i / 2] >> i % 2 * 4 & std::byte{15});
      if (first + i <= last)
        (*lengths)[first + i] = length;
      else if (length != 0)
        return false;
    }
    *src = src->subspan(2 + size);
    return (*lengths)[first] != 0 && (*lengths)[last] != 0 && huffman::complete(*lengths);
  }

  // Reads a coded plane behind its mode, moves *src behind it.
  static bool decode_plane(ConstBytes* src, size_t n, std::byte* plane) {
    huffman::Lengths lengths;
    if (!read_lengths(src, &lengths)) return false;
    std::array<uint64_t, huffman::kStreams + 1> begin;  // in bytes of what follows the sizes
    begin[0] = 0;
    for (size_t stream = 0; stream < huffman::kStreams; ++stream) {
      uint32_t size;
      std::memcpy(&size, src->data() + 4 * stream, sizeof(size));
      begin[stream + 1] = begin[stream] + size;
    }
    *src = src->subspan(kSizes);
    if (begin.back() > src->size()) return false;
    const huffman::Decoder decoder(lengths);
    for (size_t stream = 0; stream < huffman::kStreams; stream += huffman::kTogether) {
      huffman::Decoder::Group group;
      for (size_t k = 0; k < huffman::kTogether; ++k)
        group[k] = {8 * begin[stream + k], plane + stream_begin(n, stream + k),
                    plane + stream_begin(n, stream + k + 1)};
      decoder.run(*src, &group);
      for (size_t k = 0; k < huffman::kTogether; ++k)
        if (!ends_at(*src, group[k].position, begin[stream + k + 1])) return false;
    }
    *src = src->subspan(begin.back());
    return true;
  }
  // The last code ends in the last byte before `end`, and the bits behind it are 0.
  static bool ends_at(ConstBytes src, uint64_t position, uint64_t end) {
    if ((position + 7) / 8 != end) return false;
    return position % 8 == 0 || (src[end - 1] >> position % 8) == std::byte{0};
  }

  // ---- blocks -------------------------------------------------------------------------------

  static void split(const std::byte* src, size_t n, size_t size, std::byte* const* planes) {
    switch (size) {
      case 2:
        return Ops::template split<uint16_t>(src, 0, n, planes);
      case 4:
        return Ops::template split<uint32_t>(src, 0, n, planes);
      default:
        return Ops::template split<uint64_t>(src, 0, n, planes);
    }
  }
  static void join(const std::byte* const* planes, size_t n, size_t size, std::byte* dst) {
    switch (size) {
      case 2:
        return Ops::template join<uint16_t>(planes, 0, n, dst);
      case 4:
        return Ops::template join<uint32_t>(planes, 0, n, dst);
      default:
        return Ops::template join<uint64_t>(planes, 0, n, dst);
    }
  }

  struct Output {
    Bytes dst;
    size_t position = 0;
    bool full = false;
    void put(ConstBytes bytes) {
      full |= bytes.size() > dst.size() - position;
      if (full || bytes.empty()) return;
      std::memcpy(dst.data() + position, bytes.data(), bytes.size());
      position += bytes.size();
    }
    void put(std::byte byte) { put(ConstBytes(&byte, 1)); }
  };

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto* own = static_cast<State*>(state);
    const size_t size = element(args);
    const size_t n_lines = (src.size() + kLine - 1) / kLine;
    const size_t bitmap_size = (n_lines + 7) / 8;
    if (!own->lines.reserve(src.size() + bitmap_size) ||
        !own->planes.reserve(src.size() + 2 * (src.size() / size) + 512))
      return no_memory();
    std::byte* const bitmap = own->lines.bytes.get();
    Output out{dst};
    ConstBytes body = src;
    const size_t zeros = n_lines > 0 ? find_lines(src, n_lines, bitmap) : 0;
    if (zeros > bitmap_size) {
      out.put(kBitmap);
      out.put(ConstBytes(bitmap, bitmap_size));
      body = keep_lines(src, n_lines, bitmap, bitmap + bitmap_size);
    } else if (!src.empty()) {
      out.put(kNoBitmap);
    }
    encode_body(body, size, own->planes.bytes.get(), &out);
    if (out.full)
      return fail(Code::kDstTooSmall, "planes: the code of %zu bytes does not fit %zu", src.size(),
                  dst.size());
    *written = out.position;
    return {};
  }

  static ConstBytes keep_lines(ConstBytes src, size_t n_lines, const std::byte* bitmap,
                               std::byte* to) {
    size_t kept = 0;
    for (size_t i = 0; i < n_lines; ++i) {
      if (!bit({bitmap, (n_lines + 7) / 8}, i)) continue;
      const size_t size = line_size(i, src.size());
      std::memcpy(to + kept, src.data() + i * kLine, size);
      kept += size;
    }
    return {to, kept};
  }

  static void encode_body(ConstBytes body, size_t size, std::byte* buffer, Output* out) {
    const size_t n = body.size() / size;
    std::array<std::byte*, kMostPlanes> planes;
    for (size_t p = 0; p < size; ++p) planes[p] = buffer + p * n;
    if (n > 0) split(body.data(), n, size, planes.data());
    std::byte* const code = buffer + size * n;
    for (size_t p = size; n > 0 && p-- > 0 && !out->full;) {
      const size_t coded = encode_plane(planes[p], n, code);
      if (coded > 0) {
        out->put(ConstBytes(code, coded));
      } else {
        out->put(std::byte{kRaw});
        out->put(ConstBytes(planes[p], n));
      }
    }
    out->put(body.last(body.size() - n * size));
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto* own = static_cast<State*>(state);
    *written = dst.size();
    if (dst.empty()) return src.empty() ? Status() : corrupt("bytes for none", src.size(), 0);
    if (src.empty() || src[0] > kBitmap) return corrupt("first byte, or none", 0, src.size());
    const size_t size = element(args);
    const size_t n_lines = (dst.size() + kLine - 1) / kLine;
    const size_t bitmap_size = (n_lines + 7) / 8;
    if (!own->planes.reserve(dst.size())) return no_memory();
    std::byte* const planes = own->planes.bytes.get();
    if (src[0] == kNoBitmap) return decode_body(src.subspan(1), size, planes, dst);
    if (src.size() < 1 + bitmap_size) return corrupt("bitmap ends", src.size(), 1 + bitmap_size);
    const ConstBytes bitmap = src.subspan(1, bitmap_size);
    if (n_lines % 8 != 0 && (bitmap.back() >> n_lines % 8) != std::byte{0})
      return corrupt("bits behind the last line", n_lines, n_lines);
    size_t kept = 0;
    for (const std::byte b : bitmap)
      kept += static_cast<size_t>(std::popcount(static_cast<uint8_t>(b)));
    size_t body_size = kept * kLine;
    if (bit(bitmap, n_lines - 1)) body_size -= kLine - line_size(n_lines - 1, dst.size());
    if (dst.size() - body_size <= bitmap_size)
      return corrupt("a bitmap for few zero lines", n_lines - kept, n_lines);
    if (!own->lines.reserve(body_size + 1)) return no_memory();
    const Bytes body(own->lines.bytes.get(), body_size);
    WPR_TRY(decode_body(src.subspan(1 + bitmap_size), size, planes, body));
    spread_lines(body.data(), bitmap, n_lines, dst);
    return {};
  }

  static void spread_lines(const std::byte* from, ConstBytes bitmap, size_t n_lines, Bytes dst) {
    for (size_t i = 0; i < n_lines; ++i) {
      const size_t size = line_size(i, dst.size());
      if (bit(bitmap, i)) {
        std::memcpy(dst.data() + i * kLine, from, size);
        from += size;
      } else {
        std::memset(dst.data() + i * kLine, 0, size);
      }
    }
  }

  static Status decode_body(ConstBytes src, size_t size, std::byte* buffer, Bytes body) {
    const size_t n = body.size() / size;
    std::array<const std::byte*, kMostPlanes> planes;
    for (size_t p = size; n > 0 && p-- > 0;) {
      std::byte* const own = buffer + p * n;
      planes[p] = own;
      if (src.empty()) return corrupt("ends before plane", p, size);
      const std::byte mode = src[0];
      src = src.subspan(1);
      if (mode == std::byte{kRaw} && src.size() >= n) {
        planes[p] = src.data();
        src = src.subspan(n);
      } else if (mode == std::byte{kConstant} && !src.empty()) {
        std::memset(own, static_cast<int>(src[0]), n);
        src = src.subspan(1);
      } else if (mode != std::byte{kCoded} || !decode_plane(&src, n, own)) {
        return corrupt("no code of plane", p, size);
      }
    }
    const size_t tail = body.size() - n * size;
    if (src.size() != tail) return corrupt("bytes behind the planes", src.size(), tail);
    if (n > 0) join(planes.data(), n, size, body.data());
    if (tail > 0) std::memcpy(body.data() + n * size, src.data(), tail);
    return {};
  }
};

}  // namespace
}  // namespace wirepress
