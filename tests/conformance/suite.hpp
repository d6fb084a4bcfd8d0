// SPDX-License-Identifier: Apache-2.0
// What the parts of the conformance program share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/recipe.hpp"
#include "tests/conformance/data.hpp"

namespace wirepress::conformance {

// One codec with one set of parameters.
struct Setting {
  const Entry* entry;
  Args args;
  std::string recipe;
  std::string text;  // recipe, type and shape, for people
  bool is_default;
  uint8_t shape = 0;  // as tell_shape takes it
};

// Its default, and each parameter at both ends and at the small powers of two between; of a codec
// that takes shapes, each with some of them.
std::vector<Setting> settings_of(const Entry& entry, DType dtype);
// The types that change what a codec does: bytes, and what its check() takes.
std::vector<DType> dtypes_of(const Entry& entry);

// A kernel that is open for a setting.
class OpenKernel {
 public:
  OpenKernel(const Kernel& kernel, const Args& args);
  ~OpenKernel();
  OpenKernel(const OpenKernel&) = delete;
  OpenKernel& operator=(const OpenKernel&) = delete;
  const Kernel& kernel() const { return kernel_; }
  Status encode(ConstBytes src, Bytes dst, size_t* written);
  Status decode(ConstBytes src, Bytes dst, size_t* written);
  Status encode_feedback(ConstBytes src, Bytes residual, Bytes dst, size_t* written);
  Status decode_add(ConstBytes src, Bytes dst);
  Status add(ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst, size_t* written);
  size_t parts(ConstBytes src, size_t raw_size);
  Status decode_part(ConstBytes src, size_t part, Bytes dst);

 private:
  const Kernel& kernel_;
  Args args_;
  void* state_ = nullptr;
};
using Kernels = std::vector<std::unique_ptr<OpenKernel>>;
Kernels open_kernels(const Setting& setting);  // those this machine can use

// Counts, and says where it was when something fails or crashes.
class Log {
 public:
  void at(std::string where);  // what is being checked now
  [[gnu::format(printf, 2, 3)]] void error(const char* format, ...);
  void check(bool good, const char* what);
  void skip(const std::string& what);
  int errors() const { return errors_; }
  long checks() const { return checks_; }
  int skips() const { return skips_; }
  static void report_crashes();  // SIGSEGV, SIGBUS: prints where, exits 1

 private:
  std::string where_;
  long checks_ = 0;
  int errors_ = 0;
  int skips_ = 0;
};

struct Options {
  std::string codec;      // only this one
  std::string generator;  // only this one
  std::string recipe;     // only this one (bench)
  std::string engine;     // also this one, with its device
  bool quick = false;
  std::string codecs_dir;  // where the vectors lie
  std::string corpus;      // write the fuzz targets' first inputs here
  std::string json;        // bench: also write it here
  size_t size = 16 << 20;  // bench: raw bytes
  size_t block_size = 1 << 20;
  int repeats = 7;
};

void check_codec(const Entry& entry, const Options& options, Log* log);
void check_vectors(const Entry& entry, const Options& options, Log* log);
bool write_vectors(const Entry& entry, const Options& options);
bool write_corpus(const Options& options);
int bench(const Options& options);

bool wanted(const Entry& entry, const Options& options);

}  // namespace wirepress::conformance
