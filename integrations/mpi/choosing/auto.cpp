// SPDX-License-Identifier: Apache-2.0
// Chooses how a message is compressed, if at all: by the time at which it would be there.
//
// Messages that are alike share a site: same caller, call, element type, size class and node they
// go to. At a site each candidate is tried on a sample, one after the other, and never for longer
// than a hundredth of the time that the site's messages took. Ratio and speeds, as this process
// sees them under the present load, together with the link's rate give the finish time of each, and
// of sending raw; what real messages then take corrects them. While nothing changes sites are
// looked at ever more rarely. One recipe given by the user replaces the candidates; then only the
// backing off from what does not shrink remains, message by message: a site may have several
// buffers, of which one shrinks (all calls of a Python program come from one place in mpi4py).
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "job/interposer.hpp"

namespace wirepress {

constinit thread_local const void* t_caller = nullptr;

namespace {

constexpr size_t kDTypes = 18, kSites = 2048, kMostCandidates = 12;
constexpr size_t kLeastSample = 32 << 10, kMostSample = 256 << 10;
constexpr size_t kLeastGlance = 4 << 10, kMostGlance = 64 << 10;
constexpr double kWorth = 0.93;       // of the raw finish time, to leave raw ...
constexpr double kStillWorth = 0.98;  // ... and to stay
constexpr double kHysteresis = 0.95;  // of the others', for the present choice
constexpr double kLeastRatio = 1.05;
constexpr double kBudget = 0.01;       // of the time of a site's messages, for samples
constexpr double kCredit = 0.5;        // of the time of one message, at the beginning
constexpr double kCallSeconds = 4e-6;  // that a frame takes besides its bytes, on both sides
constexpr int kLook = 64, kRarestLook = 1024;

// What is known of a candidate at a site, for a raw byte.
struct Known {
  double ratio = 0, encode = 0, decode = 0;  // 0: not tried yet
  bool skipped = false;                      // tried before: too slow whatever the ratio
};

}  // namespace

struct Site {
  std::atomic<uint64_t> key{0};
  std::atomic<bool> ready{false};
  const void* caller = nullptr;
  Call call = kSend;
  wpr_dtype dtype = WPR_BYTES;
  int size_class = 0, node = kAnyLink;
  const std::vector<int>* list = nullptr;  // candidates

  // Relaxed: a message counted twice or not is no harm.
  std::atomic<uint64_t> messages{0}, raw_size{0}, saved{0}, framed{0};
  std::atomic<int> choice{kUntried};
  std::atomic<int> left{0};  // messages until the next look
  std::atomic<int> gap{0};   // how long the last decision was believed

  std::mutex lock;  // of what follows; whoever finds it taken goes on without
  std::array<Known, kMostCandidates> known{};
  size_t next = 0;  // to be tried
  double spent = 0, took = 0;
  bool overlapped = false;
};

namespace {

// Pages are touched where used.
Site g_sites[kSites];
std::atomic<size_t> g_n_sites{0};
bool g_fixed = false;
double g_fixed_link = 0;

// What a sender codes bytes as, where the program does not say what they are: mostly doubles.
constexpr const char kOfDoubles[] = " of doubles";

// Recipes that may pay for an element type, the cheap ones first. None loses anything.
std::vector<std::string> recipes_for(wpr_dtype dtype) {
  switch (dtype) {
    case WPR_FLOAT32:
    case WPR_FLOAT64:
      return {"zeros",         dtype == WPR_FLOAT32 ? "bx:m=23" : "bx:m=52",
              "lz4:1",         "planes",
              "zstd:1",        "shuffle+lz4:1",
              "shuffle+zstd:1"};
    case WPR_BYTES:  // whatever was packed: floats or integers of 4 bytes, as often doubles
      return {"zeros",  "bx:m=23", "lz4:1",          "shuffle:8+lz4:1", "planes of doubles",
              "planes", "zstd:1",  "shuffle+zstd:1", "shuffle:8+zstd:1"};
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
  std::string recipe, name;
  wpr_dtype view = WPR_BYTES;  // that bytes are coded as
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
int add_candidate(const std::string& name, wpr_dtype dtype, bool lossy) {
  size_t i = 0;
  while (i < candidates().size() && candidates()[i].name != name) ++i;
  if (i == kMaxCandidates) return -1;
  if (i == candidates().size()) {
    const size_t view = name.find(kOfDoubles);
    candidates().push_back(
        {name.substr(0, view), name, view == std::string::npos ? WPR_BYTES : WPR_FLOAT64, lossy});
  }
  candidates()[i].suits |= 1u << dtype;
  return static_cast<int>(i);
}

// Appends the candidate to the list of messages whose values are coded so often.
void offer(size_t n_codings, wpr_dtype dtype, const std::string& name, bool lossy) {
  const int i = add_candidate(name, dtype, lossy);
  if (i < 0) return;
  List& list = lists()[n_codings - 1][dtype];
  list.insert(lossy ? list.begin() : list.end(), i);
}

// Those of `names` that this build has and that lose nothing, in every list of the type.
void offer_lossless(wpr_ctx* ctx, wpr_dtype dtype, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string recipe = name.substr(0, name.find(kOfDoubles));
    int lossless = 0;
    if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) != WPR_OK || !lossless) continue;
    for (size_t n = 1; n <= kMostCodings; ++n) offer(n, dtype, name, false);
  }
}

// `want` bytes, or a little less, from all over the message.
size_t take_sample(const Byte* data, size_t size, size_t element, size_t want, Byte* sample) {
  if (want >= size) {
    std::memcpy(sample, data, size);
    return size;
  }
  constexpr size_t kPieces = 4;
  element = std::max(element, sizeof(double));  // bytes may be of doubles
  const size_t piece = want / kPieces / element * element;
  const size_t step = (size - piece) / (kPieces - 1) / element * element;
  for (size_t i = 0; i < kPieces; ++i) std::memcpy(sample + i * piece, data + i * step, piece);
  return kPieces * piece;
}

// False: it could not be tried.
bool measure(Thread& thread, int candidate, const Type& type, Byte* sample, size_t size,
             Known* known) {
  const size_t room = size + size / 8 + 4096;
  Byte* frame = sample + size;
  Byte* back = frame + room;
  const bool fresh = !thread.ctx[static_cast<size_t>(candidate)];
  wpr_ctx* ctx = context(thread, candidate);
  if (!ctx) return false;
  const Coded as = coded_as(candidate, type, size);
  if (as.count == 0) return false;
  size_t written = 0, expanded;
  const auto n = static_cast<double>(size);
  double encode = HUGE_VAL, decode = HUGE_VAL;
  // A new context first gets its memory. The first time decides for long, so a run that was
  // disturbed, or found nothing in the caches, must not count.
  for (int run = fresh ? 0 : 1; run < 3; ++run) {
    const double start = now();
    if (wpr_compress_array(ctx, sample, as.dtype, WPR_NO_SHAPE, &as.count, frame, room, &written) !=
        WPR_OK) {
      return false;
    }
    const double middle = now();
    if (wpr_decompress(ctx, frame, written, back, size, &expanded) != WPR_OK) return false;
    encode = std::min(encode, (middle - start) / n);
    decode = std::min(decode, (now() - middle) / n);
  }
  known->encode = encode;
  known->decode = decode;
  known->ratio = n / static_cast<double>(written + kCookieSize);
  return true;
}

// Seconds a byte until a message of this size is there.
double finish_time(const Known& known, double link, bool overlapped, double size) {
  const double wire = 1 / (known.ratio * link), codec = known.encode + known.decode;
  return (overlapped ? std::max(wire, codec) : wire + codec) + kCallSeconds / size;
}

// The best of what is known, or why raw is.
int best_of(const Site& site, double link, double size) {
  const int present = site.choice.load(std::memory_order_relaxed);
  double best_time = (present >= 0 ? kStillWorth : kWorth) / link, best_ratio = 1;
  int best = kRaw;
  bool all_tried = true;
  for (size_t i = 0; i < site.list->size() && i < kMostCandidates; ++i) {
    const Known& known = site.known[i];
    all_tried &= known.ratio > 0;
    if (known.ratio == 0) continue;
    best_ratio = std::max(best_ratio, known.ratio);
    const int candidate = (*site.list)[i];
    double time = finish_time(known, link, site.overlapped, size);
    if (candidate == present) time *= kHysteresis;
    if (known.ratio > kLeastRatio && time < best_time) {
      best_time = time;
      best = candidate;
    }
  }
  if (best != kRaw) return best;
  if (best_ratio > kLeastRatio) return kRawFaster;
  return all_tried ? kRaw : kUntried;
}

void decide(Site* site, double link, double size) {
  site->choice.store(best_of(*site, link, size), std::memory_order_relaxed);
}

// Could it win if it shrank the data to nothing, at the speed that it had here before?
bool hopeless(const Site& site, size_t i, double link, double size) {
  Known ideal = site.known[i];
  if (ideal.ratio == 0) return false;
  ideal.ratio = 1e9;
  return finish_time(ideal, link, site.overlapped, size) > 1 / link;
}

// Tries the candidates one after the other, as far as the time allows it. `anew`: whatever was
// spent, because data may be others now.
void look(Site* site, const Byte* data, size_t size, const Type& type, double link, bool anew) {
  Thread& thread = self_thread();
  const auto n_bytes = static_cast<double>(size);
  const double allowed = (anew ? site->spent : kBudget * site->took) + kCredit * n_bytes / link;
  const size_t n = std::min(site->list->size(), kMostCandidates);
  if (site->spent >= allowed || !thread.sample.reserve(4 * kMostSample)) return;
  const double start = now();
  double end = start;
  size_t sampled = 0;
  for (; site->next < n && site->spent + (end - start) < allowed; ++site->next) {
    if (hopeless(*site, site->next, link, n_bytes)) continue;
    if (sampled == 0) {
      const size_t want = std::clamp(size / 8, kLeastSample, kMostSample);
      sampled = take_sample(data, size, type.element, want, thread.sample.data());
    }
    Known* known = &site->known[site->next];
    if (!measure(thread, (*site->list)[site->next], type, thread.sample.data(), sampled, known)) {
      known->ratio = 1;  // it is not for these messages
    }
    end = now();
  }
  site->spent += end - start;
  thread.sampling_seconds += end - start;
  const int before = site->choice.load(std::memory_order_relaxed);
  decide(site, link, n_bytes);
  if (site->next < n) return;  // more with the next message
  site->next = 0;
  const int gap = site->gap.load(std::memory_order_relaxed);
  const int best = site->choice.load(std::memory_order_relaxed);
  const int longer = gap && best == before ? std::min(2 * gap, kRarestLook) : kLook;
  site->gap.store(longer, std::memory_order_relaxed);
  site->left.store(longer, std::memory_order_relaxed);
}

void back_off(Site* site, int choice) {
  const int gap = std::min(kLook, std::max(1, 2 * site->gap.load(std::memory_order_relaxed)));
  site->gap.store(gap, std::memory_order_relaxed);
  site->left.store(gap, std::memory_order_relaxed);
  site->choice.store(choice, std::memory_order_relaxed);
}

// What is faster today is not what was faster yesterday: with a bound that shows in the bits.
bool is_fixed(const Site& site) {
  if (g_fixed || site.list->empty()) return true;
  return job().deterministic && is_lossy((*site.list)[0]);
}

// Whether a 64th of the message shrinks: the price of coding every 64th one in vain.
bool shrinks(int candidate, const Byte* data, size_t size, const Type& type) {
  Thread& thread = self_thread();
  const size_t want = std::clamp(size / 64, kLeastGlance, kMostGlance);
  if (!thread.sample.reserve(4 * kMostSample)) return false;
  wpr_ctx* ctx = context(thread, candidate);
  if (!ctx) return false;
  Byte* sample = thread.sample.data();
  const size_t sampled = take_sample(data, size, type.element, want, sample);
  const Coded as = coded_as(candidate, type, sampled);
  size_t written = 0;
  return wpr_compress_array(ctx, sample, as.dtype, WPR_NO_SHAPE, &as.count, sample + kMostSample,
                            3 * kMostSample, &written) == WPR_OK &&
         kLeastRatio * static_cast<double>(written) < static_cast<double>(sampled);
}

int choose_fixed(Site* site, const Byte* data, size_t size, const Type& type) {
  if (site->list->empty()) return kUntaken;
  const int candidate = (*site->list)[0];
  if (site->left.load(std::memory_order_relaxed) <= 0) return candidate;
  if (shrinks(candidate, data, size, type)) return candidate;
  site->left.fetch_sub(1, std::memory_order_relaxed);
  return site->choice.load(std::memory_order_relaxed);
}

}  // namespace

const char* prepare_codecs(wpr_ctx* ctx) {
  static std::string problem;
  Job& j = job();
  wpr_get_number(ctx, "mpi_link", &g_fixed_link);  // 0: auto, it is measured
  g_fixed = j.codec != "auto";
  // Another life of MPI in this process is not possible: the lists are filled once.
  for (const wpr_dtype dtype :
       {WPR_BYTES, WPR_INT8, WPR_UINT8, WPR_INT16, WPR_UINT16, WPR_INT32, WPR_UINT32, WPR_INT64,
        WPR_UINT64, WPR_FLOAT32, WPR_FLOAT64, WPR_BOOL}) {  // those that types.cpp gives
    offer_lossless(ctx, dtype, g_fixed ? std::vector{j.codec} : recipes_for(dtype));
  }
  j.bound = parse_bound(j.error);
  size_t n_bounded = 0;
  for (const wpr_dtype dtype : {WPR_FLOAT32, WPR_FLOAT64}) {
    for (const std::string& recipe : bounded_recipes(j.codec, j.bound, dtype, 1, 2)) {
      int lossless;
      ++n_bounded;
      if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) == WPR_OK) continue;
      --n_bounded;
      if (!g_fixed) continue;  // a codec that this build does not have
      problem = "mpi_error: \"" + j.error + "\": " + wpr_error(ctx);
      return problem.c_str();
    }
  }
  if (j.bound.kind == Bound::kNone ? !candidates().empty() : n_bounded > 0) return nullptr;
  problem = "mpi_codec: " + j.codec + " is lossy, MPI messages must not change";
  const bool relative = j.bound.kind == Bound::kRelative;
  if (!candidates().empty()) {
    problem = "mpi_error: \"" + j.error + "\": mpi_codec " + j.codec + " loses nothing, take " +
              (relative ? "auto, bx or fre" : "auto, zfp or sz3") + ", or no mpi_error";
  } else if (relative) {
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
  if (j.bound.kind == Bound::kNone) return;
  const int n_nodes = j.node.empty() ? j.size : 1 + *std::max_element(j.node.begin(), j.node.end());
  wpr_ctx* ctx = nullptr;
  wpr_create(&ctx);
  if (!ctx) return;
  for (const wpr_dtype dtype : {WPR_FLOAT32, WPR_FLOAT64}) {
    for (size_t n = 1; n <= kMostCodings; ++n) {
      for (const std::string& recipe :
           bounded_recipes(j.codec, j.bound, dtype, static_cast<int>(n), n_nodes)) {
        int lossless = 0;
        if (wpr_lossless(ctx, recipe.c_str(), dtype, &lossless) != WPR_OK) continue;
        // With all bits a recipe is one of those that lose nothing, which auto has anyway.
        if (!lossless || g_fixed) offer(n, dtype, recipe, !lossless);
      }
    }
  }
  wpr_free(ctx);
}

bool is_lossy(int candidate) { return candidates()[static_cast<size_t>(candidate)].lossy; }

void start_choosing() { prepare_links(g_fixed_link); }

const List& candidates_for(Call call, wpr_dtype dtype) { return lists()[codings(call) - 1][dtype]; }
size_t n_candidates() { return candidates().size(); }

const char* candidate_recipe(size_t i) { return candidates()[i].recipe.c_str(); }
const char* candidate_name(int candidate) {
  return candidates()[static_cast<size_t>(candidate)].name.c_str();
}
Coded coded_as(int candidate, const Type& type, size_t size) {
  Coded as{type.dtype, type.element};
  const wpr_dtype view = candidates()[static_cast<size_t>(candidate)].view;
  if (type.dtype == WPR_BYTES && view != WPR_BYTES) as = {view, sizeof(double)};
  as.count = size % as.count == 0 ? size / as.count : 0;
  return as;
}
bool suits(int candidate, wpr_dtype dtype) {
  return (candidates()[static_cast<size_t>(candidate)].suits >> dtype & 1) != 0;
}

Bypass bypass_of(int choice) {
  switch (choice) {
    case kRawFaster:
      return kNotFaster;
    case kUnknownLink:
      return kLearning;
    case kUntaken:
      return kNoCodec;
    case kUntried:
      return kNotTried;
    default:
      return kIncompressible;
  }
}

Site* find_site(Call call, wpr_dtype dtype, size_t size, int node) {
  const size_t log = size ? 63 - static_cast<size_t>(__builtin_clzll(size)) : 0;
  // Where there are too many sites new ones share, whoever calls for whatever node.
  const bool full = g_n_sites.load(std::memory_order_relaxed) > kSites / 4 * 3;
  const void* caller = full ? nullptr : t_caller;
  if (full && node >= 0) node = kAnyLink;
  uint64_t key = reinterpret_cast<uintptr_t>(caller) * 0x9E3779B97F4A7C15u;
  key ^= (static_cast<uint64_t>(call) << 40) + (static_cast<uint64_t>(dtype) << 32) + (log << 24) +
         static_cast<uint64_t>(node + 3);
  key = (key ^ (key >> 29)) * 0xBF58476D1CE4E5B9u | 1;
  for (size_t i = key >> 50, steps = 0; steps < kSites; ++i, ++steps) {
    Site* site = &g_sites[i % kSites];
    uint64_t found = site->key.load(std::memory_order_relaxed);
    if (found == 0 && site->key.compare_exchange_strong(found, key, std::memory_order_relaxed)) {
      g_n_sites.fetch_add(1, std::memory_order_relaxed);
      site->caller = caller;
      site->call = call;
      site->dtype = dtype;
      site->size_class = static_cast<int>(log);
      site->node = node;
      site->list = &candidates_for(call, dtype);
      site->ready.store(true, std::memory_order_release);
      return site;
    }
    if (found != key) continue;
    while (!site->ready.load(std::memory_order_acquire)) {  // another thread is at it, briefly
    }
    return site;
  }
  return &g_sites[0];
}

int choose(Site* site, const Byte* data, size_t size, const Type& type, bool overlapped) {
  site->messages.fetch_add(1, std::memory_order_relaxed);
  site->raw_size.fetch_add(size, std::memory_order_relaxed);
  if (is_fixed(*site)) return choose_fixed(site, data, size, type);
  const double link = link_rate(site->node);
  if (link == 0) return kUnknownLink;
  const int left = site->left.load(std::memory_order_relaxed);
  if (left > 0) site->left.store(left - 1, std::memory_order_relaxed);
  // Threads that meet here do not wait for each other.
  if (const std::unique_lock hold(site->lock, std::try_to_lock); hold) {
    site->took += static_cast<double>(size) / link;
    site->overlapped = overlapped;
    const bool anew = std::exchange(self_thread().look_anew, false);
    if (left <= 0 || anew) look(site, data, size, type, link, anew);
  }
  return site->choice.load(std::memory_order_relaxed);
}

void learn_outcome(Site* site, int candidate, size_t size, size_t wire_size, double seconds) {
  if (candidate < 0) return;
  site->saved.fetch_add(wire_size ? size - wire_size : 0, std::memory_order_relaxed);
  site->framed.fetch_add(wire_size ? 1 : 0, std::memory_order_relaxed);
  if (is_fixed(*site)) {
    if (!wire_size) return back_off(site, kRaw);
    return site->gap.store(0, std::memory_order_relaxed);
  }
  const std::unique_lock hold(site->lock, std::try_to_lock);
  if (!hold) return;
  const auto at = std::find(site->list->begin(), site->list->end(), candidate);
  const auto i = static_cast<size_t>(at - site->list->begin());
  if (i >= std::min(site->list->size(), kMostCandidates) || site->known[i].ratio == 0) return;
  Known& known = site->known[i];
  const auto n = static_cast<double>(size);
  const auto learn = [](double* value, double seen) { *value += (seen - *value) / 4; };
  // Expanding suffers from the load as compressing does.
  const double slower = known.encode > 0 ? seconds / n / known.encode : 1;
  learn(&known.decode, known.decode * std::clamp(slower, 0.5, 2.0));
  learn(&known.encode, seconds / n);
  double fraction = 1 / known.ratio;
  learn(&fraction, wire_size ? static_cast<double>(wire_size) / n : 1);
  known.ratio = 1 / fraction;
  const double link = link_rate(site->node);
  if (link > 0) decide(site, link, n);
}

// ---- the report ----

namespace {

std::string demangled(const char* symbol) {
  int failed = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &failed);
  const std::string name = failed || !text ? symbol : text;
  std::free(text);
  return name;
}

// "/path/app+0x1234", and the function if its name is exported.
std::string caller_name(const void* caller, std::string* symbol) {
  Dl_info info{};
  if (!caller || !dladdr(caller, &info) || !info.dli_fname) return "";
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&find_site), &own) && own.dli_fbase == info.dli_fbase) {
    return "Fortran";  // its bindings here call the C ones
  }
  if (info.dli_sname) *symbol = demangled(info.dli_sname);
  std::string name = info.dli_fname;
  append(&name, "+0x%zx",
         static_cast<size_t>(static_cast<const Byte*>(caller) -
                             static_cast<const Byte*>(info.dli_fbase)));
  return name;
}

// Why a site does what it does, with the numbers.
std::string reason_of(const Site& site, int choice, double link) {
  std::string why;
  const double size = static_cast<double>(site.raw_size.load()) /
                      static_cast<double>(std::max<uint64_t>(site.messages.load(), 1));
  if (site.list->empty()) return "mpi_codec does not code this type without loss";
  if (is_fixed(site)) return choice < 0 ? "it does not shrink" : "mpi_codec says so";
  if (link == 0) return "the link could not be measured";
  append(&why, "link %.3g Gb/s: raw %.3g ms", link * 8e-9, 1e3 * size / link);
  for (size_t i = 0; i < site.list->size() && i < kMostCandidates; ++i) {
    const Known& known = site.known[i];
    if (known.encode == 0) continue;
    append(&why, "; %s %.3g ms (ratio %.3g, compresses %.3g GB/s, expands %.3g GB/s)",
           candidate_name((*site.list)[i]),
           1e3 * size * finish_time(known, link, site.overlapped, size), known.ratio,
           1e-9 / known.encode, 1e-9 / known.decode);
  }
  if (choice == kUntried)
    why +=
        "; not all codecs were tried: trying them all would have taken "
        "more than a hundredth of the time of these messages";
  return why;
}

std::string site_json(const Site& site) {
  const int choice = is_fixed(site) && site.left.load() <= 0 && !site.list->empty()
                         ? (*site.list)[0]
                         : site.choice.load();
  const double link = link_rate(site.node);
  std::string symbol, json = "{\"caller\": " + json_string(caller_name(site.caller, &symbol));
  json += ", \"function\": " + json_string(symbol);
  append(&json, ", \"call\": \"%s\", \"type\": \"%s\", \"bytes_from\": %llu, \"node\": %d",
         call_name(site.call), dtype_name(site.dtype), 1ull << site.size_class,
         std::max(site.node, -1));
  const unsigned long long raw = site.raw_size, wire = raw - site.saved, messages = site.messages,
                           framed = site.framed;
  append(&json, ", \"messages\": %llu, \"compressed_messages\": %llu, \"raw_bytes\": %llu",
         messages, framed, raw);
  append(&json, ", \"wire_bytes\": %llu, \"sample_seconds\": %.6f, \"choice\": ", wire, site.spent);
  json += json_string(choice < 0 ? "raw" : candidate_name(choice));
  return json + ", \"why\": " + json_string(reason_of(site, choice, link)) + "}";
}

}  // namespace

std::string sites_json() {
  constexpr size_t kMost = 100;
  std::vector<const Site*> used;
  for (const Site& site : g_sites) {
    if (site.ready.load(std::memory_order_acquire)) used.push_back(&site);
  }
  std::sort(used.begin(), used.end(),
            [](const Site* a, const Site* b) { return a->raw_size.load() > b->raw_size.load(); });
  if (used.size() > kMost) used.resize(kMost);
  std::string json = "[";
  for (const Site* site : used) json += (json.size() > 1 ? ", " : "") + site_json(*site);
  return json + "]";
}

}  // namespace wirepress
