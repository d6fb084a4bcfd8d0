// SPDX-License-Identifier: Apache-2.0
// How fast the links to other nodes are, from calls that were waited for anyway.
//
// Bytes that moved are set against the time that this process was blocked for them, summed over
// windows of several calls: one send alone only fills a socket's buffer, and the time it saved
// shows in the receive after it. What goes in both directions at once (Sendrecv, Waitall) counts
// the larger one; what does not, both. Where a peer was late the link looks slow, so that of the
// last windows nearly the fastest counts. Time spent in codecs on the other side is in it too:
// windows with compressed messages can only raise an estimate, and only while there are few raw
// ones.
#include <algorithm>
#include <cmath>
#include <memory>

#include "interposer.hpp"

namespace wirepress {
namespace {

constexpr size_t kClasses = 4;  // of message sizes: latency and buffers weigh differently
constexpr size_t kSamples = 7, kSure = 3;
constexpr size_t kLeastMessage = 32 << 10;  // below it is latency
constexpr size_t kWindow = 1 << 20, kLargeWindow = 16 << 20;
constexpr int kLeastCalls = 4;
constexpr double kLeastShare = 0.7;
constexpr double kDefaultLink = 125e6;  // for collectives, until it is measured: 1 Gbit/s
// Of what a collective of MPI's own moves in a second: an Allreduce of 4 nodes, and a Bcast by
// scatter and gather, send 1.5 times its size.
constexpr double kOfPlain = 1.5;

size_t class_of(size_t size) {
  return size < (256 << 10) ? 0 : size < (1 << 20) ? 1 : size < (8 << 20) ? 2 : 3;
}

// One class of messages to one node.
class Estimate {
 public:
  double rate() const { return rate_.load(std::memory_order_relaxed); }
  // Whether raw windows are among the samples.
  bool of_raw() const { return n_raw_.load(std::memory_order_relaxed) > 0; }

  void add(double bytes, double seconds, int calls, bool framed) {
    std::lock_guard hold(lock_);
    bytes_ += bytes;
    seconds_ += seconds;
    calls_ += calls;
    framed_ |= framed;
    if (bytes_ < kLargeWindow && (bytes_ < kWindow || calls_ < kLeastCalls)) return;
    const double sample = bytes_ / std::max(seconds_, 1e-9);
    const bool use = !framed_ || (n_raw_ < kSure && sample > rate());
    if (!framed_) ++n_raw_;
    bytes_ = seconds_ = 0;
    calls_ = 0;
    framed_ = false;
    if (use) take(sample);
  }

 private:
  void take(double sample) {
    sample_[n_++ % kSamples] = sample;
    const size_t have = std::min(n_, kSamples);
    double sorted[kSamples];
    std::copy_n(sample_, have, sorted);
    std::sort(sorted, sorted + have);
    rate_.store(sorted[have < 3 ? have / 2 : have - 2], std::memory_order_relaxed);
  }

  std::mutex lock_;
  std::atomic<double> rate_{0};
  std::atomic<size_t> n_raw_{0};
  double bytes_ = 0, seconds_ = 0, sample_[kSamples] = {};
  int calls_ = 0;
  bool framed_ = false;
  size_t n_ = 0;
};

struct Link {
  Estimate estimate[kClasses];

  // Of the class nearest to this size that is known; null: none is.
  const Estimate* find(size_t size) const {
    const auto at = static_cast<int>(class_of(size));
    for (int distance = 0; distance < static_cast<int>(kClasses); ++distance) {
      for (const int i : {at + distance, at - distance}) {
        if (i < 0 || i >= static_cast<int>(kClasses)) continue;
        if (estimate[i].rate() > 0) return &estimate[i];
      }
    }
    return nullptr;
  }
};

double g_fixed_rate = 0;
std::atomic<double> g_least_collective{0};
// To all nodes together, of collectives, and to each node. Made once, when the job starts.
std::unique_ptr<Link[]>& links() {
  static auto* all = new std::unique_ptr<Link[]>;
  return *all;
}
int g_n_nodes = 0;

Link* link_of(int node) {
  if (!links()) return nullptr;
  if (node == kCollectiveLink) return &links()[1];
  return &links()[node >= 0 && node < g_n_nodes ? static_cast<size_t>(node) + 2 : 0];
}

void learn(int node, size_t bytes, double seconds, int calls, bool framed) {
  if (g_fixed_rate > 0 || calls < 1 || bytes / static_cast<size_t>(calls) < kLeastMessage) return;
  const size_t size_class = class_of(bytes / static_cast<size_t>(calls));
  const auto add = [&](Link* link) {
    if (link) link->estimate[size_class].add(static_cast<double>(bytes), seconds, calls, framed);
  };
  add(link_of(node));
  if (node >= 0) add(link_of(kAnyLink));
}

}  // namespace

void prepare_links(double fixed_rate) {
  g_fixed_rate = fixed_rate;
  for (const int node : job().node) g_n_nodes = std::max(g_n_nodes, node + 1);
  links().reset(new Link[static_cast<size_t>(g_n_nodes) + 2]);
}

double link_rate(int node, size_t size) {
  if (g_fixed_rate > 0) return g_fixed_rate;
  for (const int at : {node, kAnyLink}) {
    const Link* link = link_of(at);
    if (const Estimate* known = link ? link->find(size) : nullptr) return known->rate();
  }
  return 0;
}

double collective_rate(size_t size) {
  if (g_fixed_rate > 0) return g_fixed_rate;
  const Link* link = link_of(kCollectiveLink);
  const Estimate* known = link ? link->find(size) : nullptr;
  if (known && known->of_raw()) return known->rate();
  // The root of a Bcast only sends, which says nothing: it goes by what MPI's own took.
  const double least = g_least_collective.load(std::memory_order_relaxed);
  if (known) return std::max(known->rate(), least);
  return least > 0 ? kOfPlain * least : kDefaultLink;
}

void learn_sent(int node, size_t bytes, bool framed, double seconds) {
  learn(node, bytes, seconds, 1, framed);
}

void learn_collective(size_t bytes, double waited, double seconds, int chunks, bool framed) {
  // What was overlapped with sums is not all the link's. Of compressed chunks, which the codecs may
  // have held up, no link is slower than all of the time says; for some of it, it may be.
  const double links = framed ? seconds : std::max(waited, kLeastShare * seconds);
  learn(kCollectiveLink, bytes, links, std::max(chunks, 1), framed);
}

void learn_raw_collective(size_t bytes, double seconds) {
  const size_t chunks = std::max<size_t>(bytes / job().chunk, 1);
  learn(kCollectiveLink, bytes, seconds, static_cast<int>(chunks), false);
}

void learn_plain_collective(size_t bytes, double seconds) {
  if (g_fixed_rate > 0 || bytes < kWindow) return;  // so few may be in buffers
  const double rate = static_cast<double>(bytes) / std::max(seconds, 1e-9);
  double before = g_least_collective.load(std::memory_order_relaxed);
  while (rate > before && !g_least_collective.compare_exchange_weak(before, rate)) {
  }
}

namespace {

void note(Traffic* traffic, int node, bool framed) {
  traffic->node = traffic->calls == 0 || traffic->node == node ? node : kAnyLink;
  traffic->framed |= framed;
  ++traffic->calls;
}

}  // namespace

void note_sent(int node, size_t bytes, bool framed) {
  Traffic& traffic = self_thread().traffic;
  note(&traffic, node, framed);
  traffic.sent += bytes;
}

void note_arrived(const Comm* comm, int source, size_t bytes, bool framed) {
  Traffic& traffic = self_thread().traffic;
  const bool known = source >= 0 && source < comm->size;
  note(&traffic, known ? comm->node[static_cast<size_t>(source)] : kAnyLink, framed);
  traffic.arrived += bytes;
}

void learn_wait(double seconds, bool duplex) {
  Traffic& traffic = self_thread().traffic;
  if (traffic.calls == 0) return;
  const bool both = traffic.sent > 0 && traffic.arrived > 0;
  const size_t bytes =
      duplex ? std::max(traffic.sent, traffic.arrived) : traffic.sent + traffic.arrived;
  const int calls = duplex && both ? (traffic.calls + 1) / 2 : traffic.calls;
  learn(traffic.node, bytes, seconds, calls, traffic.framed);
  traffic = {};
}

}  // namespace wirepress
