// SPDX-License-Identifier: Apache-2.0
// Who may end a long call: asked between blocks, by the thread that made the call.
#pragma once

#include "base/status.hpp"

namespace wirepress {

struct Interrupt {
  int (*asked)(void* user) = nullptr;
  void* user = nullptr;

  Status ask() const {
    return asked && asked(user) != 0 ? fail(Code::kInterrupted, "the call was interrupted")
                                     : Status();
  }
};

}  // namespace wirepress
