// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pipeline/pool.hpp"
#include "pipeline/recipe.hpp"

namespace wirepress {

// A recipe ready to run: kernel states and scratch for every worker, kept from block to block.
class Chain {
 public:
  Chain(const Recipe& recipe, int n_workers);
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;
  ~Chain();

  const Recipe& recipe() const { return recipe_; }
  bool matches(const Recipe& recipe, int n_workers) const;

  // Different workers may be used at the same time. kDstTooSmall: the code does not fit dst.
  Status encode(int worker, ConstBytes src, Bytes dst, size_t* written);
  // dst has exactly the raw size.
  Status decode(int worker, ConstBytes src, Bytes dst);

 private:
  struct Worker {
    void* state[kMaxStages] = {};
    bool open[kMaxStages] = {};
    Buffer scratch[2];
  };
  Status open(Worker& worker, int step);

  Recipe recipe_;
  std::vector<Worker> workers_;
};

}  // namespace wirepress
