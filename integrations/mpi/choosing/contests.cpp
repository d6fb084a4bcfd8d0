// SPDX-License-Identifier: Apache-2.0
// Which algorithm runs a collective, MPI's own or ours: the one that was faster.
//
// Every member must come to the same answer, or the call never ends. So what is remembered is kept
// by values that are equal on all of them (communicator, call, size class, for reductions the
// element type), counted by calls, which all members make in the same order, and decided by
// numbers that an allreduce made equal. Trials are timed from a barrier, so that a late member is
// not charged to either side; in between nothing is exchanged and nothing is waited for.
//
// A trial is pairs of calls, one each way, whose first alternates. Each pair has one vote, however
// slow a call was: a disturbed call decides nothing. Two votes decide where both are plain, three
// where they agree; else it takes more, until few are against or there are enough.
#include "choosing/contests.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "choosing/median.hpp"
#include "collectives/shadow.hpp"
#include "job/comms.hpp"
#include "job/job.hpp"
#include "recording/across.hpp"
#include "recording/counts.hpp"
#include "recording/json.hpp"

namespace wirepress {

// What was found out about calls that are alike, for the report.
struct ContestResult {
  Call call = kBcast;
  wpr_dtype dtype = WPR_BYTES;
  int size_class = 0;  // of the data, as the logarithm
  int ranks = 0;
  bool own_wins = false;
  uint64_t decisions = 0, own_calls = 0, plain_calls = 0;
  double plain_seconds = 0, own_seconds = 0;  // of one call, at the last trial
};

struct Contest {
  uint32_t key;
  ContestResult result;
  bool second = false;             // the next call of a trial is the second of its pair
  double mine[3] = {};             // seconds here: MPI's way, ours, and of ours for samples
  std::vector<double> plain, own;  // of the pairs of this trial; equal on all members
  int left = 0;                    // calls until the next trial
  int gap = 0;

  void forget_pairs() {
    plain.clear();
    own.clear();
  }
};

namespace {

constexpr int kLeastPairs = 3, kMostPairs = 9;  // of a trial; an odd number

constexpr double kClearlyFaster = 0.95;  // ours of MPI's, to take a call over ...
constexpr double kStillFaster = 0.99;    // ... and to keep it
constexpr double kClearlySlower = 1.05;  // the same where the user named a codec
constexpr double kPlain = 1.5;           // faster or slower, for two votes to be enough
constexpr int kShortest = 16, kLongest = 1024;
constexpr double kLoss = 0.01;  // of all time, that trials may cost

struct Results {
  std::mutex lock;
  std::vector<ContestResult> all;
};
Results& results() { return the<Results>(); }

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

// What this trial's votes say: 1 ours, 0 MPI's, -1 more are needed.
int verdict(const Contest& contest) {
  const ContestResult& result = contest.result;
  const bool first = result.decisions == 0;
  const double needed = job().codec != "auto"       ? kClearlySlower
                        : !first && result.own_wins ? kStillFaster
                                                    : kClearlyFaster;
  const auto n = static_cast<int>(contest.own.size());
  int for_own = 0, plain = 0;
  for (size_t i = 0; i < contest.own.size(); ++i) {
    const double ratio = contest.own[i] / std::max(contest.plain[i], 1e-9);
    for_own += ratio < needed;
    plain += ratio > kPlain || ratio * kPlain < 1;
  }
  const bool wins = 2 * for_own > n;
  const int against = wins ? n - for_own : for_own;
  if (!first && against == 0 && wins == result.own_wins) return wins;  // as it was
  if (n == 2 && against == 0 && plain == 2) return wins;
  if (n >= kLeastPairs && against <= (n - kLeastPairs) / 2) return wins;
  return n == kMostPairs ? wins : -1;
}

// After a pair.
void decide(Contest* contest) {
  const int says = verdict(*contest);
  if (says < 0) return;
  ContestResult& result = contest->result;
  const bool wins = says == 1;
  const double plain = median(contest->plain), own = median(contest->own);
  const double winner = wins ? own : plain, loser = wins ? plain : own;
  const double before = result.own_wins ? result.own_seconds : result.plain_seconds;
  const bool same = result.decisions > 0 && wins == result.own_wins && winner < kPlain * before &&
                    before < kPlain * winner;
  // A trial costs the difference, and a barrier and an allreduce, for which a tenth stands.
  const double loss = std::max(loser / std::max(winner, 1e-9) - 1, 0.0) + 0.1;
  const int least = static_cast<int>(std::min(loss / kLoss, 1.0 * kLongest));
  contest->gap = std::clamp(same ? 2 * contest->gap : least, std::max(kShortest, least), kLongest);
  contest->left = contest->gap;
  contest->forget_pairs();
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
  // MPI's way first, then ours first, and so on.
  const bool ours_first = contest->own.size() % 2 == 1;
  turn.own = turn.trial ? contest->second != ours_first : contest->result.own_wins;
  ++(turn.own ? contest->result.own_calls : contest->result.plain_calls);
  if (turn.trial) {
    PMPI_Barrier(shadow->all);
  } else {
    --contest->left;
  }
  turn.start = turn.trial ? now() : 0;
  turn.sampling_before = shadow->sampling_seconds;
  // While MPI runs the calls nobody looks at their data.
  shadow->look_anew = turn.trial && turn.own && contest->result.decisions > 0;
  return turn;
}

void end_turn(Contest* contest, Shadow* shadow, const Turn& turn) {
  if (!turn.trial) return;
  contest->mine[turn.own] = now() - turn.start;
  if (turn.own) contest->mine[2] = shadow->sampling_seconds - turn.sampling_before;
  contest->second = !contest->second;
  if (contest->second) return;
  count_exchange(*shadow, sizeof contest->mine);
  double most[3];
  if (PMPI_Allreduce(contest->mine, most, 3, MPI_DOUBLE, MPI_MAX, shadow->all) != MPI_SUCCESS) {
    contest->forget_pairs();
    return;
  }
  contest->plain.push_back(most[0]);
  // Members look at samples at the same time, and later calls will not.
  contest->own.push_back(std::max(most[1] - most[2], 0.0));
  decide(contest);
}

std::string contests_json() {
  using Number = unsigned long long;
  std::string json = "[";
  std::lock_guard hold(results().lock);
  for (const ContestResult& r : results().all) {
    append(&json, "%s{\"call\": \"%s\", \"type\": \"%s\", \"bytes_from\": %llu, \"ranks\": %d, ",
           json.size() > 1 ? ", " : "", kCallNames[r.call], wpr_dtype_name(r.dtype),
           Number{1} << r.size_class, r.ranks);
    append(&json, "\"winner\": \"%s\", \"plain_seconds\": %.6f, \"own_seconds\": %.6f, ",
           r.own_wins ? "own" : "plain", r.plain_seconds, r.own_seconds);
    append(&json, "\"trials\": %llu, \"plain_calls\": %llu, \"own_calls\": %llu}",
           Number{r.decisions}, Number{r.plain_calls}, Number{r.own_calls});
  }
  return json + "]";
}

}  // namespace wirepress
