// SPDX-License-Identifier: Apache-2.0
// Chooses how a message is compressed, if at all: by the time at which it would be there.
//
// Messages that are alike share a site: same caller, call, element type, size class and node they
// go to. At a site each candidate is tried on a sample, one after the other, and never for longer
// than a hundredth of the time that the site's messages took. Counted is what trials take
// undisturbed: neither other processes nor memory that a codec needs once put off the next trial.
// Ratio and speeds, as this process sees them under the present load, together with the link's rate
// give the finish time of each, and of sending raw; what real messages then take corrects them.
// While nothing changes sites are looked at ever more rarely. One recipe given by the user replaces
// the candidates; then only the backing off from what does not shrink remains, message by message:
// a site may have several buffers, of which one shrinks (all calls of a Python program come from
// one place in mpi4py).
#include "choosing/sites.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "choosing/candidates.hpp"
#include "choosing/links.hpp"
#include "messages/devices.hpp"
#include "messages/thread.hpp"
#include "recording/json.hpp"

namespace wirepress {

constinit thread_local const void* t_caller = nullptr;

namespace {

constexpr size_t kSites = 2048, kMostCandidates = 12;
constexpr size_t kLeastSample = 32 << 10, kMostSample = 256 << 10;
constexpr size_t kLeastGlance = 4 << 10, kMostGlance = 64 << 10;
constexpr double kWorth = 0.93;       // of the raw finish time, to leave raw ...
constexpr double kStillWorth = 0.98;  // ... and to stay
constexpr double kHysteresis = 0.95;  // of the others', for the present choice
constexpr double kLeastRatio = 1.05;
constexpr double kBudget = 0.01;       // of the time of a site's messages, for samples
constexpr double kCredit = 0.5;        // of the time of one message, at the beginning
constexpr int kRuns = 2;               // of each trial
constexpr double kCallSeconds = 4e-6;  // that a frame takes besides its bytes, on both sides
// Of what is not the slowest, where parts of a message overlap: the core that codes also feeds the
// NIC, and the first and the last part have nothing beside them.
constexpr double kNotOverlapped = 0.25;
constexpr double kSumSeconds = 0.2e-9;  // that a reduction sums and copies a byte, on that core
constexpr int kLook = 64, kRarestLook = 1024;

}  // namespace

// What is known of a candidate at a site, for a raw byte.
struct KnownOfCandidate {
  double ratio = 0, encode = 0, decode = 0;  // 0: not tried yet
  double sampled = 0;                        // the ratio of its last sample
};

struct Site {
  std::atomic<uint64_t> key{0};
  std::atomic<bool> ready{false};
  const void* caller = nullptr;
  Call call = kSend;
  wpr_dtype dtype = WPR_BYTES;
  int size_class = 0, node = kAnyLink;
  bool there = false;
  const std::vector<int>* list = nullptr;  // candidates

  // Relaxed: a message counted twice or not is no harm.
  std::atomic<uint64_t> messages{0}, raw_size{0}, saved{0}, framed{0};
  std::atomic<int> choice{kUntried};
  std::atomic<int> left{0};      // messages until the next look
  std::atomic<int> gap{0};       // how long the last decision was believed
  std::atomic<double> ratio{1};  // that the choice is expected to shrink a message by

  std::mutex lock;  // of what follows; whoever finds it taken goes on without
  std::array<KnownOfCandidate, kMostCandidates> known{};
  size_t next = 0;               // to be tried
  double spent = 0, billed = 0;  // seconds of trying, and those that count
  double took = 0;               // seconds of messages
  Overlap overlap = Overlap::kNone;
};

namespace {

// Pages are touched where used.
Site g_sites[kSites];
std::atomic<size_t> g_n_sites{0};

// `want` bytes, or a little less, from all over the message; 0: its device does not give them.
size_t draw_sample(const Byte* data, size_t size, size_t element, size_t want, Byte* sample) {
  if (want >= size) return copy_bytes(sample, data, size) == MPI_SUCCESS ? size : 0;
  constexpr size_t kDraws = 4;
  element = std::max(element, sizeof(double));  // bytes may be of doubles
  const size_t drawn = want / kDraws / element * element;
  const size_t step = (size - drawn) / (kDraws - 1) / element * element;
  for (size_t i = 0; i < kDraws; ++i) {
    if (copy_bytes(sample + i * drawn, data + i * step, drawn) != MPI_SUCCESS) return 0;
  }
  return kDraws * drawn;
}

// Where a sample is coded from and expanded to: behind its frame on the cores, or on the device
// that has `data`, as far as it has memory.
struct Places {
  const Byte* from;
  Byte* back;
};
Places places_for(Thread& thread, const Site& site, const Byte* data, const Byte* sample,
                  size_t size, Byte* behind) {
  Byte* const there = site.there ? thread.sample_there.get(data, 2 * kMostSample) : nullptr;
  if (!there || copy_bytes(there, sample, size) != MPI_SUCCESS) return {sample, behind};
  return {there, there + kMostSample};
}

// False: it could not be tried.
bool measure(Thread& thread, const Site& site, const Byte* data, int candidate, const Type& type,
             Byte* sample, size_t size, KnownOfCandidate* known) {
  const size_t room = size + size / 8 + 4096;
  Byte* frame = sample + size;
  const Places places = places_for(thread, site, data, sample, size, frame + room);
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
  for (int run = fresh ? -1 : 0; run < kRuns; ++run) {
    const double start = now();
    if (wpr_compress_array(ctx, places.from, as.dtype, WPR_NO_SHAPE, &as.count, frame, room,
                           &written) != WPR_OK) {
      return false;
    }
    const double middle = now();
    if (wpr_decompress(ctx, frame, written, places.back, size, &expanded) != WPR_OK) return false;
    encode = std::min(encode, (middle - start) / n);
    decode = std::min(decode, (now() - middle) / n);
  }
  known->encode = encode;
  known->decode = decode;
  known->ratio = known->sampled = n / static_cast<double>(written + kCookieSize);
  return true;
}

// Seconds a byte until a message of this size is there: from a known candidate, or raw.
double finish_time(const Site& site, const KnownOfCandidate& known, double link, double size) {
  const double wire = 1 / (known.ratio * link), call = known.encode > 0 ? kCallSeconds / size : 0;
  const double codec = known.encode + known.decode;
  if (site.overlap == Overlap::kNone) return wire + codec + call;
  const bool stages = site.overlap == Overlap::kStages;
  const double sums = is_reduction(site.call) ? kSumSeconds : 0, all = wire + codec + sums;
  const double core = stages ? std::max(known.encode, known.decode) : codec + sums;
  const double slowest = std::max(wire, core);
  // Beside one half of the first and of the last part are the calls before and after.
  const double ends = std::min(static_cast<double>(job().chunk) / size, 1.0) / 2;
  return slowest + std::max(kNotOverlapped, ends) * (all - slowest) + call;
}
double raw_time(const Site& site, double link, double size) {
  return finish_time(site, KnownOfCandidate{.ratio = 1}, link, size);
}

// What is known of a choice, which is a candidate of the site, or raw.
KnownOfCandidate known_of(const Site& site, int choice) {
  if (choice < 0) return {.ratio = 1};
  const auto at = std::find(site.list->begin(), site.list->end(), choice) - site.list->begin();
  return site.known[static_cast<size_t>(at)];
}

// As messages are sent now.
double present_time(const Site& site, double link, double size) {
  const int choice = site.choice.load(std::memory_order_relaxed);
  return finish_time(site, known_of(site, choice), link, size);
}

// The best of what is known, or why raw is.
int best_of(const Site& site, double link, double size) {
  const int present = site.choice.load(std::memory_order_relaxed);
  double best_time = (present >= 0 ? kStillWorth : kWorth) * raw_time(site, link, size);
  double best_ratio = 1;
  int best = kRaw;
  bool all_tried = true;
  for (size_t i = 0; i < site.list->size() && i < kMostCandidates; ++i) {
    const KnownOfCandidate& known = site.known[i];
    all_tried &= known.ratio > 0;
    if (known.ratio == 0) continue;
    best_ratio = std::max(best_ratio, known.ratio);
    const int candidate = (*site.list)[i];
    double time = finish_time(site, known, link, size);
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
  const int best = best_of(*site, link, size);
  site->choice.store(best, std::memory_order_relaxed);
  site->ratio.store(known_of(*site, best).ratio, std::memory_order_relaxed);
}

// Could it win if it shrank the data to nothing, at the speed that it had here before?
bool hopeless(const Site& site, size_t i, double link, double size) {
  KnownOfCandidate ideal = site.known[i];
  if (ideal.ratio == 0) return false;
  ideal.ratio = 1e9;
  return finish_time(site, ideal, link, size) > raw_time(site, link, size);
}

// Tries the candidates one after the other, as far as the time allows it; returns the seconds that
// this took. `anew`: whatever was spent, because data may be others now.
double look(Site* site, const Byte* data, size_t size, const Type& type, double link, bool anew) {
  Thread& thread = self_thread();
  const auto n_bytes = static_cast<double>(size);
  const double allowed = (anew ? site->billed : kBudget * site->took) + kCredit * n_bytes / link;
  const size_t n = std::min(site->list->size(), kMostCandidates);
  if (site->billed >= allowed || !thread.sample.reserve(4 * kMostSample)) return 0;
  const double start = now();
  double end = start;
  size_t sampled = 0;
  for (; site->next < n && site->billed < allowed; ++site->next) {
    if (hopeless(*site, site->next, link, n_bytes)) continue;
    if (sampled == 0) {
      const size_t want = std::clamp(size / 8, kLeastSample, kMostSample);
      sampled = draw_sample(data, size, type.element, want, thread.sample.data());
    }
    KnownOfCandidate* known = &site->known[site->next];
    if (sampled == 0 || !measure(thread, *site, data, (*site->list)[site->next], type,
                                 thread.sample.data(), sampled, known)) {
      known->ratio = known->sampled = 1;  // it is not for these messages
      site->billed += now() - end;
    } else {
      site->billed += kRuns * static_cast<double>(sampled) * (known->encode + known->decode);
    }
    end = now();
  }
  const double seconds = end - start;
  site->spent += seconds;
  const int before = site->choice.load(std::memory_order_relaxed);
  decide(site, link, n_bytes);
  if (site->next < n) return seconds;  // more with the next message
  site->next = 0;
  const int gap = site->gap.load(std::memory_order_relaxed);
  const int best = site->choice.load(std::memory_order_relaxed);
  const int longer = gap && best == before ? std::min(2 * gap, kRarestLook) : kLook;
  site->gap.store(longer, std::memory_order_relaxed);
  site->left.store(longer, std::memory_order_relaxed);
  return seconds;
}

void back_off(Site* site, int choice) {
  const int gap = std::min(kLook, std::max(1, 2 * site->gap.load(std::memory_order_relaxed)));
  site->gap.store(gap, std::memory_order_relaxed);
  site->left.store(gap, std::memory_order_relaxed);
  site->choice.store(choice, std::memory_order_relaxed);
}

// What is faster today is not what was faster yesterday: with a bound that shows in the bits.
bool is_fixed(const Site& site) {
  if (has_fixed_recipe() || site.list->empty()) return true;
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
  const size_t sampled = draw_sample(data, size, type.element, want, sample);
  const Coded as = coded_as(candidate, type, sampled);
  size_t written = 0;
  return sampled > 0 &&
         wpr_compress_array(ctx, sample, as.dtype, WPR_NO_SHAPE, &as.count, sample + kMostSample,
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

// What a real message differs in from the samples, the load and how much of it shrinks, it differs
// in for all candidates that shrank their sample. If only the one that was used were corrected,
// each would lose to one that was not used yet. A ratio below 1 is what is left of it until
// messages shrink again, and then it rises with them.
void shift_others(Site* site, size_t used, const KnownOfCandidate& before) {
  const KnownOfCandidate& now = site->known[used];
  const double slower = before.encode > 0 ? now.encode / before.encode : 1;
  const double longer = before.ratio / now.ratio;
  for (size_t i = 0; i < std::min(site->list->size(), kMostCandidates); ++i) {
    KnownOfCandidate& other = site->known[i];
    if (i == used || other.sampled <= kLeastRatio) continue;
    other.encode *= slower;
    other.decode *= slower;
    other.ratio /= longer;
  }
}

}  // namespace

Bypass bypass_of(int choice) {
  static constexpr Bypass kWhy[] = {kIncompressible, kNotFaster, kNoCodec, kLearning, kNotTried};
  return kWhy[kRaw - choice];
}

Site* find_site(Call call, wpr_dtype dtype, size_t size, int node, bool there) {
  const size_t log = size ? 63 - static_cast<size_t>(__builtin_clzll(size)) : 0;
  // Where there are too many sites new ones share, whoever calls for whatever node.
  const bool full = g_n_sites.load(std::memory_order_relaxed) > kSites / 4 * 3;
  const void* caller = full ? nullptr : t_caller;
  if (full && node >= 0) node = kAnyLink;
  uint64_t key = reinterpret_cast<uintptr_t>(caller) * 0x9E3779B97F4A7C15u;
  key ^= (static_cast<uint64_t>(there) << 48) + (static_cast<uint64_t>(call) << 40) +
         (static_cast<uint64_t>(dtype) << 32) + (log << 24) + static_cast<uint64_t>(node + 3);
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
      site->there = there;
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

Choice choose(Site* site, const Byte* data, size_t size, const Type& type, Overlap overlap,
              bool anew) {
  site->messages.fetch_add(1, std::memory_order_relaxed);
  site->raw_size.fetch_add(size, std::memory_order_relaxed);
  if (is_fixed(*site)) {
    return {choose_fixed(site, data, size, type), site->ratio.load(std::memory_order_relaxed)};
  }
  const double link = link_rate(site->node);
  if (link == 0) return {kUnknownLink};
  Choice choice;
  const int left = site->left.load(std::memory_order_relaxed);
  if (left > 0) site->left.store(left - 1, std::memory_order_relaxed);
  // Threads that meet here do not wait for each other.
  if (const std::unique_lock hold(site->lock, std::try_to_lock); hold) {
    const auto n = static_cast<double>(size);
    site->overlap = overlap;
    site->took += n * present_time(*site, link, n);
    if (left <= 0 || anew) choice.sampling_seconds = look(site, data, size, type, link, anew);
  }
  choice.candidate = site->choice.load(std::memory_order_relaxed);
  choice.ratio = site->ratio.load(std::memory_order_relaxed);
  return choice;
}

void learn_outcome(Site* site, int candidate, size_t size, size_t wire_size, double seconds) {
  if (candidate < 0) return;
  site->saved.fetch_add(wire_size ? size - wire_size : 0, std::memory_order_relaxed);
  site->framed.fetch_add(wire_size ? 1 : 0, std::memory_order_relaxed);
  if (is_fixed(*site)) {
    const auto n = static_cast<double>(size);
    site->ratio.store(wire_size ? n / static_cast<double>(wire_size) : 1,
                      std::memory_order_relaxed);
    if (!wire_size) return back_off(site, kRaw);
    return site->gap.store(0, std::memory_order_relaxed);
  }
  const std::unique_lock hold(site->lock, std::try_to_lock);
  if (!hold) return;
  const auto at = std::find(site->list->begin(), site->list->end(), candidate);
  const auto i = static_cast<size_t>(at - site->list->begin());
  if (i >= std::min(site->list->size(), kMostCandidates) || site->known[i].ratio == 0) return;
  KnownOfCandidate& known = site->known[i];
  const KnownOfCandidate before = known;
  const auto n = static_cast<double>(size);
  const auto learn = [](double* value, double seen) { *value += (seen - *value) / 4; };
  if (seconds > 0) {
    // Expanding suffers from the load as compressing does.
    const double slower = known.encode > 0 ? seconds / n / known.encode : 1;
    learn(&known.decode, known.decode * std::clamp(slower, 0.5, 2.0));
    learn(&known.encode, seconds / n);
  }
  double fraction = 1 / known.ratio;
  learn(&fraction, wire_size ? static_cast<double>(wire_size) / n : 1);
  known.ratio = 1 / fraction;
  shift_others(site, i, before);
  const double link = link_rate(site->node);
  if (link > 0) decide(site, link, n);
}

// ---- the report ----

namespace {

std::string demangled(const char* symbol) {
  int failed = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &failed);
  std::string name = failed || !text ? symbol : text;
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
  append(&why, "link %.3g Gb/s: raw %.3g ms", link * 8e-9, 1e3 * size * raw_time(site, link, size));
  for (size_t i = 0; i < site.list->size() && i < kMostCandidates; ++i) {
    const KnownOfCandidate& known = site.known[i];
    if (known.encode == 0) continue;
    append(&why, "; %s %.3g ms (ratio %.3g, compresses %.3g GB/s, expands %.3g GB/s)",
           candidate_name((*site.list)[i]), 1e3 * size * finish_time(site, known, link, size),
           known.ratio, 1e-9 / known.encode, 1e-9 / known.decode);
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
         kCallNames[site.call], wpr_dtype_name(site.dtype), 1ull << site.size_class,
         std::max(site.node, -1));
  const unsigned long long raw = site.raw_size, wire = raw - site.saved, messages = site.messages,
                           framed = site.framed;
  if (site.there) json += ", \"memory\": \"device\"";
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
