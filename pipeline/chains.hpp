// SPDX-License-Identifier: Apache-2.0
// The chains that a context used last: their kernel states and scratch serve the next frame, too.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"

namespace wirepress {

using ChainPointer = std::shared_ptr<Chain>;

class Chains {
 public:
  // A chain for at least `threads` workers. What devices do of it, the calling thread's does.
  ChainPointer for_recipe(const Recipe& recipe, int threads);
  // That of the recipe that a header or a block names, for the data that the header describes;
  // fails as recipe_of does.
  Status for_stages(const Stages& stages, const Header& header, const char* engine, int threads,
                    ChainPointer* chain);

 private:
  struct Kept {
    ChainPointer chain;
    Stages stages;
    std::optional<std::string> engine;  // the option with which stages were read as this recipe
  };
  ChainPointer use(size_t i);
  ChainPointer for_recipe_at_home(const Recipe& recipe, int threads);

  std::vector<Kept> kept_;  // most recently used last
};

}  // namespace wirepress
