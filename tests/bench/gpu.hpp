// SPDX-License-Identifier: Apache-2.0
// Kernels of the engine cuda on memory of the device, beside a copy there: one block at a time, and
// whole frames by the C door's jobs. The text is the same for a GPU (gpu.cu) and for the emulator
// (gpu.cpp), whose times say nothing. Prints a line of JSON for the device and one for each row, as
// soon as it is measured. B, the backend:
//
//   using Device;                        // kernel.hpp's D
//   static constexpr const char* kEngine;                       // of wpr_device_alloc
//   static std::string name();
//   template <class F> static double seconds(Device&, F f);     // of what f launches
//   static Status copy(Device&, std::byte* to, const std::byte* from, size_t size);
//   static void rivals(Device&, const std::vector<std::byte>& raw, const std::byte* there,
//                      int rounds);                             // rows of other libraries
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codecs/bf16/warp.hpp"
#include "codecs/bx/warp.hpp"
#include "codecs/common/sparse/warps.hpp"
#include "codecs/dgc/dgc.hpp"
#include "codecs/fp16/warp.hpp"
#include "codecs/graddrop/graddrop.hpp"
#include "codecs/int4/warp.hpp"
#include "codecs/int8/warp.hpp"
#include "codecs/onebit/warp.hpp"
#include "codecs/planes/warp.hpp"
#include "codecs/qsgd/warp.hpp"
#include "codecs/shuffle/warp.hpp"
#include "codecs/signsgd/warp.hpp"
#include "codecs/tbq/warp.hpp"
#include "codecs/terngrad/warp.hpp"
#include "codecs/topk/topk.hpp"
#include "codecs/zeros/warp.hpp"
#include "codecs/zfp/warp.hpp"
#include "pipeline/recipe.hpp"
#include "wirepress/wirepress.h"

// The last one: its names would hide those of others.
#include "codecs/fre/warp.hpp"

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

// Kernels of one block.
template <class B>
class Gpu {
 public:
  Gpu(size_t size, int rounds) : size_(size), rounds_(rounds), raw_(gradients(size)) {
    require(device_.open());
    require(from_.prepare(size));
    require(to_.prepare(size));
    require(residual_.prepare(size));
    require(report_.prepare(sizeof(cuda::Report)));
    require(device_.upload(from_.get(), raw_));
    require(device_.finish());
    const double copy = best([&] { require(B::copy(device_, to_.get(), from_.get(), size_)); });
    std::printf("{\"device\": \"%s\", \"size\": %zu, \"rounds\": %d, \"copy_s\": %.9g}\n",
                B::name().c_str(), size_, rounds_, copy);
    std::fflush(stdout);
  }

  template <class C>
  void row(const char* recipe, DType dtype = DType::kFloat32) {
    Recipe parsed;
    require(parse_recipe(recipe, dtype, "auto", &parsed));
    const Args args = parsed.step[0].args;
    const Codec& codec = *parsed.step[0].entry->codec;
    cuda::Task task;
    prepare<C>(args, codec.bound(args, size_), &task);
    const double encode = best([&] { run_encode<C, false>(args, task); });
    const size_t written = report().written;
    compare(*choose_kernel(*parsed.step[0].entry, "auto"), args, codec, task, written);
    task.code_size = written;
    task.raw = to_.get();
    const double decode = best([&] { run_decode<C, false>(args, task); });
    double feedback = 0, add = 0;
    if constexpr (C::kGradients) {
      add = best([&] { run_decode<C, true>(args, task); });
      task.raw = from_.get();
      task.code_size = codec.bound(args, size_);
      task.residual = residual_.get();
      require(device_.clear(residual_.get(), size_));
      feedback = best([&] { run_encode<C, true>(args, task); });
    }
    std::printf(
        "{\"kind\": \"block\", \"recipe\": \"%s\", \"dtype\": \"%s\", \"ratio\": %.4f, "
        "\"encode_s\": %.9g, \"decode_s\": %.9g, \"encode_feedback_s\": %.9g, "
        "\"decode_add_s\": %.9g}\n",
        recipe, dtype_name(dtype), static_cast<double>(size_) / static_cast<double>(written),
        encode, decode, feedback, add);
    std::fflush(stdout);
  }

  void rivals() { B::rivals(device_, raw_, from_.get(), rounds_); }

 private:
  using Memory = typename B::Device::Memory;

  template <class F>
  double best(F f) {
    return least(rounds_, [&] { return B::seconds(device_, f); });
  }

  template <class C>
  void prepare(const Args& args, size_t code_size, cuda::Task* task) {
    // One piece of memory serves both ways.
    scratch_size_ = std::max(C::scratch(args, size_), cuda::decode_scratch<C>(args, size_));
    require(code_.prepare(code_size));
    require(scratch_.prepare(scratch_size_));
    const cuda::Report nothing = {0, cuda::Report::kNone, 0, 0};
    require(device_.upload(report_.get(), std::as_bytes(std::span(&nothing, 1))));
    require(device_.finish());
    *task = {from_.get(),
             size_,
             nullptr,
             code_.get(),
             code_size,
             scratch_.get(),
             reinterpret_cast<cuda::Report*>(report_.get())};
  }
  // Clearing the scratch memory is a part of the work.
  template <class C, bool kFeedback>
  void run_encode(const Args& args, const cuda::Task& task) {
    if (scratch_size_ > 0) require(device_.clear(scratch_.get(), scratch_size_));
    const Status status = C::template encode<kFeedback>(device_, args, task);
    require(status);
  }
  template <class C, bool kAdd>
  void run_decode(const Args& args, const cuda::Task& task) {
    if (scratch_size_ > 0) require(device_.clear(scratch_.get(), scratch_size_));
    const Status status = C::template decode<kAdd>(device_, args, task);
    require(status);
  }

  cuda::Report report() {
    cuda::Report report;
    require(device_.download(std::as_writable_bytes(std::span(&report, 1)), report_.get()));
    require(device_.finish());
    if (report.full != 0 || report.elsewhere != 0 || report.first_bad != cuda::Report::kNone)
      require(fail(Code::kDevice, "the kernel says that a valid block is none"));
    return report;
  }

  // The code against that of a kernel of the processor.
  void compare(const Kernel& kernel, const Args& args, const Codec& codec, const cuda::Task& task,
               size_t written) {
    std::vector<std::byte> expected(codec.bound(args, size_)), code(written);
    size_t size = 0;
    void* state = nullptr;
    if (kernel.open != nullptr) require(kernel.open(args, &state));
    require(kernel.encode(state, args, raw_, expected, &size));
    if (kernel.close != nullptr) kernel.close(state);
    require(device_.download(code, task.code));
    require(device_.finish());
    if (size != written || std::memcmp(code.data(), expected.data(), size) != 0)
      require(
          fail(Code::kDevice, "%s: the device wrote other bytes than the processor", codec.name));
  }

  typename B::Device device_;
  Memory from_, to_, residual_, code_, scratch_, report_;
  size_t size_, scratch_size_ = 0;
  int rounds_;
  std::vector<std::byte> raw_;
};

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

 private:
  static constexpr int kQueued = 4;

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
      return std::strcmp(kernel->engine, "cuda") == 0 && kernel->encode_feedback != nullptr;
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

constexpr size_t kBucket = 25 << 20;  // of DDP

template <class B>
int run_gpu(size_t size, int rounds) {
  Gpu<B> gpu(size, rounds);
  gpu.template row<bx::Warps>("bx:m=5");
  gpu.template row<bx::Warps>("bx:m=0");
  gpu.template row<bx::Warps>("bx:m=4", DType::kBfloat16);
  gpu.template row<chunks::WarpChunks<onebit::Warps>>("onebit");
  gpu.template row<chunks::WarpChunks<signsgd::Warps>>("signsgd");
  gpu.template row<chunks::WarpChunks<terngrad::Warps>>("terngrad");
  gpu.template row<chunks::WarpChunks<Int8Warps>>("int8");
  gpu.template row<chunks::WarpChunks<Int4Warps>>("int4");
  gpu.template row<chunks::WarpChunks<Bf16Warps>>("bf16");
  gpu.template row<chunks::WarpChunks<Fp16Warps>>("fp16");
  gpu.template row<tbq::WarpBlocks>("tbq");
  gpu.template row<chunks::WarpChunks<qsgd::Warps>>("qsgd");
  gpu.template row<sparse::WarpBlocks<topk::Rules>>("topk");
  gpu.template row<sparse::WarpBlocks<dgc::Rules>>("dgc");
  gpu.template row<sparse::WarpBlocks<graddrop::Rules>>("graddrop");
  gpu.template row<FreWarps>("fre:m=5,ways=0");
  gpu.template row<zfp::Warps>("zfp:rate=8");
  gpu.template row<zfp::Warps>("zfp:accuracy=1e-3");
  gpu.template row<zfp::Warps>("zfp:precision=12");
  gpu.template row<zeros::Warps>("zeros");
  gpu.template row<shuffle::Warps>("shuffle:4");
  gpu.rivals();
  // Of fre with few streams, and of planes, one block is a chain: those are measured as frames.
  Frames<B> frames(rounds);
  for (const size_t bytes : {std::min(size, kBucket), size}) {
    for (const char* recipe :
         {"onebit", "bx:m=5", "int8", "terngrad", "tbq", "topk:ratio=0.01", "dgc", "bf16",
          "fre:m=5", "fre:m=5,ways=0", "zfp:rate=8", "zfp:accuracy=1e-3", "planes"})
      frames.row(recipe, WPR_FLOAT32, bytes);
    frames.row("planes", WPR_BFLOAT16, bytes);
    if (bytes == size) break;
  }
  return 0;
}

// gpu_bench MIB ROUNDS
template <class B>
int gpu_main(int argc, char** argv) {
  const size_t mib = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc != 3 || mib == 0 || rounds <= 0)
    return std::fprintf(stderr, "use: %s MIB ROUNDS\n", argv[0]), 2;
  return run_gpu<B>(mib << 20, rounds);
}

}  // namespace wirepress::bench
