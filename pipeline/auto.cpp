// SPDX-License-Identifier: Apache-2.0
#include "pipeline/auto.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>

#include "base/options.hpp"
#include "pipeline/blocks.hpp"
#include "pipeline/speed.hpp"

namespace wirepress {
namespace {

// A sample is a few windows: enough of them that none of a group's parts is missed, and long enough
// that libraries find what repeats from row to row.
constexpr size_t kWindows = 4, kWindow = 32 << 10, kSample = kWindows * kWindow;
constexpr size_t kLook = 1 << 10;  // of each, for the features: they must cost next to nothing
constexpr size_t kLine = 64, kLines = 256;  // those that are looked at for zeros
constexpr double kTolerance = 2, kMostTolerance = 4;
constexpr double kTrials = 1.0 / 32;  // of what the frame takes, for trials that may well fail
constexpr double kMostGain = 4;       // of a block over windows
constexpr size_t kFrames = 16;        // for which a choice stands: then data are tried anew
constexpr double kClose = 1.15;       // by times, of the best
constexpr double kBetter = 0.99;      // likewise: less than that is not worth a slower recipe

constexpr const char* kTooSlow = "slower than another, however small it were";

// Kept mantissa bits of a whole number, and the bits of its fraction.
int fraction_bits(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 52;
    case DType::kFloat16:
      return 10;
    case DType::kBfloat16:
      return 7;
    default:
      return 23;
  }
}

// n * log2(n), from a table where most counts of a look are.
double n_log_n(uint32_t n) {
  static const std::array<float, 1024> known = [] {
    std::array<float, 1024> table{};
    for (size_t i = 2; i < table.size(); ++i)
      table[i] = static_cast<float>(i) * std::log2(static_cast<float>(i));
    return table;
  }();
  return n < known.size() ? known[n] : n * std::log2(static_cast<double>(n));
}

double entropy(std::span<const uint32_t> counts) {
  uint32_t n = 0;
  double sum = 0;
  for (const uint32_t count : counts) {
    n += count;
    if (count > 1) sum += n_log_n(count);
  }
  return n == 0 ? 0 : std::max(0.0, (n_log_n(n) - sum) / n);
}

bool is_zero(const std::byte* line) {
  uint64_t words[kLine / 8], all = 0;
  std::memcpy(words, line, kLine);
  for (const uint64_t word : words) all |= word;
  return all == 0;
}

// The share of lines that are zeros, of about `most` that lie evenly in the group.
double zero_lines(ConstBytes group, size_t most) {
  const size_t all = group.size() / kLine;
  const size_t step = (all / most) | 1;  // odd, so that it is no row's
  size_t zeros = 0, lines = 0;
  for (size_t i = 0; i < all; i += step, ++lines) zeros += is_zero(&group[i * kLine]) ? 1 : 0;
  return lines ? static_cast<double>(zeros) / static_cast<double>(lines) : 0;
}

// Words of 4 bytes, or elements that are longer: float32 kept as float64 has the same low half
// everywhere, which is no repeat to what looks at elements.
template <typename Word>
double matches(ConstBytes sample) {
  std::array<Word, 4096> seen{};
  size_t found = 0, words = 0;
  for (size_t i = 0; i + sizeof(Word) <= sample.size(); i += sizeof(Word), ++words) {
    Word word;
    std::memcpy(&word, &sample[i], sizeof(Word));
    const auto mixed = static_cast<uint32_t>(word ^ (static_cast<uint64_t>(word) >> 32));
    Word& slot = seen[mixed * 2654435761u >> 20];
    found += slot == word && word != 0 ? 1 : 0;
    slot = word;
  }
  return words ? static_cast<double>(found) / static_cast<double>(words) : 0;
}

double byte_entropy(ConstBytes sample) {
  // Four tables in turn, because equal bytes wait for each other in one: neighbours, and those at
  // the same place in elements.
  std::array<std::array<uint32_t, 256>, 4> parts{};
  size_t i = 0;
  for (; i + 16 <= sample.size(); i += 16)
    for (size_t k = 0; k < 16; ++k)
      ++parts[(k + k / 4) % 4][std::to_integer<size_t>(sample[i + k])];
  for (; i < sample.size(); ++i) ++parts[0][std::to_integer<size_t>(sample[i])];
  for (size_t s = 0; s < 256; ++s) parts[0][s] += parts[1][s] + parts[2][s] + parts[3][s];
  return entropy(parts[0]);
}

template <typename T>
double roughness(ConstBytes sample) {
  constexpr size_t kLanes = 8;  // sums, which do not wait for each other
  std::array<double, kLanes> steps{}, sizes{};
  for (size_t i = 0; i + (kLanes + 1) * sizeof(T) <= sample.size(); i += kLanes * sizeof(T)) {
    std::array<T, kLanes + 1> raw;
    std::memcpy(raw.data(), &sample[i], sizeof(raw));
    for (T& value : raw) value = std::fabs(value) <= std::numeric_limits<T>::max() ? value : 0;
    for (size_t k = 0; k < kLanes; ++k) {
      const double value = raw[k], next = raw[k + 1];
      steps[k] += std::fabs(next - value);
      sizes[k] += std::fabs(value);
    }
  }
  const double all_steps = std::accumulate(steps.begin(), steps.end(), 0.0);
  const double all_sizes = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  return all_sizes > 0 ? std::min(1.0, all_steps / (2 * all_sizes)) : 0;
}

template <typename Word>
double exponent_entropy(ConstBytes sample, int fraction) {
  constexpr int kWord = 8 * sizeof(Word);
  const uint32_t mask = (1u << (kWord - 1 - fraction)) - 1;
  std::array<std::array<uint32_t, 2048>, 2> counts;  // two, as with bytes
  for (auto& part : counts) std::fill_n(part.begin(), mask + 1, 0u);
  for (size_t i = 0; i + 2 * sizeof(Word) <= sample.size(); i += 2 * sizeof(Word)) {
    std::array<Word, 2> words;
    std::memcpy(words.data(), &sample[i], sizeof(words));
    for (size_t k = 0; k < 2; ++k) ++counts[k][words[k] >> fraction & mask];
  }
  for (size_t e = 0; e <= mask; ++e) counts[0][e] += counts[1][e];
  return entropy(std::span(counts[0]).first(mask + 1));
}

double exponent_entropy(ConstBytes sample, DType dtype) {
  const int fraction = fraction_bits(dtype);
  if (dtype == DType::kFloat64) return exponent_entropy<uint64_t>(sample, fraction);
  if (dtype == DType::kFloat32) return exponent_entropy<uint32_t>(sample, fraction);
  return exponent_entropy<uint16_t>(sample, fraction);
}

// The fewest mantissa bits that keep the bound when rounding to nearest.
int bits_for(double rel) { return std::max(1, static_cast<int>(std::ceil(-std::log2(rel))) - 1); }

Status bad_goal(std::string_view text) {
  return fail(Code::kParameter,
              "auto: \"%.*s\" is not known; known: rel=1e-3, abs=1e-6, min-speed=2GB/s, "
              "link=10Gbps, threads=8, goal=time|ratio|speed",
              static_cast<int>(text.size()), text.data());
}

// Whether `engine` asks for a kernel of DEFLATE on the processor that is not the usual one: ISA-L's
// has half the time. Of devices the calibration, which counts processor time, knows too little.
bool has_own_deflate(const char* engine) {
  const std::string_view name = "deflate";
  const Entry* entry = find_codec(name.data(), name.size());
  if (entry == nullptr) return false;
  const Kernel* kernel = choose_kernel(*entry, engine);
  return kernel != nullptr && std::string_view(kernel->engine) == "cpu" &&
         kernel != choose_kernel(*entry, "cpu");
}

// Whether what is not zero in both looks alike; it counts as much as there is of it.
bool same_rest(const Features& a, const Features& b, double tolerance) {
  const double part = 1 - std::min(a.zero_lines, b.zero_lines);
  return (a.zero_lines == 1) == (b.zero_lines == 1) &&
         part * std::fabs(a.byte_entropy - b.byte_entropy) < 0.25 * tolerance &&
         part * std::fabs(a.exponent_entropy - b.exponent_entropy) < 0.25 * tolerance &&
         part * std::fabs(a.roughness - b.roughness) < 0.1 * tolerance &&
         part * std::fabs(a.matches - b.matches) < 0.025 * tolerance;
}

bool same_look(const Features& a, const Features& b, double tolerance) {
  return std::fabs(a.zero_lines - b.zero_lines) < 0.03 && same_rest(a, b, tolerance);
}

bool looks_like_noise(const Features& look) {
  return look.byte_entropy > 7.92 && look.matches < 0.01;
}

// What data take that look like this, if nothing repeats beyond the look. Of what repeats in it a
// match finder leaves next to nothing.
Speed::Point by_look(const Speed& speed, bool matching, const Features& look) {
  const double rest = look.byte_entropy / 8 * (matching ? 1 - look.matches : 1);
  return speed.at(std::lerp(rest, speed.zeros.fraction, look.zero_lines), look);
}

// What each step of a recipe fits in.
size_t bound_of(const Recipe& recipe, size_t size) {
  for (int i = 0; i < recipe.n_steps; ++i)
    size = recipe.step[i].entry->codec->bound(recipe.step[i].args, size);
  return size;
}

// Window w, of `size` bytes, of a group that is larger than all of them.
ConstBytes window(ConstBytes group, size_t w, size_t size = kWindow) {
  return group.subspan((group.size() - size) / (kWindows - 1) / kLine * kLine * w, size);
}

}  // namespace

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBfloat16;
}

Features features_of(ConstBytes group, DType dtype) {
  std::array<std::byte, kWindows * kLook> look;  // lines that are not zero
  size_t n = 0, seen = 0;
  const auto keep = [&](ConstBytes part) {
    for (size_t i = 0; i < part.size() && n + kLine <= look.size(); i += kLine) {
      const size_t size = std::min(kLine, part.size() - i);
      seen += size;
      if (size == kLine && is_zero(&part[i])) continue;
      std::memcpy(&look[n], &part[i], size);
      n += size;
    }
  };
  if (group.size() <= look.size()) {
    keep(group);
  } else {
    const size_t each = group.size() <= kSample ? kLook : kWindow;
    for (size_t w = 0; w < kWindows; ++w) keep(window(group, w, each).first(kLook));
  }
  Features features;
  if (n < seen) features.zero_lines = zero_lines(group, kLines);
  if (n == 0 && features.zero_lines == 1) return features;
  if (group.size() > look.size()) {  // where the look saw gaps, it goes as far as it takes
    const size_t size = std::min(kWindow, group.size() / kWindows);
    for (size_t from = kLook; from < size && n < look.size() / 4; from *= 4)
      for (size_t w = 0; w < kWindows; ++w)
        keep(window(group, w, size).subspan(from, std::min(4 * from, size) - from));
  }
  if (n == 0) return features;
  const ConstBytes rest(look.data(), n);
  features.matches = dtype_size(dtype) == 8 ? matches<uint64_t>(rest) : matches<uint32_t>(rest);
  features.byte_entropy = byte_entropy(rest);
  if (is_float(dtype)) features.exponent_entropy = exponent_entropy(rest, dtype);
  if (dtype == DType::kFloat32) features.roughness = roughness<float>(rest);
  if (dtype == DType::kFloat64) features.roughness = roughness<double>(rest);
  return features;
}

bool is_auto(const char* recipe) {
  const std::string_view text = recipe;
  return text == "auto" || text.starts_with("auto:");
}

Status parse_goal(const char* recipe, double link, Goal* goal) {
  Goal result{.link = link};
  std::string_view rest = recipe;
  if (rest.back() == ',')
    return fail(Code::kParameter, "recipe \"%s\" ends in \"%c\"", recipe, rest.back());
  rest.remove_prefix(std::min(rest.size(), std::string_view("auto:").size()));
  std::string given = ",";
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return bad_goal(part);
    const std::string_view key = part.substr(0, equals);
    const std::string value(part.substr(equals + 1)), name = std::string(key) + ",";
    if (given.find("," + name) != std::string::npos)
      return fail(Code::kParameter, "auto: %.*s is given twice", static_cast<int>(key.size()),
                  key.data());
    given += name;
    bool good = true;
    if (key == "rel" || key == "abs") {
      int& bound = key == "rel" ? result.rel : result.abs;
      good = parse_real(value.data(), value.size(), &bound) && bound != 0;
      if (good && key == "rel" && real_of(bound) > 0.5)
        return fail(Code::kParameter, "auto: rel=%s: a relative error is at most 0.5",
                    value.c_str());
    } else if (key == "min-speed") {
      good = parse_rate(value.c_str(), &result.min_speed);
    } else if (key == "link") {
      good = parse_rate(value.c_str(), &result.link);
    } else if (key == "threads") {
      const auto [stop, error] =
          std::from_chars(value.data(), value.data() + value.size(), result.threads);
      good = error == std::errc() && stop == value.data() + value.size() && result.threads >= 1 &&
             result.threads <= 1024;
    } else if (key == "goal") {
      good = value == "time" || value == "ratio" || value == "speed";
      result.kind = value == "ratio"   ? Goal::Kind::kRatio
                    : value == "speed" ? Goal::Kind::kSpeed
                                       : Goal::Kind::kTime;
    } else {
      good = false;
    }
    if (!good) return bad_goal(part);
  }
  if (result.rel != 0 && result.abs != 0)
    return fail(Code::kParameter, "auto: rel and abs exclude each other");
  if (result.min_speed > 0 && result.kind == Goal::Kind::kTime) result.kind = Goal::Kind::kRatio;
  *goal = result;
  return {};
}

// Candidates that this build lacks, or that do not take the type, are left out.
Status Chooser::add(const std::string& text, bool matching, const Header& header,
                    const char* engine) {
  Candidate candidate;
  const Status status = parse_recipe(text.c_str(), header.dtype, engine, &candidate.recipe);
  if (status.code() == Code::kParameter) return {};
  WPR_TRY(status);
  // What a core that was named does not code it would not read either.
  if (!names_processor(engine) && !check_variant(candidate.recipe, engine).ok()) return {};
  candidate.text = text;
  candidate.matching = matching;
  wants_slabs_ |= wirepress::wants_slabs(candidate.recipe);
  candidates_.push_back(std::move(candidate));
  return {};
}

Status Chooser::begin(const Goal& goal, const Header& header, const char* engine) {
  if (goal != goal_ || header.block_log != block_log_) forget();
  goal_ = goal;
  block_log_ = header.block_log;
  dtype_ = header.dtype;
  age_known();
  for (Candidate& candidate : candidates_) candidate.gain = 1;
  tolerance_ = kTolerance;
  frame_size_ = header.raw_size == kUnknownSize ? 0 : header.raw_size;
  spent_ = 0;
  std::string what = std::string(engine) + "/" + dtype_name(dtype_) + "/" + real_text(goal.rel) +
                     "/" + real_text(goal.abs) + (goal.kind == Goal::Kind::kRatio ? "/ratio" : "");
  if (can_be_slabs(header)) what += "/slabs";
  for (int i = 1; i < header.n_dims; ++i) what.append("/").append(std::to_string(header.shape[i]));
  if (what == begun_) return {};
  forget();
  begun_.clear();
  candidates_.clear();
  wants_slabs_ = false;
  std::vector<std::pair<std::string, bool>> texts = {{"store", false}};
  const std::string width = std::to_string(dtype_size(dtype_));
  if (is_float(dtype_)) {
    // Where bits may go bx keeps fewer, below: smaller and faster, whatever the data are.
    if (goal.rel == 0) texts.push_back({"bx:m=" + std::to_string(fraction_bits(dtype_)), false});
    texts.push_back({"planes", false});
    if (goal.rel != 0) {
      const int m = std::min(bits_for(real_of(goal.rel)), fraction_bits(dtype_));
      texts.insert(texts.end(), {{"bx:m=" + std::to_string(m), false},
                                 {"fre:m=" + std::to_string(m) + ",ways=4", false},
                                 {"sz3:pw=" + real_text(goal.rel) + "+zstd:1", false}});
    }
    if (goal.abs != 0)
      texts.insert(texts.end(), {{"zfp:accuracy=" + real_text(goal.abs), false},
                                 {"sz3:abs=" + real_text(goal.abs) + "+zstd:1", false}});
  }
  texts.insert(texts.end(), {{"zeros", false}, {"lz4", true}, {"zstd:1", true}});
  if (has_own_deflate(engine)) texts.push_back({"deflate:1", true});
  if (width != "1")
    texts.insert(texts.end(),
                 {{"shuffle:" + width + "+lz4", true}, {"shuffle:" + width + "+zstd:1", true}});
  if (goal.kind == Goal::Kind::kRatio) {
    texts.insert(texts.end(), {{"zstd:9", true}, {"deflate:9", true}});
    if (width != "1") texts.push_back({"shuffle:" + width + "+zstd:9", true});
    if (header.n_dims >= 2) texts.push_back({"zfp", false});  // lossless, for smooth fields
  }
  for (const auto& [text, matching] : texts) WPR_TRY(add(text, matching, header, engine));
  Header rows = header;
  rows.slabs = wants_slabs_ && can_be_slabs(header);
  row_step_ = 0;
  if (rows.slabs) {
    rows.block_log = kMinBlockLog;
    row_step_ = rows.slab_size();
  }
  Workbench bench;
  copy_ = copy_speed(&bench);
  hash_ = hash_speed();
  for (Candidate& candidate : candidates_) {
    tell_shape(rows, &candidate.recipe);
    candidate.chain = std::make_shared<Chain>(candidate.recipe, 1);
    candidate.speed = &speed_of(candidate.recipe, candidate.text, &bench);
  }
  // The fastest first: what it reaches rules out the slow ones without a try.
  const auto seconds = [&](const Candidate& candidate) {
    return finds_rows(candidate) ? candidate.speed->rows.encode
                                 : candidate.speed->fastest({}).encode;
  };
  std::stable_sort(candidates_.begin() + 1, candidates_.end(),
                   [&](const auto& a, const auto& b) { return seconds(a) < seconds(b); });
  begun_ = what;
  return {};
}

// Seconds a byte in a frame, given those in caches: what memory adds was measured or, where the
// codec takes longer than memory, overlaps with it but for a third; the checksum comes on top.
Speed::Point Chooser::in_frame(const Candidate& candidate, Speed::Point speed, double fraction,
                               double pace) const {
  const Speed::Point& memory = candidate.speed->memory;
  const double checksum = fraction * hash_;
  speed.encode *= pace;
  speed.decode *= pace;
  if (memory.fraction >= 0) {
    const double share = pace * (1 + fraction) / (1 + memory.fraction);
    return {fraction, speed.encode + share * memory.encode + checksum,
            speed.decode + share * memory.decode + checksum};
  }
  const double copy = copy_ * (1 + fraction) / 2;
  const auto both = [&](double codec) {
    return std::max(codec, copy) + std::min(codec, copy) / 3 + checksum;
  };
  return {fraction, both(speed.encode), both(speed.decode)};
}

Speed::Point Chooser::in_frame(const Candidate& candidate, const Speed::Point& speed,
                               double fraction) const {
  return in_frame(candidate, speed, fraction, pace_of(candidate));
}

// What the machine takes now by what it took when the candidate was calibrated.
double Chooser::pace_of(const Candidate& candidate) const {
  return machine_pace() / candidate.speed->pace;
}

// Fills in the model: calibrated speeds at this ratio, or what blocks of such data took.
void Chooser::weigh(const Candidate& candidate, const Features& look, Trial* trial) const {
  const double fraction =
      std::max(1e-9, std::lerp(trial->rest, candidate.speed->zeros.fraction, look.zero_lines));
  trial->ratio = 1 / fraction;
  trial->pace = pace_of(candidate);
  const Speed::Point calibrated = candidate.speed->at(fraction, look);
  trial->prior = finish_of(in_frame(candidate, calibrated, fraction, 1), fraction);
  Speed::Point speed = in_frame(candidate, calibrated, fraction, trial->pace);
  const Timed* const timed = candidate.find_timed(look, trial->sampled);
  trial->timed = timed != nullptr && timed->encode < speed.encode;
  if (trial->timed) {  // expanding is as near to rows
    const Speed::Point rows = in_frame(candidate, candidate.speed->rows, fraction);
    const double part = (speed.encode - timed->encode) / (speed.encode - rows.encode);
    if (part > 0 && rows.decode < speed.decode)
      speed.decode = std::lerp(speed.decode, rows.decode, std::min(1.0, part));
    speed.encode = timed->encode + fraction * hash_;
  }
  trial->encode = 1 / speed.encode;
  trial->decode = 1 / speed.decode;
  trial->finish = finish_of(speed, fraction);
}

const Chooser::Timed* Chooser::Candidate::find_timed(const Features& look, double sampled) const {
  const auto found = std::ranges::find_if(timed, [&](const Timed& t) {
    return same_look(look, t.look, 1) && std::fabs(sampled - t.sampled) < 0.1 * t.sampled;
  });
  return found == timed.end() ? nullptr : &*found;
}

void Chooser::Candidate::note_timed(const Features& look, double sampled, double encode) {
  if (const Timed* const known = find_timed(look, sampled)) {
    encode = std::min(encode, known->encode);
    timed.erase(timed.begin() + (known - timed.data()));
  } else if (timed.size() == kMostTimed) {
    timed.erase(timed.begin());
  }
  timed.push_back({look, sampled, encode});
}

// Whether a look may miss what makes the candidate fast: bytes that repeat from row to row, once
// shuffled. A look is shorter than most rows.
bool Chooser::finds_rows(const Candidate& candidate) const {
  return candidate.matching && candidate.recipe.n_steps > 1 && goal_.kind == Goal::Kind::kTime;
}

// "": it may be the best.
const char* Chooser::hopeless(const Candidate& candidate, const Features& look, double best) const {
  const bool lossy = !candidate.recipe.lossless();
  if (!lossy && looks_like_noise(look)) return "the sample looks like noise";
  if (candidate.matching && candidate.recipe.n_steps == 1 && look.matches < 0.01 &&
      look.byte_entropy > 7)
    return "nothing repeats";
  if (candidate.text == "zeros" && look.zero_lines < 0.02) return "no lines of zeros";
  if (goal_.kind != Goal::Kind::kTime) return "";
  if (candidate.text != "zeros" && look.zero_lines == 1) return "all lines are zeros";
  // Without loss, what data shrink to without repeats says more of the time than the bound does.
  const Speed::Point speed =
      lossy ? candidate.speed->fastest(look) : by_look(*candidate.speed, candidate.matching, look);
  return finish_of(in_frame(candidate, speed, 0), 0) > best ? kTooSlow : "";
}

// Whether a candidate that is too slow by its look is to be tried for rows.
bool Chooser::hopes(const Candidate& candidate, const Features& look, double best) const {
  if (!finds_rows(candidate)) return false;
  const Speed::Point& rows = candidate.speed->rows;
  return finish_of(in_frame(candidate, rows, rows.fraction), rows.fraction) <= best &&
         kSample * by_look(*candidate.speed, candidate.matching, look).encode <=
             left_for_trials(best);
}

// Seconds that trials which may well fail may still take in a frame of `finish` seconds a byte.
double Chooser::left_for_trials(double finish) const {
  return kTrials * finish * frame_bytes_ - spent_;
}

// Seconds a byte until the frame's last block is expanded on the other side, when compressing,
// sending and expanding overlap block by block.
double Chooser::finish_of(const Speed::Point& speed, double fraction) const {
  const double wire = fraction / goal_.link, threads = goal_.threads, n = n_blocks_;
  const double most = std::max({speed.encode / threads, wire, speed.decode / threads});
  return (speed.encode + wire + speed.decode) / n + most * (n - 1) / n;
}

bool Chooser::better(const Trial& a, const Trial& b) const {
  const auto fast_enough = [&](const Trial& t) {
    return std::min(t.encode, t.decode) * goal_.threads >= goal_.min_speed;
  };
  if (fast_enough(a) != fast_enough(b)) return fast_enough(a);
  switch (goal_.kind) {
    case Goal::Kind::kRatio:
      return a.ratio > b.ratio;
    case Goal::Kind::kSpeed:
      return 1 / a.encode + 1 / a.decode < 1 / b.encode + 1 / b.decode;
    default:
      return a.finish < kBetter * b.finish;
  }
}

Status Chooser::try_sample(const Candidate& candidate, const Features& look, ConstBytes sample,
                           size_t piece, Trial* trial) {
  double ratio = 1;
  WPR_TRY(ratio_of(candidate, sample, piece, &ratio));
  trial->tried = sample.size();
  trial->rest = 1 / ratio;
  if (look.zero_lines == 0) return {};
  const double zeros = zero_lines(sample, sample.size());
  if (zeros < 1) trial->rest = (1 / ratio - zeros * candidate.speed->zeros.fraction) / (1 - zeros);
  trial->rest = std::max(trial->rest, 0.0);
  return {};
}

// Where bytes count, not time, candidates are tried on blocks, or on a large part of one: in
// windows match finders find less.
ConstBytes some_blocks(ConstBytes group, size_t block_size) {
  constexpr size_t kMost = 1 << 20;
  const size_t size = std::min(group.size(), kMost), step = block_size < size ? block_size : kLine;
  return group.subspan((group.size() - size) / 2 / step * step, size);
}

// Codecs of arrays see whole rows; match finders each window by itself; the rest all windows.
Status Chooser::try_windows(const Candidate& candidate, const Features& look, ConstBytes group,
                            size_t block_size, Trial* trial) {
  if (!wirepress::wants_slabs(candidate.recipe)) {
    if (goal_.kind == Goal::Kind::kRatio) {
      const ConstBytes blocks = some_blocks(group, block_size);
      return try_sample(candidate, look, blocks, std::min(block_size, blocks.size()), trial);
    }
    ConstBytes windows = group;
    if (group.size() > kSample) WPR_TRY(copy_windows(group, &windows));
    return try_sample(candidate, look, windows, candidate.matching ? kWindow : windows.size(),
                      trial);
  }
  const size_t step = row_step_ ? row_step_ : kSample;
  const size_t piece =
      std::min({group.size(), block_size, std::max(step, 2 * kSample / step * step)});
  return try_sample(candidate, look, group.first(piece), piece, trial);
}

Status Chooser::ratio_of(const Candidate& candidate, ConstBytes sample, size_t piece,
                         double* ratio) {
  size_t coded = 0;
  const size_t bound = bound_of(candidate.recipe, piece);
  std::byte* code = code_.reserve(bound);
  if (!code) return fail(Code::kNoMemory, "no memory for a sample of %zu bytes", bound);
  for (size_t at = 0; at < sample.size(); at += piece) {
    const ConstBytes part = sample.subspan(at, std::min(piece, sample.size() - at));
    size_t size = part.size();
    const Status status = candidate.chain->encode(0, part, {}, {code, bound}, &size);
    if (!status.ok() && status.code() != Code::kDstTooSmall) return status;
    if (!status.ok() || size > code_limit(part.size())) size = part.size();
    coded += size;
  }
  *ratio = static_cast<double>(sample.size()) / static_cast<double>(std::max<size_t>(coded, 1));
  return {};
}

Status Chooser::choose(ConstBytes group, size_t block_size, Recipe* recipe) {
  const Features look = features_of(group, dtype_);
  copied_ = false;
  const uint64_t all = std::max<uint64_t>(frame_size_, group.size());
  frame_bytes_ = static_cast<double>(all);
  n_blocks_ = static_cast<double>(std::max<uint64_t>(1, (all + block_size - 1) / block_size));
  WPR_TRY(check_speed(group.size()));
  reused_ = find_known(look);
  if (reused_) {
    weigh_again(&known_[now_]);
  } else {
    Known known;
    const auto like = std::find_if(known_.rbegin(), known_.rend(), [&](const Known& earlier) {
      return earlier.stands(frame_bytes_) && same_rest(look, earlier.look, tolerance_);
    });
    known.frame_bytes = frame_bytes_;
    known.look = look;
    if (like != known_.rend()) {
      known.look = like->look;  // what is not zero
      known.look.zero_lines = look.zero_lines;
    }
    WPR_TRY(try_all(group, block_size, like != known_.rend() ? &*like : nullptr, &known));
    if (!known_.empty() && like == known_.rend())
      tolerance_ = known.chosen == chosen() ? std::min(2 * tolerance_, kMostTolerance) : 1;
    if (known_.size() == kMostKnown) known_.erase(known_.begin());
    known_.push_back(std::move(known));
    now_ = known_.size() - 1;
  }
  *recipe = candidates_[chosen()].recipe;
  return {};
}

// Of an earlier frame the ratios stand; speeds may have changed since.
void Chooser::weigh_again(Known* known) {
  if (known->weighed) return;
  known->weighed = true;
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (*known->trials[i].why == 0) weigh(candidates_[i], known->look, &known->trials[i]);
  known->chosen = best_of(known->trials);
}

size_t Chooser::best_of(const std::vector<Trial>& trials) const {
  size_t best = 0;
  for (size_t i = 1; i < trials.size(); ++i)
    if (*trials[i].why == 0 && trials[i].ratio > 1 && better(trials[i], trials[best])) best = i;
  return best;
}

// Where bytes count, not time, nothing is saved on trials.
void Chooser::age_known() {
  const size_t most = goal_.kind == Goal::Kind::kTime ? kFrames : 1;
  std::erase_if(known_, [&](Known& known) {
    known.weighed = false;
    return ++known.frames >= most;
  });
  now_ = known_.empty() ? 0 : known_.size() - 1;
}

bool Chooser::find_known(const Features& look) {
  for (size_t i = known_.size(); i-- > 0;) {
    if (!known_[i].stands(frame_bytes_)) continue;
    if (!same_look(look, known_[i].look, tolerance_)) continue;
    now_ = i;
    return true;
  }
  return false;
}

Status Chooser::copy_windows(ConstBytes group, ConstBytes* windows) {
  std::byte* const room = windows_.reserve(kSample);
  if (!room) return fail(Code::kNoMemory, "no memory for a sample of %zu bytes", kSample);
  for (size_t w = 0; w < kWindows && !copied_; ++w)
    std::memcpy(room + w * kWindow, window(group, w).data(), kWindow);
  copied_ = true;
  *windows = {room, kSample};
  return {};
}

// Now and then a candidate is timed anew, as when it was calibrated, on the same data: the machine
// may be busier than then, or may have been. What is coded would say how data differ, too. Not
// match finders, whose speed depends on what the memory held before.
Status Chooser::check_speed(size_t size) {
  constexpr double kEvery = 0.1;  // seconds of this thread
  constexpr size_t kBlock = Workbench::kBlock;
  static std::atomic<size_t> checks = 0;
  thread_local double checked_at = thread_seconds();
  if (size < kBlock) return {};  // it would wait longer for the check than for its own code
  const double now = thread_seconds();
  if (now < checked_at + kEvery) return {};
  const Candidate& candidate = candidates_[checks++ % candidates_.size()];
  if (candidate.matching || wirepress::wants_slabs(candidate.recipe)) return {};
  const size_t bound = bound_of(candidate.recipe, kBlock);
  std::byte* const code = code_.reserve(bound + kBlock);
  if (!code) return fail(Code::kNoMemory, "no memory for a sample of %zu bytes", bound + kBlock);
  Speed::Point took;
  if (measure(*candidate.chain, dense_block(dtype_), {code, bound}, {code + bound, kBlock}, 0,
              &took)) {
    const Speed::Point known = candidate.speed->at(took.fraction, {});
    check_pace((took.encode + took.decode) / (pace_of(candidate) * (known.encode + known.decode)));
  }
  checked_at = thread_seconds();
  return {};
}

// What is not zero in `like` looks like that of the group, and shrinks as far, unless repeats find
// others in the gaps.
Status Chooser::try_all(ConstBytes group, size_t block_size, const Known* like, Known* known) {
  const bool is_time = goal_.kind == Goal::Kind::kTime;
  const bool all_zero = is_time && known->look.zero_lines == 1;
  known->trials.resize(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    Trial& trial = known->trials[i];
    Trial& best = known->trials[known->chosen];
    trial.recipe = candidate.text;
    if (i > 0) {
      trial.why = hopeless(candidate, known->look, best.finish);
      const bool rows = trial.why == kTooSlow && group.size() >= 2 * kSample &&
                        hopes(candidate, known->look, best.finish);
      if (*trial.why != 0 && !rows) continue;
      trial.why = "";
      const Trial* const earlier = is_time && like != nullptr ? &like->trials[i] : nullptr;
      if (earlier != nullptr && *earlier->why == 0) {
        trial.rest = earlier->rest;
        trial.sampled = earlier->sampled;
        trial.tried = earlier->tried;
        trial.may_find_rows = earlier->may_find_rows;
      } else if (!all_zero) {
        trial.may_find_rows = finds_rows(candidate) && group.size() >= 2 * kSample;
        WPR_TRY(rows ? try_stretch(candidate, known->look, group, &trial)
                     : try_windows(candidate, known->look, group, block_size, &trial));
        trial.sampled = trial.rest;
        trial.rest /= candidate.gain;
      }
    }
    weigh(candidate, known->look, &trial);
    if (i > 0 && trial.ratio > 1 && better(trial, best)) known->chosen = i;
  }
  const bool wants_block = is_time && like == nullptr && !all_zero && group.size() > kSample;
  return wants_block ? try_block(group, block_size, known) : Status();
}

// A stretch, not windows, in each of which a match finder would begin anew.
Status Chooser::try_stretch(const Candidate& candidate, const Features& look, ConstBytes group,
                            Trial* trial) {
  const double begin = thread_seconds();
  WPR_TRY(
      try_sample(candidate, look, group.subspan(group.size() / 2).first(kSample), kSample, trial));
  spent_ += thread_seconds() - begin;
  return {};
}

// When a trial's candidate may finish: if what it shrinks were rows, and where a sample cut what
// repeats, of which a block may leave half as much.
double Chooser::hope(const Candidate& candidate, const Features& look, const Trial& trial) const {
  constexpr double kRepeats = 1.0 / 3;  // of the words
  const bool repeats = look.matches >= kRepeats;
  if (!trial.may_find_rows && !repeats) return trial.finish;
  const double fraction = (repeats ? 0.5 : 1.0) / trial.ratio;
  Speed::Point speed = candidate.speed->at(fraction, look);
  if (trial.may_find_rows) {
    speed.encode = std::min(speed.encode, candidate.speed->rows.encode);
    speed.decode = std::min(speed.decode, candidate.speed->rows.decode);
  }
  return std::min(trial.finish, finish_of(in_frame(candidate, speed, fraction), fraction));
}

// In rows the time counts, too: the lesser of two where the first block, which may meet memory that
// is new, makes the candidate too slow.
Status Chooser::try_whole(Candidate* candidate, const Features& look, ConstBytes block, double best,
                          Trial* trial) {
  const int turns = trial->may_find_rows ? 2 : 1;
  for (int turn = 0; turn < turns && (turn == 0 || trial->finish >= best); ++turn) {
    const double begin = thread_seconds();
    WPR_TRY(try_sample(*candidate, look, block, block.size(), trial));
    const double seconds = thread_seconds() - begin;
    spent_ += seconds;
    if (trial->may_find_rows)
      candidate->note_timed(look, trial->sampled, seconds / static_cast<double>(block.size()));
    weigh(*candidate, look, trial);
  }
  if (trial->rest > 0) candidate->gain = std::clamp(trial->sampled / trial->rest, 1.0, kMostGain);
  return {};
}

// Match finders find more in a block than in windows, and in rows are faster than calibrated. So
// those that are or may be close to the best are tried on a block, the most promising first, as
// long as that takes no more than a 32nd of what the frame takes. A part of a block is cheaper, and
// says nearly as much.
Status Chooser::try_block(ConstBytes group, size_t block_size, Known* known) {
  struct Rival {
    size_t i;
    double finish, encode;  // seconds a byte: hoped, and of the trial
  };
  std::vector<Trial>& trials = known->trials;
  const size_t n_blocks = (group.size() + block_size - 1) / block_size;
  const ConstBytes block =
      group.subspan(n_blocks / 2 * block_size)
          .first(std::min(block_size, group.size() - n_blocks / 2 * block_size));
  const double best = trials[known->chosen].finish;
  std::vector<Rival> rivals;
  for (size_t i = 1; i < trials.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (!candidate.matching || *trials[i].why != 0) continue;
    const double finish = hope(candidate, known->look, trials[i]);
    const bool is_close = trials[i].finish <= kClose * best;
    if (!is_close && finish >= kBetter * best) continue;
    const bool rows = !is_close && trials[i].may_find_rows;
    rivals.push_back({i, finish, rows ? candidate.speed->rows.encode : 1 / trials[i].encode});
  }
  if (std::ranges::all_of(rivals, [&](const Rival& r) { return r.i == known->chosen; })) return {};
  std::ranges::sort(rivals, {}, &Rival::finish);
  for (size_t k = 0; k < rivals.size(); ++k) {
    const auto& [i, finish, encode] = rivals[k];
    const double left = left_for_trials(best), share = k + 1 < rivals.size() ? left / 2 : left;
    size_t size = block.size();
    while (size > kSample && static_cast<double>(size) * encode > share) size /= 2;
    if (size <= kWindow || static_cast<double>(size) * encode > left) continue;
    WPR_TRY(try_whole(&candidates_[i], known->look, block.first(size), best, &trials[i]));
  }
  known->chosen = best_of(trials);
  return {};
}

}  // namespace wirepress
