// SPDX-License-Identifier: Apache-2.0
#include "base/kernel.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

namespace wirepress {
namespace {

struct DTypeRow {
  const char* name;
  size_t size;
};
constexpr DTypeRow kDTypes[kDTypeCount] = {
    {"bytes", 1},    {"int8", 1},      {"uint8", 1},       {"int16", 2},       {"uint16", 2},
    {"int32", 4},    {"uint32", 4},    {"int64", 8},       {"uint64", 8},      {"float16", 2},
    {"bfloat16", 2}, {"float32", 4},   {"float64", 8},     {"float8_e4m3", 1}, {"float8_e5m2", 1},
    {"bool", 1},     {"complex64", 8}, {"complex128", 16},
};

const Kernel* first_usable(const Entry& entry, std::string_view engine, std::string_view variant) {
  for (const Kernel* kernel : entry.kernels) {
    if (!engine.empty() && engine != kernel->engine) continue;
    if (!variant.empty() && variant != kernel->variant) continue;
    if (kernel->usable()) return kernel;
  }
  return nullptr;
}

// An engine, and its kernels' variant or its device, where one is named.
struct Named {
  std::string_view engine, behind_colon;
};

Named read(std::string_view choice) {
  if (choice.starts_with(kWithCores)) choice.remove_prefix(kWithCores.size());
  if (choice.ends_with('!')) choice.remove_suffix(1);
  if (choice.empty() || choice == "auto") choice = "cpu";
  const size_t colon = choice.find(':');
  return {choice.substr(0, colon),
          colon == std::string_view::npos ? std::string_view() : choice.substr(colon + 1)};
}

bool has_devices(std::string_view name) {
  for (const Engine* engine : engines())
    if (name == engine->name) return engine->select != nullptr;
  return false;
}

}  // namespace

size_t dtype_size(DType dtype) { return kDTypes[static_cast<int>(dtype)].size; }
const char* dtype_name(DType dtype) { return kDTypes[static_cast<int>(dtype)].name; }

double real_of(int value) {
  char text[16];
  char* end = std::to_chars(text, text + sizeof text, real_digits(value)).ptr;
  *end++ = 'e';
  end = std::to_chars(end, text + sizeof text, real_exponent(value)).ptr;
  double result = 0;
  std::from_chars(text, end, result);
  return result;
}

bool parse_real(const char* text, size_t size, int* value) {
  int digits = 0, exponent = 0, n_digits = 0, zeros = 0;  // zeros: held back, they may be the last
  bool point = false;
  size_t i = 0;
  for (; i < size && (text[i] == '.' || (text[i] >= '0' && text[i] <= '9')); ++i) {
    if (text[i] == '.') {
      if (point) return false;
      point = true;
      continue;
    }
    ++n_digits;
    exponent -= point;
    if (text[i] == '0') {
      zeros += digits != 0;
      continue;
    }
    for (++zeros; zeros > 0; --zeros) {
      digits *= 10;
      if (digits > 32767) return false;
    }
    digits += text[i] - '0';
    if (digits > 32767) return false;
  }
  if (n_digits == 0) return false;
  exponent += zeros;
  if (i < size) {
    int power = 0;
    if (text[i] != 'e' && text[i] != 'E') return false;
    ++i;
    const auto [stop, error] = std::from_chars(text + i, text + size, power);
    if (error != std::errc() || stop != text + size || power < -1000 || power > 1000) return false;
    exponent += power;
  }
  if (digits == 0) return *value = 0, true;
  if (exponent < -128 || exponent > 127) return false;
  *value = real_param(digits, exponent);
  return true;
}

std::string real_text(int value) {
  char text[32];
  std::string result(text, std::to_chars(text, text + sizeof text, real_of(value)).ptr);
  std::erase(result, '+');  // "1e+05": in a recipe a plus begins the next codec
  return result;
}

const Entry* find_codec(const char* name, size_t name_size) {
  for (const Entry& entry : registry()) {
    if (std::string_view(name, name_size) == entry.codec->name) return &entry;
  }
  return nullptr;
}

const Entry* find_codec(uint16_t id) {
  for (const Entry& entry : registry()) {
    if (entry.id == id) return &entry;
  }
  return nullptr;
}

const Kernel* choose_kernel(const Entry& entry, const char* choice) {
  const Named named = read(choice);
  if (const Kernel* exact = first_usable(entry, named.engine, named.behind_colon)) return exact;
  const Kernel* best = first_usable(entry, named.engine, "");
  return best == nullptr && has_devices(named.engine) ? first_usable(entry, "cpu", "") : best;
}

bool is_named(const Kernel& kernel, const char* choice) {
  const Named named = read(choice);
  return named.engine == kernel.engine &&
         (!names_variant(choice) || named.behind_colon == kernel.variant);
}

bool names_variant(const char* choice) {
  const Named named = read(choice);
  return !named.behind_colon.empty() && !has_devices(named.engine);
}

bool always_usable() noexcept { return true; }

#if defined(__x86_64__)
// Every processor with these also has the rest of x86-64-v3 (F16C, LZCNT, MOVBE).
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("fma");
}

bool has_avx512() noexcept {  // Ice Lake, Zen 4 and later
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("gfni");
}
#else
bool has_avx2() noexcept { return false; }
bool has_avx512() noexcept { return false; }
#endif

}  // namespace wirepress
