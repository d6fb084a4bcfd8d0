// SPDX-License-Identifier: Apache-2.0
// Chooses how a message is compressed, if at all: by the time at which it would be there.
//
// Messages that are alike (same call, element type and size class) share a site. Every 64th message
// of a site, a sample of it is compressed and expanded by each candidate; ratio and speeds together
// with the link's rate give the finish time of each, and of sending raw. What does not pay is
// looked at again after 1, 2, 4 ... 64 messages. One recipe given by the user replaces the
// candidates; then only the backing off remains.
#include <strings.h>

#include <algorithm>
#include <cstdlib>

#include "interposer.hpp"

namespace wirepress {

struct Site {
  std::atomic<const std::vector<int>*> list{nullptr};  // candidates; set by the first who comes
  std::atomic<int> choice{kRaw};
  std::atomic<int> left{0};  // messages until the next look
  std::atomic<int> gap{0};   // how long the last failure was believed
};

namespace {

constexpr int kLook = 64;
constexpr size_t kSizeClasses = 48, kDTypes = 18;
constexpr size_t kLeastSample = 16 << 10, kMostSample = 256 << 10;
constexpr double kWorth = 0.9;       // of the raw finish time, to leave raw
constexpr double kHysteresis = 0.9;  // of the others', for the present choice

Site g_sites[kCallCount * kDTypes * kSizeClasses];  // pages are touched where used
bool g_fixed = false;

std::atomic<double> g_link{125e6};  // until it is measured: 1 Gbit/s
bool g_link_fixed = false;

// "1Gbps", "10 Gbit/s", "250Mbps" to bytes per second.
bool parse_link(const char* text, double* rate) {
  char* end;
  const double number = std::strtod(text, &end);
  if (end == text || !(number > 0)) return false;
  while (*end == ' ') ++end;
  double unit = 1;
  switch (*end) {
    case 'k':
    case 'K':
      unit = 1e3;
      break;
    case 'M':
    case 'm':
      unit = 1e6;
      break;
    case 'G':
    case 'g':
      unit = 1e9;
      break;
    case 'T':
    case 't':
      unit = 1e12;
      break;
    default:
      break;
  }
  if (unit > 1) ++end;
  for (const char* name : {"bps", "bit/s", "b/s", "bits/s"}) {
    if (strcasecmp(end, name) == 0) return *rate = number * unit / 8, true;
  }
  return false;
}

// Recipes that may pay for an element type, the cheap ones first. None loses anything.
std::vector<std::string> recipes_for(wpr_dtype dtype) {
  switch (dtype) {
    case WPR_FLOAT32:
    case WPR_FLOAT64:
      return {"zeros",         dtype == WPR_FLOAT32 ? "bx:m=23" : "bx:m=52",
              "lz4:1",         "planes",
              "zstd:1",        "shuffle+lz4:1",
              "shuffle+zstd:1"};
    case WPR_BYTES:  // packed structures, as often as not of floats or integers of 4 bytes
      return {"zeros", "bx:m=23", "lz4:1", "zstd:1", "shuffle+zstd:1"};
    case WPR_INT8:
    case WPR_UINT8:
    case WPR_BOOL:
      return {"zeros", "lz4:1", "zstd:1"};
    default:
      return {"zeros", "lz4:1", "shuffle+lz4:1", "zstd:1", "shuffle+zstd:1"};
  }
}

// How often a value is coded on its way to where it is used: a reduction codes partial sums, and
// once more the result.
constexpr size_t kMostCodings = 2;
size_t codings(Call call) {
  switch (call) {
    case kReduce:
    case kAllreduce:
    case kReduceScatter:
    case kReduceScatterBlock:
      return 2;
    default:
      return 1;
  }
}

struct Candidate {
  std::string recipe;
  bool lossy = false;
  uint32_t suits = 0;  // a bit for each dtype
};
std::vector<Candidate>& candidates() {
  static auto* all = new std::vector<Candidate>;
  return *all;
}
using List = std::vector<int>;
using Lists = std::array<std::array<List, kDTypes>, kMostCodings>;
Lists& lists() {
  static auto* all = new Lists;
  return *all;
}

// Its number; a recipe is listed once. -1: there are too many.
int add_candidate(const std::string& recipe, wpr_dtype dtype, bool lossy) {
  size_t i = 0;
  while (i < candidates().size() && candidates()[i].recipe != recipe) ++i;
  if (i == kMaxCandidates) return -1;
  if (i == candidates().size()) candidates().push_back({recipe, lossy, 0});
  candidates()[i].suits |= 1u << dtype;
  return static_cast<int>(i);
}

// Appends the recipe to the list of messages whose values are coded so often.
void offer(size_t n_codings, wpr_dtype dtype, const std::string& recipe, bool lossy) {
  const int i = add_candidate(recipe, dtype, lossy);
  if (i < 0) return;
  List& list = lists()[n_codings - 1][dtype];
  list.insert(lossy ? list.begin() : list.end(), i);
}

// Those of `recipes` that this build has and that lose nothing, in every list of the type.
void offer_lossless(wpr_ctx* ctx, wpr_dtype dtype, const std::vector<std::string>& recipes) {
  for (const std::string& recipe : recipes) {
    int lossless = 0;
    if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) != WPR_OK || !lossless) continue;
    for (size_t n = 1; n <= kMostCodings; ++n) offer(n, dtype, recipe, false);
  }
}

struct Speed {
  double ratio = 1, seconds = 0;  // per raw byte: compressing and expanding
};

// Pieces from all over the message.
size_t take_sample(const Byte* data, size_t size, size_t element, Byte* sample) {
  const size_t want = std::min(size, std::clamp(size / 8, kLeastSample, kMostSample));
  if (want == size) {
    std::memcpy(sample, data, size);
    return size;
  }
  constexpr size_t kPieces = 4;
  const size_t piece = want / kPieces / element * element;
  const size_t step = (size - piece) / (kPieces - 1) / element * element;
  for (size_t i = 0; i < kPieces; ++i) std::memcpy(sample + i * piece, data + i * step, piece);
  return kPieces * piece;
}

Speed measure(Thread& thread, int candidate, const Type& type, Byte* sample, size_t size) {
  Speed speed;
  const size_t room = size + size / 8 + 4096;
  Byte* frame = sample + size;
  Byte* back = frame + room;
  const bool fresh = !thread.ctx[static_cast<size_t>(candidate)];
  wpr_ctx* ctx = context(thread, candidate);
  if (!ctx) return speed;
  const uint64_t shape = size / type.element;
  size_t written = 0, expanded;
  double start = 0;
  for (int run = fresh ? 0 : 1; run < 2; ++run) {  // a new context first gets its memory
    start = now();
    if (wpr_compress_array(ctx, sample, type.dtype, WPR_NO_SHAPE, &shape, frame, room, &written) !=
        WPR_OK) {
      return speed;
    }
  }
  if (wpr_decompress(ctx, frame, written, back, size, &expanded) != WPR_OK) return speed;
  const auto n = static_cast<double>(size);
  speed.seconds = (now() - start) / n;
  speed.ratio = n / static_cast<double>(written + kCookieSize);
  return speed;
}

double finish_time(const Speed& speed, double link, bool overlapped) {
  const double wire = 1 / (speed.ratio * link);
  return overlapped ? std::max(wire, speed.seconds) : wire + speed.seconds;
}

int look(const List& list, const Byte* data, size_t size, const Type& type, bool overlapped,
         int present) {
  Thread& thread = self_thread();
  if (!thread.sample.reserve(4 * kMostSample)) return kRaw;
  const size_t n = take_sample(data, size, type.element, thread.sample.data());
  const double link = link_rate();
  double best_time = kWorth / link, best_ratio = 1;
  int best = kRaw;
  for (const int i : list) {
    const Speed speed = measure(thread, i, type, thread.sample.data(), n);
    best_ratio = std::max(best_ratio, speed.ratio);
    double time = finish_time(speed, link, overlapped);
    if (i == present) time *= kHysteresis;
    if (speed.ratio > 1.05 && time < best_time) {
      best_time = time;
      best = i;
    }
  }
  return best != kRaw ? best : best_ratio > 1.05 ? kRawFaster : kRaw;
}

void back_off(Site* site, int choice) {
  const int gap = std::min(kLook, std::max(1, 2 * site->gap.load(std::memory_order_relaxed)));
  site->gap.store(gap, std::memory_order_relaxed);
  site->left.store(gap, std::memory_order_relaxed);
  site->choice.store(choice, std::memory_order_relaxed);
}

}  // namespace

const char* prepare_codecs(wpr_ctx* ctx) {
  static std::string problem;
  Job& j = job();
  double rate;
  g_link_fixed = j.link != "auto";
  if (g_link_fixed && !parse_link(j.link.c_str(), &rate)) {
    problem = "mpi_link: \"" + j.link + "\" is not a rate such as 1Gbps";
    return problem.c_str();
  }
  if (g_link_fixed) g_link.store(rate);
  g_fixed = j.codec != "auto";
  // Another life of MPI in this process is not possible: the lists are filled once.
  for (const wpr_dtype dtype :
       {WPR_BYTES, WPR_INT8, WPR_UINT8, WPR_INT16, WPR_UINT16, WPR_INT32, WPR_UINT32, WPR_INT64,
        WPR_UINT64, WPR_FLOAT32, WPR_FLOAT64, WPR_BOOL}) {  // those that types.cpp gives
    offer_lossless(ctx, dtype, g_fixed ? std::vector{j.codec} : recipes_for(dtype));
  }
  if (const char* why = parse_bound(j.error, &j.bound)) {
    problem = "mpi_error: \"" + j.error + "\": " + why;
    return problem.c_str();
  }
  const auto bounded = bounded_recipes(j.codec, j.bound, WPR_FLOAT32, 2, 2);
  for (const std::string& recipe : bounded) {
    int lossless;
    if (wpr_lossless(ctx, recipe.c_str(), WPR_FLOAT32, &lossless) == WPR_OK) continue;
    problem = "mpi_error: \"" + j.error + "\": " + wpr_error(ctx);
    return problem.c_str();
  }
  if (!candidates().empty() || !bounded.empty()) return nullptr;
  problem = "mpi_codec: " + j.codec + " is lossy, MPI messages must not change";
  if (j.bound.kind == Bound::kRelative) {
    problem = "mpi_codec: " + j.codec + ": of codecs that lose something, bx and fre keep a " +
              "relative error, with the m that it takes";
  } else if (j.bound.kind == Bound::kAbsolute) {
    problem = "mpi_codec: " + j.codec + ": of codecs that lose something, zfp and sz3 keep an " +
              "absolute error, with the bound that it takes";
  }
  return problem.c_str();
}

void prepare_bounded() {
  const Job& j = job();
  const int n_nodes = j.node.empty() ? j.size : 1 + *std::max_element(j.node.begin(), j.node.end());
  for (const wpr_dtype dtype : {WPR_FLOAT32, WPR_FLOAT64}) {
    for (size_t n = 1; n <= kMostCodings; ++n) {
      for (const std::string& recipe :
           bounded_recipes(j.codec, j.bound, dtype, static_cast<int>(n), n_nodes)) {
        offer(n, dtype, recipe, true);
      }
    }
  }
}

bool is_lossy(int candidate) { return candidates()[static_cast<size_t>(candidate)].lossy; }

const List& candidates_for(Call call, wpr_dtype dtype) { return lists()[codings(call) - 1][dtype]; }
const char* candidate_recipe(size_t i) { return candidates()[i].recipe.c_str(); }
bool suits(int candidate, wpr_dtype dtype) {
  return (candidates()[static_cast<size_t>(candidate)].suits >> dtype & 1) != 0;
}

Bypass bypass_of(int choice) {
  return choice == kRawFaster ? kNotFaster : choice == kUntaken ? kNoCodec : kIncompressible;
}

Site* find_site(Call call, wpr_dtype dtype, size_t size) {
  const size_t log = size ? 63 - static_cast<size_t>(__builtin_clzll(size)) : 0;
  Site* site =
      &g_sites[(static_cast<size_t>(call) * kDTypes + static_cast<size_t>(dtype)) * kSizeClasses +
               std::min(log, kSizeClasses - 1)];
  site->list.store(&candidates_for(call, dtype), std::memory_order_relaxed);
  return site;
}

int choose(Site* site, const Byte* data, size_t size, const Type& type, bool overlapped) {
  // Threads that meet here at most look twice.
  if (site->left.load(std::memory_order_relaxed) > 0) {
    site->left.fetch_sub(1, std::memory_order_relaxed);
    return site->choice.load(std::memory_order_relaxed);
  }
  const List& list = *site->list.load(std::memory_order_relaxed);
  if (list.empty()) return kUntaken;
  // What is faster today is not what was faster yesterday: with a bound that shows in the bits.
  if (g_fixed || (job().deterministic && is_lossy(list[0]))) return list[0];
  const int best =
      look(list, data, size, type, overlapped, site->choice.load(std::memory_order_relaxed));
  if (best < 0) {
    back_off(site, best);
  } else {
    site->choice.store(best, std::memory_order_relaxed);
    site->gap.store(0, std::memory_order_relaxed);
    site->left.store(kLook - 1, std::memory_order_relaxed);
  }
  return best;
}

void learn_outcome(Site* site, bool framed) {
  if (!framed) {
    back_off(site, kRaw);
  } else if (g_fixed) {
    site->gap.store(0, std::memory_order_relaxed);
  }
}

void learn_link(size_t wire_size, double seconds, double waiting) {
  if (g_link_fixed || wire_size < (256 << 10)) return;
  // Socket buffers swallow the first megabytes at once: only sums over several mean anything.
  constexpr double kEnough = 4 << 20;
  constexpr size_t kSamples = 9;
  static std::mutex* lock = new std::mutex;
  static double bytes = 0, elapsed = 0, waited = 0;
  static double sample[kSamples];
  static size_t n = 0;
  std::lock_guard hold(*lock);
  bytes += static_cast<double>(wire_size);
  elapsed += seconds;
  waited += waiting;
  if (bytes < kEnough) return;
  // Where the link waited for the codec its rate is not seen: it is at least what was used, and
  // the estimate grows until sending raw shows what there really is.
  const double rate = bytes / std::max(waited, 1e-9);
  sample[n++ % kSamples] = std::min(rate, 2 * std::max(g_link.load(), bytes / elapsed));
  bytes = elapsed = waited = 0;
  const size_t have = std::min(n, kSamples);
  if (have < 3) return;
  double sorted[kSamples];
  std::copy_n(sample, have, sorted);
  std::nth_element(sorted, sorted + have / 2, sorted + have);
  g_link.store(sorted[have / 2]);
}

double link_rate() { return g_link.load(std::memory_order_relaxed); }

}  // namespace wirepress
