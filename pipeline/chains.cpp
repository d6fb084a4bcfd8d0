// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chains.hpp"

#include <algorithm>

namespace wirepress {
namespace {

constexpr size_t kMaxChains = 8;

// Whether recipe_of would make the first codec's arguments of this header.
bool is_for(const Recipe& recipe, const Header& header) {
  const Args& args = recipe.step[0].args;
  if (args.dtype != header.dtype || args.device >= 0) return false;
  if (!header.slabs || !wants_slabs(recipe)) return args.n_dims == 0;
  return args.n_dims == header.n_dims &&
         std::equal(args.shape.begin(), args.shape.end(), header.shape);
}

// Whether kernels of devices work on that of the calling thread.
bool is_at_home(const Recipe& recipe) {
  for (int i = 0; i < recipe.n_steps; ++i) {
    const Recipe::Step& step = recipe.step[i];
    if (step.kernel->current_device != nullptr && step.args.device < 0 &&
        step.args.home != step.kernel->current_device())
      return false;
  }
  return true;
}

}  // namespace

ChainPointer Chains::use(size_t i) {
  const auto at = kept_.begin() + static_cast<ptrdiff_t>(i);
  std::rotate(at, at + 1, kept_.end());
  return kept_.back().chain;
}

ChainPointer Chains::for_recipe(const Recipe& recipe, int threads) {
  if (!is_at_home(recipe)) {
    Recipe here = recipe;
    for (int i = 0; i < here.n_steps; ++i)
      if (here.step[i].kernel->current_device != nullptr)
        here.step[i].args.home = here.step[i].kernel->current_device();
    return for_recipe_at_home(here, threads);
  }
  return for_recipe_at_home(recipe, threads);
}

ChainPointer Chains::for_recipe_at_home(const Recipe& recipe, int threads) {
  for (size_t i = kept_.size(); i-- > 0;) {
    if (kept_[i].chain->matches(recipe, threads)) return use(i);
  }
  if (kept_.size() == kMaxChains) kept_.erase(kept_.begin());
  kept_.push_back({std::make_shared<Chain>(recipe, threads), stages_of(recipe), {}});
  return kept_.back().chain;
}

Status Chains::for_stages(const Stages& stages, const Header& header, const char* engine,
                          int threads, ChainPointer* chain) {
  for (size_t i = kept_.size(); i-- > 0;) {
    const Kept& kept = kept_[i];
    if (kept.engine != engine || kept.chain->n_workers() < threads || !same(kept.stages, stages) ||
        !is_for(kept.chain->recipe(), header) || !is_at_home(kept.chain->recipe()))
      continue;
    *chain = use(i);
    return {};
  }
  Recipe recipe;
  WPR_TRY(recipe_of(stages, header, engine, &recipe));
  *chain = for_recipe(recipe, threads);
  kept_.back().engine = engine;
  return {};
}

}  // namespace wirepress
