// SPDX-License-Identifier: Apache-2.0
// Recipes are read once: by text in Settings, by the bytes of a header in Chains.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "pipeline/context.hpp"

namespace wirepress {
namespace {

const Recipe* recipe_for(Settings& settings, DType dtype) {
  const Recipe* recipe = nullptr;
  EXPECT_TRUE(settings.recipe_for(dtype, &recipe).ok());
  return recipe;
}

TEST(Settings, ARecipeIsReadOncePerTypeUntilAnOptionChanges) {
  Settings settings;
  ASSERT_TRUE(settings.set("recipe", "shuffle+zstd:1").ok());
  const Recipe* floats = recipe_for(settings, DType::kFloat32);
  const Recipe* doubles = recipe_for(settings, DType::kFloat64);
  EXPECT_EQ(floats->step[0].args.value[0], 4);
  EXPECT_EQ(doubles->step[0].args.value[0], 8);
  EXPECT_EQ(recipe_for(settings, DType::kFloat32), floats);
  ASSERT_TRUE(settings.set("recipe", "zstd:5").ok());
  EXPECT_EQ(recipe_for(settings, DType::kFloat32)->step[0].args.value[0], 5);
  ASSERT_TRUE(settings.set("engine", "cpu:scalar").ok());
  ASSERT_TRUE(settings.set("recipe", "shuffle:4").ok());
  EXPECT_STREQ(recipe_for(settings, DType::kFloat32)->step[0].kernel->variant, "scalar");
}

TEST(Settings, WhatIsRefusedChangesNothing) {
  Settings settings;
  ASSERT_TRUE(settings.set("recipe", "bx:m=6").ok());
  EXPECT_EQ(settings.set("recipe", "nothing").code(), Code::kParameter);
  EXPECT_EQ(settings.set("block_size", "3000").code(), Code::kParameter);
  EXPECT_STREQ(settings.options().get("recipe"), "bx:m=6");
  const Recipe* recipe;
  EXPECT_EQ(settings.recipe_for(DType::kBytes, &recipe).code(), Code::kParameter);  // it loses bits
  EXPECT_EQ(settings.recipe_for(DType::kInt32, &recipe).code(), Code::kParameter);
  EXPECT_EQ(recipe_for(settings, DType::kFloat32)->n_steps, 1);
}

TEST(Settings, BlocksAndGoalsFollowTheOptions) {
  Settings settings;
  ASSERT_TRUE(settings.set("threads", "3").ok());
  ASSERT_TRUE(settings.set("block_size", "64KiB").ok());
  EXPECT_EQ(settings.blocks().threads, 3);
  EXPECT_EQ(settings.blocks().block_log, 16);
  ASSERT_TRUE(settings.set("threads", "0").ok());
  EXPECT_EQ(settings.blocks().threads, usable_cores());
  const Goal* goal;
  ASSERT_TRUE(settings.set("recipe", "auto:goal=ratio").ok());
  EXPECT_TRUE(settings.wants_auto());
  ASSERT_TRUE(settings.goal(&goal).ok());
  EXPECT_EQ(goal->kind, Goal::Kind::kRatio);
  ASSERT_TRUE(settings.set("recipe", "lz4").ok());
  EXPECT_FALSE(settings.wants_auto());
  ASSERT_TRUE(settings.goal(&goal).ok());
  EXPECT_EQ(goal->kind, Goal::Kind::kTime);
}

Header header_of(const char* text, DType dtype, Recipe* recipe) {
  EXPECT_TRUE(parse_recipe(text, dtype, "auto", recipe).ok());
  Header header;
  const uint64_t shape[] = {100, 30};
  EXPECT_TRUE(set_shape(&header, dtype, 2, shape).ok());
  header.slabs = wants_slabs(*recipe);
  tell_shape(header, recipe);
  header.stages = stages_of(*recipe);
  return header;
}

ChainPointer chain_of(Chains& chains, const Header& header, const char* engine, int threads) {
  ChainPointer chain;
  EXPECT_TRUE(chains.for_stages(header.stages, header, engine, threads, &chain).ok());
  return chain;
}

TEST(Chains, AHeadersRecipeIsThatOfTheText) {
  Chains chains;
  for (const char* text : {"shuffle:4+zstd:1", "fre:m=6", "zfp:accuracy=1e-3"}) {
    Recipe recipe;
    const Header header = header_of(text, DType::kFloat32, &recipe);
    const ChainPointer chain = chains.for_recipe(recipe, 2);
    EXPECT_EQ(chain_of(chains, header, "auto", 2), chain) << text;
    EXPECT_EQ(chain_of(chains, header, "auto", 1), chain) << text;
    EXPECT_NE(chain_of(chains, header, "auto", 3), chain) << text;
  }
}

TEST(Chains, AnotherTypeShapeOrEngineIsAnotherChain) {
  Chains chains;
  Recipe recipe;
  const Header floats = header_of("shuffle:4", DType::kFloat32, &recipe);
  const ChainPointer chain = chain_of(chains, floats, "auto", 1);
  EXPECT_EQ(chain_of(chains, floats, "auto", 1), chain);
  Header other = floats;
  other.dtype = DType::kInt32;
  EXPECT_NE(chain_of(chains, other, "auto", 1), chain);
  const ChainPointer scalar = chain_of(chains, floats, "cpu:scalar", 1);
  EXPECT_STREQ(scalar->recipe().step[0].kernel->variant, "scalar");
  EXPECT_EQ(chain_of(chains, floats, "cpu:scalar", 1), scalar);
  EXPECT_EQ(chain_of(chains, floats, "auto", 1)->recipe().step[0].kernel,
            chain->recipe().step[0].kernel);
  Header array = header_of("zfp:accuracy=1e-3", DType::kFloat32, &recipe);
  const ChainPointer rows = chain_of(chains, array, "auto", 1);
  EXPECT_EQ(chain_of(chains, array, "auto", 1), rows);
  array.shape[1] = 15;
  EXPECT_NE(chain_of(chains, array, "auto", 1), rows);
}

TEST(Chains, TheOnesUsedLastAreKept) {
  Chains chains;
  const auto nth = [&](int level) {
    Recipe recipe;
    EXPECT_TRUE(
        parse_recipe(("zstd:" + std::to_string(level)).c_str(), DType::kBytes, "auto", &recipe)
            .ok());
    return chains.for_recipe(recipe, 1);
  };
  const std::weak_ptr<Chain> first = nth(1), second = nth(2);
  for (int level = 3; level <= 8; ++level) (void)nth(level);
  EXPECT_EQ(nth(1), first.lock());
  (void)nth(9);
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

// Blocks that take their time, so that every worker there is comes by.
class SlowBlocks : public PlainBlocks {
 public:
  using PlainBlocks::PlainBlocks;
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (worker >= n_workers()) return fail(Code::kParameter, "worker %d", worker);
    return PlainBlocks::make(worker, i, out, payload);
  }
};

TEST(Chains, WorkersAreNoMoreThanAChainWasMadeFor) {
  Context context;
  ASSERT_TRUE(context.settings.set("recipe", "zlib:1").ok());
  ASSERT_TRUE(context.settings.set("block_size", "1KiB").ok());
  ASSERT_TRUE(context.settings.set("threads", "1").ok());
  std::vector<std::byte> raw(100 << 10), code(context.writer.bound(raw.size()));
  for (size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i / 9);
  const uint64_t shape = raw.size();
  Header header;
  ASSERT_TRUE(set_shape(&header, DType::kBytes, kNoShape, &shape).ok());
  ChainPointer chain;
  ASSERT_TRUE(context.writer.begin_plain(&header, &chain, code).ok());
  ASSERT_EQ(chain->n_workers(), 1);
  ASSERT_TRUE(context.settings.set("threads", "12").ok());  // as where a device begins to give
  const SlowBlocks blocks(header, {}, *chain, {}, 0, raw, false);
  size_t size;
  ASSERT_TRUE(context.writer.make_blocks(blocks, 12, Bytes(code).subspan(header.size), &size).ok());
  ParsedFrame frame;
  frame.header = header;
  ASSERT_TRUE(context.reader.find_chain(1, &frame).ok());
  ASSERT_EQ(frame.chain, chain);
  const ConstBytes whole = ConstBytes(code).first(header.size + size);
  ASSERT_TRUE(read_blocks(header, whole, &frame.blocks, &frame.raw_size).ok());
  std::vector<std::byte> again(raw.size());
  ASSERT_TRUE(context.reader.expand_blocks(&frame, 12, Into::kPlace, again).ok());
  EXPECT_EQ(again, raw);
}

TEST(Settings, AMessageHasNoMoreThreadsThanItsChains) {
  Settings settings;
  for (const char* threads : {"0", "1", "7"}) {
    ASSERT_TRUE(settings.set("threads", threads).ok());
    for (const int most : {1, 2, 300}) {
      EXPECT_LE(settings.encoders(most), most);
      EXPECT_LE(settings.decoders(most), most);
      EXPECT_GE(settings.encoders(most), 1);
    }
  }
  EXPECT_EQ(settings.encoders(300), 7);
}

}  // namespace
}  // namespace wirepress
