// SPDX-License-Identifier: Apache-2.0
// Several frames as one job (wirepress.h, "jobs"): each has the bits of a call of its own, and
// together they take as many launches as one.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pipeline/jobs_script.hpp"
#include "pipeline/work_script.hpp"

namespace wirepress::job_tests {
namespace {

// A piece on an emulated device, and what calls of its own make of it on the cores.
struct Own {
  Own(size_t n_values, unsigned seed, bool feedback)
      : n(n_values),
        raw(gradient(4 * n, seed)),
        rest(gradient(4 * n, seed + 1)),
        sum(gradient(4 * n, seed + 2)),
        raw_there(raw),
        rest_there(rest),
        sum_there(sum),
        with_rest(feedback),
        seed_of(seed) {}

  void expect(Context* ctx) {
    ctx->set("seed", std::to_string(seed_of).c_str());
    size_t written = 0, n_values = 0;
    if (with_rest) {
      frame.resize(wpr_bound(*ctx, 4 * n));
      ASSERT_EQ(wpr_compress_feedback(*ctx, floats(raw), floats(rest), n, frame.data(),
                                      frame.size(), &written),
                WPR_OK);
      frame.resize(written);
    } else {
      const uint64_t shape = n;
      frame.resize(wpr_bound(*ctx, 4 * n));
      ASSERT_EQ(wpr_compress_array(*ctx, raw.data(), WPR_FLOAT32, 1, &shape, frame.data(),
                                   frame.size(), &written),
                WPR_OK);
      frame.resize(written);
    }
    values = values_of(*ctx, frame, 4 * n);
    ASSERT_EQ(wpr_decompress_add(*ctx, frame.data(), frame.size(), floats(sum), n, &n_values),
              WPR_OK);
  }
  wpr_piece to_make(Data* here, wpr_ctx* ctx) {
    here->assign(wpr_bound(ctx, 4 * n), 0x55);
    return {
        raw_there.get(), n, with_rest ? rest_there.floats() : nullptr, here->data(), here->size(),
        seed_of,         0};
  }
  wpr_piece to_expand(const There& to) const {
    return {frame.data(), frame.size(), nullptr, to.get(), to.size(), 0, 0};
  }
  static float* floats(Data& data) { return reinterpret_cast<float*>(data.data()); }

  size_t n;
  Data raw, rest, sum, frame, values;
  There raw_there, rest_there, sum_there;
  bool with_rest;
  uint64_t seed_of;
};

std::vector<std::unique_ptr<Own>> pieces_of(Context* ctx, std::initializer_list<size_t> sizes,
                                            bool feedback) {
  std::vector<std::unique_ptr<Own>> all;
  for (const size_t n : sizes) {
    const bool own = feedback && all.size() % 3 != 2;  // some have none
    all.push_back(std::make_unique<Own>(n, static_cast<unsigned>(n % 1000 + all.size()), own));
    all.back()->expect(ctx);
  }
  return all;
}

// What makes all of them, each in a buffer of its own.
std::vector<wpr_piece> to_make(const std::vector<std::unique_ptr<Own>>& own,
                               std::vector<Data>* here, wpr_ctx* ctx) {
  here->assign(own.size(), {});
  std::vector<wpr_piece> pieces;
  for (size_t i = 0; i < own.size(); ++i) pieces.push_back(own[i]->to_make(&(*here)[i], ctx));
  return pieces;
}

struct Puts {
  uint64_t made = 0, expanded = 0, added = 0;
};

// Makes, expands and adds all pieces, to the bits of calls of their own.
Puts exchange(Context* ctx, const std::vector<std::unique_ptr<Own>>& own, uint64_t schedule,
              bool on_device) {
  Puts puts;
  EmulatedStream stream(schedule);
  EXPECT_EQ(wpr_set_stream(*ctx, &stream), WPR_OK);
  ctx->set("seed", "1");
  std::vector<Data> here;
  std::vector<wpr_piece> pieces = to_make(own, &here, *ctx);
  size_t total = 0, written = 0, raw_size = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    total += own[i]->frame.size();
    raw_size += 4 * own[i]->n;
  }
  wpr_job* job = nullptr;
  const Work work;
  EXPECT_EQ(wpr_compress_pieces_async(*ctx, pieces.data(), pieces.size(), WPR_FLOAT32, &job),
            WPR_OK)
      << ctx->error();
  puts.made = stream.put_count();
  EXPECT_TRUE(finish(*ctx, job, &stream, &written)) << ctx->error();
  EXPECT_EQ(written, total);
  for (size_t i = 0; i < own.size(); ++i) {
    here[i].resize(pieces[i].written);
    EXPECT_EQ(here[i], own[i]->frame) << "piece " << i;
    if (own[i]->with_rest) {
      EXPECT_EQ(own[i]->rest_there.data(), own[i]->rest) << "piece " << i;
    }
  }
  if (on_device) {
    EXPECT_EQ(work.device(), raw_size) << work.reason();
  }
  for (const int add : {0, 1}) {
    std::vector<std::unique_ptr<There>> back;
    pieces.clear();
    for (const auto& each : own) {
      back.push_back(std::make_unique<There>(4 * each->n));
      pieces.push_back(each->to_expand(add ? each->sum_there : *back.back()));
    }
    const uint64_t before = stream.put_count();
    EXPECT_EQ(wpr_decompress_pieces_async(*ctx, pieces.data(), pieces.size(), add, &job), WPR_OK)
        << ctx->error();
    (add ? puts.added : puts.expanded) = stream.put_count() - before;
    EXPECT_TRUE(finish(*ctx, job, &stream, &written)) << ctx->error();
    EXPECT_EQ(written, add ? raw_size / 4 : raw_size);
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(pieces[i].written, add ? own[i]->n : 4 * own[i]->n);
      EXPECT_EQ(add ? own[i]->sum_there.data() : back[i]->data(),
                add ? own[i]->sum : own[i]->values)
          << "piece " << i;
    }
  }
  if (on_device) {
    EXPECT_EQ(work.cores(), 0u) << work.reason();
  }
  EXPECT_EQ(wpr_set_stream(*ctx, nullptr), WPR_OK);
  return puts;
}

constexpr const char* kOnDevice[] = {"onebit",     "signsgd",
                                     "terngrad",   "tbq",
                                     "qsgd",       "topk",
                                     "dgc",        "graddrop",
                                     "int8",       "int4",
                                     "fp8",        "bf16",
                                     "fp16",       "bx:m=5",
                                     "fre:m=5",    "fre:m=5,ways=0",
                                     "zfp:rate=8", "zfp:accuracy=1e-5"};

TEST(Pieces, HaveTheBitsOfCallsOfTheirOwn) {
  uint64_t schedule = 0;
  for (const char* recipe : kOnDevice) {
    for (const bool feedback : {false, true}) {
      SCOPED_TRACE(std::string(recipe) + (feedback ? " with residuals" : ""));
      Context ctx(recipe);
      ctx.set("block_size", "4KiB");
      const auto own = pieces_of(&ctx, {1, 5000, 33, 1024, 1025, 9001, 2}, feedback);
      const bool tiny = std::string(recipe) == "zfp:rate=8";  // whose codes fit no block of a value
      exchange(&ctx, own, schedule++ % 4, !tiny);
    }
  }
}

TEST(Pieces, TakeAsManyLaunchesAsOne) {
  for (const char* recipe : kOnDevice) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    const Puts one = exchange(&ctx, pieces_of(&ctx, {5000}, true), 1, true);
    const Puts many = exchange(&ctx, pieces_of(&ctx, {5000, 4000, 6000, 7000}, false), 1, true);
    const Puts fed = exchange(&ctx, pieces_of(&ctx, {5000, 4000}, true), 1, true);
    EXPECT_EQ(fed.made, one.made);
    EXPECT_LE(many.made, one.made);
    EXPECT_EQ(many.expanded, one.expanded);
    EXPECT_EQ(many.added, one.added);
  }
}

// Several codecs, what loses nothing, and the cores alone.
TEST(Pieces, OthersAreDoneByTheCallThatWaits) {
  for (const char* recipe : {"terngrad+trits", "int8+zstd:1", "zstd:1", "planes", "lz4"}) {
    SCOPED_TRACE(recipe);
    Context ctx(recipe);
    if (ctx.status != WPR_OK) continue;
    const bool lossy = std::string(recipe).find('+') != std::string::npos;
    exchange(&ctx, pieces_of(&ctx, {100, 5000, 1}, lossy), 0, false);
  }
}

TEST(Pieces, AnErrorNamesItsPiece) {
  Context ctx("onebit");
  ctx.set("checksum", "off");
  const auto own = pieces_of(&ctx, {5000, 300, 4000}, false);
  EmulatedStream stream;
  ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
  std::vector<Data> here;
  std::vector<wpr_piece> pieces = to_make(own, &here, ctx);
  wpr_job* job = nullptr;
  const auto begin_all = [&](size_t n = 3) {
    return wpr_compress_pieces_async(ctx, pieces.data(), n, WPR_FLOAT32, &job);
  };
  EXPECT_EQ(begin_all(0), WPR_PARAMETER);
  EXPECT_EQ(wpr_compress_pieces_async(ctx, nullptr, 3, WPR_FLOAT32, &job), WPR_PARAMETER);
  EXPECT_EQ(wpr_compress_pieces_async(ctx, pieces.data(), 3, WPR_FLOAT32, nullptr), WPR_PARAMETER);
  pieces[1].src = nullptr;
  EXPECT_EQ(begin_all(), WPR_PARAMETER);
  EXPECT_EQ(ctx.error(), "piece 1: src is NULL, 1200 bytes");
  const There elsewhere(own[1]->raw, 1);
  pieces[1].src = elsewhere.get();
  EXPECT_EQ(begin_all(), WPR_PARAMETER);
  EXPECT_EQ(ctx.error(), "piece 1 lies on another device than piece 0");
  pieces[1].src = own[1]->raw.data();
  EXPECT_EQ(begin_all(), WPR_PARAMETER);
  EXPECT_EQ(job, nullptr);
  EXPECT_EQ(stream.put_count(), 0u);
  pieces[1] = own[1]->to_make(&here[1], ctx);
  pieces[1].cap = 8;  // no room: found when the frame is there
  ASSERT_EQ(begin_all(), WPR_OK) << ctx.error();
  size_t written = 0;
  EXPECT_EQ(wpr_wait(ctx, job, &written), WPR_DST_TOO_SMALL);
  EXPECT_EQ(ctx.error().substr(0, 9), "piece 1: ") << ctx.error();
  // A damaged frame is refused by the call, or by the job.
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    Data damaged = own[2]->frame;
    damaged[random() % damaged.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    std::vector<std::unique_ptr<There>> back;
    std::vector<wpr_piece> frames;
    for (const auto& each : own) {
      back.push_back(std::make_unique<There>(4 * each->n));
      frames.push_back(each->to_expand(*back.back()));
    }
    frames[2].src = damaged.data();
    Data alone(4 * own[2]->n);
    const wpr_status expected =
        wpr_decompress(ctx, damaged.data(), damaged.size(), alone.data(), alone.size(), &written);
    wpr_status status = wpr_decompress_pieces_async(ctx, frames.data(), 3, 0, &job);
    if (status == WPR_OK) status = wpr_wait(ctx, job, &written);
    ASSERT_EQ(status, expected) << ctx.error();
    if (status != WPR_OK)
      EXPECT_EQ(ctx.error().substr(0, 9), "piece 2: ") << ctx.error();
    else
      EXPECT_EQ(back[2]->data(), alone);
  }
}

// Each operation fails in its turn: what nothing has changed the cores do.
TEST(Pieces, ADeviceThatFailsIsMadeUpForOrSaid) {
  for (const char* recipe : {"onebit", "topk", "bx:m=5"}) {
    for (const bool feedback : {false, true}) {
      Context ctx(recipe);
      bool went_well = false;
      int failed = 0;
      for (uint64_t n = 1; !went_well && n < 200; ++n) {
        SCOPED_TRACE(std::string(recipe) + (feedback ? " with residuals, " : ", ") + "work " +
                     std::to_string(n));
        const auto own = pieces_of(&ctx, {3000, 1200, 5}, feedback);
        EmulatedStream stream;
        ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
        std::vector<Data> here;
        std::vector<wpr_piece> pieces = to_make(own, &here, ctx);
        wpr_job* job = nullptr;
        stream.fail_at(n);
        ASSERT_EQ(wpr_compress_pieces_async(ctx, pieces.data(), 3, WPR_FLOAT32, &job), WPR_OK);
        went_well = stream.put_count() < n;
        size_t written = 0;
        const wpr_status status = wpr_wait(ctx, job, &written);
        if (status != WPR_OK) {
          ++failed;
          EXPECT_EQ(status, WPR_DEVICE);
          EXPECT_NE(ctx.error().find("the residual is undefined"), std::string::npos);
          continue;
        }
        for (size_t i = 0; i < 3; ++i) {
          here[i].resize(pieces[i].written);
          EXPECT_EQ(here[i], own[i]->frame);
        }
      }
      EXPECT_TRUE(went_well);
      EXPECT_EQ(failed > 0, feedback);
    }
  }
}

TEST(Pieces, NothingIsAllocatedOnceTheyHaveBeenThere) {
  Context ctx("terngrad");
  EmulatedStream stream;
  const auto own = pieces_of(&ctx, {5000, 300, 4000, 77}, true);
  ASSERT_EQ(wpr_set_stream(ctx, &stream), WPR_OK);
  uint64_t before = 0;
  for (int round = 0; round < 8; ++round) {
    if (round == 4) before = cuda::emulated_allocations();
    std::vector<Data> here;
    std::vector<wpr_piece> pieces = to_make(own, &here, ctx);
    wpr_job* job = nullptr;
    size_t written = 0;
    ASSERT_EQ(wpr_compress_pieces_async(ctx, pieces.data(), 4, WPR_FLOAT32, &job), WPR_OK);
    ASSERT_EQ(wpr_wait(ctx, job, &written), WPR_OK);
  }
  EXPECT_EQ(cuda::emulated_allocations(), before);
}

}  // namespace
}  // namespace wirepress::job_tests
