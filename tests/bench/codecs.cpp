// SPDX-License-Identifier: Apache-2.0
// Codecs and other libraries on one buffer, one core, against memcpy of the same buffer.
//
//   codecs --data FILE [options] RECIPE...    see --help; one JSON object a line
//
// Every subject's compression, expansion and a copy take turns; thread CPU time, the best turn of
// each counts. The thread stays on one core. A recipe of one codec is measured with each kernel
// that this machine can run. What is expanded is compared with what went in: same bytes where the
// codec is lossless, else the errors are reported.
#include <sched.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "pipeline/chain.hpp"
#include "tests/bench/subject.hpp"

namespace wirepress::bench {

size_t default_block_size() { return wirepress::Options().number("block_size"); }

namespace {

constexpr const char* kHelp = R"(usage: codecs --data FILE [options] RECIPE...

  --data FILE      raw values; repeated or cut to --size
  --dtype NAME     float32 (default), float64, bfloat16, float16 or bytes
  --shape Z,Y,X    extents, where the file is an array of so many values
  --size BYTES     of the buffer (all of the file)
  --offset BYTES   where in the file it begins (0)
  --seconds S      for each subject (0.1); three turns at least, one where a turn takes seconds
  --kernels LIST   only these variants of single codecs, as avx512,scalar; "best": one each
  --peers          other libraries too
  --cpu N          the core (the last one)
)";

struct Wanted {
  std::string data, kernels;
  DType dtype = DType::kFloat32;
  std::vector<uint64_t> shape;
  size_t size = 0, offset = 0;
  double seconds = 0.1;
  bool peers = false;
  int cpu = -1;
  std::vector<std::string> recipes;
};

// ---- wirepress ------------------------------------------------------------------------------

// A recipe over the blocks of a buffer.
class Blocks {
 public:
  Blocks(Data& data, Recipe recipe) : data_(data), block_size_(block_size_of(data, recipe)) {
    const size_t n = std::min(block_size_, data.raw.size());
    slot_ = n;
    for (int i = 0; i < recipe.n_steps; ++i) {
      auto& step = recipe.step[i];
      if (step.entry->codec->by_slabs) {
        step.args.n_dims = static_cast<int>(data.shape.size());
        std::copy(data.shape.begin(), data.shape.end(), step.args.shape.begin());
      }
      slot_ = std::max(slot_, step.entry->codec->bound(step.args, slot_));
    }
    chain_ = std::make_unique<Chain>(recipe, 1);
    first_ = recipe.step[0];
    if (first_.kernel->open) require(first_.kernel->open(first_.args, &state_));
    sizes_.resize((data.raw.size() + block_size_ - 1) / block_size_);
    codes_.resize(slot_ * sizes_.size());
  }
  ~Blocks() {
    if (first_.kernel->close) first_.kernel->close(state_);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  size_t encode() {
    const size_t step = block_size_ / dtype_size(data_.dtype);
    for (size_t b = 0; b < sizes_.size(); ++b)
      require(chain_->encode(0, of(data_.raw, b), {0, b * step}, slot(b), &sizes_[b]));
    return total();
  }

  void decode() {
    for (size_t b = 0; b < sizes_.size(); ++b)
      require(chain_->decode(0, slot(b).first(sizes_[b]), of(data_.out, b), past_caches_));
  }

  void decode_add() {
    for (size_t b = 0; b < sizes_.size(); ++b) {
      const ConstBytes code = slot(b).first(sizes_[b]);
      require(first_.kernel->decode_add(state_, first_.args, code, of(data_.out, b)));
    }
  }

  size_t encode_feedback() {
    residual_.resize(data_.raw.size());
    for (size_t b = 0; b < sizes_.size(); ++b)
      require(first_.kernel->encode_feedback(state_, first_.args, of(data_.raw, b),
                                             of(residual_, b), slot(b), &sizes_[b]));
    return total();
  }

 private:
  // The default block; for codecs of arrays, four rows or as many times four as fit one.
  static size_t block_size_of(const Data& data, const Recipe& recipe) {
    const size_t size = default_block_size();
    const size_t slab = 4 * (data.raw.size() / data.shape[0]);
    if (!wants_slabs(recipe)) return size;
    return slab * std::max<size_t>(size / slab, 1);
  }

  Bytes of(Buffer& buffer, size_t b) const {
    const size_t at = b * block_size_;
    return Bytes(buffer).subspan(at, std::min(block_size_, buffer.size() - at));
  }
  Bytes slot(size_t b) { return Bytes(codes_).subspan(b * slot_, slot_); }
  size_t total() const { return std::accumulate(sizes_.begin(), sizes_.end(), size_t{0}); }

  Data& data_;
  size_t block_size_, slot_;
  const bool past_caches_ = is_past_caches(data_.raw.size());
  std::unique_ptr<Chain> chain_;
  Recipe::Step first_;
  void* state_ = nullptr;
  Buffer codes_, residual_;
  std::vector<size_t> sizes_;
};

Subject subject_of(Data& data, const std::string& name, const std::string& variant,
                   const Recipe& recipe) {
  auto blocks = std::make_shared<Blocks>(data, recipe);
  Subject subject{name, variant, recipe.lossless(), [=] { return blocks->encode(); },
                  [=] { blocks->decode(); }};
  const Kernel& kernel = *recipe.step[0].kernel;
  if (recipe.n_steps == 1 && kernel.decode_add) subject.decode_add = [=] { blocks->decode_add(); };
  if (recipe.n_steps == 1 && kernel.encode_feedback)
    subject.encode_feedback = [=] { return blocks->encode_feedback(); };
  return subject;
}

// ---- measuring ------------------------------------------------------------------------------

// The best of several timings of one call; short calls are repeated within one timing.
class Timer {
 public:
  template <class Call>
  void time(Call call) {
    constexpr double kLeast = 1e-3;
    const double begin = thread_seconds();
    for (int i = 0; i < calls_; ++i) call();
    const double spent = thread_seconds() - begin;
    best_ = std::min(best_, spent / calls_);
    if (spent < kLeast) calls_ = std::max(calls_ + 1, static_cast<int>(calls_ * kLeast / spent));
  }
  double best() const { return best_; }

 private:
  int calls_ = 1;
  double best_ = std::numeric_limits<double>::infinity();
};

// Elements of 16 bits, to be read as numbers.
struct Bfloat16 {
  uint16_t word;
  operator double() const { return std::bit_cast<float>(uint32_t{word} << 16); }
  bool normal() const { return std::isnormal(double(*this)); }
};
struct Float16 {
  uint16_t word;
  operator double() const {
    const int exponent = word >> 10 & 31, fraction = word & 1023;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent > 0 ? std::ldexp(1024 + fraction, exponent - 25)
                                       : std::ldexp(fraction, -24);
    return word >> 15 ? -size : size;
  }
  bool normal() const { return (word >> 10 & 31) % 31 != 0; }
};
bool is_normal(double x) { return std::isnormal(x); }
bool is_normal(float x) { return std::isnormal(x); }
bool is_normal(Bfloat16 x) { return x.normal(); }
bool is_normal(Float16 x) { return x.normal(); }

// How far what was expanded lies from the data. Relative errors are over normal numbers.
struct Errors {
  double relative = 0, absolute = 0;
  size_t changed_zeros = 0;
  bool same = true;
};

template <class Real>
Errors errors_of(const Data& data) {
  Errors errors;
  const size_t n = data.raw.size() / sizeof(Real);
  for (size_t i = 0; i < n; ++i) {
    Real x, y;
    std::memcpy(&x, &data.raw[i * sizeof(Real)], sizeof(Real));
    std::memcpy(&y, &data.out[i * sizeof(Real)], sizeof(Real));
    if (!std::isfinite(double(x)) || !std::isfinite(double(y))) continue;
    const double error = std::abs(double(x) - double(y));
    errors.absolute = std::max(errors.absolute, error);
    if (is_normal(x)) errors.relative = std::max(errors.relative, error / std::abs(double(x)));
    errors.changed_zeros += double(x) == 0 && double(y) != 0;
  }
  return errors;
}

Errors compare(const Data& data) {
  Errors errors;
  const bool same = std::memcmp(data.raw.data(), data.out.data(), data.raw.size()) == 0;
  if (!same && data.dtype == DType::kFloat32) errors = errors_of<float>(data);
  if (!same && data.dtype == DType::kFloat64) errors = errors_of<double>(data);
  if (!same && data.dtype == DType::kBfloat16) errors = errors_of<Bfloat16>(data);
  if (!same && data.dtype == DType::kFloat16) errors = errors_of<Float16>(data);
  errors.same = same;
  return errors;
}

void print_speed(const char* name, double size, double seconds) {
  if (std::isfinite(seconds)) std::printf(", \"%s\": %.4f", name, size / seconds / 1e9);
}

void measure(Data& data, const Subject& subject, double seconds) {
  const size_t code = subject.encode();
  subject.decode();
  const Errors errors = compare(data);
  require(errors.same || !subject.lossless, subject.name + ": expanded to other bytes");

  const auto plain_copy = [&] { std::memcpy(data.out.data(), data.raw.data(), data.raw.size()); };
  Timer copy, encode, decode, add, feedback;
  size_t feedback_code = 0;
  const double begin = thread_seconds();
  int turns = 0;
  for (double spent = 0; turns < 1 || spent < seconds || (turns < 3 && spent < 5 * seconds);
       ++turns, spent = thread_seconds() - begin) {
    copy.time(plain_copy);
    encode.time(subject.encode);
    copy.time(plain_copy);
    decode.time(subject.decode);
    if (subject.decode_add) add.time(subject.decode_add);
    if (subject.encode_feedback) feedback.time([&] { feedback_code = subject.encode_feedback(); });
  }
  const double size = static_cast<double>(data.raw.size());
  std::printf(
      "{\"subject\": \"%s\", \"variant\": \"%s\", \"turns\": %d, \"raw_size\": %zu, "
      "\"code_size\": %zu, \"ratio\": %.4f",
      subject.name.c_str(), subject.variant.c_str(), turns, data.raw.size(), code,
      size / static_cast<double>(code));
  print_speed("memcpy", size, copy.best());
  print_speed("encode", size, encode.best());
  print_speed("decode", size, decode.best());
  print_speed("decode_add", size, add.best());
  print_speed("encode_feedback", size, feedback.best());
  if (feedback_code)
    std::printf(", \"feedback_ratio\": %.4f", size / static_cast<double>(feedback_code));
  if (!subject.lossless && data.dtype != DType::kBytes) {
    std::printf(", \"relative_error\": %.6g, \"error_of_range\": %.6g, \"changed_zeros\": %zu",
                errors.relative, data.range > 0 ? errors.absolute / data.range : 0.0,
                errors.changed_zeros);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

void print_skipped(const std::string& subject, const std::string& why) {
  std::string quoted;
  for (const char c : why) quoted += c == '"' || c == '\\' ? '\'' : c == '\n' ? ' ' : c;
  std::printf("{\"subject\": \"%s\", \"skipped\": \"%s\"}\n", subject.c_str(), quoted.c_str());
  std::fflush(stdout);
}

// ---- what to measure ------------------------------------------------------------------------

bool listed(const std::string& list, const std::string& word) {
  return list.empty() || ("," + list + ",").find("," + word + ",") != std::string::npos;
}

void measure_recipe(Data& data, const std::string& text, const Wanted& options) {
  Recipe best;
  if (const Status s = parse_recipe(text.c_str(), data.dtype, "auto", &best); !s.ok())
    return print_skipped(text, s.text());
  if (best.n_steps > 1) return measure(data, subject_of(data, text, "auto", best), options.seconds);
  for (const Kernel* kernel : best.step[0].entry->kernels) {
    if (!kernel->usable() || std::strcmp(kernel->engine, "cpu") != 0) continue;
    const bool alone = best.step[0].entry->kernels.size() == 1;
    if (!alone && options.kernels != "best" && !listed(options.kernels, kernel->variant)) continue;
    Recipe recipe = best;
    recipe.step[0].kernel = kernel;
    measure(data, subject_of(data, text, kernel->variant, recipe), options.seconds);
    if (options.kernels == "best") return;
  }
}

template <class Real>
double range_of(const Buffer& raw) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (size_t i = 0; i + sizeof(Real) <= raw.size(); i += sizeof(Real)) {
    Real x;
    std::memcpy(&x, &raw[i], sizeof(Real));
    if (!std::isfinite(double(x))) continue;
    least = std::min(least, double(x));
    most = std::max(most, double(x));
  }
  return most > least ? most - least : 0;
}

Buffer read_file(const std::string& path, size_t offset) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  require(file.good(), "cannot open " + path);
  const auto size = static_cast<size_t>(file.tellg());
  require(offset < size, path + " is shorter than --offset");
  Buffer content(size - offset);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(content.size()));
  require(file.good(), "cannot read " + path);
  return content;
}

// The array's shape if the buffer holds whole planes of it, else that of a list of values.
std::vector<uint64_t> shape_of(const std::vector<uint64_t>& whole, size_t n_values) {
  size_t plane = 1;
  for (size_t i = 1; i < whole.size(); ++i) plane *= whole[i];
  if (whole.size() < 2 || n_values % plane != 0) return {n_values};
  std::vector<uint64_t> shape = whole;
  shape[0] = n_values / plane;
  return shape;
}

Data read_data(const Wanted& options) {
  const Buffer content = read_file(options.data, options.offset);
  Data data;
  data.dtype = options.dtype;
  const size_t item = dtype_size(data.dtype);
  const size_t size = (options.size ? options.size : content.size()) / item * item;
  require(size > 0, "nothing to measure");
  data.raw.resize(size);
  for (size_t at = 0; at < size; at += content.size())
    std::memcpy(&data.raw[at], content.data(), std::min(content.size(), size - at));
  data.out.resize(size, std::byte{1});
  data.shape =
      shape_of(size <= content.size() ? options.shape : std::vector<uint64_t>{}, size / item);
  data.range = data.dtype == DType::kFloat64    ? range_of<double>(data.raw)
               : data.dtype == DType::kFloat32  ? range_of<float>(data.raw)
               : data.dtype == DType::kBfloat16 ? range_of<Bfloat16>(data.raw)
               : data.dtype == DType::kFloat16  ? range_of<Float16>(data.raw)
                                                : 0;
  return data;
}

void pin(int cpu) {
  cpu_set_t allowed;
  require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity failed");
  for (int i = CPU_SETSIZE - 1; cpu < 0 && i >= 0; --i)
    if (CPU_ISSET(i, &allowed)) cpu = i;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  require(sched_setaffinity(0, sizeof one, &one) == 0, "cannot run on this core");
}

Wanted parse(int argc, char** argv) {
  Wanted options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      require(++i < argc, name + " wants a value");
      return argv[i];
    };
    if (name == "--data") {
      options.data = value();
    } else if (name == "--dtype") {
      const std::string dtype = value();
      for (const DType each :
           {DType::kBytes, DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64})
        if (dtype == dtype_name(each)) options.dtype = each;
    } else if (name == "--shape") {
      const std::string list = value();
      for (size_t at = 0; at < list.size(); at = std::min(list.find(',', at), list.size() - 1) + 1)
        options.shape.push_back(std::stoull(list.substr(at)));
    } else if (name == "--size") {
      options.size = std::stoull(value());
    } else if (name == "--offset") {
      options.offset = std::stoull(value());
    } else if (name == "--seconds") {
      options.seconds = std::stod(value());
    } else if (name == "--kernels") {
      options.kernels = value();
    } else if (name == "--cpu") {
      options.cpu = std::stoi(value());
    } else if (name == "--peers") {
      options.peers = true;
    } else {
      require(name.empty() || name[0] != '-', "unknown option " + name + "; see --help");
      options.recipes.push_back(name);
    }
  }
  require(!options.data.empty(), "--data FILE is needed; see --help");
  return options;
}

void print_versions() {
  const char* comma = "";
  std::printf("{\"versions\": {");
  for (const auto& [name, version] : peer_versions()) {
    std::printf("%s\"%s\": \"%s\"", comma, name.c_str(), version.c_str());
    comma = ", ";
  }
  std::printf("}}\n");
}

void run(const Wanted& options) {
  pin(options.cpu);
  Data data = read_data(options);
  print_versions();
  const auto guarded = [](const std::string& name, auto call) {
    try {
      call();
    } catch (const std::exception& error) {
      print_skipped(name, std::string("failed: ") + error.what());
    }
  };
  for (const std::string& recipe : options.recipes)
    guarded(recipe, [&] { measure_recipe(data, recipe, options); });
  if (!options.peers) return;
  // The libraries for arrays have no types of 16 bits.
  for (const auto& make : peers(dtype_size(data.dtype) == 2 ? DType::kBytes : data.dtype))
    guarded("a library", [&] { measure(data, make(data), options.seconds); });
}

}  // namespace
}  // namespace wirepress::bench

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return std::fputs(wirepress::bench::kHelp, stdout), 0;
  }
  try {
    wirepress::bench::run(wirepress::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "codecs: %s\n", error.what());
    return 1;
  }
  return 0;
}
