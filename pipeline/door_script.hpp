// SPDX-License-Identifier: Apache-2.0
// For tests: bytes as a sequence of calls of the C door on one context, with options set between
// them. Buffers have exactly the promised sizes, so that a sanitizer sees what goes beyond. A call
// that gives other bytes than it must ends the program with a sentence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace wirepress {

class DoorScript {
 public:
  DoorScript(const uint8_t* bytes, size_t n) : at_(bytes), end_(bytes + n) {
    if (wpr_create(&ctx_) != WPR_OK) stop("wpr_create");
    set("threads", "2");
    set("block_size", "1KiB");
  }
  ~DoorScript() {
    wpr_free(twin_);
    wpr_free(ctx_);
  }
  DoorScript(const DoorScript&) = delete;
  DoorScript& operator=(const DoorScript&) = delete;

  void run() {
    while (at_ < end_) {
      switch (take() % 10) {
        case 0:
        case 1:
          option();
          break;
        case 2:
          begin();
          break;
        case 3:
        case 4:
          update();
          break;
        case 5:
          finish();
          break;
        case 6:
          whole();
          break;
        case 7:
          expand_begin();
          break;
        case 8:
          expand_update();
          break;
        default:
          gradient();
      }
    }
  }

 private:
  using Data = std::vector<uint8_t>;

  [[noreturn]] void stop(const char* what) const {
    std::fprintf(stderr, "door script: %s: %s\n", what, ctx_ ? wpr_error(ctx_) : "");
    std::abort();
  }
  void expect(bool good, const char* what) const {
    if (!good) stop(what);
  }

  static const std::vector<float>& wave() {
    static const std::vector<float> values = [] {
      std::vector<float> made(60000);
      for (size_t i = 0; i < made.size(); ++i)
        made[i] = std::round(1000 * std::sin(static_cast<float>(i) / 50)) / 8;
      return made;
    }();
    return values;
  }

  // Whether the last failure was a recipe without the variant that the option engine names.
  bool lacks_kernel() const {
    const std::string engine = wpr_get(ctx_, "engine");
    return engine.find(':') != std::string::npos &&
           std::string(wpr_error(ctx_)).find("has no kernel " + engine) != std::string::npos;
  }

  uint8_t take() { return at_ < end_ ? *at_++ : 0; }
  void set(const char* key, const char* value) { (void)wpr_set(ctx_, key, value); }
  // A part of the values, as bytes in an allocation of its own.
  Data some() {
    const size_t first = size_t{take()} * 50, n = size_t{take()} * take() % 40000;
    const auto* begin = reinterpret_cast<const uint8_t*>(values_.data() + first);
    return {begin, begin + n};
  }

  void option() {
    struct Row {
      const char* key;
      std::vector<const char*> values;
    };
    static const Row rows[] = {
        {"threads", {"1", "2", "3", "5", "4097", "x"}},
        {"block_size", {"1KiB", "2KiB", "8KiB", "64KiB", "1000"}},
        {"recipe",
         {"lz4", "shuffle:4+zstd:1", "store", "auto", "bx:m=4", "int8:round=stochastic",
          "bf16:round=stochastic", "auto:rel=1e-2", "sz3:abs=1e-2", "nothing"}},
        {"seed", {"0", "1", "77"}},
        {"checksum", {"on", "off"}},
        {"probe", {"on", "off"}},
        {"engine", {"auto", "cpu:scalar", "cpu"}},
        {"link", {"1Gbps", "100Gbps"}}};
    const Row& row = rows[take() % std::size(rows)];
    set(row.key, row.values[take() % row.values.size()]);
  }

  // A context whose options are those of ctx_ now.
  wpr_ctx* twin() const {
    wpr_ctx* made = nullptr;
    expect(wpr_create(&made) == WPR_OK, "wpr_create of a twin");
    wpr_option_info info;
    for (size_t i = 0; wpr_option_at(i, &info); ++i)
      expect(wpr_set(made, info.key, wpr_get(ctx_, info.key)) == WPR_OK, "an option of a twin");
    return made;
  }

  void begin() {
    const wpr_dtype dtype = take() % 2 ? WPR_FLOAT32 : WPR_BYTES;
    Data head(wpr_stream_bound(ctx_, 0));
    size_t written = 0;
    wpr_free(twin_);
    twin_ = nullptr;
    twin_ = twin();
    streaming_ = wpr_stream_begin(ctx_, dtype, head.data(), head.size(), &written) == WPR_OK;
    if (!streaming_) return;
    dtype_ = dtype;
    stream_.assign(head.begin(), head.begin() + static_cast<ptrdiff_t>(written));
    streamed_.clear();
  }

  void update() {
    const Data piece = some();
    Data out(wpr_stream_bound(ctx_, piece.size()));
    size_t written = 0;
    const wpr_status status =
        wpr_stream_update(ctx_, piece.data(), piece.size(), out.data(), out.size(), &written);
    expect((status == WPR_OK) == streaming_, "stream_update");
    if (!streaming_) return;
    stream_.insert(stream_.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(written));
    streamed_.insert(streamed_.end(), piece.begin(), piece.end());
  }

  // What was streamed with options set in between is what a context without them writes.
  void finish() {
    Data out(wpr_stream_bound(ctx_, 0));
    size_t written = 0;
    const wpr_status status = wpr_stream_end(ctx_, out.data(), out.size(), &written);
    expect((status == WPR_OK) == streaming_, "stream_end");
    if (!streaming_) return;
    streaming_ = false;
    stream_.insert(stream_.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(written));
    Data same(2 * wpr_stream_bound(twin_, streamed_.size()) + wpr_stream_bound(twin_, 0));
    size_t n = 0, part = 0;
    const auto more = [&](wpr_status step) {
      expect(step == WPR_OK, "the twin's stream");
      n += part;
    };
    more(wpr_stream_begin(twin_, dtype_, same.data(), same.size(), &part));
    more(wpr_stream_update(twin_, streamed_.data(), streamed_.size(), same.data() + n,
                           same.size() - n, &part));
    more(wpr_stream_end(twin_, same.data() + n, same.size() - n, &part));
    same.resize(n);
    expect(same == stream_, "options set in mid-stream changed its bytes");
    Data back(streamed_.size());
    expect(wpr_decompress(ctx_, stream_.data(), stream_.size(), back.data(), back.size(), &n) ==
                   WPR_OK &&
               n == back.size(),
           "a stream's frame is not read");
    int lossless = 0;
    if (wpr_lossless(twin_, wpr_get(twin_, "recipe"), dtype_, &lossless) == WPR_OK && lossless)
      expect(back == streamed_, "a stream's frame holds other bytes");
  }

  void whole() {
    Data raw = some();
    const wpr_dtype dtype = take() % 2 ? WPR_FLOAT32 : WPR_BYTES;
    if (dtype == WPR_FLOAT32) raw.resize(raw.size() / 4 * 4);
    const uint64_t shape = raw.size() / (dtype == WPR_FLOAT32 ? 4 : 1);
    Data frame(wpr_bound(ctx_, raw.size()));
    size_t written = 0, n = 0;
    int lossless = 0;
    const char* recipe = wpr_get(ctx_, "recipe");
    const bool known = wpr_lossless(ctx_, recipe, dtype, &lossless) == WPR_OK;
    const wpr_status status = wpr_compress_array(ctx_, raw.data(), dtype, WPR_NO_SHAPE, &shape,
                                                 frame.data(), frame.size(), &written);
    if (status == WPR_PARAMETER && lacks_kernel()) return;
    expect((status == WPR_OK) == (known && (lossless || dtype == WPR_FLOAT32)), "compress");
    if (status != WPR_OK) return;
    frame.resize(written);
    Data back(raw.size());
    expect(
        wpr_decompress(ctx_, frame.data(), frame.size(), back.data(), back.size(), &n) == WPR_OK &&
            n == back.size(),
        "decompress");
    if (lossless) expect(back == raw, "other bytes came back");
    if (!raw.empty()) {
      const size_t offset = take() * raw.size() / 256;
      Data part(raw.size() - offset);
      expect(wpr_decompress_range(ctx_, frame.data(), frame.size(), offset, part.size(),
                                  part.data()) == WPR_OK &&
                 std::memcmp(part.data(), back.data() + offset, part.size()) == 0,
             "decompress_range");
    }
    frame_ = frame;
    content_ = back;
    expanding_ = false;
  }

  void expand_begin() {
    if (frame_.empty()) return;
    expect(wpr_expand_begin(ctx_) == WPR_OK, "expand_begin");
    expanding_ = true;
    eaten_ = expanded_ = 0;
  }

  void expand_update() {
    if (!expanding_) return;
    const size_t n = std::min<size_t>(frame_.size() - eaten_, size_t{take()} * take());
    const Data piece(frame_.begin() + static_cast<ptrdiff_t>(eaten_),
                     frame_.begin() + static_cast<ptrdiff_t>(eaten_ + n));
    Data out(size_t{take()} * take());
    size_t consumed = 0, written = 0;
    int done = 0;
    expect(wpr_expand_update(ctx_, piece.data(), n, &consumed, out.data(), out.size(), &written,
                             &done) == WPR_OK,
           "expand_update");
    expect(consumed <= n && expanded_ + written <= content_.size() &&
               (written == 0 || std::memcmp(out.data(), content_.data() + expanded_, written) == 0),
           "expand_update gives other bytes");
    eaten_ += consumed;
    expanded_ += written;
    if (done) expect(expanded_ == content_.size(), "expand_update ends early");
    expanding_ = !done;
  }

  void gradient() {
    const size_t n = size_t{take()} * 20;
    const std::vector<float> src(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(n));
    std::vector<float> residual(n), sum(n);
    Data frame(wpr_bound(ctx_, 4 * n));
    size_t written = 0, n_values = 0;
    if (wpr_compress_feedback(ctx_, src.data(), residual.data(), n, frame.data(), frame.size(),
                              &written) != WPR_OK)
      return;
    expect(wpr_decompress_add(ctx_, frame.data(), written, sum.data(), n, &n_values) == WPR_OK &&
               n_values == n,
           "decompress_add");
    Data twice(wpr_bound(ctx_, 4 * n));
    size_t size = 0;
    (void)wpr_add(ctx_, frame.data(), written, frame.data(), written, twice.data(), twice.size(),
                  &size);
  }

  const uint8_t *at_, *end_;
  wpr_ctx* ctx_ = nullptr;
  wpr_ctx* twin_ = nullptr;
  const std::vector<float>& values_ = wave();
  bool streaming_ = false, expanding_ = false;
  wpr_dtype dtype_ = WPR_BYTES;
  Data stream_, streamed_, frame_, content_;
  size_t eaten_ = 0, expanded_ = 0;
};

}  // namespace wirepress
