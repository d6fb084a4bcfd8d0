// SPDX-License-Identifier: Apache-2.0
// How ranks find out that all of them have the library, agree on the cookie, learn the nodes, and
// leave their reports (protocol: spec/report.md). No MPI call is made for it unless the user
// asserts that every rank has the library: a rank without it could never take part.
#include <dlfcn.h>
#include <link.h>
#include <netdb.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "recording/network.hpp"
#include "recording/trace.hpp"

namespace wirepress {

std::atomic<int> g_mode{kInert};

Job& job() {
  static auto* the_job = new Job;
  return *the_job;
}

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

// ---- sockets ----

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
      char piece[4096];
      const ssize_t n = recv(socket_, piece, sizeof piece, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (n > 0) pending_.append(piece, static_cast<size_t>(n));
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

// ---- options ----

// 0 for a key that the library does not know.
double number(const wpr_ctx* ctx, const char* key) {
  double value = 0;
  wpr_get_number(ctx, key, &value);
  return value;
}

size_t count(const wpr_ctx* ctx, const char* key) { return static_cast<size_t>(number(ctx, key)); }

bool is_on(const wpr_ctx* ctx, const char* key) { return number(ctx, key) != 0; }

// Reads the options; "" or why the library cannot be used.
std::string read_options() {
  wpr_ctx* ctx = nullptr;
  const wpr_status status = wpr_create(&ctx);
  if (!ctx) return "no memory";
  std::string problem = status == WPR_OK ? "" : wpr_error(ctx);
  Job& j = job();
  j.codec = wpr_get(ctx, "mpi_codec");
  j.link = wpr_get(ctx, "mpi_link");
  j.error = wpr_get(ctx, "mpi_error");
  j.report_file = wpr_get(ctx, "mpi_report");
  j.compress = is_on(ctx, "mpi_compress");
  j.trace = wpr_get(ctx, "mpi_trace");
  j.trace_sample = count(ctx, "mpi_trace_sample");
  j.by_link = std::strcmp(wpr_get(ctx, "mpi_threshold"), "auto") == 0;
  j.threshold = j.by_link ? kUsualThreshold : count(ctx, "mpi_threshold");
  j.block_threshold = j.by_link ? kUsualBlockThreshold : j.threshold;
  j.pieces_from = count(ctx, "mpi_pieces");
  j.chunk = std::max<size_t>(count(ctx, "mpi_chunk") / 64 * 64, 4096);
  j.partitions = count(ctx, "mpi_partitions");
  j.deterministic = is_on(ctx, "mpi_deterministic");
  j.collectives = is_on(ctx, "mpi_collectives");
  j.contest = is_on(ctx, "mpi_contest");
  j.nonblocking = is_on(ctx, "mpi_nonblocking");
  j.same_host = is_on(ctx, "mpi_same_host");
  j.checksum = is_on(ctx, "mpi_checksum");
  j.trust = is_on(ctx, "mpi_trust");
  if (problem.empty()) {
    if (const char* why = prepare_codecs(ctx)) problem = why;
  }
  if (problem.empty() && j.deterministic && !j.collectives) {
    problem =
        "mpi_deterministic: sums have one order only in our collectives, mpi_collectives is off";
  }
  wpr_free(ctx);
  return problem;
}

// Of what must be the same on every rank.
std::string config_hash() {
  const Job& j = job();
  std::string text =
      std::string(wpr_version()) + "|" + j.codec + "|" + j.link + "|" + j.error + "|" +
      std::to_string(j.threshold) + "|" + std::to_string(j.by_link) + "|" +
      std::to_string(j.pieces_from) + "|" + std::to_string(j.chunk) + "|" +
      std::to_string(j.partitions) + "|" +
      std::to_string((j.nonblocking && j.multiple) * 32 + j.contest * 16 + j.deterministic * 8 +
                     j.collectives * 4 + j.same_host * 2 + j.checksum) +
      "|" + j.report_file + "|" + std::to_string(j.compress) + "|" +
      std::to_string(j.trace_sample) + "|" + j.trace;
  // A library that was built without a codec could not expand what others send.
  for (size_t i = 0; i < n_candidates(); ++i) {
    text += std::string("|") + candidate_name(static_cast<int>(i));
  }
  return hexadecimal(fnv1a(text.data(), text.size()));
}

// ---- who else is there ----

// Open MPI's Fortran calls pass through no C function; where its INTEGER is not a C int fortran.cpp
// is not built.
bool has_foreign_fortran() {
#ifndef WPR_MPI_FORTRAN
  return dl_iterate_phdr(
             [](dl_phdr_info* info, size_t, void*) {
               return info->dlpi_name && std::strstr(info->dlpi_name, "libmpi_mpifh") ? 1 : 0;
             },
             nullptr) != 0;
#else
  return false;
#endif
}

// The dynamic symbols of this library.
class Symbols {
 public:
  Symbols() {
    Dl_info info;
    link_map* map = nullptr;
    if (!dladdr1(reinterpret_cast<void*>(activate), &info, reinterpret_cast<void**>(&map),
                 RTLD_DL_LINKMAP)) {
      return;
    }
    base_ = map->l_addr;
    const uint32_t* hash = nullptr;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) value = entry->d_un.d_ptr;
      const ElfW(Addr) at = value < base_ ? base_ + value : value;  // not every libc adds the base
      if (entry->d_tag == DT_SYMTAB) first_ = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names_ = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(at);
    }
    if (first_ && names_ && hash) size_ = count(hash);
  }
  size_t size() const { return size_; }
  bool defined(size_t i) const { return first_[i].st_shndx != SHN_UNDEF; }
  const char* name(size_t i) const { return names_ + first_[i].st_name; }
  const void* address(size_t i) const {
    return reinterpret_cast<const void*>(base_ + first_[i].st_value);
  }

 private:
  // Its chains end with the last symbol; nothing else tells how many there are.
  static size_t count(const uint32_t* hash) {
    const uint32_t n_buckets = hash[0], first = hash[1], n_words = hash[2];
    const uint32_t* buckets = hash + 4 + n_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chains = buckets + n_buckets;
    uint32_t last = *std::max_element(buckets, chains);
    if (last < first) return first;
    while (!(chains[last - first] & 1)) ++last;
    return last + 1;
  }

  ElfW(Addr) base_ = 0;
  const ElfW(Sym) * first_ = nullptr;
  const char* names_ = nullptr;
  size_t size_ = 0;
};

// A program that is not position-independent and takes a function's address has a stub for it,
// which is the address for everybody and leads to the function.
bool is_stub(const void* function) {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  return dladdr1(function, &info, const_cast<void**>(reinterpret_cast<const void**>(&symbol)),
                 RTLD_DL_SYMENT) &&
         symbol && symbol->st_shndx == SHN_UNDEF;
}

// A tool that is part of the program, or preloaded before this library, has MPI functions of its
// own, which call PMPI: messages would be compressed on one side only. Fortran's names may be
// anybody's, for the PMPI names of Fortran lead here too.
std::string foreign_function() {
  const Symbols symbols;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const char* name = symbols.name(i);
    if (!symbols.defined(i) || std::strncmp(name, "MPI_", 4) != 0 || !std::islower(name[5])) {
      continue;
    }
    const void* found = dlsym(RTLD_DEFAULT, name);
    if (found && found != symbols.address(i) && !is_stub(found)) return name;
  }
  return "";
}

// ---- agreeing ----

struct Verdict {
  bool on = false;
  std::string reason;
};

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

// Others may have been told that this rank takes part, or that nobody does; either guess would end
// in wrong data or in a hang.
[[noreturn]] void give_up(const std::string& addresses) {
  std::fprintf(stderr,
               "wirepress: rank %d: lost the rendezvous at %s before it said whether messages are "
               "compressed: the job ends\n",
               job().rank, addresses.c_str());
  PMPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

Verdict ask_rendezvous(const std::string& addresses, const std::string& token,
                       const std::string& refuse) {
  Job& j = job();
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
  give_up(j.rendezvous);
}

// Collective. All ranks were told to start, so all have the library: were they told the same?
bool told_alike() {
  const Job& j = job();
  const uint64_t hash =
      fnv1a(j.cookie, kCookieSize) ^ fnv1a(j.node.data(), j.node.size() * sizeof j.node[0]);
  const uint64_t mine[2] = {hash, ~hash};
  uint64_t least[2] = {0, 0};
  return PMPI_Allreduce(mine, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS &&
         least[0] == ~least[1];
}

struct Hello {
  char host[352] = {}, config[24] = {}, refuse[256] = {};
};

// Number the nodes by the first rank that names each.
std::vector<int> number_nodes(const std::vector<Hello>& hellos) {
  std::vector<std::string> names;
  std::vector<int> nodes;
  for (const Hello& hello : hellos) {
    const auto at = std::find(names.begin(), names.end(), hello.host);
    nodes.push_back(static_cast<int>(at - names.begin()));
    if (at == names.end()) names.emplace_back(hello.host);
  }
  return nodes;
}

Verdict ask_world(const std::string& refuse) {
  Job& j = job();
  Hello mine;
  std::snprintf(mine.host, sizeof mine.host, "%s", node_name(j.host).c_str());
  std::snprintf(mine.config, sizeof mine.config, "%s", config_hash().c_str());
  std::snprintf(mine.refuse, sizeof mine.refuse, "%s", refuse.c_str());
  if (getentropy(j.cookie, kCookieSize) != 0 && refuse.empty()) {
    std::snprintf(mine.refuse, sizeof mine.refuse, "no random numbers");
  }
  std::vector<Hello> all(static_cast<size_t>(j.size));
  const int size = sizeof(Hello);
  if (PMPI_Bcast(j.cookie, kCookieSize, MPI_BYTE, 0, MPI_COMM_WORLD) != MPI_SUCCESS ||
      PMPI_Allgather(&mine, size, MPI_BYTE, all.data(), size, MPI_BYTE, MPI_COMM_WORLD) !=
          MPI_SUCCESS) {
    return {false, "MPI failed"};
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string rank = "rank " + std::to_string(i);
    if (all[i].refuse[0]) return {false, rank + ": " + all[i].refuse};
    if (std::strcmp(all[i].config, all[0].config) != 0) {
      return {false, rank + " has other settings than rank 0"};
    }
  }
  j.node = number_nodes(all);
  return {true, ""};
}

bool has_parent() {
  MPI_Comm parent = MPI_COMM_NULL;
  return PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL;
}

bool split_rendezvous(std::string* addresses, std::string* token) {
  const char* text = std::getenv("WIREPRESS_RENDEZVOUS");
  if (!text || !*text) return false;
  *addresses = text;
  const size_t semicolon = addresses->rfind(';');
  if (semicolon == std::string::npos) return false;
  *token = addresses->substr(semicolon + 1);
  addresses->resize(semicolon);
  return true;
}

}  // namespace

bool wants_threads() {
  if (!std::getenv("WIREPRESS_RENDEZVOUS") && !std::getenv("WIREPRESS_MPI_TRUST")) return false;
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);
  const bool wants = ctx && is_on(ctx, "mpi_nonblocking") && is_on(ctx, "mpi_compress");
  wpr_free(ctx);
  return wants;
}

void activate() {
  if (g_mode.load() != kInert || has_parent()) return;
  std::string addresses, token;
  const bool rendezvous = split_rendezvous(&addresses, &token);
  Job& j = job();
  std::string refuse = read_options();
  if (!rendezvous && !j.trust) return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &j.size);
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  j.multiple = level == MPI_THREAD_MULTIPLE;
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  j.host = host;
  if (refuse.empty()) refuse = unfit_library();
  if (refuse.empty() && has_foreign_fortran()) {
    refuse = "its Fortran calls cannot be seen";
  }
  const std::string foreign = foreign_function();
  if (refuse.empty() && !foreign.empty()) {
    refuse = "there is another " + foreign + ", in the program or preloaded before this library";
  }
  Verdict verdict = rendezvous ? ask_rendezvous(addresses, token, refuse) : ask_world(refuse);
  if (verdict.on) start_network();
  if (verdict.on && !told_alike()) {
    verdict = {false, "the rendezvous took ranks of several jobs for one"};
  }
  j.reason = verdict.reason;
  j.state = verdict.on ? "on" : "off";
  if (!verdict.on) {
    if (j.rank == 0) std::fprintf(stderr, "wirepress: off: %s\n", j.reason.c_str());
    return;
  }
  if (j.same_host) {
    for (size_t i = 0; i < j.node.size(); ++i) j.node[i] = static_cast<int>(i);
  }
  learn_types();
  PMPI_Comm_dup(MPI_COMM_SELF, &j.self);
  PMPI_Comm_set_errhandler(j.self, MPI_ERRORS_RETURN);
  prepare_comms();
  start_trace();
  if (!j.compress) {
    j.state = "off";
    j.reason = "mpi_compress=off";
    return;
  }
  prepare_bounded();
  start_choosing();
  prepare_pieces();
  prepare_queues();
  g_mode.store(kOn, std::memory_order_release);
}

namespace {

void leave_report(const std::string& report) {
  std::string addresses, token;
  if (!split_rendezvous(&addresses, &token)) return;
  Line line;
  const double deadline = now() + kReportSeconds;
  std::string address = job().rendezvous;
  if (!line.meet(&address, token)) return;
  const std::string head = "report " + std::to_string(kProtocol) + " " + token + " " +
                           process_word() + " " + std::to_string(report.size()) + "\n";
  std::string answer;
  if (line.send_all(head + report, deadline)) line.read_line(&answer, deadline);
}

// The reports of all ranks on rank 0, nothing elsewhere.
std::vector<std::string> gather_reports(const std::string& report) {
  const Job& j = job();
  const auto n = static_cast<size_t>(j.size);
  int size = static_cast<int>(report.size());
  std::vector<int> sizes(n), places(n);
  if (PMPI_Gather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS) {
    return {};
  }
  for (size_t i = 1; i < n; ++i) places[i] = places[i - 1] + sizes[i - 1];
  std::string all(j.rank == 0 ? static_cast<size_t>(places[n - 1] + sizes[n - 1]) : 0, ' ');
  if (PMPI_Gatherv(report.data(), size, MPI_CHAR, all.data(), sizes.data(), places.data(), MPI_CHAR,
                   0, MPI_COMM_WORLD) != MPI_SUCCESS ||
      j.rank != 0) {
    return {};
  }
  std::vector<std::string> ranks;
  for (size_t i = 0; i < n; ++i) {
    ranks.push_back(all.substr(static_cast<size_t>(places[i]), static_cast<size_t>(sizes[i])));
  }
  return ranks;
}

// Between the two halves of the end.
std::vector<std::string>& kept_reports() {
  static auto* reports = new std::vector<std::string>;
  return *reports;
}

// MPICH 4.0 over UCX hangs in MPI_Finalize where a rank that is still in another call of MPI
// answers one that is there already: that one goes on to wait for all outside of MPI, where it
// cannot answer in turn. A pause outside of MPI lets all leave the barriers before.
void let_all_leave() {
  if (!is_open_mpi()) usleep(20'000);
}

}  // namespace

void deactivate() {
  const bool compresses = g_mode.load() != kInert;
  if (!compresses && job().self == MPI_COMM_NULL) return;
  if (compresses) {
    end_queues();
    drain_orphans(true);
    end_pieces();
  }
  end_trace();
  const std::string report = rank_report();
  if (!job().rendezvous.empty()) {
    kept_reports() = {report};
  } else if (!job().report_file.empty()) {
    kept_reports() = gather_reports(report);
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  g_mode.store(kInert, std::memory_order_release);
  PMPI_Comm_free(&job().self);
  if (compresses && job().size > 1) let_all_leave();
}

void leave_reports() {
  const std::vector<std::string> reports = std::move(kept_reports());
  if (reports.empty()) return;
  if (job().rendezvous.empty()) {
    write_report(job().report_file, reports);
  } else {
    leave_report(reports[0]);
  }
}

}  // namespace wirepress
