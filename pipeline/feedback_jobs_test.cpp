// SPDX-License-Identifier: Apache-2.0
// Jobs with error feedback, and jobs that add (wirepress.h), on streams of the emulator's devices:
// frames, residuals and sums have the bits of the calls that wait, with data on the cores. What a
// failed job has not begun with stays as it was.
#include <cmath>
#include <random>

#include "pipeline/jobs_script.hpp"
#include "pipeline/work_script.hpp"

namespace wirepress::job_tests {
namespace {

// All that has kernels with error feedback, and codes of every size beside the blocks'; then what
// is coded and added in parts.
constexpr const char* kGradients[] = {"onebit",
                                      "onebit:block=7",
                                      "signsgd",
                                      "terngrad",
                                      "tbq",
                                      "tbq:tau=1e-7",
                                      "qsgd",
                                      "graddrop",
                                      "topk",
                                      "topk:ratio=0.6",
                                      "dgc",
                                      "dgc:ratio=0.5",
                                      "int8",
                                      "int4",
                                      "fp8",
                                      "bf16",
                                      "fp16",
                                      "bx:m=5",
                                      "bx:m=1",
                                      "fre:m=5,ways=0",
                                      "fre:m=9",
                                      "zfp:rate=8",
                                      "zfp:accuracy=1e-5",
                                      "zfp:precision=9"};

float* floats(Data& data) { return reinterpret_cast<float*>(data.data()); }

// The sentence of a call that a device has failed which had begun.
void expect_undefined(Context* ctx, bool adds) {
  const std::string error = ctx->error(), lost = adds ? "dst" : "the residual";
  EXPECT_NE(error.find(lost + " is undefined"), std::string::npos) << error;
}

// Halves of size 1 at most, with zeros of both signs among them.
Data halves(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  Data data(2 * n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = random();
    const auto word = static_cast<uint16_t>(bits >> 30 == 0 ? bits & 0x8000 : bits & 0xBFFF);
    std::memcpy(&data[2 * i], &word, 2);
  }
  return data;
}

Data values(size_t n, wpr_dtype dtype, unsigned seed) {
  return dtype == WPR_FLOAT32 ? gradient(4 * n, seed) : halves(n, seed);
}

// A gradient, a residual and a sum, on the cores and on a device.
struct Step {
  Step(size_t n_values, unsigned seed, wpr_dtype type = WPR_FLOAT32)
      : n(n_values),
        dtype(type),
        raw(values(n, dtype, seed)),
        rest(gradient(4 * n, seed + 1)),
        sum(values(n, dtype, seed + 2)),
        raw_there(raw),
        rest_there(rest),
        sum_there(sum) {}
  // By the calls that wait, on the cores.
  wpr_status expect(wpr_ctx* ctx) {
    frame.resize(wpr_bound(ctx, 4 * n));
    size_t size = 0, n_values = 0;
    const wpr_status status = wpr_compress_feedback_typed(ctx, raw.data(), dtype, floats(rest), n,
                                                          frame.data(), frame.size(), &size);
    frame.resize(status == WPR_OK ? size : 0);
    if (status != WPR_OK) return status;
    return wpr_decompress_add_typed(ctx, frame.data(), size, sum.data(), dtype, n, &n_values);
  }
  wpr_status compress(wpr_ctx* ctx, void* dst, size_t cap, wpr_job** job) {
    return wpr_compress_feedback_async(ctx, raw_there.get(), dtype,
                                       static_cast<float*>(rest_there.get()), n, dst, cap, job);
  }
  wpr_status add(wpr_ctx* ctx, const void* from, wpr_job** job) {
    return wpr_decompress_add_async(ctx, from, frame.size(), sum_there.get(), dtype, n, job);
  }

  size_t n;
  wpr_dtype dtype;
  Data raw, rest, sum, frame;
  There raw_there, rest_there, sum_there;
};

// Frames to memory of either side, and sums of frames in either, step by step.
void exchange(const std::string& recipe, size_t n, const char* block_size, uint64_t seed,
              wpr_dtype dtype = WPR_FLOAT32) {
  SCOPED_TRACE(recipe + ", " + std::to_string(n) + " of " + wpr_dtype_name(dtype) +
               " in blocks of " + block_size);
  Context ctx(recipe);
  ctx.set("block_size", block_size);
  ASSERT_EQ(ctx.status, WPR_OK);
  ctx.set("seed", std::to_string(seed).c_str());
  EmulatedStream stream(seed % 4);
  ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
  Step step(n, static_cast<unsigned>(seed), dtype);
  for (const bool to_device : {false, true, false}) {
    ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
    Data here(wpr_bound(ctx, 4 * n));
    There there(here.size());
    wpr_job* job = nullptr;
    size_t written = 0;
    const Work work;
    ASSERT_EQ(step.compress(ctx, to_device ? there.get() : here.data(), here.size(), &job), WPR_OK)
        << ctx.error();
    ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
    if (to_device) here = there.data();
    here.resize(written);
    EXPECT_EQ(here, step.frame);
    EXPECT_EQ(step.rest_there.data(), step.rest);
    EXPECT_EQ(work.device(), 4 * n);
    ASSERT_EQ(step.add(ctx, step.frame.data(), &job), WPR_OK) << ctx.error();
    ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
    EXPECT_EQ(written, n);
    EXPECT_EQ(step.sum_there.data(), step.sum);
    EXPECT_EQ(work.device(), 8 * n);
    EXPECT_EQ(work.cores(), 0u) << work.reason();
  }
  EXPECT_EQ(step.raw_there.data(), step.raw);
}

TEST(FeedbackJobs, EveryCodecAndSizeDoesAsTheCallThatWaits) {
  uint64_t seed = 0;
  for (const char* recipe : kGradients)
    for (const size_t n : {size_t{1}, size_t{2}, size_t{5}, size_t{33}, size_t{1000}, size_t{1024},
                           size_t{1025}, size_t{4099}, size_t{9001}})
      exchange(recipe, n, "4KiB", ++seed);
}

TEST(FeedbackJobs, LargeBlocksDoTheSame) {
  uint64_t seed = 0;
  for (const char* recipe : kGradients) exchange(recipe, 150001, "256KiB", ++seed);
}

TEST(FeedbackJobs, HalvesDoAsTheCallThatWaits) {
  uint64_t seed = 0;
  for (const char* recipe : kGradients)
    for (const wpr_dtype dtype : {WPR_BFLOAT16, WPR_FLOAT16})
      for (const size_t n : {size_t{5}, size_t{33}, size_t{1024}, size_t{9001}})
        exchange(recipe, n, "4KiB", ++seed, dtype);
}

// What the cores give for every word that halves have.
TEST(FeedbackJobs, EveryHalfDoesTheSame) {
  constexpr size_t kN = 65536;
  for (const wpr_dtype dtype : {WPR_BFLOAT16, WPR_FLOAT16}) {
    SCOPED_TRACE(wpr_dtype_name(dtype));
    Context ctx("int8");
    EmulatedStream stream(1);
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    Step step(kN, 3, dtype);
    std::fill(step.rest.begin(), step.rest.end(), uint8_t{0});
    ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
    for (size_t i = 0; i < kN; ++i) {
      const auto word = static_cast<uint16_t>(i);
      std::memcpy(&step.sum[2 * i], &word, 2);
    }
    ASSERT_EQ(wpr_copy(ctx, step.sum_there.get(), step.sum.data(), step.sum.size()), WPR_OK);
    size_t n_values = 0;
    ASSERT_EQ(wpr_decompress_add_typed(ctx, step.frame.data(), step.frame.size(), step.sum.data(),
                                       dtype, kN, &n_values),
              WPR_OK);
    wpr_job* job = nullptr;
    ASSERT_EQ(step.add(ctx, step.frame.data(), &job), WPR_OK) << ctx.error();
    ASSERT_TRUE(finish(ctx, job, &stream, &n_values)) << ctx.error();
    EXPECT_EQ(step.sum_there.data(), step.sum);
  }
}

TEST(FeedbackJobs, ValuesThatAreNotFiniteDoTheSame) {
  for (const char* recipe : kGradients) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    EmulatedStream stream(1);
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    Step step(3000, 5);
    for (const size_t i : {0, 1500, 2999}) {
      const uint32_t word = i == 1500 ? 0xFF800000u : 0x7FC00000u;
      std::memcpy(&step.raw[4 * i], &word, 4);
    }
    ASSERT_EQ(wpr_copy(ctx, step.raw_there.get(), step.raw.data(), step.raw.size()), WPR_OK);
    ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
    Data here(wpr_bound(ctx, 12000));
    wpr_job* job = nullptr;
    size_t written = 0;
    ASSERT_EQ(step.compress(ctx, here.data(), here.size(), &job), WPR_OK) << ctx.error();
    ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
    here.resize(written);
    EXPECT_EQ(here, step.frame);
    EXPECT_EQ(step.rest_there.data(), step.rest);
  }
}

// What no kernel does so the call that waits does: another type, an odd address, several codecs,
// one without feedback there, a frame on the device.
TEST(FeedbackJobs, OthersAreDoneByTheCallThatWaits) {
  constexpr size_t kN = 3001;
  for (const char* recipe : {"onebit", "terngrad+trits", "topk+zstd:1", "bx:m=5", "zstd:1"}) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    if (ctx.status != WPR_OK) continue;
    EmulatedStream stream;
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    Step step(kN, 1);
    ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
    const There odd_raw(step.raw, 0, 4);
    Data here(wpr_bound(ctx, 4 * kN));
    wpr_job* job = nullptr;
    size_t written = 0;
    ASSERT_EQ(wpr_compress_feedback_async(ctx, odd_raw.get(), WPR_FLOAT32,
                                          static_cast<float*>(step.rest_there.get()), kN,
                                          here.data(), here.size(), &job),
              WPR_OK)
        << ctx.error();
    EXPECT_EQ(stream.put_count(), 0u);
    ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
    here.resize(written);
    EXPECT_EQ(here, step.frame);
    EXPECT_EQ(step.rest_there.data(), step.rest);
    const There frame(step.frame);
    ASSERT_EQ(step.add(ctx, frame.get(), &job), WPR_OK) << ctx.error();
    ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
    EXPECT_EQ(written, kN);
    EXPECT_EQ(step.sum_there.data(), step.sum);
  }
}

TEST(FeedbackJobs, CallsPutWorkOnTheStreamAndDoNotWait) {
  for (const char* recipe : kGradients) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    Step step(9001, 2);
    const Data rest = step.rest, sum = step.sum;
    ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
    EmulatedStream stream;
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    Data here(wpr_bound(ctx, 4 * step.n), 0x55);
    const Data untouched = here;
    wpr_job *made = nullptr, *added = nullptr;
    ASSERT_EQ(step.compress(ctx, here.data(), here.size(), &made), WPR_OK) << ctx.error();
    ASSERT_EQ(step.add(ctx, step.frame.data(), &added), WPR_OK) << ctx.error();
    int done = 1;
    size_t written = 0;
    for (wpr_job* job : {made, added}) {
      ASSERT_EQ(wpr_poll(ctx, job, &done, &written), WPR_OK);
      EXPECT_EQ(done, 0);
    }
    EXPECT_EQ(stream.done_count(), 0u) << "somebody has waited";
    EXPECT_EQ(here, untouched);
    EXPECT_EQ(step.rest_there.data(), rest);
    EXPECT_EQ(step.sum_there.data(), sum);
    ASSERT_EQ(wpr_wait(ctx, added, &written), WPR_OK) << ctx.error();
    ASSERT_EQ(wpr_wait(ctx, made, &written), WPR_OK) << ctx.error();
    here.resize(written);
    EXPECT_EQ(here, step.frame);
    EXPECT_EQ(step.rest_there.data(), step.rest);
    EXPECT_EQ(step.sum_there.data(), step.sum);
  }
}

TEST(FeedbackJobs, ManyBlocksTakeAsManyLaunchesAsOne) {
  for (const char* recipe : kGradients) {
    SCOPED_TRACE(recipe);
    uint64_t made[2], added[2];
    for (const size_t n_blocks : {size_t{1}, size_t{20}}) {
      Context ctx(recipe);
      Step step(1024 * n_blocks, 3);
      ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
      EmulatedStream stream(1);
      ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
      Data here(wpr_bound(ctx, 4 * step.n));
      wpr_job* job = nullptr;
      size_t written = 0;
      ASSERT_EQ(step.compress(ctx, here.data(), here.size(), &job), WPR_OK) << ctx.error();
      made[n_blocks > 1] = stream.put_count();
      ASSERT_EQ(wpr_wait(ctx, job, &written), WPR_OK) << ctx.error();
      EXPECT_EQ(step.rest_there.data(), step.rest);
      const uint64_t before = stream.put_count();
      ASSERT_EQ(step.add(ctx, step.frame.data(), &job), WPR_OK) << ctx.error();
      added[n_blocks > 1] = stream.put_count() - before;
      ASSERT_EQ(wpr_wait(ctx, job, &written), WPR_OK) << ctx.error();
    }
    EXPECT_EQ(made[0], made[1]);
    EXPECT_EQ(added[0], added[1]);
  }
}

// Calls that wait are jobs that are waited for.
TEST(FeedbackJobs, CallsThatWaitLaunchAllBlocksTogether) {
  for (const char* recipe : kGradients) {
    SCOPED_TRACE(recipe);
    uint64_t launches[4][2];
    for (const size_t n_blocks : {size_t{1}, size_t{20}}) {
      Context ctx(recipe);
      Step step(1024 * n_blocks, 3);
      ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
      Data here(wpr_bound(ctx, 4 * step.n)), plain = frame_of(ctx, step.raw, WPR_FLOAT32);
      There back(4 * step.n);
      size_t written = 0;
      const auto count = [&](size_t which, auto call) {
        const uint64_t before = cuda::emulated_launches(0);
        const Work work;
        ASSERT_EQ(call(), WPR_OK) << ctx.error();
        launches[which][n_blocks > 1] = cuda::emulated_launches(0) - before;
        EXPECT_EQ(work.device(), 4 * step.n);
        EXPECT_EQ(work.cores(), 0u) << work.reason();
      };
      const uint64_t shape = step.n;
      count(0, [&] {
        return wpr_compress_array(ctx, step.raw_there.get(), WPR_FLOAT32, WPR_NO_SHAPE, &shape,
                                  here.data(), here.size(), &written);
      });
      EXPECT_EQ(Data(here.begin(), here.begin() + static_cast<ptrdiff_t>(written)), plain);
      count(1, [&] {
        return wpr_decompress(ctx, plain.data(), plain.size(), back.get(), 4 * step.n, &written);
      });
      EXPECT_EQ(back.data(), values_of(ctx, plain, 4 * step.n));
      count(2, [&] {
        return wpr_compress_feedback(ctx, static_cast<float*>(step.raw_there.get()),
                                     static_cast<float*>(step.rest_there.get()), step.n,
                                     here.data(), here.size(), &written);
      });
      EXPECT_EQ(Data(here.begin(), here.begin() + static_cast<ptrdiff_t>(written)), step.frame);
      EXPECT_EQ(step.rest_there.data(), step.rest);
      count(3, [&] {
        return wpr_decompress_add(ctx, step.frame.data(), step.frame.size(),
                                  static_cast<float*>(step.sum_there.get()), step.n, &written);
      });
      EXPECT_EQ(step.sum_there.data(), step.sum);
    }
    for (const auto& [one, many] : launches) EXPECT_EQ(one, many);
  }
}

// Each operation fails in its turn. Before the first kernel nothing has changed, and the job is
// done nevertheless; behind it the job fails, and says what is lost.
TEST(FeedbackJobs, ADeviceThatFailsWithAResidualIsTheJobsError) {
  for (const char* recipe : {"onebit", "topk", "tbq", "bx:m=5", "planes"}) {
    for (const bool refused : {false, true}) {
      for (const bool adds : {false, true}) {
        if (!adds && std::string(recipe) == "planes") continue;
        Context ctx(recipe);
        Step expected(5001, 4);
        ASSERT_EQ(expected.expect(ctx), WPR_OK) << ctx.error();
        bool went_well = false;
        int failed = 0;
        for (uint64_t n = 1; !went_well && n < 500; ++n) {
          SCOPED_TRACE(std::string(recipe) + (adds ? ", adds" : "") +
                       (refused ? ", launch " : ", work ") + std::to_string(n));
          EmulatedStream stream;
          ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
          Step step(5001, 4);
          step.frame = expected.frame;
          Data here(wpr_bound(ctx, 4 * step.n));
          wpr_job* job = nullptr;
          const Work work;
          refused ? stream.refuse_at(n) : stream.fail_at(n);
          ASSERT_EQ(adds ? step.add(ctx, step.frame.data(), &job)
                         : step.compress(ctx, here.data(), here.size(), &job),
                    WPR_OK)
              << ctx.error();
          went_well = refused ? stream.will_refuse() : stream.put_count() < n;
          size_t written = 0;
          const wpr_status status = wpr_wait(ctx, job, &written);
          if (status != WPR_OK) {
            ++failed;
            EXPECT_EQ(status, WPR_DEVICE);
            expect_undefined(&ctx, adds);
            EXPECT_EQ(work.cores(), 4 * step.n);
            EXPECT_EQ(work.reason(), "the device failed a job on a stream");
            continue;
          }
          EXPECT_TRUE(went_well || (refused && n == 1)) << "a job that was lost went well";
          if (adds) {
            EXPECT_EQ(written, step.n);
            EXPECT_EQ(step.sum_there.data(), expected.sum);
            continue;
          }
          here.resize(written);
          EXPECT_EQ(here, expected.frame);
          EXPECT_EQ(step.rest_there.data(), expected.rest);
        }
        EXPECT_TRUE(went_well) << "the last operation was not reached";
        EXPECT_GT(failed, 1);
      }
    }
  }
}

// The same of calls that wait, whose every operation fails in its turn: what nothing has begun with
// they do nevertheless.
TEST(FeedbackJobs, CallsThatWaitSayWhatADeviceThatFailsHasLost) {
  for (const char* recipe : {"onebit", "topk", "tbq", "bx:m=5", "planes"}) {
    for (const bool adds : {false, true}) {
      if (!adds && std::string(recipe) == "planes") continue;
      Context ctx(recipe);
      Step expected(5001, 4);
      ASSERT_EQ(expected.expect(ctx), WPR_OK) << ctx.error();
      bool failed = true;
      for (uint64_t n = 1; failed && n < 500; ++n) {
        SCOPED_TRACE(std::string(recipe) + (adds ? ", adds" : "") + ", operation " +
                     std::to_string(n));
        Step step(5001, 4);
        Data here(wpr_bound(ctx, 4 * step.n));
        size_t written = 0;
        const uint64_t before = cuda::emulated_failures();
        cuda::fail_emulated(n);
        const wpr_status status =
            adds ? wpr_decompress_add(ctx, expected.frame.data(), expected.frame.size(),
                                      static_cast<float*>(step.sum_there.get()), step.n, &written)
                 : wpr_compress_feedback(ctx, static_cast<float*>(step.raw_there.get()),
                                         static_cast<float*>(step.rest_there.get()), step.n,
                                         here.data(), here.size(), &written);
        cuda::fail_emulated(0);
        failed = cuda::emulated_failures() > before;
        if (status != WPR_OK) {
          EXPECT_EQ(status, WPR_DEVICE);
          EXPECT_TRUE(failed && n > 1);
          expect_undefined(&ctx, adds);
          continue;
        }
        EXPECT_TRUE(!failed || n == 1) << "what was lost went well";
        if (adds) {
          EXPECT_EQ(step.sum_there.data(), expected.sum);
          continue;
        }
        here.resize(written);
        EXPECT_EQ(here, expected.frame);
        EXPECT_EQ(step.rest_there.data(), expected.rest);
      }
      EXPECT_FALSE(failed) << "the last operation was not reached";
    }
  }
}

// A damaged frame is refused by the call, which has added nothing; one that only kernels can find
// out by the job, as by the call that waits.
TEST(FeedbackJobs, DamagedFramesAreRefused) {
  std::mt19937 random(3);
  for (const char* recipe : {"onebit", "topk", "tbq", "qsgd"}) {
    for (const char* checksum : {"on", "off"}) {
      Context ctx(recipe);
      ctx.set("checksum", checksum);
      Step step(2500, 6);
      ASSERT_EQ(step.expect(ctx), WPR_OK) << ctx.error();
      EmulatedStream stream;
      ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
      for (int i = 0; i < 150; ++i) {
        Data frame = step.frame, sum = gradient(4 * step.n, 9);
        frame[random() % frame.size()] ^= static_cast<uint8_t>(1u << random() % 8);
        There there(sum);
        const Data before = sum;
        size_t n_values = 0;
        const wpr_status expected =
            wpr_decompress_add(ctx, frame.data(), frame.size(), floats(sum), step.n, &n_values);
        wpr_job* job = nullptr;
        wpr_status status = wpr_decompress_add_async(ctx, frame.data(), frame.size(), there.get(),
                                                     WPR_FLOAT32, step.n, &job);
        const bool in_call = status != WPR_OK;
        if (in_call)
          EXPECT_EQ(there.data(), before);
        else
          status = wpr_wait(ctx, job, &n_values);
        ASSERT_EQ(status, expected) << ctx.error();
        if (status == WPR_OK) {
          EXPECT_EQ(there.data(), sum);
        }
      }
    }
  }
}

TEST(FeedbackJobs, NothingIsAllocatedOnceTheyHaveBeenThere) {
  for (const char* recipe : kGradients) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    EmulatedStream stream;
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    Step small(900, 1), large(7000, 2);
    for (Step* step : {&small, &large}) ASSERT_EQ(step->expect(ctx), WPR_OK);
    uint64_t before = 0;
    for (int round = 0; round < 6; ++round) {
      if (round == 2) before = cuda::emulated_allocations();
      std::vector<wpr_job*> jobs;
      Data here[2];
      for (Step* step : {&small, &large}) {
        Data& to = here[step == &large];
        to.resize(wpr_bound(ctx, 4 * step->n));
        ASSERT_EQ(step->compress(ctx, to.data(), to.size(), &jobs.emplace_back()), WPR_OK);
        ASSERT_EQ(step->add(ctx, step->frame.data(), &jobs.emplace_back()), WPR_OK);
      }
      size_t written = 0;
      for (wpr_job* job : jobs) ASSERT_EQ(wpr_wait(ctx, job, &written), WPR_OK) << ctx.error();
    }
    EXPECT_EQ(cuda::emulated_allocations(), before);
  }
}

// Codecs whose kernels only expand, and noise, which is stored as it is.
constexpr const char* kExpands[] = {
    "planes", "zfp:rate=8", "zfp:accuracy=1e-5", "fre:m=5,ways=0", "bx:m=5", "shuffle:4", "zeros",
    "lz4",    "snappy",     "zeros+lz4"};

// A third of a gradient is zeros, so that lossless codecs have something to gain, but for blocks of
// noise.
Data values_and_noise(size_t n, unsigned seed) {
  Data data = gradient(4 * n, seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> sign(-1, 1);
  for (size_t i = 4096; i + 2048 <= n; i += 8192)
    for (size_t k = i; k < i + 2048; ++k) {
      const float value = std::ldexp(sign(random), static_cast<int>(random() % 200) - 100);
      std::memcpy(&data[4 * k], &value, 4);
    }
  return data;
}

TEST(FeedbackJobs, WhatKernelsOnlyExpandTheDeviceAddsBehindThem) {
  uint64_t seed = 0;
  for (const char* recipe : kExpands) {
    for (const size_t n : {size_t{1}, size_t{1024}, size_t{1025}, size_t{20003}}) {
      SCOPED_TRACE(std::string(recipe) + ", " + std::to_string(n) + " values");
      Context ctx(recipe);
      ctx.set("block_size", "4KiB");
      const Data frame = frame_of(ctx, values_and_noise(n, 1), WPR_FLOAT32);
      Data sum = gradient(4 * n, 2);
      const There there(sum);
      size_t written = 0;
      ASSERT_EQ(wpr_decompress_add(ctx, frame.data(), frame.size(), floats(sum), n, &written),
                WPR_OK);
      EmulatedStream stream(seed++ % 4);
      ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
      const Work work;
      wpr_job* job = nullptr;
      ASSERT_EQ(wpr_decompress_add_async(ctx, frame.data(), frame.size(), there.get(), WPR_FLOAT32,
                                         n, &job),
                WPR_OK)
          << ctx.error();
      ASSERT_TRUE(finish(ctx, job, &stream, &written)) << ctx.error();
      EXPECT_EQ(written, n);
      EXPECT_EQ(there.data(), sum);
      const bool several = std::string(recipe).find('+') != std::string::npos;
      EXPECT_EQ(work.device(), several ? 0 : 4 * n) << work.reason();
      EXPECT_EQ(work.cores(), several ? 4 * n : 0) << work.reason();
    }
  }
}

// The cores do what a kernel leaves to them, to a sum that no block has changed.
TEST(FeedbackJobs, DamagedFramesAreAddedOrRefusedAsByTheCores) {
  std::mt19937 random(4);
  for (const char* recipe : kExpands) {
    SCOPED_TRACE(recipe);
    int added = 0, left = 0;
    Context ctx(recipe);
    ctx.set("block_size", "4KiB");
    ctx.set("checksum", "off");
    const size_t n = 9000;
    const Data whole = frame_of(ctx, values_and_noise(n, 1), WPR_FLOAT32);
    EmulatedStream stream;
    ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
    for (int i = 0; i < 150; ++i) {
      Data frame = whole, sum = gradient(4 * n, 9);
      frame[random() % frame.size()] ^= static_cast<uint8_t>(1u << random() % 8);
      const There there(sum);
      size_t n_values = 0;
      const wpr_status expected =
          wpr_decompress_add(ctx, frame.data(), frame.size(), floats(sum), n, &n_values);
      const Work work;
      wpr_job* job = nullptr;
      wpr_status status = wpr_decompress_add_async(ctx, frame.data(), frame.size(), there.get(),
                                                   WPR_FLOAT32, n, &job);
      if (status == WPR_OK) status = wpr_wait(ctx, job, &n_values);
      ASSERT_EQ(status, expected) << ctx.error();
      if (status == WPR_OK) {
        ASSERT_EQ(there.data(), sum);
      }
      added += status == WPR_OK;
      left += work.cores() > 0;
    }
    EXPECT_GT(added, 0);
    if (std::string(recipe) == "zfp:rate=8") {
      EXPECT_GT(left, 0);
    }
  }
}

TEST(FeedbackJobs, WhatIsAskedWronglyIsSaidByTheCall) {
  Context ctx("onebit");
  Step step(1000, 1);
  const Data rest = step.rest;
  ASSERT_EQ(step.expect(ctx), WPR_OK);
  EmulatedStream stream;
  ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
  Data frame(wpr_bound(ctx, 4000)), rest_here = rest;
  wpr_job* job = nullptr;
  auto* const residual = static_cast<float*>(step.rest_there.get());
  const auto asks = [&](const void* src, wpr_dtype dtype, float* kept, size_t cap) {
    return wpr_compress_feedback_async(ctx, src, dtype, kept, 1000, frame.data(), cap, &job);
  };
  EXPECT_EQ(asks(nullptr, WPR_FLOAT32, residual, frame.size()), WPR_PARAMETER);
  EXPECT_EQ(asks(step.raw_there.get(), WPR_FLOAT32, nullptr, frame.size()), WPR_PARAMETER);
  EXPECT_EQ(asks(step.raw_there.get(), WPR_FLOAT64, residual, frame.size()), WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("float16"), std::string::npos) << ctx.error();
  EXPECT_EQ(asks(step.raw_there.get(), WPR_FLOAT32, residual, frame.size() - 1), WPR_DST_TOO_SMALL);
  EXPECT_EQ(asks(residual, WPR_FLOAT32, residual, frame.size()), WPR_PARAMETER);
  EXPECT_EQ(asks(step.raw_there.get(), WPR_FLOAT32, floats(rest_here), frame.size()),
            WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("one memory"), std::string::npos) << ctx.error();
  EXPECT_EQ(wpr_compress_feedback_async(ctx, step.raw_there.get(), WPR_FLOAT32, residual, 1000,
                                        frame.data(), frame.size(), nullptr),
            WPR_PARAMETER);
  ctx.set("recipe", "auto");
  EXPECT_EQ(step.compress(ctx, frame.data(), frame.size(), &job), WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("not auto"), std::string::npos) << ctx.error();
  ctx.set("recipe", "onebit");
  const Data integers = frame_of(ctx, gradient(4000, 1), WPR_FLOAT32);
  EXPECT_EQ(wpr_decompress_add_async(ctx, integers.data(), integers.size(), step.sum_there.get(),
                                     WPR_FLOAT32, 999, &job),
            WPR_DST_TOO_SMALL);
  EXPECT_EQ(wpr_decompress_add_async(ctx, integers.data(), integers.size(), step.sum_there.get(),
                                     WPR_INT32, 1000, &job),
            WPR_PARAMETER);
  ctx.set("recipe", "zstd");
  const Data words = frame_of(ctx, gradient(4000, 1), WPR_INT32);
  EXPECT_EQ(wpr_decompress_add_async(ctx, words.data(), words.size(), step.sum_there.get(),
                                     WPR_FLOAT32, 1000, &job),
            WPR_PARAMETER);
  EXPECT_NE(ctx.error().find("only float32"), std::string::npos) << ctx.error();
  EXPECT_EQ(job, nullptr);
  EXPECT_EQ(stream.put_count(), 0u);
  EXPECT_EQ(step.rest_there.data(), rest);
}

}  // namespace
}  // namespace wirepress::job_tests
