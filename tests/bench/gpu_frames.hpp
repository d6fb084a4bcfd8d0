// SPDX-License-Identifier: Apache-2.0
// Whole frames by the C door's jobs, for gpu.hpp, and what both measure with.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel.hpp"
#include "codecs/common/random.hpp"
#include "pipeline/recipe.hpp"
#include "wirepress/wirepress.h"

namespace wirepress::bench {

inline void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gpu_bench: %s\n", status.text());
  std::exit(1);
}

// Gradients: 40 % zeros, sizes over many exponents, both signs.
inline std::vector<std::byte> gradients(size_t size) {
  std::vector<std::byte> raw(size);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    const uint32_t drawn = random_bits(1, i), shift = random_bits(2, i) % 12;
    const float value = random_bits(3, i) % 5 < 2
                            ? 0.0f
                            : static_cast<float>(static_cast<int32_t>(drawn)) * 0x1p-40f /
                                  static_cast<float>(1u << shift);
    std::memcpy(raw.data() + i, &value, 4);
  }
  return raw;
}

// The least seconds of some runs, of which the first warms up: at most `rounds`, and no more than a
// row's share of the time for which a device is lent, but two.
constexpr double kMostSeconds = 0.3;
template <class F>
double least(int rounds, F run) {
  run();
  double best = 1e9, all = 0;
  for (int i = 0; i < rounds && (i < 2 || all < kMostSeconds); ++i) {
    const double seconds = run();
    best = std::min(best, seconds);
    all += seconds;
  }
  return best;
}

// Frames of blocks of the default size, by jobs: the wall's clock from the call until the job is
// done; of kQueued jobs on their way together, a job's share; 0 where a recipe has no such job.
// cores_bytes: raw bytes that the cores coded or expanded in the device's place.
template <class B>
class Frames {
 public:
  explicit Frames(int rounds) : rounds_(rounds) { done(wpr_create(&ctx_)); }
  ~Frames() { wpr_free(ctx_); }
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;

  void row(const char* recipe, wpr_dtype dtype, size_t size) {
    done(wpr_set(ctx_, "recipe", recipe));
    const std::vector<std::byte> raw = gradients(size);
    const Memory from(ctx_, size), to(ctx_, size), residual(ctx_, size);
    done(wpr_copy(ctx_, from.at, raw.data(), size));
    const uint64_t n = size / wpr_dtype_size(dtype);
    const size_t room = wpr_bound(ctx_, size);
    std::vector<Memory> codes;
    for (int i = 0; i < kQueued; ++i) codes.emplace_back(ctx_, room);
    std::vector<std::byte> frame(room);
    wpr_device_work before, after;
    wpr_get_device_work(&before);
    const auto compress = [&](void* dst, wpr_job** job) {
      done(wpr_compress_async(ctx_, from.at, dtype, WPR_NO_SHAPE, &n, dst, room, job));
    };
    size_t written = 0;
    const double there = wall([&](wpr_job** job) { compress(codes[0].at, job); }, &written);
    const double queued = least(rounds_, [&] {
      wpr_job* jobs[kQueued];
      const double begin = seconds();
      for (int i = 0; i < kQueued; ++i) compress(codes[i].at, &jobs[i]);
      for (wpr_job* job : jobs) done(wpr_wait(ctx_, job, &written));
      return (seconds() - begin) / kQueued;
    });
    const double here = wall([&](wpr_job** job) { compress(frame.data(), job); }, &written);
    frame.resize(written);
    size_t expanded = 0;
    const double expand = wall(
        [&](wpr_job** job) {
          done(wpr_decompress_async(ctx_, frame.data(), written, to.at, size, job));
        },
        &expanded);
    const double expand_there = least(rounds_, [&] {
      const double begin = seconds();
      done(wpr_decompress(ctx_, codes[0].at, written, to.at, size, &expanded));
      return seconds() - begin;
    });
    double feedback = 0, add = 0;
    if (dtype == WPR_FLOAT32 && has_feedback(recipe)) {
      const std::vector<std::byte> zeros(size);
      done(wpr_copy(ctx_, residual.at, zeros.data(), size));
      feedback = wall(
          [&](wpr_job** job) {
            done(wpr_compress_feedback_async(ctx_, from.at, dtype, static_cast<float*>(residual.at),
                                             n, codes[0].at, room, job));
          },
          &expanded);
      add = wall(
          [&](wpr_job** job) {
            done(wpr_decompress_add_async(ctx_, frame.data(), written, to.at, dtype, size, job));
          },
          &expanded);
    }
    wpr_get_device_work(&after);
    compare(raw, dtype, n, frame);
    std::printf(
        "{\"kind\": \"frame\", \"recipe\": \"%s\", \"dtype\": \"%s\", \"size\": %zu, "
        "\"ratio\": %.4f, \"compress_s\": %.9g, \"compress_queued_s\": %.9g, "
        "\"compress_to_cores_s\": %.9g, \"expand_s\": %.9g, \"expand_from_cores_s\": %.9g, "
        "\"compress_feedback_s\": %.9g, \"add_from_cores_s\": %.9g, \"cores_bytes\": %llu}\n",
        recipe, wpr_dtype_name(dtype), size,
        static_cast<double>(size) / static_cast<double>(written), there, queued, here, expand_there,
        expand, feedback, add,
        static_cast<unsigned long long>(after.cores_bytes - before.cores_bytes));
    std::fflush(stdout);
  }

  // A bucket of `size` bytes in kPieces with residuals, as a step of training has it: as one job,
  // as jobs on their way together, and by calls that wait.
  void pieces_row(const char* recipe, size_t size) {
    done(wpr_set(ctx_, "recipe", recipe));
    const size_t n = size / kPieces / 4096 * 1024, room = wpr_bound(ctx_, 4 * n);
    if (n == 0) return;
    const std::vector<std::byte> raw = gradients(4 * n * kPieces), zeros(raw.size());
    const Memory from(ctx_, raw.size()), residual(ctx_, raw.size());
    done(wpr_copy(ctx_, from.at, raw.data(), raw.size()));
    done(wpr_copy(ctx_, residual.at, zeros.data(), zeros.size()));
    std::vector<std::vector<std::byte>> frames(kPieces, std::vector<std::byte>(room));
    std::vector<wpr_piece> pieces;
    for (size_t i = 0; i < kPieces; ++i)
      pieces.push_back({static_cast<float*>(from.at) + i * n, n,
                        static_cast<float*>(residual.at) + i * n, frames[i].data(), room, 0, 0});
    size_t written = 0;
    const double one = wall(
        [&](wpr_job** job) {
          done(wpr_compress_pieces_async(ctx_, pieces.data(), kPieces, WPR_FLOAT32, job));
        },
        &written);
    const auto begin = [&](const wpr_piece& piece, wpr_job** job) {
      done(wpr_compress_feedback_async(ctx_, piece.src, WPR_FLOAT32, piece.residual, n, piece.dst,
                                       room, job));
    };
    const double jobs = least(rounds_, [&] {
      std::vector<wpr_job*> begun(kPieces);
      const double start = seconds();
      for (size_t i = 0; i < kPieces; ++i) begin(pieces[i], &begun[i]);
      for (wpr_job* job : begun) done(wpr_wait(ctx_, job, &written));
      return seconds() - start;
    });
    const double calls = least(rounds_, [&] {
      const double start = seconds();
      for (const wpr_piece& piece : pieces)
        done(wpr_compress_feedback(ctx_, static_cast<const float*>(piece.src), piece.residual, n,
                                   piece.dst, room, &written));
      return seconds() - start;
    });
    std::printf(
        "{\"kind\": \"pieces\", \"recipe\": \"%s\", \"pieces\": %zu, \"size\": %zu, "
        "\"one_job_s\": %.9g, \"jobs_s\": %.9g, \"calls_s\": %.9g}\n",
        recipe, kPieces, 4 * n * kPieces, one, jobs, calls);
    std::fflush(stdout);
  }

 private:
  static constexpr int kQueued = 4;
  static constexpr size_t kPieces = 64;

  struct Memory {
    wpr_ctx* ctx;
    void* at = nullptr;
    Memory(wpr_ctx* owner, size_t size) : ctx(owner) {
      done_with(ctx, wpr_device_alloc(ctx, B::kEngine, 0, size, &at));
    }
    Memory(Memory&& other) noexcept : ctx(other.ctx), at(std::exchange(other.at, nullptr)) {}
    ~Memory() { wpr_device_free(ctx, at); }
  };

  static void done_with(wpr_ctx* ctx, wpr_status status) {
    if (status == WPR_OK) return;
    std::fprintf(stderr, "gpu_bench: %s\n", ctx == nullptr ? "no context" : wpr_error(ctx));
    std::exit(1);
  }
  void done(wpr_status status) const { done_with(ctx_, status); }
  static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  // Whether kernels of devices code gradients with error feedback.
  static bool has_feedback(const char* recipe) {
    Recipe parsed;
    require(parse_recipe(recipe, DType::kFloat32, "auto", &parsed));
    return std::ranges::any_of(parsed.step[0].entry->kernels, [](const Kernel* kernel) {
      const StreamKernel* there = kernel->on_stream;
      return std::strcmp(kernel->engine, "cuda") == 0 && there != nullptr &&
             (there->encode_feedback != nullptr || there->decode_made != nullptr);
    });
  }

  template <class F>
  double wall(F begin_job, size_t* written) const {
    return least(rounds_, [&] {
      wpr_job* job = nullptr;
      const double begin = seconds();
      begin_job(&job);
      done(wpr_wait(ctx_, job, written));
      return seconds() - begin;
    });
  }

  // The frame against that of the cores.
  void compare(const std::vector<std::byte>& raw, wpr_dtype dtype, uint64_t n,
               const std::vector<std::byte>& frame) const {
    std::vector<std::byte> expected(wpr_bound(ctx_, raw.size()));
    size_t size = 0;
    done(wpr_compress_array(ctx_, raw.data(), dtype, WPR_NO_SHAPE, &n, expected.data(),
                            expected.size(), &size));
    if (size == frame.size() && std::memcmp(expected.data(), frame.data(), size) == 0) return;
    std::fprintf(stderr, "gpu_bench: the device made another frame than the processor\n");
    std::exit(1);
  }

  wpr_ctx* ctx_ = nullptr;
  int rounds_;
};

}  // namespace wirepress::bench
