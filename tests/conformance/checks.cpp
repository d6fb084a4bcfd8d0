// SPDX-License-Identifier: Apache-2.0
// The checks of one codec: every kernel x setting x generator x size, valid and damaged.
#include <algorithm>
#include <cstring>

#include "tests/conformance/guard.hpp"
#include "tests/conformance/suite.hpp"

namespace wirepress::conformance {
namespace {

constexpr size_t kSizes[] = {0,    1,    2,    3,    4,     5,     15,    16,           17,  31,
                             32,   33,   63,   64,   65,    127,   129,   255,          257, 1000,
                             4095, 4096, 4097, 8191, 65535, 65536, 65537, (1 << 20) + 1};
constexpr size_t kQuickMost = 4097;
constexpr size_t kMost = (1 << 20) + 1;
constexpr size_t kDamageMost = 700;  // payloads up to this size are cut at every byte
constexpr int kFlips = 150;

bool same(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

std::vector<std::byte> keep(ConstBytes bytes) { return {bytes.begin(), bytes.end()}; }

class Checker {
 public:
  Checker(const Setting& setting, Log* log)
      : setting_(setting),
        codec_(*setting.entry->codec),
        log_(*log),
        kernels_(open_kernels(setting)),
        src_(std::max(codec_.bound(setting.args, kMost), kMost) + 1),
        dst_(codec_.bound(setting.args, kMost) + kMost) {}

  void run(const Generator& generator, size_t size, Flush flush) {
    flush_ = flush;
    Random random(size * 31 + 7);
    raw_.resize(size);
    generator.fill(random, raw_);
    const std::string where = setting_.recipe + ", " + generator.name + ", " +
                              std::to_string(size) + " bytes, flush at " +
                              (flush == Flush::kStart ? "start" : "end");
    expected_.clear();
    have_expected_ = codec_.lossless;
    if (have_expected_) expected_ = raw_;
    first_code_.clear();
    for (size_t k = 0; k < kernels_.size(); ++k) {
      log_.at(where + ", " + kernels_[k]->kernel().engine + ":" + kernels_[k]->kernel().variant);
      if (!encode(*kernels_[k], k == 0)) continue;
      decode_everywhere();
      short_destination(*kernels_[k]);
      if (code_.size() <= kDamageMost) damage();
    }
  }

 private:
  bool encode(OpenKernel& kernel, bool first) {
    // No bytes may have any address, or none.
    const bool nowhere = raw_.empty() && flush_ == Flush::kStart;
    const ConstBytes src = nowhere ? ConstBytes() : src_.copy(raw_, flush_);
    const size_t bound = codec_.bound(setting_.args, raw_.size());
    size_t written = SIZE_MAX;
    const Bytes dst = dst_.view(bound, flush_);
    const Status status = kernel.encode(src, dst, &written);
    if (!status.ok() || written > bound) {
      log_.error("bound() is %zu, but: %s", bound,
                 status.ok() ? "more was written" : status.text());
      return false;
    }
    code_ = keep(dst.first(written));
    log_.check(same(src, raw_), "encode changed its input");
    log_.check(!codec_.keeps_size || written == raw_.size(), "the size was not kept");
    // A used context must not leave traces: frames do not depend on which thread made a block.
    size_t again = 0;
    log_.check(kernel.encode(src, dst, &again).ok() && same(dst.first(again), code_),
               "the second encoding differs from the first");
    if (first) first_code_ = code_;
    if (codec_.exact_encode)
      log_.check(same(code_, first_code_), "writes other bytes than the first kernel");
    return true;
  }

  void decode_everywhere() {
    for (auto& kernel : kernels_) {
      const ConstBytes src = src_.copy(code_, flush_);
      const bool nowhere = raw_.empty() && flush_ == Flush::kStart;
      const Bytes dst = nowhere ? Bytes() : dst_.view(raw_.size(), flush_);
      size_t written = SIZE_MAX;
      const Status status = kernel->decode(src, dst, &written);
      if (!status.ok()) {
        log_.error("%s refuses it: %s", kernel->kernel().variant, status.text());
        continue;
      }
      if (!have_expected_) first_decoding(dst.first(written));
      log_.check(written == raw_.size() && same(dst, expected_), "decodes to something else");
      log_.check(same(src, code_), "decode changed its input");
    }
  }

  // A lossy codec: its own tests prove its bound; here, what it decodes to must be a fixed point.
  void first_decoding(ConstBytes decoded) {
    expected_ = keep(decoded);
    have_expected_ = true;
    if (!codec_.stable) return;
    OpenKernel& kernel = *kernels_.back();
    const size_t bound = codec_.bound(setting_.args, expected_.size());
    std::vector<std::byte> code(bound), twice(expected_.size());
    size_t written = 0, size = 0;
    const bool good = kernel.encode(expected_, code, &written).ok() &&
                      kernel.decode(ConstBytes(code).first(written), twice, &size).ok();
    log_.check(good && same(twice, expected_), "encoding the decoded data changes it again");
  }

  // Less room than needed, both ways. Libraries may refuse a little more room than they need, and
  // may find a smaller code when pressed; our own formats have exactly one size.
  void short_destination(OpenKernel& kernel) {
    const ConstBytes src = src_.copy(raw_, flush_);
    for (const size_t room : {code_.size(), code_.size() - 1, code_.size() / 2, size_t{0}}) {
      if (room > code_.size()) continue;
      const Bytes dst = dst_.view(room, flush_);
      size_t written = SIZE_MAX;
      const Status status = kernel.encode(src, dst, &written);
      if (status.ok()) {
        log_.check(written <= room && (!codec_.exact_encode || room == code_.size()),
                   "encoded into less room than the code has");
        continue;
      }
      log_.check(status.code() == Code::kDstTooSmall, "a short dst must be dst_too_small");
      log_.check(!(codec_.exact_encode && room == code_.size()), "refuses a dst of the exact size");
    }
    const ConstBytes code = src_.copy(code_, flush_);
    for (const size_t room : {raw_.size() - 1, raw_.size() / 2, size_t{0}, raw_.size() + 1}) {
      if (room > raw_.size() + 1 || room == raw_.size()) continue;
      const Bytes dst = dst_.view(room, flush_);
      size_t written = SIZE_MAX;
      const Status status = kernel.decode(code, dst, &written);
      // Where the raw size is an input, another one may by chance make sense.
      const bool fits =
          codec_.needs_size ? written == room : written == raw_.size() && room > written;
      log_.check(!status.ok() || fits, "decoded into the wrong room");
    }
  }

  void damage() {
    const std::vector<std::byte> code = code_;
    for (size_t size = 0; size < code.size(); ++size) {
      decode_damaged(ConstBytes(code).first(size), true);
    }
    Random random(code.size());
    std::vector<std::byte> flipped;
    for (int i = 0; i < kFlips && !code.empty(); ++i) {
      flipped = code;
      for (uint64_t flips = 1 + random.below(3); flips > 0; --flips)
        flipped[random.below(code.size())] ^= static_cast<std::byte>(1 << random.below(8));
      decode_damaged(flipped, false);
    }
    flipped = code;
    flipped.push_back(std::byte{0});
    decode_damaged(flipped, false);
  }

  // Refused, or expanded to something of a legal size, by all kernels alike; the guard pages see
  // the rest. What is cut off must be missed.
  void decode_damaged(ConstBytes code, bool cut) {
    const ConstBytes src = src_.copy(code, flush_);
    bool first_ok = false;
    std::vector<std::byte> first;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const Bytes dst = dst_.view(raw_.size(), flush_);
      size_t written = SIZE_MAX;
      const Status status = kernels_[k]->decode(src, dst, &written);
      if (status.ok()) {
        log_.check(written <= raw_.size(), "a damaged code expands beyond its room");
        if (cut) log_.check(written < raw_.size(), "a cut code expands to everything");
        if (codec_.needs_size) log_.check(written == raw_.size(), "expands to the wrong size");
      } else {
        const bool too_long = codec_.keeps_size && status.code() == Code::kDstTooSmall;
        log_.check(status.code() == Code::kCorrupt || too_long,
                   "a damaged code is not called corrupt");
      }
      if (k == 0) {
        first_ok = status.ok();
        if (first_ok) first = keep(dst.first(std::min(written, dst.size())));
      } else {
        log_.check(status.ok() == first_ok, "kernels disagree whether a code is corrupt");
        if (status.ok() && first_ok)
          log_.check(same(dst.first(std::min(written, dst.size())), first),
                     "kernels disagree what a damaged code means");
      }
    }
  }

  const Setting& setting_;
  const Codec& codec_;
  Log& log_;
  Kernels kernels_;
  Guarded src_;
  Guarded dst_;
  Flush flush_ = Flush::kEnd;
  std::vector<std::byte> raw_, code_, first_code_, expected_;
  bool have_expected_ = false;
};

void check_registration(const Entry& entry, Log* log) {
  log->at(entry.codec->name);
  log->check(!entry.kernels.empty() && entry.kernels.back()->usable(),
             "its last kernel must run everywhere");
  log->check(entry.codec->params.size() <= kMaxParams, "too many parameters");
  for (const Param& param : entry.codec->params) {
    log->check(param.min >= -128 && param.max <= 127, "a parameter does not fit a signed byte");
    log->check(param.real || (param.fallback >= param.min && param.fallback <= param.max),
               "a default out of range");
    log->check(!param.words || param.min == 0, "words begin at 0");
  }
  for (const Kernel* kernel : entry.kernels) {
    log->check((kernel->open == nullptr) == (kernel->close == nullptr), "open without close");
    if (!kernel->usable())
      log->skip(std::string(entry.codec->name) + " " + kernel->engine + ":" + kernel->variant +
                ": this machine cannot run it");
  }
}

}  // namespace

void check_codec(const Entry& entry, const Options& options, Log* log) {
  check_registration(entry, log);
  for (const Setting& setting : settings_of(entry, DType::kBytes)) {
    Checker checker(setting, log);
    for (const Generator& generator : generators()) {
      if (!options.generator.empty() && options.generator != generator.name) continue;
      for (const size_t size : kSizes) {
        if (size > kQuickMost && options.quick) continue;
        // Slow levels need a second for it and do nothing there that they do not do before.
        if (size == kMost && !setting.is_default && !entry.codec->keeps_size) continue;
        checker.run(generator, size, Flush::kEnd);
        checker.run(generator, size, Flush::kStart);
      }
    }
  }
}

}  // namespace wirepress::conformance
