// SPDX-License-Identifier: Apache-2.0
// Damaged frames through the C door: every truncation, and random mutations. With checksums a
// damaged frame is refused or gives the right data; without, nothing crashes, hangs or touches
// memory outside its buffers (all lie against unreadable pages).
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/conformance/data.hpp"
#include "tests/conformance/guard.hpp"
#include "wirepress/wirepress.h"

namespace wirepress::conformance {
namespace {

using Data = std::vector<std::byte>;

struct Frame {
  std::string what;
  bool checksum;
  size_t header_size;
  Data bytes;
  Data content;
};

constexpr size_t kMost = 1 << 14;  // no frame here is larger, damaged or not
char crash_text[256];              // what is being done, for the signal handler

void on_crash(int) {
  char text[400];
  const int n = std::snprintf(text, sizeof(text), "FAIL %s: touched memory outside\n", crash_text);
  if (write(STDERR_FILENO, text, static_cast<size_t>(n)) < 0) _exit(2);
  _exit(1);
}

[[noreturn]] void stop(const char* what, const char* why) {
  std::fprintf(stderr, "mutations: %s: %s\n", what, why);
  std::exit(1);
}

class Context {
 public:
  Context() {
    if (wpr_create(&ctx_) != WPR_OK) stop("wpr_create", wpr_error(ctx_));
    set("threads", "1");
  }
  ~Context() { wpr_free(ctx_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void set(const char* key, const char* value) {
    if (wpr_set(ctx_, key, value) != WPR_OK) stop(key, wpr_error(ctx_));
  }
  operator wpr_ctx*() const { return ctx_; }

 private:
  wpr_ctx* ctx_ = nullptr;
};

// Plain bytes where the recipe loses nothing.
wpr_dtype dtype_for(Context& ctx) {
  int lossless = 0;
  if (wpr_lossless(ctx, wpr_get(ctx, "recipe"), WPR_BYTES, &lossless) != WPR_OK)
    stop("lossless", wpr_error(ctx));
  return lossless ? WPR_BYTES : WPR_FLOAT32;
}

Data streamed(Context& ctx, const Data& raw) {
  Data out(wpr_stream_bound(ctx, raw.size()) * 3);
  size_t at = 0, written = 0;
  const auto step = [&](wpr_status status) {
    if (status != WPR_OK) stop("stream", wpr_error(ctx));
    at += written;
  };
  step(wpr_stream_begin(ctx, dtype_for(ctx), out.data(), out.size(), &written));
  step(wpr_stream_update(ctx, raw.data(), raw.size(), out.data() + at, out.size() - at, &written));
  step(wpr_stream_end(ctx, out.data() + at, out.size() - at, &written));
  out.resize(at);
  return out;
}

Data whole(Context& ctx, const Data& raw) {
  Data out(wpr_bound(ctx, raw.size()));
  size_t written = 0;
  const wpr_dtype dtype = dtype_for(ctx);
  const uint64_t shape = raw.size() / (dtype == WPR_BYTES ? 1 : sizeof(float));
  if (wpr_compress_array(ctx, raw.data(), dtype, WPR_NO_SHAPE, &shape, out.data(), out.size(),
                         &written) != WPR_OK)
    stop("compress", wpr_error(ctx));
  out.resize(written);
  return out;
}

Data expand(Context& ctx, const Frame& frame, size_t size) {
  Data out(size);
  size_t written = 0;
  if (wpr_decompress(ctx, frame.bytes.data(), frame.bytes.size(), out.data(), size, &written))
    stop(frame.what.c_str(), wpr_error(ctx));
  out.resize(written);
  return out;
}

std::vector<Frame> make_frames() {
  std::vector<std::string> recipes = {"shuffle:4+zstd:1", "shuffle:8+lz4", "zstd:1+lz4"};
  wpr_codec_info codec;
  for (size_t i = 0; wpr_codec_at(i, &codec); ++i) recipes.push_back(codec.name);
  std::vector<Frame> frames;
  Context ctx;
  ctx.set("block_size", "1KiB");
  for (const std::string& recipe : recipes) {
    ctx.set("recipe", recipe.c_str());
    for (const bool checksum : {true, false}) {
      ctx.set("checksum", checksum ? "on" : "off");
      for (const bool stream : {false, true}) {
        for (const size_t size : {0, 700, 2048, 3001}) {
          Data raw(size);
          Random random(size);
          find_generator(size % 2 ? "gradient" : "text")->fill(random, raw);
          Frame frame = {recipe + (stream ? ", streamed, " : ", ") + std::to_string(size) +
                             (checksum ? " bytes, checksum" : " bytes, no checksum"),
                         checksum,
                         0,
                         stream ? streamed(ctx, raw) : whole(ctx, raw),
                         {}};
          frame.content = expand(ctx, frame, size);
          wpr_info info;
          if (wpr_inspect(ctx, frame.bytes.data(), frame.bytes.size(), &info) != WPR_OK)
            stop("inspect", wpr_error(ctx));
          frame.header_size = info.header_size;
          frames.push_back(std::move(frame));
        }
      }
    }
  }
  return frames;
}

// One to three small changes, of the kinds that broken links, disks and people make.
void mutate(Random& random, Data* data) {
  for (uint64_t n = 1 + random.below(3); n > 0; --n) {
    const size_t size = data->size();
    if (size == 0) return;
    const size_t at = random.below(size);
    const size_t length = std::min<size_t>(1 + random.below(1 + random.below(64)), size - at);
    const auto begin = data->begin() + static_cast<ptrdiff_t>(at);
    const auto end = begin + static_cast<ptrdiff_t>(length);
    switch (random.below(8)) {
      case 0:
      case 1:
        (*data)[at] ^= static_cast<std::byte>(1 << random.below(8));
        break;
      case 2:
        (*data)[at] = static_cast<std::byte>(random.next());
        break;
      case 3:
        std::fill(begin, end, random.below(2) ? std::byte{0} : std::byte{0xFF});
        break;
      case 4:
        data->erase(begin, end);
        break;
      case 5:
        if (size + length <= kMost) {
          const Data copy(begin, end);
          data->insert(data->begin() + static_cast<ptrdiff_t>(random.below(size)), copy.begin(),
                       copy.end());
        }
        break;
      case 6: {
        const Data copy(begin, end);
        std::copy(copy.begin(), copy.end(),
                  data->begin() + static_cast<ptrdiff_t>(random.below(size - length + 1)));
        break;
      }
      default: {
        static constexpr uint32_t kEdges[] = {0,          1,          0x7FFFFFFF, 0x80000000,
                                              0xFFFFFFFF, 0x40000000, 0xC0000000, 0x3FFFFFFF,
                                              0x400,      0x80000400};
        const uint32_t edge = kEdges[random.below(std::size(kEdges))];
        std::memcpy(data->data() + at, &edge, std::min<size_t>(sizeof(edge), size - at));
      }
    }
  }
}

// Makes the header checksum right again, so that damage gets past it.
void seal(size_t header_size, Data* data) {
  if (data->size() < header_size) return;
  const uint32_t sum = static_cast<uint32_t>(XXH3_64bits(data->data(), header_size - 4));
  std::memcpy(data->data() + header_size - 4, &sum, sizeof(sum));
}

class Doors {
 public:
  Doors() : src_(kMost), dst_(kMost) {
    ctx_.set("threads", "1");
    many_.set("threads", "2");
  }
  long errors() const { return errors_; }
  long accepted() const { return accepted_; }

  // Every way in. `must_fail`: the bytes are a strict prefix of a frame.
  void run(const Frame& frame, const Data& damaged, bool must_fail, Random& random) {
    std::snprintf(crash_text, sizeof(crash_text), "%s", frame.what.c_str());
    frame_ = &frame;
    const Flush flush = random.below(2) ? Flush::kStart : Flush::kEnd;
    const ConstBytes src = src_.copy(damaged, flush);
    whole_frame(random.below(16) ? ctx_ : many_, src, flush, must_fail);
    piece_by_piece(src, flush, must_fail, random);
    parts(src, flush, random);
  }

 private:
  void error(const char* what) {
    if (++errors_ < 50) std::fprintf(stderr, "FAIL %s: %s\n", frame_->what.c_str(), what);
  }

  bool is_content(const std::byte* data, size_t offset, size_t size) const {
    return offset + size <= frame_->content.size() &&
           (size == 0 || std::memcmp(data, frame_->content.data() + offset, size) == 0);
  }

  void whole_frame(Context& ctx, ConstBytes src, Flush flush, bool must_fail) {
    const Bytes dst = dst_.view(frame_->content.size(), flush);
    size_t written = SIZE_MAX;
    const wpr_status status =
        wpr_decompress(ctx, src.data(), src.size(), dst.data(), dst.size(), &written);
    if (status != WPR_OK) {
      if (written != SIZE_MAX) error("written was set by a failure");
      if (wpr_error(ctx)[0] == '\0') error("a failure without a sentence");
      return;
    }
    ++accepted_;
    if (must_fail) error("a cut frame was expanded");
    if (written > dst.size()) error("more written than there is room");
    if (frame_->checksum &&
        (written != frame_->content.size() || !is_content(dst.data(), 0, written)))
      error("expanded to other data in spite of the checksum");
  }

  void piece_by_piece(ConstBytes src, Flush flush, bool must_fail, Random& random) {
    if (wpr_expand_begin(ctx_) != WPR_OK) return error("expand_begin");
    size_t at = 0, content = 0;
    int done = 0;
    for (int idle = 0; idle < 3 && !done;) {
      const size_t take = std::min<size_t>(src.size() - at, random.below(2000));
      const Bytes dst = dst_.view(1 + random.below(3000), flush);
      size_t consumed = 0, written = 0;
      const wpr_status status = wpr_expand_update(ctx_, src.data() + at, take, &consumed,
                                                  dst.data(), dst.size(), &written, &done);
      if (status != WPR_OK) return;
      if (consumed > take || written > dst.size()) return error("consumed or wrote too much");
      if (frame_->checksum && !is_content(dst.data(), content, written))
        return error("streamed other data in spite of the checksum");
      at += consumed;
      content += written;
      if (content > (size_t{1} << 31)) return error("expands without end");
      idle = consumed == 0 && written == 0 && at == src.size() ? idle + 1 : 0;
    }
    if (done && must_fail) error("a cut frame was called done");
    if (done && frame_->checksum && content != frame_->content.size()) error("done too early");
  }

  void parts(ConstBytes src, Flush flush, Random& random) {
    wpr_info info;
    (void)wpr_inspect(ctx_, src.data(), src.size(), &info);
    uint64_t raw_size;
    (void)wpr_raw_size(src.data(), src.size(), &raw_size);
    const size_t most = frame_->content.size();
    const size_t offset = random.below(most + 2);
    const Bytes dst = dst_.view(random.below(most + 2), flush);
    const wpr_status status =
        wpr_decompress_range(ctx_, src.data(), src.size(), offset, dst.size(), dst.data());
    if (status == WPR_OK && frame_->checksum && !is_content(dst.data(), offset, dst.size()))
      error("a range is other data in spite of the checksum");
  }

  Context ctx_, many_;
  Guarded src_, dst_;
  const Frame* frame_ = nullptr;
  long errors_ = 0;
  long accepted_ = 0;
};

}  // namespace
}  // namespace wirepress::conformance

int main(int argc, char** argv) {
  using namespace wirepress::conformance;
  if (argc > 3 || (argc > 1 && std::strcmp(argv[1], "--help") == 0)) {
    std::puts("mutations [COUNT [SEED]]: every truncation and COUNT (100000) random mutations");
    return argc > 3 ? 2 : 0;
  }
  const long count = argc > 1 ? std::atol(argv[1]) : 100000;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::signal(SIGSEGV, on_crash);
  std::signal(SIGBUS, on_crash);

  const std::vector<Frame> frames = make_frames();
  Doors doors;
  long cuts = 0;
  for (const Frame& frame : frames) {
    doors.run(frame, frame.bytes, false, random);
    for (size_t size = 0; size < frame.bytes.size(); ++size, ++cuts)
      doors.run(frame,
                Data(frame.bytes.begin(), frame.bytes.begin() + static_cast<ptrdiff_t>(size)), true,
                random);
  }
  if (doors.accepted() != static_cast<long>(frames.size()))
    return std::fprintf(stderr, "FAIL: whole frames were refused\n"), 1;
  const long before = doors.accepted();
  for (long i = 0; i < count; ++i) {
    const Frame& frame = frames[random.below(frames.size())];
    Data damaged = frame.bytes;
    mutate(random, &damaged);
    if (!frame.checksum && random.below(2)) seal(frame.header_size, &damaged);
    doors.run(frame, damaged, false, random);
  }
  std::printf("%zu frames, %ld truncations, %ld mutations (%ld expanded), %ld failed\n",
              frames.size(), cuts, count, doors.accepted() - before, doors.errors());
  return doors.errors() == 0 ? 0 : 1;
}
