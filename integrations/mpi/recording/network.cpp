// SPDX-License-Identifier: Apache-2.0
// What the kernel saw of a rank's messages, to stand beside what the interposer counted.
//
// Two measures. A rank's own TCP connections to other hosts: exact, and only this process's, but
// only where MPI moves messages by TCP. The NICs of a host, read by its first rank: whatever the
// transport, but with the traffic of everything else on the host.
#include "recording/network.hpp"

#include <dirent.h>
#include <linux/tcp.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job/job.hpp"
#include "recording/json.hpp"

namespace wirepress {
namespace {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (!directory) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

bool read_number(const std::string& path, uint64_t* number) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return false;
  const bool good = std::fscanf(file, "%" SCNu64, number) == 1;
  std::fclose(file);
  return good;
}

// ---- connections ----

// An address without its port; a loopback address is empty.
std::string address_of(const sockaddr_storage& name) {
  if (name.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(name);
    const std::string bytes(reinterpret_cast<const char*>(&four.sin_addr), sizeof four.sin_addr);
    return bytes[0] == 127 ? "" : bytes;
  }
  if (name.ss_family != AF_INET6) return "";
  const auto& six = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
  const std::string bytes(reinterpret_cast<const char*>(&six), sizeof six);
  if (!IN6_IS_ADDR_V4MAPPED(&six)) return IN6_IS_ADDR_LOOPBACK(&six) ? "" : bytes;
  return bytes[12] == 127 ? "" : bytes.substr(12);
}

bool leads_elsewhere(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) {
    return false;
  }
  const std::string there = address_of(peer);
  return !there.empty() && there != address_of(own);
}

// Adds what the process gave to a connection; nothing where the kernel does not say.
void add_connection(int fd, TcpCount* count) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (size < offsetof(tcp_info, tcpi_bytes_retrans) + sizeof info.tcpi_bytes_retrans) return;
  ++count->connections;
  count->sent += info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
  count->resent += info.tcpi_bytes_retrans;
}

// ---- NICs ----

// An interface that is made of others, such as a bond, a bridge or a VLAN.
bool is_stacked(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    if (name.rfind("lower_", 0) == 0) return true;
  }
  return false;
}

// "  eth0: 1 2 ...": received bytes and packets are fields 0 and 1, sent ones 8 and 9.
bool read_interface(char* line, NicCounter* nic) {
  char* colon = std::strchr(line, ':');
  if (!colon) return false;
  *colon = 0;
  while (std::isspace(static_cast<unsigned char>(*line))) ++line;
  nic->name = line;
  uint64_t fields[10];
  char* at = colon + 1;
  for (uint64_t& field : fields) {
    char* end;
    field = std::strtoull(at, &end, 10);
    if (end == at) return false;
    at = end;
  }
  nic->received_bytes = fields[0];
  nic->sent_bytes = fields[8];
  nic->sent_packets = fields[9];
  return true;
}

std::vector<NicCounter> read_interfaces(const std::string& root) {
  std::vector<NicCounter> nics;
  FILE* file = std::fopen((root + "/proc/self/net/dev").c_str(), "re");
  if (!file) return nics;
  char line[1024];
  NicCounter nic;
  while (std::fgets(line, sizeof line, file)) {
    if (read_interface(line, &nic) && nic.name != "lo") nics.push_back(nic);
  }
  std::fclose(file);
  return nics;
}

std::vector<NicCounter> read_infiniband(const std::string& root) {
  std::vector<NicCounter> nics;
  const std::string base = root + "/sys/class/infiniband";
  for (const std::string& device : names_in(base)) {
    for (const std::string& port : names_in(base + "/" + device + "/ports")) {
      const std::string counters = base + "/" + device + "/ports/" + port + "/counters/";
      NicCounter nic;
      nic.name = device + ":" + port;
      nic.infiniband = true;
      uint64_t words = 0, received = 0;
      if (!read_number(counters + "port_xmit_data", &words) ||
          !read_number(counters + "port_xmit_packets", &nic.sent_packets)) {
        continue;
      }
      read_number(counters + "port_rcv_data", &received);
      nic.sent_bytes = 4 * words;  // the counters are of 32 bits each
      nic.received_bytes = 4 * received;
      nics.push_back(nic);
    }
  }
  return nics;
}

// Mb/s of an interface, or of a port ("100 Gb/sec (4X EDR)"); 0: its driver does not say.
double nic_mbps(const std::string& root, const NicCounter& nic) {
  const std::string classes = root + "/sys/class/";
  const size_t colon = nic.name.find(':');
  const std::string path = nic.infiniband ? classes + "infiniband/" + nic.name.substr(0, colon) +
                                                "/ports/" + nic.name.substr(colon + 1) + "/rate"
                                          : classes + "net/" + nic.name + "/speed";
  FILE* file = std::fopen(path.c_str(), "re");
  double rate = 0;
  if (!file) return 0;
  if (std::fscanf(file, "%lf", &rate) != 1 || rate < 0) rate = 0;
  std::fclose(file);
  return nic.infiniband ? 1000 * rate : rate;
}

std::vector<NicCounter>& at_start() {
  static auto* nics = new std::vector<NicCounter>;
  return *nics;
}
TcpCount g_tcp_at_start;

}  // namespace

TcpCount count_tcp() {
  TcpCount count;
  for (const std::string& name : names_in("/proc/self/fd")) {
    const int fd = std::atoi(name.c_str());
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) continue;
    if ((domain == AF_INET || domain == AF_INET6) && leads_elsewhere(fd))
      add_connection(fd, &count);
  }
  return count;
}

std::vector<NicCounter> read_nics(const std::string& root) {
  std::vector<NicCounter> ports = read_infiniband(root), nics, virtual_ones;
  for (const NicCounter& nic : read_interfaces(root)) {
    const std::string folder = root + "/sys/class/net/" + nic.name;
    uint64_t kind = 0;
    read_number(folder + "/type", &kind);
    const bool counted_as_port = kind == ARPHRD_INFINIBAND && !ports.empty();
    if (counted_as_port || is_stacked(folder)) continue;
    (exists(folder + "/device") ? nics : virtual_ones).push_back(nic);
  }
  // Where there is hardware the others lead to programs of this host: containers, tunnels.
  if (nics.empty() && ports.empty()) nics = virtual_ones;
  nics.insert(nics.end(), ports.begin(), ports.end());
  return nics;
}

double nic_rate(const std::string& root) {
  double mbps = 0;
  for (const NicCounter& nic : read_nics(root)) {
    // What is no hardware says a number that limits nothing.
    if (!nic.infiniband && !exists(root + "/sys/class/net/" + nic.name + "/device")) return 0;
    const double rate = nic_mbps(root, nic);
    if (rate == 0) return 0;
    mbps += rate;
  }
  return mbps * 1e6 / 8;
}

void start_network() {
  at_start() = read_nics("");
  g_tcp_at_start = count_tcp();
}

std::string network_json() {
  const TcpCount tcp = count_tcp();
  std::string json;
  const auto since = [](uint64_t now, uint64_t start) {
    return static_cast<unsigned long long>(now - std::min(now, start));
  };
  append(&json, "{\"tcp_connections\": %d, \"tcp_sent_bytes\": %llu, \"tcp_resent_bytes\": %llu",
         tcp.connections, since(tcp.sent, g_tcp_at_start.sent),
         since(tcp.resent, g_tcp_at_start.resent));
  const std::vector<int>& node = job().node;
  // With mpi_same_host ranks of a host count as nodes of their own.
  const bool first = std::find(node.begin(), node.end(), own_node()) - node.begin() == job().rank;
  if (!first || (job().same_host && job().rank != 0)) return json + "}";
  json += ", \"nics\": [";
  const char* comma = "";
  for (const NicCounter& nic : read_nics("")) {
    const auto before =
        std::find_if(at_start().begin(), at_start().end(),
                     [&](const NicCounter& known) { return known.name == nic.name; });
    if (before == at_start().end()) continue;
    json += comma + ("{\"name\": " + json_string(nic.name));
    append(&json, ", \"infiniband\": %s, \"sent_bytes\": %llu, \"sent_packets\": %llu",
           nic.infiniband ? "true" : "false",
           static_cast<unsigned long long>(nic.sent_bytes - before->sent_bytes),
           static_cast<unsigned long long>(nic.sent_packets - before->sent_packets));
    append(&json, ", \"received_bytes\": %llu}",
           static_cast<unsigned long long>(nic.received_bytes - before->received_bytes));
    comma = ", ";
  }
  return json + "]}";
}

}  // namespace wirepress
