// SPDX-License-Identifier: Apache-2.0
// Frames of an acoustic wave in three dimensions, as test data.
//
//   wavefield [--steps 100,200,400,800] [--out FOLDER] ...    see --help
//
// Second order in time, eighth in space (a star of 25 points), a sound speed in layers with a body
// of another rock in them and a random perturbation, a Ricker wavelet near the surface, absorbing
// walls. The pressure at the given steps goes to FOLDER/wave_tSTEP.f32 (or .f64), x fastest, depth
// slowest. A point's new value depends on the old ones alone, and the perturbation on the seed and
// the point's index: the number of threads and the instruction set change no bit.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WIDEST
#endif

namespace {

constexpr const char* kHelp =
    R"(usage: wavefield [options]

Computes an acoustic wave and writes its pressure field at some steps, raw, to files
wave_tSTEP.f32 (wave_tSTEP.f64 with --double).

  --steps LIST    which steps to write (100,200,400,800)
  --nineteen      write steps 40, 80 .. 760, in addition to an explicit --steps
  --out FOLDER    where to (.); it must exist
  --n N           points along each side (200)
  --double        compute and write float64
  --denormals     keep denormal numbers; they are flushed to zero otherwise
  --seed S        of the perturbation of the sound speed (1)
  --threads T     (as many as processors)
  --quiet         no progress
)";

constexpr int kHalo = 4;
constexpr int kSponge = 20;
constexpr double kSpacing = 10;  // metres
constexpr double kFastest = 4500;
constexpr double kTimeStep = 0.45 * kSpacing / kFastest;
constexpr double kFrequency = 18;
constexpr int kSourceDepth = 24;

struct Options {
  std::vector<int> steps;
  std::string out = ".";
  int n = 200;
  bool use_double = false;
  bool denormals = false;
  bool quiet = false;
  uint32_t seed = 1;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
};

void set_denormals(bool keep) {
#if defined(__SSE2__)
  constexpr unsigned kFlushBoth = 0x8040;  // FTZ and DAZ
  _mm_setcsr(keep ? _mm_getcsr() & ~kFlushBoth : _mm_getcsr() | kFlushBoth);
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  constexpr uint64_t kFlush = uint64_t{1} << 24;
  fpcr = keep ? fpcr & ~kFlush : fpcr | kFlush;
  asm volatile("msr fpcr, %0" : : "r"(fpcr));
#else
  if (!keep) throw std::runtime_error("denormals cannot be flushed here: --denormals");
#endif
}

// One row along x: next = 2 now - next + speed * laplacian(now).
template <class Real>
struct Row {
  const Real* now;
  Real* next;
  const Real* speed;
  ptrdiff_t line;   // from a row to the next one
  ptrdiff_t plane;  // from a plane to the next one
  int n;
};

template <class Real>
[[gnu::always_inline]] inline void advance_row(const Row<Real>& row) {
  constexpr Real kCentre = Real(3 * -205.0 / 72);
  constexpr Real kWeight[] = {Real(8.0 / 5), Real(-1.0 / 5), Real(8.0 / 315), Real(-1.0 / 560)};
  const Real* now = row.now;
  const Real* speed = row.speed;
  Real* __restrict next = row.next;
  const ptrdiff_t line = row.line, plane = row.plane;
  for (int x = 0; x < row.n; ++x) {
    Real sum = kCentre * now[x];
    for (int k = 1; k <= kHalo; ++k) {
      const Real ring = (now[x - k] + now[x + k]) + (now[x - k * line] + now[x + k * line]) +
                        (now[x - k * plane] + now[x + k * plane]);
      sum += kWeight[k - 1] * ring;
    }
    next[x] = Real(2) * now[x] - next[x] + speed[x] * sum;
  }
}

WIDEST void advance(const Row<float>& row) { advance_row(row); }
WIDEST void advance(const Row<double>& row) { advance_row(row); }

template <class Real>
class Wave {
 public:
  explicit Wave(const Options& options)
      : n_(options.n),
        line_(n_ + 2 * kHalo),
        plane_(line_ * line_),
        now_(static_cast<size_t>(plane_ * line_)),
        next_(now_.size()),
        speed_(now_.size()) {
    for (int z = 0; z < n_; ++z) {
      for (int y = 0; y < n_; ++y) {
        for (int x = 0; x < n_; ++x) speed_[at(z, y, x)] = courant(z, y, x, options.seed);
      }
    }
    for (int i = 0; i < n_; ++i) {
      const int inside = std::min({i, n_ - 1 - i, kSponge});
      const double depth = 0.015 * (kSponge - inside);
      damping_.push_back(Real(std::exp(-depth * depth)));
    }
  }

  // The planes [begin, end) of one step; all of them are done before anything else.
  void advance_planes(int begin, int end) {
    for (int z = begin; z < end; ++z) {
      for (int y = 0; y < n_; ++y) {
        const size_t i = at(z, y, 0);
        advance(Row<Real>{&now_[i], &next_[i], &speed_[i], line_, plane_, n_});
      }
    }
  }

  // The absorbing walls take from both fields, when all planes are done.
  void damp_planes(int begin, int end) {
    for (int z = begin; z < end; ++z) {
      for (int y = 0; y < n_; ++y) {
        const Real outer = damping_[z] * damping_[y];
        const bool all = outer != Real(1);
        for (int x = 0; x < n_; ++x) {
          if (!all && x == kSponge && n_ > 2 * kSponge) x = n_ - kSponge;
          const Real factor = outer * damping_[x];
          now_[at(z, y, x)] *= factor;
          next_[at(z, y, x)] *= factor;
        }
      }
    }
  }

  void finish_step(int step) {
    const double t = step * kTimeStep - 1.2 / kFrequency;
    const double a = 9.869604401089358 * kFrequency * kFrequency * t * t;
    next_[at(std::min(kSourceDepth, n_ / 2), n_ / 2, n_ / 2)] += Real((1 - 2 * a) * std::exp(-a));
    std::swap(now_, next_);
  }

  void write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    for (int z = 0; z < n_; ++z) {
      for (int y = 0; y < n_; ++y) {
        file.write(reinterpret_cast<const char*>(&now_[at(z, y, 0)]),
                   static_cast<std::streamsize>(sizeof(Real)) * n_);
      }
    }
    file.flush();
    if (!file.good()) throw std::runtime_error("cannot write " + path);
  }

  Real greatest() const {
    Real most = 0;
    for (const Real value : now_) most = std::max(most, std::abs(value));
    return most;
  }

 private:
  size_t at(int z, int y, int x) const {
    return static_cast<size_t>((z + kHalo) * plane_ + (y + kHalo) * line_ + x + kHalo);
  }

  // (speed * time step / spacing)^2 of a point.
  Real courant(int z, int y, int x, uint32_t seed) const {
    const double depth = double(z) / n_;
    double speed = depth < 0.20 ? 1500 : depth < 0.45 ? 2200 : depth < 0.70 ? 3000 : 4000;
    const std::array<double, 3> body = {(depth - 0.55) / 0.14, (double(y) / n_ - 0.5) / 0.22,
                                        (double(x) / n_ - 0.45) / 0.18};
    if (body[0] * body[0] + body[1] * body[1] + body[2] * body[2] < 1) speed = kFastest;
    const auto index = static_cast<uint32_t>((z * n_ + y) * n_ + x);
    speed *= 1 + 0.01 * (2 * uniform(index, seed) - 1);
    const double ratio = speed * kTimeStep / kSpacing;
    return Real(ratio * ratio);
  }

  static double uniform(uint32_t index, uint32_t seed) {
    uint32_t h = index * 0x9E3779B1U + seed;
    h = (h ^ (h >> 16)) * 0x7FEB352DU;
    h = (h ^ (h >> 15)) * 0x846CA68BU;
    h ^= h >> 16;
    return h / 4294967296.0;
  }

  int n_;
  ptrdiff_t line_, plane_;
  std::vector<Real> now_, next_, speed_, damping_;
};

template <class Real>
void run(const Options& options) {
  set_denormals(options.denormals);
  Wave<Real> wave(options);
  const int last = *std::max_element(options.steps.begin(), options.steps.end());
  const int threads = std::min(options.threads, options.n);
  const bool progress = !options.quiet && isatty(STDERR_FILENO);
  std::string failure;
  int step = 0;
  const auto after_step = [&]() noexcept {
    try {
      wave.finish_step(step++);
      if (std::count(options.steps.begin(), options.steps.end(), step)) {
        const std::string name =
            options.out + "/wave_t" + std::to_string(step) + (sizeof(Real) == 4 ? ".f32" : ".f64");
        wave.write(name);
        if (!options.quiet)
          std::fprintf(stderr, "%s%s: up to %.3g\n", progress ? "\r" : "", name.c_str(),
                       double(wave.greatest()));
      }
    } catch (const std::exception& error) {
      failure = error.what();
      step = last;
    }
    if (progress) std::fprintf(stderr, "\rstep %d of %d ", step, last);
  };
  std::barrier half(threads);
  std::barrier whole(threads, after_step);
  const auto work = [&](int thread) {
    set_denormals(options.denormals);
    const int begin = options.n * thread / threads, end = options.n * (thread + 1) / threads;
    while (step < last) {
      wave.advance_planes(begin, end);
      half.arrive_and_wait();
      wave.damp_planes(begin, end);
      whole.arrive_and_wait();
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  if (progress) std::fprintf(stderr, "\n");
  if (!failure.empty()) throw std::runtime_error(failure);
}

int number(const std::string& text, int least) {
  size_t used = 0;
  int value = 0;
  try {
    value = std::stoi(text, &used);
  } catch (const std::logic_error&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < least)
    throw std::runtime_error("\"" + text + "\" is no number from " + std::to_string(least) + " on");
  return value;
}

void add_steps(const std::string& list, std::vector<int>* steps) {
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    steps->push_back(number(list.substr(begin, end - begin), 1));
    begin = end + 1;
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::runtime_error(name + " wants a value");
      return argv[i];
    };
    if (name == "--steps") {
      add_steps(value(), &options.steps);
    } else if (name == "--nineteen") {
      for (int step = 40; step <= 760; step += 40) options.steps.push_back(step);
    } else if (name == "--out") {
      options.out = value();
    } else if (name == "--n") {
      options.n = number(value(), 16);
    } else if (name == "--double") {
      options.use_double = true;
    } else if (name == "--denormals") {
      options.denormals = true;
    } else if (name == "--seed") {
      options.seed = static_cast<uint32_t>(number(value(), 0));
    } else if (name == "--threads") {
      options.threads = number(value(), 1);
    } else if (name == "--quiet") {
      options.quiet = true;
    } else {
      throw std::runtime_error("unknown option " + name + "; see --help");
    }
  }
  if (options.steps.empty()) options.steps = {100, 200, 400, 800};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return std::fputs(kHelp, stdout), 0;
  }
  try {
    const Options options = parse(argc, argv);
    options.use_double ? run<double>(options) : run<float>(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wavefield: %s\n", error.what());
    return 1;
  }
  return 0;
}
