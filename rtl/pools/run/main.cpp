// SPDX-License-Identifier: Apache-2.0
// lz_pools: pools of simulated LZ cores at both ends of a link (rtl/pools), and what they do in a
// clock. For each FILE: encoders alone, decoders alone, and both, with the blocks of the one pool
// going to the other. Then blocks that compress well, badly and not at all, each kind alone and in
// turns. Then blocks that the link cuts or loses. All bytes that arrive are compared.
//
//   lz_pools [--bytes N] FILE...
//
// One line of JSON for each measurement, on standard output; status 1 where bytes differ.
#include <verilated.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "Vwpr_pools_lz4_1.h"
#include "Vwpr_pools_lz4_4.h"
#include "Vwpr_pools_snappy_4.h"

namespace {

using Buffer = std::vector<unsigned char>;
constexpr size_t kBeat = 64, kBlock = size_t{16} << 10;
constexpr size_t kLink = 64;  // beats that the link holds

struct Beat {
  std::array<uint32_t, kBeat / 4> words{};
  uint64_t keep = 0;
  bool last = false;
};
using Beats = std::vector<Beat>;

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "lz_pools: %s\n", why);
  std::exit(1);
}

void append(const Buffer& bytes, Beats* beats) {
  for (size_t at = 0; at < bytes.size(); at += kBeat) {
    const size_t n = std::min(kBeat, bytes.size() - at);
    Beat beat;
    std::memcpy(beat.words.data(), bytes.data() + at, n);
    beat.keep = ~uint64_t{0} >> (64 - n);
    beat.last = at + kBeat >= bytes.size();
    beats->push_back(beat);
  }
}

// Packets, without those that end with tuser.
struct Packets {
  std::vector<Buffer> whole;
  size_t bad = 0;
  void take(const Beat& beat, bool user) {
    const auto* from = reinterpret_cast<const unsigned char*>(beat.words.data());
    now_.insert(now_.end(), from, from + __builtin_popcountll(beat.keep));
    if (!beat.last) return;
    if (user)
      ++bad;
    else
      whole.push_back(std::move(now_));
    now_.clear();
  }

 private:
  Buffer now_;
};

void drive(auto& data, auto& keep, auto& last, const Beat& beat) {
  for (size_t i = 0; i < beat.words.size(); ++i) data[i] = beat.words[i];
  keep = beat.keep;
  last = beat.last;
}
Beat sample(const auto& data, uint64_t keep, bool last) {
  Beat beat{{}, keep, last};
  for (size_t i = 0; i < beat.words.size(); ++i) beat.words[i] = data[i];
  return beat;
}

struct Result {
  Beats link;
  Packets messages;
  uint64_t clocks = 0;  // from the first beat in to the last one out
  size_t dropped = 0;
};

template <class Model>
class Pools {
 public:
  Pools() {
    context_.randReset(2);
    model_ = std::make_unique<Model>(&context_);
    model_->rst_ni = 0;
    model_->s_axis_tvalid = model_->s_link_tvalid = 0;
    model_->cfg_beats_i = kBlock / kBeat - 1;
    model_->cfg_patience_i = 30000;
    for (int i = 0; i < 3; ++i) clock();
    model_->rst_ni = 1;
  }

  // Messages in, and what is on the link already; both pools are joined where `joined`. It is over
  // when nothing has moved for `most_idle` clocks.
  Result run(const Beats& raw, const Beats& link, bool joined, uint64_t most_idle = 20000) {
    Result result;
    std::deque<Beat> way(link.begin(), link.end());
    size_t sent = 0;
    uint64_t first = 0, last = 0;
    for (uint64_t now = 1, moved = 1; now - moved < most_idle; ++now) {
      Model& m = *model_;
      m.s_axis_tvalid = sent < raw.size();
      if (sent < raw.size()) drive(m.s_axis_tdata, m.s_axis_tkeep, m.s_axis_tlast, raw[sent]);
      m.s_link_tvalid = !way.empty();
      if (!way.empty()) drive(m.s_link_tdata, m.s_link_tkeep, m.s_link_tlast, way.front());
      m.m_link_tready = !joined || way.size() < kLink;
      m.m_axis_tready = 1;
      m.clk_i = 0;
      m.eval();
      const bool in = m.s_axis_tvalid && m.s_axis_tready, out = m.m_axis_tvalid;
      const bool to_link = m.m_link_tvalid && m.m_link_tready;
      const bool from_link = m.s_link_tvalid && m.s_link_tready;
      if (out)
        result.messages.take(sample(m.m_axis_tdata, m.m_axis_tkeep, m.m_axis_tlast),
                             m.m_axis_tuser);
      if (from_link) way.pop_front();
      if (to_link) {
        const Beat beat = sample(m.m_link_tdata, m.m_link_tkeep, m.m_link_tlast);
        (joined ? way.push_back(beat) : result.link.push_back(beat));
      }
      result.dropped += m.dropped_o;
      m.clk_i = 1;
      m.eval();
      sent += in;
      if (in || out || to_link || from_link) moved = now;
      if (first == 0 && (in || from_link)) first = now;
      if (out || (to_link && !joined)) last = now;
    }
    result.clocks = last + 1 - first;
    return result;
  }

 private:
  void clock() {
    model_->clk_i = 0;
    model_->eval();
    model_->clk_i = 1;
    model_->eval();
  }
  VerilatedContext context_;
  std::unique_ptr<Model> model_;
};

size_t bytes_of(const Beats& beats) {
  size_t n = 0;
  for (const Beat& beat : beats) n += static_cast<size_t>(__builtin_popcountll(beat.keep));
  return n;
}

void expect(const Result& result, const Buffer& raw) {
  if (result.messages.bad != 0 || result.messages.whole.size() != 1 ||
      result.messages.whole[0] != raw)
    stop("other bytes than were sent");
}

struct Rates {
  uint64_t encode, decode, both;
  size_t code;
};

template <class Model>
Rates measure(Pools<Model>* pools, const Buffer& raw) {
  Beats beats;
  append(raw, &beats);
  const Result encoded = pools->run(beats, {}, false);
  const Result decoded = pools->run({}, encoded.link, false);
  expect(decoded, raw);
  const Result joined = pools->run(beats, {}, true);
  expect(joined, raw);
  return {encoded.clocks, decoded.clocks, joined.clocks, bytes_of(encoded.link)};
}

struct About {
  const char* codec;
  int engines;
};

void print(const About& about, const char* data, size_t raw_size, const Rates& r) {
  std::printf(
      "{\"codec\": \"%s\", \"engines\": %d, \"data\": \"%s\", \"bytes\": %zu, "
      "\"link_bytes\": %zu, \"encode\": %zu, \"decode\": %zu, \"both\": %zu}\n",
      about.codec, about.engines, data, raw_size, r.code, size_t{r.encode}, size_t{r.decode},
      size_t{r.both});
  std::fflush(stdout);
}

// Blocks of three kinds: bytes that repeat nothing, a file's, and long runs.
std::vector<Buffer> kinds(const Buffer& file, size_t n_blocks) {
  std::mt19937_64 random(1);
  std::vector<Buffer> made(3, Buffer(n_blocks * kBlock));
  for (size_t i = 0; i < made[0].size(); ++i) {
    made[0][i] = static_cast<unsigned char>(random());
    made[1][i] = file[i % file.size()];
    made[2][i] = static_cast<unsigned char>(i / 3000);
  }
  return made;
}

template <class Model>
void mix(Pools<Model>* pools, const About& about, const Buffer& file) {
  constexpr size_t kEach = 16;
  const std::vector<Buffer> pure = kinds(file, kEach);
  const char* const names[] = {"random", "file", "runs"};
  Buffer mixed;
  for (size_t i = 0; i < kEach; ++i)
    for (const Buffer& kind : pure)
      mixed.insert(mixed.end(), kind.begin() + static_cast<ptrdiff_t>(i * kBlock),
                   kind.begin() + static_cast<ptrdiff_t>((i + 1) * kBlock));
  for (size_t k = 0; k < pure.size(); ++k)
    print(about, names[k], pure[k].size(), measure(pools, pure[k]));
  print(about, "in turns", mixed.size(), measure(pools, mixed));
}

// Three messages of 8 blocks; of the second a block is cut, or lost.
template <class Model>
void damage(Pools<Model>* pools, const About& about, const Buffer& file) {
  const Buffer raw(file.begin(), file.begin() + static_cast<ptrdiff_t>(8 * kBlock));
  for (const bool lost : {false, true}) {
    Beats beats;
    for (int i = 0; i < 3; ++i) append(raw, &beats);
    const Beats link = pools->run(beats, {}, false).link;
    Beats harmed;
    size_t block = 0;
    for (const Beat& beat : link) {
      const bool in_it = block == 11;
      block += beat.last;
      if (in_it && beat.last && !lost) harmed.back().last = true;
      if (in_it && (beat.last || lost)) continue;
      harmed.push_back(beat);
    }
    const Result result = pools->run({}, harmed, false, 100000);
    const auto& whole = result.messages.whole;
    const size_t good = static_cast<size_t>(std::count(whole.begin(), whole.end(), raw));
    std::printf(
        "{\"codec\": \"%s\", \"engines\": %d, \"data\": \"%s\", \"messages\": 3, "
        "\"whole\": %zu, \"marked\": %zu}\n",
        about.codec, about.engines, lost ? "a block lost" : "a block cut", good,
        result.messages.bad);
    if (good != 2 || result.messages.bad != 1) stop("one message of three was to be marked");
  }
}

template <class Model>
void all(const About& about, const std::vector<std::pair<std::string, Buffer>>& files, bool more) {
  Pools<Model> pools;
  for (const auto& [name, raw] : files)
    print(about, name.c_str(), raw.size(), measure(&pools, raw));
  if (!more) return;
  mix(&pools, about, files[0].second);
  damage(&pools, about, files[0].second);
}

}  // namespace

int main(int argc, char** argv) {
  size_t most = size_t{1} << 20;
  std::vector<std::pair<std::string, Buffer>> files;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--bytes" && i + 1 < argc) {
      most = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    std::ifstream in(argv[i], std::ios::binary);
    Buffer raw(most);
    in.read(reinterpret_cast<char*>(raw.data()), static_cast<std::streamsize>(most));
    raw.resize(static_cast<size_t>(in.gcount()));
    if (raw.size() < 8 * kBlock) stop("a file is not there, or smaller than 128 KiB");
    const std::string path = argv[i];
    files.emplace_back(path.substr(path.rfind('/') + 1), std::move(raw));
  }
  if (files.empty()) stop("lz_pools [--bytes N] FILE...");
  all<Vwpr_pools_lz4_1>({"lz4", 1}, files, false);
  all<Vwpr_pools_lz4_4>({"lz4", 4}, files, true);
  all<Vwpr_pools_snappy_4>({"snappy", 4}, files, true);
  return 0;
}
