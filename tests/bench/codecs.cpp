// SPDX-License-Identifier: Apache-2.0
// Codecs and other libraries on one buffer, one core, against memcpy of the same buffer.
//
//   codecs --data FILE [options] RECIPE...    see --help; one JSON object a line
//
// Every subject's compression, expansion and a copy take turns; thread CPU time, the best turn of
// each counts. The thread stays on one core. A recipe of one codec is measured with each kernel
// that this machine can run. What is expanded is compared with what went in: same bytes where the
// codec is lossless, else the errors are reported.
#include <libdeflate.h>
#include <lz4.h>
#include <sched.h>
#include <snappy-c.h>
#include <zstd.h>
#ifdef WPR_FPZIP
#include <fpzip.h>
#endif
#ifdef WPR_ZFP
#include <zfp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "pipeline/chain.hpp"

namespace {

using wirepress::Bytes;
using wirepress::ConstBytes;
using wirepress::DType;
using wirepress::Kernel;
using wirepress::Recipe;
using wirepress::Status;
using Buffer = std::vector<std::byte>;

constexpr const char* kHelp = R"(usage: codecs --data FILE [options] RECIPE...

  --data FILE      raw values; repeated or cut to --size
  --dtype NAME     float32 (default), float64 or bytes
  --shape Z,Y,X    extents, where the file is an array of so many values
  --size BYTES     of the buffer (all of the file)
  --offset BYTES   where in the file it begins (0)
  --seconds S      for each subject (0.1); three turns at least, one where a turn takes seconds
  --kernels LIST   only these variants of single codecs, as avx512,scalar; "best": one each
  --peers          other libraries too
  --cpu N          the core (the last one)
)";

struct Options {
  std::string data, kernels;
  DType dtype = DType::kFloat32;
  std::vector<uint64_t> shape;
  size_t size = 0, offset = 0;
  double seconds = 0.1;
  bool peers = false;
  int cpu = -1;
  std::vector<std::string> recipes;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}

// What is compressed, and where it is expanded to.
struct Data {
  Buffer raw, out;
  DType dtype;
  std::vector<uint64_t> shape;  // one extent where the array is not known
  double range = 0;             // greatest - least
};

// Something to time. Empty functions: it has no such thing.
struct Subject {
  std::string name, variant;
  bool lossless;
  std::function<size_t()> encode;  // returns the size of the code
  std::function<void()> decode;    // to Data::out
  std::function<void()> decode_add = {};
  std::function<size_t()> encode_feedback = {};
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
    chain_ = std::make_unique<wirepress::Chain>(recipe, 1);
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
    const size_t step = block_size_ / wirepress::dtype_size(data_.dtype);
    for (size_t b = 0; b < sizes_.size(); ++b)
      require(chain_->encode(0, of(data_.raw, b), b * step, slot(b), &sizes_[b]));
    return total();
  }

  void decode() {
    for (size_t b = 0; b < sizes_.size(); ++b)
      require(chain_->decode(0, slot(b).first(sizes_[b]), of(data_.out, b)));
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
    const size_t size = wirepress::Options().number("block_size");
    const size_t slab = 4 * (data.raw.size() / data.shape[0]);
    if (!wirepress::wants_slabs(recipe)) return size;
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
  std::unique_ptr<wirepress::Chain> chain_;
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

// ---- other libraries ------------------------------------------------------------------------

// A library over the whole buffer.
struct Library {
  virtual ~Library() = default;
  virtual size_t bound(const Data& data) = 0;
  virtual size_t compress(const Data& data, Bytes to) = 0;  // 0: failed
  virtual bool expand(ConstBytes code, Data& data) = 0;
};

char* chars(Bytes bytes) { return reinterpret_cast<char*>(bytes.data()); }
const char* chars(ConstBytes bytes) { return reinterpret_cast<const char*>(bytes.data()); }
ConstBytes raw_of(const Data& data) { return data.raw; }

struct Lz4 : Library {
  size_t bound(const Data& data) override {
    return static_cast<size_t>(LZ4_compressBound(static_cast<int>(data.raw.size())));
  }
  size_t compress(const Data& data, Bytes to) override {
    return static_cast<size_t>(LZ4_compress_default(chars(raw_of(data)), chars(to),
                                                    static_cast<int>(data.raw.size()),
                                                    static_cast<int>(to.size())));
  }
  bool expand(ConstBytes code, Data& data) override {
    const int n = static_cast<int>(data.out.size());
    return LZ4_decompress_safe(chars(code), chars(Bytes(data.out)), static_cast<int>(code.size()),
                               n) == n;
  }
};

struct Snappy : Library {
  size_t bound(const Data& data) override { return snappy_max_compressed_length(data.raw.size()); }
  size_t compress(const Data& data, Bytes to) override {
    size_t size = to.size();
    const auto status = snappy_compress(chars(raw_of(data)), data.raw.size(), chars(to), &size);
    return status == SNAPPY_OK ? size : 0;
  }
  bool expand(ConstBytes code, Data& data) override {
    size_t size = data.out.size();
    const auto status = snappy_uncompress(chars(code), code.size(), chars(Bytes(data.out)), &size);
    return status == SNAPPY_OK && size == data.out.size();
  }
};

struct Zstd : Library {
  explicit Zstd(int chosen) : level(chosen) {}
  size_t bound(const Data& data) override { return ZSTD_compressBound(data.raw.size()); }
  size_t compress(const Data& data, Bytes to) override {
    const size_t size = ZSTD_compressCCtx(packer.get(), to.data(), to.size(), data.raw.data(),
                                          data.raw.size(), level);
    return ZSTD_isError(size) ? 0 : size;
  }
  bool expand(ConstBytes code, Data& data) override {
    return ZSTD_decompressDCtx(unpacker.get(), data.out.data(), data.out.size(), code.data(),
                               code.size()) == data.out.size();
  }
  int level;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> packer{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> unpacker{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

struct Deflate : Library {
  explicit Deflate(int level)
      : packer(libdeflate_alloc_compressor(level), libdeflate_free_compressor) {}
  size_t bound(const Data& data) override {
    return libdeflate_deflate_compress_bound(packer.get(), data.raw.size());
  }
  size_t compress(const Data& data, Bytes to) override {
    return libdeflate_deflate_compress(packer.get(), data.raw.data(), data.raw.size(), to.data(),
                                       to.size());
  }
  bool expand(ConstBytes code, Data& data) override {
    return libdeflate_deflate_decompress(unpacker.get(), code.data(), code.size(), data.out.data(),
                                         data.out.size(), nullptr) == LIBDEFLATE_SUCCESS;
  }
  std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> packer;
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> unpacker{
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor};
};

// Extent i of the array as C arrays are indexed, from the last; 1 where it has fewer.
size_t extent(const Data& data, size_t from_last) {
  return from_last < data.shape.size() ? data.shape[data.shape.size() - 1 - from_last] : 1;
}

#ifdef WPR_FPZIP
// `precision` leading bits of each value are kept; 0: all.
struct Fpzip : Library {
  explicit Fpzip(int chosen) : precision(chosen) {}
  size_t bound(const Data& data) override { return 2 * data.raw.size() + 4096; }
  void describe(const Data& data, FPZ* fpz) const {
    fpz->type = data.dtype == DType::kFloat64 ? FPZIP_TYPE_DOUBLE : FPZIP_TYPE_FLOAT;
    fpz->prec = precision;
    fpz->nx = static_cast<int>(extent(data, 0));
    fpz->ny = static_cast<int>(extent(data, 1));
    fpz->nz = static_cast<int>(extent(data, 2));
    fpz->nf = 1;
  }
  size_t compress(const Data& data, Bytes to) override {
    FPZ* fpz = fpzip_write_to_buffer(to.data(), to.size());
    describe(data, fpz);
    const size_t size = fpzip_write(fpz, data.raw.data());
    fpzip_write_close(fpz);
    return size;
  }
  bool expand(ConstBytes code, Data& data) override {
    FPZ* fpz = fpzip_read_from_buffer(code.data());
    describe(data, fpz);
    const bool good = fpzip_read(fpz, data.out.data()) != 0;
    fpzip_read_close(fpz);
    return good;
  }
  int precision;
};
#endif

#ifdef WPR_ZFP
enum class ZfpMode { kRate, kPrecision, kAccuracy, kReversible };

struct Zfp : Library {
  Zfp(ZfpMode chosen, double chosen_value) : mode(chosen), value(chosen_value) {}
  struct Field {
    Field(const Data& data, const Buffer& values) {
      const auto type = data.dtype == DType::kFloat64 ? zfp_type_double : zfp_type_float;
      void* const at = const_cast<std::byte*>(values.data());
      const size_t x = extent(data, 0), y = extent(data, 1), z = extent(data, 2);
      field.reset(data.shape.size() == 3   ? zfp_field_3d(at, type, x, y, z)
                  : data.shape.size() == 2 ? zfp_field_2d(at, type, x, y)
                                           : zfp_field_1d(at, type, x));
    }
    std::unique_ptr<zfp_field, decltype(&zfp_field_free)> field{nullptr, zfp_field_free};
  };
  using Stream = std::unique_ptr<zfp_stream, decltype(&zfp_stream_close)>;
  Stream stream_of(const Data& data, const zfp_field* field) const {
    Stream stream(zfp_stream_open(nullptr), zfp_stream_close);
    switch (mode) {
      case ZfpMode::kRate:
        zfp_stream_set_rate(stream.get(), value, zfp_field_type(field),
                            zfp_field_dimensionality(field), zfp_false);
        break;
      case ZfpMode::kPrecision:
        zfp_stream_set_precision(stream.get(), static_cast<uint>(value));
        break;
      case ZfpMode::kAccuracy:
        zfp_stream_set_accuracy(stream.get(), value * data.range);
        break;
      case ZfpMode::kReversible:
        zfp_stream_set_reversible(stream.get());
        break;
    }
    return stream;
  }
  size_t bound(const Data& data) override {
    const Field field(data, data.raw);
    return zfp_stream_maximum_size(stream_of(data, field.field.get()).get(), field.field.get());
  }
  size_t compress(const Data& data, Bytes to) override {
    const Field field(data, data.raw);
    const Stream stream = stream_of(data, field.field.get());
    bitstream* const bits = stream_open(to.data(), to.size());
    zfp_stream_set_bit_stream(stream.get(), bits);
    const size_t size = zfp_compress(stream.get(), field.field.get());
    stream_close(bits);
    return size;
  }
  bool expand(ConstBytes code, Data& data) override {
    const Field field(data, data.out);
    const Stream stream = stream_of(data, field.field.get());
    bitstream* const bits = stream_open(const_cast<std::byte*>(code.data()), code.size());
    zfp_stream_set_bit_stream(stream.get(), bits);
    const bool good = zfp_decompress(stream.get(), field.field.get()) != 0;
    stream_close(bits);
    return good;
  }
  ZfpMode mode;
  double value;
};
#endif

Subject library_subject(Data& data, const std::string& name, bool lossless,
                        const std::shared_ptr<Library>& library) {
  auto code = std::make_shared<Buffer>(library->bound(data));
  auto size = std::make_shared<size_t>(0);
  auto compress = [=, &data] {
    *size = library->compress(data, *code);
    require(*size != 0, name + " failed to compress");
    return *size;
  };
  auto expand = [=, &data] {
    require(library->expand(ConstBytes(*code).first(*size), data), name + " failed to expand");
  };
  return {name, "plain", lossless, compress, expand};
}

using Make = std::function<Subject(Data&)>;

template <class T, class... Values>
Make peer(const char* name, bool lossless, Values... values) {
  return [=](Data& data) {
    return library_subject(data, name, lossless, std::make_shared<T>(values...));
  };
}

std::vector<Make> peers(DType dtype) {
  std::vector<Make> all = {peer<Lz4>("lz4", true), peer<Snappy>("snappy", true),
                           peer<Zstd>("zstd:-1", true, -1), peer<Zstd>("zstd:1", true, 1),
                           peer<Deflate>("deflate:1", true, 1)};
  if (dtype == DType::kBytes) return all;
#ifdef WPR_FPZIP
  all.push_back(peer<Fpzip>("fpzip lossless", true, 0));
  // sign, exponent and 6 bits: the same bound, 2^-6, as 5 bits rounded to nearest
  if (dtype == DType::kFloat32) all.push_back(peer<Fpzip>("fpzip 2^-6", false, 15));
#endif
#ifdef WPR_ZFP
  all.push_back(peer<Zfp>("zfp rate 8", false, ZfpMode::kRate, 8.0));
  all.push_back(peer<Zfp>("zfp precision 16", false, ZfpMode::kPrecision, 16.0));
  all.push_back(peer<Zfp>("zfp accuracy 1e-3 of range", false, ZfpMode::kAccuracy, 1e-3));
  all.push_back(peer<Zfp>("zfp reversible", true, ZfpMode::kReversible, 0.0));
#endif
  return all;
}

// ---- measuring ------------------------------------------------------------------------------

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The best of several timings of one call; short calls are repeated within one timing.
class Timer {
 public:
  template <class Call>
  void time(Call call) {
    constexpr double kLeast = 1e-3;
    const double begin = now();
    for (int i = 0; i < calls_; ++i) call();
    const double spent = now() - begin;
    best_ = std::min(best_, spent / calls_);
    if (spent < kLeast) calls_ = std::max(calls_ + 1, static_cast<int>(calls_ * kLeast / spent));
  }
  double best() const { return best_; }

 private:
  int calls_ = 1;
  double best_ = std::numeric_limits<double>::infinity();
};

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
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double error = std::abs(double(x) - double(y));
    errors.absolute = std::max(errors.absolute, error);
    if (std::isnormal(x)) errors.relative = std::max(errors.relative, error / std::abs(double(x)));
    errors.changed_zeros += x == 0 && y != 0;
  }
  return errors;
}

Errors compare(const Data& data) {
  Errors errors;
  const bool same = std::memcmp(data.raw.data(), data.out.data(), data.raw.size()) == 0;
  if (!same && data.dtype == DType::kFloat32) errors = errors_of<float>(data);
  if (!same && data.dtype == DType::kFloat64) errors = errors_of<double>(data);
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

  Timer copy, encode, decode, add, feedback;
  size_t feedback_code = 0;
  const double begin = now();
  int turns = 0;
  for (double spent = 0; turns < 1 || spent < seconds || (turns < 3 && spent < 5 * seconds);
       ++turns, spent = now() - begin) {
    copy.time([&] { std::memcpy(data.out.data(), data.raw.data(), data.raw.size()); });
    encode.time(subject.encode);
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

void measure_recipe(Data& data, const std::string& text, const Options& options) {
  Recipe best;
  if (const Status s = wirepress::parse_recipe(text.c_str(), data.dtype, "auto", &best); !s.ok())
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
    if (!std::isfinite(x)) continue;
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

Data read_data(const Options& options) {
  const Buffer content = read_file(options.data, options.offset);
  Data data;
  data.dtype = options.dtype;
  const size_t item = wirepress::dtype_size(data.dtype);
  const size_t size = (options.size ? options.size : content.size()) / item * item;
  require(size > 0, "nothing to measure");
  data.raw.resize(size);
  for (size_t at = 0; at < size; at += content.size())
    std::memcpy(&data.raw[at], content.data(), std::min(content.size(), size - at));
  data.out.resize(size, std::byte{1});
  data.shape =
      shape_of(size <= content.size() ? options.shape : std::vector<uint64_t>{}, size / item);
  data.range = data.dtype == DType::kFloat64   ? range_of<double>(data.raw)
               : data.dtype == DType::kFloat32 ? range_of<float>(data.raw)
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

Options parse(int argc, char** argv) {
  Options options;
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
      for (const DType each : {DType::kBytes, DType::kFloat32, DType::kFloat64})
        if (dtype == wirepress::dtype_name(each)) options.dtype = each;
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

// Without the library's own name and date.
std::string version_number(const std::string& text) {
  const size_t begin = text.find_first_of("0123456789");
  return begin == std::string::npos ? text : text.substr(begin, text.find(' ', begin) - begin);
}

void print_versions() {
  std::printf("{\"versions\": {\"lz4\": \"%s\", \"zstd\": \"%s\", \"libdeflate\": \"%s\"",
              LZ4_versionString(), ZSTD_versionString(), LIBDEFLATE_VERSION_STRING);
#ifdef WPR_FPZIP
  std::printf(", \"fpzip\": \"%s\"", version_number(fpzip_version_string).c_str());
#endif
#ifdef WPR_ZFP
  std::printf(", \"zfp\": \"%s\"", version_number(zfp_version_string).c_str());
#endif
  std::printf("}}\n");
}

void run(const Options& options) {
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
  for (const Make& make : peers(data.dtype))
    guarded("a library", [&] { measure(data, make(data), options.seconds); });
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return std::fputs(kHelp, stdout), 0;
  }
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "codecs: %s\n", error.what());
    return 1;
  }
  return 0;
}
