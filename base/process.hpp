// SPDX-License-Identifier: Apache-2.0
// What a library's threads must respect of the process that they run in: its signals and forks.
#pragma once

#include <csignal>

namespace wirepress {

// While it lives, threads that are made take no signals but those of their own faults: a program's
// handlers go on running where they ran, and a blocked read of its main thread is interrupted.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// How often this process and its forebears forked: a thread that was made before the last fork runs
// in the parent only.
unsigned n_forks();

}  // namespace wirepress
