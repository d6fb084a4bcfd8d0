// SPDX-License-Identifier: Apache-2.0
// Counters of the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wirepress {

// Of this process's TCP connections that lead to other hosts. `sent`: bytes that were given to
// them, without headers. `resent`: what TCP sent once more.
struct TcpCount {
  int connections = 0;
  uint64_t sent = 0, resent = 0;
};
TcpCount count_tcp();

// Of one NIC, since the host started. Ethernet counts bytes of frames with their headers,
// InfiniBand those of packets.
struct NicCounter {
  std::string name;
  bool infiniband = false;
  uint64_t sent_bytes = 0, sent_packets = 0, received_bytes = 0;
};
// The NICs by which messages leave this host, or its network namespace: none that is made of
// others, and hardware alone where there is some. `root`: of /proc and /sys, "" but in tests.
std::vector<NicCounter> read_nics(const std::string& root);

// Bytes a second that all of the host's NICs together can send, as their drivers say; 0: not known.
double nic_rate(const std::string& root);

void start_network();        // the job's messages begin
std::string network_json();  // what was counted since then, for the report

}  // namespace wirepress
