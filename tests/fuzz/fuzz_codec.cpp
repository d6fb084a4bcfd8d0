// SPDX-License-Identifier: Apache-2.0
// libFuzzer: one codec, any bytes, its kernels against each other. The name by which the program is
// called says which: fuzz_decode_NAME takes the bytes as a code, fuzz_roundtrip_NAME as raw data.
// One program serves all codecs: each link with sanitizers takes seconds.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/input.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;

const Entry* chosen;
bool roundtrip;

bool choose(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string_view prefix : {"fuzz_decode_", "fuzz_roundtrip_"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    roundtrip = prefix == "fuzz_roundtrip_";
    chosen = find_codec(name.data(), name.size());
  }
  return chosen != nullptr;
}

[[noreturn]] void stop(const Kernel& kernel, const char* why) {
  std::fprintf(stderr, "%s %s:%s: %s\n", chosen->codec->name, kernel.engine, kernel.variant, why);
  std::abort();
}

struct Result {
  bool ok;
  Data data;
};

template <typename Function>
Result run(const Kernel& kernel, Function function, const Args& args, ConstBytes src, size_t room) {
  void* state = nullptr;
  if (kernel.open && !kernel.open(args, &state).ok()) stop(kernel, "cannot be opened");
  Result result = {false, Data(room)};
  size_t written = 0;
  result.ok = function(state, args, src, result.data, &written).ok();
  if (kernel.close) kernel.close(state);
  if (result.ok && written > room) stop(kernel, "wrote more than there is room");
  result.data.resize(result.ok ? written : 0);
  return result;
}

void fuzz_decode(const Entry& entry, const FuzzInput& input) {
  const Kernel* first = nullptr;
  Result expected = {};
  for (const Kernel* kernel : entry.kernels) {
    if (!kernel->usable()) continue;
    const Result result = run(*kernel, kernel->decode, input.args, input.data, input.raw_size);
    // Of another project's format, decoders may differ in what they take (conformance/checks.cpp).
    if (first && result.ok != expected.ok && entry.codec->exact_encode)
      stop(*kernel, "disagrees with the first kernel whether a code is corrupt");
    if (first && result.ok && expected.ok && result.data != expected.data)
      stop(*kernel, "disagrees with the first kernel what a code means");
    if (!expected.ok) expected = result;
    first = kernel;
  }
}

void fuzz_roundtrip(const Entry& entry, const FuzzInput& input) {
  const Codec& codec = *entry.codec;
  const size_t bound = codec.bound(input.args, input.data.size());
  Data code, content;
  for (const Kernel* kernel : entry.kernels) {
    if (!kernel->usable()) continue;
    const Result encoded = run(*kernel, kernel->encode, input.args, input.data, bound);
    if (!encoded.ok && codec.may_refuse) continue;
    if (!encoded.ok) stop(*kernel, "bound() is too small");
    if (codec.exact_encode && !code.empty() && encoded.data != code)
      stop(*kernel, "writes other bytes than the first kernel");
    code = encoded.data;
    (void)run(*kernel, kernel->encode, input.args, input.data,
              input.raw_size % (code.size() + 1));  // any shorter room
    for (const Kernel* other : entry.kernels) {
      if (!other->usable()) continue;
      const Result decoded = run(*other, other->decode, input.args, code, input.data.size());
      if (!decoded.ok || decoded.data.size() != input.data.size())
        stop(*other, "refuses what a kernel wrote");
      if (codec.is_lossless(input.args) && decoded.data != input.data)
        stop(*other, "decodes to something else");
      if (!content.empty() && decoded.data != content) stop(*other, "kernels decode differently");
      content = decoded.data;
    }
  }
}

}  // namespace
}  // namespace wirepress

extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  if (wirepress::choose((*argv)[0])) return 0;
  std::fprintf(stderr, "call it as fuzz_decode_CODEC or fuzz_roundtrip_CODEC, not %s\n",
               (*argv)[0]);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace wirepress;
  FuzzInput input;
  if (!input.read(*chosen->codec, bytes, size)) return 0;
  (roundtrip ? fuzz_roundtrip : fuzz_decode)(*chosen, input);
  return 0;
}
