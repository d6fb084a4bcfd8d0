// SPDX-License-Identifier: Apache-2.0
// The conformance program: walks the registry and holds every codec to the same law.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/conformance/suite.hpp"

namespace {

using wirepress::conformance::Options;

constexpr char kHelp[] =
    R"(conformance [--codec NAME] [--data NAME] [--quick] [--vectors DIR] [--engine ENGINE:DEVICE]
    checks every codec x kernel x setting x generator x size, damaged codes and frozen vectors;
    with --engine the kernels of that engine, too (77: this machine has no such device)
conformance --bench [--codec NAME | --recipe TEXT] [--data NAME] [--size BYTES] [--block BYTES]
            [--repeats N] [--json FILE] [--engine ENGINE:DEVICE]
    times the same kernels on the same data against memcpy
conformance --write-vectors [--codec NAME] [--vectors DIR]
    writes the generated vectors anew; lines added by hand stay
conformance --write-corpus FOLDER [--vectors DIR]
    writes the vectors, and a few frames, as first inputs for the fuzz targets
conformance --list | --help

DIR holds the codecs' folders. NAME of --data: zeros, ramp, text, random, float_bits, wave, gradient.
)";

enum class Mode { kCheck, kBench, kWrite, kCorpus, kList };

[[noreturn]] void usage(const char* problem, const char* what) {
  std::fprintf(stderr, "conformance: %s %s\n%s", problem, what, kHelp);
  std::exit(2);
}

size_t number(const char* text) {
  char* end;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end != '\0' || value == 0) usage("not a number above 0:", text);
  return value;
}

Mode parse(int argc, char** argv, Options* options) {
  Mode mode = Mode::kCheck;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--help") std::fputs(kHelp, stdout), std::exit(0);
    if (flag == "--bench") {
      mode = Mode::kBench;
      continue;
    }
    if (flag == "--write-vectors") {
      mode = Mode::kWrite;
      continue;
    }
    if (flag == "--list") {
      mode = Mode::kList;
      continue;
    }
    if (flag == "--quick") {
      options->quick = true;
      continue;
    }
    if (i + 1 == argc) usage("unknown flag or no value:", argv[i]);
    const char* value = argv[++i];
    if (flag == "--codec")
      options->codec = value;
    else if (flag == "--write-corpus")
      options->corpus = value, mode = Mode::kCorpus;
    else if (flag == "--data")
      options->generator = value;
    else if (flag == "--engine")
      options->engine = value;
    else if (flag == "--recipe")
      options->recipe = value;
    else if (flag == "--vectors")
      options->codecs_dir = value;
    else if (flag == "--json")
      options->json = value;
    else if (flag == "--size")
      options->size = number(value);
    else if (flag == "--block")
      options->block_size = number(value);
    else if (flag == "--repeats")
      options->repeats = static_cast<int>(number(value));
    else
      usage("unknown flag", argv[i - 1]);
  }
  if (!options->codec.empty() &&
      !wirepress::find_codec(options->codec.c_str(), options->codec.size()))
    usage("unknown codec", options->codec.c_str());
  if (!options->generator.empty() &&
      !wirepress::conformance::find_generator(options->generator.c_str()))
    usage("unknown data", options->generator.c_str());
  return mode;
}

int list() {
  for (const wirepress::Entry& entry : wirepress::registry()) {
    std::printf("0x%03X %s", entry.id, entry.codec->name);
    for (const wirepress::Kernel* kernel : entry.kernels)
      std::printf(" %s:%s", kernel->engine, kernel->variant);
    std::putchar('\n');
  }
  return 0;
}

int write(const Options& options) {
  bool good = true;
  for (const wirepress::Entry& entry : wirepress::registry())
    if (wanted(entry, options)) good &= write_vectors(entry, options);
  if (!good) std::fprintf(stderr, "conformance: vectors were not all written\n");
  return good ? 0 : 1;
}

int check(const Options& options) {
  wirepress::conformance::Log log;
  wirepress::conformance::Log::report_crashes();
  for (const wirepress::Entry& entry : wirepress::registry()) {
    if (!wanted(entry, options)) continue;
    const long before = log.checks();
    check_vectors(entry, options, &log);
    check_codec(entry, options, &log);
    std::printf("%-10s %ld checks\n", entry.codec->name, log.checks() - before);
    std::fflush(stdout);
  }
  std::printf("%ld checks, %d failed, %d kernels skipped\n", log.checks(), log.errors(),
              log.skips());
  for (const wirepress::Engine* engine : wirepress::engines())
    if (engine->state && !engine->state().empty()) std::printf("%s\n", engine->state().c_str());
  return log.errors() == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.codecs_dir = WPR_SOURCE_DIR "/codecs";
  const Mode mode = parse(argc, argv, &options);
  if (const auto status = wirepress::check_engine(options.engine.c_str(), false); !status.ok())
    return std::printf("skipped: %s\n", status.text()), 77;
  switch (mode) {
    case Mode::kBench:
      return bench(options);
    case Mode::kWrite:
      return write(options);
    case Mode::kCorpus:
      return write_corpus(options) ? 0 : 1;
    case Mode::kList:
      return list();
    case Mode::kCheck:
      return check(options);
  }
}
