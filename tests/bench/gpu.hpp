// SPDX-License-Identifier: Apache-2.0
// Kernels of the engine cuda on memory of the device, beside a copy there. The text is the same for
// a GPU (gpu.cu) and for the emulator (gpu.cpp), whose times say nothing. B, the backend:
//
//   using Device;                        // kernel.hpp's D
//   static std::string name();
//   template <class F> static double seconds(Device&, F f);     // of what f launches
//   static Status copy(Device&, std::byte* to, const std::byte* from, size_t size);
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

// The last one: its names would hide those of others.
#include "codecs/fre/warp.hpp"

namespace wirepress::bench {

inline void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "gpu_bench: %s\n", status.text());
  std::exit(1);
}

template <class B>
class Gpu {
 public:
  Gpu(size_t size, int rounds) : size_(size), rounds_(rounds), raw_(size) {
    // Gradients: 40 % zeros, sizes over many exponents, both signs.
    for (size_t i = 0; i + 4 <= size; i += 4) {
      const uint32_t drawn = random_bits(1, i), shift = random_bits(2, i) % 12;
      const float value = random_bits(3, i) % 5 < 2
                              ? 0.0f
                              : static_cast<float>(static_cast<int32_t>(drawn)) * 0x1p-40f /
                                    static_cast<float>(1u << shift);
      std::memcpy(raw_.data() + i, &value, 4);
    }
    require(device_.open());
    require(from_.prepare(size));
    require(to_.prepare(size));
    require(residual_.prepare(size));
    require(report_.prepare(sizeof(cuda::Report)));
    require(device_.upload(from_.get(), raw_));
    require(device_.finish());
    copy_ = best([&] { require(B::copy(device_, to_.get(), from_.get(), size_)); });
    std::printf("{\"device\": \"%s\", \"size\": %zu, \"rounds\": %d, \"copy_s\": %.9g, \"rows\": [",
                B::name().c_str(), size_, rounds_, copy_);
  }
  ~Gpu() { std::printf("\n]}\n"); }

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
    compare(*parsed.step[0].entry->kernels.back(), args, codec, task, written);
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
        "%s\n  {\"recipe\": \"%s\", \"dtype\": \"%s\", \"ratio\": %.4f, \"encode_s\": %.9g, "
        "\"decode_s\": %.9g, \"encode_feedback_s\": %.9g, \"decode_add_s\": %.9g}",
        comma_, recipe, dtype_name(dtype),
        static_cast<double>(size_) / static_cast<double>(written), encode, decode, feedback, add);
    comma_ = ",";
  }

 private:
  using Memory = typename B::Device::Memory;

  template <class F>
  double best(F f) {
    double seconds = 1e9;
    for (int i = 0; i <= rounds_; ++i) {  // the first one warms up
      const double now = B::seconds(device_, f);
      if (i > 0) seconds = std::min(seconds, now);
    }
    return seconds;
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

  // The code against that of the processor's portable kernel.
  void compare(const Kernel& portable, const Args& args, const Codec& codec, const cuda::Task& task,
               size_t written) {
    std::vector<std::byte> expected(codec.bound(args, size_)), code(written);
    size_t size = 0;
    void* state = nullptr;
    if (portable.open != nullptr) require(portable.open(args, &state));
    require(portable.encode(state, args, raw_, expected, &size));
    if (portable.close != nullptr) portable.close(state);
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
  double copy_ = 0;
  const char* comma_ = "";
};

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
  gpu.template row<FreWarps>("fre:m=5");
  gpu.template row<FreWarps>("fre:m=5,ways=4");
  gpu.template row<FreWarps>("fre:m=5,ways=0");
  gpu.template row<zfp::Warps>("zfp:rate=8");
  gpu.template row<zfp::Warps>("zfp:accuracy=1e-3");
  gpu.template row<zfp::Warps>("zfp:precision=12");
  gpu.template row<planes::Warps>("planes");
  gpu.template row<planes::Warps>("planes", DType::kBfloat16);
  gpu.template row<zeros::Warps>("zeros");
  gpu.template row<shuffle::Warps>("shuffle:4");
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
