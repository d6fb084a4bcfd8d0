// SPDX-License-Identifier: Apache-2.0
// --bench: what the same kernels cost, block by block, against memcpy of as many bytes timed in
// turns with them. Thread CPU time, best of several, so that a busy machine disturbs less. There is
// one memcpy, the best of all rows: what is divided by it orders as the speeds do.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/clock.hpp"
#include "tests/conformance/suite.hpp"

namespace wirepress::conformance {
namespace {

struct Row {
  std::string recipe, kernel, data;
  double ratio, encode, decode;  // GB/s of raw bytes
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), raw_(options.size), copy_(options.size) {
    std::memset(copy_.data(), 1, copy_.size());
  }

  void fill(const Generator& generator) {
    Random random(1);
    generator.fill(random, raw_);
  }

  bool measure(const Setting& setting, OpenKernel& kernel, Row* row) {
    const size_t block = options_.block_size;
    const size_t n_blocks = (raw_.size() + block - 1) / block;
    const size_t slot = setting.entry->codec->bound(setting.args, block);
    codes_.assign(slot * n_blocks, std::byte{1});
    sizes_.assign(n_blocks, 0);
    double encode = 1e9, decode = 1e9;
    bool good = true;
    for (int i = 0; i < options_.repeats; ++i) {
      double begin = thread_seconds();
      std::memcpy(copy_.data(), raw_.data(), raw_.size());
      memcpy_ = std::min(memcpy_, thread_seconds() - begin);
      begin = thread_seconds();
      for (size_t b = 0; b < n_blocks; ++b)
        good &= kernel.encode(block_of(raw_, b), Bytes(codes_).subspan(b * slot, slot), &sizes_[b])
                    .ok();
      encode = std::min(encode, thread_seconds() - begin);
      begin = thread_seconds();
      for (size_t b = 0; b < n_blocks; ++b) {
        size_t written = 0;
        good &= kernel
                    .decode(ConstBytes(codes_).subspan(b * slot, sizes_[b]), block_of(copy_, b),
                            &written)
                    .ok();
      }
      decode = std::min(decode, thread_seconds() - begin);
    }
    size_t coded = 0;
    for (const size_t size : sizes_) coded += size;
    const double size = static_cast<double>(raw_.size());
    row->ratio = size / static_cast<double>(std::max<size_t>(coded, 1));
    row->encode = size / encode / 1e9;
    row->decode = size / decode / 1e9;
    return good && (!setting.entry->codec->is_lossless(setting.args) || copy_ == raw_);
  }

  // GB/s, the best of all that was measured.
  double memcpy_speed() const { return static_cast<double>(raw_.size()) / memcpy_ / 1e9; }

 private:
  Bytes block_of(std::vector<std::byte>& data, size_t b) const {
    const size_t at = b * options_.block_size;
    return Bytes(data).subspan(at, std::min(options_.block_size, data.size() - at));
  }

  const Options& options_;
  std::vector<std::byte> raw_, copy_, codes_;
  std::vector<size_t> sizes_;
  double memcpy_ = 1e9;  // seconds
};

void print_table(const Options& options, const std::vector<Row>& rows, double memcpy_speed) {
  std::printf(
      "%zu bytes in blocks of %zu; GB/s are 1e9 raw bytes a second; x: of memcpy, %.2f GB/s\n\n"
      "%-24s %-12s %-11s %8s %8s %6s %8s %6s\n",
      options.size, options.block_size, memcpy_speed, "recipe", "kernel", "data", "ratio",
      "enc GB/s", "x", "dec GB/s", "x");
  for (const Row& row : rows) {
    std::printf("%-24s %-12s %-11s %8.3f %8.2f %6.3f %8.2f %6.3f\n", row.recipe.c_str(),
                row.kernel.c_str(), row.data.c_str(), row.ratio, row.encode,
                row.encode / memcpy_speed, row.decode, row.decode / memcpy_speed);
  }
}

bool write_json(const Options& options, const std::vector<Row>& rows, double memcpy_speed) {
  std::FILE* out = std::fopen(options.json.c_str(), "w");
  if (!out) return std::perror(options.json.c_str()), false;
  std::fprintf(out,
               "{\"size\": %zu, \"block_size\": %zu, \"repeats\": %d, \"timer\": \"thread cpu, "
               "best\", \"memcpy_gbps\": %.4f,\n \"rows\": [",
               options.size, options.block_size, options.repeats, memcpy_speed);
  const char* comma = "\n";
  for (const Row& row : rows) {
    std::fprintf(out,
                 "%s  {\"recipe\": \"%s\", \"kernel\": \"%s\", \"data\": \"%s\", \"ratio\": %.4f, "
                 "\"encode_gbps\": %.4f, \"decode_gbps\": %.4f}",
                 comma, row.recipe.c_str(), row.kernel.c_str(), row.data.c_str(), row.ratio,
                 row.encode, row.decode);
    comma = ",\n";
  }
  const bool good = std::fprintf(out, "\n]}\n") > 0;
  return std::fclose(out) == 0 && good;
}

}  // namespace

int bench(const Options& options) {
  Bench bench(options);
  std::vector<Row> rows;
  bool good = true;
  for (const Generator& generator : generators()) {
    if (!options.generator.empty() && options.generator != generator.name) continue;
    bench.fill(generator);
    for (const Entry& entry : registry()) {
      if (!wanted(entry, options)) continue;
      std::vector<Setting> settings = settings_of(entry, DType::kBytes);
      settings.resize(1);
      if (!options.recipe.empty()) {
        Recipe recipe;
        if (const Status s = parse_recipe(options.recipe.c_str(), DType::kBytes, "auto", &recipe);
            !s.ok())
          return std::fprintf(stderr, "%s\n", s.text()), 2;
        if (recipe.step[0].entry != &entry) continue;
        settings[0].args = recipe.step[0].args;
        settings[0].recipe = settings[0].text = options.recipe;
      }
      for (auto& kernel : open_kernels(settings[0])) {
        Row row = {settings[0].recipe,
                   kernel->kernel().engine + std::string(":") + kernel->kernel().variant,
                   generator.name,
                   0,
                   0,
                   0};
        good &= bench.measure(settings[0], *kernel, &row);
        rows.push_back(row);
      }
    }
  }
  print_table(options, rows, bench.memcpy_speed());
  if (!good) std::fprintf(stderr, "a round trip failed\n");
  if (!options.json.empty()) good = write_json(options, rows, bench.memcpy_speed()) && good;
  return good ? 0 : 1;
}

}  // namespace wirepress::conformance
