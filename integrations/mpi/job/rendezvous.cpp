// SPDX-License-Identifier: Apache-2.0
#include "job/rendezvous.hpp"

#include <mpi.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "job/identity.hpp"
#include "job/job.hpp"
#include "job/options.hpp"
#include "recording/counts.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

constexpr int kProtocol = 2;
constexpr double kConnectSeconds = 3, kGreetingSeconds = 10, kReportSeconds = 30;
// The server decides some seconds after the first hello (10 unless told otherwise); it lives as
// long as the job's launcher, so waiting for it does not hang a job. A connection may break without
// a word: after so long the rank asks anew.
constexpr double kVerdictSeconds = 60;
// A rank that has said hello and lost the connection asks again after 0.1, 0.2 ... 6.4 seconds.
constexpr int kRetries = 7;
constexpr useconds_t kRetryMicroseconds = 100'000;
// A host that refuses the connection has no such server any more: a busy one does not answer.
constexpr int kRefusals = 3;
constexpr size_t kRunDigits = 2 * (kCookieSize - kJobSize);

class Line {
 public:
  ~Line() {
    if (socket_ >= 0) close(socket_);
  }

  // "HOST:PORT[,HOST:PORT...]": the first where this run's rendezvous answers becomes *addresses.
  bool meet(std::string* addresses, const std::string& token) {
    const std::string greeting =
        "wirepress " + std::to_string(kProtocol) + " " + token.substr(0, kRunDigits);
    for (size_t begin = 0; begin < addresses->size();) {
      const size_t end = std::min(addresses->find(',', begin), addresses->size());
      const std::string address = addresses->substr(begin, end - begin);
      const size_t colon = address.rfind(':');
      std::string said;
      if (colon != std::string::npos &&
          connect_to(address.substr(0, colon), address.substr(colon + 1),
                     now() + kConnectSeconds) &&
          read_line(&said, now() + kGreetingSeconds) && said == greeting) {
        *addresses = address;
        return true;
      }
      begin = end + 1;
    }
    return false;
  }

  bool refused() const { return refused_; }

  bool send_all(const std::string& text, double deadline) {
    for (size_t sent = 0; sent < text.size();) {
      if (!ready(POLLOUT, deadline)) return false;
      const ssize_t n =
          ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (n > 0) sent += static_cast<size_t>(n);
    }
    return true;
  }

  bool read_line(std::string* line, double deadline) {
    constexpr size_t kLongest = 16 << 20;
    for (;;) {
      const size_t end = pending_.find('\n');
      if (end != std::string::npos) {
        *line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return true;
      }
      if (pending_.size() > kLongest || !ready(POLLIN, deadline)) return false;
      char received[4096];
      const ssize_t n = recv(socket_, received, sizeof received, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (n > 0) pending_.append(received, static_cast<size_t>(n));
    }
  }

 private:
  bool ready(short events, double deadline) {
    for (;;) {
      const double left = deadline - now();
      if (left <= 0) return false;
      pollfd wait{socket_, events, 0};
      const int n = poll(&wait, 1, static_cast<int>(left * 1000) + 1);
      if (n > 0) return true;
      if (n < 0 && errno != EINTR) return false;
    }
  }

  bool connect_to(const std::string& host, const std::string& port, double deadline) {
    pending_.clear();
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
    bool connected = false;
    refused_ = false;
    for (const addrinfo* a = found; a && !connected; a = a->ai_next) {
      if (socket_ >= 0) close(socket_);
      socket_ = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
      if (socket_ < 0) continue;
      int error = 0;
      if (connect(socket_, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) {
        refused_ = errno == ECONNREFUSED;
        continue;
      }
      socklen_t size = sizeof error;
      connected = ready(POLLOUT, deadline) &&
                  getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
      refused_ = error == ECONNREFUSED;
    }
    freeaddrinfo(found);
    return connected;
  }

  int socket_ = -1;
  bool refused_ = false;  // by the last address that was tried
  std::string pending_;
};

// ---- who this rank is, and what it is told ----

struct Meeting {
  std::string addresses, token;  // no addresses: there is no rendezvous
};

Meeting find_meeting() {
  const char* text = std::getenv("WIREPRESS_RENDEZVOUS");
  const std::string both = text ? text : "";
  const size_t semicolon = both.rfind(';');
  if (semicolon == std::string::npos) return {};
  return {both.substr(0, semicolon), both.substr(semicolon + 1)};
}

// The word by which the rendezvous knows this process.
std::string& process_word() {
  static auto* word = new std::string(random_word());
  return *word;
}

bool parse_hex(const std::string& text, Byte* bytes) {
  if (text.size() != 2 * kCookieSize) return false;
  for (size_t i = 0; i < kCookieSize; ++i) {
    char* end;
    const std::string pair = text.substr(2 * i, 2);
    bytes[i] = static_cast<Byte>(std::strtoul(pair.c_str(), &end, 16));
    if (*end) return false;
  }
  return true;
}

bool parse_nodes(const std::string& text, std::vector<int>* nodes) {
  nodes->clear();
  const char* at = text.c_str();
  char* end;
  for (long node = std::strtol(at, &end, 10); end != at; node = std::strtol(at, &end, 10)) {
    nodes->push_back(static_cast<int>(node));
    at = end;
  }
  return nodes->size() == static_cast<size_t>(job().size);
}

// "on COOKIE NODES" or "off REASON".
bool parse_verdict(const std::string& answer, Verdict* verdict) {
  if (answer.rfind("off ", 0) == 0) {
    verdict->reason = answer.substr(4);
    return true;
  }
  const size_t cookie = 3, nodes = cookie + 2 * kCookieSize;
  verdict->on = answer.size() > nodes && answer.rfind("on ", 0) == 0 &&
                parse_hex(answer.substr(cookie, 2 * kCookieSize), job().cookie) &&
                parse_nodes(answer.substr(nodes), &job().node);
  return verdict->on;
}

std::string hello_line(const std::string& token, const std::string& name,
                       const std::string& refuse) {
  const Job& j = job();
  std::string hello = "hello " + std::to_string(kProtocol) + " " + token + " " + name + " " +
                      process_word() + " " + std::to_string(j.rank) + " " + std::to_string(j.size) +
                      " " + wpr_version() + " " + config_hash() + " " + node_name(j.host) + " " +
                      one_word(program_invocation_short_name) + " " +
                      (refuse.empty() ? "-" : refuse);
  std::replace(hello.begin(), hello.end(), '\n', ' ');
  if (hello.size() > 4000) hello.resize(4000);
  return hello + "\n";
}

}  // namespace

bool has_rendezvous() { return !find_meeting().addresses.empty(); }

Verdict ask_rendezvous(const std::string& refuse) {
  Job& j = job();
  const auto [addresses, token] = find_meeting();
  const std::string name = job_name(process_word());
  if (process_word().empty() || name.empty()) {
    const char* reason = name.empty() ? "this launcher does not tell ranks which job they are of"
                                      : "no random numbers";
    return {false, reason};
  }
  const std::string hello = hello_line(token, name, refuse);
  int refusals = 0;
  for (int failures = 0; failures <= kRetries && refusals < kRefusals; ++failures) {
    if (failures > 0) usleep(kRetryMicroseconds << (failures - 1));
    Line line;
    std::string address = j.rendezvous.empty() ? addresses : j.rendezvous, answer;
    if (!line.meet(&address, token)) {
      refusals += !j.rendezvous.empty() && line.refused();
      if (!j.rendezvous.empty() || failures == 0) continue;
      // No other rank was told of this one: it may keep out.
      return {false, "cannot connect to the rendezvous at " + addresses};
    }
    j.rendezvous = address;
    if (!line.send_all(hello, now() + kGreetingSeconds)) continue;
    Verdict verdict;
    const double deadline = now() + kVerdictSeconds;
    if (line.read_line(&answer, deadline) && parse_verdict(answer, &verdict)) return verdict;
    if (now() >= deadline) failures = -1;  // it is there: only the wait is long
  }
  // Others may have been told that this rank takes part, or that nobody does; either guess would
  // end in wrong data or in a hang.
  end_job("lost the rendezvous at " + j.rendezvous +
          " before it said whether messages are compressed");
}

void send_report(const std::string& report) {
  const std::string token = find_meeting().token;
  Line line;
  const double deadline = now() + kReportSeconds;
  std::string address = job().rendezvous;
  if (!line.meet(&address, token)) return;
  const std::string head = "report " + std::to_string(kProtocol) + " " + token + " " +
                           process_word() + " " + std::to_string(report.size()) + "\n";
  std::string answer;
  if (line.send_all(head + report, deadline)) line.read_line(&answer, deadline);
}

void end_job(const std::string& why) {
  std::fprintf(stderr, "wirepress: rank %d: %s; the job ends\n", job().rank, why.c_str());
  // MPICH's launcher drops what it has not read when it learns of the end.
  usleep(300000);
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

}  // namespace wirepress
