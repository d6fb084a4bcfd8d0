// SPDX-License-Identifier: Apache-2.0
// How ranks find out that all of them have the library, agree on the cookie, learn the nodes, and
// leave their reports (protocol: spec/report.md). Ranks use no MPI call to agree unless the user
// asserts that every rank has the library: a rank without it could never take part.
#include "job/handshake.hpp"

#include <mpi.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "choosing/candidates.hpp"
#include "choosing/links.hpp"
#include "collectives/queues.hpp"
#include "job/comms.hpp"
#include "job/identity.hpp"
#include "job/job.hpp"
#include "job/library.hpp"
#include "job/options.hpp"
#include "job/rendezvous.hpp"
#include "messages/pieces.hpp"
#include "messages/requests.hpp"
#include "messages/types.hpp"
#include "recording/network.hpp"
#include "recording/report.hpp"
#include "recording/trace_file.hpp"

namespace wirepress {

std::atomic<int> g_mode{kInert};

namespace {

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

// The environment of the first rank stands for that of all; the command checks its own.
void say_warning() {
  const char* const warning = wpr_take_warning();
  if (*warning) std::fprintf(stderr, "wirepress: %s\n", warning);
}

// Why the cores do a device's jobs, of the first rank; the report has all ranks.
void say_refusals() {
  if (!names_device()) return;
  wpr_engine_info engine;
  for (size_t i = 0; wpr_engine_at(i, &engine); ++i) {
    const std::string why = wpr_engine_refusal(i);
    if (!why.empty())
      std::fprintf(stderr, "wirepress: %s: %s; the cores do its jobs\n", job().engine.c_str(),
                   why.c_str());
  }
}

}  // namespace

void activate() {
  if (g_mode.load() != kInert || has_parent()) return;
  Job& j = job();
  std::string refuse = read_options();
  PMPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
  if (j.rank == 0) say_warning();
  if (!has_rendezvous() && !j.trust) return;
  PMPI_Comm_size(MPI_COMM_WORLD, &j.size);
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  j.world_multiple = level == MPI_THREAD_MULTIPLE;
  if (j.world_multiple) j.multiple = true;
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  j.host = host;
  // The user asked for it: without the device the job is not worth its time.
  if (j.must_end) end_job(refuse);
  if (j.rank == 0) say_refusals();
  if (refuse.empty()) refuse = unfit_library();
  if (refuse.empty()) refuse = unseen_calls();
  Verdict verdict = has_rendezvous() ? ask_rendezvous(refuse) : ask_world(refuse);
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
  prepare_links();
  prepare_pieces();
  prepare_queues();
  g_mode.store(kOn, std::memory_order_release);
  update_quick_epoch();
}

namespace {

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
  update_quick_epoch();
  PMPI_Comm_free(&job().self);
  if (compresses && job().size > 1) let_all_leave();
}

void leave_reports() {
  const std::vector<std::string> reports = std::move(kept_reports());
  if (reports.empty()) return;
  if (job().rendezvous.empty()) {
    write_report(job().report_file, reports);
  } else {
    send_report(reports[0]);
  }
}

}  // namespace wirepress
