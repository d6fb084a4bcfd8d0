// SPDX-License-Identifier: Apache-2.0
// One cell of bench/store.py: a wave is computed, every step of it goes to a frame store, and comes
// back in reverse while another wave is computed. Prints JSON.
//
//   store_bench --side 128 --workers 1 --frames 64 --policy compressed --recipe bx:m=6 --path FILE
//               --start FILE [--memory BYTES] [--servants 1] [--direct 1] [--reserve BYTES]
//               [--bucket BYTES_PER_SECOND]
//
// By every policy a worker puts a tile, some planes, as soon as it has computed them, and gets one
// back where it has computed its planes of the other wave, with which it multiplies it, as imaging
// does. --start keeps the wave at the step where the frames begin, so that it is computed once.
#include <algorithm>
#include <barrier>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "store/frame_store.hpp"
#include "store/kit/throttled_file.hpp"

namespace {

using wirepress::Status;
using wirepress::store::Calls;
using wirepress::store::FrameStore;
using wirepress::store::now;

constexpr size_t kHalo = 4;
constexpr size_t kTilePlanes = 2;  // 128 KiB at 128^3, 320 KB at 200^3: as much as a core's cache
using Field = std::vector<float>;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "store_bench: %s\n", why.c_str());
  std::exit(1);
}

// One row of the 25-point stencil of the second derivative, 8th order, and a leap-frog step.
[[gnu::target_clones("avx512f", "avx2", "default")]] void row(const float* u, float* old,
                                                              const float* speed, size_t n,
                                                              size_t dy, size_t dz) {
  constexpr float kC0 = -205.0f / 72, kC1 = 8.0f / 5, kC2 = -1.0f / 5, kC3 = 8.0f / 315,
                  kC4 = -1.0f / 560;
#pragma GCC ivdep
  for (size_t x = 0; x < n; ++x) {
    const float* c = u + x;
    const float sum =
        3 * kC0 * *c + kC1 * (c[1] + *(c - 1) + c[dy] + *(c - dy) + c[dz] + *(c - dz)) +
        kC2 * (c[2] + *(c - 2) + c[2 * dy] + *(c - 2 * dy) + c[2 * dz] + *(c - 2 * dz)) +
        kC3 * (c[3] + *(c - 3) + c[3 * dy] + *(c - 3 * dy) + c[3 * dz] + *(c - 3 * dz)) +
        kC4 * (c[4] + *(c - 4) + c[4 * dy] + *(c - 4 * dy) + c[4 * dz] + *(c - 4 * dz));
    old[x] = 2 * *c - old[x] + speed[x] * sum;
  }
}

// What a worker does with planes that it has just computed: those of a tile.
using OnTile = std::function<void(size_t worker, size_t tile, const float* planes)>;

// A wave in a layered medium, on a grid whose border stays zero.
class Wave {
 public:
  explicit Wave(size_t side) : side_(side), u_(side * side * side), old_(u_.size()), speed_(u_) {
    for (size_t z = 0; z < side; ++z) {  // 1500 to 4400 m/s, 10 m, 1 ms
      const float layer = static_cast<float>(z * 6 / side) / 5;
      const float courant = 0.15f + 0.29f * layer;
      std::fill_n(speed_.begin() + static_cast<ptrdiff_t>(z * side * side), side * side,
                  courant * courant);
    }
  }
  size_t n_tiles() const { return (side_ + kTilePlanes - 1) / kTilePlanes; }
  size_t tile_values() const { return kTilePlanes * side_ * side_; }
  // The tiles of one worker, a Ricker source near the surface included.
  void slab(size_t worker, size_t n_workers, int step, const OnTile& on_tile) {
    const size_t first = n_tiles() * worker / n_workers;
    const size_t last = n_tiles() * (worker + 1) / n_workers;
    for (size_t tile = first; tile < last; ++tile) {
      const size_t z0 = tile * kTilePlanes, z1 = std::min(side_, z0 + kTilePlanes);
      for (size_t z = z0; z < z1; ++z) plane(z, step);
      if (on_tile) on_tile(worker, tile, old_.data() + z0 * side_ * side_);
    }
  }
  void turn() { u_.swap(old_); }  // after all slabs of a step
  Field& field() { return u_; }
  Field& other() { return old_; }

 private:
  void plane(size_t z, int step) {
    if (z < kHalo || z >= side_ - kHalo) return;
    const size_t inner = side_ - 2 * kHalo;
    for (size_t y = kHalo; y < side_ - kHalo; ++y) {
      const size_t at = (z * side_ + y) * side_ + kHalo;
      row(u_.data() + at, old_.data() + at, speed_.data() + at, inner, side_, side_ * side_);
    }
    if (z != kSourceDepth) return;
    const float t = static_cast<float>(step) * 0.001f - 0.08f;
    const float a = std::pow(3.14159265f * 15 * t, 2.0f);
    old_[(z * side_ + side_ / 2) * side_ + side_ / 2] += (1 - 2 * a) * std::exp(-a);
  }

  static constexpr size_t kSourceDepth = 12;
  size_t side_;
  Field u_, old_, speed_;
};

// Threads that compute steps together; the caller is one of them.
class Workers {
 public:
  Workers(size_t n, Wave* wave) : n_(n), wave_(*wave), barrier_(static_cast<ptrdiff_t>(n)) {
    for (size_t i = 1; i < n; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~Workers() {
    done_ = true;
    barrier_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  void step(int number, const OnTile& on_tile = nullptr) {
    number_ = number;
    on_tile_ = on_tile;
    barrier_.arrive_and_wait();
    wave_.slab(0, n_, number, on_tile_);
    barrier_.arrive_and_wait();
    wave_.turn();
  }

 private:
  void work(size_t worker) {
    while (true) {
      barrier_.arrive_and_wait();
      if (done_) return;
      wave_.slab(worker, n_, number_, on_tile_);
      barrier_.arrive_and_wait();
    }
  }

  size_t n_;
  Wave& wave_;
  std::barrier<> barrier_;
  int number_ = 0;
  OnTile on_tile_;
  bool done_ = false;
  std::vector<std::thread> threads_;
};

struct Options {
  std::map<std::string, std::string> given;
  std::string text(const std::string& name, const std::string& other) const {
    const auto found = given.find(name);
    return found == given.end() ? other : found->second;
  }
  double number(const std::string& name, double other) const {
    return std::atof(text(name, std::to_string(other)).c_str());
  }
  size_t count(const std::string& name, size_t other) const {
    return static_cast<size_t>(number(name, static_cast<double>(other)));
  }
};

// The best of some repetitions, GB/s: bytes that `call` handles each time.
double speed(size_t n, const std::function<void()>& call) {
  double best = 0;
  const double until = now() + 0.15;
  do {
    const double began = now();
    call();
    best = std::max(best, static_cast<double>(n) / (now() - began) / 1e9);
  } while (now() < until);
  return best;
}

struct Speeds {
  double encode = 0, decode = 0, copy = 0;
};

// Of one thread alone, on the frame as it is now.
Speeds speeds_of(const Field& field, const char* recipe) {
  const size_t n = 4 * field.size();
  Field back(field.size());
  Speeds speeds;
  speeds.copy = speed(n, [&] { std::memcpy(back.data(), field.data(), n); });
  speeds.encode = speeds.decode = speeds.copy;
  if (!recipe) return speeds;
  wpr_ctx* context = nullptr;
  if (wpr_create(&context) != WPR_OK || wpr_set(context, "recipe", recipe) != WPR_OK ||
      wpr_set(context, "threads", "1") != WPR_OK || wpr_set(context, "checksum", "off") != WPR_OK)
    stop(wpr_error(context));
  const uint64_t shape[1] = {field.size()};
  std::vector<std::byte> packed(wpr_bound(context, n));
  size_t size = 0, written = 0;
  speeds.encode = speed(n, [&] {
    if (wpr_compress_array(context, field.data(), WPR_FLOAT32, 1, shape, packed.data(),
                           packed.size(), &size) != WPR_OK)
      stop(wpr_error(context));
  });
  speeds.decode = speed(n, [&] {
    if (wpr_decompress(context, packed.data(), size, back.data(), n, &written) != WPR_OK)
      stop(wpr_error(context));
  });
  wpr_free(context);
  return speeds;
}

// Of what came back against what was put.
struct Errors {
  double snr = 0, worst = 0;  // dB by 10 log10; the largest error of a value over that value
};

Errors compare(const Field& put, const Field& got) {
  double signal = 0, noise = 0, worst = 0;
  for (size_t i = 0; i < put.size(); ++i) {
    const double error = static_cast<double>(got[i]) - put[i];
    signal += static_cast<double>(put[i]) * put[i];
    noise += error * error;
    if (std::abs(put[i]) > 1e-30f) worst = std::max(worst, std::abs(error / put[i]));
  }
  return {noise > 0 ? 10 * std::log10(signal / noise) : INFINITY, worst};
}

// A virtual machine's memory is slow when it is touched for the first time since the machine began;
// what was freed just now comes first.
void warm(size_t n) {
  const wirepress::Buffer memory(n);
  std::memset(memory.data(), 1, n);
}

// Seconds of all threads, the kernel's work for them included.
double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of a frame and a field, as imaging has it.
[[gnu::target_clones("avx512f", "avx2", "default")]] float product(const float* a, const float* b,
                                                                   size_t n) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  for (size_t i = 0; i + kLanes <= n; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) sums[j] += a[i + j] * b[i + j];
  return std::accumulate(sums, sums + kLanes, 0.0f);
}

void begin(Wave* wave, Workers* workers, int steps, const std::string& file) {
  const auto size = static_cast<std::streamsize>(4 * wave->field().size());
  std::ifstream in(file, std::ios::binary);
  if (in && in.read(reinterpret_cast<char*>(wave->field().data()), size) &&
      in.read(reinterpret_cast<char*>(wave->other().data()), size))
    return;
  if (file.empty()) stop("--start is missing");
  for (int step = 0; step < steps; ++step) workers->step(step);
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(wave->field().data()), size);
  out.write(reinterpret_cast<const char*>(wave->other().data()), size);
}

wpr_store_config config_of(const Options& options, const std::string& recipe, size_t side) {
  const std::string policy = options.text("policy", "compressed");
  wpr_store_config config = {};
  config.dtype = WPR_FLOAT32;
  config.n_dims = 3;
  for (int i = 0; i < 3; ++i) config.shape[i] = config.tile[i] = side;
  config.tile[0] = kTilePlanes;
  config.policy = policy == "memory"      ? WPR_STORE_MEMORY
                  : policy == "disk"      ? WPR_STORE_DISK
                  : policy == "in-worker" ? WPR_STORE_IN_WORKER
                                          : WPR_STORE_COMPRESSED;
  config.recipe = recipe.c_str();
  config.memory = options.count("memory", 0);
  config.servants = static_cast<int>(options.count("servants", 1));
  config.direct = options.count("direct", 0) != 0;
  config.reserve = options.count("reserve", 0);
  return config;
}

void check(const Status& status) {
  if (!status.ok()) stop(status.text());
}

int run(const Options& options) {
  const size_t side = options.count("side", 128), n_workers = options.count("workers", 1);
  const auto frames = static_cast<int>(options.count("frames", 64));
  const std::string recipe = options.text("recipe", "bx:m=6");
  const auto config = config_of(options, recipe, side);
  const int first = static_cast<int>(side * 3);  // the wave has crossed the grid
  Wave wave(side);
  Workers workers(n_workers, &wave);
  begin(&wave, &workers, first, options.text("start", ""));
  const size_t n = 4 * wave.field().size();
  const bool packs = config.policy != WPR_STORE_MEMORY && config.policy != WPR_STORE_DISK;
  const Speeds alone = speeds_of(wave.field(), packs ? recipe.c_str() : nullptr);

  double began = now();
  for (int step = 0; step < frames; ++step) workers.step(first + step);
  const double kernel = static_cast<double>(n) * frames / (now() - began) / 1e9;
  begin(&wave, &workers, first, options.text("start", ""));

  if (config.policy == WPR_STORE_MEMORY) warm(n * static_cast<size_t>(frames));

  std::unique_ptr<Calls> slow;
  if (options.number("bucket", 0) > 0)
    slow = std::make_unique<wirepress::store::kit::ThrottledFile>(options.number("bucket", 0));
  FrameStore store(slow ? *slow : Calls::system());
  check(store.create(config.policy == WPR_STORE_MEMORY ? nullptr : options.text("path", "").c_str(),
                     config));
  double cpu = cpu_seconds();
  began = now();
  for (int step = 0; step < frames; ++step) {
    workers.step(first + step, [&](size_t, size_t tile, const float* planes) {
      check(store.put_tile(static_cast<uint64_t>(step), tile, planes, nullptr));
    });
  }
  check(store.sync());
  const double forward = now() - began, forward_cpu = cpu_seconds() - cpu;
  const Field last = wave.field();

  std::vector<Field> tiles(n_workers, Field(wave.tile_values()));
  std::vector<double> products(n_workers * 16);  // each on a cache line of its own
  check(store.prefetch(static_cast<uint64_t>(frames - 1), -1));
  cpu = cpu_seconds();
  began = now();
  for (int step = frames; step-- > 0;) {
    workers.step(first + step, [&](size_t worker, size_t tile, const float* planes) {
      Field& mine = tiles[worker];
      check(store.get_tile(static_cast<uint64_t>(step), tile, mine.data(), nullptr));
      const size_t rest = n / 4 - tile * mine.size();
      products[16 * worker] += product(mine.data(), planes, std::min(mine.size(), rest));
    });
  }
  const double backward = now() - began, backward_cpu = cpu_seconds() - cpu;
  if (!std::isfinite(std::accumulate(products.begin(), products.end(), 0.0)))
    stop("what came back is not finite");
  wpr_store_stats stats;
  wpr_store_info info;
  store.stats(&stats);
  store.info(&info);
  Field frame(last.size());
  check(store.get(static_cast<uint64_t>(frames - 1), frame.data(), n));
  const Errors errors = compare(last, frame);
  check(store.close());
  std::printf(
      "{\"side\": %zu, \"workers\": %zu, \"frames\": %d, \"raw_bytes\": %" PRIu64
      ", \"stored_bytes\": %" PRIu64
      ", \"forward\": %.6f, \"backward\": %.6f, \"forward_cpu\": %.6f, \"backward_cpu\": %.6f"
      ", \"kernel_gbps\": %.4f, \"copy_gbps\": %.4f, "
      "\"encode_gbps\": %.4f, \"decode_gbps\": %.4f, \"put_wait\": %.6f, \"get_wait\": %.6f, "
      "\"compress\": %.6f, \"write\": %.6f, \"read\": %.6f, \"expand\": %.6f, "
      "\"read_ahead\": %" PRIu64 ", \"direct\": %d, \"snr_db\": %s, \"worst_relative\": %.3e}\n",
      side, n_workers, frames, stats.raw_bytes, stats.stored_bytes, forward, backward, forward_cpu,
      backward_cpu, kernel, alone.copy, alone.encode, alone.decode, stats.put_wait_seconds,
      stats.get_wait_seconds, stats.compress_seconds, stats.write_seconds, stats.read_seconds,
      stats.expand_seconds, stats.read_ahead, info.direct,
      std::isfinite(errors.snr) ? std::to_string(errors.snr).c_str() : "null", errors.worst);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strncmp(argv[i], "--", 2) != 0) stop(std::string("what is ") + argv[i]);
    options.given[argv[i] + 2] = argv[i + 1];
  }
  return run(options);
}
