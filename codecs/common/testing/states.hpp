// SPDX-License-Identifier: Apache-2.0
// What kernels have opened, for tests that run all of a codec: one state for each, opened when it
// is first asked for.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/kernel.hpp"

namespace wirepress {

class States {
 public:
  void* of(const Kernel& kernel, const Args& args) {
    if (kernel.open == nullptr) return nullptr;
    auto& state = states_[&kernel];
    if (state == nullptr) {
      void* opened = nullptr;
      EXPECT_TRUE(kernel.open(args, &opened).ok());
      state = {opened, kernel.close};
    }
    return state.get();
  }

 private:
  std::map<const Kernel*, std::shared_ptr<void>> states_;
};

}  // namespace wirepress
