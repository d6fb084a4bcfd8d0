// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chain.hpp"

#include <cstring>

namespace wirepress {
namespace {

bool same_step(const Recipe::Step& a, const Recipe::Step& b) {
  return a.entry == b.entry && a.kernel == b.kernel && a.args.dtype == b.args.dtype &&
         a.args.value == b.args.value;
}

Status no_scratch(size_t size) {
  return fail(Code::kNoMemory, "no memory for %zu bytes of scratch", size);
}

}  // namespace

Chain::Chain(const Recipe& recipe, int n_workers)
    : recipe_(recipe), workers_(static_cast<size_t>(n_workers)) {}

Chain::~Chain() {
  for (Worker& worker : workers_) {
    for (int i = 0; i < recipe_.n_steps; ++i) {
      const Kernel& kernel = *recipe_.step[i].kernel;
      if (worker.open[i] && kernel.close) kernel.close(worker.state[i]);
    }
  }
}

bool Chain::matches(const Recipe& recipe, int n_workers) const {
  if (recipe.n_steps != recipe_.n_steps || workers_.size() < static_cast<size_t>(n_workers))
    return false;
  for (int i = 0; i < recipe.n_steps; ++i) {
    if (!same_step(recipe.step[i], recipe_.step[i])) return false;
  }
  return true;
}

Status Chain::open(Worker& worker, int step) {
  if (worker.open[step]) return {};
  const Recipe::Step& it = recipe_.step[step];
  if (it.kernel->open) WPR_TRY(it.kernel->open(it.args, &worker.state[step]));
  worker.open[step] = true;
  return {};
}

Status Chain::encode(int index, ConstBytes src, Bytes dst, size_t* written) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  const int last = recipe_.n_steps - 1;
  for (int i = 0; i <= last; ++i) {
    const Recipe::Step& step = recipe_.step[i];
    WPR_TRY(open(worker, i));
    Bytes out = dst;
    if (i < last) {
      const size_t bound = step.entry->codec->bound(step.args, src.size());
      std::byte* scratch = worker.scratch[i % 2].reserve(bound);
      if (!scratch) return no_scratch(bound);
      out = {scratch, bound};
    }
    size_t size = 0;
    WPR_TRY(step.kernel->encode(worker.state[i], step.args, src, out, &size));
    src = out.first(size);
  }
  *written = src.size();
  return {};
}

Status Chain::decode(int index, ConstBytes src, Bytes dst) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  // The largest size that each step may legally hand to the one before it.
  size_t limit[kMaxStages];
  limit[0] = dst.size();
  for (int i = 1; i < recipe_.n_steps; ++i) {
    const Recipe::Step& before = recipe_.step[i - 1];
    limit[i] = before.entry->codec->keeps_size
                   ? limit[i - 1]
                   : before.entry->codec->bound(before.args, limit[i - 1]);
  }
  for (int i = recipe_.n_steps - 1; i >= 0; --i) {
    const Recipe::Step& step = recipe_.step[i];
    WPR_TRY(open(worker, i));
    Bytes out = dst;
    if (i > 0) {
      std::byte* scratch = worker.scratch[i % 2].reserve(limit[i]);
      if (!scratch) return no_scratch(limit[i]);
      out = {scratch, limit[i]};
    }
    size_t size = 0;
    WPR_TRY(step.kernel->decode(worker.state[i], step.args, src, out, &size));
    src = out.first(size);
  }
  if (src.size() != dst.size()) {
    return fail(Code::kCorrupt, "expands to %zu bytes instead of %zu", src.size(), dst.size());
  }
  return {};
}

}  // namespace wirepress
