// SPDX-License-Identifier: Apache-2.0
#include "base/kernel.hpp"

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

}  // namespace

size_t dtype_size(DType dtype) { return kDTypes[static_cast<int>(dtype)].size; }
const char* dtype_name(DType dtype) { return kDTypes[static_cast<int>(dtype)].name; }

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
  const std::string_view text = std::string_view(choice) == "auto" ? "" : choice;
  const size_t colon = text.find(':');
  const std::string_view engine = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    if (const Kernel* exact = first_usable(entry, engine, text.substr(colon + 1))) return exact;
  }
  return first_usable(entry, engine, "");
}

}  // namespace wirepress
