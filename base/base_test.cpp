// SPDX-License-Identifier: Apache-2.0
// Tests of base/: statuses, options and their units, checked bytes, the registry of kernels.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/bytes.hpp"
#include "base/options.hpp"
#include "base/variables.hpp"

namespace wirepress {
namespace {

TEST(Status, KeepsCodeAndCutsLongSentences) {
  EXPECT_TRUE(Status().ok());
  const Status status = fail(Code::kCorrupt, "%s", std::string(2000, 'x').c_str());
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(std::string(status.text()).size(), 510u);
}

TEST(Real, TextAndValueAreTheSameNumber) {
  const auto parse = [](std::string_view text, int* value) {
    return parse_real(text.data(), text.size(), value);
  };
  for (const char* text : {"0", "0.001", "1e-06", "2.5", "60", "32767", "1e30", "0.1234", "1e05"}) {
    int value = -1, again = -2;
    ASSERT_TRUE(parse(text, &value)) << text;
    EXPECT_EQ(real_of(value), std::strtod(text, nullptr)) << text;
    ASSERT_TRUE(parse(real_text(value), &again)) << real_text(value);
    EXPECT_EQ(value, again) << text;
  }
  int value, same;
  ASSERT_TRUE(parse("100e-5", &value) && parse("0.00100", &same));
  EXPECT_EQ(value, same);
  EXPECT_EQ(value, real_param(1, -3));
  for (const char* bad : {"", ".", "1e", "-1", "1.2.3", "32768", "1.23456", "1e999", "x", "1e-3x"})
    EXPECT_FALSE(parse(bad, &value)) << bad;
}

TEST(Varint, RoundTripsAndRefusesLongForms) {
  for (uint64_t value :
       {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35, UINT64_MAX}) {
    std::byte bytes[10];
    Writer writer(bytes);
    writer.write_varint(value);
    ASSERT_FALSE(writer.full());
    uint64_t back;
    Reader reader(ConstBytes(bytes, writer.position()));
    ASSERT_EQ(read_varint(reader, &back), Varint::kOk);
    EXPECT_EQ(back, value);
    Reader shorter(ConstBytes(bytes, writer.position() - 1));
    EXPECT_EQ(read_varint(shorter, &back), Varint::kEnds);
  }
  const std::byte padded[] = {std::byte{0x80}, std::byte{0}};
  uint64_t value;
  Reader reader(padded);
  EXPECT_EQ(read_varint(reader, &value), Varint::kInvalid);
  const std::vector<std::byte> eleven(11, std::byte{0xFF});
  Reader endless(eleven);
  EXPECT_EQ(read_varint(endless, &value), Varint::kInvalid);
}

TEST(Writer, NeverPassesItsSpan) {
  std::byte bytes[5] = {};
  Writer writer(Bytes(bytes, 4));
  writer.write(uint32_t{0xFFFFFFFF});
  writer.write(uint8_t{0xFF});
  EXPECT_TRUE(writer.full());
  EXPECT_EQ(bytes[4], std::byte{0});
}

TEST(Options, SizesInDecimalAndBinaryUnits) {
  uint64_t size;
  EXPECT_TRUE(parse_size("64KiB", &size) && size == 65536);
  EXPECT_TRUE(parse_size("64 k", &size) && size == 65536);
  EXPECT_TRUE(parse_size("1MB", &size) && size == 1000000);
  EXPECT_TRUE(parse_size("7", &size) && size == 7);
  for (const char* wrong : {"", "-1", "1.5", "1XB", "99999999999999999999", "KiB"})
    EXPECT_FALSE(parse_size(wrong, &size)) << wrong;
}

TEST(Options, RatesInBitsAndBytes) {
  const std::pair<const char*, double> rates[] = {
      {"10Gbps", 1.25e9},  {"1.5GB/s", 1.5e9}, {"10 Gbit/s", 1.25e9}, {"8bps", 1},
      {"2e3 kbps", 2.5e5}, {"3 TB/s", 3e12},   {"1MiB/s", 1048576},   {"4B/s", 4}};
  for (const auto& [text, bytes] : rates) {
    double rate = 0;
    EXPECT_TRUE(parse_rate(text, &rate)) << text;
    EXPECT_DOUBLE_EQ(rate, bytes) << text;
  }
  double rate;
  for (const char* wrong : {"", "10", "Gbps", "-1Gbps", "0Gbps", "infGbps", "nanGbps", "1 gbps",
                            "1iB/s", "1Mibps", "1Gbps ", "1 G bps"})
    EXPECT_FALSE(parse_rate(wrong, &rate)) << wrong;
}

TEST(Options, ValuesAsNumbers) {
  Options options;
  double value = 0;
  EXPECT_TRUE(options.set("mpi_link", "1.2GB/s").ok());
  EXPECT_TRUE(options.as_double("mpi_link", &value) && value == 1.2e9);
  EXPECT_TRUE(options.set("mpi_link", "auto").ok());
  EXPECT_TRUE(options.as_double("mpi_link", &value) && value == 0);
  EXPECT_TRUE(options.as_double("block_size", &value) && value == 524288);
  EXPECT_TRUE(options.as_double("checksum", &value) && value == 1);
  EXPECT_FALSE(options.as_double("recipe", &value));
  EXPECT_FALSE(options.as_double("nothing", &value));
  EXPECT_EQ(options.number("link"), 0u);
  EXPECT_EQ(options.rate("seed"), 0);
  const Status bad = options.set("mpi_link", "fast");
  EXPECT_STREQ(bad.text(), "mpi_link: \"fast\" is not a rate such as 10Gbps or 1.2GB/s, nor auto");
}

TEST(Options, EveryDefaultIsValidAndEveryKeyOnce) {
  Options options;
  std::set<std::string> keys;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(keys.insert(row.key).second) << row.key;
    EXPECT_TRUE(options.set(row.key, row.fallback).ok()) << row.key;
    EXPECT_GT(std::string(row.sentence).size(), 10u);
  }
}

TEST(Options, ErrorsNameTheKnownOnes) {
  Options options;
  Status status = options.set("recipes", "lz4");
  EXPECT_EQ(status.code(), Code::kParameter);
  EXPECT_NE(std::string(status.text()).find("block_size"), std::string::npos);
  status = options.set("threads", "many");
  EXPECT_NE(std::string(status.text()).find("whole number"), std::string::npos);
  status = options.set("block_size", "1");
  EXPECT_NE(std::string(status.text()).find("1024..268435456"), std::string::npos);
  EXPECT_STREQ(options.get("threads"), "0");
}

TEST(Options, ASizeMayBeAWordThatItsRowNames) {
  Options options;
  EXPECT_TRUE(options.set("mpi_threshold", "auto").ok());
  EXPECT_TRUE(options.set("mpi_threshold", "8KiB").ok());
  EXPECT_EQ(options.number("mpi_threshold"), 8192u);
  const Status status = options.set("mpi_threshold", "some");
  EXPECT_NE(std::string(status.text()).find("64KiB or 1MB, nor auto"), std::string::npos);
  EXPECT_FALSE(options.set("mpi_chunk", "auto").ok());
}

TEST(Options, EnvironmentCountsUnlessItIsWrong) {
  setenv("WIREPRESS_THREADS", "3", 1);
  setenv("WIREPRESS_CHECKSUM", "perhaps", 1);
  Options options;
  const Status status = options.read_environment();
  unsetenv("WIREPRESS_THREADS");
  unsetenv("WIREPRESS_CHECKSUM");
  EXPECT_EQ(status.code(), Code::kParameter);
  EXPECT_NE(std::string(status.text()).find("WIREPRESS_CHECKSUM: "), std::string::npos);
  EXPECT_EQ(options.number("threads"), 3u);
  EXPECT_STREQ(options.origin("threads"), "environment");
  EXPECT_STREQ(options.origin("checksum"), "default");
}

// Set while it lives.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) { setenv(name, "1", 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Variables, ThoseThatNobodyReadsAreNamed) {
  const Variable slip("WIREPRESS_CODEK"), other("WIREPRESS_COLOUR"), small("WIREPRESS_threads");
  const std::string said = unknown_variables();
  EXPECT_NE(said.find("WIREPRESS_CODEK (did you mean WIREPRESS_MPI_CODEC?)"), std::string::npos);
  EXPECT_NE(said.find("WIREPRESS_threads (did you mean WIREPRESS_THREADS?)"), std::string::npos);
  EXPECT_NE(said.find("WIREPRESS_COLOUR"), std::string::npos);
  EXPECT_EQ(said.find("WIREPRESS_COLOUR ("), std::string::npos);
}

TEST(Variables, ThoseThatSomebodyReadsAreNot) {
  EXPECT_EQ(unknown_variables(), "");
  const Variable option("WIREPRESS_MPI_CODEC"), own("WIREPRESS_PORTS"), site("WIREPRESS_ROOT"),
      another("WIREPRESSES_THREADS"), bare("WIREPRESS");
  EXPECT_EQ(unknown_variables(), "");
}

TEST(Registry, IsOrderedAndComplete) {
  int id = 0;
  for (const Entry& entry : registry()) {
    EXPECT_GT(entry.id, id);
    id = entry.id;
    ASSERT_FALSE(entry.kernels.empty());
    EXPECT_NE(choose_kernel(entry, "auto"), nullptr) << entry.codec->name;
    EXPECT_EQ(find_codec(entry.id), &entry);
    EXPECT_LE(entry.codec->params.size(), kMaxParams);
  }
  EXPECT_EQ(find_codec(uint16_t{0xFFE}), nullptr);
}

}  // namespace
}  // namespace wirepress
