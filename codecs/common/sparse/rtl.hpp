// SPDX-License-Identifier: Apache-2.0
// The FPGA cores of the sparse gradient codecs (rtl/sparse) as a kernel of the engine rtl. They
// send what reaches a threshold, which is found here, as a host must that sets up a card. Blocks
// larger than their memory, choices among equal values, feedback and sums go the portable way.
#pragma once

#include <memory>

#include "Vwpr_sparse_dec.h"
#include "Vwpr_sparse_enc.h"
#include "codecs/common/sparse/scalar.hpp"
#include "engines/rtl/float_cores.hpp"

namespace wirepress::rtl {

template <class Rules>
class SparseCores {
  using Portable = sparse::Functions<Rules, sparse::Scalar>;

 public:
  static constexpr Kernel kernel() {
    return {.engine = "rtl",
            .variant = "verilator",
            .usable = always_usable,
            .open = open,
            .close = close,
            .encode = encode,
            .decode = decode,
            .encode_feedback = encode_feedback,
            .decode_add = Portable::decode_add,
            .add = Portable::add};
  }

 private:
  static constexpr size_t kValueSize = 4;
  static constexpr size_t kMostValues = size_t{1} << 14;  // LogValues of the cores

  struct Pair {
    using Encoder = Vwpr_sparse_enc;
    using Decoder = Vwpr_sparse_dec;
    static constexpr const char* kName = Rules::kName;
    static constexpr Kernel kPortable = Portable::kernel("scalar", always_usable);
    static const Kernel& portable() { return kPortable; }
    static bool takes(const Args&) { return true; }
    static void set(const Args&, auto&) {}
  };
  using Floats = FloatCores<Pair>;

  struct State {
    sparse::Room room;
    void* cores = nullptr;
  };

  static Status open(const Args& args, void** state) noexcept {
    std::unique_ptr<State> made(new (std::nothrow) State);
    if (!made) return fail(Code::kNoMemory, "%s: no memory for simulated cores", Rules::kName);
    WPR_TRY(Floats::open(args, &made->cores));
    *state = made.release();
    return {};
  }

  static void close(void* state) noexcept {
    const std::unique_ptr<State> own(static_cast<State*>(state));
    if (own) Floats::close(own->cores);
  }

  static Status encode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto& [room, cores] = *static_cast<State*>(state);
    const size_t n = src.size() / kValueSize;
    uint32_t threshold = 0;
    bool all = false;
    if (n > 0 && n <= kMostValues)
      WPR_TRY(sparse::find_threshold(Rules::kName, Portable::kScans, Rules::rule(args, n), args,
                                     &room, src, &threshold, &all));
    if (!all) return Portable::encode(&room, args, src, dst, written);
    static_cast<typename Floats::Cores*>(cores)->encoder.ports().cfg_threshold_i = threshold;
    return Floats::encode(cores, args, src, dst, written);
  }

  static Status decode(void* state, const Args& args, ConstBytes src, Bytes dst,
                       size_t* written) noexcept {
    auto& [room, cores] = *static_cast<State*>(state);
    if (dst.size() / kValueSize > kMostValues)
      return Portable::decode(&room, args, src, dst, written);
    return Floats::decode(cores, args, src, dst, written);
  }

  static Status encode_feedback(void* state, const Args& args, ConstBytes src, Bytes residual,
                                Bytes dst, size_t* written) noexcept {
    return Portable::encode_feedback(&static_cast<State*>(state)->room, args, src, residual, dst,
                                     written);
  }
};

}  // namespace wirepress::rtl
