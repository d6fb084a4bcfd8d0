// SPDX-License-Identifier: Apache-2.0
// The checks of one codec: every kernel x setting x generator x size, valid and damaged.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

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

  void leave_out(std::string_view engine) {
    std::erase_if(kernels_,
                  [engine](const auto& kernel) { return kernel->kernel().engine == engine; });
  }

  void run_without(std::string_view engine, const Generator& generator, size_t size, Flush flush) {
    std::vector<std::pair<size_t, std::unique_ptr<OpenKernel>>> aside;
    for (size_t k = kernels_.size(); k-- > 0;) {
      if (kernels_[k]->kernel().engine != engine) continue;
      aside.emplace_back(k, std::move(kernels_[k]));
      kernels_.erase(kernels_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    run(generator, size, flush);
    for (; !aside.empty(); aside.pop_back())
      kernels_.insert(kernels_.begin() + static_cast<std::ptrdiff_t>(aside.back().first),
                      std::move(aside.back().second));
  }

  void run(const Generator& generator, size_t size, Flush flush) {
    flush_ = flush;
    Random random(size * 31 + 7);
    raw_.resize(size);
    fill_as(setting_.args.dtype, generator, random, raw_);
    const std::string where = setting_.text + ", " + generator.name + ", " + std::to_string(size) +
                              " bytes, flush at " + (flush == Flush::kStart ? "start" : "end");
    expected_.clear();
    have_expected_ = codec_.is_lossless(setting_.args);
    if (have_expected_) expected_ = raw_;
    first_code_.clear();
    refused_ = false;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      log_.at(where + ", " + kernels_[k]->kernel().engine + ":" + kernels_[k]->kernel().variant);
      if (!encode(*kernels_[k], k == 0)) continue;
      const bool known = k > 0 && code_ == first_code_;
      if (!known) decode_everywhere();
      if (kernels_[k]->kernel().parts) decode_in_parts(*kernels_[k]);
      if (kernels_[k]->kernel().decode_add) decode_adding(*kernels_[k]);
      if (kernels_[k]->kernel().encode_feedback) feedback(generator, *kernels_[k]);
      if (kernels_[k]->kernel().add && k > 0) add_like_first(generator, *kernels_[k]);
      // Clock by clock it takes minutes, and a core finds its room full there as it does before.
      if (size <= kQuickMost || sees_addresses(*kernels_[k])) short_destination(*kernels_[k]);
      if (!known && code_.size() <= kDamageMost) damage();
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
    if (codec_.may_refuse && status.code() == Code::kDstTooSmall) return refused(first);
    if (!status.ok() || written > bound) {
      log_.error("bound() is %zu, but: %s", bound,
                 status.ok() ? "more was written" : status.text());
      return false;
    }
    code_ = keep(dst.first(written));
    log_.check(same(src, raw_), "encode changed its input");
    log_.check(!codec_.keeps_size || written == raw_.size(), "the size was not kept");
    // A used context must not leave traces: frames do not depend on which thread made a block. Our
    // own formats need no more room than the code has.
    size_t again = 0;
    const Bytes room = codec_.exact_encode ? dst_.view(written, flush_) : dst;
    log_.check(kernel.encode(src, room, &again).ok() && same(room.first(again), code_),
               "the second encoding differs from the first, or needs more room");
    if (first) first_code_ = code_;
    log_.check(!refused_, "codes what the first kernel refuses");
    if (codec_.exact_encode)
      log_.check(same(code_, first_code_), "writes other bytes than the first kernel");
    return true;
  }

  bool refused(bool first) {
    if (first) refused_ = true;
    log_.check(refused_, "refuses what the first kernel codes");
    return false;
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

  void decode_in_parts(OpenKernel& kernel) {
    const ConstBytes src = src_.copy(code_, flush_);
    const Bytes dst = dst_.view(raw_.size(), flush_);
    const size_t n = kernel.parts(src, raw_.size());
    if (n <= 1) return;
    std::fill(dst.begin(), dst.end(), std::byte{0xA5});
    for (size_t part = n; part-- > 0;)
      log_.check(kernel.decode_part(src, part, dst).ok(), "a part is refused");
    log_.check(same(dst, expected_), "the parts decode to something else");
  }

  static float load(ConstBytes bytes, size_t i) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof value);
    return value;
  }
  // Equal bits, or both NaN: the sum of two NaNs may be either.
  static bool same_value(float a, float b) {
    return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
  }

  void decode_adding(OpenKernel& kernel) {
    const std::vector<std::byte> before = other_data("gradient", 3);
    const ConstBytes src = src_.copy(code_, flush_);
    const Bytes dst = dst_.view(raw_.size(), flush_);
    std::copy(before.begin(), before.end(), dst.begin());
    log_.check(kernel.decode_add(src, dst).ok(), "decode_add refuses it");
    bool good = true;
    for (size_t i = 0; i + 4 <= dst.size(); i += 4)
      good &= same_value(load(dst, i), load(before, i) + load(expected_, i));
    log_.check(good, "decode_add adds something else");
  }

  std::vector<std::byte> other_data(const char* name, uint64_t seed) const {
    std::vector<std::byte> data(raw_.size());
    Random random(seed);
    find_generator(name)->fill(random, data);
    return data;
  }

  // What the portable kernel does in three steps.
  void feedback(const Generator& generator, OpenKernel& kernel) {
    const bool any = std::string(generator.name) == "float_bits";
    const std::vector<std::byte> before = other_data(any ? "float_bits" : "gradient", 5);
    const size_t bound = codec_.bound(setting_.args, raw_.size());
    std::vector<std::byte> sum = raw_, code(bound), decoded = raw_;
    for (size_t i = 0; i + 4 <= sum.size(); i += 4) {
      const float t = load(raw_, i) + load(before, i);
      std::memcpy(&sum[i], &t, 4);
    }
    OpenKernel& portable = *kernels_.back();
    size_t size = 0, written = 0;
    if (!portable.encode(sum, code, &size).ok() ||
        !portable.decode(ConstBytes(code).first(size), decoded, &written).ok())
      return log_.check(codec_.may_refuse, "the sum cannot be coded");
    code.resize(size);
    if (!residual_) residual_ = std::make_unique<Guarded>(kMost);
    const Bytes residual = residual_->view(raw_.size(), flush_);
    std::copy(before.begin(), before.end(), residual.begin());
    const ConstBytes src = src_.copy(raw_, flush_);
    const Bytes dst = dst_.view(bound, flush_);
    log_.check(
        kernel.encode_feedback(src, residual, dst, &written).ok() && same(dst.first(written), code),
        "encode_feedback writes another code than encode of the sum");
    bool good = true;
    for (size_t i = 0; i + 4 <= residual.size(); i += 4) {
      const float rest = load(sum, i) - load(decoded, i);
      good &= same_value(load(residual, i), std::isfinite(rest) ? rest : 0.0f);
    }
    log_.check(good, "encode_feedback leaves another residual");
    if (dst.empty()) return;
    std::copy(before.begin(), before.end(), residual.begin());
    const Bytes shorter = dst.first(bound - 1);
    log_.check(
        kernel.encode_feedback(src, residual, shorter, &written).code() == Code::kDstTooSmall &&
            same(residual, before),
        "encode_feedback with a dst below bound() must fail before it touches anything");
  }

  void add_like_first(const Generator& generator, OpenKernel& kernel) {
    std::vector<std::byte> other(raw_.size());
    Random random(raw_.size() + 99);
    generator.fill(random, other);
    std::vector<std::byte> code(codec_.bound(setting_.args, raw_.size()));
    std::vector<std::byte> sum[2] = {code, code};
    size_t size = 0, written[2] = {0, 0};
    if (!kernel.encode(other, code, &size).ok()) return;
    code.resize(size);
    OpenKernel* both[2] = {kernels_.front().get(), &kernel};
    Status status[2];
    for (const int i : {0, 1}) {
      status[i] = both[i]->add(code_, code, raw_.size(), sum[i], &written[i]);
      sum[i].resize(written[i]);
    }
    log_.check(status[0].code() == status[1].code(), "kernels disagree whether codes can be added");
    const bool none =
        status[0].code() == Code::kUnsupported || status[0].code() == Code::kDstTooSmall;
    log_.check(status[0].ok() ? sum[0] == sum[1] : none, "kernels add to different codes");
  }

  // Less room than needed, both ways. Libraries may refuse a little more room than they need, and
  // may find a smaller code when pressed; our own formats have exactly one size.
  void short_destination(OpenKernel& kernel) {
    const ConstBytes src = src_.copy(raw_, flush_);
    for (const size_t room : {code_.size(), code_.size() - 1, code_.size() / 2, size_t{0}}) {
      if (room > code_.size() || (codec_.exact_encode && room == code_.size())) continue;
      const Bytes dst = dst_.view(room, flush_);
      size_t written = SIZE_MAX;
      const Status status = kernel.encode(src, dst, &written);
      if (status.ok()) {
        log_.check(written <= room && !codec_.exact_encode,
                   "encoded into less room than the code has");
        continue;
      }
      log_.check(status.code() == Code::kDstTooSmall, "a short dst must be dst_too_small");
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

  // Cores and emulated GPUs see copies: nothing depends on where a damaged code lies.
  static bool sees_addresses(const OpenKernel& kernel) {
    const std::string_view engine = kernel.kernel().engine;
    return engine != "rtl" && engine != "cuda";
  }

  static bool has_device(const OpenKernel& kernel) {
    return std::ranges::any_of(engines(), [&](const Engine* engine) {
      return engine->select && std::string_view(engine->name) == kernel.kernel().engine;
    });
  }

  // Refused, or expanded to something of a legal size, by all kernels alike; the guard pages see
  // the rest. What is cut off must be missed.
  void decode_damaged(ConstBytes code, bool cut) {
    const ConstBytes src = src_.copy(code, flush_);
    bool have_first = false, first_ok = false;
    std::vector<std::byte> first;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      if (flush_ == Flush::kStart && !sees_addresses(*kernels_[k])) continue;
      const Bytes dst = dst_.view(raw_.size(), flush_);
      size_t written = SIZE_MAX;
      const Status status = kernels_[k]->decode(src, dst, &written);
      if (status.ok()) {
        log_.check(written <= raw_.size(), "a damaged code expands beyond its room");
        // The end mark alone may be damaged, which not every device sees.
        if (has_device(*kernels_[k]) && same(dst.first(std::min(written, dst.size())), expected_))
          continue;
        if (cut) log_.check(written < raw_.size(), "a cut code expands to everything");
        if (codec_.needs_size) log_.check(written == raw_.size(), "expands to the wrong size");
      } else {
        const bool too_long = codec_.keeps_size && status.code() == Code::kDstTooSmall;
        log_.check(status.code() == Code::kCorrupt || too_long,
                   "a damaged code is not called corrupt");
      }
      if (!have_first) {
        have_first = true;
        first_ok = status.ok();
        if (first_ok) first = keep(dst.first(std::min(written, dst.size())));
      } else {
        // Neither set of what two decoders of another project's format take holds the other: liblz4
        // refuses what breaks rules for encoders, and takes an offset of 0. lz_test.cpp holds cores
        // to the specification itself.
        log_.check(status.ok() == first_ok || !codec_.exact_encode,
                   "kernels disagree whether a code is corrupt");
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
  bool have_expected_ = false, refused_ = false;
  std::unique_ptr<Guarded> residual_;
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

bool is_small(size_t size) { return size <= kQuickMost; }

// Data that are neither all alike nor all different.
bool is_typical(const Generator& generator) {
  return std::string_view(generator.name) == "text" || std::string_view(generator.name) == "wave";
}

bool is_asked_for(const Options& options, std::string_view engine) {
  return options.engine.starts_with(engine);
}

void run_sizes(const Setting& setting, const Options& options, const Generator& generator,
               Flush flush, bool small, Checker* checker) {
  for (const size_t size : kSizes) {
    if (is_small(size) != small) continue;
    // Slow levels need a second for it and do nothing there that they do not do before.
    if (size == kMost && !setting.is_default && !setting.entry->codec->keeps_size) continue;
    // What leaves a buffer at its start does so at any size.
    if (size == kMost && flush == Flush::kStart) continue;
    // One kind of data is enough for a core: these are five sixths of its clocks.
    if (size == kMost && !is_asked_for(options, "rtl") &&
        generator.name != std::string_view("wave"))
      checker->run_without("rtl", generator, size, flush);
    else
      checker->run(generator, size, flush);
  }
}

// Clock by clock a core takes a thousand times as long as a CPU, an emulated GPU ten times: for
// large data and most settings two kinds of data are enough, and neither sees addresses. Where a
// device is asked for, it is what is looked at.
void leave_out_slow(const Setting& setting, const Options& options, Flush flush, bool small,
                    bool typical, Checker* checker) {
  const bool again = flush == Flush::kStart && (!small || !setting.is_default);
  const bool rarely = again || (!setting.is_default && (options.quick || !small));
  for (const std::string_view slow : {"rtl", "cuda"}) {
    const bool asked = is_asked_for(options, slow);
    const bool beside = !asked && !options.engine.empty();
    const bool alike = !typical && !asked && (!small || !setting.is_default);
    if (rarely || beside || alike) checker->leave_out(slow);
  }
}

}  // namespace

void check_codec(const Entry& entry, const Options& options, Log* log) {
  check_registration(entry, log);
  std::vector<Setting> settings;
  for (const DType dtype : dtypes_of(entry))
    std::ranges::move(settings_of(entry, dtype), std::back_inserter(settings));
  for (const Setting& setting : settings) {
    for (const Flush flush : {Flush::kEnd, Flush::kStart}) {
      Checker checker(setting, log);
      for (const bool small : {true, false}) {
        const bool briefly = !setting.is_default && flush == Flush::kStart;
        if (!small && (options.quick || briefly)) continue;
        for (const bool typical : {true, false}) {
          leave_out_slow(setting, options, flush, small, typical, &checker);
          for (const Generator& generator : generators())
            if (is_typical(generator) == typical &&
                (options.generator.empty() || options.generator == generator.name))
              run_sizes(setting, options, generator, flush, small, &checker);
        }
      }
    }
  }
}

}  // namespace wirepress::conformance
