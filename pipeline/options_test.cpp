// SPDX-License-Identifier: Apache-2.0
// Every option through the C door and through its variable: what is taken and what is refused.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "wirepress/wirepress.h"

namespace {

struct Values {
  std::vector<std::string> good, bad;
};

std::string whole(double value) { return std::to_string(static_cast<uint64_t>(value)); }

// Of a type that has a range: its ends, and what lies outside.
Values in_range(const wpr_option_info& option, Values values) {
  if (option.max < 0x1p63) {
    values.good.push_back(whole(option.max));
    values.bad.push_back(whole(option.max + 1));
  }
  values.good.push_back(whole(option.min));
  if (option.min > 0) values.bad.push_back(whole(option.min - 1));
  return values;
}

Values values_of(const wpr_option_info& option) {
  const std::string key = option.key, type = option.type;
  if (key == "engine") return {{"", "auto", "cpu", "cpu:scalar"}, {"cpus", "cpu:sse9", "auto:1"}};
  if (type == "size")
    return in_range(option, {{"64KiB", "64 k", "65536B"}, {"", "-1", "1.5", "64KiBs", "many"}});
  if (type == "integer") return in_range(option, {{"1"}, {"", "-1", "1.5", "1K", "many"}});
  if (type == "rate")
    return {{"1.2GB/s", "25Gbps", "10 Gbit/s", "1MiB/s"}, {"", "10", "-1Gbps", "0bps", "fast"}};
  if (type == "boolean")
    return {{"on", "off", "TRUE", "no", "1", "0"}, {"", "perhaps", "2", "onn"}};
  if (type == "recipe")
    return {{"lz4", "shuffle:4+zstd:1", "bx:m=6", "auto"},
            {"", "lz5", "zstd:99", "lz4+", "auto:x"}};
  if (type == "error bound")
    return {{"none", "rel:1e-3", "rel=1e-3", "abs:1e-6", "bits:52"},
            {"rel", "rel:1", "rel:0", "abs:1e-101", "abs:inf", "bits:53", "bits:1.5", "1e-3"}};
  EXPECT_EQ(type, "text") << key << ": a type without values to try";
  return {{"", "any text"}, {}};
}

class Context {
 public:
  Context() { status = wpr_create(&ctx); }
  ~Context() { wpr_free(ctx); }
  wpr_ctx* ctx = nullptr;
  wpr_status status;
};

class Variable {
 public:
  Variable(const std::string& key, const std::string& value) : name_("WIREPRESS_") {
    for (const char c : key) name_ += static_cast<char>(std::toupper(c));
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

// One clear sentence that names the option.
void expect_sentence(const std::string& sentence, const std::string& begins) {
  EXPECT_EQ(sentence.rfind(begins, 0), 0u) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 500u) << sentence;
}

template <class Check>
void for_each_option(Check check) {
  wpr_option_info option;
  for (size_t i = 0; wpr_option_at(i, &option); ++i) {
    const Values values = values_of(option);
    for (const std::string& value : values.good) check(option, value, true);
    for (const std::string& value : values.bad) check(option, value, false);
  }
}

TEST(OptionMatrix, ThroughTheDoor) {
  for_each_option([](const wpr_option_info& option, const std::string& value, bool good) {
    Context context;
    const std::string key = option.key;
    const std::string before = wpr_get(context.ctx, option.key);
    ASSERT_EQ(wpr_set(context.ctx, option.key, value.c_str()), good ? WPR_OK : WPR_PARAMETER)
        << key << " " << value << ": " << wpr_error(context.ctx);
    EXPECT_EQ(wpr_get(context.ctx, option.key), good ? value : before) << key;
    EXPECT_STREQ(wpr_origin(context.ctx, option.key), good ? "set" : "default") << key;
    if (!good) expect_sentence(wpr_error(context.ctx), key + ": ");
  });
}

TEST(OptionMatrix, ThroughTheEnvironment) {
  for_each_option([](const wpr_option_info& option, const std::string& value, bool good) {
    const std::string key = option.key;
    const Variable variable(key, value);
    Context context;
    ASSERT_EQ(context.status, good ? WPR_OK : WPR_PARAMETER)
        << key << " " << value << ": " << wpr_error(context.ctx);
    EXPECT_EQ(wpr_get(context.ctx, option.key), good ? value : option.fallback) << key;
    EXPECT_STREQ(wpr_origin(context.ctx, option.key), good ? "environment" : "default") << key;
    std::string variable_name = "WIREPRESS_";
    for (const char letter : key) variable_name += static_cast<char>(std::toupper(letter));
    if (!good)
      expect_sentence(wpr_error(context.ctx), "in the environment, " + variable_name + ": ");
  });
}

TEST(OptionMatrix, NumbersLieInTheirRange) {
  wpr_option_info option;
  Context context;
  for (size_t i = 0; wpr_option_at(i, &option); ++i) {
    const std::string type = option.type;
    double value = -1;
    const bool is_number =
        type == "size" || type == "integer" || type == "boolean" || type == "rate";
    EXPECT_EQ(wpr_get_number(context.ctx, option.key, &value) == WPR_OK, is_number) << option.key;
    if (!is_number || type == "rate") {
      EXPECT_TRUE(option.min == 0 && option.max == 0) << option.key;
    } else if (std::strcmp(option.fallback, option.choices) != 0) {
      EXPECT_TRUE(option.min <= value && value <= option.max && option.min < option.max)
          << option.key;
    }
  }
}

TEST(OptionMatrix, ErrorBounds) {
  Context context;
  wpr_error_kind kind;
  double value;
  const auto bound = [&](const char* text) {
    EXPECT_EQ(wpr_set(context.ctx, "mpi_error", text), WPR_OK) << text;
    EXPECT_EQ(wpr_get_error_bound(context.ctx, "mpi_error", &kind, &value), WPR_OK);
    return std::pair(kind, value);
  };
  EXPECT_EQ(bound("none"), std::pair(WPR_ERROR_NONE, 0.0));
  EXPECT_EQ(bound("rel:1e-3"), std::pair(WPR_ERROR_RELATIVE, 1e-3));
  EXPECT_EQ(bound("abs=2.5"), std::pair(WPR_ERROR_ABSOLUTE, 2.5));
  EXPECT_EQ(bound("bits:6"), std::pair(WPR_ERROR_RELATIVE, 0x1p-6));
  for (const char* key : {"recipe", "seed", "nothing"})
    EXPECT_EQ(wpr_get_error_bound(context.ctx, key, &kind, &value), WPR_PARAMETER) << key;
  EXPECT_EQ(wpr_get_error_bound(context.ctx, "mpi_error", nullptr, &value), WPR_PARAMETER);
  EXPECT_EQ(wpr_get_error_bound(nullptr, "mpi_error", &kind, &value), WPR_PARAMETER);
}

TEST(OptionMatrix, Rates) {
  double rate = -1;
  EXPECT_EQ(wpr_parse_rate("1.2GB/s", &rate), WPR_OK);
  EXPECT_EQ(rate, 1.2e9);
  for (const char* text : {"", "10", "-1Gbps", "1Gb"})
    EXPECT_EQ(wpr_parse_rate(text, &rate), WPR_PARAMETER) << text;
  EXPECT_EQ(rate, 1.2e9);
  EXPECT_EQ(wpr_parse_rate(nullptr, &rate), WPR_PARAMETER);
  EXPECT_EQ(wpr_parse_rate("1Gbps", nullptr), WPR_PARAMETER);
}

TEST(CodecFacts, TypesAreThoseThatAFrameTakes) {
  const std::vector<std::byte> data(64);
  wpr_codec_info codec;
  for (size_t i = 0; wpr_codec_at(i, &codec); ++i) {
    for (int dtype = WPR_BYTES; dtype <= WPR_COMPLEX128; ++dtype) {
      Context context;
      const auto type = static_cast<wpr_dtype>(dtype);
      const uint64_t shape[] = {data.size() / wpr_dtype_size(type)};
      ASSERT_EQ(wpr_set(context.ctx, "recipe", codec.name), WPR_OK);
      std::vector<std::byte> frame(4096);
      size_t size = 0;
      const wpr_status status = wpr_compress_array(context.ctx, data.data(), type, 1, shape,
                                                   frame.data(), frame.size(), &size);
      EXPECT_EQ(status != WPR_PARAMETER && status != WPR_UNSUPPORTED,
                (codec.dtypes >> dtype & 1) != 0)
          << codec.name << " " << wpr_dtype_name(type);
    }
  }
}

TEST(CodecFacts, OnlyCodecsThatLoseWantFeedback) {
  wpr_codec_info codec;
  std::string sparse;
  for (size_t i = 0; wpr_codec_at(i, &codec); ++i) {
    EXPECT_FALSE(codec.lossless && codec.wants_feedback) << codec.name;
    EXPECT_TRUE(codec.wants_feedback || !codec.sparse) << codec.name;
    if (codec.sparse) sparse += codec.name + std::string(" ");
    wpr_param_info param;
    for (size_t k = 0; wpr_codec_param_at(i, k, &param); ++k) {
      const std::string bounds = param.bounds;
      EXPECT_TRUE(bounds.empty() || bounds == (param.real ? "absolute" : "fraction_bits"))
          << codec.name << " " << param.name;
      EXPECT_FALSE(codec.lossless && !bounds.empty()) << codec.name;
    }
  }
  EXPECT_EQ(sparse, "graddrop topk dgc ");
}

}  // namespace
