// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "pipeline/probe.hpp"

namespace wirepress {

const Kernel* device_kernel(const Entry& entry, const Place& place) {
  const auto reaches = [&](const Kernel* kernel) {
    return std::string(kernel->engine) + ":" + kernel->variant == place.memory->kernels;
  };
  const auto found = std::ranges::find_if(entry.kernels, reaches);
  return found == entry.kernels.end() ? nullptr : *found;
}

const char* why_on_cores(const Recipe& recipe, const Place& place, const char* engine,
                         const Kernel** kernel) {
  const std::string_view wanted = engine, reaching = place.memory->kernels;
  const bool any = wanted.empty() || wanted == "auto";
  const bool its_own = reaching.substr(0, reaching.find(':')) == wanted || reaching == wanted;
  if (!any && !its_own) return "the option engine names another engine than the memory's";
  *kernel = device_kernel(*recipe.step[0].entry, place);
  if (*kernel == nullptr) return "the recipe's first codec has no kernel for the device";
  return (*kernel)->usable() ? nullptr : "the device cannot run the library's kernels";
}

DeviceChain device_chain(Chains& chains, const Recipe& recipe, const Place& place,
                         const char* engine, int threads) {
  const Kernel* kernel = nullptr;
  if (const char* why = why_on_cores(recipe, place, engine, &kernel); why != nullptr)
    return {nullptr, why};
  Recipe there = recipe;
  there.step[0].kernel = kernel;
  there.step[0].args.device = place.device;
  return {chains.for_recipe(there, threads), ""};
}

int DeviceBlocks::n_workers() const {
  return device_.chain ? std::min(cores_.n_workers(), device_.chain->n_workers())
                       : cores_.n_workers();
}

Status DeviceBlocks::make(int worker, size_t i, Bytes out, Payload* payload) const {
  *payload = {.size = raw_size(i)};
  if (payload->size == 0) return {};
  const Status status = residual_.empty() ? make_plain(worker, i, out, payload)
                                          : make_feedback(worker, i, out, payload);
  return status.ok() ? status : in_block(first() + i, status);
}

Status DeviceBlocks::make_plain(int worker, size_t i, Bytes out, Payload* payload) const {
  const ConstBytes block = src_.subspan(begin(i), raw_size(i));
  const auto store_raw = [&] {
    if (out.size() < block.size())
      return fail(Code::kDstTooSmall, "needs %zu bytes, dst has %zu left", block.size(),
                  out.size());
    return place_.download(out.first(block.size()), block.data());
  };
  if (probe_ && cores_.recipe().lossless()) {
    bool noise = false;
    WPR_TRY(looks_incompressible(place_, block, &noise));
    if (noise) return payload->stored = Stored::kRawByProbe, store_raw();
  }
  const Bytes limited = out.first(std::min(out.size(), code_limit(block.size())));
  size_t size = 0;
  Status status;
  if (device_.chain) status = device_.chain->encode(worker, block, draw(i), limited, &size);
  if (!device_.chain || cores_take_over(status)) {
    share_.cores(block.size(), device_.chain ? taken_over(status) : device_.why);
    Bytes staged;
    WPR_TRY(reserve(staging_[static_cast<size_t>(worker)].raw, block.size(), &staged));
    WPR_TRY(place_.download(staged, block.data()));
    status = cores_.encode(worker, staged, draw(i), limited, &size);
  } else {
    share_.device(block.size());
  }
  if (status.code() == Code::kDstTooSmall || (status.ok() && size == 0)) return store_raw();
  WPR_TRY(status);
  *payload = {.size = size, .content = Content::kCode, .stored = Stored::kCode};
  return {};
}

// A kernel of a device that failed has left anything in the residual, so that the cores cannot take
// over.
Status DeviceBlocks::make_feedback(int worker, size_t i, Bytes out, Payload* payload) const {
  const ConstBytes block = src_.subspan(halves_.size_of(begin(i)), halves_.size_of(raw_size(i)));
  const Bytes residual = residual_.subspan(begin(i), raw_size(i));
  const size_t limit = code_limit(raw_size(i));
  bool coded = false;
  if (device_.chain && device_.chain->can_encode_feedback() && !halves_) {
    share_.device(block.size());
    WPR_TRY(device_.chain->encode_feedback(worker, block, residual, draw(i), limit, out,
                                           &payload->size, &coded));
  } else {
    share_.cores(residual.size(),
                 !device_.chain ? device_.why
                 : halves_      ? "block by block the device's kernels take gradients of float32"
                                : "the device's kernel has no error feedback");
    Staging& staging = staging_[static_cast<size_t>(worker)];
    Bytes values, rest;
    WPR_TRY(reserve(staging.raw, residual.size(), &values));
    WPR_TRY(reserve(staging.residual, residual.size(), &rest));
    if (halves_) {
      Bytes halves;
      WPR_TRY(reserve(staging.halves, block.size(), &halves));
      WPR_TRY(place_.download(halves, block.data()));
      WPR_TRY(halves_.widen(halves, values));
    } else {
      WPR_TRY(place_.download(values, block.data()));
    }
    WPR_TRY(place_.download(rest, residual.data()));
    WPR_TRY(
        cores_.encode_feedback(worker, values, rest, draw(i), limit, out, &payload->size, &coded));
    WPR_TRY(place_.upload(residual.data(), rest));
  }
  if (coded) *payload = {.size = payload->size, .content = Content::kCode, .stored = Stored::kCode};
  return {};
}

}  // namespace wirepress
