// SPDX-License-Identifier: Apache-2.0
// Codecs of the threads that call: each gets its own again, whose buffers are in its core's cache.
#pragma once

#include <deque>
#include <mutex>
#include <thread>

#include "store/codec.hpp"

namespace wirepress::store {

// Any thread may borrow at any time.
class CallerCodecs {
  struct Owned {
    std::thread::id owner;
    bool busy = false;
    Codec codec;
  };

 public:
  // A codec until the end of a scope.
  class Loan {
   public:
    explicit Loan(CallerCodecs& from) : from_(from) {}
    ~Loan() {
      if (codec_) from_.give_back(codec_);
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    Status borrow() { return from_.borrow(&codec_); }
    Codec* operator->() const { return &codec_->codec; }

   private:
    CallerCodecs& from_;
    Owned* codec_ = nullptr;
  };

  // What codecs are opened with; before the first loan.
  void configure(const Head& head, const Settings& settings) {
    head_ = head;
    settings_ = settings;
  }

 private:
  Status borrow(Owned** codec);
  void give_back(Owned* codec);

  Head head_;
  Settings settings_;
  std::mutex mutex_;
  std::deque<Owned> codecs_;
};

}  // namespace wirepress::store
