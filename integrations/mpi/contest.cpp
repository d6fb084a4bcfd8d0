// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a collective, MPI's own or ours: the one that was faster.
//
// Every member must come to the same answer, or the call never ends. So what is remembered is kept
// by values that are equal on all of them (communicator, call, size class, for reductions the
// element type), counted by calls, which all members make in the same order, and decided by
// numbers that an allreduce made equal. Trials are timed from a barrier, so that a late member is
// not charged to either side; in between nothing is exchanged and nothing is waited for.
#include <algorithm>
#include <cmath>

#include "across.hpp"

namespace wirepress {

namespace {
constexpr int kMostPairs = 3;  // of a trial
}

struct Contest {
  uint32_t key;
  ContestResult result;
  int step = 0;   // of a trial: 0 MPI's turn, 1 ours
  int pairs = 0;  // of this trial so far
  double seconds[2][kMostPairs] = {};
  int left = 0;  // calls until the next trial
  int gap = 0;
};

namespace {

constexpr double kClearlyFaster = 0.95;  // ours of MPI's, to take a call over ...
constexpr double kStillFaster = 0.99;    // ... and to keep it
// For the first decision: to win or lose by two pairs ...
constexpr double kNoDoubt = 1.5;
constexpr double kPlainly = 3;  // ... or by one, which may have been disturbed, or the first of all
constexpr int kSecondChance = 8;  // ours was slow at its first try: its buffers were new
constexpr int kShortest = 16, kLongest = 1024;
constexpr double kLoss = 0.01;  // of all time, that trials may cost

struct Results {
  std::mutex lock;
  std::vector<ContestResult> all;
};
Results& results() {
  static auto* table = new Results;
  return *table;
}

// The report outlives communicators.
void publish(const ContestResult& result) {
  std::lock_guard hold(results().lock);
  for (ContestResult& old : results().all) {
    if (old.call == result.call && old.dtype == result.dtype && old.ranks == result.ranks &&
        old.size_class == result.size_class) {
      old = result;
      return;
    }
  }
  results().all.push_back(result);
}

// Whether every node, or the root's, gets as many bytes from others as the call names.
bool moves_all(Call call) { return call == kBcast || call == kAllreduce || call == kReduce; }

// Of what one side took in a trial: a first call, or one of two, may have been disturbed; one that
// is slow every other time is as slow as that.
double typical(const double* seconds, int n) {
  const double least = *std::min_element(seconds, seconds + n);
  if (n < kMostPairs) return least;
  const double most = *std::max_element(seconds, seconds + n);
  return seconds[0] + seconds[1] + seconds[2] - least - most;
}

// After a pair; the times are equal on all members.
void decide(Contest* contest, double plain, double own) {
  ContestResult& result = contest->result;
  const double ratio = own / std::max(plain, 1e-9);
  const bool first = result.decisions == 0;
  const bool wins = ratio < (!first && result.own_wins ? kStillFaster : kClearlyFaster);
  const double enough = contest->pairs > 1 ? kNoDoubt : kPlainly;
  const bool clear = ratio > enough || ratio * enough < 1;
  if (contest->pairs < kMostPairs && (first ? !clear : wins != result.own_wins)) return;

  const double winner = wins ? own : plain, loser = wins ? plain : own;
  const double before = result.own_wins ? result.own_seconds : result.plain_seconds;
  const bool same =
      !first && wins == result.own_wins && winner < kNoDoubt * before && before < kNoDoubt * winner;
  // A trial costs the difference, and a barrier and an allreduce, for which a tenth stands.
  const double loss = std::max(loser / std::max(winner, 1e-9) - 1, 0.0) + 0.1;
  const int least = static_cast<int>(std::min(loss / kLoss, 1.0 * kLongest));
  contest->gap = std::clamp(same ? 2 * contest->gap : least, std::max(kShortest, least), kLongest);
  if (first && !wins) contest->gap = kSecondChance;
  contest->left = contest->gap;
  contest->pairs = 0;
  result.own_wins = wins;
  result.plain_seconds = plain;
  result.own_seconds = own;
  ++result.decisions;
  publish(result);
}

}  // namespace

Contest* find_contest(Comm* comm, Call call, wpr_dtype dtype, size_t size) {
  const auto size_class = static_cast<uint32_t>(63 - __builtin_clzll(size | 1));
  const uint32_t key =
      static_cast<uint32_t>(call) << 16 | static_cast<uint32_t>(dtype) << 8 | size_class;
  for (Contest* contest : comm->contests) {
    if (contest->key == key) return contest;
  }
  auto* contest = new Contest;
  contest->key = key;
  contest->result.call = call;
  contest->result.dtype = dtype;
  contest->result.size_class = static_cast<int>(size_class);
  contest->result.ranks = comm->size;
  comm->contests.push_back(contest);
  return contest;
}

void free_contests(Comm* comm) {
  for (Contest* contest : comm->contests) {
    if (contest->result.decisions) publish(contest->result);
    delete contest;
  }
  comm->contests.clear();
}

Turn begin_turn(Contest* contest, Shadow* shadow) {
  Turn turn;
  turn.trial = contest->left == 0;
  turn.own = turn.trial ? contest->step == 1 : contest->result.own_wins;
  ++(turn.own ? contest->result.own_calls : contest->result.plain_calls);
  if (turn.trial) {
    PMPI_Barrier(shadow->all);
  } else {
    --contest->left;
  }
  turn.framed_before = self_thread().framed_collectives;
  turn.start = turn.trial ? now() : 0;
  return turn;
}

void end_turn(Contest* contest, Shadow* shadow, const Turn& turn, size_t size) {
  if (!turn.trial) return;
  const double seconds = now() - turn.start;
  contest->seconds[contest->step][contest->pairs] = seconds;
  contest->step ^= 1;
  if (contest->step == 1) return;
  ++contest->pairs;
  const bool framed = self_thread().framed_collectives != turn.framed_before;
  count_exchange(*shadow, 4 * sizeof(double));
  const double mine[] = {typical(contest->seconds[0], contest->pairs),
                         typical(contest->seconds[1], contest->pairs), seconds, framed ? 1.0 : 0.0};
  double most[4];
  if (PMPI_Allreduce(mine, most, 4, MPI_DOUBLE, MPI_MAX, shadow->all) != MPI_SUCCESS) {
    contest->pairs = 0;
    return;
  }
  const Call call = contest->result.call;
  if (moves_all(call)) learn_plain_collective(size, most[0]);
  if ((call == kBcast || call == kReduce) && most[3] == 0) learn_raw_collective(size, most[2]);
  decide(contest, most[0], most[1]);
}

std::vector<ContestResult> contest_results() {
  std::lock_guard hold(results().lock);
  return results().all;
}

}  // namespace wirepress
