// SPDX-License-Identifier: Apache-2.0
// The option engine names a variant: every codec with every variant of every engine, through the C
// door. A recipe runs by the kernel that was named, or is refused; frames of other codecs are read
// by other kernels of the processor, which is counted, or refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/kernel.hpp"
#include "pipeline/work_script.hpp"
#include "wirepress/wirepress.h"

namespace wirepress {
namespace {

using Data = std::vector<uint8_t>;

constexpr char kReason[] = "no codec of the recipe has the kernel that option engine names";

class Context {
 public:
  Context() { wpr_create(&ctx_); }
  ~Context() { wpr_free(ctx_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  wpr_status set(const char* key, const std::string& value) {
    return wpr_set(ctx_, key, value.c_str());
  }
  std::string error() const { return wpr_error(ctx_); }
  wpr_status compress(const Data& raw, wpr_dtype dtype, Data* frame) {
    const uint64_t n = raw.size() / wpr_dtype_size(dtype);
    frame->resize(wpr_bound(ctx_, raw.size()));
    size_t size = 0;
    const wpr_status status = wpr_compress_array(ctx_, raw.data(), dtype, WPR_NO_SHAPE, &n,
                                                 frame->data(), frame->size(), &size);
    frame->resize(status == WPR_OK ? size : 0);
    return status;
  }
  wpr_status decompress(const Data& frame, Data* raw) {
    size_t size = 0;
    return wpr_decompress(ctx_, frame.data(), frame.size(), raw->data(), raw->size(), &size);
  }
  wpr_status stream(const Data& raw, wpr_dtype dtype, Data* frame) {
    size_t begun = 0, more = 0, size = 0;
    frame->resize(3 * wpr_stream_bound(ctx_, raw.size()));
    const auto rest = [&] { return frame->data() + size; };
    const size_t cap = wpr_stream_bound(ctx_, raw.size());
    if (const auto status = wpr_stream_begin(ctx_, dtype, rest(), cap, &begun)) return status;
    size += begun;
    if (const auto status = wpr_stream_update(ctx_, raw.data(), raw.size(), rest(), cap, &more))
      return status;
    size += more;
    const wpr_status status = wpr_stream_end(ctx_, rest(), cap, &more);
    frame->resize(size + more);
    return status;
  }
  std::string recipe_of(const Data& frame) {
    wpr_info info = {};
    EXPECT_EQ(wpr_inspect(ctx_, frame.data(), frame.size(), &info), WPR_OK) << error();
    return info.recipe;
  }
  wpr_status expand(const Data& frame, Data* raw) {  // piece by piece
    size_t used = 0, size = 0;
    int done = 0;
    const wpr_status status = wpr_expand_begin(ctx_);
    if (status != WPR_OK) return status;
    return wpr_expand_update(ctx_, frame.data(), frame.size(), &used, raw->data(), raw->size(),
                             &size, &done);
  }

 private:
  wpr_ctx* ctx_ = nullptr;
};

// A codec of this build that takes data without parameters, and a frame of it.
struct Given {
  std::string name;
  wpr_dtype dtype;
  std::set<std::string> kernels;  // that can run here
  Data frame, expanded;
};

Data data() {
  Data raw(20000);
  for (size_t i = 0; i < raw.size() / 4; ++i) {
    const float value = static_cast<float>(i % 97) / 8;
    std::memcpy(&raw[4 * i], &value, 4);
  }
  return raw;
}

std::vector<Given> all_codecs() {
  std::vector<Given> all;
  wpr_codec_info info;
  for (size_t i = 0; wpr_codec_at(i, &info); ++i) {
    const auto takes = [&](wpr_dtype dtype) { return (info.dtypes >> dtype & 1) != 0; };
    Given given{info.name, takes(WPR_FLOAT32) ? WPR_FLOAT32 : WPR_INT32, {}, {}, {}};
    if (!takes(given.dtype)) continue;
    wpr_kernel_info kernel;
    for (size_t k = 0; wpr_codec_kernel_at(i, k, &kernel); ++k)
      if (kernel.usable != 0)
        given.kernels.insert(std::string(kernel.engine) + ":" + kernel.variant);
    Context context;
    EXPECT_EQ(context.set("recipe", given.name), WPR_OK) << context.error();
    EXPECT_EQ(context.compress(data(), given.dtype, &given.frame), WPR_OK) << context.error();
    given.expanded.resize(data().size());
    EXPECT_EQ(context.decompress(given.frame, &given.expanded), WPR_OK) << context.error();
    all.push_back(given);
  }
  return all;
}

// Names of kernels, as the option takes them; of engines with devices a device stands there.
std::set<std::string> all_variants(const std::vector<Given>& codecs) {
  std::set<std::string> all;
  for (const Given& given : codecs)
    for (const std::string& kernel : given.kernels)
      if (names_variant(kernel.c_str())) all.insert(kernel);
  return all;
}

std::string engine_of(const std::string& variant) { return variant.substr(0, variant.find(':')); }
bool has_engine(const Given& given, const std::string& engine) {
  for (const std::string& kernel : given.kernels)
    if (engine_of(kernel) == engine) return true;
  return false;
}

// A codec that has the variant codes and expands by it, and nothing is counted.
void expect_own(const Given& given, const std::string& variant) {
  const Work others;
  Context context;
  Data frame, raw(given.expanded.size());
  ASSERT_EQ(context.set("engine", variant), WPR_OK) << context.error();
  ASSERT_EQ(context.set("recipe", given.name), WPR_OK) << context.error();
  ASSERT_EQ(context.compress(data(), given.dtype, &frame), WPR_OK) << context.error();
  ASSERT_EQ(context.decompress(frame, &raw), WPR_OK) << context.error();
  ASSERT_EQ(context.decompress(given.frame, &raw), WPR_OK) << context.error();
  EXPECT_EQ(raw, given.expanded);
  EXPECT_EQ(others.cores(), 0u);
}

// One that lacks it is refused whichever option is set first; the sentence says what it has.
void expect_refused(const Given& given, const std::string& variant) {
  const Work others;
  Context before, behind;
  Data frame;
  ASSERT_EQ(before.set("engine", variant), WPR_OK) << before.error();
  EXPECT_EQ(before.set("recipe", given.name), WPR_PARAMETER);
  ASSERT_EQ(behind.set("recipe", given.name), WPR_OK) << behind.error();
  ASSERT_EQ(behind.set("engine", variant), WPR_OK) << behind.error();
  EXPECT_EQ(behind.compress(data(), given.dtype, &frame), WPR_PARAMETER);
  const std::string said = has_engine(given, engine_of(variant))
                               ? "has no kernel " + variant + "; it has " + engine_of(variant)
                               : "no kernel for engine \"" + variant + "\"";
  EXPECT_NE(before.error().find(said), std::string::npos) << before.error();
  EXPECT_NE(behind.error().find(said), std::string::npos) << behind.error();
  EXPECT_EQ(others.cores(), 0u);
}

// Its frames are read by other kernels of the processor, which is counted. Other engines refuse
// them.
void expect_read(const Given& given, const std::string& variant) {
  Context context;
  ASSERT_EQ(context.set("engine", variant), WPR_OK) << context.error();
  Data raw(given.expanded.size());
  const bool processor = engine_of(variant) == "cpu";
  const wpr_status expected = processor ? WPR_OK : WPR_UNSUPPORTED;
  for (const bool whole : {true, false}) {
    const Work others;
    EXPECT_EQ(whole ? context.decompress(given.frame, &raw) : context.expand(given.frame, &raw),
              expected)
        << context.error();
    if (processor) {
      EXPECT_EQ(raw, given.expanded);
      if (given.frame.size() < raw.size()) {  // else its block is raw, which no kernel expands
        EXPECT_EQ(others.cores(), raw.size());
        EXPECT_EQ(others.reason(), kReason);
      }
    } else {
      EXPECT_NE(context.error().find(variant), std::string::npos) << context.error();
      EXPECT_EQ(others.cores(), 0u);
    }
  }
}

TEST(Kernels, EveryCodecWithEveryVariant) {
  const std::vector<Given> codecs = all_codecs();
  const std::set<std::string> variants = all_variants(codecs);
  ASSERT_GT(codecs.size(), 3u);
  ASSERT_TRUE(variants.contains("cpu:scalar"));
  size_t n_own = 0, n_others = 0;
  for (const Given& given : codecs) {
    for (const std::string& variant : variants) {
      SCOPED_TRACE(given.name + " " + variant);
      const bool copies = given.name == "store" && engine_of(variant) == "cpu";
      if (given.kernels.contains(variant) || copies) {
        ++n_own;
        expect_own(given, variant);
      } else {
        ++n_others;
        expect_refused(given, variant);
        expect_read(given, variant);
      }
    }
  }
  EXPECT_GT(n_own, codecs.size());
  EXPECT_GT(n_others, codecs.size());
}

// Of several codecs one must have it; the others take their best.
TEST(Kernels, OneOfSeveralCodecsMustHaveIt) {
  if (!find_codec("lz4", 3) || !find_codec("shuffle", 7)) GTEST_SKIP() << "built without them";
  const Work others;
  Context context;
  Data frame;
  ASSERT_EQ(context.set("engine", "cpu:scalar"), WPR_OK);
  ASSERT_EQ(context.set("recipe", "shuffle:4+lz4"), WPR_OK) << context.error();
  EXPECT_EQ(context.compress(data(), WPR_FLOAT32, &frame), WPR_OK) << context.error();
  EXPECT_EQ(others.cores(), 0u);
  EXPECT_EQ(context.set("recipe", "lz4"), WPR_PARAMETER);
}

// A variable is a wish, for all recipes of a process: it is no reason to refuse one, but counted.
TEST(Kernels, AVariableIsAWish) {
  if (!find_codec("lz4", 3)) GTEST_SKIP() << "built without lz4";
  setenv("WIREPRESS_ENGINE", "cpu:scalar", 1);
  Context context;
  unsetenv("WIREPRESS_ENGINE");
  EXPECT_EQ(context.error(), "");  // the default recipe has no such kernel either
  ASSERT_EQ(context.set("recipe", "lz4"), WPR_OK) << context.error();
  const Work others;
  Data frame;
  ASSERT_EQ(context.compress(data(), WPR_FLOAT32, &frame), WPR_OK) << context.error();
  EXPECT_EQ(others.cores(), data().size());
  EXPECT_EQ(others.reason(), kReason);
  const Work of_stream;
  ASSERT_EQ(context.stream(data(), WPR_FLOAT32, &frame), WPR_OK) << context.error();
  EXPECT_EQ(of_stream.cores(), data().size());
  ASSERT_EQ(context.set("engine", "cpu:scalar"), WPR_OK);  // no wish any more
  EXPECT_EQ(context.stream(data(), WPR_FLOAT32, &frame), WPR_PARAMETER);
  EXPECT_EQ(context.compress(data(), WPR_FLOAT32, &frame), WPR_PARAMETER);
}

// recipe=auto weighs codecs that lack it, too; what they do is counted.
TEST(Kernels, AutoTakesOthersAndCountsThem) {
  Context context;
  ASSERT_EQ(context.set("engine", "cpu:scalar"), WPR_OK);
  ASSERT_EQ(context.set("recipe", "auto:goal=ratio"), WPR_OK) << context.error();
  const Work others;
  Data frame, raw(data().size());
  ASSERT_EQ(context.compress(data(), WPR_FLOAT32, &frame), WPR_OK) << context.error();
  bool has_it = false;
  for (const Given& given : all_codecs())
    has_it |= context.recipe_of(frame).find(given.name) != std::string::npos &&
              given.kernels.contains("cpu:scalar");
  EXPECT_EQ(others.cores(), has_it ? 0 : data().size()) << context.recipe_of(frame);
  ASSERT_EQ(context.decompress(frame, &raw), WPR_OK) << context.error();
  EXPECT_EQ(raw, data());
  EXPECT_EQ(others.cores(), has_it ? 0 : 2 * data().size());
}

TEST(Kernels, WhatAutoMakesIsReadWithTheSameVariant) {
  const std::vector<Given> codecs = all_codecs();
  size_t made = 0;
  for (const std::string& variant : all_variants(codecs)) {
    SCOPED_TRACE(variant);
    const bool lacking = std::ranges::any_of(codecs, [&](const Given& given) {
      return has_engine(given, engine_of(variant)) && !given.kernels.contains(variant);
    });
    if (!lacking) continue;
    Context context;
    Data frame, raw(data().size());
    ASSERT_EQ(context.set("engine", variant), WPR_OK) << context.error();
    ASSERT_EQ(context.set("recipe", "auto"), WPR_OK) << context.error();
    const wpr_status status = context.compress(data(), WPR_FLOAT32, &frame);
    if (variant == "rtl:verilator16") {
      EXPECT_EQ(status, WPR_OK) << context.error();
    }
    if (status != WPR_OK) continue;  // none of its codecs
    ++made;
    EXPECT_EQ(context.decompress(frame, &raw), WPR_OK) << context.error();
    EXPECT_EQ(raw, data());
  }
  EXPECT_GT(made, 1u);
}

}  // namespace
}  // namespace wirepress
