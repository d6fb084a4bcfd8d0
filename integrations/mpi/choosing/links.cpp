// SPDX-License-Identifier: Apache-2.0
// How fast the links to other nodes are: measured once, in MPI_Init.
//
// Times of the program's own calls cannot say it: a send ends when a socket's buffer has its bytes,
// and a receive waits for a peer that computes. So the first ranks of pairs of nodes send trains to
// each other, both ways at once. A train is timed from before its receiver asks for it until its
// last byte is there: neither a buffer nor a late peer makes a link look faster. Trains grow until
// the link takes some milliseconds for one, so that what a switch or a shaper lets pass at first
// weighs little. Of both directions and all trains the fastest counts, since a disturbance
// lengthens, and they go on until two agree. A rate close to one that links are sold with is taken
// for that, so that the same job decides the same when it runs again.
#include "choosing/links.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "choosing/median.hpp"
#include "job/job.hpp"
#include "job/library.hpp"
#include "messages/thread.hpp"
#include "recording/network.hpp"

namespace wirepress {
namespace {

constexpr int kProbeTag = 1, kTrainTag = 2;  // no message of the program is on its way yet
constexpr size_t kFirstTrain = 64 << 10, kMostTrain = 1 << 20, kTrainStep = 4;
constexpr double kLongEnough = 1.5e-3;        // seconds of a train
constexpr double kAgree = 1.1;                // of the fastest train, the next one
constexpr int kLeastTrains = 3, kTrains = 8;  // of the last size
constexpr double kPatience = 0.15;            // seconds of all trains
constexpr useconds_t kNap = 200;  // microseconds: ranks that wait leave the cores to those that do
// Payload of TCP over Ethernet, of the bits on the wire (frames of 1514 bytes and what is between).
constexpr double kPayload = 0.95;
constexpr double kClose = 1.2;
constexpr double kUsualGbps[] = {0.01, 0.1, 0.2, 0.25, 0.5, 1,   2,   2.5, 5,  10,
                                 20,   25,  40,  50,   56,  100, 200, 400, 800};

struct Links {
  std::vector<double> share;  // bytes a second that a rank may expect to a node
  double typical = 0;         // the median
  double slowest = 0;         // of the nodes' links, whole
  int n_sharing = 1;          // ranks of the node that has most
};
Links& links() { return the<Links>(); }

// The program would not have sent them.
void count_probe(size_t size) { stats(kExchange).wire_size += size; }

// The nearest of the rates that links have; of others the nearest of steps of a fifth.
double usual(double rate) {
  if (rate <= 0) return 0;
  const double gbps = 8e-9 * rate / kPayload;
  const double* best =
      std::min_element(std::begin(kUsualGbps), std::end(kUsualGbps), [gbps](double a, double b) {
        return std::abs(std::log(a / gbps)) < std::abs(std::log(b / gbps));
      });
  if (std::max(*best / gbps, gbps / *best) < kClose) return *best * kPayload / 8e-9;
  return std::exp2(std::round(4 * std::log2(rate)) / 4);  // a fifth apart
}

// Waits as a guest: where ranks share cores, one that spins inside of MPI keeps the peer from its
// own.
template <size_t n>
void await(MPI_Request (&requests)[n]) {
  for (int done = 0;;) {
    const int error = PMPI_Testall(static_cast<int>(n), requests, &done, MPI_STATUSES_IGNORE);
    if (done || error != MPI_SUCCESS) return;
    if (!is_open_mpi()) sched_yield();  // which yields by itself, where it is told to
  }
}

// The lesser of this rank's number and the peer's: both get the same.
double lesser(int peer, double mine) {
  double theirs = mine;
  MPI_Request both[2];
  PMPI_Irecv(&theirs, 1, MPI_DOUBLE, peer, kProbeTag, MPI_COMM_WORLD, &both[0]);
  PMPI_Isend(&mine, 1, MPI_DOUBLE, peer, kProbeTag, MPI_COMM_WORLD, &both[1]);
  await(both);
  count_probe(sizeof mine);
  return std::min(mine, theirs);
}

// One train each way; seconds until it was there, of the direction that took less.
double train(int peer, size_t size, Byte* out, Byte* in) {
  const int count = static_cast<int>(size);
  MPI_Request arrival[1], sent[1];
  const double start = now();
  PMPI_Irecv(in, count, MPI_BYTE, peer, kTrainTag, MPI_COMM_WORLD, arrival);
  lesser(peer, 0);  // the peer is ready: it may send, and its time runs
  PMPI_Isend(out, count, MPI_BYTE, peer, kTrainTag, MPI_COMM_WORLD, sent);
  await(arrival);
  const double seconds = now() - start;
  await(sent);
  count_probe(size);
  return lesser(peer, seconds);
}

// Bytes a second between this rank and `peer`, which calls it too. 0: one has no memory.
double measure(int peer) {
  Buffer out(kMostTrain), in(kMostTrain);
  if (lesser(peer, out.data() && in.data()) == 0) return 0;
  double spent = 0;
  for (size_t size = kFirstTrain;; size *= kTrainStep) {
    double best = HUGE_VAL, second = HUGE_VAL;
    bool too_short;
    int n = 0;
    do {
      const double seconds = train(peer, size, out.data(), in.data());
      spent += seconds;
      second = seconds < best ? best : std::min(second, seconds);
      best = std::min(best, seconds);
      too_short = best < kLongEnough && size < kMostTrain;
      ++n;
    } while (!too_short && (n < kLeastTrains || second > kAgree * best) && n < kTrains &&
             spent < kPatience);
    if (!too_short) return static_cast<double>(size) / std::max(best, 1e-9);
  }
}

// The first rank of each node, and how many ranks the largest node has.
std::vector<int> leaders(int* most) {
  const std::vector<int>& node = job().node;
  std::vector<int> first, ranks;
  for (size_t rank = 0; rank < node.size(); ++rank) {
    const auto at = static_cast<size_t>(node[rank]);
    if (at >= first.size()) {
      first.resize(at + 1, static_cast<int>(rank));
      ranks.resize(at + 1, 0);
    }
    ++ranks[at];
  }
  *most = ranks.empty() ? 1 : *std::max_element(ranks.begin(), ranks.end());
  return first;
}

// Collective over the world: the rate of each node's link.
std::vector<double> measure_all(const std::vector<int>& first) {
  const size_t n = first.size(), half = n / 2;
  const auto mine = static_cast<size_t>(own_node());
  std::vector<double> rates(n, 0), most(n, 0);
  // Pairs far apart: what links give when all nodes send at once. Of an odd number one is left out.
  if (first[mine] == job().rank && mine < 2 * half) {
    const double ceiling = nic_rate("");
    const double rate = measure(first[mine < half ? mine + half : mine - half]);
    rates[mine] = ceiling > 0 ? std::min(rate, ceiling) : rate;
  }
  MPI_Request request;
  if (PMPI_Iallreduce(rates.data(), most.data(), static_cast<int>(n), MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD, &request) != MPI_SUCCESS) {
    return most;
  }
  for (int done = 0;;) {
    if (PMPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) return most;
    usleep(kNap);
  }
}

}  // namespace

void prepare_links() {
  Links& all = links();
  if (job().fixed_link > 0) return;
  const std::vector<int> first = leaders(&all.n_sharing);
  if (first.size() < 2) return;
  std::vector<double> rates = measure_all(first);
  for (double& rate : rates) rate = usual(rate);
  std::vector<double> known = rates;
  std::erase(known, 0.0);
  const double typical = median(std::move(known));
  for (double& rate : rates) {
    if (rate == 0) rate = typical;
  }
  all.slowest = *std::min_element(rates.begin(), rates.end());
  const double mine = rates[static_cast<size_t>(own_node())];
  for (const double rate : rates) all.share.push_back(std::min(rate, mine) / all.n_sharing);
  all.typical = std::min(typical, mine) / all.n_sharing;
}

double link_rate(int node) {
  const Links& all = links();
  if (job().fixed_link > 0) return job().fixed_link;
  if (node == kLeadersLink) return all.slowest;
  if (node == kCollectiveLink) return all.slowest / all.n_sharing;
  const bool known = node >= 0 && static_cast<size_t>(node) < all.share.size();
  return known ? all.share[static_cast<size_t>(node)] : all.typical;
}

}  // namespace wirepress
