// SPDX-License-Identifier: Apache-2.0
// Which job a rank belongs to. Ranks of several jobs may say hello at the same time, and only its
// process manager can tell a rank which others are in its MPI_COMM_WORLD before all of them are
// known to have the library.
#include "job/identity.hpp"

#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job/job.hpp"
#include "job/library.hpp"

namespace wirepress {
namespace {

constexpr size_t kLongestName = 128;
constexpr int kManagerMilliseconds = 60'000;  // it is on the same host, and alive as long as we are

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Slurm's name for the step, if this rank is what srun made of it: a shell under srun has these
// variables too, and hands them to every launcher that it starts.
std::string slurm_step() {
  const std::string id = variable("SLURM_JOB_ID"), step = variable("SLURM_STEP_ID");
  const bool mine = variable("SLURM_PROCID") == std::to_string(job().rank) &&
                    variable("SLURM_STEP_NUM_TASKS") == std::to_string(job().size);
  return mine && !id.empty() && !step.empty() ? id + "." + step : "";
}

std::string name_by_open_mpi() {
  for (const char* name :
       {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"}) {
    if (std::string value = variable(name); !value.empty()) return value;
  }
  return slurm_step();
}

// The process at the other end of a local socket, by its name; "" where that is not to be seen.
std::string peer_of(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return "";
  FILE* file = std::fopen(("/proc/" + std::to_string(peer.pid) + "/comm").c_str(), "r");
  if (!file) return "";
  char name[64] = {};
  const size_t n = std::fread(name, 1, sizeof name - 1, file);
  std::fclose(file);
  return {name, n};
}

bool read_line(int fd, std::string* line) {
  for (line->clear(); line->size() < 1024;) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = poll(&wait, 1, kManagerMilliseconds);
    if (ready < 0 && errno == EINTR) continue;
    char c;
    if (ready <= 0 || recv(fd, &c, 1, 0) != 1) return false;  // not one byte more: MPI reads on
    if (c == '\n') return true;
    *line += c;
  }
  return false;
}

// The key-value space of this job, by the wire protocol PMI-1 of MPICH's process managers. It is
// the first thing that MPICH itself asks for, and nobody else uses the socket inside MPI_Init.
std::string key_value_space(int fd) {
  const std::string question = "cmd=get_my_kvsname\n", key = "kvsname=";
  if (send(fd, question.data(), question.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(question.size())) {
    return "";
  }
  std::string answer;
  if (!read_line(fd, &answer)) return "";
  const size_t begin = answer.find(key);
  if (begin == std::string::npos) return "";
  return answer.substr(begin + key.size(), answer.find(' ', begin) - begin - key.size());
}

std::string name_by_pmi() {
  if (const std::string fd = variable("PMI_FD"); !fd.empty()) {
    const int number = std::atoi(fd.c_str());
    // Slurm's plug-in sets PMI_JOBID and may speak PMI-2 on the socket; a launcher under srun
    // inherits PMI_JOBID.
    const std::string id = variable("PMI_JOBID");
    return id.empty() || peer_of(number).rfind("hydra", 0) == 0 ? key_value_space(number) : id;
  }
  const std::string name = variable("PMIX_NAMESPACE");
  return name.empty() ? slurm_step() : name;
}

std::string manager_name() { return is_open_mpi() ? name_by_open_mpi() : name_by_pmi(); }

}  // namespace

std::string one_word(std::string text) {
  for (char& c : text) {
    if (c <= ' ' || c > '~') c = '_';
  }
  return text.empty() ? "-" : text;
}

std::string hexadecimal(uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return digits;
}

namespace {

std::string network_namespace() {
  struct stat info;
  if (stat("/proc/self/ns/net", &info) != 0) return "";
  return hexadecimal(static_cast<uint64_t>(info.st_ino));
}

// Of the first interface that has one: tells hosts apart whose kernels do not say which they are.
std::string hardware_address() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  uint64_t address = 0;
  for (const ifaddrs* one = all; one && address == 0; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_PACKET) continue;
    const auto& link = reinterpret_cast<const sockaddr_ll&>(*one->ifa_addr);
    std::memcpy(&address, link.sll_addr, std::min<size_t>(link.sll_halen, sizeof address));
  }
  freeifaddrs(all);
  return address ? hexadecimal(address) : "";
}

}  // namespace

std::string node_name(const std::string& host) {
  // Hosts may share a name ("localhost"), containers of a host a kernel, and such containers a
  // name, too. Ranks in one network namespace reach each other without a network; those in
  // different ones do not, whatever their names.
  char id[40] = {};
  if (FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    id[std::fread(id, 1, 36, file)] = 0;
    std::fclose(file);
  }
  const std::string kernel = id[0] ? id : hardware_address();
  return one_word(host + "/" + kernel + "/" + network_namespace());
}

std::string random_word() {
  uint64_t number;
  return getentropy(&number, sizeof number) == 0 ? hexadecimal(number) : "";
}

std::string job_name(const std::string& process) {
  // The launcher's call, too: process managers number their jobs, and begin again.
  const std::string call = variable("WIREPRESS_LAUNCH");
  const std::string name = job().size == 1 ? process : manager_name();
  if (name.empty()) return "";
  const std::string whole = one_word((call.empty() ? "-" : call) + "/" + name);
  return whole.size() <= kLongestName ? whole : hexadecimal(fnv1a(whole.data(), whole.size()));
}

}  // namespace wirepress
