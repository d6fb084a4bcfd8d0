// SPDX-License-Identifier: Apache-2.0
// The frozen vectors in codecs/NAME/vectors: index.txt has a line per vector,
//   NAME RECIPE RAW_SIZE ok|refused [DTYPE SHAPE]
// SHAPE is a number as tell_shape takes it, for codecs that take a shape.
// NAME.enc is one block's payload, NAME.raw what it expands to.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/conformance/suite.hpp"
#include "tests/fuzz/input.hpp"
#include "wirepress/wirepress.h"

namespace wirepress::conformance {
namespace {

namespace fs = std::filesystem;
using Data = std::vector<std::byte>;

struct Vector {
  std::string name;
  std::string recipe;
  size_t raw_size;
  bool ok;
  std::string dtype = "bytes";
  int shape = 0;
};

bool read_setting(const Vector& vector, const Entry& entry, Setting* setting) {
  Recipe recipe;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (vector.dtype != dtype_name(dtype)) continue;
    if (!parse_recipe(vector.recipe.c_str(), dtype, "auto", &recipe).ok() || recipe.n_steps != 1 ||
        recipe.step[0].entry != &entry)
      return false;
    const uint8_t shape = static_cast<uint8_t>(vector.shape);
    *setting = {&entry, recipe.step[0].args, vector.recipe, vector.recipe, false, shape};
    if (entry.codec->by_slabs) tell_shape(shape, &setting->args);
    return true;
  }
  return false;
}

fs::path folder(const Entry& entry, const Options& options) {
  return fs::path(options.codecs_dir) / entry.codec->name / "vectors";
}

bool read_file(const fs::path& path, Data* data) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  data->resize(text.size());
  std::ranges::transform(text, data->begin(), [](char c) { return static_cast<std::byte>(c); });
  return in.good() || in.eof();
}

bool write_file(const fs::path& path, ConstBytes data) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  return out.good();
}

std::vector<Vector> read_index(const fs::path& path) {
  std::vector<Vector> index;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Vector vector;
    std::string verdict;
    if (fields >> vector.name >> vector.recipe >> vector.raw_size >> verdict) {
      vector.ok = verdict == "ok";
      if (std::string dtype; fields >> dtype) vector.dtype = dtype;
      fields >> vector.shape;
      index.push_back(vector);
    }
  }
  return index;
}

// decode(enc) has exactly the raw size and, where there is one, equals raw.
bool expands(OpenKernel& kernel, ConstBytes enc, size_t raw_size, Data* out) {
  out->resize(raw_size);
  size_t written = 0;
  return kernel.decode(enc, *out, &written).ok() && written == raw_size;
}

void check_vector(const Vector& vector, const Entry& entry, const fs::path& dir, Log* log) {
  Setting setting;
  if (!read_setting(vector, entry, &setting)) return log->error("not a recipe of this codec");
  Data enc, raw, out;
  if (!read_file(dir / (vector.name + ".enc"), &enc) ||
      (vector.ok &&
       (!read_file(dir / (vector.name + ".raw"), &raw) || raw.size() != vector.raw_size)))
    return log->error("its files are missing or of the wrong size");
  for (auto& kernel : open_kernels(setting)) {
    log->at(std::string(entry.codec->name) + ", vector " + vector.name + ", " +
            kernel->kernel().variant);
    const bool good = expands(*kernel, enc, vector.raw_size, &out);
    if (!vector.ok) {
      log->check(!good, "must be refused");
      continue;
    }
    log->check(good && out == raw, "must expand to its .raw");
    if (!entry.codec->exact_encode || !entry.codec->stable) continue;
    Data again(entry.codec->bound(setting.args, raw.size()));
    size_t written = 0;
    const bool encoded = kernel->encode(raw, again, &written).ok();
    again.resize(written);
    log->check(encoded && again == enc, "encodes to other bytes");
  }
}

// ---- writing ------------------------------------------------------------------------------

class VectorWriter {
 public:
  VectorWriter(const Entry& entry, fs::path dir) : entry_(entry), dir_(std::move(dir)) {
    fs::create_directories(dir_);
    for (Vector& vector : read_index(dir_ / "index.txt")) index_[vector.name] = vector;
  }

  // What the portable kernel makes of the data, and what it then expands to.
  Data add(const std::string& name, const Setting& setting, const Generator& generator,
           size_t size) {
    Data raw(size);
    Random random(size);
    fill_as(setting.args.dtype, generator, random, raw);
    OpenKernel kernel(*entry_.kernels.back(), setting.args);
    Data enc(entry_.codec->bound(setting.args, size));
    size_t written = 0;
    const Status status = kernel.encode(raw, enc, &written);
    if (entry_.codec->may_refuse && status.code() == Code::kDstTooSmall) return {};
    good_ = status.ok() && good_;
    enc.resize(written);
    good_ = expands(kernel, enc, size, &raw) && good_;
    put(of(name, setting, size, true), enc);
    good_ = write_file(dir_ / (name + ".raw"), raw) && good_;
    return enc;
  }

  // Kept only if the portable kernel does refuse it.
  void add_refused(const std::string& name, const Setting& setting, size_t size, const Data& enc) {
    OpenKernel kernel(*entry_.kernels.back(), setting.args);
    Data out;
    if (!expands(kernel, enc, size, &out)) put(of(name, setting, size, false), enc);
  }

  bool finish() {
    std::ofstream out(dir_ / "index.txt");
    for (const auto& [name, vector] : index_)
      out << name << ' ' << vector.recipe << ' ' << vector.raw_size << ' '
          << (vector.ok ? "ok" : "refused")
          << (vector.dtype == "bytes" && vector.shape == 0
                  ? ""
                  : " " + vector.dtype + " " + std::to_string(vector.shape))
          << '\n';
    return good_ && out.good();
  }

 private:
  static Vector of(const std::string& name, const Setting& setting, size_t size, bool ok) {
    return {name, setting.recipe, size, ok, dtype_name(setting.args.dtype), setting.shape};
  }

  void put(const Vector& vector, ConstBytes enc) {
    index_[vector.name] = vector;
    good_ = write_file(dir_ / (vector.name + ".enc"), enc) && good_;
  }

  const Entry& entry_;
  fs::path dir_;
  std::map<std::string, Vector> index_;  // lines written by hand stay
  bool good_ = true;
};

}  // namespace

void check_vectors(const Entry& entry, const Options& options, Log* log) {
  const fs::path dir = folder(entry, options);
  log->at(std::string(entry.codec->name) + ", vectors");
  const std::vector<Vector> index = read_index(dir / "index.txt");
  log->check(std::ranges::any_of(index, [](const Vector& v) { return v.ok; }), "has no vectors");
  for (const Vector& vector : index) {
    log->at(std::string(entry.codec->name) + ", vector " + vector.name);
    check_vector(vector, entry, dir, log);
  }
}

bool write_vectors(const Entry& entry, const Options& options) {
  constexpr size_t kSize = 601;  // not a multiple of any element
  VectorWriter writer(entry, folder(entry, options));
  for (const DType dtype : dtypes_of(entry)) {
    if (dtype == DType::kBytes) continue;
    for (const Setting& setting : settings_of(entry, dtype)) {
      if (!setting.is_default) continue;
      const std::string name =
          std::string("_") + dtype_name(dtype) +
          (setting.shape ? std::string("_").append(std::to_string(setting.shape)) : "");
      writer.add("float_bits" + name, setting, *find_generator("float_bits"), kSize);
      writer.add("wave" + name, setting, *find_generator("wave"), kSize);
    }
  }
  for (const Setting& setting : settings_of(entry, DType::kBytes)) {
    std::string label = setting.recipe.substr(std::strlen(entry.codec->name));
    if (!label.empty()) label[0] = '_';
    std::ranges::replace(label, '=', '_');
    if (setting.shape) {
      writer.add("wave" + label + "_" + std::to_string(setting.shape), setting,
                 *find_generator("wave"), size_t{4} * 120);
      continue;
    }
    for (const char* name : {"float_bits", "text", "wave"}) {
      if (!setting.is_default && std::string(name) != "float_bits") continue;
      writer.add(name + label, setting, *find_generator(name), kSize);
    }
    if (!setting.is_default) continue;
    for (const size_t size : {0, 1, 4, 7})
      writer.add("ramp" + std::to_string(size), setting, *find_generator("ramp"), size);
    const Data enc = writer.add("gradient", setting, *find_generator("gradient"), kSize);
    Data bad(enc.begin(), enc.end() - 1);
    writer.add_refused("bad_short", setting, kSize, bad);
    writer.add_refused("bad_half", setting, kSize,
                       Data(enc.begin(), enc.begin() + static_cast<ptrdiff_t>(enc.size() / 2)));
    bad = enc;
    bad.push_back(std::byte{0});
    writer.add_refused("bad_long", setting, kSize, bad);
    bad = enc;
    bad[0] ^= std::byte{0xFF};
    writer.add_refused("bad_head", setting, kSize, bad);
    writer.add_refused("bad_empty", setting, kSize, {});
  }
  return writer.finish();
}

// The vectors as inputs for the fuzz targets: codes as they are, and raw data for round trips.
static bool write_codec_corpus(const Entry& entry, const Options& options, const fs::path& out) {
  const fs::path dir = folder(entry, options);
  fs::create_directories(out);
  bool good = true;
  for (const Vector& vector : read_index(dir / "index.txt")) {
    Setting setting;
    Data data;
    if (!read_setting(vector, entry, &setting)) return false;
    for (const char* kind : {".enc", ".raw"}) {
      if (!read_file(dir / (vector.name + kind), &data)) continue;
      good &= write_file(out / (vector.name + kind),
                         FuzzInput::write(vector.raw_size, setting.args, setting.shape, data));
    }
  }
  return good;
}

static bool write_frame(wpr_ctx* ctx, const std::string& recipe, const Data& raw,
                        const fs::path& path) {
  Data frame(wpr_bound(ctx, raw.size()) + 4096);
  size_t size = 0;
  int lossless = 0;
  if (wpr_set(ctx, "recipe", recipe.c_str()) != WPR_OK ||
      wpr_lossless(ctx, recipe.c_str(), WPR_BYTES, &lossless) != WPR_OK)
    return false;
  const wpr_dtype dtype = lossless ? WPR_BYTES : WPR_FLOAT32;
  const uint64_t shape = raw.size() / (lossless ? 1 : sizeof(float));
  if (wpr_compress_array(ctx, raw.data(), dtype, WPR_NO_SHAPE, &shape, frame.data(), frame.size(),
                         &size) != WPR_OK)
    return false;
  bool good = write_file(path, ConstBytes(frame).first(size));
  size = 0;
  for (int step = 0; step < 3; ++step) {
    size_t written = 0;
    const auto at = frame.data() + size;
    const size_t room = frame.size() - size;
    const wpr_status status =
        step == 0   ? wpr_stream_begin(ctx, dtype, at, room, &written)
        : step == 1 ? wpr_stream_update(ctx, raw.data(), raw.size(), at, room, &written)
                    : wpr_stream_end(ctx, at, room, &written);
    if (status != WPR_OK) return false;
    size += written;
  }
  return write_file(path.string() + "_streamed", ConstBytes(frame).first(size)) && good;
}

bool write_corpus(const Options& options) {
  const fs::path out = options.corpus;
  wpr_ctx* ctx = nullptr;
  bool good = wpr_create(&ctx) == WPR_OK && wpr_set(ctx, "block_size", "1KiB") == WPR_OK &&
              wpr_set(ctx, "checksum", "off") == WPR_OK;
  fs::create_directories(out / "frame");
  Data raw(1500);
  Random random(1);
  find_generator("gradient")->fill(random, raw);
  std::vector<std::string> recipes = {"shuffle:4+zstd:1"};
  for (const Entry& entry : registry()) {
    good = good && write_codec_corpus(entry, options, out / entry.codec->name);
    recipes.push_back(entry.codec->name);
  }
  for (const std::string& recipe : recipes)
    good = good && write_frame(ctx, recipe, raw, out / "frame" / recipe);
  wpr_free(ctx);
  return good;
}

}  // namespace wirepress::conformance
