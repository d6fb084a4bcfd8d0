// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/suite.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace wirepress::conformance {
namespace {

std::string value_text(const Param& param, int value) {
  return param.words ? param.words[value] : param.real ? real_text(value) : std::to_string(value);
}

char crash_text[512];

void on_crash(int signal) {
  const char* name = signal == SIGSEGV ? "SIGSEGV" : "SIGBUS";
  const int n =
      std::snprintf(crash_text + 256, 256, "\nFAIL %.180s: %s, touched memory outside its buffer\n",
                    crash_text, name);
  if (write(STDERR_FILENO, crash_text + 256, static_cast<size_t>(n)) < 0) _exit(2);
  _exit(1);
}

}  // namespace

std::vector<Setting> settings_of(const Entry& entry, DType dtype) {
  const Codec& codec = *entry.codec;
  std::vector<std::string> recipes = {codec.name};
  for (const Param& param : codec.params) {
    const std::set<int> values = param.real ? std::set<int>{real_param(1, -6), real_param(1, -3),
                                                            real_param(25, -1), real_param(60, 0)}
                                            : std::set<int>{param.min, 2, 3, 4, 8, param.max};
    for (const int value : values) {
      if (!param.real && (value < param.min || value > param.max)) continue;
      if (value == param.fallback) continue;
      recipes.push_back(std::string(codec.name) + ":" + param.name + "=" +
                        value_text(param, value));
    }
  }
  std::vector<Setting> settings;
  for (const std::string& text : recipes) {
    Recipe recipe;
    if (!parse_recipe(text.c_str(), dtype, "auto", &recipe).ok()) continue;  // not allowed together
    const bool is_default = text == codec.name;
    const std::string type = dtype == DType::kBytes ? "" : std::string(" of ") + dtype_name(dtype);
    settings.push_back({&entry, recipe.step[0].args, text, text + type, is_default});
    if (!codec.by_slabs) continue;
    for (const uint8_t shape : {0x19, 0x4E, 0x87, 0x01}) {  // (n,7) (n,4,3) (n,2,5,3) (n,1)
      Args args = recipe.step[0].args;
      tell_shape(shape, &args);
      settings.push_back({&entry, args, text,
                          text + type + " in " + std::to_string(args.n_dims) + " dimensions",
                          is_default, shape});
    }
  }
  return settings;
}

std::vector<DType> dtypes_of(const Entry& entry) {
  std::vector<DType> dtypes = {DType::kBytes};
  if (!entry.codec->typed) return dtypes;
  for (int i = 1; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (dtype != DType::kFloat32 && !settings_of(entry, dtype).empty()) dtypes.push_back(dtype);
  }
  return dtypes;
}

OpenKernel::OpenKernel(const Kernel& kernel, const Args& args) : kernel_(kernel), args_(args) {
  if (!kernel_.open) return;
  if (const Status status = kernel_.open(args_, &state_); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.text());
    std::abort();
  }
}

OpenKernel::~OpenKernel() {
  if (kernel_.close) kernel_.close(state_);
}

Status OpenKernel::encode(ConstBytes src, Bytes dst, size_t* written) {
  return kernel_.encode(state_, args_, src, dst, written);
}

Status OpenKernel::decode(ConstBytes src, Bytes dst, size_t* written) {
  return kernel_.decode(state_, args_, src, dst, written);
}

Status OpenKernel::encode_feedback(ConstBytes src, Bytes residual, Bytes dst, size_t* written) {
  return kernel_.encode_feedback(state_, args_, src, residual, dst, written);
}

Status OpenKernel::decode_add(ConstBytes src, Bytes dst) {
  return kernel_.decode_add(state_, args_, src, dst);
}

Status OpenKernel::add(ConstBytes a, ConstBytes b, size_t raw_size, Bytes dst, size_t* written) {
  return kernel_.add(state_, args_, a, b, raw_size, dst, written);
}

size_t OpenKernel::parts(ConstBytes src, size_t raw_size) {
  return kernel_.parts(args_, src, raw_size);
}

Status OpenKernel::decode_part(ConstBytes src, size_t part, Bytes dst) {
  return kernel_.decode_part(state_, args_, src, part, dst);
}

Kernels open_kernels(const Setting& setting) {
  Kernels kernels;
  for (const Kernel* kernel : setting.entry->kernels)
    if (kernel->usable()) kernels.push_back(std::make_unique<OpenKernel>(*kernel, setting.args));
  return kernels;
}

void Log::at(std::string where) {
  where_ = std::move(where);
  std::snprintf(crash_text, 256, "%s", where_.c_str());
}

void Log::error(const char* format, ...) {
  constexpr int kMost = 50;
  if (++errors_ > kMost) return;
  va_list args;
  va_start(args, format);
  std::fprintf(stderr, "FAIL %s: ", where_.c_str());
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
}

void Log::check(bool good, const char* what) {
  ++checks_;
  if (!good) error("%s", what);
}

void Log::skip(const std::string& what) {
  ++skips_;
  std::printf("skipped %s\n", what.c_str());
}

void Log::report_crashes() {
  std::signal(SIGSEGV, on_crash);
  std::signal(SIGBUS, on_crash);
}

bool wanted(const Entry& entry, const Options& options) {
  return options.codec.empty() || options.codec == entry.codec->name;
}

}  // namespace wirepress::conformance
