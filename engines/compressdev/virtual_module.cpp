// SPDX-License-Identifier: Apache-2.0
// Virtual devices as a module of its own, for experiments end to end: virtual-NAME of
// published.hpp, or virtual-RATE, a whole number of MB/s.
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "engines/compressdev/virtual_device.hpp"

namespace wirepress::compressdev {
namespace {

constexpr unsigned kMostRate = 1000000;  // MB/s

bool find(std::string_view name, Published* published) {
  for (const Published& one : kPublished)
    if (name == one.name) return *published = one, true;
  unsigned rate = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, rate);
  if (error != std::errc() || stop != end || rate == 0 || rate > kMostRate) return false;
  *published = published_by_rate(rate * 1e6);
  return true;
}

std::string known_names() {
  std::string names;
  for (const Published& one : kPublished) names += std::string("virtual-") + one.name + ", ";
  return names + "virtual-RATE with whole MB/s";
}

int describe(const char* name, wpr_device_info* info, char* why, size_t why_size) {
  constexpr std::string_view kBefore = "virtual-";
  const std::string_view text = name;
  Published published = {};
  if (!text.starts_with(kBefore) || !find(text.substr(kBefore.size()), &published)) {
    std::snprintf(why, why_size, "%s is no virtual device; known: %s", name, known_names().c_str());
    return -1;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(published.set_up));
  *info = (new VirtualDevice(published))->info(name);  // for good
  return 0;
}

wpr_device_table with_names() {
  wpr_device_table table = VirtualDevice::table();
  table.describe = describe;
  return table;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const wpr_device_table wpr_device_table_2;
extern "C" const wpr_device_table wpr_device_table_2 = with_names();

}  // namespace wirepress::compressdev
