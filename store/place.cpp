// SPDX-License-Identifier: Apache-2.0
#include "store/place.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace wirepress::store {
namespace {

constexpr int kMostNodes = 1024;
constexpr int kPreferred = 1;  // MPOL_PREFERRED of linux/mempolicy.h

Status usable_cores(cpu_set_t* cores) {
  if (::sched_getaffinity(0, sizeof *cores, cores) == 0) return {};
  return fail(Code::kDevice, "the cores of this process cannot be read");
}

// "0-3,8,10-11"
void add_list(const char* list, cpu_set_t* cores) {
  while (*list >= '0' && *list <= '9') {
    char* end;
    const unsigned long first = std::strtoul(list, &end, 10);
    unsigned long last = first;
    if (*end == '-') last = std::strtoul(end + 1, &end, 10);
    for (unsigned long core = first; core <= last && core < CPU_SETSIZE; ++core)
      CPU_SET(core, cores);
    list = *end == ',' ? end + 1 : end;
  }
}

}  // namespace

Status check_cores(std::span<const int> cores) {
  cpu_set_t usable;
  if (!cores.empty()) WPR_TRY(usable_cores(&usable));
  for (const int core : cores) {
    if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(core), &usable))
      return fail(Code::kParameter, "core %d is not one that this process may use", core);
  }
  return {};
}

Status check_nodes(std::span<const int> nodes) {
  for (const int node : nodes) {
    cpu_set_t cores;
    WPR_TRY(cores_of_node(node, &cores));
  }
  return {};
}

Status cores_of_node(int node, cpu_set_t* cores) {
  CPU_ZERO(cores);
  char path[64], list[4096] = "";
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), std::fclose);
  if (node < 0 || node >= kMostNodes || !file || !std::fgets(list, sizeof list, file.get()))
    return fail(Code::kParameter, "NUMA node %d: this machine has none such (%s)", node, path);
  add_list(list, cores);
  cpu_set_t usable;
  WPR_TRY(usable_cores(&usable));
  CPU_AND(cores, cores, &usable);
  if (CPU_COUNT(cores) == 0)
    return fail(Code::kParameter, "NUMA node %d has no core that this process may use", node);
  return {};
}

void prefer_node(void* data, size_t size, int node) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (begin >= end) return;
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMostNodes / kBits] = {};
  mask[static_cast<size_t>(node) / kBits] = 1UL << static_cast<size_t>(node) % kBits;
  (void)::syscall(SYS_mbind, begin, end - begin, kPreferred, mask, kMostNodes, 0);
}

}  // namespace wirepress::store
