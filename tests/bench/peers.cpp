// SPDX-License-Identifier: Apache-2.0
// Other libraries, through their own interfaces.
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>
#ifdef WPR_FPZIP
#include <fpzip.h>
#endif
#ifdef WPR_ZFP
#include <zfp.h>
#endif
#ifdef WPR_SZ3
#include <SZ3/api/sz.hpp>
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "tests/bench/subject.hpp"

namespace wirepress::bench {
namespace {

// ---- libraries for bytes: block by block, as frames have it ---------------------------------

struct ByteLibrary {
  virtual ~ByteLibrary() = default;
  virtual size_t bound(size_t n) = 0;
  virtual size_t compress(ConstBytes from, Bytes to) = 0;  // 0: failed
  virtual bool expand(ConstBytes code, Bytes to) = 0;
};

char* chars(Bytes bytes) { return reinterpret_cast<char*>(bytes.data()); }
const char* chars(ConstBytes bytes) { return reinterpret_cast<const char*>(bytes.data()); }
int length(ConstBytes bytes) { return static_cast<int>(bytes.size()); }

struct Lz4 : ByteLibrary {
  size_t bound(size_t n) override { return LZ4_COMPRESSBOUND(n); }
  size_t compress(ConstBytes from, Bytes to) override {
    return static_cast<size_t>(
        LZ4_compress_default(chars(from), chars(to), length(from), length(to)));
  }
  bool expand(ConstBytes code, Bytes to) override {
    return LZ4_decompress_safe(chars(code), chars(to), length(code), length(to)) == length(to);
  }
};

struct Snappy : ByteLibrary {
  size_t bound(size_t n) override { return snappy_max_compressed_length(n); }
  size_t compress(ConstBytes from, Bytes to) override {
    size_t size = to.size();
    const auto status = snappy_compress(chars(from), from.size(), chars(to), &size);
    return status == SNAPPY_OK ? size : 0;
  }
  bool expand(ConstBytes code, Bytes to) override {
    size_t size = to.size();
    const auto status = snappy_uncompress(chars(code), code.size(), chars(to), &size);
    return status == SNAPPY_OK && size == to.size();
  }
};

struct Zstd : ByteLibrary {
  explicit Zstd(int chosen) : level(chosen) {}
  size_t bound(size_t n) override { return ZSTD_compressBound(n); }
  size_t compress(ConstBytes from, Bytes to) override {
    const size_t size =
        ZSTD_compressCCtx(packer.get(), to.data(), to.size(), from.data(), from.size(), level);
    return ZSTD_isError(size) ? 0 : size;
  }
  bool expand(ConstBytes code, Bytes to) override {
    return ZSTD_decompressDCtx(unpacker.get(), to.data(), to.size(), code.data(), code.size()) ==
           to.size();
  }
  int level;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> packer{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> unpacker{ZSTD_createDCtx(), ZSTD_freeDCtx};
};

struct Deflate : ByteLibrary {
  explicit Deflate(int level)
      : packer(libdeflate_alloc_compressor(level), libdeflate_free_compressor) {}
  size_t bound(size_t n) override { return libdeflate_deflate_compress_bound(packer.get(), n); }
  size_t compress(ConstBytes from, Bytes to) override {
    return libdeflate_deflate_compress(packer.get(), from.data(), from.size(), to.data(),
                                       to.size());
  }
  bool expand(ConstBytes code, Bytes to) override {
    return libdeflate_deflate_decompress(unpacker.get(), code.data(), code.size(), to.data(),
                                         to.size(), nullptr) == LIBDEFLATE_SUCCESS;
  }
  std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> packer;
  std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> unpacker{
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor};
};

// The blocks of a buffer and their codes.
struct ByteRun {
  ByteRun(Data& over, std::shared_ptr<ByteLibrary> with)
      : data(over),
        library(std::move(with)),
        slot(library->bound(default_block_size())),
        sizes((data.raw.size() + default_block_size() - 1) / default_block_size()),
        codes(slot * sizes.size()) {}

  Bytes of(Buffer& buffer, size_t b) const {
    const size_t at = b * default_size;
    return Bytes(buffer).subspan(at, std::min(default_size, buffer.size() - at));
  }
  size_t compress() {
    for (size_t b = 0; b < sizes.size(); ++b) {
      sizes[b] = library->compress(of(data.raw, b), Bytes(codes).subspan(b * slot, slot));
      require(sizes[b] != 0, "failed to compress");
    }
    return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  }
  void expand() {
    for (size_t b = 0; b < sizes.size(); ++b) {
      const ConstBytes code = ConstBytes(codes).subspan(b * slot, sizes[b]);
      require(library->expand(code, of(data.out, b)), "failed to expand");
    }
  }

  Data& data;
  std::shared_ptr<ByteLibrary> library;
  size_t default_size = default_block_size(), slot;
  std::vector<size_t> sizes;
  Buffer codes;
};

// ---- libraries for arrays: all of it at once ------------------------------------------------

struct ArrayLibrary {
  virtual ~ArrayLibrary() = default;
  virtual size_t bound(const Data& data) = 0;
  virtual size_t compress(const Data& data, Bytes to) = 0;  // 0: failed
  virtual bool expand(ConstBytes code, Data& data) = 0;
};

// Extent i of the array as C arrays are indexed, from the last; 1 where it has fewer.
size_t extent(const Data& data, size_t from_last) {
  return from_last < data.shape.size() ? data.shape[data.shape.size() - 1 - from_last] : 1;
}

#ifdef WPR_FPZIP
// `precision` leading bits of each value are kept; 0: all.
struct Fpzip : ArrayLibrary {
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

struct Zfp : ArrayLibrary {
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

#ifdef WPR_SZ3
struct Sz3 : ArrayLibrary {
  explicit Sz3(double chosen) : relative(chosen) {}
  SZ::Config config(const Data& data) const {
    SZ::Config config;
    config.setDims(data.shape.begin(), data.shape.end());
    config.cmprAlgo = SZ::ALGO_INTERP_LORENZO;
    config.errorBoundMode = SZ::EB_REL;
    config.relErrorBound = relative;
    return config;
  }
  size_t bound(const Data& data) override { return 2 * data.raw.size() + 4096; }
  size_t compress(const Data& data, Bytes to) override {
    return data.dtype == DType::kFloat64 ? compress_as<double>(data, to)
                                         : compress_as<float>(data, to);
  }
  bool expand(ConstBytes code, Data& data) override {
    data.dtype == DType::kFloat64 ? expand_as<double>(code, data) : expand_as<float>(code, data);
    return true;
  }
  template <class Real>
  size_t compress_as(const Data& data, Bytes to) const {
    size_t size = 0;
    const auto* values = reinterpret_cast<const Real*>(data.raw.data());
    const std::unique_ptr<char[]> code(SZ_compress(config(data), values, size));
    if (size > to.size()) return 0;
    std::memcpy(to.data(), code.get(), size);
    return size;
  }
  template <class Real>
  void expand_as(ConstBytes code, Data& data) const {
    SZ::Config config;
    auto* values = reinterpret_cast<Real*>(data.out.data());
    SZ_decompress(config, const_cast<char*>(chars(code)), code.size(), values);
  }
  double relative;
};
#endif

// ---- subjects -------------------------------------------------------------------------------

using Make = std::function<Subject(Data&)>;

template <class T, class... Values>
Make bytes(const char* name, Values... values) {
  return [=](Data& data) -> Subject {
    auto run = std::make_shared<ByteRun>(data, std::make_shared<T>(values...));
    return {name, "plain", true, [=] { return run->compress(); }, [=] { run->expand(); }};
  };
}

template <class T, class... Values>
[[maybe_unused]] Make array(const std::string& name, bool lossless, Values... values) {
  return [=](Data& data) -> Subject {
    auto library = std::make_shared<T>(values...);
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
  };
}

// Without the library's own name and date.
[[maybe_unused]] std::string number_in(const std::string& text) {
  const size_t begin = text.find_first_of("0123456789");
  return begin == std::string::npos ? text : text.substr(begin, text.find(' ', begin) - begin);
}

}  // namespace

std::vector<Make> peers(DType dtype) {
  std::vector<Make> all = {bytes<Lz4>("lz4"), bytes<Snappy>("snappy"), bytes<Zstd>("zstd:-1", -1),
                           bytes<Zstd>("zstd:1", 1), bytes<Deflate>("deflate:1", 1)};
  if (dtype == DType::kBytes) return all;
#ifdef WPR_FPZIP
  all.push_back(array<Fpzip>("fpzip lossless", true, 0));
  // sign, exponent and 6 bits: the same bound, 2^-6, as 5 bits rounded to nearest
  if (dtype == DType::kFloat32) all.push_back(array<Fpzip>("fpzip 2^-6", false, 15));
#endif
#ifdef WPR_ZFP
  all.push_back(array<Zfp>("zfp rate 8", false, ZfpMode::kRate, 8.0));
  all.push_back(array<Zfp>("zfp precision 16", false, ZfpMode::kPrecision, 16.0));
  all.push_back(array<Zfp>("zfp accuracy 1e-3 of range", false, ZfpMode::kAccuracy, 1e-3));
  all.push_back(array<Zfp>("zfp reversible", true, ZfpMode::kReversible, 0.0));
#endif
#ifdef WPR_SZ3
  all.push_back(array<Sz3>("SZ3 1e-3 of range", false, 1e-3));
#endif
  return all;
}

std::vector<std::pair<std::string, std::string>> peer_versions() {
  return {
      {"lz4", LZ4_versionString()},
      {"zstd", ZSTD_versionString()},
      {"libdeflate", LIBDEFLATE_VERSION_STRING},
#ifdef WPR_FPZIP
      {"fpzip", number_in(fpzip_version_string)},
#endif
#ifdef WPR_ZFP
      {"zfp", number_in(zfp_version_string)},
#endif
#ifdef WPR_SZ3
      {"SZ3", SZ3_VER},
#endif
  };
}

}  // namespace wirepress::bench
