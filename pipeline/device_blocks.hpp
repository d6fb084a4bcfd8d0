// SPDX-License-Identifier: Apache-2.0
// Blocks whose raw bytes lie in memory of a device (base/memory.hpp): its kernels code them, and
// the cores see codes. What no kernel of the device codes is copied to the cores, which do it.
#pragma once

#include <atomic>
#include <vector>

#include "pipeline/blocks.hpp"

namespace wirepress {

// Raw bytes of the blocks that the device coded or expanded, and those that the cores did.
class DeviceShare {
 public:
  void device(size_t n) { device_ += n; }
  void cores(size_t n, const char* reason) {
    cores_ += n;
    reason_ = reason;
  }
  // By the thread that made the call, when all blocks are done.
  void note(const Place& place) const { place.memory->note(device_, cores_, reason_); }

 private:
  std::atomic<uint64_t> device_{0}, cores_{0};
  std::atomic<const char*> reason_{""};
};

// A codec's kernel for memory of `place`, of a device; nullptr: it has none.
const Kernel* device_kernel(const Entry& entry, const Place& place);
// Why nothing is coded where it lies, in memory of `place`; nullptr: the first step of `recipe` can
// be, by *kernel. `engine` is the option's value.
const char* why_on_cores(const Recipe& recipe, const Place& place, const char* engine,
                         const Kernel** kernel);
// The chain of a recipe with the device's kernel at its beginning.
struct DeviceChain {
  ChainPointer chain;    // nullptr: the cores do all
  const char* why = "";  // they do
};
DeviceChain device_chain(Chains& chains, const Recipe& recipe, const Place& place,
                         const char* engine, int threads);

// Whether the cores take over where a device's kernel ended so: it does not code these data, or
// failed.
inline bool cores_take_over(const Status& status) {
  return status.code() == Code::kUnsupported || status.code() == Code::kDevice;
}
inline const char* taken_over(const Status& status) {
  return status.code() == Code::kDevice ? "the device failed"
                                        : "the device's kernel does not code these data";
}

class DeviceBlocks : public BlockMaker {
 public:
  // An empty residual: plain compression, of no halves. `cores` is the same recipe's chain for the
  // cores, and staging has an element for each of its workers.
  DeviceBlocks(const Header& header, const BlockSettings& settings, const Place& place,
               const DeviceChain& device, Chain& cores, std::vector<Staging>& staging,
               ConstBytes src, const Halves& halves, Bytes residual)
      : BlockMaker(header, settings.seed, 0, halves.raw_size_of(src.size()), false),
        place_(place),
        device_(device),
        cores_(cores),
        staging_(staging),
        src_(src),
        halves_(halves),
        residual_(residual),
        probe_(settings.probe) {}
  Status make(int worker, size_t i, Bytes out, Payload* payload) const override;
  int n_workers() const override;
  const DeviceShare& share() const { return share_; }

 private:
  Status make_plain(int worker, size_t i, Bytes out, Payload* payload) const;
  Status make_feedback(int worker, size_t i, Bytes out, Payload* payload) const;

  const Place place_;
  const DeviceChain& device_;
  Chain& cores_;
  std::vector<Staging>& staging_;
  ConstBytes src_;
  const Halves& halves_;
  Bytes residual_;
  bool probe_;
  mutable DeviceShare share_;
};

}  // namespace wirepress
