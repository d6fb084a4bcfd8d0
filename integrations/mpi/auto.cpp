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
std::array<std::string, kMaxCandidates> g_recipes;
size_t g_n_candidates = 0;
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

// The first lossy or unknown codec of a recipe, or "".
std::string unusable(const std::string& recipe) {
  for (size_t begin = 0; begin <= recipe.size();) {
    const size_t end = std::min(recipe.find('+', begin), recipe.size());
    const std::string stage = recipe.substr(begin, end - begin);
    std::string name = stage.substr(0, stage.find(':'));
    wpr_codec_info info;
    bool lossless = false;
    for (size_t i = 0; wpr_codec_at(i, &info); ++i) {
      if (name == info.name) lossless = info.lossless != 0;
    }
    if (!lossless) return name;
    begin = end + 1;
  }
  return "";
}

bool works(wpr_ctx* ctx, const std::string& recipe) {
  const float data[16] = {};
  const uint64_t n = 16;
  Byte frame[512];
  size_t written;
  if (wpr_set(ctx, "recipe", recipe.c_str()) != WPR_OK) return false;
  const wpr_status status =
      wpr_compress_array(ctx, data, WPR_FLOAT32, WPR_NO_SHAPE, &n, frame, sizeof frame, &written);
  return status == WPR_OK || status == WPR_DST_TOO_SMALL;
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

int look(const Byte* data, size_t size, const Type& type, bool overlapped, int present) {
  Thread& thread = self_thread();
  if (!thread.sample.reserve(4 * kMostSample)) return kRaw;
  const size_t n = take_sample(data, size, type.element, thread.sample.data());
  const double link = link_rate();
  double best_time = kWorth / link, best_ratio = 1;
  int best = kRaw;
  for (int i = 0; i < static_cast<int>(g_n_candidates); ++i) {
    if (i == 2 && type.element == 1) continue;  // shuffling bytes changes nothing
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
  if (!g_fixed) {
    for (const char* recipe : {"lz4:1", "zstd:1", "shuffle+zstd:1"}) {
      if (works(ctx, recipe)) g_recipes[g_n_candidates++] = recipe;
    }
    if (g_n_candidates > 0) return nullptr;
    return "this build has neither lz4 nor zstd: choose a codec";
  }
  if (!works(ctx, j.codec)) {
    problem = std::string("mpi_codec: ") + wpr_error(ctx);
    return problem.c_str();
  }
  if (const std::string name = unusable(j.codec); !name.empty()) {
    problem = "mpi_codec: " + name + " is lossy, MPI messages must not change";
    return problem.c_str();
  }
  g_recipes[0] = j.codec;
  g_n_candidates = 1;
  return nullptr;
}

size_t n_candidates() { return g_n_candidates; }
const char* candidate_recipe(size_t i) { return g_recipes[i].c_str(); }

Site* find_site(Call call, wpr_dtype dtype, size_t size) {
  const size_t log = size ? 63 - static_cast<size_t>(__builtin_clzll(size)) : 0;
  return &g_sites[(static_cast<size_t>(call) * kDTypes + static_cast<size_t>(dtype)) *
                      kSizeClasses +
                  std::min(log, kSizeClasses - 1)];
}

int choose(Site* site, const Byte* data, size_t size, const Type& type, bool overlapped) {
  // Threads that meet here at most look twice.
  if (site->left.load(std::memory_order_relaxed) > 0) {
    site->left.fetch_sub(1, std::memory_order_relaxed);
    return site->choice.load(std::memory_order_relaxed);
  }
  if (g_fixed) return 0;
  const int best = look(data, size, type, overlapped, site->choice.load(std::memory_order_relaxed));
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
