// SPDX-License-Identifier: Apache-2.0
// libFuzzer: one codec (WPR_FUZZ_CODEC), any bytes, its kernels against each other. With
// WPR_FUZZ_ROUNDTRIP the bytes are raw data, else they are a code. Compiled once per codec.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/input.hpp"

namespace wirepress {
namespace {

using Data = std::vector<std::byte>;

[[noreturn]] void stop(const Kernel& kernel, const char* why) {
  std::fprintf(stderr, "%s %s:%s: %s\n", WPR_FUZZ_CODEC, kernel.engine, kernel.variant, why);
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

[[maybe_unused]] void fuzz_decode(const Entry& entry, const FuzzInput& input) {
  const Kernel* first = nullptr;
  Result expected;
  for (const Kernel* kernel : entry.kernels) {
    if (!kernel->usable()) continue;
    const Result result = run(*kernel, kernel->decode, input.args, input.data, input.raw_size);
    if (first && (result.ok != expected.ok || result.data != expected.data))
      stop(*kernel, "disagrees with the first kernel");
    if (!first) expected = result;
    first = kernel;
  }
}

[[maybe_unused]] void fuzz_roundtrip(const Entry& entry, const FuzzInput& input) {
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace wirepress;
  static const Entry* entry = find_codec(WPR_FUZZ_CODEC, std::strlen(WPR_FUZZ_CODEC));
  FuzzInput input;
  if (!input.read(*entry->codec, bytes, size)) return 0;
#ifdef WPR_FUZZ_ROUNDTRIP
  fuzz_roundtrip(*entry, input);
#else
  fuzz_decode(*entry, input);
#endif
  return 0;
}
