// SPDX-License-Identifier: Apache-2.0
// For tests of kernels on an emulated GPU: warps of several blocks that go on in any order make the
// bytes of the portable kernel, and where a barrier is missing some order does not. C is the
// codec's class for cuda::KernelOf.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "codecs/common/random.hpp"
#include "engines/cuda/emulator.hpp"
#include "engines/cuda/kernel.hpp"

namespace wirepress::schedules {

using Data = std::vector<std::byte>;

// A task on a device with a seed and, where `skip` is not 0, without that barrier.
template <class C>
class Run {
 public:
  Run(const Args& args, uint64_t seed, unsigned skip) : args_(args), device_(seed, skip) {}

  Status encode(ConstBytes raw, size_t room, Data* code) {
    WPR_TRY(prepare(raw.size(), room, C::scratch(args_, raw.size()),
                    cuda::zeros_of<C>(args_, raw.size(), false)));
    WPR_TRY(device_.upload(raw_.get(), raw));
    WPR_TRY(C::template encode<false>(device_, args_, task_));
    WPR_TRY(cuda::outcome<C>(*task_.report, raw.size(), room));
    code->resize(task_.report->written);
    return device_.download(*code, code_.get());
  }
  Status decode(ConstBytes code, Bytes raw) {
    WPR_TRY(prepare(raw.size(), code.size(), cuda::decode_scratch<C>(args_, raw.size()),
                    cuda::zeros_of<C>(args_, raw.size(), true)));
    WPR_TRY(device_.upload(code_.get(), code));
    WPR_TRY(C::template decode<false>(device_, args_, task_));
    WPR_TRY(cuda::outcome<C>(*task_.report, raw.size(), raw.size()));
    return device_.download(raw, raw_.get());
  }

 private:
  Status prepare(size_t raw_size, size_t code_size, size_t scratch, size_t zeros) {
    WPR_TRY(raw_.prepare(raw_size));
    WPR_TRY(code_.prepare(code_size));
    WPR_TRY(scratch_.prepare(scratch));
    WPR_TRY(report_.prepare(sizeof(cuda::Report)));
    if (scratch > 0) std::memset(scratch_.get(), 0xA5, scratch);
    if (zeros > 0) WPR_TRY(device_.clear(scratch_.get(), zeros));
    auto* const report = reinterpret_cast<cuda::Report*>(report_.get());
    *report = {0, cuda::Report::kNone, 0, 0};
    task_ = {raw_.get(), raw_size, nullptr, code_.get(), code_size, scratch_.get(), report};
    return {};
  }

  Args args_;
  cuda::Emulator device_;
  cuda::Emulator::Memory raw_, code_, scratch_, report_;
  cuda::Task task_;
};

// `raw` and its code by the portable kernel, against every schedule.
template <class C>
class Schedules {
 public:
  Schedules(const char* codec, const Args& args, Data raw) : args_(args), raw_(std::move(raw)) {
    const Entry& entry = *find_codec(codec, std::strlen(codec));
    const Kernel& portable = *entry.kernels.back();
    void* state = nullptr;
    if (portable.open != nullptr) {
      EXPECT_TRUE(portable.open(args, &state).ok());
    }
    code_.resize(entry.codec->bound(args, raw_.size()));
    size_t written = 0;
    EXPECT_TRUE(portable.encode(state, args, raw_, code_, &written).ok());
    code_.resize(written);
    decoded_.resize(raw_.size());
    EXPECT_TRUE(portable.decode(state, args, code_, decoded_, &written).ok());
    if (portable.close != nullptr) portable.close(state);
  }

  bool encodes(uint64_t seed, unsigned skip = 0) const {
    Data code;
    const Status status = Run<C>(args_, seed, skip).encode(raw_, code_.size(), &code);
    return status.ok() && code == code_;
  }
  bool decodes(uint64_t seed, unsigned skip = 0) const {
    Data raw(raw_.size());
    const Status status = Run<C>(args_, seed, skip).decode(code_, raw);
    return status.ok() && raw == decoded_;
  }

  void hold(uint64_t seeds) const {
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      ASSERT_TRUE(encodes(seed)) << "seed " << seed;
      ASSERT_TRUE(decodes(seed)) << "seed " << seed;
    }
  }
  // That of the first `barriers` none can be missing.
  void need(unsigned encoder_barriers, unsigned decoder_barriers) const {
    for (unsigned skip = 1; skip <= encoder_barriers; ++skip)
      EXPECT_TRUE(found([&](uint64_t seed) { return encodes(seed, skip); })) << "barrier " << skip;
    for (unsigned skip = 1; skip <= decoder_barriers; ++skip)
      EXPECT_TRUE(found([&](uint64_t seed) { return decodes(seed, skip); })) << "barrier " << skip;
  }

 private:
  template <class Function>
  static bool found(Function good) {
    for (uint64_t seed = 1; seed <= 40; ++seed)
      if (!good(seed)) return true;
    return false;
  }

  Args args_;
  Data raw_, code_, decoded_;
};

// Values that differ in exponent, sign and being zero, in runs of 16.
inline Data waves(size_t size, uint64_t seed) {
  Data data(size);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    const uint32_t drawn = random_bits(seed, i / 4), run = random_bits(seed + 1, i / 1024);
    const float value = run % 3 == 0 ? 0.0f
                                     : static_cast<float>(static_cast<int32_t>(drawn)) /
                                           static_cast<float>(1u << (run % 24));
    std::memcpy(data.data() + i, &value, 4);
  }
  return data;
}

}  // namespace wirepress::schedules
