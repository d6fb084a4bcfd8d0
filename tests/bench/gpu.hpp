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
#include "codecs/qsgd/warp.hpp"
#include "codecs/shuffle/warp.hpp"
#include "codecs/signsgd/warp.hpp"
#include "codecs/tbq/warp.hpp"
#include "codecs/terngrad/warp.hpp"
#include "codecs/topk/topk.hpp"
#include "codecs/zeros/warp.hpp"
#include "codecs/zfp/warp.hpp"
#include "pipeline/recipe.hpp"
#include "tests/bench/gpu_frames.hpp"

// The last one: its names would hide those of others.
#include "codecs/fre/warp.hpp"

namespace wirepress::bench {

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
  for (const char* recipe : {"onebit", "int8", "terngrad"})
    frames.pieces_row(recipe, std::min(size, kBucket));
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
